"""GGUF files: made as converters make them, read back, compared with the folder, faults planted and named."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from attngeom.cli.app import run
from attngeom.errors import AttnGeomError, InputError
from attngeom.models import compare_gguf, open_gguf, open_model
from attngeom.models.gguf import CONVERSIONS
from attngeom.models.reading import BLOCK_TYPES
from tests.models import kquants
from tests.models.cases import DATA, reference, relative, state_of

gguf = pytest.importorskip("gguf", reason="the package gguf writes the files of these tests")


def permuted(rows: np.ndarray, heads: int) -> np.ndarray:
    """Rows f and f + a/2 of every head side by side, as converters of Llama store them."""
    a = rows.shape[0] // heads
    order = np.arange(rows.shape[0]).reshape(heads, 2, a // 2).transpose(0, 2, 1).reshape(-1)
    return rows[order]


def convert(family: str, path: Path, kind: str = "F16", permute: bool = True, change=None) -> Path:
    """Write a reference checkpoint as a GGUF file, straight from the rules of converters."""
    model, rules = reference(family), CONVERSIONS[family]
    names = {value: key for key, value in rules.names.items()}
    writer = gguf.GGUFWriter(str(path), rules.architecture)
    prefix, after = rules.layer.split("{}")
    for name, tensor in state_of(model).items():
        if name == "lm_head.weight" and model.spec.head.tied:
            continue
        module, _, part = name.rpartition(".")
        layer = ""
        if name.startswith(prefix) and name[len(prefix)].isdigit():
            number, _, module = module[len(prefix) :].partition(after)
            layer = f"blk.{number}."
        if rules.pairs and permute and module.endswith(("q_proj", "k_proj")):
            heads = model.config["num_attention_heads" if "q_proj" in module else "num_key_value_heads"]
            tensor = permuted(tensor, heads)
        if rules.offset and "norm" in module:
            tensor = tensor + rules.offset
        if rules.transposed and layer and tensor.ndim == 2:
            tensor = np.ascontiguousarray(tensor.T)
        stored = f"{layer}{names[module]}.{part}"
        if change is not None:
            tensor = change(stored, tensor)
        if kind in BLOCK_TYPES and tensor.ndim == 2 and tensor.shape[1] % 32 == 0:
            packed = gguf.quants.quantize(tensor.astype(np.float32), gguf.GGMLQuantizationType[kind])
            writer.add_tensor(stored, packed, raw_dtype=gguf.GGMLQuantizationType[kind])
        else:
            writer.add_tensor(stored, tensor.astype(np.float32 if tensor.ndim == 1 or kind != "F16" else np.float16))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


@pytest.mark.parametrize("family", CONVERSIONS)
def test_a_converted_file_computes_the_same(family: str, tmp_path: Path) -> None:
    found = compare_gguf(reference(family), convert(family, tmp_path / "model.gguf"))
    assert found.same_function is True, str(found)


@pytest.mark.parametrize("family", ["llama", "mistral"])
def test_rows_that_were_not_permuted_are_named(family: str, tmp_path: Path) -> None:
    found = compare_gguf(reference(family), convert(family, tmp_path / "model.gguf", permute=False))
    assert found.same_function is False and "did not change their order" in found.reason
    assert all("q_proj" in name or "k_proj" in name for name in found.blame.tensors)


def test_a_changed_tensor_is_another_function(tmp_path: Path) -> None:
    def change(name: str, tensor: np.ndarray) -> np.ndarray:
        return tensor * 1.5 if name == "blk.1.ffn_down.weight" else tensor

    found = compare_gguf(reference("qwen2"), convert("qwen2", tmp_path / "model.gguf", change=change))
    assert found.same_function is False and "model.layers.1.mlp.down_proj.weight" in found.reason


def test_quantised_files_are_the_same_within_their_rounding(tmp_path: Path) -> None:
    """Widths of 32 are whole blocks; a head that is exchanged is seen all the same."""
    found = compare_gguf(reference("qwen3"), convert("qwen3", tmp_path / "a.gguf", "Q8_0"))
    assert found.same_function is True and found.standing == "estimate"

    def change(name: str, tensor: np.ndarray) -> np.ndarray:
        return tensor[::-1].copy() if name == "blk.0.attn_v.weight" else tensor

    other = compare_gguf(reference("qwen3"), convert("qwen3", tmp_path / "b.gguf", "Q8_0", change=change))
    assert other.same_function is False


@pytest.mark.parametrize("kind", BLOCK_TYPES)
def test_the_roundoff_of_blocks_is_measured(kind: str) -> None:
    """0.42 is the mean error of a float type, as a share of its roundoff."""
    weights = np.random.default_rng(5).normal(size=(64, 1024)).astype(np.float32)
    number = gguf.GGMLQuantizationType[kind]
    packed = kquants.quantise(weights, kind) if kind.endswith("_K") else gguf.quants.quantize(weights, number)
    back = gguf.quants.dequantize(packed, number)
    error = float(np.sqrt(((back - weights) ** 2).mean() / (weights**2).mean()))
    assert error / 0.42 == pytest.approx(BLOCK_TYPES[kind], rel=0.05)


@pytest.mark.parametrize("kind", ["Q4_K", "Q5_K", "Q6_K"])
def test_k_quants_are_read_as_the_package_reads_them(kind: str, tmp_path: Path) -> None:
    """A layer of width 256, one block a row, its query and key rows pair by pair; bit for bit, and compared."""
    rng, number = np.random.default_rng(7), gguf.GGMLQuantizationType[kind]
    config = {**reference("llama").config, "num_hidden_layers": 1, "hidden_size": 256, "head_dim": 64,
              "intermediate_size": 256, "num_attention_heads": 4, "num_key_value_heads": 2}  # fmt: skip
    rows = {"self_attn.q_proj": 256, "self_attn.k_proj": 128, "self_attn.v_proj": 128, "self_attn.o_proj": 256}
    rows |= dict.fromkeys(("mlp.gate_proj", "mlp.up_proj", "mlp.down_proj"), 256)
    state = {f"model.layers.0.{name}.weight": 0.06 * rng.normal(size=(count, 256)) for name, count in rows.items()}
    norms = ("model.layers.0.input_layernorm", "model.layers.0.post_attention_layernorm", "model.norm")
    state |= {f"{name}.weight": rng.uniform(0.5, 2, 256) for name in norms}
    state |= {f"{name}.weight": rng.normal(size=(23, 256)) for name in ("model.embed_tokens", "lm_head")}
    state = {name: tensor.astype(np.float32) for name, tensor in state.items()}
    names = {value: key for key, value in CONVERSIONS["llama"].names.items()}

    def write(path: Path, spoilt: str = "", permute: bool = True, factor: float = 1.0) -> dict[str, np.ndarray]:
        writer, means = gguf.GGUFWriter(str(path), "llama"), {}
        for name, tensor in state.items():
            module = name.removesuffix(".weight").removeprefix("model.layers.0.")
            stored = f"{'blk.0.' if 'layers' in name else ''}{names[module]}.weight"
            tensor = tensor[::-1] if spoilt and name.endswith(spoilt) else tensor
            heads = {"self_attn.q_proj": 4, "self_attn.k_proj": 2}.get(module, 0)
            tensor = permuted(tensor, heads) if heads and permute else tensor
            if "down_proj" in name:
                tensor = tensor * np.where(np.arange(256) < 64, factor, 1)[:, None].astype(np.float32)
            if tensor.ndim == 2 and "layers" in name:
                packed = kquants.quantise(tensor, kind)
                writer.add_tensor(stored, packed, raw_dtype=number)
                means[name] = gguf.quants.dequantize(packed, number)
                means[name] = means[name][np.argsort(permuted(np.arange(len(tensor)), heads))] if heads else means[name]
            else:
                writer.add_tensor(stored, np.ascontiguousarray(tensor))
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()
        return means

    means = write(tmp_path / "a.gguf")
    model = open_gguf(tmp_path / "a.gguf", config)
    assert model.dtype == kind
    for name, values in means.items():
        assert np.array_equal(model.tensors.raw(name), values), name
        assert relative(values, state[name]) < 0.2
    folder = open_model(state, config)
    assert compare_gguf(folder, tmp_path / "a.gguf").same_function is True
    write(tmp_path / "b.gguf", "v_proj.weight")
    assert compare_gguf(folder, tmp_path / "b.gguf").same_function is False
    write(tmp_path / "c.gguf", permute=False)
    found = compare_gguf(folder, tmp_path / "c.gguf")
    assert found.same_function is False and "did not change their order" in found.reason
    # A quarter of the rows is larger by half: four bits do not explain it, and do not exclude it for certain.
    write(tmp_path / "d.gguf", factor=1.5)
    found = compare_gguf(folder, tmp_path / "d.gguf")
    assert not found.same_function and {name for layer in found.layers for name, _ in layer.wrong} == {
        "model.layers.0.mlp.down_proj.weight"
    }


def test_bad_files_are_refused_in_one_line(tmp_path: Path) -> None:
    model = reference("llama")
    whole = convert("llama", tmp_path / "model.gguf")
    cut = tmp_path / "cut.gguf"
    cut.write_bytes(whole.read_bytes()[:900])
    text = tmp_path / "text.gguf"
    text.write_text("no model at all")
    for path in (cut, text, tmp_path / "missing.gguf"):
        with pytest.raises(AttnGeomError) as error:
            open_gguf(path, model.config)
        assert len(str(error.value).splitlines()) == 1
    with pytest.raises(InputError, match="known: llama"):
        open_gguf(whole, {"model_type": "t5"})
    with pytest.raises(InputError, match="architecture"):
        open_gguf(whole, reference("qwen2").config)


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, folder = str(convert("llama", tmp_path / "model.gguf")), str(DATA / "llama")
    assert run(["model", "compare", folder, path, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["same_function"] is True
    assert run(["model", "compare", path, folder]) == 0
    assert run(["model", "compare", path, path]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_one_door(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Beside its config.json a file is a model like any other; what is quantised is read and not written again."""
    path, folder = convert("llama", tmp_path / "model.gguf"), str(DATA / "llama")
    assert run(["compare", folder, str(path)]) == 0 == run(["compare", str(path), folder, "--workers", "2"])
    assert run(["inspect", str(path)]) == 2 and "put config.json" in capsys.readouterr().err
    (tmp_path / "config.json").write_text((DATA / "llama" / "config.json").read_text())
    assert run(["compare", folder, str(tmp_path)]) == 0
    coarse = str(convert("llama", tmp_path / "coarse.gguf", "Q8_0"))
    capsys.readouterr()
    assert run(["dim", str(path)]) == 2 == run(["inspect", str(tmp_path)])
    assert all("give the file itself, not its folder" in line for line in capsys.readouterr().err.splitlines())
    prints = []
    for model in (folder, str(path), coarse):
        assert run(["fingerprint", model, "--json"]) == 0
        prints.append(json.loads(capsys.readouterr().out)["fingerprint"])
    assert prints[0] == prints[1] != prints[2]
    assert run(["inspect", str(path)]) == 0 == run(["compare", str(path), coarse])
    assert run(["canonicalize", str(path), "--out", str(tmp_path / "form")]) == 0
    assert run(["compare", str(tmp_path / "form"), folder]) == 0
    capsys.readouterr()
    for words in (["canonicalize", coarse], ["teleport", coarse], ["model", "merge", coarse, folder]):
        assert run([*words, "--out", str(tmp_path / "none")]) == 2 and not (tmp_path / "none").exists()
        error = capsys.readouterr().err
        assert "quantised weights" in error and len(error) <= 200 + len("attngeom: ") + 1
