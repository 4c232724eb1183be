"""Core ATen: running sums and products, linear systems, and writes to fixed places."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from attngeom.errors import InputError
from attngeom.programs.builder import Builder
from attngeom.programs.frontends.aten import OPERATIONS, DataIndex, rule
from attngeom.programs.frontends.numpy_function import Traced, as_traced, index_work
from attngeom.programs.frontends.numpy_linear import (
    cholesky_function,
    combine_at,
    determinant_function,
    inverse_function,
    log_sums,
    running,
    solve_function,
    solve_triangular,
)

__all__ = ["OPERATIONS"]
"""The table of :mod:`attngeom.programs.frontends.aten`, with the rows of this file."""


@rule("cumsum")
def _cumulate(builder: Builder, x: Any, axis: int, **options: Any) -> Any:
    return np.cumsum(x, axis=axis)


@rule("cumprod")
def _multiply_up(builder: Builder, x: Any, axis: int, **options: Any) -> Any:
    return np.cumprod(x, axis=axis)


@rule("logcumsumexp")
def _cumulate_exponentials(builder: Builder, x: Any, axis: int) -> Any:
    return log_sums(x, axis)


@rule("cummax")
def _largest_so_far(builder: Builder, x: Any, axis: int) -> Any:
    return running(np.maximum)(x, axis), DataIndex()


@rule("cummin")
def _least_so_far(builder: Builder, x: Any, axis: int) -> Any:
    return running(np.minimum)(x, axis), DataIndex()


@rule("linalg_inv_ex")
def _invert(builder: Builder, x: Any, **options: Any) -> Any:
    return inverse_function(partial(as_traced, builder), x), DataIndex()


@rule("_linalg_solve_ex")
def _solve(builder: Builder, a: Any, b: Any, *, left: bool = True, **options: Any) -> Any:
    if not left:
        return np.swapaxes(_solve(builder, np.swapaxes(a, -1, -2), np.swapaxes(b, -1, -2))[0], -1, -2), None, None, None
    # A vector is one if it has an axis less than the matrices.
    is_vector = len(b.shape) == len(a.shape) - 1
    result = solve_function(partial(as_traced, builder), a, b[..., None] if is_vector else b)
    return (result[..., 0] if is_vector else result), None, None, None


@rule("_linalg_det")
def _determinant(builder: Builder, x: Any) -> Any:
    return determinant_function(partial(as_traced, builder), x), None, None


@rule("linalg_solve_triangular")
def _solve_triangular(
    builder: Builder, a: Any, b: Any, *, upper: bool, left: bool = True, unitriangular: bool = False
) -> Any:
    if not left:
        a, b = np.swapaxes(a, -1, -2), np.swapaxes(b, -1, -2)
    wrap = partial(as_traced, builder)
    result: Any = solve_triangular(wrap, a, b, upper=upper == left, unit=unitriangular)
    return result if left else np.swapaxes(result, -1, -2)


@rule("linalg_cholesky_ex")
def _cholesky(builder: Builder, x: Any, *, upper: bool = False, **options: Any) -> Any:
    return cholesky_function(partial(as_traced, builder), x, upper=upper), DataIndex()


@rule("cholesky_solve")
def _solve_by_root(builder: Builder, b: Any, factor: Any, upper: bool = False) -> Any:
    wrap = partial(as_traced, builder)
    lower = np.swapaxes(factor, -1, -2) if upper else factor
    inner = solve_triangular(wrap, lower, b, upper=False, unit=False)
    return solve_triangular(wrap, np.swapaxes(lower, -1, -2), inner, upper=True, unit=False)


@rule("_linalg_slogdet")
def _log_determinant(builder: Builder, x: Any) -> Any:
    determinant: Any = determinant_function(partial(as_traced, builder), x)
    return np.sign(determinant), np.log(np.abs(determinant)), DataIndex(), DataIndex()


@rule("index_put")
def _put(builder: Builder, x: Any, places: Sequence[Any], values: Any, accumulate: bool = False) -> Any:
    """Entries at fixed places are replaced: index work on both arrays."""
    if any(isinstance(place, Traced) for place in places):
        raise InputError("an index made from data met; give a dense form or a fixed choice")
    key = tuple(slice(None) if place is None else np.asarray(place) for place in places)
    if accumulate:
        return _accumulate(x, np.arange(x.size).reshape(x.shape)[key], as_traced(builder, values))

    def put(numbers: Any, others: Any) -> Any:
        changed = numbers.copy()
        changed[key] = others
        return changed

    return index_work(builder, put, [as_traced(builder, x), as_traced(builder, values)], {})


def _accumulate(x: Any, targets: Any, values: Any) -> Any:
    """x with values added at fixed places, several of which may be equal: one sum for each time that a place occurs."""
    spread = np.broadcast_to(np.arange(values.size).reshape(values.shape), targets.shape).ravel()
    order = np.argsort(targets.ravel(), kind="stable")
    sorted_targets = targets.ravel()[order]
    turns = np.arange(len(order)) - np.searchsorted(sorted_targets, sorted_targets)
    shape = x.shape
    for turn in range(int(turns.max(initial=-1)) + 1):
        own = turns == turn
        numbers = np.zeros(x.size, dtype=np.int64)
        numbers[sorted_targets[own]] = 1 + spread[order[own]]
        x = x + values.move(lambda given, numbers=numbers: np.append(0, given.ravel())[numbers].reshape(shape))
    return x


@rule("scatter")
def _scatter(builder: Builder, x: Any, axis: int, places: Any, source: Any) -> Any:
    """Entries at fixed places of one axis are replaced."""
    targets = _targets(x, axis, places)
    values = np.full(targets.shape, float(source)) if isinstance(source, (int, float)) else source

    def put(numbers: Any, others: Any) -> Any:
        changed = numbers.copy().ravel()
        changed[targets] = others[tuple(map(slice, targets.shape))]
        return changed.reshape(numbers.shape)

    return index_work(builder, put, [as_traced(builder, x), as_traced(builder, values)], {})


@rule("scatter_add")
def _scatter_add(builder: Builder, x: Any, axis: int, places: Any, source: Any) -> Any:
    targets = _targets(x, axis, places)
    return _accumulate(x, targets, as_traced(builder, source)[tuple(map(slice, targets.shape))])


def _targets(x: Any, axis: int, places: Any) -> Any:
    """The flat places that a scatter along an axis writes to."""
    if isinstance(places, Traced):
        raise InputError("an index made from data met; give a dense form or a fixed choice")
    grid = list(np.indices(np.shape(places)))
    grid[axis] = np.asarray(places)
    return np.arange(x.size).reshape(x.shape)[tuple(grid)]


@rule("index_add")
def _index_add(builder: Builder, x: Any, axis: int, places: Any, source: Any, *, alpha: Any = 1) -> Any:
    """Slices of one array are added to those of another at fixed places."""
    if isinstance(places, Traced):
        raise InputError("an index made from data met; give a dense form or a fixed choice")
    targets = np.take(np.arange(x.size).reshape(x.shape), np.asarray(places), axis=axis)
    return _accumulate(x, targets, as_traced(builder, source if alpha == 1 else alpha * source))


@rule("scatter_reduce")
def _scatter_with(
    builder: Builder, x: Any, axis: int, places: Any, source: Any, reduction: str, *, include_self: bool = True
) -> Any:
    """Each entry with those that come to its place; means are sums by the number of these."""
    targets = _targets(x, axis, places)
    values = as_traced(builder, source)[tuple(map(slice, targets.shape))]
    lists: list[list[int]] = [[] for _ in range(x.size)]
    for k, target in enumerate(targets.ravel().tolist()):
        lists[target].append(k)
    start: Any = as_traced(builder, x).ravel()
    total = combine_at(REDUCTIONS[reduction], start, values.ravel(), lists, include_self)
    if reduction == "mean":
        counts = [max(1, len(own) + include_self) if own else 1 for own in lists]
        total = total * (1 / np.array(counts))
    return np.reshape(total, x.shape)


REDUCTIONS = {"sum": np.add, "mean": np.add, "prod": np.multiply, "amax": np.maximum, "amin": np.minimum}
"""What a scatter makes of several entries."""
