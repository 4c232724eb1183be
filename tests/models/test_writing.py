"""Folders are written whole, checked before they get their name, and never in place."""

from __future__ import annotations

import contextlib
import json
import logging
import shutil
import sys
import warnings
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from attngeom.cli.app import run
from attngeom.errors import InputError
from attngeom.interop import export_state
from attngeom.models import align, canonicalize, compare, live, open_model, teleport, write_model
from attngeom.models import writing as module
from attngeom.models.rewriting import Teleported
from attngeom.models.writing import WriteError
from tests.effort import choose
from tests.models.cases import DATA, FAMILIES, expected, outputs, reference, relative


# The other half of the families in every run: compact folders are written for the first one.
@pytest.mark.parametrize("family", choose(FAMILIES[1::2], FAMILIES))
def test_written_folders_compute_the_same(family: str, tmp_path: Path) -> None:
    model = reference(family)
    done = write_model(teleport(model, 3), tmp_path / "moved")
    assert done.dtype == "float32" and done.check.same_function is True
    moved = open_model(tmp_path / "moved")
    assert relative(outputs(family, moved), expected(family)) < 1e-5
    assert sorted(moved.tensors) == sorted(model.tensors)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["moved"]


@pytest.mark.parametrize("family", ["vit", "whisper"])
def test_rotated_front_ends_are_written(family: str, tmp_path: Path) -> None:
    model = reference(family)
    done = write_model(teleport(model, 3, parts=("residual",)), tmp_path / "rotated")
    assert done.check.same_function is True
    assert compare(model, open_model(tmp_path / "rotated"), scope="model").same_function is True


def test_kept_types_and_copied_files(tmp_path: Path) -> None:
    source = tmp_path / "source"
    shutil.copytree(DATA / "llama", source)
    (source / "tokenizer.json").write_text("{}")
    (source / "pytorch_model.bin").write_bytes(b"not copied")
    (tmp_path / "secret.txt").write_text("elsewhere")
    (source / "vocab.txt").symlink_to(tmp_path / "secret.txt")
    kept = write_model(canonicalize(open_model(source)), tmp_path / "kept", "keep")
    assert kept.dtype == "float16"
    assert (tmp_path / "kept" / "tokenizer.json").read_text() == "{}"
    assert not (tmp_path / "kept" / "pytorch_model.bin").exists() and not (tmp_path / "kept" / "vocab.txt").exists()
    wide = write_model(canonicalize(open_model(source)), tmp_path / "wide")
    config = json.loads((tmp_path / "wide" / "config.json").read_text())
    assert config["dtype"] == "float32" and wide.dtype == "float32"
    assert json.loads((tmp_path / "kept" / "config.json").read_text()) == json.loads(
        (source / "config.json").read_text()
    )


def test_doubles_stay_doubles(tmp_path: Path) -> None:
    source = tmp_path / "source"
    shutil.copytree(DATA / "qwen3", source)
    save_file(
        {n: t.astype(np.float64) for n, t in load_file(source / "model.safetensors").items()},
        source / "model.safetensors",
    )
    write_model(canonicalize(open_model(source)), tmp_path / "form")
    again = write_model(canonicalize(open_model(tmp_path / "form")), tmp_path / "again")
    assert again.dtype == "float64"
    one, two = (load_file(tmp_path / name / "model.safetensors") for name in ("form", "again"))
    assert max(relative(two[name], one[name]) for name in one) < 1e-12


