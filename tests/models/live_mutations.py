"""Do the verdicts of compare agree with logits? Mutations and conversions of checkpoints of every family, by torch.

A tiny random model of every class of every family is made with transformers and saved. Each mutation changes one
tensor, a few tensors or the configuration of a copy; truth is whether the outputs that transformers computes in double
precision change. "same" for outputs that differ, "different" for outputs that agree, and a headline that names a tensor
that was not changed, are errors. Run in an environment with torch and transformers:

    python tests/models/live_mutations.py [--seed 0] [--per-model 12] [FAMILY …]

Prints one line per error and a summary; exit code 1 if there was an error.
"""

from __future__ import annotations

import argparse
import inspect
import json
import logging
import re
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers
from safetensors.torch import load_file, save_file

sys.path.insert(0, str(Path(__file__).parents[2]))

from attngeom.errors import InputError
from attngeom.models import compare, fingerprint, open_model, teleport, write_model
from attngeom.models.writing import WriteError
from tests.models.data.make_reference import ATTENTION, FAMILIES, in_double, inputs_of, perturb

SAME, DIFFERENT = 1e-9, 1e-6
"""Outputs in double precision that agree to the first, or differ by the second, decide; between them nothing is told.

Rewritten folders are stored in double precision, so that rounding of files plays no part."""
State = dict[str, torch.Tensor]
Folder = tuple[State, dict[str, Any]]


@dataclass(frozen=True)
class Mutation:
    """A named change of the tensors and the configuration; ``touched`` are the tensors that it changed."""

    name: str
    state: State
    config: dict[str, Any]
    touched: tuple[str, ...] = ()


def classes_of(family: str) -> list[Any]:
    """The classes of transformers that compute from a configuration of the family, the head of the reference first."""
    name, _ = FAMILIES[family]
    first = getattr(transformers, name)
    found = [first]
    for word in dir(transformers):
        cls = getattr(transformers, word, None) if not word.startswith(("Auto", "_")) else None
        usable = inspect.isclass(cls) and issubclass(cls, transformers.PreTrainedModel)
        if usable and cls.config_class is first.config_class and cls is not first and "PreTrained" not in word:
            found.append(cls)
    return found


def make(cls: Any, family: str, seed: int, folder: Path) -> None:
    config = cls.config_class(**FAMILIES[family][1])
    config._attn_implementation, config._experts_implementation = ATTENTION.get(family, "eager"), "eager"
    torch.manual_seed(seed)
    model = cls(config).eval()
    perturb(model, torch.Generator().manual_seed(seed))
    model.double().save_pretrained(folder)


def write(folder: Path, state: State, config: dict[str, Any]) -> None:
    folder.mkdir()
    save_file(
        {name: tensor.contiguous() for name, tensor in state.items()}, folder / "model.safetensors", {"format": "pt"}
    )
    (folder / "config.json").write_text(json.dumps(config))


def outputs(folder: Path, family: str, seed: int = 7, more: int = 0) -> np.ndarray:
    """All floating point outputs of the class that config.json names, at two inputs and more, in one vector."""
    config = json.loads((folder / "config.json").read_text())
    cls = getattr(transformers, config["architectures"][0])
    found = []
    with in_double(), torch.no_grad():
        attention = ATTENTION.get(family, "eager")
        model = cls.from_pretrained(folder, dtype=torch.float64, attn_implementation=attention).eval()
        model.config._experts_implementation = "eager"
        for number in range(2 + more):
            generator = torch.Generator().manual_seed(seed + number)
            inputs = inputs_of(family, generator)
            inputs = covering(inputs, number) if number < 2 else inputs
            if "MultipleChoice" in cls.__name__:
                inputs = {key: tensor[:, None] for key, tensor in inputs.items()}
            if "MaskedImage" in cls.__name__:
                inputs["bool_masked_pos"] = torch.rand((1, 9), generator=generator) < 0.5
            answer = model(**inputs, return_dict=True)
            for key, value in answer.items():
                if isinstance(value, torch.Tensor) and value.is_floating_point() and "encoder" not in key:
                    found.append(value.reshape(-1).double().numpy())
    return np.concatenate(found)


