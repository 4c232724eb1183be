"""Recurrent mixers as tensors: maps and convolutions packed part after part, or group by group."""

from __future__ import annotations

from math import prod

import numpy as np

from attngeom.exact.arrays import Array
from attngeom.models.affine import Affine
from attngeom.models.layer import RecurrentWeights
from attngeom.models.layout.tables import Load, MixerLayout, Packed, read_linear, store_linear
from attngeom.models.mixers import INNER, RecurrentMixer


def _rows(spec: RecurrentMixer, packed: Packed) -> dict[str, Array]:
    """The rows of each part in a packed tensor."""
    shapes = spec.shapes
    sizes = [prod(shapes[part]) for part in packed.parts]
    copies = spec.groups if packed.grouped else 1
    table = np.arange(sum(sizes)).reshape(copies, -1)
    ends = np.cumsum([size // copies for size in sizes])[:-1]
    return {part: rows.reshape(-1) for part, rows in zip(packed.parts, np.split(table, ends, axis=1))}


def read_mixer(spec: RecurrentMixer, layout: MixerLayout, width: int, load: Load) -> RecurrentWeights:
    shapes, parts = spec.shapes, dict[str, Affine | Array]()
    for packed in layout.maps:
        rows = _rows(spec, packed)
        both = read_linear(load, packed.name, sum(map(len, rows.values())), width, spec.bias, False)
        for part, own in rows.items():
            picked, shape = both.pick(own), shapes[part]
            parts[part] = Affine(picked.weight.reshape(*shape, width), picked.bias.reshape(shape))
    for packed in layout.convolutions:
        rows = _rows(spec, packed)
        count = sum(map(len, rows.values()))
        taps = load(f"{packed.name}.weight", (count, 1, spec.taps))[:, 0]
        shift = load(f"{packed.name}.bias", (count,)) if spec.conv_bias else np.zeros(count)
        for part, own in rows.items():
            parts[f"{part}_taps"] = taps[own].reshape(*shapes[part], spec.taps)
            parts[f"{part}_shift"] = shift[own].reshape(shapes[part])
    for part, name in layout.numbers.items():
        parts[part] = load(name, (spec.heads,))
    parts |= _read_inner(spec, layout, load)
    output = read_linear(load, layout.output, width, spec.heads * spec.value_dim, spec.output_bias, False)
    return RecurrentWeights(
        **parts,  # type: ignore[arg-type]
        gain=np.ones(spec.gains)
        if spec.norm is None
        else load(f"{layout.gain}.weight", (prod(spec.gains),)).reshape(spec.gains),
        output=output.weight.reshape(width, spec.heads, spec.value_dim).transpose(1, 0, 2),
        output_bias=output.bias,
    )


def _read_inner(spec: RecurrentMixer, layout: MixerLayout, load: Load) -> dict[str, Affine | Array]:
    """The maps of a head that read its convolved values, and what damps them."""
    parts, (heads, size) = dict[str, Affine | Array](), spec.channels["value"]
    for part, name in layout.inner.items():
        if part in INNER:
            weight = load(f"{name}_weight", (heads, size, size)).transpose(0, 2, 1)
            parts[part] = Affine(weight, load(f"{name}_bias", (heads, size)))
        else:
            parts[part] = load(name, (heads * size,)).reshape(heads, size)
    return parts


def write_mixer(spec: RecurrentMixer, layout: MixerLayout, weights: RecurrentWeights) -> dict[str, Array]:
    tensors: dict[str, Array] = {}
    for packed in layout.maps:
        rows = _rows(spec, packed)
        count = sum(map(len, rows.values()))
        weight, bias = np.zeros((count, weights.output.shape[1])), np.zeros(count)
        for part, own in rows.items():
            reader: Affine = getattr(weights, part)
            weight[own], bias[own] = reader.weight.reshape(len(own), -1), reader.bias.reshape(-1)
        tensors |= store_linear(packed.name, Affine(weight, bias), spec.bias, False)
    for packed in layout.convolutions:
        rows = _rows(spec, packed)
        count = sum(map(len, rows.values()))
        taps, shift = np.zeros((count, 1, spec.taps)), np.zeros(count)
        for part, own in rows.items():
            taps[own, 0] = getattr(weights, f"{part}_taps").reshape(len(own), -1)
            shift[own] = getattr(weights, f"{part}_shift").reshape(-1)
        tensors |= store_linear(packed.name, Affine(taps, shift), spec.conv_bias, False)
    tensors |= {name: getattr(weights, part) for part, name in layout.numbers.items()}
    for part, name in layout.inner.items():
        inner = getattr(weights, part)
        if isinstance(inner, Affine):
            tensors |= {f"{name}_weight": inner.weight.transpose(0, 2, 1), f"{name}_bias": inner.bias}
        else:
            tensors[name] = inner.reshape(-1)
    output = weights.output.transpose(1, 0, 2).reshape(weights.output.shape[1], -1)
    tensors |= store_linear(layout.output, Affine(output, weights.output_bias), spec.output_bias, False)
    return tensors if spec.norm is None else tensors | {f"{layout.gain}.weight": weights.gain.reshape(-1)}
