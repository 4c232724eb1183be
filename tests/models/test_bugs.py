"""Nine bugs of converters, each found by compare with the tensors that are wrong."""

from __future__ import annotations

import ml_dtypes
import numpy as np

from attngeom.models import compare, open_model, teleport
from tests.models.cases import (
    changed,
    reference,
    scaled,
    state_of,
    wrong,
)

TYPES = (np.float64, np.float32, np.float16, ml_dtypes.bfloat16)
Q, K, V, O = (f"model.layers.1.self_attn.{name}_proj.weight" for name in "qkvo")


def permuted_pairs(rows: np.ndarray, heads: int) -> np.ndarray:
    a = len(rows) // heads
    order = np.stack([np.arange(a // 2), np.arange(a // 2, a)], axis=1).reshape(-1)
    return rows.reshape(heads, a, -1)[:, order].reshape(rows.shape)


def test_bug_pair_layout() -> None:
    """q and k in interleaved order in a model that turns halves: the most frequent conversion bug."""
    model = teleport(reference("llama"), 1).moved()
    state = state_of(model)
    state[Q], state[K] = permuted_pairs(state[Q], 4), permuted_pairs(state[K], 2)
    found = compare(reference("llama"), open_model(state, model.config))
    assert found.same_function is False
    assert {"query", "key"} <= wrong(found) <= {"query", "key", "value", "output"}
    assert {layer.layer for layer in found.layers if layer.same is False} == {1}
    assert any(name == Q for layer in found.layers for name, _ in layer.wrong)


def test_bug_biases_left_behind() -> None:
    """Weights permuted and biases forgotten: only the biases are wrong."""
    model = reference("qwen2")
    state = state_of(model)
    for part, heads in (("q", 4), ("k", 2)):
        name = f"model.layers.0.self_attn.{part}_proj.bias"
        state[name] = permuted_pairs(state[name], heads)
    found = compare(model, open_model(state, model.config))
    assert found.same_function is False and wrong(found) == {"query_bias", "key_bias"}


def test_bug_scale_applied_twice() -> None:
    """An extra 1/√a in the queries: only queries and their biases are wrong."""
    model = reference("qwen2")
    found = compare(model, scaled(model, layers__0__self_attn__q_proj=8**-0.5))
    assert found.same_function is False and wrong(found) == {"query", "query_bias"}


def test_bug_one_mlp_column() -> None:
    model = teleport(reference("llama"), 4).moved()

    def spoil(w: np.ndarray) -> np.ndarray:
        w[:, 5] *= 1.01
        return w

    found = compare(reference("llama"), changed(model, "model.layers.1.mlp.down_proj.weight", spoil))
    assert found.same_function is False and wrong(found) == {"down"}


def test_bug_gate_and_up_swapped() -> None:
    model = reference("llama")
    state = state_of(model)
    gate, up = (f"model.layers.0.mlp.{name}_proj.weight" for name in ("gate", "up"))
    state[gate], state[up] = state[up], state[gate]
    found = compare(model, open_model(state, model.config))
    assert found.same_function is False and wrong(found) <= {"gate", "up", "down"} and {"gate", "up"} <= wrong(found)


def test_bug_keys_tiled_instead_of_repeated() -> None:
    """Grouped heads expanded in the wrong order."""
    model = reference("llama")
    state = state_of(model)
    for name in (n for n in state if "layers.0" in n and any(p in n for p in ("k_proj", "v_proj"))):
        state[name] = np.tile(state[name].reshape(2, 8, -1), (2, 1, 1)).reshape(32, -1)
    for name in (n for n in state if "layers.1" in n and any(p in n for p in ("k_proj", "v_proj"))):
        state[name] = np.repeat(state[name].reshape(2, 8, -1), 2, axis=0).reshape(32, -1)
    found = compare(model, open_model(state, {**model.config, "num_key_value_heads": 4}))
    assert found.same_function is False
    assert [layer.same for layer in found.layers] == [False, True, True]
    assert wrong(found) <= {"query", "key", "value", "output"}


def test_bug_gain_offset_forgotten() -> None:
    """Gemma stores gains minus one: a converter that adds one again spoils every reader of that norm and no other."""
    model = reference("gemma2")
    found = compare(model, changed(model, "model.layers.1.pre_feedforward_layernorm.weight", lambda g: g + 1))
    assert found.same_function is False and wrong(found) == {"gate", "up"} | (wrong(found) & {"down"})


def test_bug_fused_rows_in_another_order() -> None:
    """NeoX packs q, k, v per head: rows stacked as all q, all k, all v are other heads."""
    model = reference("gpt_neox")

    def restack(w: np.ndarray) -> np.ndarray:
        return w.reshape(3, 3, 8, *w.shape[1:]).swapaxes(0, 1).reshape(w.shape)

    found = compare(model, changed(model, "gpt_neox.layers.0.attention.query_key_value.weight", restack))
    assert found.same_function is False and {"query", "key"} <= wrong(found) and not wrong(found) & {"up", "down"}
    assert [layer.same for layer in found.layers][1:] == [True, True]


def test_bug_output_transposed() -> None:
    model = reference("gpt2")
    found = compare(model, changed(model, "transformer.h.1.attn.c_proj.weight", lambda w: w.T))
    assert found.same_function is False and "output" in wrong(found) and not wrong(found) & {"up", "down", "up_bias"}
