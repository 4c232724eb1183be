"""Weights files: safetensors for floats, JSON with ``"p/q"`` entries for exact weights."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import load, save

from attngeom.errors import DomainError, FormatError, InputError
from attngeom.exact.domains import QQ, RR
from attngeom.files import check_header, parse_json, read_json, to_json, write_atomic
from attngeom.interop.arrays import nested_shape
from attngeom.interop.tensors import open_tensors
from attngeom.network import Architecture, Weights

METADATA_KEY = "attngeom"
DROPPED_KEY = "attngeom_dropped"


def weights_to_json(weights: Weights) -> dict[str, Any]:
    """The JSON object of exact weights.

    >>> from attngeom.network import random_weights
    >>> weights_to_json(random_weights(Architecture((1, 1), 1), QQ, seed=0))["tensors"]["layers.0.Q"]
    [['7']]
    """
    if weights.domain != QQ:
        raise DomainError(f"weights over {weights.domain.name} given; JSON files hold rational weights")
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
            raise FormatError(f"{path}: metadata key {METADATA_KEY!r} is missing; import foreign checkpoints first")
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
        raise DomainError(f"weights over {weights.domain.name} given for {path}; exact weights are written as .json")
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
