"""Conversions that keep the function and change sizes, names or the family; sizes that no part explains."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from attngeom.models import compare, comparison, open_model
from attngeom.models.samples import LLAMA, random_model
from tests.models.cases import changed, in_type, reference, state_of

State = dict[str, np.ndarray]
UNITS: dict[str, tuple[str, tuple[str, ...], str, int]] = {
    # Key of the size, tensors that units read, tensor that they write, axis of the units in a matrix that reads.
    "llama": ("intermediate_size", ("mlp.gate_proj", "mlp.up_proj"), "mlp.down_proj", 0),
    "gpt2": ("n_inner", ("mlp.c_fc",), "mlp.c_proj", 1),
    "opt": ("ffn_dim", ("fc1",), "fc2", 0),
    "vit": ("intermediate_size", ("intermediate.dense",), ".output.dense", 0),
}


def resized(family: str, state: State, change: Callable[[np.ndarray, int], np.ndarray]) -> State:
    """All MLPs with other units; ``change`` gets a tensor and the axis of its units."""
    _, readers, writer, axis = UNITS[family]
    new = dict(state)
    for name, tensor in state.items():
        if any(f"{reader}.weight" in name for reader in readers):
            new[name] = change(tensor, axis)
        elif any(f"{reader}.bias" in name for reader in readers):
            new[name] = change(tensor, 0)
        elif f"{writer}.weight" in name and "attention" not in name:
            new[name] = change(tensor, 1 - axis)
    return new


def units(family: str) -> int:
    model = reference(family)
    mlp = model.block(0).mlp
    assert mlp is not None
    return int(mlp.width)  # type: ignore[union-attr]


@pytest.mark.parametrize("family", UNITS)
def test_units_of_zeros_and_dead_units(family: str) -> None:
    """An MLP padded with zero units is the same, exactly; so is one without its dead units; one with fewer is not."""
    model, key = reference(family), UNITS[family][0]
    state, count = state_of(model), units(family)

    def pad(tensor: np.ndarray, axis: int) -> np.ndarray:
        return np.concatenate([tensor, np.zeros_like(tensor.take([0, 1, 2], axis=axis))], axis=axis)

    padded = open_model(resized(family, state, pad), {**model.config, key: count + 3})
    for level in ("auto", "rounding"):
        found = compare(model, padded, level=level)  # type: ignore[arg-type]
        assert found.same_function is True and "contribute nothing" in found.reason
    kept = [unit for unit in range(count) if unit not in (1, 4)]
    fewer = open_model(
        resized(family, state, lambda t, axis: t.take(kept, axis=axis)), {**model.config, key: count - 2}
    )
    assert compare(model, fewer).same_function is False
    _, _, writer, axis = UNITS[family]
    for name in [name for name in state if f"{writer}.weight" in name and "attention" not in name]:
        state[name] = np.where(
            (np.arange(count) == 1) | (np.arange(count) == 4), 0.0, np.moveaxis(state[name], 1 - axis, -1)
        )
        state[name] = np.ascontiguousarray(np.moveaxis(state[name], -1, 1 - axis))
    dead = open_model(state, model.config)
    assert compare(dead, fewer).same_function is True
    assert compare(fewer, dead).same_function is True


def silenced(state: State, part: str) -> State:
    """A Llama of which a part of layer 0 writes nothing."""
    state, prefix = dict(state), "model.layers.0."
    writers = {"unit": "mlp.down_proj", "head": "self_attn.o_proj", "layer": "o_proj"}[part]
    for name in (f"{prefix}self_attn.o_proj.weight", f"{prefix}mlp.down_proj.weight"):
        if part == "layer":
            state[name] = np.zeros_like(state[name])
        elif writers in name:
            state[name] = state[name].copy()
            state[name][:, : 1 if part == "unit" else 8] = 0.0
    return state


@pytest.mark.parametrize("part", ["none", "unit", "head", "layer"])
@pytest.mark.parametrize("noise", [0.0, 0.3])
def test_models_that_are_whole_are_not_surveyed_again(part: str, noise: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is silent differs in what it reads: answers are those of a survey of both models, which whole ones spare."""
    state = state_of(random_model(LLAMA, 3))
    state = state if part == "none" else silenced(state, part)
    rng = np.random.default_rng(5)
    other = {name: w * (1 + noise * rng.normal(size=w.shape)) for name, w in state.items()}
    for name, rows in (("mlp.gate_proj", 1), ("self_attn.q_proj", 8)):
        if part != "none":
            other[f"model.layers.0.{name}.weight"][:rows] += 1.0
    one, two = open_model(state, LLAMA), open_model(other, LLAMA)
    surveyed: list[bool] = []
    told = comparison.match_sizes
    monkeypatch.setattr(comparison, "match_sizes", lambda *models: surveyed.append(True) or told(*models))
    quick = compare(one, two, level="rounding").to_json()
    assert not (surveyed and part == "none")
    monkeypatch.setattr(comparison.ModelComparison, "is_whole", False)
    assert compare(one, two, level="rounding").to_json() == quick


