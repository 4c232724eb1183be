"""Quantised safetensors as the numbers that they mean: codes times their scales, layout by layout.

A layout is known by the tensors that stand beside the codes, and config.json must name its method. What is read is the
function of the weights; that activations are rounded as well when such a model runs is no part of it. Each layout has a
roundoff, that of a float type with the same mean error on normal weights (`attngeom.models.reading.ROUNDOFF`).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from attngeom.errors import FormatError, InputError
from attngeom.exact.arrays import Array
from attngeom.models.reading import BLOCK_TYPES, SCALED_TYPES, Header, Tensors

METHODS = ("fp8", "compressed-tensors", "bitsandbytes", "mxfp4", "gptq", "awq")
"""Values of quant_method whose layouts are read."""
FOREIGN = (".weight_g_idx", ".weight_global_scale", ".codes", ".W_q")
"""Ends of names in layouts that are not read."""
OWN_METHODS, OWN_CODES = ("gptq", "awq"), (".qweight", ".qzeros")
"""Methods with a layout of their own, and the ends of names in it."""
FLOATS = ("F8_E4M3", "F8_E5M2")
FOURS = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6], dtype=np.float32)
"""The numbers of four bits: a sign, two bits of exponent, one of mantissa."""
ADVICE = "save it dequantised (transformers: model.dequantize(), save_pretrained) and give that folder"


@dataclass(frozen=True)
class Quantised:
    """The stored tensors of a checkpoint and what its configuration says of their layout."""

    tensors: Tensors
    settings: Mapping[str, Any]

    def array(self, name: str, *types: str) -> Array:
        """A stored tensor, of one of some types."""
        header = self.tensors.headers.get(name)
        if header is None:
            raise self.fault(name, "is missing beside the codes that it belongs to")
        if types and header.dtype not in types:
            raise self.fault(name, f"has type {header.dtype[:20]}; {' or '.join(types)} is required")
        return self.tensors.raw(name)

    def scale(self, name: str) -> Array:
        return self.array(name, "F32", "BF16", "F16", "F64").astype(np.float32)

    def fault(self, name: str, words: str) -> FormatError:
        return FormatError(f"{self.tensors.name}: tensor {name[:80]} {words}")


@dataclass(frozen=True)
class CodeLayout:
    """Codes with their companions: ``codes`` and ``beside`` are ends of names behind a common stem.

    ``target`` is the end of the name of the restored tensor; ``roundoff`` the type that states its rounding, empty for
    the type of the codes. ``shape`` and ``values`` take the source and the stem.
    """

    codes: str
    types: tuple[str, ...]
    beside: str
    target: str
    roundoff: str
    shape: Callable[[Quantised, str], tuple[int, ...]]
    values: Callable[[Quantised, str], Array]
    more: tuple[str, ...] = ()
    """Ends of names of further companions, which hold no weights."""
    method: str = ""
    """The only method that has the layout; empty: any of the others."""


def _same_shape(source: Quantised, stem: str) -> tuple[int, ...]:
    return source.tensors.headers[stem + ".weight"].shape


def _spread(source: Quantised, name: str, scale: Array, shape: tuple[int, ...]) -> Array:
    """One scale for all, for each row, or for each group of columns, as a factor of every entry."""
    if scale.size == 1:
        return np.broadcast_to(scale.reshape(()), shape)
    if scale.ndim == 1:
        scale = scale[:, None]
    fits = len(shape) == scale.ndim == 2 and scale.size and scale.shape[0] == shape[0]
    if not fits or shape[1] % scale.shape[1]:
        raise source.fault(name, f"has shape {list(scale.shape)} for weights of shape {list(shape)}; one scale for all,"
                           " for each row or each group of a row is required")  # fmt: skip
    return np.repeat(scale, shape[1] // scale.shape[1], axis=1)


def _scaled(source: Quantised, stem: str) -> Array:
    codes = source.array(stem + ".weight").astype(np.float32)
    if stem + ".weight_zero_point" in source.tensors:
        zero = source.array(stem + ".weight_zero_point").astype(np.float32)
        codes = codes - _spread(source, stem + ".weight_zero_point", zero, codes.shape)
    name = stem + ".weight_scale"
    return np.asarray(codes * _spread(source, name, source.scale(name), codes.shape))


def _blocks(source: Quantised, stem: str) -> Array:
    """A scale for each block of rows and columns, the last ones cut."""
    codes, scale = source.array(stem + ".weight").astype(np.float32), source.scale(stem + ".weight_scale_inv")
    size = source.settings.get("weight_block_size") or [128, 128]
    if not isinstance(size, list) or len(size) != 2 or not all(isinstance(n, int) and n > 0 for n in size):
        raise source.fault(stem, f"has blocks of size {str(size)[:40]}; two positive integers are required")
    if codes.ndim != 2 or scale.shape != tuple(-(-n // block) for n, block in zip(codes.shape, size)):
        raise source.fault(
            stem + ".weight_scale_inv", f"has shape {list(scale.shape)}; one scale for each block is required"
        )
    spread = np.repeat(np.repeat(scale, size[0], axis=0), size[1], axis=1)
    return np.asarray(codes * spread[: codes.shape[0], : codes.shape[1]])


def _packed_shape(source: Quantised, stem: str) -> tuple[int, ...]:
    shape = source.array(stem + ".weight_shape", "I64", "I32").tolist()
    if len(shape) != 2 or not all(0 < n < 2**31 for n in shape):
        raise source.fault(stem + ".weight_shape", f"is {str(shape)[:40]}; two positive sizes are required")
    return int(shape[0]), int(shape[1])


def _packed(source: Quantised, stem: str) -> Array:
    """Codes of a few bits, lowest bits first, in words of 32 bits along the rows; zero lies in the middle."""
    if stem + ".weight_zero_point" in source.tensors:
        raise InputError(f"{source.tensors.name}: {stem[:80]} has packed zero points, which are not read; {ADVICE}")
    rows, columns = _packed_shape(source, stem)
    words = source.array(stem + ".weight_packed", "I32").view(np.uint32)
    fitting = [bits for bits in (4, 8) if words.shape == (rows, -(-columns * bits // 32))]
    if len(fitting) != 1:
        raise source.fault(stem + ".weight_packed", f"has shape {list(words.shape)} for weights of {rows} × {columns}")
    (bits,) = fitting
    shifts = np.arange(0, 32, bits, dtype=np.uint32)
    codes = (words[..., None] >> shifts) & np.uint32(2**bits - 1)
    signed = codes.reshape(rows, -1)[:, :columns].astype(np.float32) - np.float32(2 ** (bits - 1))
    name = stem + ".weight_scale"
    return np.asarray(signed * _spread(source, name, source.scale(name), (rows, columns)))


def _rows_of_bytes(source: Quantised, stem: str) -> Array:
    """bitsandbytes, eight bits: each row is its largest entry times codes over 127."""
    codes, largest = source.array(stem + ".weight", "I8").astype(np.float32), source.scale(stem + ".SCB")
    if codes.ndim != 2 or largest.shape != codes.shape[:1]:
        raise source.fault(stem + ".SCB", f"has shape {list(largest.shape)}; one number for each row is required")
    return np.asarray(codes * (largest[:, None] / np.float32(127)))


def _state(source: Quantised, stem: str) -> dict[str, Any]:
    """bitsandbytes, four bits: a text of JSON stored as bytes."""
    name = next((stem + end for end in QUARTERS if stem + end in source.tensors), "")
    if not name:
        raise source.fault(stem + ".weight", "has no quant_state beside it; bitsandbytes of nf4 or fp4 is read")
    try:
        state = json.loads(source.array(name, "U8").tobytes())
    except ValueError:
        state = None
    good = isinstance(state, dict) and isinstance(state.get("shape"), list) and isinstance(state.get("blocksize"), int)
    if not good or not all(isinstance(n, int) and n > 0 for n in (*state["shape"], state["blocksize"])):
        raise source.fault(name, "does not state shape and blocksize")
    return dict(state)


QUARTERS = (".weight.quant_state.bitsandbytes__nf4", ".weight.quant_state.bitsandbytes__fp4")


def _state_shape(source: Quantised, stem: str) -> tuple[int, ...]:
    return tuple(_state(source, stem)["shape"])


def _quarters(source: Quantised, stem: str) -> Array:
    """bitsandbytes, four bits: entries of a table of 16 numbers, high bits first, times one scale a block."""
    state = _state(source, stem)
    shape, table = tuple(state["shape"]), source.scale(stem + ".weight.quant_map")
    codes = source.array(stem + ".weight", "U8").ravel()
    scales = source.array(stem + ".weight.absmax").ravel()
    if scales.dtype == np.uint8:
        outer = source.scale(stem + ".weight.nested_absmax")
        levels = source.scale(stem + ".weight.nested_quant_map")
        size, offset = state.get("nested_blocksize", 256), state.get("nested_offset", 0.0)
        if not isinstance(size, int) or size <= 0 or not isinstance(offset, int | float):
            raise source.fault(stem + ".weight", "has a quant_state whose nested blocksize and offset are no numbers")
        if levels.shape != (256,) or outer.size != -(-scales.size // size):
            raise source.fault(stem + ".weight.nested_absmax", "does not fit the scales that it scales")
        scales = levels[scales] * np.repeat(outer, size)[: scales.size] + np.float32(offset)
    count, block = prod(shape), state["blocksize"]
    if table.shape != (16,) or codes.size != -(-count // 2) or scales.size != -(-count // block):
        raise source.fault(stem + ".weight", f"has {codes.size} bytes and {scales.size} scales for shape {list(shape)}")
    entries = table[np.stack([codes >> 4, codes & 15], axis=-1)].ravel()[:count]
    return np.asarray((entries * np.repeat(scales.astype(np.float32), block)[:count]).reshape(shape))


def _micro_shape(source: Quantised, stem: str) -> tuple[int, ...]:
    shape = source.tensors.headers[stem + "_blocks"].shape
    if len(shape) < 3:
        raise source.fault(stem + "_blocks", f"has shape {list(shape)}; rows, blocks and bytes are required")
    *batch, rows, groups, half = shape
    return (*batch, groups * half * 2, rows)


def _micro(source: Quantised, stem: str) -> Array:
    """mxfp4: numbers of four bits, the first in the low bits, times a power of two for 32 of them; then transposed."""
    codes, powers = source.array(stem + "_blocks", "U8"), source.array(stem + "_scales", "U8")
    if codes.ndim < 3 or powers.shape != codes.shape[:-1]:
        raise source.fault(stem + "_scales", f"has shape {list(powers.shape)}; one power for each block is required")
    entries = FOURS[np.stack([codes & 15, codes >> 4], axis=-1)].reshape(*codes.shape[:-1], -1)
    entries = np.ldexp(entries, powers[..., None].astype(np.int32) - 127)
    return np.ascontiguousarray(np.swapaxes(entries.reshape(*codes.shape[:-2], -1), -1, -2))


NIBBLES = np.arange(0, 32, 4, dtype=np.uint32)
"""Where the eight numbers of four bits lie in a word."""
AWQ_ORDER = np.arange(8).reshape(2, 4).T.ravel()
"""In which nibble of a word AWQ keeps the first column, the second, …: even ones in the lower half, then odd ones."""


def _opened(words: Array, axis: int) -> Array:
    """Numbers of four bits in words, lowest bits first, as numbers along an axis that is eight times as long."""
    spread = (np.moveaxis(words.view(np.uint32), axis, -1)[..., None] >> NIBBLES) & np.uint32(15)
    return np.moveaxis(spread.reshape(*spread.shape[:-2], -1), -1, axis)


def _grouped(source: Quantised, stem: str, shape: tuple[int, int], groups: Array, codes: Array, zeros: Array) -> Array:
    """(code − zero) · scale of the group of every input, (outputs, inputs)."""
    scales = source.scale(stem + ".scales")
    if scales.ndim != 2 or scales.shape != zeros.shape or codes.shape != shape or scales.shape[1:] != shape[1:]:
        raise source.fault(
            stem + ".scales", f"has shape {list(scales.shape)} for {shape[0]} inputs and {shape[1]} outputs"
        )
    if groups.shape != shape[:1] or groups.min() < 0 or groups.max() >= len(scales):
        raise source.fault(stem + ".scales", f"has {len(scales)} groups; one for each input is required")
    return np.ascontiguousarray(((codes.astype(np.float32) - zeros[groups]) * scales[groups]).T)


def _require(source: Quantised, key: str, default: Any, *known: Any) -> Any:
    """What the configuration says of a layout; what is not read is refused."""
    given = source.settings.get(key, default)
    given = given.lower() if isinstance(given, str) else given
    if given not in known:
        words = f"quantization_config has {key} {str(given)[:20]!r}; {' or '.join(map(str, known))} is read"
        raise InputError(f"{source.tensors.name}: {words}; {ADVICE}")
    return given


def _gptq_shape(source: Quantised, stem: str) -> tuple[int, ...]:
    _require(source, "bits", 4, 4)
    rows, outputs = _two(source, stem + ".qweight")
    return outputs, 8 * rows


def _awq_shape(source: Quantised, stem: str) -> tuple[int, ...]:
    _require(source, "bits", 4, 4)
    _require(source, "version", "gemm", "gemm")
    inputs, columns = _two(source, stem + ".qweight")
    return 8 * columns, inputs


def _two(source: Quantised, name: str) -> tuple[int, int]:
    shape = source.tensors.headers[name].shape
    if len(shape) != 2 or not all(shape):
        raise source.fault(name, f"has shape {list(shape)}; two positive sizes are required")
    return int(shape[0]), int(shape[1])


def _gptq(source: Quantised, stem: str) -> Array:
    """GPTQ, four bits: words along the inputs, zeros along the outputs and less by one in the first format."""
    form = _require(source, "checkpoint_format", "gptq", "gptq", "gptq_v2")
    outputs, inputs = _gptq_shape(source, stem)
    zeros = _opened(source.array(stem + ".qzeros", "I32"), 1).astype(np.float32) + (form == "gptq")
    groups = source.array(stem + ".g_idx", "I32", "I64")
    codes = _opened(source.array(stem + ".qweight", "I32"), 0)
    return _grouped(source, stem, (inputs, outputs), groups, codes, zeros)


def _awq(source: Quantised, stem: str) -> Array:
    """AWQ, four bits: words along the outputs, in an order of their own; groups of inputs of one length."""
    outputs, inputs = _awq_shape(source, stem)

    def columns(name: str) -> Array:
        opened = _opened(source.array(stem + name, "I32"), 1)
        return opened.reshape(len(opened), -1, 8)[:, :, AWQ_ORDER].reshape(opened.shape)

    zeros = columns(".qzeros").astype(np.float32)
    if inputs % len(zeros):
        raise source.fault(stem + ".qzeros", f"has {len(zeros)} groups of {inputs} inputs; equal ones are required")
    groups = np.arange(inputs) // (inputs // len(zeros))
    return _grouped(source, stem, (inputs, outputs), groups, columns(".qweight"), zeros)


INPUTS = (".input_scale", ".input_zero_point", ".output_scale", ".k_scale", ".v_scale", ".q_scale")
NESTED = tuple(f".weight.{end}" for end in ("absmax", "quant_map", "nested_absmax", "nested_quant_map"))
SHIFTED = (".weight_zero_point", *INPUTS)
PACKED = (".weight_shape", *SHIFTED)
LAYOUTS = (
    CodeLayout(".weight", FLOATS, ".weight_scale_inv", ".weight", "", _same_shape, _blocks, INPUTS),
    CodeLayout(".weight", FLOATS, ".weight_scale", ".weight", "", _same_shape, _scaled, SHIFTED),
    CodeLayout(".weight", ("I8",), ".weight_scale", ".weight", "INT8", _same_shape, _scaled, SHIFTED),
    CodeLayout(".weight_packed", ("I32",), ".weight_scale", ".weight", "INT4", _packed_shape, _packed, PACKED),
    CodeLayout(".weight", ("I8",), ".SCB", ".weight", "INT8", _same_shape, _rows_of_bytes, (".weight_format",)),
    CodeLayout(".weight", ("U8",), ".weight.absmax", ".weight", "INT4", _state_shape, _quarters, (*NESTED, *QUARTERS)),
    CodeLayout("_blocks", ("U8",), "_scales", "", "INT4", _micro_shape, _micro),
    CodeLayout(".qweight", ("I32",), ".g_idx", ".weight", "INT4", _gptq_shape, _gptq, (".qzeros", ".scales"), "gptq"),
    CodeLayout(".qweight", ("I32",), ".qzeros", ".weight", "INT4", _awq_shape, _awq, (".scales",), "awq"),
)


def restored(tensors: Tensors, config: Mapping[str, Any]) -> Tensors:
    """The tensors as the numbers that they mean; those of a checkpoint that is not quantised are returned as they are.

    A method or a layout that is not known is refused by its name.
    """
    settings = config.get("quantization_config")
    foreign = next((name for name in tensors if name.endswith(FOREIGN)), None)
    method = settings.get("quant_method") if isinstance(settings, Mapping) else None
    if method not in OWN_METHODS:
        foreign = next((name for name in tensors if name.endswith(OWN_CODES)), foreign)
    if settings is None and foreign is None:
        return _without_codes(tensors, tensors.headers)
    if not isinstance(settings, Mapping) or method not in METHODS or foreign is not None:
        given = f"config.json names quant_method {str(method)[:40]!r}" if foreign is None else f"tensor {foreign[:80]}"
        raise InputError(f"{tensors.name}: {given}; the layouts of {', '.join(METHODS)} are read; {ADVICE}")
    source, headers = Quantised(tensors, settings), dict(tensors.headers)
    recipes: dict[str, tuple[CodeLayout, str]] = {}
    layouts = [layout for layout in LAYOUTS if layout.method == (method if method in OWN_METHODS else "")]
    for name, header in tensors.headers.items():
        for layout in layouts:
            stem = name.removesuffix(layout.codes)
            if stem != name and header.dtype in layout.types and stem + layout.beside in tensors:
                for end in (layout.codes, layout.beside, *layout.more):
                    headers.pop(stem + end, None)
                recipes[stem + layout.target] = layout, stem
                headers[stem + layout.target] = Header(
                    layout.shape(source, stem), layout.roundoff or header.dtype, header.home
                )
                break

    def fetch(name: str) -> Array:
        if name not in recipes:
            return tensors.raw(name)
        layout, stem = recipes[name]
        return layout.values(source, stem)

    _without_codes(tensors, {name: header for name, header in headers.items() if name not in recipes})
    return Tensors(headers, fetch, tensors.name, (restored, (tensors, dict(config))))


def _without_codes(tensors: Tensors, headers: Mapping[str, Header]) -> Tensors:
    """The tensors, if none has a type that means nothing without scales."""
    bare = next((name for name, header in headers.items() if header.dtype in SCALED_TYPES), None)
    if bare is not None:
        words = f"tensor {bare[:80]} has type {headers[bare].dtype} and no scales that are known beside it"
        raise InputError(f"{tensors.name}: {words}; {ADVICE}")
    return tensors


def refuse_quantised(types: Iterable[str], what: str) -> None:
    """Writers round anew, and a configuration would still name the old layout."""
    if any(name in SCALED_TYPES or name in BLOCK_TYPES for name in types):
        raise InputError(
            f"{what} of quantised weights given; weights in floats of 16 bits or more are required: {ADVICE}"
        )
