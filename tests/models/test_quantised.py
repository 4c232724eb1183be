"""Quantised safetensors: made as quantisers make them, read back, compared with the folder, faults never missed."""

from __future__ import annotations

import json
import pickle
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from attngeom.cli.app import run
from attngeom.errors import AttnGeomError, InputError
from attngeom.models import compare, open_model
from attngeom.models.reading import SCALED_TYPES
from tests.models.cases import DATA, reference, state_of

NAMES = {"float8_e4m3fn": "F8_E4M3", "bfloat16": "BF16", "float32": "F32", "float16": "F16", "float64": "F64"}
NAMES |= {"int8": "I8", "uint8": "U8", "int32": "I32", "int64": "I64"}
NORMAL_FOUR = np.concatenate([np.linspace(-1, 0, 8) ** 3 / 2 + np.linspace(-1, 0, 8) / 2, np.linspace(0.08, 1, 8)])
NORMAL_FOUR = NORMAL_FOUR.astype(np.float32)
"""A table of sixteen numbers, finer near zero; the file states it."""


def write(path: Path, tensors: dict[str, np.ndarray]) -> None:
    """A safetensors file by its definition: the library for NumPy writes no floats of eight bits."""
    header, place = {}, 0
    for name, array in tensors.items():
        dtype, size = NAMES[array.dtype.name], array.nbytes
        header[name] = {"dtype": dtype, "shape": list(array.shape), "data_offsets": [place, place + size]}
        place += size
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    body = b"".join(np.ascontiguousarray(array).tobytes() for array in tensors.values())
    path.write_bytes(len(text).to_bytes(8, "little") + text + body)


def nearest(values: np.ndarray, table: np.ndarray) -> np.ndarray:
    return np.abs(values[..., None] - table).argmin(-1).astype(np.uint8)