@pytest.mark.parametrize(
    ("family", "key", "word"), [("llama", "num_hidden_layers", "layers"), ("gpt2", "n_layer", "h")]
)
def test_blocks_that_write_nothing(family: str, key: str, word: str) -> None:
    model = reference(family)
    new: State = {}
    for name, tensor in state_of(model).items():
        found = re.match(rf"(.*\.{word})\.(\d+)\.(.*)", name)
        if found is None:
            new[name] = tensor
            continue
        base, number, rest = found.group(1), int(found.group(2)), found.group(3)
        new[f"{base}.{number + (number > 0)}.{rest}"] = tensor
        if number == 0:
            silent = re.search(r"(o_proj|down_proj|c_proj)\.", rest) is not None
            new[f"{base}.1.{rest}"] = 0 * tensor if silent else tensor + 1.0
    longer = open_model(new, {**model.config, key: 3})
    assert compare(model, longer).same_function is True and compare(longer, model).same_function is True
    name = next(name for name in new if f".{word}.2." in name and ("q_proj.weight" in name or "c_attn.weight" in name))
    found = compare(model, open_model({**new, name: new[name] * 1.01}, longer.config))
    assert found.same_function is False
    loud = next(
        name for name in new if f".{word}.1." in name and ("down_proj.weight" in name or "mlp.c_proj.weight" in name)
    )
    other = compare(
        model, open_model({**new, loud: np.random.default_rng(0).normal(size=new[loud].shape)}, longer.config)
    )
    assert other.same_function is False and other.level == "outputs"


def upcycled(state: State, count: int, rng: np.random.Generator) -> State:
    new: State = {}
    for name, tensor in state.items():
        found = re.match(r"(.*)mlp\.(gate|up|down)_proj\.weight", name)
        if found is None:
            new[name] = tensor
            continue
        base = f"{found.group(1)}block_sparse_moe."
        short = {"gate": "w1", "up": "w3", "down": "w2"}[found.group(2)]
        new |= {f"{base}experts.{expert}.{short}.weight": tensor.copy() for expert in range(count)}
        new[f"{base}gate.weight"] = rng.normal(size=(count, 24))
    return new


def test_equal_experts_are_one_mlp() -> None:
    model, rng = reference("mistral"), np.random.default_rng(0)
    config = {**model.config, "model_type": "mixtral", "num_local_experts": 4, "num_experts_per_tok": 2}
    state = upcycled(state_of(model), 4, rng)
    sparse = open_model(state, config)
    assert compare(model, sparse).same_function is True and compare(sparse, model).same_function is True
    routed = open_model({**state, **{n: -t for n, t in state.items() if n.endswith("moe.gate.weight")}}, config)
    assert compare(sparse, routed).same_function is True  # the router chooses between equals
    # Outputs of files of 16 bits may be far apart by rounding alone, so that the draw of the router would decide.
    name, precise = "model.layers.0.block_sparse_moe.experts.2.w2.weight", in_type(model, np.float64)
    for seed in range(3):
        state = upcycled(state_of(model), 4, np.random.default_rng(seed))
        assert compare(precise, open_model({**state, name: 1.5 * state[name]}, config)).same_function is False