def covering(inputs: dict[str, torch.Tensor], number: int) -> dict[str, torch.Tensor]:
    """The inputs with every token of the vocabulary in one of the two, at all sixteen positions."""
    for key in ("input_ids", "decoder_input_ids"):
        if key in inputs:
            inputs[key] = (torch.arange(16)[None] * 5 + 7 * number) % 16 + 7 * number
    if "token_type_ids" in inputs:
        inputs["token_type_ids"] = (torch.arange(16)[None] % 3 == 0).long()
    return inputs


def gap(one: np.ndarray, other: np.ndarray) -> float:
    if one.shape != other.shape:
        return float("inf")
    return float(np.abs(one - other).max() / np.abs(one).max())


# Mutations of one tensor


def spoil_entry(tensor: torch.Tensor, rng: np.random.Generator) -> torch.Tensor:
    flat = tensor.clone().reshape(-1)
    place = int(rng.integers(flat.numel()))
    flat[place] += 0.3 * float(tensor.abs().mean()) + 0.05
    return flat.reshape(tensor.shape)


def shuffle_rows(tensor: torch.Tensor, rng: np.random.Generator) -> torch.Tensor:
    return tensor[torch.from_numpy(rng.permutation(len(tensor)))]


TENSOR_CHANGES: dict[str, Callable[[torch.Tensor, np.random.Generator], torch.Tensor]] = {
    "zeroed": lambda tensor, rng: torch.zeros_like(tensor),
    "scaled": lambda tensor, rng: tensor * 1.25,
    "negated": lambda tensor, rng: -tensor,
    "one entry": spoil_entry,
    "rows shuffled": shuffle_rows,
    "shifted": lambda tensor, rng: tensor + 0.125,
    "noise": lambda tensor, rng: tensor + 0.01 * torch.from_numpy(rng.normal(size=tuple(tensor.shape))),
}


def tensor_mutations(state: State, config: dict[str, Any], rng: np.random.Generator, count: int) -> Iterator[Mutation]:
    """One mutation of every tensor in turn, or of ``count`` of them."""
    names = [name for name, tensor in state.items() if tensor.is_floating_point() and tensor.numel()]
    chosen = names if count >= len(names) else sorted(rng.choice(names, size=count, replace=False))
    for name in chosen:
        kind = str(rng.choice(list(TENSOR_CHANGES)))
        new = TENSOR_CHANGES[kind](state[name], rng)
        yield Mutation(f"{kind}: {name}", {**state, name: new}, config, (name,))


def swap_mutations(state: State, config: dict[str, Any], rng: np.random.Generator) -> Iterator[Mutation]:
    """Two tensors of equal shape exchanged, two layers exchanged."""
    shapes: dict[tuple[int, ...], list[str]] = {}
    for name, tensor in state.items():
        shapes.setdefault(tuple(tensor.shape), []).append(name)
    groups = [names for names in shapes.values() if len(names) > 1]
    for _ in range(min(2, len(groups))):
        one, two = rng.choice(groups[int(rng.integers(len(groups)))], size=2, replace=False)
        yield Mutation(f"exchanged: {one} and {two}", {**state, one: state[two], two: state[one]}, config, (one, two))
    for one, two in (("gate_proj", "up_proj"), ("wi_0", "wi_1"), ("w1", "w3")):
        names = [name for name in state if f".{one}.weight" in name and "expert" not in name]
        if names:
            left, right = names[0], names[0].replace(one, two)
            new = {**state, left: state[right], right: state[left]}
            yield Mutation(f"exchanged: {left} and {right}", new, config, (left, right))


# Conversions that keep the function


def layer_prefixes(state: State) -> list[str]:
    found = {m.group(0) for name in state if (m := re.match(r"(.*?\.)?(layers|h|block|layer)\.\d+\.", name))}
    return sorted(found)


UNITS = (
    (("mlp.gate_proj", "mlp.up_proj"), "mlp.down_proj"),
    (("mlp.c_fc",), "mlp.c_proj"),
    (("mlp.fc_in",), "mlp.fc_out"),
    (("mlp.dense_h_to_4h",), "mlp.dense_4h_to_h"),
    (("intermediate.dense",), "output.dense"),
    (("fc1",), "fc2"),
    (("DenseReluDense.wi",), "DenseReluDense.wo"),
)
SIZES = ("intermediate_size", "n_inner", "ffn_dim", "ffn_hidden_size", "d_ff")


