"""Linear systems, inverses, factors, determinants of traced matrices by elimination of blocks; linear maps.

Elimination divides by leading minors, none of which vanishes at generic weights and inputs unless it always does: then
the program exists nowhere and is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from attngeom.errors import InputError
from attngeom.exact.arrays import Array
from attngeom.limits.memory import LINEAR_ENTRIES
from attngeom.limits.work import SOLVED_SIZE
from attngeom.programs.frontends.numpy_ufuncs import Traced

Wrap = Callable[[Any], Traced]


def _square(x: Traced, what: str) -> Traced:
    if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
        raise InputError(f"{what} of an array of shape {x.shape} met; square matrices are required")
    if x.shape[-1] > SOLVED_SIZE:
        raise InputError(f"{what} of size {x.shape[-1]} met; at most {SOLVED_SIZE} is unrolled")
    return x.plain()


def _eliminate(x: Traced) -> tuple[Traced, Traced, Traced, Traced, Traced]:
    """The inverse of the first block A of [[A, B], [C, D]], with A, B, C and the complement D − C A⁻¹ B."""
    h = x.shape[-1] // 2
    a, b, c = x[..., :h, :h], x[..., :h, h:], x[..., h:, :h]
    inverse = _invert(a)
    return inverse, a, b, c, x[..., h:, h:] - c @ inverse @ b


def _invert(x: Traced) -> Traced:
    if x.shape[-1] == 1:
        return 1 / x
    inverse, _, b, c, complement = _eliminate(x)
    corner = _invert(complement)
    right, left = inverse @ b @ corner, corner @ c @ inverse
    top: Any = np.concatenate([inverse + right @ c @ inverse, -1 * right], axis=-1)
    return np.concatenate([top, np.concatenate([-1 * left, corner], axis=-1)], axis=-2)


def _determinant(x: Traced) -> Traced:
    if x.shape[-1] == 1:
        return x[..., 0, 0]
    _, a, _, _, complement = _eliminate(x)
    return _determinant(a) * _determinant(complement)


def inverse_function(wrap: Wrap, a: Any) -> Any:
    return _invert(_square(wrap(a), "an inverse"))


def determinant_function(wrap: Wrap, a: Any) -> Any:
    return _determinant(_square(wrap(a), "a determinant"))


def solve_function(wrap: Wrap, a: Any, b: Any) -> Any:
    """The solution of a x = b; of a unit triangular system it is a product, without a division."""
    x, y = _square(wrap(a), "a linear system"), wrap(b).plain()
    lower = np.tril(np.ones(x.shape[-2:]), -1)
    for mask in (lower, lower.T):
        if _is_unit_triangular(x, mask):
            return solve_unit_triangular(x * mask, y)
    # As NumPy has it: one axis is a vector, more are matrices.
    return (_invert(x) @ y[..., None])[..., 0] if y.ndim == 1 else _invert(x) @ y


def solve_unit_triangular(strict: Traced, b: Traced) -> Traced:
    """(I + N)⁻¹ b = Π (I + (−N)^(2^k)) b for a strictly triangular matrix N."""
    power, result, size = -1 * strict, b, 1
    while size < strict.shape[-1]:
        result = result + power @ result
        power, size = power @ power, 2 * size
    return result


def solve_triangular(wrap: Wrap, a: Any, b: Any, *, upper: bool, unit: bool) -> Traced:
    """The solution of a x = b where only one triangle of a is read, and of a unit triangular one not the diagonal."""
    x, y = _square(wrap(a), "a triangular system"), wrap(b).plain()
    inner = np.tril(np.ones(x.shape[-2:]), -1)
    strict = x * (inner.T if upper else inner)
    if unit:
        return solve_unit_triangular(strict, y)
    scales: Any = 1 / np.diagonal(x, 0, -2, -1)[..., None]
    return solve_unit_triangular(scales * strict, scales * y)


def lower_upper(a: Traced) -> Traced:
    """L + U − I for a = L U with a unit lower triangular L and an upper triangular U, block by block."""
    x = _square(a, "a linear system")
    if x.shape[-1] == 1:
        return x
    h = x.shape[-1] // 2
    first, b, c, d = lower_upper(x[..., :h, :h]), x[..., :h, h:], x[..., h:, :h], x[..., h:, h:]
    right = solve_triangular(lambda y: y, first, b, upper=False, unit=True)
    # C U⁻¹, from its transpose.
    swapped = [np.swapaxes(y, -1, -2) for y in (first, c)]
    left = np.swapaxes(solve_triangular(lambda y: y, *swapped, upper=False, unit=False), -1, -2)
    top: Any = np.concatenate([first, right], axis=-1)
    return np.concatenate([top, np.concatenate([left, lower_upper(d - left @ right)], axis=-1)], axis=-2)


def cholesky_function(wrap: Wrap, a: Any, /, *, upper: bool = False) -> Any:
    """The lower triangular L with a = L Lᵀ and a positive diagonal; only the lower triangle of a is read."""
    x = _square(wrap(a), "a Cholesky factor")
    factor = _root_of(np.swapaxes(x, -1, -2) if upper else x)
    return np.swapaxes(factor, -1, -2) if upper else factor


def _root_of(x: Traced) -> Traced:
    if x.shape[-1] == 1:
        return np.sqrt(x)
    h = x.shape[-1] // 2
    first, c, d = _root_of(x[..., :h, :h]), x[..., h:, :h], x[..., h:, h:]
    left = np.swapaxes(solve_triangular(lambda y: y, first, np.swapaxes(c, -1, -2), upper=False, unit=False), -1, -2)
    corner = _root_of(d - left @ np.swapaxes(left, -1, -2))
    top: Any = np.concatenate([first, 0 * np.swapaxes(c, -1, -2)], axis=-1)
    return np.concatenate([top, np.concatenate([left, corner], axis=-1)], axis=-2)


def _is_unit_triangular(x: Traced, mask: Array) -> bool:
    """Whether all entries outside of the mask are those of the identity, by the sum that made the matrix."""
    node, builder = x.builder.nodes[x.node], x.builder
    if node.operation != "add" or len(node.inputs) != 2 or node.data["coefficients"] not in ((1, 1), (1, -1)):
        return False
    for (eye, sign), (other, _) in (pair := list(zip(node.inputs, node.data["coefficients"])), pair[::-1]):
        values, part = builder.exact(eye), builder.nodes[other]
        if values is None or not np.array_equal(sign * values, np.broadcast_to(np.eye(x.shape[-1]), x.shape)):
            continue
        if part.operation == "gather":
            return bool(np.all(part.data["index"].reshape(x.shape)[..., mask == 0] < 0))
    return False


def cumulative_product(wrap: Wrap, a: Any, axis: Any = None, **options: Any) -> Any:
    x = wrap(a).plain()
    if axis is None:
        x, axis = x.ravel(), 0
    parts = [np.take(x, 0, axis=axis)]
    for k in range(1, x.shape[axis]):
        parts.append(parts[-1] * np.take(x, k, axis=axis))
    return np.stack(parts, axis=axis)


def running(combine: Callable[..., Any]) -> Callable[[Any, int], Any]:
    """What a function of two arrays makes of all entries of an axis so far."""

    def run(x: Any, axis: int) -> Any:
        parts = accumulate((np.take(x, k, axis=axis) for k in range(x.shape[axis])), combine)
        return np.stack(list(parts), axis=axis)

    return run


def log_sums(x: Any, axis: int) -> Any:
    """log(exp x₁ + … + exp x_k) for each k; the first is x₁."""
    sums = accumulate((np.exp(np.take(x, k, axis=axis)) for k in range(x.shape[axis])), np.add)
    return np.stack([np.log(total) for total in sums], axis=axis)


def combine_at(
    combine: Callable[..., Any], start: Any, values: Any, places: Sequence[Sequence[int]], include_start: bool = True
) -> Any:
    """Each entry with those of the values that come to its place; without the entry itself, where there are some."""
    results = []
    for entry, own in zip(start, places):
        # −∞ is what a maximum starts from.
        is_number = isinstance(entry, NDArrayOperatorsMixin) or np.isfinite(entry)
        parts = [entry] if not own or (include_start and is_number) else []
        results.append(reduce(combine, [*parts, *(values[k] for k in own)]))
    return np.stack(results)


def apply_linear(x: Traced, function: Callable[[Array], Any]) -> Any:
    """A linear map of an array, by what it does with the unit vectors."""
    matrix, shape = linear_matrix(x.shape, function)
    return np.reshape(matrix @ x.plain().ravel(), shape)


def linear_matrix(shape: tuple[int, ...], function: Callable[[Array], Any]) -> tuple[Array, tuple[int, ...]]:
    """The matrix of a linear map of arrays of this shape, and the shape of its results."""
    size = int(np.prod(shape, dtype=object))
    out = np.asarray(function(np.zeros(shape)))
    if out.size * size > LINEAR_ENTRIES:
        raise InputError(f"a linear map of {size:,} to {out.size:,} numbers met; take smaller sizes, or use einsum")
    columns = [np.asarray(function(unit.reshape(shape))).ravel() for unit in np.eye(size)]
    return np.stack(columns, axis=1), out.shape
