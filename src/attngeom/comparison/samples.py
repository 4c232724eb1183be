"""Quantities of float weights with the errors that inexact weights cause: close, far apart, or neither.

Weights known to relative accuracy τ are the given ones among others: a sample holds a quantity for the given weights
and for copies with independent errors: τ relative to each entry, and half of it relative to the largest entry of its
row, or of its column if that is smaller; zeros are exact. The spread of the copies is the noise of the quantity.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from attngeom.exact import lapack
from attngeom.exact.arrays import swap
from attngeom.exact.domains import RR, Array
from attngeom.limits.rounding import LARGEST_CHANGE, NOISE_EXCLUDED, NOISE_EXPLAINS, SUM_ROUNDING, WORST_AMPLIFIED
from attngeom.limits.trials import NOISE_COPIES
from attngeom.network import Architecture, Head, Weights

Relation = Literal["close", "far", "unclear"]
Layers = list[list[dict[str, Array]]]
"""For each layer and head the tensors of all copies, the given one first."""


def draw_copies(weights: Weights, tolerance: float, seed: int, share: float = 0.5) -> Layers:
    """The given weights and their copies with errors; the same errors for the same seed.

    ``share`` is the part of τ that errors have relative to other entries, at least rounding errors unless it is 0.
    """
    rng = np.random.default_rng(seed)
    layers: Layers = []
    for heads in weights.layers:
        tensors = (head.tensors.items() for head in heads)
        layers.append([{name: _with_errors(a, tolerance, share, rng) for name, a in head} for head in tensors])
    return layers


def _with_errors(a: Array, tolerance: float, share: float, rng: np.random.Generator) -> Array:
    errors = rng.standard_normal((2, NOISE_COPIES, *a.shape))
    others = np.where(a != 0, max(share * tolerance, SUM_ROUNDING) * beside(a), 0.0) if share else 0.0 * a
    return np.concatenate([a[None], a * (1 + tolerance * errors[0]) + others * errors[1]])


def beside(a: Array) -> Array:
    """For each entry the largest one of its row, or of its column if that is smaller."""
    size = np.abs(a)
    columns, rows = (size.max(axis=axis, keepdims=True, initial=0.0) for axis in (0, 1))
    return np.asarray(np.minimum(columns, rows))


def error_sizes(a: Array, tolerance: float) -> Array:
    """The root mean square errors of the entries of a matrix known to a tolerance."""
    return np.asarray(np.hypot(tolerance * a, max(tolerance / 2, SUM_ROUNDING) * beside(a)))


def copy_of(architecture: Architecture, layers: Layers, k: int) -> Weights:
    """The weights of copy k, the given ones for k = 0."""
    heads = [tuple(Head(**{name: a[k] for name, a in head.items()}) for head in layer) for layer in layers]
    return Weights(architecture, RR, tuple(heads))


def spread(values: Array) -> Array:
    """The root mean square of what the copies differ from the given weights, place 0; small numbers do not vanish.

    >>> spread(np.array([0.0, 1e-200, -1e-200])).item()
    1e-200
    """
    changes = values[1:] - values[0]
    largest = np.max(np.abs(changes), axis=0)
    return np.asarray(largest * np.sqrt(np.mean((changes / np.where(largest > 0, largest, 1.0)) ** 2, axis=0)))


@dataclass(frozen=True, eq=False)
class Sample:
    """A quantity times 2^exponent, for the given weights (place 0) and for the copies."""

    values: Array
    exponent: int = 0

    @property
    def value(self) -> Array:
        return np.asarray(self.values[0])

    @property
    def noise(self) -> Array:
        """The root mean square of what the copies differ from the given weights."""
        return spread(self.values)

    def times(self, other: Sample) -> Sample:
        """The matrix product, scaled to entries of size at most 1."""
        return bilinear(np.matmul, self, other).normalised()

    def map(self, function: Callable[[Array], Array]) -> Sample:
        """A linear function of the quantity."""
        return Sample(function(self.values), self.exponent)

    def transposed(self) -> Sample:
        return self.map(swap)

    def entry(self, place: tuple[int, int]) -> Sample:
        """One entry of a matrix, 1×1."""
        row, column = place
        return self.map(lambda a: a[:, row : row + 1, column : column + 1])

    def over(self, number: Sample) -> Sample:
        """The quotient by a number of about its size, without units."""
        return Sample(self.values / number.values)

    def normalised(self) -> Sample:
        """The same quantity with a largest entry between 1/2 and 1."""
        largest = float(np.max(np.abs(self.values[0]), initial=0.0))
        if largest == 0 or not np.isfinite(largest):
            return self
        e = int(np.frexp(largest)[1])
        return Sample(np.ldexp(self.values, -e), self.exponent + e)

    def at(self, exponent: int) -> Sample:
        """The same quantity written with another exponent."""
        return Sample(np.ldexp(self.values, int(np.clip(self.exponent - exponent, -2000, 2000))), exponent)


def value_sample(head: dict[str, Array]) -> Sample:
    """The whole value map of a head, V or O V."""
    V = Sample(head["V"]).normalised()
    return Sample(head["O"]).normalised().times(V) if "O" in head else V


def bilinear(function: Callable[[Array, Array], Array], one: Sample, two: Sample) -> Sample:
    """A bilinear function of two quantities."""
    return Sample(function(one.values, two.values), one.exponent + two.exponent)


def total(parts: Sequence[Sample]) -> Sample:
    """The sum of quantities of any sizes.

    >>> total([Sample(np.array([[1.0]]), 2000), Sample(np.array([[1.0]]), 2001)]).exponent
    2002
    """
    result = parts[0]
    for part in parts[1:]:
        one, two = _in_one_unit(result, part)
        result = Sample(one.values + two.values, one.exponent).normalised()
    return result


def log_ratio(number: Sample, other: Sample) -> Array:
    """log |other / number| for all copies."""
    mantissas = np.log(np.abs(other.values)) - np.log(np.abs(number.values))
    return np.asarray(mantissas + np.log(2) * (other.exponent - number.exponent)).ravel()


def _in_one_unit(one: Sample, two: Sample) -> tuple[Sample, Sample]:
    """Both with one exponent, that of the larger."""
    exponent = max((s.exponent for s in (one, two) if s.value.any()), default=0)
    return one.at(exponent), two.at(exponent)


def relate(one: Sample, two: Sample, tolerance: float) -> Relation:
    """Whether two quantities agree up to their noise, and in every direction up to 10,000 τ; or are far apart.

    Far: some entry differs by 30 times its noise. Unclear is what is left, so that swapping changes nothing.

    >>> a = Sample(np.array([[[1.0]], [[1.1]], [[0.9]]]))
    >>> relate(a, Sample(a.values + 9.0), 0.1)
    'far'
    """
    one, two = _in_one_unit(one, two)
    difference, noise = np.abs(one.value - two.value), np.hypot(one.noise, two.noise)
    if not np.all(np.isfinite(difference)) or not np.all(np.isfinite(noise)):
        return "unclear"
    if np.any(difference > NOISE_EXCLUDED * noise):
        return "far"
    if np.any(difference > NOISE_EXPLAINS * noise):
        return "unclear"
    allowed = min(WORST_AMPLIFIED * tolerance, LARGEST_CHANGE)
    if relative_change(one.value, two.value, noise * (SUM_ROUNDING / max(tolerance, SUM_ROUNDING))) > allowed:
        return "unclear"
    return "close"


def joint(relations: set[Relation]) -> Relation:
    """How quantities compare if their parts compare like this."""
    return "far" if "far" in relations else "close" if relations == {"close"} else "unclear"


def relative_change(a: Array, b: Array, floor: Array) -> float:
    """‖a − b‖ over the smallest singular value of a or b that stands out from rounding, rows and columns equilibrated.

    It bounds what an input sees that avoids the large directions of a matrix. ``floor`` is the size of rounding
    errors of the entries.
    """
    if a.ndim < 2:
        a, b, floor = (x.reshape(1, -1) for x in (a, b, floor))
    rows, columns = _equilibration(np.maximum(np.abs(a), np.abs(b)))
    a, b, floor = (rows * x * columns for x in (a, b, floor))
    gap = float(lapack.svdvals(a - b).max(initial=0.0))
    if gap == 0:
        return 0.0
    lost = 4 * float(np.linalg.norm(floor))
    kept = [values[values > lost] for values in (lapack.svdvals(x) for x in (a, b))]
    smallest = min((float(values[-1]) for values in kept if values.size), default=np.inf)
    return gap / smallest if gap > lost else 0.0


def _equilibration(size: Array) -> tuple[Array, Array]:
    """Powers of two that bring the largest entry of each row and column near 1."""
    rows, columns = np.ones((size.shape[0], 1)), np.ones((1, size.shape[1]))
    for _ in range(3):
        for axis, factors in ((1, rows), (0, columns)):
            largest = np.max(size * rows * columns, axis=axis, keepdims=True, initial=0.0)
            factors *= np.ldexp(1.0, -np.where(largest > 0, np.frexp(largest)[1] // 2, 0))
    return rows, columns


def is_far_from_zero(sample: Sample) -> bool:
    """Whether some entry stands out from its noise, so that no copy is zero."""
    return bool(np.any(np.abs(sample.value) > NOISE_EXCLUDED * sample.noise))


def is_zero(sample: Sample, tolerance: float) -> bool:
    """Whether all entries are zero up to rounding errors."""
    floor = 4 * sample.noise * (SUM_ROUNDING / max(tolerance, SUM_ROUNDING))
    return bool(np.all(np.abs(sample.value) <= floor))


def has_rank_two(sample: Sample) -> bool:
    """Whether the rank is at least two for all copies."""
    rows, columns = _equilibration(np.abs(sample.value))
    values = lapack.svdvals(rows * sample.value * columns)
    noise = float(np.linalg.norm(rows * sample.noise * columns))
    return len(values) > 1 and bool(values[1] > NOISE_EXCLUDED * noise)


def best_known(a: Sample, b: Sample) -> tuple[int, int]:
    """The entry of two matrices that stands out most from its noise in both."""
    with np.errstate(divide="ignore", invalid="ignore"):
        quality = [np.nan_to_num(np.abs(x.value) / x.noise, posinf=1e300) for x in (a, b)]
    row, column = divmod(int(np.argmax(np.minimum(*quality))), a.value.shape[1])
    return row, column
