"""Tensors from safetensors files and from other libraries, as float64 arrays."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ml_dtypes  # noqa: F401  registers bfloat16 with NumPy, which safetensors looks up by name
import numpy as np
from safetensors import SafetensorError, safe_open

from attngeom.errors import FormatError, InputError, SizeError
from attngeom.exact.arrays import Array
from attngeom.files import refuse_format
from attngeom.limits.sizes import TENSOR_ENTRIES

FLOATS = ("F64", "F32", "F16", "BF16")


@dataclass(frozen=True)
class TensorFile:
    """An open safetensors file: names, shapes, types and metadata are known, tensors are loaded one at a time."""

    path: Path
    metadata: Mapping[str, str]
    shapes: Mapping[str, tuple[int, ...]]
    types: Mapping[str, str]
    read: Callable[[str], Array]

    def load(self, name: str) -> Array:
        """One tensor as float64; half, bfloat16 and single precision are converted exactly."""
        if self.types[name] not in FLOATS:
            raise FormatError(
                f"{self.path}: tensor {name} has type {self.types[name]}; one of {', '.join(FLOATS)} needed"
            )
        if int(np.prod(self.shapes[name], dtype=object)) > TENSOR_ENTRIES:
            raise SizeError(f"{self.path}: tensor {name} of shape {self.shapes[name]}; it is too large to load")
        return finite(self.read(name).astype(np.float64), name)


@contextmanager
def open_tensors(path: str | Path) -> Iterator[TensorFile]:
    """Open a safetensors file; truncated, hostile and foreign files raise FormatError."""
    path = Path(path)
    if not path.is_file():
        raise InputError(f"{path} does not exist or is not a file; give the path of a safetensors file")
    refuse_format(path)
    try:
        with safe_open(str(path), framework="numpy") as stream:
            slices = {name: stream.get_slice(name) for name in stream.keys()}  # noqa: SIM118  not a mapping
            yield TensorFile(
                path,
                stream.metadata() or {},
                {name: tuple(part.get_shape()) for name, part in slices.items()},
                {name: str(part.get_dtype()) for name, part in slices.items()},
                stream.get_tensor,
            )
    except SafetensorError as error:
        raise FormatError(f"{path}: not a valid safetensors file: {error}") from None
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}") from None


def finite(array: Array, name: str) -> Array:
    """The array, if all entries are finite."""
    if not np.all(np.isfinite(array)):
        raise InputError(f"tensor {name} has NaN or infinite entries; finite numbers are required")
    return array


def as_float64(tensor: Any, name: str) -> Array:
    """A NumPy array or a torch tensor (any device, any float type) as a float64 array, without importing torch."""
    if hasattr(tensor, "detach"):
        tensor = tensor.detach().cpu().double().numpy()
    array = np.asarray(tensor)
    if array.dtype.kind not in "fiu" and array.dtype.name != "bfloat16":
        raise InputError(f"tensor {name} of type {array.dtype} given; real numbers are required")
    return finite(array.astype(np.float64), name)
