"""The one alias for arrays, and object arrays of exact numbers from lists and from FLINT's matrices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from attngeom.errors import InputError

Array: TypeAlias = np.ndarray[Any, Any]


def elementwise(convert: Callable[[Any], Any], data: Any) -> Array:
    """Apply ``convert`` to every entry of nested lists or an array; the result has object dtype.

    >>> elementwise(str, [[1, 2], [3, 4]]).tolist()
    [['1', '2'], ['3', '4']]
    """
    try:
        array = np.asarray(data, dtype=object)
    except ValueError:
        raise InputError("ragged array given; rows of equal length are required") from None
    entries = array.ravel().tolist()
    if any(issubclass(kind, (list, tuple)) for kind in set(map(type, entries))):
        raise InputError("ragged array given; rows of equal length are required")
    return np.fromiter(map(convert, entries), dtype=object, count=len(entries)).reshape(array.shape)


def from_flint(matrix: Any, convert: Callable[[Any], Any] | None = None) -> Array:
    """The entries of a FLINT matrix as an object array."""
    entries = matrix.entries()
    out = np.fromiter(entries if convert is None else map(convert, entries), dtype=object, count=len(entries))
    return out.reshape(matrix.nrows(), matrix.ncols())


def broadcast_product(multiply: Callable[[Array, Array], Array], a: Array, b: Array) -> Array:
    """Apply a product of two matrices over broadcast leading axes."""
    check_product(a, b)
    if a.ndim == b.ndim == 2:
        return multiply(a, b)
    batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    a = np.broadcast_to(a, batch + a.shape[-2:])
    b = np.broadcast_to(b, batch + b.shape[-2:])
    out = np.empty((*batch, a.shape[-2], b.shape[-1]), dtype=object)
    for index in np.ndindex(*batch):
        out[index] = multiply(a[index], b[index])
    return out


def check_product(a: Array, b: Array) -> None:
    """InputError unless a b is defined, over the last two axes."""
    if a.shape[-1] != b.shape[-2]:
        raise InputError(f"matrices of shapes {a.shape} and {b.shape} given; inner sizes must agree")


def check_matrix(a: Array) -> None:
    """InputError unless a has two axes."""
    if a.ndim != 2:
        raise InputError(f"array of shape {a.shape} given; a matrix is required")


def check_square(a: Array) -> None:
    """InputError unless a is one square matrix."""
    if a.ndim != 2 or a.shape[0] != a.shape[1]:
        raise InputError(f"array of shape {a.shape} given; a square matrix is required")


def swap(a: Array) -> Array:
    """The transpose over the last two axes."""
    return np.swapaxes(a, -1, -2)
