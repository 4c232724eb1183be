"""How far a tensor of two aligned layers differs, head by head or unit by unit, and what rounding explains of it.

Global norms hide one bad head: every head and every hidden unit is measured on its own. Each factor of a block states
the :class:`Errors` of the tensors on which it acts; where two factors act on rows of one tensor (rotated and plain rows
of a query), their squares add up.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

import numpy as np

from attngeom.exact.arrays import Array
from attngeom.groups.group import root_ratio
from attngeom.limits.rounding import PLAIN_RESIDUAL
from attngeom.models.affine import Affine, row_blocks


class Along(StrEnum):
    """What an entry of the first axis of a tensor is."""

    HEAD = "head"
    UNIT = "unit"
    ROW = "row"


UNPREFIXED = frozenset({"attention", "mlp", "norms", "outside"})
"""Places whose tensors are named without them: no two of them have a tensor of the same name."""


@dataclass(frozen=True)
class TensorPart:
    """A tensor of a layer, or outside of all: ``place`` is a name of its attentions or hidden maps.

    >>> TensorPart("cross", "query", Along.HEAD).name, TensorPart("mlp", "up").bias.name
    ('cross.query', 'up_bias')
    """

    place: str
    tensor: str
    along: Along = field(default=Along.ROW, compare=False)

    @property
    def name(self) -> str:
        """The name of the part in results."""
        return self.tensor if self.place in UNPREFIXED else f"{self.place}.{self.tensor}"

    @property
    def bias(self) -> TensorPart:
        """The constants of a map."""
        return TensorPart(self.place, f"{self.tensor}_bias", self.along)


def norm_part(name: str) -> TensorPart:
    """The gain of a norm."""
    return TensorPart("norms", f"norm {name}")


def norm_bias_part(name: str) -> TensorPart:
    """The bias of a norm."""
    return TensorPart("norms", f"norm bias {name}")


Noise = Mapping[TensorPart, float]
"""Per part, the size of what was summed by folding over the size of what is left: 1 where no digits were lost."""
Loss = Iterator[tuple[TensorPart, float, float]]
"""Parts, the size of what was summed, and of what is left."""


def lost(part: TensorPart, before: float, after: float) -> Loss:
    """What folding lost of one part."""
    yield part, before, after


@dataclass(frozen=True, eq=False)
class Squares:
    """Sums of squares of the differences and of the entries of a tensor, one per head, unit or row."""

    gaps: Array
    sizes: Array

    @property
    def relative(self) -> Array:
        """‖a_i − b_i‖ / ‖a_i‖; 0 where both vanish, 1 where only a vanishes."""
        return root_ratio(self.gaps, self.sizes)

    @property
    def to_mean(self) -> Array:
        """‖a_i − b_i‖ over the root mean square of all ‖a_i‖: for biases, of which single ones may be tiny."""
        gaps, size = np.sqrt(self.gaps), float(np.sqrt(self.sizes.mean()))
        return gaps / size if size else np.where(gaps > 0, 1.0, 0.0)

    def __add__(self, other: Squares) -> Squares:
        return Squares(self.gaps + other.gaps, self.sizes + other.sizes)


def by_entry(a: Array, b: Array) -> Squares:
    """Squares per entry of the first axis."""
    sizes = squares(a)
    return Squares(np.zeros(len(a)) if a is b else squares(a, b), sizes)


def whole(a: Array, b: Array) -> Squares:
    """Squares of all entries together."""
    return by_entry(a[None], b[None])


def gathered(a: Affine, b: Affine, order: Array, factors: Array) -> Squares:
    """The same for rows order[i] of b times factors[i], made piece by piece; by columns if b lies so in memory."""
    scales, plain, columns = factors.astype(b.dtype), bool(np.all(factors == 1)), b.by_columns
    sizes, gaps = np.zeros(len(order)), np.zeros(len(order))
    for part in a.parts(columns=columns):
        rows, other = a.piece(part, columns=columns), b.piece(part, order, columns=columns)
        place = slice(None) if columns else part
        gap = np.subtract(rows, other if plain else np.multiply(other, scales[place, None], out=other), out=other)
        sizes[place] += np.einsum("ij,ij->i", rows, rows)
        gaps[place] += np.einsum("ij,ij->i", gap, gap)
    return Squares(gaps, sizes)


@dataclass(frozen=True, eq=False)
class Errors:
    """The differences of a tensor, and of its constants if it has some, in two aligned layers.

    ``growth``: what rounding makes of it after an alignment by least squares, in units of the roundoff; None for a
    tensor that no matrix aligns.
    """

    part: TensorPart
    weight: Squares
    bias: Squares | None = None
    growth: Array | None = None

    def __add__(self, other: Errors) -> Errors:
        """Rows of one tensor on which two factors act."""
        assert self.growth is not None and other.growth is not None
        weight = self.weight + other.weight
        expected = self.growth**2 * self.weight.sizes + other.growth**2 * other.weight.sizes
        growth = np.sqrt(expected / np.where(weight.sizes > 0, weight.sizes, 1.0))
        bias = self.bias if other.bias is None else other.bias if self.bias is None else self.bias + other.bias
        return Errors(self.part, weight, bias, growth)

    def measured(self) -> Iterator[tuple[TensorPart, Array, Array]]:
        """The parts, their relative differences, and by how much roundoff may have grown there."""
        plain = np.full(self.weight.gaps.shape, PLAIN_RESIDUAL)
        growth = plain if self.growth is None else self.growth
        yield self.part, self.weight.relative, growth
        if self.bias is not None:
            yield self.part.bias, self.bias.to_mean, np.maximum(PLAIN_RESIDUAL, growth)


def norm_errors(name: str, gains: tuple[Array, Array], biases: tuple[Array, Array]) -> Iterator[Errors]:
    """Those of a norm that no reader took up; of a bias only where there is one."""
    yield Errors(norm_part(name), whole(*gains))
    if any(map(np.any, biases)):
        yield Errors(norm_bias_part(name), whole(*biases))


def norms_of(array: Array) -> Array:
    """Root of the sum of squares of every entry of the first axis."""
    return np.sqrt(squares(array))


def squares(array: Array, other: Array | None = None) -> Array:
    """Sum of squares of every entry of the first axis, of the difference if another array is given, block by block."""
    sums = np.empty(len(array))
    for part in row_blocks(array):
        rows = array[part] if other is None else array[part] - other[part]
        rows = rows.reshape(len(rows), -1)
        if np.iscomplexobj(rows):
            rows = np.ascontiguousarray(rows).view(rows.real.dtype)
        sums[part] = np.einsum("ij,ij->i", rows, rows)
    return sums


def size_of(array: Array) -> float:
    """The root of the sum of all squares."""
    return float(np.linalg.norm(array.ravel(order="K")))


def summed_sizes(affine: Affine, shift: Array) -> Array:
    """Root of the sum of squares of what the constant of every row of a map is summed from, block by block."""
    sums = np.empty(affine.bias.shape)
    for part in row_blocks(affine.weight):
        rows = np.abs(affine.weight[part]) ** 2
        sums[part] = np.sqrt(rows @ shift**2 + np.abs(affine.bias[part]) ** 2)
    return sums
