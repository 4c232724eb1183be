"""Merging: aligned copies average to themselves, functions are kept, folders load, adapters add up exactly."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from attngeom.cli.app import run
from attngeom.errors import InputError
from attngeom.models import Model, align, compare, forward, merge, open_model, teleport, write_merge
from attngeom.models.adapter_merging import merge_adapters, write_merged_adapter
from attngeom.models.adapters import open_adapter
from attngeom.models.merging import combine
from attngeom.models.orbits import PARTS
from attngeom.models.samples import GPT2, LLAMA, random_model
from tests.effort import choose
from tests.models.cases import FAMILIES, outputs, reference, relative, state_of

IDS = {"input_ids": np.arange(12)}


def noisy(model: Model, size: float, seed: int) -> Model:
    rng = np.random.default_rng(seed)
    return open_model({n: w * (1 + size * rng.normal(size=w.shape)) for n, w in state_of(model).items()}, model.config)


def gap(one: Model, other: Model) -> float:
    left, right = forward(one, IDS), forward(other, IDS)
    return float(np.abs(left - right).max() / np.abs(left).max())


@pytest.mark.parametrize("config", [LLAMA, GPT2], ids=["llama", "gpt2"])
@pytest.mark.parametrize("method", ["linear", "spherical"])
@pytest.mark.parametrize("parts", [PARTS, (*PARTS, "residual")], ids=["layers", "stream"])
def test_a_disguised_copy_averages_to_the_model(config, method, parts):
    one = random_model(config, 1)
    copy = teleport(one, 3, parts=parts).moved()
    assert gap(one, merge([one, copy], method=method).moved()) < 1e-9
    plain = merge([one, copy], method=method, aligned=False).moved()
    assert gap(one, plain) > 0.05


@pytest.mark.parametrize("family", ["llama", "qwen3", "gpt2", "t5", "mixtral", "deepseek_v3"])
def test_families(family):
    one = reference(family)
    assert compare(one, merge([one, teleport(one, 2).moved()]).moved(), level="rounding").same_function


@pytest.mark.parametrize("family", choose(["bert", "gpt_neox", "minimax", "qwen3_next", "whisper"], FAMILIES))
def test_a_disguised_sibling_averages_as_it_does_undisguised(family):
    """The average is that of the weights as they were, far nearer than either model is to it."""
    one, rng = reference(family), np.random.default_rng(7)
    state = {name: w * (1 + 0.01 * rng.normal(size=w.shape)) for name, w in state_of(one).items()}
    sibling = open_model(state | {copy: state[name] for copy, name in one.copied()}, one.config)
    average = outputs(family, merge([one, sibling], aligned=False).moved())
    away = relative(outputs(family, sibling), average)
    for other in (sibling, teleport(sibling, 3).moved()):
        assert relative(outputs(family, merge([one, other]).moved()), average) < away / 10


@pytest.mark.parametrize(
    "family", ["llama", "qwen3", "gpt2", "opt", "t5", "mixtral", "deepseek_v3", "nemotron", "falcon"]
)
def test_aligned_strangers_keep_their_sizes(family):
    """Least squares of one side alone made rows of the other a hundred times as long; equal models meet exactly."""
    one, rng = reference(family), np.random.default_rng(5)
    state = {name: rng.permuted(w, axis=-1) if w.ndim > 1 else w for name, w in state_of(one).items()}
    state |= {copy: state[name] for copy, name in one.copied()}
    stranger = open_model(state, one.config)
    found, back = align(one, stranger).moved(), align(one, teleport(one, 3).moved()).moved()
    assert relative(outputs(family, found), outputs(family, stranger)) < 1e-11
    for name, w in state_of(one).items():
        if w.ndim > 1 and name in found.tensors:
            assert 0.7 < np.linalg.norm(found.tensors.raw(name)) / np.linalg.norm(state[name]) < 1.5, name
            assert relative(back.tensors.raw(name), w) < 1e-12, name


def test_task_arithmetic_adds_what_was_learned():
    base = random_model(LLAMA, 1)
    one, other = noisy(base, 0.01, 1), noisy(base, 0.01, 2)
    moved = [teleport(model, k).moved() for k, model in enumerate((one, other))]
    found = state_of(merge(moved, [1.0, 0.5], method="task", base=base).moved())
    states = [state_of(model) for model in (base, one, other)]
    for name, w in found.items():
        wanted = states[0][name] + (states[1][name] - states[0][name]) + 0.5 * (states[2][name] - states[0][name])
        assert np.abs(w - wanted).max() < 0.1 * np.abs(wanted - states[0][name]).max() + 0.05 * np.abs(wanted).max()


def test_arcs_keep_sizes_and_lines_stay_lines():
    one, other = np.array([3.0, 0.0]), np.array([0.0, 3.0])
    assert np.linalg.norm(combine([one, other], [0.25, 0.75], "spherical")) == pytest.approx(3.0)
    assert combine([one, 2 * one], [0.5, 0.5], "spherical").tolist() == [4.5, 0.0]
    assert combine([one, 0 * one], [0.5, 0.5], "spherical").tolist() == [1.5, 0.0]


def save(model: Model, folder: Path) -> Path:
    folder.mkdir()
    arrays = {n: np.ascontiguousarray(model.tensors.raw(n), dtype=np.float32) for n in model.tensors}
    save_file(arrays, folder / "model.safetensors")
    (folder / "config.json").write_text(json.dumps(dict(model.config)))
    return folder


def test_a_folder_is_written_that_loads(tmp_path, capsys):
    base = random_model(LLAMA, 1)
    a = save(base, tmp_path / "a")
    b = save(teleport(noisy(base, 0.01, 3), 5, parts=(*PARTS, "residual")).moved(), tmp_path / "b")
    assert run(["model", "merge", str(a), str(b), "--out", str(tmp_path / "c"), "--weights", "3,1", "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert record["weights"] == [0.75, 0.25] and record["inputs"][1]["scope"] == "model"
    assert record["inputs"][1]["worst_mismatch"] <= record["inputs"][1]["allowed"]
    assert record["outputs"] == "finite at random inputs"
    assert gap(base, open_model(tmp_path / "c")) < 0.05
    assert {p.name for p in (tmp_path / "c").iterdir()} == {"config.json", "merge.json", "model.safetensors"}
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]


def test_three_models_in_memory_and_on_disk_agree(tmp_path):
    base = random_model(LLAMA, 1)
    models = [noisy(base, 0.01, k) for k in range(3)]
    write_merge(models, tmp_path / "m")
    one, other = state_of(merge(models).moved()), load_file(tmp_path / "m" / "model.safetensors")
    assert max(np.abs(one[name] - other[name]).max() for name in one) < 1e-5


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["a"], "at least two"), (["a", "b", "--weights", "1"], "weights 1 given for 2 models"),
        (["a", "b", "--weights", "1,nan"], "weight nan given; finite"),
        (["a", "b", "--weights", "x,1"], "numbers are required"), (["a", "b", "--weights", "1,-1"], "positive finite"),
        (["a", "b", "--method", "task"], "--base go together"), (["a", "b", "b", "--method", "spherical"], "take two"),
        (["a", "other"], "different kinds"), (["a", "lora"], "LoRA adapter and others are models"),
        (["a", "b", "--rank", "3"], "for LoRA adapters"), (["a", "nan"], "NaN"), (["a", "missing"], "does not exist"),
        (["a", "tied"], "tied has a head tied"), (["tied", "a"], "tied has a head tied"),
        (["a", "b", "--weights", "1e308,1e308"], "positive finite sum"),
    ],
)  # fmt: skip
def test_bad_input_writes_nothing(tmp_path, capsys, arguments, words):
    model = random_model(LLAMA, 1)
    for name in ("a", "b", "nan"):
        save(model, tmp_path / name)
    save(random_model({**LLAMA, "hidden_act": "gelu"}, 1), tmp_path / "other")
    save(random_model({**LLAMA, "tie_word_embeddings": True}, 1), tmp_path / "tied")
    state = load_file(tmp_path / "nan" / "model.safetensors")
    state["lm_head.weight"][0, 0] = np.nan
    save_file(state, tmp_path / "nan" / "model.safetensors")
    adapter(tmp_path / "lora", 2, 0)
    names = [
        str(tmp_path / part) if part.isalpha() and part not in ("task", "spherical") else part for part in arguments
    ]
    assert run(["model", "merge", *names, "--out", str(tmp_path / "out")]) == 2
    error = capsys.readouterr().err.strip()
    assert words in error and len(error.splitlines()) == 1
    assert not (tmp_path / "out").exists() and not [p for p in tmp_path.iterdir() if p.name.startswith(".")]


def adapter(folder: Path, rank: int, seed: int, alpha: float = 4.0, modules: tuple[str, ...] = ("q", "v")) -> Path:
    rng = np.random.default_rng(seed)
    folder.mkdir()
    tensors = {}
    for module in modules:
        tensors[f"base.{module}.lora_A.weight"] = rng.normal(size=(rank, 7)).astype(np.float32)
        tensors[f"base.{module}.lora_B.weight"] = rng.normal(size=(9, rank)).astype(np.float32)
    save_file(tensors, folder / "adapter_model.safetensors")
    (folder / "adapter_config.json").write_text(json.dumps({"peft_type": "LORA", "r": rank, "lora_alpha": alpha}))
    return folder


def change(folder: Path, module: str) -> np.ndarray:
    found = open_adapter(folder)
    up, down = found.factors(module)
    return found.pairs[module].scale * up @ down


def test_adapters_add_up(tmp_path, capsys):
    a, b = adapter(tmp_path / "a", 2, 0), adapter(tmp_path / "b", 3, 1, alpha=2.0, modules=("q", "k"))
    code = run(["model", "merge", str(a), str(b), "--out", str(tmp_path / "c"), "--weights", "1,0.5", "--json"])
    record = json.loads(capsys.readouterr().out)
    assert code == 0 and record["worst_error"] == 0.0 and record["rank"] == 5
    wanted = change(a, "base.q") + 0.5 * change(b, "base.q")
    assert np.abs(change(tmp_path / "c", "base.q") - wanted).max() < 1e-5
    assert np.abs(change(tmp_path / "c", "base.v") - change(a, "base.v")).max() < 1e-5
    assert np.abs(change(tmp_path / "c", "base.k") - 0.5 * change(b, "base.k")).max() < 1e-5


def test_ranks_of_modules_are_told_by_their_names_in_the_base(tmp_path):
    """Loaders look for keys at the end of the name that a module has in the base, without their own wrapper."""
    for name, rank, modules in (("a", 2, ("q", "v")), ("b", 3, ("q",))):
        adapter(tmp_path / name, rank, rank, modules=tuple(f"model.layers.0.{m}" for m in modules))
        state = load_file(tmp_path / name / "adapter_model.safetensors")
        state = {f"base_model.model.{key.removeprefix('base.')}": w for key, w in state.items()}
        save_file(state, tmp_path / name / "adapter_model.safetensors")
    opened = [open_adapter(tmp_path / name) for name in ("a", "b")]
    write_merged_adapter(opened, merge_adapters(opened), tmp_path / "c")
    config = json.loads((tmp_path / "c" / "adapter_config.json").read_text())
    assert config["r"] == 5 and config["rank_pattern"] == config["alpha_pattern"] == {"model.layers.0.v": 2}
    for module in ("q", "v"):
        name = f"base_model.model.model.layers.0.{module}"
        whole = sum(change(tmp_path / part, name) for part in "ab" if part == "a" or module == "q")
        assert np.abs(change(tmp_path / "c", name) - whole).max() < 1e-5


def test_the_error_of_a_cut_is_exact(tmp_path):
    a, b = adapter(tmp_path / "a", 3, 0), adapter(tmp_path / "b", 3, 1)
    (pair, *_) = merge_adapters([open_adapter(a), open_adapter(b)], rank=2)
    whole = change(a, pair.module) + change(b, pair.module)
    values = np.linalg.svd(whole, compute_uv=False)
    assert pair.error == pytest.approx(np.linalg.norm(values[2:]) / np.linalg.norm(values))
    gap = np.linalg.norm(pair.up @ pair.down - whole) / np.linalg.norm(whole)
    assert gap == pytest.approx(pair.error)


def test_adapters_of_other_bases_and_shapes_are_refused(tmp_path):
    a, b = adapter(tmp_path / "a", 2, 0), adapter(tmp_path / "b", 2, 1)
    config = json.loads((a / "adapter_config.json").read_text())
    (a / "adapter_config.json").write_text(json.dumps({**config, "base_model_name_or_path": "x"}))
    (b / "adapter_config.json").write_text(json.dumps({**config, "base_model_name_or_path": "y"}))
    with pytest.raises(InputError, match="different bases"):
        merge_adapters([open_adapter(a), open_adapter(b)])
    with pytest.raises(InputError, match="positive rank"):
        merge_adapters([open_adapter(a)], rank=0)
