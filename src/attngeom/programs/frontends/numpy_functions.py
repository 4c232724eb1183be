"""What array functions of NumPy become in a program: a table of rules, and a list of index work."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import reduce
from typing import Any

import numpy as np

from attngeom.errors import InputError
from attngeom.programs.frontends.maxima import Maximum, Shift
from attngeom.programs.frontends.numpy_linear import (
    cholesky_function,
    cumulative_product,
    determinant_function,
    inverse_function,
    solve_function,
)
from attngeom.programs.frontends.numpy_ufuncs import Traced, exact_fraction, new

Wrap = Callable[[Any], Traced]

_INDEX_WORK = """
reshape ravel transpose permute_dims matrix_transpose swapaxes moveaxis rollaxis expand_dims squeeze
concatenate concat stack vstack hstack dstack column_stack block split array_split hsplit vsplit
dsplit unstack broadcast_to broadcast_arrays tile repeat roll flip fliplr flipud rot90 tril triu
diag diagonal diagflat pad take take_along_axis compress delete atleast_1d atleast_2d atleast_3d
copy append
"""
INDEX_FUNCTIONS = frozenset(_INDEX_WORK.split())
"""Functions of NumPy that move entries, put zeros or leave entries out: they are run on numbers."""


def axes_of(x: Traced, axis: Any) -> tuple[int, ...]:
    if axis is None:
        return tuple(range(x.ndim))
    given = axis if isinstance(axis, (tuple, list)) else (axis,)
    for n in given:
        if not -x.ndim <= n < x.ndim:
            raise InputError(f"axis {n} of an array of shape {x.shape} met; it does not exist")
    return tuple(n % x.ndim for n in given)


def sum_function(
    wrap: Wrap, a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = False
) -> Any:
    x = wrap(a)
    axes = axes_of(x, axis)
    shift = None if x.shift is None else x.shift.over(axes, bool(keepdims))
    if shift is None or x.lost is not None:
        x, shift = x.plain(), None
    return new(x, x.builder.sum(x.node, axes, bool(keepdims)), None, shift)


def mean_function(
    wrap: Wrap, a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = False
) -> Any:
    x = wrap(a).plain()
    return new(x, x.builder.mean(x.node, axes_of(x, axis), bool(keepdims)))


def variance_function(
    wrap: Wrap, a: Any, axis: Any = None, dtype: Any = None, out: Any = None, ddof: int = 0, keepdims: Any = False
) -> Any:
    x = wrap(a).plain()
    axes, builder = axes_of(x, axis), x.builder
    count = int(np.prod([x.shape[k] for k in axes]))
    if count <= ddof:
        raise InputError(f"np.var of {count} numbers with ddof = {ddof} met; more numbers are required")
    centred = builder.subtract(x.node, builder.mean(x.node, axes, keepdims=True))
    total = builder.sum(builder.multiply(centred, centred), axes, bool(keepdims))
    return new(x, builder.multiply(total, builder.constant(np.array(Fraction(1, count - ddof), dtype=object))))


def maximum_over(x: Traced, axes: tuple[int, ...], keepdims: bool) -> Traced:
    """The largest entry over some axes, by comparisons; −∞ is compared with nothing."""
    moved = np.moveaxis(x, axes, range(len(axes)))
    rest = moved.shape[len(axes) :]
    flat = moved.reshape((-1, *rest))
    largest = reduce(np.maximum, flat) if x.lost is None else _largest_present(flat)
    shape = [1 if k in axes else n for k, n in enumerate(x.shape)] if keepdims else list(rest)
    return largest.reshape(shape)


def _largest_present(x: Traced) -> Traced:
    """The largest entry of each column, flattened, of those that are not −∞."""
    columns = x.reshape(len(x), -1)
    gone = columns.lost
    counts = (~gone).sum(axis=0)
    if not counts.all():
        raise InputError("the maximum of entries that are all −∞ met; leave one that is not masked")
    order = gone.argsort(axis=0, kind="stable")
    ordered = new(x, columns.move(lambda numbers: np.take_along_axis(numbers, order, axis=0)).node)
    largest: Traced = ordered[0]
    for k in range(1, counts.max()):
        open_ones = np.flatnonzero(counts > k)
        raised = np.maximum(largest[open_ones], ordered[k][open_ones])
        place = np.arange(len(counts))
        place[open_ones] = len(counts) + np.arange(len(open_ones))
        largest = np.concatenate([largest, raised])[place]
    return largest


def max_function(wrap: Wrap, a: Any, axis: Any = None, out: Any = None, keepdims: Any = False) -> Any:
    """The maximum; where it keeps the axes it may be one that a softmax subtracts, and waits for that."""
    x = wrap(a)
    axes = axes_of(x, axis)
    if keepdims and x.shift is None:
        place = x.move(lambda numbers: numbers.min(axis=axes, keepdims=True))
        gone = () if x.lost is None else tuple(np.flatnonzero(x.lost).tolist())
        return new(x, place.node, None, Shift(Maximum(x.node, gone, axes), np.arange(place.size).reshape(place.shape)))
    return maximum_over(x.unshifted(), axes, bool(keepdims))


def min_function(wrap: Wrap, a: Any, axis: Any = None, out: Any = None, keepdims: Any = False) -> Any:
    x = -1 * wrap(a).plain()
    return -1 * maximum_over(x, axes_of(x, axis), bool(keepdims))


def prod_function(wrap: Wrap, a: Any, axis: Any = None, **options: Any) -> Any:
    x = wrap(a).plain()
    axes = axes_of(x, axis)
    moved = np.moveaxis(x, axes, range(len(axes)))
    flat = moved.reshape((-1, *moved.shape[len(axes) :]))
    result = flat[0]
    for k in range(1, len(flat)):
        result = result * flat[k]
    return result


def cumsum_function(wrap: Wrap, a: Any, axis: Any = None, **options: Any) -> Any:
    x = wrap(a).plain()
    if axis is None:
        x, axis = x.ravel(), 0
    n = x.shape[axis]
    moved = np.moveaxis(x, axis, -1)
    return np.moveaxis(moved @ np.triu(np.ones((n, n))), -1, axis)


def where_function(wrap: Wrap, condition: Any, *choices: Any) -> Any:
    """np.where: with a fixed condition entries are picked, with a pattern of data they are mixed."""
    if len(choices) != 2:
        raise InputError("np.where with one argument met while tracing; give both choices")
    a, b = map(wrap, choices)
    if isinstance(condition, type(a)):
        a, b = a.plain(), b.plain()
        return b + condition * (a - b)
    flags = np.asarray(condition).astype(bool)
    shape = np.broadcast_shapes(flags.shape, a.shape, b.shape)
    own, other, taken = (a, b, flags) if b.shift is None else (b, a, ~flags)
    shift = own.shift
    if shift is not None and shift.kind == "divided" and other.shift is None and exact_fraction(other) == 0:
        shift = shift.at(np.where(taken, shift.spread(shape).places, -1))
    elif shift is not None:
        a, b, shift = a.unshifted(), b.unshifted(), None
    parts: list[Traced] = [np.broadcast_to(part, shape) for part in (a, b)]
    x, y = parts
    first, second = x.builder.numbers([x.node, y.node])
    lost = [np.zeros(shape, bool) if part.lost is None else part.lost for part in (x, y)]
    node = a.builder.move([x.node, y.node], np.where(flags, first, second))
    return new(a, node, np.where(flags, *lost), shift)


def einsum_function(wrap: Wrap, subscripts: str, *operands: Any, **options: Any) -> Any:
    arrays = [wrap(x).plain() for x in operands]
    builder = arrays[0].builder
    terms, arrow, out = subscripts.replace(" ", "").partition("->")
    words = terms.split(",")
    if "..." in subscripts:
        spare = [letter for letter in "ABCDEFGHIJKLMNOPQRSTUVWXYZ" if letter not in subscripts]
        longest = max(x.ndim - len(w.replace("...", "")) for w, x in zip(words, arrays) if "..." in w)
        fill = "".join(spare[:longest])
        counts = [x.ndim - len(w.replace("...", "")) for w, x in zip(words, arrays)]
        words = [w.replace("...", fill[longest - n :] if n else "") for w, n in zip(words, counts)]
        free = "".join(words)
        out = (
            out.replace("...", fill)
            if arrow
            else fill + "".join(sorted(x for x in set(free) - set(fill) if free.count(x) == 1))
        )
        arrow = "->"
    return new(arrays[0], builder.contract(",".join(words) + arrow + out, *(x.node for x in arrays)))


def tensordot_function(wrap: Wrap, a: Any, b: Any, axes: Any = 2) -> Any:
    x, y = wrap(a).plain(), wrap(b).plain()
    if isinstance(axes, int):
        left, right = list(range(x.ndim - axes, x.ndim)), list(range(axes))
    else:
        left, right = ([part] if isinstance(part, int) else list(part) for part in axes)
    letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
    first = letters[: x.ndim]
    second = list(letters[x.ndim : x.ndim + y.ndim])
    for m, n in zip(left, right):
        second[n] = first[m % x.ndim]
    summed = {first[m % x.ndim] for m in left}
    out = "".join(l for l in (*first, *second) if l not in summed)
    return new(x, x.builder.contract(f"{first},{''.join(second)}->{out}", x.node, y.node))


def dot_function(wrap: Wrap, a: Any, b: Any, out: Any = None) -> Any:
    x, y = wrap(a).plain(), wrap(b).plain()
    if not x.ndim or not y.ndim:
        return x * y
    return tensordot_function(wrap, x, y, ([-1 % x.ndim], [(-2 if y.ndim > 1 else -1) % y.ndim]))


def outer_function(wrap: Wrap, a: Any, b: Any, out: Any = None) -> Any:
    return tensordot_function(wrap, wrap(a).ravel(), wrap(b).ravel(), 0)


def inner_function(wrap: Wrap, a: Any, b: Any) -> Any:
    return tensordot_function(wrap, a, b, ([-1 % wrap(a).ndim], [-1 % wrap(b).ndim]))


def norm_function(wrap: Wrap, x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:
    if ord not in (None, 2, "fro") or (ord == 2 and axis is None and wrap(x).ndim > 1):
        raise InputError(f"np.linalg.norm with ord = {ord} met; the Euclidean norm is known")
    a = wrap(x).plain()
    return np.sqrt(sum_function(wrap, a * a, axis, keepdims=keepdims))


def clip_function(wrap: Wrap, a: Any, a_min: Any = None, a_max: Any = None, *, min: Any = None, max: Any = None) -> Any:
    low, high = (a_min if min is None else min), (a_max if max is None else max)
    x = wrap(a).plain()
    x = x if low is None else np.maximum(x, low)
    return x if high is None else np.minimum(x, high)


def trace_function(wrap: Wrap, a: Any, *args: Any, **options: Any) -> Any:
    return einsum_function(wrap, "ii...->...", a)


def like_function(value: int) -> Callable[..., Any]:
    return lambda wrap, a, *args, **options: np.full(wrap(a).shape, float(value))


def sort_function(wrap: Wrap, a: Any, axis: Any = -1, **options: Any) -> Any:
    """np.sort, by the pattern of the order, which is constant on a region."""
    x = wrap(a).plain()
    moved = np.moveaxis(x, axis, -1)
    places = new(x, x.builder.order(moved.node))
    return np.moveaxis(np.flip(np.einsum("...ki,...i->...k", places, moved), -1), -1, axis)


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "sum": sum_function,
    "mean": mean_function,
    "average": lambda wrap, a, axis=None: mean_function(wrap, a, axis),
    "var": variance_function,
    "std": lambda wrap, a, axis=None, **options: np.sqrt(variance_function(wrap, a, axis, **options)),
    "max": max_function,
    "amax": max_function,
    "min": min_function,
    "amin": min_function,
    "prod": prod_function,
    "cumsum": cumsum_function,
    "where": where_function,
    "einsum": einsum_function,
    "tensordot": tensordot_function,
    "dot": dot_function,
    "vdot": lambda wrap, a, b: dot_function(wrap, wrap(a).ravel(), wrap(b).ravel()),
    "inner": inner_function,
    "outer": outer_function,
    "kron": lambda wrap, a, b: np.einsum("ij,kl->ikjl", wrap(a), wrap(b)).reshape(
        wrap(a).shape[0] * wrap(b).shape[0], -1
    ),
    "trace": trace_function,
    "norm": norm_function,
    "clip": clip_function,
    "sort": sort_function,
    "cumprod": cumulative_product,
    "solve": solve_function,
    "inv": inverse_function,
    "det": determinant_function,
    "cholesky": cholesky_function,
    "zeros_like": like_function(0),
    "ones_like": like_function(1),
    "shape": lambda wrap, a: wrap(a).shape,
    "ndim": lambda wrap, a: wrap(a).ndim,
    "size": lambda wrap, a, axis=None: wrap(a).size if axis is None else wrap(a).shape[axis],
    "multi_dot": lambda wrap, arrays: reduce(lambda a, b: a @ b, map(wrap, arrays)),
    "nan_to_num": lambda wrap, a, **options: wrap(a),
    "result_type": lambda wrap, *arrays: np.dtype(np.float64),
}
"""Array functions by name: wrap makes a traced array of an argument."""
