"""The weights of one layer in one normal form for every family: heads first, rotated pairs as complex rows.

A rotated pair (i, j) of a query or key is the complex row W_i + √−1 W_j, so that the phase symmetry of rotary attention
is multiplication by a complex number and the storage layout (half, interleaved) is forgotten. An absent bias is zero;
whether the file has a place for it is said by the `TransformerBlock` that describes the layer.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from attngeom.exact.arrays import Array


@dataclass(frozen=True, eq=False)
class Affine:
    """x ↦ weight x + bias, batched: weight (…, out, in) and bias (…, out), real or complex."""

    weight: Array
    bias: Array

    @classmethod
    def linear(cls, weight: Array) -> Affine:
        return cls(weight, np.zeros(weight.shape[:-1], weight.dtype))

    @property
    def rows(self) -> Array:
        """(weight | bias), the bias as a last column."""
        return np.concatenate([self.weight, self.bias[..., None]], axis=-1)

    def __call__(self, x: Array) -> Array:
        """Values at the columns of x (in, t): (…, out, t)."""
        values: Array = self.weight @ x + self.bias[..., None]
        return values

    def then(self, matrix: Array) -> Affine:
        """matrix ∘ self, the matrix batched like the weight."""
        return Affine(matrix @ self.weight, (matrix @ self.bias[..., None])[..., 0])

    def scaled(self, factors: Array) -> Affine:
        """Every output multiplied by its factor; factors (…, out)."""
        return Affine(self.weight * factors[..., None], self.bias * factors)

    def after_norm(self, gain: Array, shift: Array, *, centred: bool = False) -> Affine:
        """The same map read from n where u = gain ∘ n + shift was read, rows ``centred`` if n has mean zero.

        Heads come to lie one after the other; all is done block by block, in the cache.
        """
        constant = self.weight @ shift if np.any(shift) else 0.0
        means = (self.weight @ (gain / len(gain)))[..., None] if centred else None
        heads = self.weight.ndim > 2
        weight = np.empty(self.weight.shape, self.weight.dtype) if heads else np.empty_like(self.weight)
        by_columns = weight.flags.f_contiguous and not heads
        for part in [(i,) for i in range(len(weight))] if heads else row_blocks(weight.T if by_columns else weight):
            place = (slice(None), part) if by_columns else part
            np.multiply(self.weight[place], gain[part] if by_columns else gain, out=weight[place])
            if means is not None:
                weight[place] -= means if by_columns else means[place]
        return Affine(weight, self.bias + constant)

    def pick(self, order: Array | slice) -> Affine:
        """Entries of the first axis in the given order; a slice copies nothing."""
        weight = self.weight
        if weight.ndim == 2 and isinstance(order, np.ndarray):
            return Affine(pick_columns(weight.T, order).T, self.bias[order])
        return Affine(weight[order], self.bias[order])


@dataclass(frozen=True, eq=False)
class NormWeights:
    """Gain and bias of a norm, zero bias if it has none; the gain is stored + offset (Gemma stores gain − 1)."""

    stored: Array
    bias: Array
    offset: float = 0.0

    @property
    def gain(self) -> Array:
        full: Array = self.stored + self.offset
        return full

    def changed(self, gain: Array, bias: Array) -> NormWeights:
        """The same norm with another full gain and another bias."""
        return NormWeights(gain - self.offset, bias, self.offset)

    @classmethod
    def plain(cls, width: int) -> NormWeights:
        return cls(np.ones(width), np.zeros(width))


@dataclass(frozen=True, eq=False)
class LatentWeights:
    """A latent gain ∘ n(down u) of multi-head latent attention."""

    down: Affine
    gain: Array


@dataclass(frozen=True, eq=False)
class AttentionWeights:
    """H query heads; T groups of rotated keys and G groups of plain keys and values that the heads share evenly.

    Shapes: turned_query (H, f, ·) and turned_key (T, f, d) complex; query (H, a₀, ·), key (G, a₀, ·), value (G, v, ·);
    output (H, d, v) with one bias (d). T = G except for latent attention, where T = 1 and plain keys and values read
    the key latent, queries the query latent. Gains of a QK-norm are (1 or heads, 2f + a₀): real parts, imaginary parts,
    plain coordinates.
    """

    turned_query: Affine
    turned_key: Affine
    query: Affine
    key: Affine
    value: Affine
    output: Array
    output_bias: Array
    query_gain: Array | None = None
    key_gain: Array | None = None
    sinks: Array | None = None
    query_latent: LatentWeights | None = None
    key_latent: LatentWeights | None = None

    @property
    def heads(self) -> int:
        return int(self.output.shape[0])

    @property
    def groups(self) -> int:
        return int(self.value.weight.shape[0])

    @property
    def turned_groups(self) -> int:
        return int(self.turned_key.weight.shape[0])

    def with_(self, **changes: Any) -> AttentionWeights:
        return replace(self, **changes)


@dataclass(frozen=True, eq=False)
class MLPWeights:
    """down(φ(gate x) ∘ up x), or down(φ(up x)) without gate; hidden units are rows of up and columns of down."""

    gate: Affine | None
    up: Affine
    down: Array
    down_bias: Array

    @property
    def units(self) -> int:
        return int(self.up.weight.shape[0])

    def with_(self, **changes: Any) -> MLPWeights:
        return replace(self, **changes)


@dataclass(frozen=True, eq=False)
class ExpertsWeights:
    """Routed MLPs: router (E, d), a correction of the choice, the experts, and an MLP that always runs."""

    router: Affine
    correction: Array | None
    experts: tuple[MLPWeights, ...]
    shared: MLPWeights | None

    def with_(self, **changes: Any) -> ExpertsWeights:
        return replace(self, **changes)


@dataclass(frozen=True, eq=False)
class LayerWeights:
    """One layer: its sublayers and its norms, keyed ``attention.input``, ``mlp.output``, ``cross.stream`` and so on."""

    attention: AttentionWeights
    mlp: MLPWeights | ExpertsWeights
    norms: Mapping[str, NormWeights] = field(default_factory=dict)
    cross: AttentionWeights | None = None

    def with_(self, **changes: Any) -> LayerWeights:
        return replace(self, **changes)


def pick_columns(matrix: Array, order: Array) -> Array:
    """matrix[:, order], by rows of the transpose where that is how the matrix lies in memory."""
    if matrix.flags.f_contiguous:
        return matrix.T[order].T
    # Indices are known to be good: mode clip only spares numpy a buffer.
    return np.take(matrix, order, axis=1, mode="clip")


BLOCK = 2**17


def row_blocks(array: Array) -> Iterator[slice]:
    """Slices of the first axis of about `BLOCK` entries each, for passes that stay in the cache."""
    step = max(1, BLOCK * len(array) // max(array.size, 1))
    return (slice(start, start + step) for start in range(0, len(array), step))


def parts_of(layer: LayerWeights) -> dict[str, Array]:
    """Every array of a layer by a dotted name, for comparison and for tests."""
    found: dict[str, Array] = {}

    def visit(name: str, value: Any) -> None:
        if isinstance(value, np.ndarray):
            found[name] = value
        elif isinstance(value, Mapping):
            for key, item in value.items():
                visit(f"{name}.{key}", item)
        elif isinstance(value, tuple):
            for index, item in enumerate(value):
                visit(f"{name}.{index}", item)
        elif hasattr(value, "__dataclass_fields__"):
            for key in value.__dataclass_fields__:
                visit(f"{name}.{key}" if name else key, getattr(value, key))

    visit("", layer)
    return found


def distance(one: LayerWeights, other: LayerWeights) -> float:
    """Largest relative difference of two layers over all arrays, measured array by array in the largest norm.

    >>> distance_of(np.ones(2), np.array([1.0, 1.5]))
    0.3333333333333333
    """
    left, right = parts_of(one), parts_of(other)
    if left.keys() != right.keys():
        return float("inf")
    return max((distance_of(left[name], right[name]) for name in left), default=0.0)


def distance_of(a: Array, b: Array) -> float:
    """max |a − b| / max(|a|, |b|), 0 for two zero arrays, infinite for different shapes."""
    if a.shape != b.shape:
        return float("inf")
    if not a.size:
        return 0.0
    size = max(float(np.abs(a).max()), float(np.abs(b).max()))
    return float(np.abs(a - b).max()) / size if size else 0.0
