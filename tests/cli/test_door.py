"""One door: compare, inspect, canonicalize, teleport and fingerprint see what they were given."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from attngeom.cli.app import run
from attngeom.exact import QQ
from attngeom.interop import write_weights
from attngeom.models import teleport
from attngeom.models.samples import LLAMA, random_model
from attngeom.network import Architecture, random_symmetry, random_weights

WEIGHTS = random_weights(Architecture((3, 2), 2), QQ, seed=0)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    model = random_model(LLAMA, 1)
    for name, source in (("a", model), ("b", teleport(model, 2).moved())):
        (tmp_path / name).mkdir()
        state = {n: np.ascontiguousarray(source.tensors.raw(n), dtype=np.float32) for n in source.tensors}
        save_file(state, tmp_path / name / "model.safetensors")
        (tmp_path / name / "config.json").write_text(json.dumps(dict(LLAMA)))
    write_weights(WEIGHTS, tmp_path / "w.json")
    write_weights(random_symmetry(WEIGHTS.architecture, QQ, seed=1).apply(WEIGHTS), tmp_path / "v.json")
    (tmp_path / "lora").mkdir()
    rng = np.random.default_rng(0)
    pair = {"m.lora_A.weight": rng.normal(size=(2, 5)), "m.lora_B.weight": rng.normal(size=(4, 2))}
    save_file(pair, tmp_path / "lora" / "adapter_model.safetensors")
    about = {"peft_type": "LORA", "r": 2, "lora_alpha": 4, "use_rslora": True}
    (tmp_path / "lora" / "adapter_config.json").write_text(json.dumps(about))
    return tmp_path


def write_shards(source: Path, place: Path) -> None:
    """The same model in two files with an index."""
    place.mkdir()
    state = load_file(source / "model.safetensors")
    homes = {name: f"model-{i % 2}.safetensors" for i, name in enumerate(state)}
    for home in set(homes.values()):
        save_file({name: state[name] for name in state if homes[name] == home}, place / home)
    (place / "model.safetensors.index.json").write_text(json.dumps({"weight_map": homes}))
    (place / "config.json").write_text((source / "config.json").read_text())


def call(capsys, *words: object) -> dict:
    assert run([*map(str, words), "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_models_go_through_the_same_door(folder, capsys):
    assert call(capsys, "compare", folder / "a", folder / "b")["same_function"] is True
    file = folder / "a" / "model.safetensors"
    assert call(capsys, "compare", file, folder / "b")["same_function"] is True
    write_shards(folder / "a", folder / "s")
    index = folder / "s" / "model.safetensors.index.json"
    assert call(capsys, "compare", file, index)["same_function"] is True
    assert call(capsys, "inspect", folder / "a")["family"] == "llama"
    assert call(capsys, "inspect", folder / "a" / "config.json")["family"] == "llama"
    assert call(capsys, "teleport", folder / "a", "--out", folder / "c", "--seed", 3)["check"]["same_function"]
    assert call(capsys, "canonicalize", folder / "a", "--out", folder / "d")["check"]["same_function"]
    prints = [call(capsys, *words, folder / "a") for words in (("fingerprint",), ("model", "fingerprint"))]
    assert prints[0] == prints[1]


def test_idealised_weights_stay_what_they_are(folder, capsys):
    assert call(capsys, "compare", folder / "w.json", folder / "v.json")["same_function"] is True
    one, other = (call(capsys, "fingerprint", folder / name) for name in ("w.json", "v.json"))
    assert one["fingerprint"] == other["fingerprint"] and one["standing"] == "proven"
    write_weights(random_weights(WEIGHTS.architecture, QQ, seed=5), folder / "u.json")
    assert call(capsys, "fingerprint", folder / "u.json")["fingerprint"] != one["fingerprint"]


def test_adapters_are_moved_and_have_fingerprints(folder, capsys):
    before = call(capsys, "fingerprint", folder / "lora")["modules"]
    moved = call(capsys, "teleport", folder / "lora", "--out", folder / "moved", "--seed", 4)
    assert moved["same_change"] is True and moved["seed"] == 4
    tensors = [load_file(folder / name / "adapter_model.safetensors") for name in ("lora", "moved")]
    assert np.abs(tensors[0]["m.lora_A.weight"] - tensors[1]["m.lora_A.weight"]).max() > 0.1
    assert call(capsys, "compare", folder / "lora", folder / "moved")["same_change"] is True
    file = folder / "lora" / "adapter_model.safetensors"
    assert call(capsys, "fingerprint", file)["modules"] == before
    assert call(capsys, "compare", file, folder / "moved")["same_change"] is True
    # An exact symmetry without rounding leaves the fingerprint, one bit elsewhere does not.
    swapped = {
        "m.lora_A.weight": 2 * tensors[0]["m.lora_A.weight"][::-1],
        "m.lora_B.weight": tensors[0]["m.lora_B.weight"][:, ::-1] / 2,
    }
    save_file({n: np.ascontiguousarray(t) for n, t in swapped.items()}, folder / "lora" / "adapter_model.safetensors")
    assert call(capsys, "fingerprint", folder / "lora")["modules"] == before
    swapped["m.lora_A.weight"] = np.ascontiguousarray(np.nextafter(swapped["m.lora_A.weight"], 1e9))
    save_file({n: np.ascontiguousarray(t) for n, t in swapped.items()}, folder / "lora" / "adapter_model.safetensors")
    assert call(capsys, "fingerprint", folder / "lora")["modules"] != before


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["compare", "w.json", "a"], "two of one kind"), (["compare", "x.pt", "a"], "save safetensors"),
        (["inspect", "x.bin"], "save_pretrained"), (["fingerprint", "x.gguf"], "GGUF"),
        (["model", "inspect", "x.gguf"], "GGUF"), (["model", "compare", "pickled", "a"], "save_pretrained"),
        (["model", "align", "lora", "lora", "--out", "n"], "no gauge beside GL"), (["inspect", "empty"], "are missing"),
        (["teleport", "lora", "--out", "n", "--parts", "qk"], "--parts given for a LoRA adapter"),
        (["model", "fingerprint", "w.json"], "leave out the word model"), (["dim", "a"], "attngeom model)"),
        (["inspect", "s/model-1.safetensors"], "give its folder"), (["inspect", "plain.safetensors"], "begin with"),
        (["compare", "lora/adapter_config.json", "a"], "LoRA adapter"), (["model", "inspect", "text"], "give a folder"),
        (["compare", "a", "nowhere"], "does not exist"), (["canonicalize", "a", "--out", "b"], "exists already"),
    ],
)  # fmt: skip
def test_what_is_not_read_is_told_in_one_line(folder, capsys, words, text):
    for name in ("x.pt", "x.bin", "x.gguf"):
        (folder / name).write_bytes(b"PK")
    (folder / "empty").mkdir()
    (folder / "pickled").mkdir()
    (folder / "pickled" / "config.json").write_text(json.dumps(dict(LLAMA)))
    (folder / "pickled" / "pytorch_model.bin").write_bytes(b"PK")
    save_file({"a": np.eye(3)}, folder / "plain.safetensors")
    (folder / "text").write_text("words")
    write_shards(folder / "a", folder / "s")
    names = {path.name for path in folder.iterdir()} | {"n", "nowhere"}
    before = set(folder.iterdir())
    assert run([str(folder / word) if word.split("/")[0] in names else word for word in words]) == 2
    error = capsys.readouterr().err.strip()
    assert text in error and len(error.splitlines()) == 1 and len(error) <= 200
    assert set(folder.iterdir()) == before


def test_long_paths_do_not_cut_off_what_to_do(tmp_path, capsys):
    folder = tmp_path.joinpath(*12 * ["a_folder_with_a_long_name"])
    folder.mkdir(parents=True)
    (folder / "x.bin").write_bytes(b"PK")
    assert run(["inspect", str(folder / "x.bin")]) == 2
    error = capsys.readouterr().err.strip()
    assert "x.bin" in error and error.endswith("save_file(model.state_dict(), FILE)") and len(error) <= 200