def resized(
    state: State, config: dict[str, Any], change: Callable[[torch.Tensor, int, bool], torch.Tensor], more: int
) -> Folder | None:
    """Every MLP with other hidden units; ``change`` gets a tensor, the axis of its units, and whether it is a bias."""
    key = next((key for key in SIZES if isinstance(config.get(key), int)), None)
    if key is None or any("expert" in name for name in state):
        return None
    new, touched = dict(state), False
    for name, tensor in state.items():
        for readers, writer in UNITS:
            transposed = readers == ("mlp.c_fc",)
            if any(f"{reader}.weight" in name for reader in readers):
                new[name] = change(tensor, 1 if transposed else 0, False)
                touched = True
            elif any(f"{reader}.bias" in name for reader in readers):
                new[name] = change(tensor, 0, True)
            elif f"{writer}.weight" in name and "attention." not in name:
                new[name] = change(tensor, 0 if transposed else 1, False)
    return (new, {**config, key: config[key] + more}) if touched else None


def pad(tensor: torch.Tensor, axis: int, bias: bool, count: int = 3) -> torch.Tensor:
    shape = list(tensor.shape)
    shape[axis] = count
    return torch.cat([tensor, torch.zeros(shape, dtype=tensor.dtype)], dim=axis)


def conversions(state: State, config: dict[str, Any], rng: np.random.Generator) -> Iterator[Mutation]:
    """Conversions that keep the function, as far as the family has them."""
    yield Mutation("the same", dict(state), config)
    padded = resized(state, config, pad, 3)
    if padded is not None:
        yield Mutation("MLP padded with zero units", *padded)
        dead = dict(state)
        for name, tensor in state.items():
            for readers, writer in UNITS:
                if f"{writer}.weight" in name and "attention." not in name:
                    dead[name] = tensor.clone()
                    axis = 0 if readers == ("mlp.c_fc",) else 1
                    dead[name].index_fill_(axis, torch.tensor([1, 4]), 0.0)
        kept = torch.tensor(
            [i for i in range(config[next(k for k in SIZES if isinstance(config.get(k), int))]) if i not in (1, 4)]
        )
        pruned = resized(dead, config, lambda t, axis, bias: t.index_select(axis, kept), -2)
        assert pruned is not None
        yield Mutation("dead units pruned", *pruned)
    yield from identity_block(state, config)
    yield from retyped(state, config)


DEPTHS = ("num_hidden_layers", "n_layer", "num_layers")
OUTPUTS = ("o_proj", "down_proj", "c_proj", "out_proj", "fc2", "fc_out", "dense_4h_to_h", "attention.dense",
           "self_attention.dense", "self_attn.dense", "experts.down_proj", "down_proj_bias", "w2")  # fmt: skip


def identity_block(state: State, config: dict[str, Any]) -> Iterator[Mutation]:
    """A block that writes nothing, after the first one."""
    key = next((key for key in DEPTHS if isinstance(config.get(key), int)), None)
    places = {(m.group(1) or "", m.group(2)) for name in state if (m := re.match(r"(.*?\.)?(layers|h)\.\d+\.", name))}
    fixed = config.get("layer_types") or config.get("block_types") or config.get("do_layer_norm_before") is False
    if key is None or len(places) != 1 or fixed:
        return
    base, word = places.pop()
    new: State = {}
    for name, tensor in state.items():
        found = re.match(rf"{re.escape(base)}{word}\.(\d+)\.(.*)", name)
        if found is None:
            new[name] = tensor
            continue
        number, rest = int(found.group(1)), found.group(2)
        new[f"{base}{word}.{number + (number > 0)}.{rest}"] = tensor
        if number == 0:
            silent = any(f"{module}." in f"{rest}." for module in OUTPUTS)
            new[f"{base}{word}.1.{rest}"] = torch.zeros_like(tensor) if silent else tensor.clone()
    more: dict[str, Any] = {key: config[key] + 1}
    if config.get("first_k_dense_replace"):
        more["first_k_dense_replace"] = config["first_k_dense_replace"] + 1
    if "mlp_only_layers" in config:
        more["mlp_only_layers"] = [layer + (layer > 0) for layer in config["mlp_only_layers"]]
    yield Mutation("identity block inserted", new, {**config, **more})