def test_shards(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SHARD_BYTES", 1000)
    write_model(teleport(reference("llama"), 1), tmp_path / "moved")
    assert len(list((tmp_path / "moved").glob("model-*.safetensors"))) == 3
    assert compare(reference("llama"), open_model(tmp_path / "moved")).same_function is True


def test_places_are_checked(tmp_path: Path) -> None:
    rewrite = teleport(reference("llama"), 1)
    with pytest.raises(InputError, match="exists already"):
        write_model(rewrite, tmp_path)
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    with pytest.raises(InputError, match="exists already"):
        write_model(rewrite, tmp_path / "link")
    with pytest.raises(InputError, match="not a folder"):
        write_model(rewrite, tmp_path / "a" / "b")
    with pytest.raises(InputError, match="dtype"):
        write_model(rewrite, tmp_path / "b", "int8")  # type: ignore[arg-type]


class Spoiled(Teleported):
    """A rewrite with a mistake: one layer is scaled."""

    def layer_tensors(self, layer: int) -> dict[str, np.ndarray]:
        return {
            name: tensor * (1.01 if "o_proj" in name else 1.0) for name, tensor in super().layer_tensors(layer).items()
        }


def test_wrong_results_are_not_written(tmp_path: Path) -> None:
    with pytest.raises(WriteError, match="differs"):
        write_model(Spoiled(reference("llama"), 1), tmp_path / "wrong")
    assert list(tmp_path.iterdir()) == []


def test_overflow_is_refused() -> None:
    with pytest.raises(InputError, match="overflows"):
        module._rounded(np.array([1e6]), "F16", "w")


def test_align_needs_the_same_kind() -> None:
    with pytest.raises(InputError, match="kinds"):
        align(reference("llama"), reference("mistral"))


def test_states_come_back_in_their_types_and_a_copy_of_the_tied_embedding_stays_one() -> None:
    raw = {name: np.asarray(reference("gpt2").tensors.raw(name)) for name in reference("gpt2").tensors}
    state = {**raw, "lm_head.weight": raw["transformer.wte.weight"].copy(), "masked": np.array(-np.inf)}
    model = open_model(state, reference("gpt2").config)
    back = export_state(canonicalize(model, scope="model"), state)
    assert {name: (x.dtype, x.shape) for name, x in back.items()} == {n: (x.dtype, x.shape) for n, x in state.items()}
    assert not np.array_equal(back["lm_head.weight"], state["lm_head.weight"])
    assert np.array_equal(back["lm_head.weight"], back["transformer.wte.weight"])
    assert relative(outputs("gpt2", open_model(back, model.config)), expected("gpt2")) < 1e-2
    with pytest.raises(InputError, match="a state without"):
        export_state(teleport(model, 3), {})


@pytest.mark.parametrize("family", ["vit", "gpt_neox", "deepseek_v3", "mixtral"])
def test_states_of_live_modules_come_back_in_their_names(family: str) -> None:
    raw = {name: np.asarray(reference(family).tensors.raw(name)) for name in reference(family).tensors}
    state = {name.replace("embed_out.", "lm_head."): x for name, x in raw.items() if ".experts." not in name}
    state = {name.replace("vit.encoder.layer.", "vit.layers."): x for name, x in state.items()}
    state = {n.replace("intermediate.dense", "mlp.fc1"): x for n, x in state.items()}
    state = {n.replace("block_sparse_moe.", "mlp."): x for n, x in state.items()}
    stored = {"deepseek_v3": ((1,), "mlp", ("gate_proj", "up_proj", "down_proj"))}
    stored["mixtral"] = ((0, 1), "block_sparse_moe", ("w1", "w3", "w2"))
    layers, place, (gate, up, down) = stored.get(family, ((), "", ("",) * 3))
    for layer in layers:
        base, live = f"model.layers.{layer}.{place}.experts.", f"model.layers.{layer}.mlp.experts."
        gates = [[raw[f"{base}{e}.{part}.weight"] for part in (gate, up)] for e in range(4)]
        state[f"{live}gate_up_proj"] = np.stack([np.concatenate(pair) for pair in gates])
        state[f"{live}down_proj"] = np.stack([raw[f"{base}{e}.{down}.weight"] for e in range(4)])
    model = open_model(state, reference(family).config)
    back = export_state(teleport(model, 2), state)
    assert {n: (x.dtype, x.shape) for n, x in back.items()} == {n: (x.dtype, x.shape) for n, x in state.items()}
    assert sum(not np.array_equal(back[name], state[name]) for name in state) > len(state) / 2
    assert relative(outputs(family, open_model(back, model.config)), expected(family)) < 1e-2


def test_nothing_depends_on_whether_transformers_is_installed(tmp_path, monkeypatch, capsys):
    """A live check is made if it is asked for, and then transformers is required."""
    source = write_model(teleport(reference("llama"), 1), tmp_path / "model").path
    loaded = []
    answers = []
    for installed in (False, True):
        with monkeypatch.context() as patch:
            patch.setattr(live, "find_spec", lambda name, here=installed: object() if here else None)
            patch.setattr(live, "import_module", lambda name: loaded.append(name))
            assert run(["model", "teleport", str(source), "--out", str(tmp_path / "moved")]) == 0
        answers.append(capsys.readouterr())
        shutil.rmtree(tmp_path / "moved")
    assert answers[0] == answers[1] and not loaded
    assert "check by transformers" in answers[0].out and "not asked for" in answers[0].out
    monkeypatch.setattr(live, "find_spec", lambda name: None)
    assert run(["model", "teleport", str(source), "--out", str(tmp_path / "moved"), "--live-check"]) == 2
    assert "--no-live-check" in capsys.readouterr().err and not (tmp_path / "moved").exists()


def test_live_check_is_told_and_makes_no_noise(tmp_path, monkeypatch, capfd):
    """A stand-in for transformers that writes bars and warnings wherever it can."""
    source = write_model(teleport(reference("llama"), 1), tmp_path / "model").path

    class LlamaForCausalLM:
        @staticmethod
        def from_pretrained(folder, **options):
            print("Loading weights", file=sys.stderr)
            warnings.warn("noise", stacklevel=1)
            logging.getLogger("transformers").error("noise")
            raise InputError(folder)

    outputs = iter([np.ones((1, 2)), np.ones((1, 2)) + 1e-7])

    def loud_outputs(cls, folder, model):
        with contextlib.suppress(InputError):
            cls.from_pretrained(str(folder))
        return next(outputs)

    library = SimpleNamespace(PreTrainedModel=object, LlamaForCausalLM=LlamaForCausalLM)
    monkeypatch.setattr(live, "find_spec", lambda name: object())
    monkeypatch.setattr(live, "import_module", lambda name: library)
    monkeypatch.setattr(live, "_outputs", loud_outputs)
    assert run(["model", "teleport", str(source), "--out", str(tmp_path / "moved"), "--live-check"]) == 0
    printed = capfd.readouterr()
    assert "logits differ by 1.0e-07" in printed.out and not printed.err
