"""What the operations of core ATen become: index work, which PyTorch does on numbers, and a table of the others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from attngeom.errors import InputError
from attngeom.programs.builder import Builder
from attngeom.programs.frontends.numpy_function import Traced, as_traced, index_work

_MOVES = """
view reshape _unsafe_view permute transpose t expand unsqueeze squeeze slice select cat stack split split_with_sizes
unbind unfold constant_pad_nd flip roll repeat index_select index gather tril triu diagonal narrow movedim alias_copy
view_copy expand_copy permute_copy as_strided slice_scatter select_scatter diagonal_scatter select_copy slice_copy
unsqueeze_copy squeeze_copy transpose_copy split_with_sizes_copy repeat_interleave pixel_shuffle
"""
INDEX_WORK = frozenset(_MOVES.split())
"""Operations that move entries, put zeros or leave entries out."""
_RANDOM = "rand randn rand_like randn_like randint randperm bernoulli multinomial native_dropout normal"
RANDOM = frozenset(_RANDOM.split())
IGNORED = frozenset(["_assert_tensor_metadata", "_assert_scalar", "_assert_async", "sym_constrain_range_for_size"])

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
    x = x if low is None else np.maximum(x, low)
    return x if high is None else np.minimum(x, high)


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
    return np.sum(x, axis=_axes(axes), keepdims=keepdims)


@rule("mean")
def _mean(builder: Builder, x: Any, axes: Any = None, keepdims: bool = False, **options: Any) -> Any:
    return np.mean(x, axis=_axes(axes), keepdims=keepdims)


@rule("var")
def _variance(builder: Builder, x: Any, axes: Any = None, *, correction: Any = 1, keepdim: bool = False) -> Any:
    return np.var(x, axis=_axes(axes), ddof=int(correction or 0), keepdims=keepdim)


@rule("amax")
def _maximum(builder: Builder, x: Any, axes: Any = (), keepdims: bool = False) -> Any:
    return np.max(x, axis=_axes(axes), keepdims=keepdims)


@rule("amin")
def _minimum(builder: Builder, x: Any, axes: Any = (), keepdims: bool = False) -> Any:
    return np.min(x, axis=_axes(axes), keepdims=keepdims)


@rule("cumsum")
def _cumulate(builder: Builder, x: Any, axis: int, **options: Any) -> Any:
    return np.cumsum(x, axis=axis)


def _axes(axes: Any) -> Any:
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


@rule("native_layer_norm")
def _layer_norm(builder: Builder, x: Any, shape: Sequence[int], gain: Any, bias: Any, eps: float) -> Any:
    axes = tuple(range(-len(shape), 0))
    centred = x - np.mean(x, axis=axes, keepdims=True)
    normed = centred / np.sqrt(np.mean(centred * centred, axis=axes, keepdims=True) + eps)
    return _affine_norm(normed, gain, bias), None, None


def _affine_norm(x: Any, gain: Any, bias: Any) -> Any:
    x = x if gain is None else x * gain
    return x if bias is None else x + bias


@rule("native_group_norm")
def _group_norm(
    builder: Builder, x: Any, gain: Any, bias: Any, batch: int, channels: int, size: int, groups: int, eps: float
) -> Any:
    parts = np.reshape(x, (batch, groups, -1))
    centred = parts - np.mean(parts, axis=-1, keepdims=True)
    normed = centred / np.sqrt(np.mean(centred * centred, axis=-1, keepdims=True) + eps)
    column = (1, channels, *(1,) * (len(x.shape) - 2))
    gain, bias = (None if y is None else np.reshape(y, column) for y in (gain, bias))
    return _affine_norm(np.reshape(normed, x.shape), gain, bias), None, None


@rule("_native_batch_norm_legit_no_training")
def _batch_norm(
    builder: Builder, x: Any, gain: Any, bias: Any, mean: Any, variance: Any, momentum: float, eps: float
) -> Any:
    column = (1, -1, *(1,) * (len(x.shape) - 2))
    mean, variance = np.reshape(mean, column), np.reshape(variance, column)
    gain, bias = (None if y is None else np.reshape(y, column) for y in (gain, bias))
    return _affine_norm((x - mean) / np.sqrt(variance + eps), gain, bias), None, None


@rule("embedding")
def _embedding(builder: Builder, table: Any, index: Any, *rest: Any) -> Any:
    if isinstance(index, Traced):
        raise InputError("an index made from data met; give integers as input")
    return table[np.asarray(index)]


@rule("convolution")
def _convolve(
    builder: Builder,
    x: Any,
    kernel: Any,
    bias: Any,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],
    groups: int,
) -> Any:
    """Windows of the input are gathered, then contracted with the kernel, group by group."""
    if transposed:
        raise InputError("a transposed convolution met; write it as a convolution of a padded input")
    batch, channels, *sizes = x.shape
    outputs, inner, *taps = kernel.shape
    padded = np.pad(x, [(0, 0), (0, 0), *((p, p) for p in padding)])
    wide = [n + 2 * p for n, p in zip(sizes, padding)]
    places = [(w - d * (k - 1) - 1) // s + 1 for w, d, k, s in zip(wide, dilation, taps, stride)]
    window = np.zeros((*places, *taps), dtype=np.int64)
    for axis, (count, step, tap, gap) in enumerate(zip(places, stride, taps, dilation)):
        rows = np.arange(count)[:, None] * step + np.arange(tap)[None] * gap
        shape = [1] * (2 * len(places))
        shape[axis], shape[len(places) + axis] = count, tap
        window = window * wide[axis] + rows.reshape(shape)
    flat = np.reshape(padded, (batch, channels, prod(wide)))
    windows = np.reshape(flat[:, :, window.ravel()], (batch, groups, channels // groups, prod(places), prod(taps)))
    kernels = np.reshape(kernel, (groups, outputs // groups, inner, prod(taps)))
    found = np.reshape(np.einsum("bgcpk,gock->bgop", windows, kernels), (batch, outputs, *places))
    return found if bias is None else found + np.reshape(bias, (1, -1, *(1,) * len(places)))


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
        return x + _put(builder, np.zeros(x.shape), places, values)

    def put(numbers: Any, others: Any) -> Any:
        found = numbers.copy()
        found[key] = others
        return found

    return index_work(builder, put, [as_traced(builder, x), as_traced(builder, values)], {})
