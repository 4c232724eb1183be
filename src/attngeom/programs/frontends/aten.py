"""What the operations of core ATen become: index work, which PyTorch does on numbers, and a table of the others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from attngeom.errors import InputError
from attngeom.programs.builder import Builder
from attngeom.programs.frontends.numpy_function import Traced, as_traced, index_work
from attngeom.programs.frontends.numpy_linear import (
    determinant_function,
    inverse_function,
    solve_function,
    solve_triangular,
)

_MOVES = """
view reshape _unsafe_view permute transpose t expand unsqueeze squeeze slice select cat stack split split_with_sizes
unbind unfold constant_pad_nd flip roll repeat index_select index gather tril triu diagonal narrow movedim alias_copy
view_copy expand_copy permute_copy as_strided slice_scatter select_scatter diagonal_scatter select_copy slice_copy
unsqueeze_copy squeeze_copy transpose_copy split_with_sizes_copy repeat_interleave pixel_shuffle
"""
INDEX_WORK = frozenset(_MOVES.split())
"""Operations that move entries, put zeros or leave entries out."""
_LINEAR = """
upsample_linear1d upsample_bilinear2d upsample_trilinear3d upsample_bicubic2d _upsample_bilinear2d_aa
_upsample_bicubic2d_aa _adaptive_avg_pool2d _adaptive_avg_pool3d adaptive_avg_pool1d
"""
LINEAR = frozenset(_LINEAR.split())
"""Operations that are linear in their first argument, and read off unit vectors."""
_RANDOM = "rand randn rand_like randn_like randint randperm bernoulli multinomial native_dropout normal"
RANDOM = frozenset(_RANDOM.split())
_CHECKS = "_assert_tensor_metadata _assert_scalar _assert_async sym_constrain_range_for_size _linalg_check_errors"
IGNORED = frozenset(_CHECKS.split())

CASTS = "conversions between floating point types are left out: this is about the network in exact numbers"

Rule = Callable[..., Any]
OPERATIONS: dict[str, Rule] = {}
"""By the name of the operation: a function of the builder and its arguments."""


def rule(*names: str) -> Callable[[Rule], Rule]:
    def enter(function: Rule) -> Rule:
        OPERATIONS.update(dict.fromkeys(names, function))
        return function

    return enter


def plain(function: Callable[..., Any]) -> Rule:
    """A function of NumPy that takes the same arguments."""
    return lambda builder, *args: function(*args)


OPERATIONS |= {
    "neg": plain(np.negative),
    "exp": plain(np.exp),
    "log": plain(np.log),
    "log1p": plain(lambda x: np.log(1 + x)),
    "expm1": plain(lambda x: np.exp(x) - 1),
    "sqrt": plain(np.sqrt),
    "rsqrt": plain(lambda x: 1 / np.sqrt(x)),
    "reciprocal": plain(lambda x: 1 / x),
    "tanh": plain(np.tanh),
    "sigmoid": plain(lambda x: 1 / (1 + np.exp(-1 * x))),
    "abs": plain(np.abs),
    "sign": plain(np.sign),
    "square": plain(lambda x: x * x),
    "relu": plain(lambda x: np.maximum(x, 0)),
    "silu": plain(lambda x: x * (1 / (1 + np.exp(-1 * x)))),
    "maximum": plain(np.maximum),
    "minimum": plain(np.minimum),
    "mul": plain(np.multiply),
    "mm": plain(np.matmul),
    "bmm": plain(np.matmul),
    "matmul": plain(np.matmul),
    "mv": plain(np.matmul),
    "dot": plain(np.matmul),
    "eq": plain(np.equal),
    "ne": plain(np.not_equal),
    "gt": plain(np.greater),
    "ge": plain(np.greater_equal),
    "lt": plain(np.less),
    "le": plain(np.less_equal),
    "logical_and": plain(np.logical_and),
    "logical_or": plain(np.logical_or),
    "logical_not": plain(np.logical_not),
    "bitwise_and": plain(np.bitwise_and),
    "bitwise_or": plain(np.bitwise_or),
    "bitwise_not": plain(np.bitwise_not),
    "bitwise_xor": plain(np.bitwise_xor),
    "logical_xor": plain(np.logical_xor),
    "where": plain(np.where),
    "floor": plain(np.floor),
    "fmod": plain(np.fmod),
    "remainder": plain(np.remainder),
}


@rule("erf")
def _erf(builder: Builder, x: Any) -> Any:
    """erf x = 2 Φ(√2 x) − 1."""
    from scipy.special import erf

    return erf(x)


def _add(sign: int) -> Rule:
    def add(builder: Builder, a: Any, b: Any, *, alpha: Any = 1) -> Any:
        b = b if alpha == 1 else alpha * b
        return a + b if sign > 0 else a - b

    return add


OPERATIONS |= {"add": _add(1), "sub": _add(-1)}


@rule("rsub")
def _reversed(builder: Builder, a: Any, b: Any, alpha: Any = 1) -> Any:
    return b - alpha * a


@rule("div")
def _divide(builder: Builder, a: Any, b: Any, *, rounding_mode: str | None = None) -> Any:
    if rounding_mode is None:
        return a / b
    raise InputError(f"data divided and rounded ({rounding_mode}) met; a network of integers is not traced")


@rule("pow")
def _power(builder: Builder, x: Any, exponent: Any) -> Any:
    return np.power(x, exponent)


@rule("_trilinear")
def _bilinear(builder: Builder, a: Any, kernel: Any, b: Any, *rest: Any) -> Any:
    """Σ a_i W_oij b_j for each row, as nn.Bilinear calls it."""
    if [list(part) for part in rest[:4]] != [[1, 3], [0], [1, 2], [2, 3]]:
        raise InputError("a trilinear form that is not that of nn.Bilinear met; write it with einsum")
    return np.einsum("bi,oij,bj->bo", a, kernel, b)


@rule("addmm")
def _affine(builder: Builder, bias: Any, a: Any, b: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
    return beta * bias + alpha * np.matmul(a, b) if (beta, alpha) != (1, 1) else bias + np.matmul(a, b)


def _circle(part: int) -> Rule:
    def function(builder: Builder, x: Any) -> Any:
        """Tables of constant angles are points of the circle, one class for each frequency."""
        if isinstance(x, Traced):
            return (np.cos, np.sin)[part](x)
        return Traced(builder, builder.circle(x)[part])

    return function


OPERATIONS |= {"cos": _circle(0), "sin": _circle(1)}


@rule("clamp", "hardtanh")
def _clamp(builder: Builder, x: Any, low: Any = None, high: Any = None, **options: Any) -> Any:
    low, high = options.get("min", low), options.get("max", high)
    x = x if low is None or _is_number(low, -np.inf) else np.maximum(x, low)
    return x if high is None or _is_number(high, np.inf) else np.minimum(x, high)


def _is_number(bound: Any, number: float) -> bool:
    return isinstance(bound, (int, float)) and bound == number


@rule("gelu")
def _gelu(builder: Builder, x: Any, *, approximate: str = "none") -> Any:
    if approximate == "tanh":
        return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x * x * x)))
    x = as_traced(builder, x).plain()
    return Traced(builder, builder.gelu(x.node))


@rule("softplus")
def _softplus(builder: Builder, x: Any, beta: Any = 1, threshold: Any = 20) -> Any:
    """log(1 + exp(βx))/β; PyTorch puts x above the threshold, where the two agree in all digits."""
    return np.log(1 + np.exp(beta * x)) / beta


@rule("leaky_relu")
def _leaky(builder: Builder, x: Any, slope: Any = 0.01) -> Any:
    return np.maximum(x, 0) + slope * np.minimum(x, 0)


@rule("elu")
def _elu(builder: Builder, x: Any, alpha: Any = 1, scale: Any = 1, input_scale: Any = 1) -> Any:
    below = np.minimum(x, 0)
    return scale * (np.maximum(x, 0) + alpha * (np.exp(input_scale * below) - 1))


@rule("sum")
def _sum(builder: Builder, x: Any, axes: Any = None, keepdims: bool = False, **options: Any) -> Any:
    return np.sum(x, axis=read_axes(axes), keepdims=keepdims)


@rule("mean")
def _mean(builder: Builder, x: Any, axes: Any = None, keepdims: bool = False, **options: Any) -> Any:
    return np.mean(x, axis=read_axes(axes), keepdims=keepdims)


@rule("var")
def _variance(builder: Builder, x: Any, axes: Any = None, *, correction: Any = 1, keepdim: bool = False) -> Any:
    return np.var(x, axis=read_axes(axes), ddof=int(correction or 0), keepdims=keepdim)


@rule("amax")
def _maximum(builder: Builder, x: Any, axes: Any = (), keepdims: bool = False) -> Any:
    return np.max(x, axis=read_axes(axes), keepdims=keepdims)


@rule("amin")
def _minimum(builder: Builder, x: Any, axes: Any = (), keepdims: bool = False) -> Any:
    return np.min(x, axis=read_axes(axes), keepdims=keepdims)


@rule("cumsum")
def _cumulate(builder: Builder, x: Any, axis: int, **options: Any) -> Any:
    return np.cumsum(x, axis=axis)


@rule("cumprod")
def _multiply_up(builder: Builder, x: Any, axis: int, **options: Any) -> Any:
    return np.cumprod(x, axis=axis)


@rule("logcumsumexp")
def _cumulate_exponentials(builder: Builder, x: Any, axis: int) -> Any:
    return np.log(np.cumsum(np.exp(x), axis=axis))


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


class DataIndex:
    """Where entries are that were chosen by their values: it may be returned, but not be used."""


@rule("topk")
def _largest(builder: Builder, x: Any, count: int, axis: int = -1, largest: bool = True, *rest: Any) -> Any:
    """The largest entries of an axis in order, by the pattern of the order, which is constant on a region."""
    ordered = np.moveaxis(np.sort(x, axis=axis), axis, -1)
    ordered = np.flip(ordered, -1) if largest else ordered
    return np.moveaxis(ordered[..., :count], -1, axis), DataIndex()


@rule("sort")
def _sort(builder: Builder, x: Any, axis: int = -1, descending: bool = False) -> Any:
    ordered = np.sort(x, axis=axis)
    return (np.flip(ordered, axis) if descending else ordered), DataIndex()


@rule("max")
def _max(builder: Builder, x: Any, axis: int | None = None, keepdims: bool = False) -> Any:
    if axis is None:
        return np.max(x)
    return np.max(x, axis=axis, keepdims=keepdims), DataIndex()


@rule("min")
def _min(builder: Builder, x: Any, axis: int | None = None, keepdims: bool = False) -> Any:
    if axis is None:
        return np.min(x)
    return np.min(x, axis=axis, keepdims=keepdims), DataIndex()


@rule("argmax", "argmin", "argsort")
def _chosen(builder: Builder, *rest: Any, **options: Any) -> Any:
    return DataIndex()


@rule("prod")
def _product(builder: Builder, x: Any, axis: int | None = None, keepdims: bool = False, **options: Any) -> Any:
    return np.prod(x, axis=axis, keepdims=keepdims)


@rule("logsumexp")
def _logsumexp(builder: Builder, x: Any, axes: Any, keepdims: bool = False) -> Any:
    return np.log(np.sum(np.exp(x), axis=read_axes(axes), keepdims=keepdims))


@rule("hardsigmoid")
def _hard_sigmoid(builder: Builder, x: Any) -> Any:
    return np.minimum(np.maximum(x + 3, 0), 6) / 6


@rule("hardswish")
def _hard_swish(builder: Builder, x: Any) -> Any:
    return x * (np.minimum(np.maximum(x + 3, 0), 6) / 6)


@rule("_prelu_kernel", "prelu")
def _learned_leaky(builder: Builder, x: Any, slope: Any) -> Any:
    return np.maximum(x, 0) + slope * np.minimum(x, 0)


@rule("mish")
def _mish(builder: Builder, x: Any) -> Any:
    """x tanh(log(1 + eˣ)), without the logarithm: tanh(log u) = (u² − 1)/(u² + 1)."""
    square = (1 + np.exp(x)) ** 2
    return x * (square - 1) / (square + 1)


@rule("log_sigmoid_forward")
def _log_sigmoid(builder: Builder, x: Any) -> Any:
    return -1 * np.log(1 + np.exp(-1 * x)), None


@rule("rrelu_with_noise_functional")
def _random_leaky(
    builder: Builder, x: Any, noise: Any, low: Any = 1 / 8, high: Any = 1 / 3, training: bool = False, *rest: Any
) -> Any:
    """Outside of training the slope is the mean of the bounds."""
    return _leaky(builder, x, (low + high) / 2), noise


OPERATIONS |= {
    "sinh": plain(lambda x: (np.exp(x) - np.exp(-1 * x)) / 2),
    "cosh": plain(lambda x: (np.exp(x) + np.exp(-1 * x)) / 2),
}


def read_axes(axes: Any) -> Any:
    """Axes as NumPy takes them; none are all."""
    return (
        None if axes is None or (isinstance(axes, (list, tuple)) and not axes) else tuple(np.atleast_1d(axes).tolist())
    )


@rule("_softmax", "_safe_softmax", "softmax")
def _softmax(builder: Builder, x: Any, axis: int, *rest: Any) -> Any:
    exponentials = np.exp(x - np.max(x, axis=axis, keepdims=True))
    return exponentials / np.sum(exponentials, axis=axis, keepdims=True)


@rule("_log_softmax")
def _log_softmax(builder: Builder, x: Any, axis: int, *rest: Any) -> Any:
    return x - np.log(np.sum(np.exp(x), axis=axis, keepdims=True))


@rule("embedding")
def _embedding(builder: Builder, table: Any, index: Any, *rest: Any) -> Any:
    if isinstance(index, Traced):
        raise InputError("an index made from data met; give integers as input")
    return table[np.asarray(index)]


def _like(number: float) -> Rule:
    return lambda builder, x, *rest, **options: np.full(x.shape, number)


OPERATIONS |= {"zeros_like": _like(0.0), "ones_like": _like(1.0), "empty_like": _like(0.0)}


@rule("full_like")
def _full_like(builder: Builder, x: Any, number: Any, **options: Any) -> Any:
    return np.full(x.shape, float(number))


@rule("clone", "alias", "detach", "contiguous", "lift_fresh_copy", "_to_copy", "to")
def _identity(builder: Builder, x: Any, *rest: Any, **options: Any) -> Any:
    """The array itself, in whatever floating point type."""
    kind = str(options.get("dtype") or "")
    if "int" in kind or "bool" in kind:
        raise InputError(f"data converted to {kind} met; keep floats")
    if kind and "64" not in kind:
        builder.notes.append(CASTS)
    return x


@rule("copy")
def _copy(builder: Builder, target: Any, source: Any, *rest: Any) -> Any:
    return np.broadcast_to(source, target.shape)


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