def retyped(state: State, config: dict[str, Any]) -> Iterator[Mutation]:
    """Conversions to Llama, and a dense MLP made into four equal experts."""
    kind = config["model_type"]
    causal = config["architectures"][0].endswith("ForCausalLM")
    plain = {"model_type": "llama", "architectures": ["LlamaForCausalLM"]}
    if not causal:
        return
    if kind in ("mistral", "qwen2", "phi3"):
        dropped = ("sliding_window", "layer_types", "use_sliding_window", "max_window_layers", "auto_map")
        other = {key: value for key, value in config.items() if key not in dropped} | plain
        own, new = dict(config, sliding_window=None), dict(state)
        if kind == "qwen2":
            other["attention_bias"] = True
            for name in [name for name in state if name.endswith("o_proj.weight")]:
                new[name.replace("weight", "bias")] = torch.zeros(len(state[name]), dtype=torch.float64)
        if kind == "phi3":
            rope = {**config["rope_parameters"], "partial_rotary_factor": 1.0}
            own, other = dict(own, rope_parameters=rope), dict(other, rope_parameters=rope)
            heads, groups, a = (config[key] for key in ("num_attention_heads", "num_key_value_heads", "head_dim"))
            for name in list(new):
                if "qkv_proj" in name:
                    parts = new.pop(name).split([heads * a, groups * a, groups * a])
                    new |= {name.replace("qkv", letter): part for letter, part in zip("qkv", parts)}
                if "gate_up_proj" in name:
                    gate, up = new.pop(name).chunk(2)
                    new |= {name.replace("gate_up", "gate"): gate, name.replace("gate_up", "up"): up}
        yield Mutation(f"{kind} to llama", new, other | {"_original": own})
    if kind == "mistral":
        new = {}
        for name, tensor in state.items():
            found = re.match(r"(.*)mlp\.(gate|up|down)_proj\.weight", name)
            if found is None:
                new[name] = tensor
                continue
            short = {"gate": "w1", "up": "w3", "down": "w2"}[found.group(2)]
            base = f"{found.group(1)}block_sparse_moe."
            new |= {f"{base}experts.{e}.{short}.weight": tensor.clone() for e in range(4)}
            new[f"{base}gate.weight"] = torch.randn((4, config["hidden_size"]), dtype=torch.float64)
        moe = {"model_type": "mixtral", "architectures": ["MixtralForCausalLM"], "num_local_experts": 4,
               "num_experts_per_tok": 2}  # fmt: skip
        yield Mutation("dense MLP to four equal experts", new, {**config, **moe})


# Judging


def named(text: str, touched: tuple[str, ...]) -> bool:
    """Whether the headline names one of the tensors that were changed."""
    return any(name in text for name in touched)


def judge(mutation: Mutation, folder: Path, base: Path, family: str, counts: Counter[str], errors: list[str]) -> None:
    own = mutation.config.pop("_original", None)
    first = base
    if own is not None:
        first = folder.parent / f"{folder.name}-original"
        write(first, load_file(base / "model.safetensors"), own)
    write(folder, mutation.state, mutation.config)
    title = f"{family} {mutation.config['architectures'][0]} | {mutation.name}"
    try:
        truth = gap(outputs(first, family), outputs(folder, family))
    except Exception as error:  # what transformers cannot run has no truth
        counts["not run by transformers"] += 1
        print(f"   no truth: {title}: {str(error)[:90]}")
        return
    try:
        one, other = open_model(first), open_model(folder)
        found = compare(one, other)
        prints = fingerprint(one).digest == fingerprint(other).digest
    except InputError as error:
        counts["refused"] += 1
        errors.append(f"REFUSED {title}: {error}")
        return
    if found.same_function is not True and truth < SAME:
        # An expert that was not chosen or a unit that was never on: a second look at more inputs.
        truth = gap(*(outputs(place, family, more=60) for place in (first, folder)))
    verdict = {True: "same", False: "different", None: "undecided"}[found.same_function]
    is_same = True if truth < SAME else False if truth > DIFFERENT else None
    counts[f"truth {'same' if is_same else 'different' if is_same is False else 'between'}, verdict {verdict}"] += 1
    if is_same is not None and found.same_function is not None and found.same_function is not is_same:
        errors.append(f"WRONG {verdict}, outputs differ by {truth:.1e}: {title}: {found.reason}")
    if is_same is False and prints:
        errors.append(f"BLIND fingerprint, outputs differ by {truth:.1e}: {title}")
    if is_same is not None and found.same_function is None:
        errors.append(f"undecided ({'same' if is_same else 'different'}): {title}: {found.reason}")
    if found.same_function is False and is_same is False and mutation.touched:
        counts["headlines"] += 1
        if not named(str(found).splitlines()[0], mutation.touched):
            counts["headlines that name another tensor"] += 1
            errors.append(f"HEADLINE {title}: {str(found).splitlines()[0]}")


