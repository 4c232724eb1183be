"""Weights files: safetensors for floats, JSON with ``"p/q"`` entries for exact weights."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ml_dtypes  # noqa: F401  registers bfloat16 with NumPy, which safetensors looks up by name
import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import load, save

from attngeom.errors import DomainError, FormatError, InputError, SizeError
from attngeom.exact.arrays import Array
from attngeom.exact.domains import QQ, RR
from attngeom.files import check_header, parse_json, read_json, refuse_format, to_json, write_atomic
from attngeom.interop.arrays import nested_shape
from attngeom.limits.sizes import TENSOR_ENTRIES
from attngeom.network import Architecture, Weights

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
        what = "is a folder" if path.is_dir() else "does not exist or is not a file"
        raise InputError(
            f"{path} {what}; a file with weights of an idealised network is required (transformers: attngeom model)"
        )
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


METADATA_KEY = "attngeom"
DROPPED_KEY = "attngeom_dropped"


def weights_to_json(weights: Weights) -> dict[str, Any]:
    """The JSON object of exact weights.

    >>> from attngeom.network import random_weights
    >>> weights_to_json(random_weights(Architecture((1, 1), 1), QQ, seed=0))["tensors"]["layers.0.Q"]
    [['7']]
    """
    if weights.domain != QQ:
        raise DomainError(
            f"weights over {weights.domain.name} given; JSON files hold exact ones, give a name in .safetensors"
        )
    tensors = {name: [[str(x) for x in row] for row in array] for name, array in weights.tensors()}
    header = {"format": "attngeom/weights", "version": 1, "architecture": weights.architecture.to_json()}
    return {**header, "tensors": tensors}


def weights_from_json(record: Any, name: str = "weights") -> Weights:
    """Exact weights from their JSON object."""
    check_header(record, "weights", name)
    architecture = Architecture.from_json(record.get("architecture"))
    architecture.check_storable()
    tensors = record.get("tensors")
    if not isinstance(tensors, dict):
        raise FormatError(f"{name}: tensors of type {type(tensors).__name__} found; an object of row lists is required")
    for key, shape in architecture.tensor_shapes():
        # Before anything is converted.
        if key in tensors and (given := nested_shape(tensors[key], f"{name}: tensor {key}", (str, int))) != shape:
            raise FormatError(f"{name}: tensor {key} of shape {given}; shape {shape} is required")
    return Weights.from_tensors(architecture, tensors, QQ)


def read_weights(path: str | Path) -> Weights:
    """Weights from a file: floats from safetensors, rationals from JSON (told apart by the file name)."""
    path = Path(path)
    if path.suffix == ".json":
        return weights_from_json(read_json(path), str(path))
    with open_tensors(path) as stream:
        if METADATA_KEY not in stream.metadata:
            raise FormatError(
                f"{path}: no weights of attngeom; put config.json of its model beside it, or begin with attngeom import"
            )
        architecture = Architecture.from_json(parse_json(stream.metadata[METADATA_KEY], f"{path}: architecture"))
        architecture.check_storable()
        shapes = dict(architecture.tensor_shapes())
        for name, shape in stream.shapes.items():
            if name not in shapes:
                raise FormatError(f"{path}: tensor {name[:60]!r} is not one of the architecture's; remove it")
            if shapes[name] != shape:
                raise FormatError(f"{path}: tensor {name} of shape {shape}; shape {shapes[name]} is required")
        return Weights.from_tensors(architecture, {name: stream.load(name) for name in stream.shapes}, RR)


def read_dropped(path: str | Path) -> dict[str, str]:
    """What an idealised import left out of the model that these weights come from; empty for all other files."""
    if Path(path).suffix == ".json":
        return {}
    with open_tensors(path) as stream:
        dropped = parse_json(stream.metadata.get(DROPPED_KEY, "{}"), f"{path}: {DROPPED_KEY}")
    if not isinstance(dropped, dict):
        raise FormatError(f"{path}: metadata {DROPPED_KEY} is no object of names and reasons")
    return {str(name): str(reason) for name, reason in dropped.items()}


def write_weights(weights: Weights, path: str | Path, dropped: Mapping[str, str] | None = None) -> None:
    """Write floats as .safetensors or rationals as .json: all of it, or nothing; what is written reads back.

    ``dropped`` names what an idealised import left out; it is stored with floats.
    """
    path = Path(path)
    if path.suffix == ".json":
        text = to_json(weights_to_json(weights)) + "\n"
        if not weights_from_json(parse_json(text, str(path)), str(path)).equals(weights):
            raise FormatError(f"{path}: the weights do not read back; nothing was written")
        write_atomic(path, text)
        return
    if path.suffix != ".safetensors":
        raise InputError(f"{path} given; the name must end in .safetensors (floats) or .json (exact weights)")
    if weights.domain != RR:
        raise DomainError(f"weights over {weights.domain.name} given for {path}; exact weights need a name in .json")
    tensors = {name: np.ascontiguousarray(array) for name, array in weights.tensors()}
    metadata = {METADATA_KEY: json.dumps(weights.architecture.to_json())}
    if dropped:
        metadata[DROPPED_KEY] = to_json(dict(dropped))
    data = save(tensors, metadata=metadata)
    reread = load(data)
    if any(
        not np.array_equal(reread[name], array) or not np.all(np.isfinite(array)) for name, array in tensors.items()
    ):
        raise FormatError(f"{path}: weights with NaN, infinite or unreadable entries; nothing was written")
    write_atomic(path, data)
