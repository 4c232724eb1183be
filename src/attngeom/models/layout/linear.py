"""Affine maps and norms as tensors: weight and bias, rows as outputs or transposed."""

from __future__ import annotations

import numpy as np

from attngeom.exact.arrays import Array
from attngeom.models.affine import Affine
from attngeom.models.layer import NormWeights
from attngeom.models.layout.tables import Load
from attngeom.models.specification import Norm


def read_norm(norm: Norm, name: str, width: int, load: Load) -> NormWeights:
    stored = load(f"{name}.weight", (width,)) if norm.gain else np.ones(width)
    bias = load(f"{name}.bias", (width,)) if norm.bias else np.zeros(width)
    return NormWeights(stored, bias, norm.offset)


def write_norm(norm: Norm, name: str, weights: NormWeights) -> dict[str, Array]:
    tensors = {}
    if norm.gain:
        tensors[f"{name}.weight"] = weights.stored
    if norm.bias:
        tensors[f"{name}.bias"] = weights.bias
    return tensors


def read_linear(load: Load, name: str, rows: int, columns: int, bias: bool, transposed: bool) -> Affine:
    weight = load(f"{name}.weight", (columns, rows) if transposed else (rows, columns))
    offset = load(f"{name}.bias", (rows,)) if bias else np.zeros(rows, weight.dtype)
    return Affine(weight.T if transposed else weight, offset)


def store_linear(name: str, affine: Affine, bias: bool, transposed: bool) -> dict[str, Array]:
    tensors = {f"{name}.weight": affine.weight.T if transposed else affine.weight}
    if bias:
        tensors[f"{name}.bias"] = affine.bias
    return tensors


def split_heads(affine: Affine, count: int) -> Affine:
    rows, columns = affine.weight.shape
    return Affine(affine.weight.reshape(count, rows // count, columns), affine.bias.reshape(count, rows // count))


def join_heads(affine: Affine) -> Affine:
    return Affine(affine.weight.reshape(-1, affine.weight.shape[-1]), affine.bias.reshape(-1))