def run(
    family: str, seed: int, count: int, root: Path, counts: Counter[str], errors: list[str], first_only: bool
) -> None:
    for number, cls in enumerate(classes_of(family)):
        if first_only and number:
            break
        rng = np.random.default_rng([seed, number, sum(map(ord, family))])
        base = root / f"{family}-{number}"
        try:
            make(cls, family, seed + number, base)
            state, config = load_file(base / "model.safetensors"), json.loads((base / "config.json").read_text())
            outputs(base, family)
            one = open_model(base)
        except InputError as error:
            counts["classes refused"] += 1
            print(f"   refused: {cls.__name__}: {error}")
            continue
        except Exception as error:  # classes that need other inputs
            counts["classes not run"] += 1
            print(f"   not run: {cls.__name__}: {str(error)[:90]}")
            continue
        counts["classes"] += 1
        moved = root / f"{family}-{number}-moved"
        try:
            write_model(teleport(one, seed), moved)
        except WriteError as error:
            errors.append(f"WRITE {cls.__name__}: {error}")
            continue
        mutations = [*tensor_mutations(state, config, rng, count if number == 0 else max(3, count // 3))]
        apart = [
            n
            for n in state
            if n.startswith(
                ("score", "classifier", "qa_", "cls.", "multiple", "decoder.0", "lm_head", "classification")
            )
        ]
        mutations += [Mutation(f"zeroed: {n}", {**state, n: torch.zeros_like(state[n])}, config, (n,)) for n in apart]
        mutations += [*swap_mutations(state, config, rng), *conversions(state, config, rng)]
        mutations.append(Mutation("moved along its fiber", load_file(moved / "model.safetensors"), config))
        for index, mutation in enumerate(mutations):
            folder = root / f"case-{index}"
            judge(mutation, folder, base, family, counts, errors)
            for path in (folder, root / f"case-{index}-original"):
                shutil.rmtree(path, ignore_errors=True)


def run_all(families: list[str], seed: int, count: int, first_only: bool = False) -> tuple[Counter[str], list[str]]:
    """All mutations of the given families: counts of verdicts by truth, and one line per error or open verdict."""
    logging.disable(logging.WARNING)
    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    counts: Counter[str] = Counter()
    errors: list[str] = []
    for family in families:
        before = len(errors)
        with tempfile.TemporaryDirectory() as folder:
            run(family, seed, count, Path(folder), counts, errors, first_only)
        print(f"{family}: done", flush=True)
        for line in errors[before:]:
            print("  ", line, flush=True)
    return counts, errors


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("families", nargs="*")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--per-model", type=int, default=12)
    parser.add_argument("--first-only", action="store_true", help="the class of the reference alone")
    given = parser.parse_args()
    print(f"torch {torch.__version__}, transformers {transformers.__version__}, seed {given.seed}", flush=True)
    counts, errors = run_all(given.families or list(FAMILIES), given.seed, given.per_model, given.first_only)
    print(json.dumps(dict(sorted(counts.items())), indent=1))
    return 1 if any(not line.startswith("undecided") for line in errors) else 0


if __name__ == "__main__":
    sys.exit(main())
