"""What the operations of core ATen become: index work, which PyTorch does on numbers, and a table of the others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from attngeom.errors import InputError
from attngeom.programs.builder import Builder
from attngeom.programs.frontends.numpy_function import Traced, as_traced

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
    "conj_physical": plain(lambda x: x),
    "isnan": plain(lambda x: np.zeros(x.shape, dtype=bool)),
    "isinf": plain(lambda x: np.zeros(x.shape, dtype=bool)),
    "hypot": plain(lambda a, b: np.sqrt(a * a + b * b)),
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
    "eq": plain(lambda a, b: _equal(a, b)),
    "ne": plain(lambda a, b: ~_equal(a, b)),
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


class DataIndex:
    """Where entries are that were chosen by their values: it may be returned, but not be used."""


@rule("topk")
def _largest(builder: Builder, x: Any, count: int, axis: int = -1, largest: bool = True, *rest: Any) -> Any:
    """The largest entries of an axis in order, by the pattern of the order, which is constant on a region."""
    ordered = np.moveaxis(np.sort(x, axis=axis), axis, -1)
    ordered = np.flip(ordered, -1) if largest else ordered
    return np.moveaxis(ordered[..., :count], -1, axis), DataIndex()


def _equal(a: Any, b: Any) -> Any:
    """Where constants are equal; data are finite."""
    if not any(isinstance(x, Traced) for x in (a, b)):
        return np.equal(a, b)
    if any(isinstance(x, (int, float)) and np.isinf(x) for x in (a, b)):
        return np.zeros(np.broadcast_shapes(np.shape(a), np.shape(b)), dtype=bool)
    raise InputError("data compared with == or != met; use > or <")


@rule("kthvalue")
def _kth(builder: Builder, x: Any, number: int, axis: int = -1, keepdims: bool = False) -> Any:
    ordered = np.sort(x, axis=axis)
    value = np.take(ordered, [number - 1] if keepdims else number - 1, axis=axis)
    return value, DataIndex()


@rule("median")
def _median(builder: Builder, x: Any, axis: int | None = None, keepdims: bool = False) -> Any:
    """The middle entry, of an even number the lower one."""
    if axis is None:
        return _kth(builder, x.ravel(), (x.size + 1) // 2)[0]
    return _kth(builder, x, (x.shape[axis] + 1) // 2, axis, keepdims)


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
