"""Input and output matrices in files: exact JSON rows, or NumPy's .npy for floats."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np

from attngeom.errors import DomainError, FormatError, InputError
from attngeom.exact.domains import QQ, RR, Array, Domain
from attngeom.files import read_json, to_json, write_atomic


def nested_shape(value: Any, name: str, entries: tuple[type, ...] = (str, int, float)) -> tuple[int, ...]:
    """The shape of nested lists with entries of these types; anything else is refused."""
    if isinstance(value, list):
        shapes = {nested_shape(part, name, entries) for part in value}
        if len(shapes) != 1:
            raise FormatError(f"{name}: ragged or empty rows found; a rectangular array is required")
        return (len(value), *shapes.pop())
    if isinstance(value, bool) or not isinstance(value, entries):
        raise FormatError(f'{name}: entry {str(value)[:40]} found; numbers or strings such as "-3/7" are required')
    return ()


def _has_floats(value: Any) -> bool:
    if isinstance(value, list):
        return any(_has_floats(part) for part in value)
    return isinstance(value, float) or (isinstance(value, str) and any(mark in value for mark in ".eE"))


def read_array(path: str | Path) -> tuple[Array, Domain]:
    """An array from .json (rows of ``"p/q"`` strings and integers are exact, any decimal makes it float) or .npy."""
    path = Path(path)
    if path.suffix == ".json":
        rows = read_json(path)
        shape = nested_shape(rows, str(path))
        if len(shape) < 2:
            raise FormatError(f"{path}: an array of shape {shape} found; a list of rows is required")
        domain: Domain = RR if _has_floats(rows) else QQ
        return domain.convert(rows), domain
    if path.suffix != ".npy":
        raise InputError(f"{path} given; the name must end in .json or .npy")
    if not path.is_file():
        raise InputError(f"{path} does not exist; give the path of an existing file")
    try:
        # Mapping compares the header with the size of the file before any memory is taken.
        mapped = np.load(path, mmap_mode="r", allow_pickle=False)
    except Exception as error:
        # The header is a Python literal; what its parser raises on hostile ones is not documented.
        raise FormatError(f"{path}: not a readable .npy file: {error}") from None
    if mapped.dtype.kind not in "fiu" or mapped.ndim < 2:
        raise FormatError(f"{path}: {mapped.dtype} array of shape {mapped.shape}; a real matrix is required")
    return RR.convert(np.array(mapped)), RR


def write_array(array: Array, domain: Domain, path: str | Path) -> None:
    """Write .json (exact entries as strings, floats as numbers) or .npy (floats only): all of it, or nothing."""
    path = Path(path)
    if domain not in (QQ, RR):
        raise DomainError(f"array over {domain.name} given; files hold rational numbers or floats")
    if path.suffix == ".json":
        formatted = np.vectorize(domain.format, otypes=[object])(array)
        write_atomic(path, to_json(formatted.tolist()) + "\n")
    elif path.suffix == ".npy" and domain == RR:
        buffer = io.BytesIO()
        np.save(buffer, array)
        write_atomic(path, buffer.getvalue())
    else:
        raise InputError(f"{path} given for {domain.name}; use .json for exact arrays, .json or .npy for floats")