def fp8_blocks(stem, w):
    """DeepSeek: a scale for each block of 16 × 16."""
    rows, columns = -(-w.shape[0] // 16), -(-w.shape[1] // 16)
    scale, codes = np.zeros((rows, columns), np.float32), np.zeros(w.shape, ml_dtypes.float8_e4m3fn)
    for i in range(rows):
        for j in range(columns):
            part = np.s_[16 * i : 16 * i + 16, 16 * j : 16 * j + 16]
            scale[i, j] = np.abs(w[part]).max() / 448
            codes[part] = (w[part] / scale[i, j]).astype(ml_dtypes.float8_e4m3fn)
    return {stem + ".weight": codes, stem + ".weight_scale_inv": scale}


def fp8_rows(stem, w):
    scale = (np.abs(w).max(1, keepdims=True) / 448).astype(ml_dtypes.bfloat16)
    codes = (w / scale.astype(np.float32)).astype(ml_dtypes.float8_e4m3fn)
    return {stem + ".weight": codes, stem + ".weight_scale": scale, stem + ".input_scale": np.ones(1, np.float32)}


def fp8_whole(stem, w):
    scale = np.float32(np.abs(w).max() / 448).reshape(1)
    return {stem + ".weight": (w / scale).astype(ml_dtypes.float8_e4m3fn), stem + ".weight_scale": scale}


def int8_rows(stem, w):
    scale = np.abs(w).max(1, keepdims=True) / 127
    return {stem + ".weight": np.rint(w / scale).astype(np.int8), stem + ".weight_scale": scale.astype(np.float32)}


def int8_shifted(stem, w):
    """Rows from least to largest entry, with a zero point."""
    low, high = w.min(1, keepdims=True), w.max(1, keepdims=True)
    scale = (high - low) / 255
    zero = np.rint(-128 - low / scale)
    codes = np.clip(np.rint(w / scale) + zero, -128, 127).astype(np.int8)
    named = {".weight": codes, ".weight_scale": scale.astype(np.float32), ".weight_zero_point": zero.astype(np.int8)}
    return {stem + end: array for end, array in named.items()}


def packed(bits):
    def encode(stem, w):
        """Groups of 4 columns; words of 32 bits with the first code in the lowest bits."""
        top = 2 ** (bits - 1)
        groups = w.reshape(len(w), -1, 4)
        scale = np.abs(groups).max(-1) / (top - 1)
        codes = (np.rint(groups / scale[..., None]).reshape(w.shape) + top).astype(np.int64)
        each = 32 // bits
        words = np.zeros((len(w), -(-w.shape[1] // each)), np.int64)
        for column in range(w.shape[1]):
            words[:, column // each] |= codes[:, column] << (bits * (column % each))
        return {
            stem + ".weight_packed": words.astype(np.uint32).view(np.int32),
            stem + ".weight_scale": scale.astype(np.float32),
            stem + ".weight_shape": np.array(w.shape, np.int64),
        }

    return encode


def bnb_rows(stem, w):
    largest = np.abs(w).max(1)
    codes = np.rint(w * 127 / largest[:, None]).astype(np.int8)
    return {stem + ".weight": codes, stem + ".SCB": largest.astype(np.float32)}


def bnb_quarters(nested):
    def encode(stem, w):
        flat = w.ravel()
        blocks = np.pad(flat, (0, -len(flat) % 16)).reshape(-1, 16)
        scales = np.maximum(np.abs(blocks).max(1), 1e-9).astype(np.float32)
        state = {"quant_type": "nf4", "blocksize": 16, "dtype": "float32", "shape": list(w.shape)}
        more = {}
        if nested:
            levels, offset, size = np.linspace(-1, 1, 256).astype(np.float32), float(scales.mean()), 8
            state |= {"nested_blocksize": size, "nested_offset": offset, "nested_dtype": "float32"}
            outer = [np.abs(scales[i : i + size] - offset).max() + 1e-9 for i in range(0, len(scales), size)]
            outer = np.array(outer, np.float32)
            spread = np.repeat(outer, size)[: len(scales)]
            stored = nearest((scales - offset) / spread, levels)
            scales = levels[stored] * spread + np.float32(offset)
            more = {".weight.nested_absmax": outer, ".weight.nested_quant_map": levels}
        codes = nearest(blocks / scales[:, None], NORMAL_FOUR).ravel()[: len(flat)]
        codes = np.pad(codes, (0, len(codes) % 2))
        named = {
            ".weight": (codes[0::2] << 4 | codes[1::2])[:, None],
            ".weight.absmax": stored if nested else scales,
            ".weight.quant_map": NORMAL_FOUR,
            ".weight.quant_state.bitsandbytes__nf4": np.frombuffer(json.dumps(state).encode(), np.uint8),
            **more,
        }
        return {stem + end: array for end, array in named.items()}

    return encode


def words_of(codes, axis, order=range(8)):
    """Codes of four bits in words of 32, eight along an axis; nibble k of a word has code ``order[k]``."""
    split = np.moveaxis(codes.astype(np.int64), axis, -1).reshape(*np.moveaxis(codes, axis, -1).shape[:-1], -1, 8)
    words = sum(split[..., place] << (4 * k) for k, place in enumerate(order))
    return np.ascontiguousarray(np.moveaxis(words, -1, axis)).astype(np.uint32).view(np.int32)


def in_groups(w, groups):
    """Codes, zeros (1 to 15) and scales, (inputs, outputs) and (groups, outputs), of weights (outputs, inputs)."""
    rows = w.T
    inside = [rows[groups == g] for g in range(groups.max() + 1)]
    least, most = (np.stack([pick(part, axis=0) for part in inside]) for pick in (np.min, np.max))
    scales = ((np.maximum(most, 0) - np.minimum(least, 0)) / 14 + 1e-6).astype(np.float16).astype(np.float32)
    zeros = np.clip(np.rint(-np.minimum(least, 0) / scales), 1, 15)
    codes = np.clip(np.rint(rows / scales[groups] + zeros[groups]), 0, 15)
    return codes, zeros, scales


def gptq(form):
    def encode(stem, w):
        """Groups of inputs in any order; the first format stores zeros less by one."""
        if any(size % 8 for size in w.shape):
            return {stem + ".weight": w}  # as makers leave out what fills no word
        groups = np.random.default_rng(3).permutation(np.arange(w.shape[1]) % 2).astype(np.int32)
        codes, zeros, scales = in_groups(w, groups)
        named = {
            ".qweight": words_of(codes, 0),
            ".qzeros": words_of(zeros - (form == "gptq"), 1),
            ".scales": scales.astype(np.float16),
            ".g_idx": groups,
        }
        return {stem + end: array for end, array in named.items()}

    return encode


def awq(stem, w):
    if any(size % 8 for size in w.shape):
        return {stem + ".weight": w}
    codes, zeros, scales = in_groups(w, np.arange(w.shape[1]) // 4)
    order = (0, 2, 4, 6, 1, 3, 5, 7)
    named = {".qweight": words_of(codes, 1, order), ".qzeros": words_of(zeros, 1, order)}
    return {stem + end: array for end, array in {**named, ".scales": scales.astype(np.float16)}.items()}


LAYOUTS = {
    "gptq": ("gptq", gptq("gptq"), 0.09, {"bits": 4}),
    "gptq_v2": ("gptq", gptq("gptq_v2"), 0.09, {"bits": 4, "checkpoint_format": "gptq_v2"}),
    "awq": ("awq", awq, 0.09, {"bits": 4, "version": "GEMM"}),
    "fp8 blocks": ("fp8", fp8_blocks, 2**-4, {"weight_block_size": [16, 16]}),
    "fp8 rows": ("compressed-tensors", fp8_rows, 2**-4, {}),
    "fp8 whole": ("compressed-tensors", fp8_whole, 2**-4, {}),
    "int8 rows": ("compressed-tensors", int8_rows, 0.02, {}),
    "int8 shifted": ("compressed-tensors", int8_shifted, 0.02, {}),
    "int4 packed": ("compressed-tensors", packed(4), 0.2, {}),
    "int8 packed": ("compressed-tensors", packed(8), 0.02, {}),
    "bytes": ("bitsandbytes", bnb_rows, 0.02, {}),
    "nf4": ("bitsandbytes", bnb_quarters(False), 0.3, {}),
    "nf4 nested": ("bitsandbytes", bnb_quarters(True), 0.3, {}),
}


def quantise(
    layout, folder, change=lambda name, tensor: tensor, alter=lambda tensors: None, family="llama", **settings
):
    """The reference checkpoint with every matrix of a layer in a layout."""
    method, encode, _, own = LAYOUTS[layout]
    model = reference(family)
    tensors = {}
    for name, tensor in state_of(model).items():
        tensor = change(name, np.asarray(tensor, np.float32))
        if tensor.ndim == 2 and ".layers." in name:
            tensors |= encode(name.removesuffix(".weight"), tensor)
        else:
            tensors[name] = tensor
    alter(tensors)
    folder.mkdir()
    write(folder / "model.safetensors", tensors)
    stated = {"quant_method": method, **own, **settings}
    (folder / "config.json").write_text(json.dumps({**model.config, "quantization_config": stated}))
    return folder


@pytest.mark.parametrize("layout", LAYOUTS)
def test_numbers_are_those_that_were_quantised(layout, tmp_path):
    model, error = open_model(quantise(layout, tmp_path / "q")), LAYOUTS[layout][2]
    plain = reference("llama")
    for name, shape in plain.layer_names(1).items():
        one, other = plain.load(name, shape), model.load(name, shape)
        assert np.abs(one - other).max() <= error * np.abs(one).max(), name
    again = pickle.loads(pickle.dumps(model.tensors))
    assert np.array_equal(again.raw(name), model.tensors.raw(name))
    assert model.dtype in SCALED_TYPES and not any(why.is_compared for why in model.unread().values())


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_quantised_folder_is_the_folder_and_not_another(layout, tmp_path):
    plain = reference("llama")
    answer = compare(plain, open_model(quantise(layout, tmp_path / "q")))
    assert answer.same_function is not False
    assert answer.same_function or layout in ("int4 packed", "nf4", "nf4 nested", "gptq", "gptq_v2", "awq")

    def mirrored(name, tensor):
        return tensor[::-1] if name.endswith("1.self_attn.v_proj.weight") else tensor

    other = compare(plain, open_model(quantise(layout, tmp_path / "wrong", mirrored)))
    assert other.same_function is not True


def test_experts_of_four_bits(tmp_path):
    """mxfp4 of gpt-oss: powers of two for 32 numbers of four bits, the first in the low bits, transposed at the end."""
    model, tensors, means = reference("gpt_oss"), {}, {}
    table = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, 0, -0.5, -1, -1.5, -2, -3, -4, -6])
    for name, tensor in state_of(model).items():
        if not name.endswith(("gate_up_proj", "down_proj")):
            tensors[name] = np.asarray(tensor, np.float32)
            continue
        rows = np.swapaxes(np.asarray(tensor, np.float64), 1, 2)
        size = next(n for n in (32, 16, 8, 4, 2) if rows.shape[-1] % n == 0)
        groups = rows.reshape(*rows.shape[:2], -1, size)
        powers = np.floor(np.log2(np.abs(groups).max(-1))).astype(int) - 2
        codes = nearest(groups / 2.0 ** powers[..., None], table)
        tensors[name + "_blocks"] = codes[..., 0::2] | codes[..., 1::2] << 4
        tensors[name + "_scales"] = (powers + 127).astype(np.uint8)
        means[name] = np.swapaxes((table[codes] * 2.0 ** powers[..., None]).reshape(rows.shape), 1, 2)
    (tmp_path / "config.json").write_text(
        json.dumps({**model.config, "quantization_config": {"quant_method": "mxfp4"}})
    )
    write(tmp_path / "model.safetensors", tensors)
    read = open_model(tmp_path)
    assert means and all(np.array_equal(read.tensors.raw(name), value) for name, value in means.items())


@pytest.mark.parametrize("kind", ["INT8", "INT4"])
def test_the_roundoff_of_integers_is_measured(kind):
    """One scale a row of 4,096 normal entries; 0.42 is the mean error of a float type, as a share of its roundoff."""
    w = np.random.default_rng(5).normal(size=(64, 4096))
    scale = np.abs(w).max(1, keepdims=True) / {"INT8": 127, "INT4": 7}[kind]
    error = float(np.sqrt(((np.rint(w / scale) * scale - w) ** 2).mean()))
    assert error / 0.42 == pytest.approx(SCALED_TYPES[kind], rel=0.08)


def drop(end):
    def alter(tensors):
        del tensors[next(name for name in tensors if name.endswith(end))]

    return alter


def put(end, array):
    def alter(tensors):
        tensors[next(name for name in tensors if name.endswith(end))] = array

    return alter


def add(name, array, *more):
    return lambda tensors: tensors.update(dict.fromkeys((name, *more), array))


def nested(**settings):
    """Other words of a quant_state."""

    def alter(tensors):
        name = next(name for name in tensors if name.endswith("__nf4"))
        state = {**json.loads(tensors[name].tobytes()), **settings}
        tensors[name] = np.frombuffer(json.dumps(state).encode(), np.uint8)

    return alter


@pytest.mark.parametrize(
    ("layout", "alter", "settings", "words"),
    [
        ("fp8 rows", lambda tensors: None, {"quant_method": "aqlm"}, "quant_method 'aqlm'"),
        ("fp8 rows", lambda tensors: None, {"quant_method": "gptq"}, "no scales"),
        ("gptq", lambda tensors: None, {"bits": 3}, "has bits '3'; 4 is read"),
        ("gptq", lambda tensors: None, {"checkpoint_format": "marlin"}, "checkpoint_format 'marlin'"),
        ("gptq", lambda tensors: None, {"quant_method": "fp8"}, "qweight|qzeros"),
        ("gptq", put(".qzeros", np.ones((1, 3), np.int32)), {}, "has shape"),
        ("gptq", put(".g_idx", np.full(24, 7, np.int32)), {}, "groups|has shape"),
        ("gptq", drop(".scales"), {}, "is missing"),
        ("awq", lambda tensors: None, {"version": "gemv"}, "version 'gemv'"),
        ("awq", put(".scales", np.ones((2, 2), np.float16)), {}, "has shape"),
        ("awq", put(".qzeros", np.ones((5, 3), np.int32)), {}, "equal ones"),
        ("fp8 rows", drop(".weight_scale"), {}, "no scales"),
        ("fp8 rows", put(".weight_scale", np.ones((3, 1), np.float32)), {}, "has shape"),
        ("fp8 rows", put(".weight_scale", np.full(1, np.nan, np.float32)), {}, "NaN"),
        ("fp8 blocks", lambda tensors: None, {"weight_block_size": [128, 128]}, "each block"),
        ("fp8 blocks", lambda tensors: None, {"weight_block_size": [0, "x"]}, "positive integers"),
        ("int8 rows", add("model.layers.0.mlp.up_proj.qweight", np.ones(1, np.int32)), {}, "qweight"),
        ("int4 packed", put(".weight_shape", np.array([48, 24])), {}, "shape"),
        ("int4 packed", add("model.layers.0.mlp.up_proj.weight_zero_point", np.ones(1, np.int32)), {}, "zero points"),
        ("bytes", put(".SCB", np.ones(2, np.float32)), {}, "each row"),
        ("fp8 rows", put(".weight_scale", np.ones((2, 2, 2), np.float32)), {}, "has shape"),
        ("int4 packed", drop(".weight_shape"), {}, "is missing"),
        ("int4 packed", put(".weight_packed", np.ones(7, np.int32)), {}, "has shape"),
        ("nf4", drop(".quant_map"), {}, "is missing"),
        ("nf4 nested", drop(".nested_quant_map"), {}, "is missing"),
        ("nf4 nested", nested(nested_blocksize=-1), {}, "no numbers"),
        ("nf4 nested", nested(nested_offset="x"), {}, "no numbers"),
        ("bytes", put(".mlp.up_proj.weight", np.ones(3, np.int8)), {}, "each row|has shape"),
        ("bytes", add("model.x_blocks", np.ones(3, np.uint8), "model.x_scales"), {}, "bytes are required"),
        ("nf4", drop("__nf4"), {}, "quant_state"),
        ("nf4", put("__nf4", np.frombuffer(b"[]", np.uint8)), {}, "shape and blocksize"),
        ("nf4", put(".quant_map", np.ones(3, np.float32)), {}, "bytes and"),
        ("nf4 nested", put(".nested_absmax", np.ones(1, np.float32)), {}, "does not fit"),
    ],
)
def test_what_is_broken_or_not_known_is_refused_in_one_line(layout, alter, settings, words, tmp_path):
    with pytest.raises(AttnGeomError, match=words) as error:
        model = open_model(quantise(layout, tmp_path / "q", alter=alter, **settings))
        for layer in range(model.layers):
            model.layer(layer)
    assert len(str(error.value).splitlines()) == 1


def test_codes_without_a_word_in_the_configuration_are_refused(tmp_path):
    folder = quantise("fp8 rows", tmp_path / "q")
    config = json.loads((folder / "config.json").read_text())
    del config["quantization_config"]
    (folder / "config.json").write_text(json.dumps(config))
    with pytest.raises(InputError, match="F8_E4M3"):
        open_model(folder)


def test_commands(tmp_path, capsys):
    folder, plain = str(quantise("int8 rows", tmp_path / "q")), str(DATA / "llama")
    assert run(["model", "compare", plain, folder, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["same_function"] is True
    assert run(["model", "inspect", folder]) == 0
    assert run(["model", "fingerprint", folder]) == 0
    capsys.readouterr()
    for line in (
        ["teleport", folder],
        ["canonicalize", folder],
        ["align", plain, folder],
        ["merge", plain, folder],
        ["merge", folder, plain, "--no-align"],
    ):
        assert run(["model", *line, "--out", str(tmp_path / "new")]) == 2
        told = capsys.readouterr().err
        assert "quantised" in told and len(told.splitlines()) == 1 and not (tmp_path / "new").exists()