def as_llama(config: dict[str, Any], **more: Any) -> dict[str, Any]:
    dropped = ("sliding_window", "layer_types", "use_sliding_window", "max_window_layers")
    kept = {key: value for key, value in config.items() if key not in dropped}
    return {**kept, "model_type": "llama", "architectures": ["LlamaForCausalLM"], **more}


@pytest.mark.parametrize("family", ["mistral", "qwen2", "phi3"])
def test_conversions_to_llama(family: str) -> None:
    """The specification decides, not model_type; a window that stays is another function."""
    model = reference(family)
    state, own = state_of(model), {**model.config, "sliding_window": None}
    new, other = dict(state), as_llama(dict(model.config))
    if family == "qwen2":
        other["attention_bias"] = True
        new |= {n.replace("weight", "bias"): np.zeros(len(t)) for n, t in state.items() if n.endswith("o_proj.weight")}
    if family == "phi3":
        rope = {**model.config["rope_parameters"], "partial_rotary_factor": 1.0}
        own, other = {**own, "rope_parameters": rope}, {**other, "rope_parameters": rope}
        for name in state:
            if "qkv_proj" in name:
                parts = np.split(new.pop(name), [32, 48])
                new |= {name.replace("qkv", letter): part for letter, part in zip("qkv", parts)}
            if "gate_up_proj" in name:
                parts = np.split(new.pop(name), 2)
                new |= {name.replace("gate_up", letter): part for letter, part in zip(("gate", "up"), parts)}
    found = compare(open_model(state, own), open_model(new, other))
    assert found.same_function is True and found.level == "exact", str(found)
    name = "model.layers.1.self_attn.v_proj.weight"
    assert compare(open_model(state, own), open_model({**new, name: -new[name]}, other)).same_function is False
    if family == "mistral":
        assert compare(model, open_model(new, other)).same_function is False


def test_heads_of_zeros() -> None:
    """A silent head is left out; with another number of heads, too; a head more that writes is another function."""
    model = random_model({**LLAMA, "num_key_value_heads": 4})
    state = state_of(model)
    more, rng = dict(state), np.random.default_rng(1)
    for name, tensor in state.items():
        if any(f"{letter}_proj.weight" in name for letter in "qkv"):
            more[name] = np.concatenate([tensor, rng.normal(size=(8, 32))])
        elif "o_proj" in name:
            more[name] = np.concatenate([tensor, np.zeros((32, 8))], axis=1)
    config = {**model.config, "num_attention_heads": 5, "num_key_value_heads": 5}
    wider = open_model(more, config)
    assert compare(model, wider).same_function is True
    name = "model.layers.0.self_attn.o_proj.weight"
    loud = changed(wider, name, lambda w: w + 0.1)
    assert compare(model, loud).same_function is False


def test_sizes_that_no_part_explains_are_evaluated() -> None:
    """Unused rows of a position table: outputs agree where both are defined, and more cannot be told."""
    model = reference("gpt2")
    state, name = state_of(model), "transformer.wpe.weight"
    state[name] = np.concatenate([state[name], np.ones((4, 24))])
    longer = open_model(state, {**model.config, "n_positions": 20})
    found = compare(model, longer)
    assert found.same_function is None and found.level == "outputs" and "agree" in found.reason
    state[name] = state[name][::-1]
    assert compare(model, open_model(state, longer.config)).same_function is False
    tokens = {**state_of(model), "transformer.wte.weight": np.ones((25, 24))}
    found = compare(model, open_model(tokens, {**model.config, "vocab_size": 25}))
    assert found.same_function is False and "23 and 25 numbers" in found.reason
