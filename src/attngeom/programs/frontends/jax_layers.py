"""Layers among the primitives of JAX: convolutions, pools, scatters, linear systems, orders and truth values."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from attngeom.errors import InputError
from attngeom.exact.arrays import Array
from attngeom.programs.builder import Builder
from attngeom.programs.frontends.aten import DataIndex
from attngeom.programs.frontends.aten_layers import convolve
from attngeom.programs.frontends.numpy_function import Traced, as_traced, index_work
from attngeom.programs.frontends.numpy_linear import (
    apply_linear,
    cholesky_function,
    combine_at,
    linear_matrix,
    log_sums,
    lower_upper,
    running,
    solve_triangular,
)

Bind = Callable[..., list[Any]]
"""The primitive itself on plain arrays."""


def _convolution(builder: Builder, bind: Bind, x: Any, kernel: Any, **params: Any) -> Any:
    """Windows of the input, dilated and padded with zeros, contracted with the kernel."""
    import jax

    numbers, parts = params["dimension_numbers"], params["batch_group_count"]
    if parts != 1:
        # Each part of the batch meets its own part of the kernels.
        single = [
            _convolution(builder, bind, *pair, **{**params, "batch_group_count": 1})
            for pair in zip(
                np.split(as_traced(builder, x), parts, numbers.lhs_spec[0]),
                np.split(as_traced(builder, kernel), parts, numbers.rhs_spec[0]),
            )
        ]
        return np.concatenate(single, numbers.out_spec[1])
    edges = [(0, 0, 0), (0, 0, 0)]
    edges += [(low, high, gap - 1) for (low, high), gap in zip(params["padding"], params["lhs_dilation"])]
    x, kernel = as_traced(builder, x), as_traced(builder, kernel)
    x = index_work(builder, lambda a: np.asarray(jax.lax.pad(a.transpose(numbers.lhs_spec), 0, edges)), [x], {})
    count, order = len(params["padding"]), np.argsort(numbers.out_spec)
    result = convolve(
        builder, x, kernel.transpose(numbers.rhs_spec), None, params["window_strides"], [0] * count,
        params["rhs_dilation"], False, [0] * count, params["feature_group_count"],
    )  # fmt: skip
    return np.transpose(result, order)


def _pool(extreme: Callable[..., Any]) -> Callable[..., Any]:
    def pool(builder: Builder, bind: Bind, x: Any, **params: Any) -> Any:
        """The largest or smallest entry of each window: what a sum over the same window would take."""
        import jax

        sizes = {name: params[name] for name in ("window_dimensions", "window_strides", "padding")}
        gaps = {name: params[name] for name in ("base_dilation", "window_dilation")}
        add = partial(jax.lax.reduce_window, init_value=0.0, computation=jax.lax.add, **sizes, **gaps)
        windows, shape = linear_matrix(x.shape, lambda unit: np.asarray(add(jax.numpy.asarray(unit))))
        flat = x.ravel()
        return np.stack([extreme(flat[np.flatnonzero(row)]) for row in windows]).reshape(shape)

    return pool


def _window_sum(builder: Builder, bind: Bind, x: Any, **params: Any) -> Any:
    return apply_linear(x, lambda unit: bind(unit)[0])


def _fixed(places: Any) -> Array:
    if isinstance(places, Traced):
        raise InputError("an index made from data met; give a dense form or a fixed choice")
    return np.asarray(places)


def _scatter(
    builder: Builder, bind: Bind, x: Any, places: Any, updates: Any, *, update_jaxpr: Any = None, **params: Any
) -> Any:
    """Entries at fixed places are replaced: index work, on numbers that are written as floats."""
    index = _fixed(places)
    if update_jaxpr is not None and update_jaxpr.outvars[0] is not update_jaxpr.invars[1]:
        raise InputError("x.at[…].apply met; write it with jnp.where, or set the entries that it computes")

    def put(numbers: Array, others: Array) -> Array:
        return np.asarray(bind(numbers.astype(float), index, others.astype(float))[0])

    return index_work(builder, put, [as_traced(builder, x), as_traced(builder, updates)], {})


def _scatter_add(builder: Builder, bind: Bind, x: Any, places: Any, updates: Any, **params: Any) -> Any:
    index, zeros = _fixed(places), np.zeros(x.shape)
    return x + apply_linear(as_traced(builder, updates), lambda unit: bind(zeros, index, unit)[0])


def _scatter_with(combine: Callable[..., Any]) -> Callable[..., Any]:
    def scatter(builder: Builder, bind: Bind, x: Any, places: Any, updates: Any, **params: Any) -> Any:
        """Each entry is combined with the updates that come to its place: those of which it would take the sum."""
        import jax

        names = ("dimension_numbers", "indices_are_sorted", "unique_indices", "mode")
        own, index = {name: params[name] for name in names}, jax.numpy.asarray(_fixed(places))
        zeros = jax.numpy.zeros(x.shape)
        sums, _ = linear_matrix(updates.shape, lambda unit: np.asarray(jax.lax.scatter_add(zeros, index, unit, **own)))
        entries, others = x.ravel(), as_traced(builder, updates).ravel()
        return combine_at(combine, entries, others, [np.flatnonzero(row).tolist() for row in sums]).reshape(x.shape)

    return scatter


def _factor(builder: Builder, bind: Bind, a: Any, **params: Any) -> list[Any]:
    """The factors of a, one triangle each, without an exchange of rows: what uses them takes P A = L U for any P."""
    x = as_traced(builder, a)
    order = np.broadcast_to(np.arange(x.shape[-1], dtype=np.int32), x.shape[:-1])
    return [lower_upper(x), order, order]


def _cholesky(builder: Builder, bind: Bind, a: Any, **params: Any) -> Any:
    return cholesky_function(partial(as_traced, builder), a)


def _solve(
    builder: Builder, bind: Bind, a: Any, b: Any, *, left_side: bool, lower: bool, transpose_a: bool, **params: Any
) -> Any:
    """a x = b, or x a = b, for a triangle of a."""
    a, b, upper = as_traced(builder, a), as_traced(builder, b), not lower
    if transpose_a:
        a, upper = np.swapaxes(a, -1, -2), not upper
    if not left_side:
        a, b, upper = np.swapaxes(a, -1, -2), np.swapaxes(b, -1, -2), not upper
    result: Any = solve_triangular(partial(as_traced, builder), a, b, upper=upper, unit=params["unit_diagonal"])
    return result if left_side else np.swapaxes(result, -1, -2)


def _sort(builder: Builder, bind: Bind, *arrays: Any, dimension: int, **params: Any) -> Any:
    if len(arrays) > 1:
        raise InputError("argsort, or a sort of several arrays, met; indices of data are not traced: use jnp.sort")
    return np.sort(arrays[0], axis=dimension)


def _largest(builder: Builder, bind: Bind, x: Any, *, k: int, **params: Any) -> list[Any]:
    """The values of a top-k; its places are data."""
    return [np.flip(np.sort(x, axis=-1), -1)[..., :k], DataIndex()]


def _cumulate(function: Callable[..., Any]) -> Callable[..., Any]:
    def run(builder: Builder, bind: Bind, x: Any, *, axis: int, reverse: bool = False, **params: Any) -> Any:
        return np.flip(function(np.flip(x, axis), axis=axis), axis) if reverse else function(x, axis=axis)

    return run


def _all(builder: Builder, bind: Bind, x: Any, *, axes: Any, **params: Any) -> Any:
    return np.prod(as_traced(builder, x), axis=tuple(axes))


def _any(builder: Builder, bind: Bind, x: Any, *, axes: Any, **params: Any) -> Any:
    return 1 - np.prod(1 - as_traced(builder, x), axis=tuple(axes))


def _truth(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda builder, bind, *arrays, **params: function(*(as_traced(builder, x) for x in arrays))


LAYERS: dict[str, Callable[..., Any]] = {
    "conv_general_dilated": _convolution,
    "reduce_window_sum": _window_sum,
    "reduce_window_max": _pool(np.max),
    "reduce_window_min": _pool(np.min),
    "scatter": _scatter,
    "scatter-add": _scatter_add,
    "scatter_add": _scatter_add,
    **dict.fromkeys(("scatter-mul", "scatter_mul"), _scatter_with(np.multiply)),
    **dict.fromkeys(("scatter-max", "scatter_max"), _scatter_with(np.maximum)),
    **dict.fromkeys(("scatter-min", "scatter_min"), _scatter_with(np.minimum)),
    "triangular_solve": _solve,
    "lu": _factor,
    "cholesky": _cholesky,
    "sort": _sort,
    "top_k": _largest,
    "cumsum": _cumulate(np.cumsum),
    "cumprod": _cumulate(np.cumprod),
    "cummax": _cumulate(running(np.maximum)),
    "cummin": _cumulate(running(np.minimum)),
    "cumlogsumexp": _cumulate(log_sums),
    "reduce_and": _all,
    "reduce_or": _any,
    "and": _truth(np.logical_and),
    "or": _truth(np.logical_or),
    "xor": _truth(np.logical_xor),
    "not": _truth(np.logical_not),
}
"""Primitives by name: functions of the builder, the primitive itself, and its arguments; a list is of all results."""
