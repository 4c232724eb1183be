"""Norms of core ATen: centred or not, over the last axes, groups, channels or the batch, with gains and biases."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from attngeom.errors import InputError
from attngeom.programs.builder import Builder
from attngeom.programs.frontends.aten import OPERATIONS, read_axes, rule

__all__ = ["OPERATIONS"]
"""The table of :mod:`attngeom.programs.frontends.aten`, with the rows of this file."""


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
