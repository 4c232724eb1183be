"""Layers of core ATen: norms, and convolutions and pools, whose windows are gathered, then contracted or compared."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from attngeom.errors import InputError
from attngeom.exact.arrays import Array
from attngeom.programs.builder import Builder
from attngeom.programs.frontends.aten import read_axes, rule
from attngeom.programs.frontends.aten_linear import OPERATIONS
from attngeom.programs.frontends.numpy_function import as_traced, index_work

__all__ = ["OPERATIONS"]
"""The table of :mod:`attngeom.programs.frontends.aten`, with the rows of this file too."""


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


@rule("_native_batch_norm_legit")
def _instance_norm(builder: Builder, x: Any, gain: Any, bias: Any, *rest: Any) -> Any:
    """Norms over all places of a channel, as instance norms have them: with statistics of this very input."""
    training, _, eps = rest[-3:]
    if not training:
        raise InputError("a batch norm with stored statistics in a form that is not known met; call eval()")
    axes = (0, *range(2, len(x.shape)))
    centred = x - np.mean(x, axis=axes, keepdims=True)
    normed = centred / np.sqrt(np.mean(centred * centred, axis=axes, keepdims=True) + eps)
    column = (1, -1, *(1,) * (len(x.shape) - 2))
    gain, bias = (None if y is None else np.reshape(y, column) for y in (gain, bias))
    return _affine_norm(normed, gain, bias), None, None


@rule("_native_batch_norm_legit_no_training")
def _batch_norm(
    builder: Builder, x: Any, gain: Any, bias: Any, mean: Any, variance: Any, momentum: float, eps: float
) -> Any:
    column = (1, -1, *(1,) * (len(x.shape) - 2))
    mean, variance = np.reshape(mean, column), np.reshape(variance, column)
    gain, bias = (None if y is None else np.reshape(y, column) for y in (gain, bias))
    return _affine_norm((x - mean) / np.sqrt(variance + eps), gain, bias), None, None


@rule("linalg_vector_norm")
def _norm(builder: Builder, x: Any, order: Any = 2, axes: Any = None, keepdims: bool = False, **options: Any) -> Any:
    if order == 2:
        return np.sqrt(np.sum(x * x, axis=read_axes(axes), keepdims=keepdims))
    if order == 1:
        return np.sum(np.abs(x), axis=read_axes(axes), keepdims=keepdims)
    raise InputError(f"a norm of order {order} met; 1 and 2 are known: write it with sums and powers")


def _windows(
    sizes: Sequence[int], taps: Sequence[int], stride: Sequence[int], padding: Sequence[int], dilation: Sequence[int]
) -> tuple[list[int], Array, Array]:
    """The number of windows along each axis, the flat place of each tap of each window, and whether it is inside."""
    places = [(n + 2 * p - d * (k - 1) - 1) // s + 1 for n, p, d, k, s in zip(sizes, padding, dilation, taps, stride)]
    window = np.zeros((*places, *taps), dtype=np.int64)
    inside = np.ones((*places, *taps), dtype=bool)
    for axis, (count, step, tap, gap) in enumerate(zip(places, stride, taps, dilation)):
        rows = np.arange(count)[:, None] * step + np.arange(tap)[None] * gap - padding[axis]
        shape = [1] * (2 * len(places))
        shape[axis], shape[len(places) + axis] = count, tap
        window = window * sizes[axis] + np.clip(rows, 0, sizes[axis] - 1).reshape(shape)
        inside &= ((rows >= 0) & (rows < sizes[axis])).reshape(shape)
    return places, window.reshape(prod(places), prod(taps)), inside.reshape(prod(places), prod(taps))


def _full(numbers: Sequence[int], count: int) -> list[int]:
    return list(numbers) * count if len(numbers) == 1 else list(numbers)


@rule("convolution")
def convolve(
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
    """Windows contracted with the kernel, group by group."""
    count = len(kernel.shape) - 2
    stride, padding, dilation, extra = (_full(part, count) for part in (stride, padding, dilation, output_padding))
    if transposed:
        x, kernel = _spread(builder, x, kernel, stride, padding, dilation, extra, groups)
        stride, padding = [1] * count, [0] * count
    batch, channels, *sizes = x.shape
    outputs, inner, *taps = kernel.shape
    places, window, inside = _windows(sizes, taps, stride, padding, dilation)
    flat = np.reshape(x, (batch, channels, prod(sizes)))
    taken = np.reshape(flat[:, :, window.ravel()], (batch, channels, *window.shape))
    taken = taken if inside.all() else np.where(inside, taken, 0.0)
    windows = np.reshape(taken, (batch, groups, channels // groups, *window.shape))
    kernels = np.reshape(kernel, (groups, outputs // groups, inner, prod(taps)))
    result = np.reshape(np.einsum("bgcpk,gock->bgop", windows, kernels), (batch, outputs, *places))
    return result if bias is None else result + np.reshape(bias, (1, -1, *(1,) * len(places)))


def _spread(
    builder: Builder,
    x: Any,
    kernel: Any,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    extra: Sequence[int],
    groups: int,
) -> tuple[Any, Any]:
    """A transposed convolution as one of an input with zeros between its entries, with the kernel reversed."""
    channels, inner, *taps = kernel.shape
    axes = tuple(range(2, 2 + len(taps)))
    reversed_kernel = np.reshape(np.flip(kernel, axes), (groups, channels // groups, inner, *taps))
    reversed_kernel = np.reshape(np.swapaxes(reversed_kernel, 1, 2), (groups * inner, channels // groups, *taps))
    margins = [d * (k - 1) - p for d, k, p in zip(dilation, taps, padding)]
    if min(margins) < 0:
        raise InputError("a transposed convolution with more padding than its kernel met; pad less")

    def spread(numbers: Any) -> Any:
        sizes = [(n - 1) * s + 1 + 2 * m + e for n, s, m, e in zip(numbers.shape[2:], stride, margins, extra)]
        wide = np.zeros((*numbers.shape[:2], *sizes), dtype=np.int64)
        steps = tuple(slice(m, m + (n - 1) * s + 1, s) for m, n, s in zip(margins, numbers.shape[2:], stride))
        wide[(slice(None), slice(None), *steps)] = numbers
        return wide

    return index_work(builder, spread, [as_traced(builder, x)], {}), reversed_kernel


@rule("max_pool2d_with_indices", "max_pool3d_with_indices")
def _max_pool(
    builder: Builder,
    x: Any,
    taps: Sequence[int],
    stride: Sequence[int] = (),
    padding: Sequence[int] = (0,),
    dilation: Sequence[int] = (1,),
    ceil_mode: bool = False,
) -> Any:
    """The largest of each window, by the pattern of its order; a tap outside counts as one inside."""
    if ceil_mode:
        raise InputError("max_pool with ceil_mode met; pad the input instead")
    windows, places, _ = _pooled(x, taps, stride, padding, dilation)
    return np.reshape(np.max(windows, axis=-1), (*x.shape[: x.ndim - len(places)], *places)), None


@rule("adaptive_max_pool2d", "adaptive_max_pool3d")
def _adaptive_max_pool(builder: Builder, x: Any, places: Sequence[int]) -> Any:
    """The largest of windows that share out each axis."""
    for axis, count in zip(range(-len(places), 0), places):
        size = x.shape[axis]
        cuts = [range(k * size // count, -(-(k + 1) * size // count)) for k in range(count)]
        x = np.stack([np.max(np.take(x, list(cut), axis=axis), axis=axis) for cut in cuts], axis=axis)
    return x, None


@rule("_embedding_bag", "_embedding_bag_forward_only")
def _embedding_bag(
    builder: Builder, table: Any, index: Any, starts: Any, scaled: bool = False, mode: int = 0, *rest: Any
) -> Any:
    """Sums, means or maxima of rows, one bag from each start on."""
    index, starts = np.asarray(index), np.asarray(starts).tolist()
    if len(rest) > 1 and rest[1] is not None:
        raise InputError("an embedding bag with weights of its own met; write it with einsum")
    cuts = [slice(a, b) for a, b in zip(starts, [*starts[1:], len(index)])]
    combine = (np.sum, np.mean, np.max)[mode]
    return np.stack([combine(table[index[cut]], axis=0) for cut in cuts]), None, None, None


@rule("_cdist_forward")
def _distances(builder: Builder, a: Any, b: Any, order: float, *rest: Any) -> Any:
    difference = a[..., :, None, :] - b[..., None, :, :]
    return _norm(builder, difference, int(order) if order in (1, 2) else order, -1)


@rule("avg_pool1d", "avg_pool2d", "avg_pool3d")
def _mean_pool(
    builder: Builder,
    x: Any,
    taps: Sequence[int],
    stride: Sequence[int] = (),
    padding: Sequence[int] = (0,),
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Any:
    if ceil_mode:
        raise InputError("avg_pool with ceil_mode met; pad the input instead")
    windows, places, inside = _pooled(x, taps, stride, padding, (1,))
    count = inside.sum(axis=-1) if not count_include_pad else np.full(len(inside), inside.shape[1])
    count = count if divisor_override is None else np.full(len(inside), divisor_override)
    total = np.sum(windows if inside.all() else np.where(inside, windows, 0.0), axis=-1)
    return np.reshape(total * (1.0 / count), (*x.shape[: x.ndim - len(places)], *places))


def _pooled(
    x: Any, taps: Sequence[int], stride: Sequence[int], padding: Sequence[int], dilation: Sequence[int]
) -> tuple[Any, list[int], Array]:
    """The windows of the last axes, flat, how many along each axis, and which taps are inside."""
    count = max(len(taps), len(stride), len(padding), len(dilation), 2 if x.ndim > 3 else 1)
    taps, padding, dilation = (_full(part, count) for part in (taps, padding, dilation))
    sizes = x.shape[-count:]
    places, window, inside = _windows(sizes, taps, _full(stride, count) if stride else taps, padding, dilation)
    flat = np.reshape(x, (*x.shape[:-count], prod(sizes)))
    return np.reshape(flat[..., window.ravel()], (*x.shape[:-count], *window.shape)), places, inside
