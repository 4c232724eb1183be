"""Tables of tensor names of one block: where attention, MLP and norms lie, how they are packed; linear maps."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from attngeom.exact.arrays import Array
from attngeom.models.affine import Affine
from attngeom.models.layer import NormWeights
from attngeom.models.specification import Norm
from attngeom.models.tensor_errors import TensorPart

Load = Callable[[str, tuple[int, ...]], Array]
"""load(name, shape): the tensor as float64; the reader refuses another shape in one line."""


@dataclass(frozen=True)
class AttentionLayout:
    """How q, k, v are packed: ``split`` in three tensors, ``stacked`` all q rows, all k, all v in one, ``grouped`` per
    group its q, k, v rows, ``partitioned`` per fourth of the heads their q, v, k rows (CodeGen).
    """

    packing: Literal["split", "stacked", "grouped", "partitioned", "latent"]
    output: str
    query: str = ""
    key: str = ""
    value: str = ""
    fused: str = ""
    transposed: bool = False
    query_norm: str = ""
    key_norm: str = ""
    extras: Mapping[str, str] = field(default_factory=dict)
    query_down: str = ""
    key_down: str = ""


def split_attention(pattern: str, output: str, parts: tuple[str, str, str] = ("q", "k", "v")) -> AttentionLayout:
    """Projections of their own, named by a pattern with ``{}`` for the part."""
    query, key, value = (pattern.format(part) for part in parts)
    return AttentionLayout(packing="split", query=query, key=key, value=value, output=output)


@dataclass(frozen=True)
class MLPLayout:
    """``split``: up, down and gate if gated; ``fused``: gate rows over up rows; experts: one by one, ``packed``
    with gate and up in turn, ``stacked`` with gate rows over up rows, or ``beside``, transposed, gate beside up.
    """

    packing: Literal["split", "fused", "experts", "packed_experts", "stacked_experts", "beside_experts"]
    up: str
    down: str
    gate: str = ""
    transposed: bool = False
    router: str = ""
    correction: str = ""
    expert: str = ""
    shared: str = ""
    shared_gate: str = ""
    shared_units: MLPLayout | None = None

    @property
    def of_shared(self) -> MLPLayout:
        """How the shared expert lies below ``shared``: as any other, or in a way of its own."""
        return self.shared_units or self


@dataclass(frozen=True)
class Packed:
    """A tensor with the rows of several parts: all of one behind all of another, or ``grouped``, group by group."""

    name: str
    parts: tuple[str, ...]
    grouped: bool = False


@dataclass(frozen=True)
class MixerLayout:
    """Where the maps of a recurrent mixer lie, its convolutions, the numbers of its heads, its gains and its output.

    ``inner`` are the maps that read what convolutions write, stored with the columns of a head first, and the damping.
    """

    maps: tuple[Packed, ...]
    convolutions: tuple[Packed, ...]
    numbers: Mapping[str, str]
    gain: str
    output: str
    inner: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class BlockLayout:
    """Tensor names of one block below ``prefix``, which holds ``{}`` for the number of the layer.

    ``scales`` are the tensors that multiply what a sublayer writes, by its place. ``multipliers`` are what a family
    multiplies the values of its maps by, weight and bias: reading multiplies them in.
    """

    prefix: str
    attention: AttentionLayout | None
    mlp: MLPLayout | None
    norms: Mapping[str, str] = field(default_factory=dict)
    cross: AttentionLayout | None = None
    experts: MLPLayout | None = None
    mixer: MixerLayout | None = None
    scales: Mapping[str, str] = field(default_factory=dict)
    multipliers: Mapping[TensorPart, tuple[float, float]] = field(default_factory=dict)


def read_norm(norm: Norm, name: str, width: int, load: Load) -> NormWeights:
    stored = load(f"{name}.weight", (width,)) if norm.gain else np.ones(width)
    bias = load(f"{name}.bias", (width,)) if norm.bias else np.zeros(width)
    return NormWeights(stored, bias, norm.offset)


def write_norm(norm: Norm, name: str, weights: NormWeights) -> dict[str, Array]:
    tensors = {}
    if norm.gain:
        tensors[f"{name}.weight"] = weights.stored
    if norm.bias:
        tensors[f"{name}.bias"] = weights.bias
    return tensors


def read_linear(load: Load, name: str, rows: int, columns: int, bias: bool, transposed: bool) -> Affine:
    weight = load(f"{name}.weight", (columns, rows) if transposed else (rows, columns))
    offset = load(f"{name}.bias", (rows,)) if bias else np.zeros(rows, weight.dtype)
    return Affine(weight.T if transposed else weight, offset)


def store_linear(name: str, affine: Affine, bias: bool, transposed: bool) -> dict[str, Array]:
    tensors = {f"{name}.weight": affine.weight.T if transposed else affine.weight}
    if bias:
        tensors[f"{name}.bias"] = affine.bias
    return tensors


def split_heads(affine: Affine, count: int) -> Affine:
    rows, columns = affine.weight.shape
    return Affine(affine.weight.reshape(count, rows // count, columns), affine.bias.reshape(count, rows // count))


def join_heads(affine: Affine) -> Affine:
    return Affine(affine.weight.reshape(-1, affine.weight.shape[-1]), affine.bias.reshape(-1))
