"""Compact files: canonical coordinates and the places of the fixed entries, nothing else.

Exact forms are JSON, ``{"format": "attngeom/compact", "version": 1, …}``; float forms are safetensors with one tensor
``coordinates`` and the same record, without the coordinates, as metadata.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load, save

from attngeom.canonical.compact import coordinates, largest_output, with_coordinates
from attngeom.canonical.form import CanonicalForm, CanonicalHead, CanonicalLayer
from attngeom.errors import DomainError, FormatError, InputError
from attngeom.exact.domains import QQ, RR, Array, Domain
from attngeom.files import check_header, parse_json, read_bytes, to_json, write_atomic
from attngeom.network import Architecture

METADATA_KEY = "attngeom_compact"


def _header(form: CanonicalForm) -> dict[str, Any]:
    layers = [
        {
            "size_in": layer.size_in,
            "size_out": layer.size_out,
            "stack_pivots": None if layer.stack_pivots is None else list(layer.stack_pivots),
            "heads": [
                {
                    "query_pivots": list(head.query_pivots),
                    "value_pivots": list(head.value_pivots),
                    "scale_pivot": None if head.scale_pivot is None else list(head.scale_pivot),
                }
                for head in layer.heads
            ],
        }
        for layer in form.layers
    ]
    record: dict[str, Any] = {"format": "attngeom/compact", "version": 1}
    record |= {"architecture": form.architecture.to_json(), "layers": layers, "unit": None}
    if form.log_scale is not None:
        place, (row, column) = largest_output(form)
        record["unit"] = [place, row, column, int(np.sign(form.layers[-1].heads[place].O[row, column]))]
    return record


def write_compact(form: CanonicalForm, path: str | Path) -> None:
    """Write the canonical coordinates: .json for exact forms, .safetensors for floats."""
    path = Path(path)
    if form.domain == QQ and path.suffix == ".json":
        write_atomic(path, to_json({**_header(form), "coordinates": [str(x) for x in coordinates(form)]}) + "\n")
    elif form.domain == RR and path.suffix == ".safetensors":
        vector = np.ascontiguousarray(coordinates(form))
        write_atomic(path, save({"coordinates": vector}, metadata={METADATA_KEY: to_json(_header(form))}))
    else:
        raise InputError(f"{path} given; compact files end in .json (exact weights) or .safetensors (floats)")


def read_compact(path: str | Path) -> CanonicalForm:
    """Read a compact file back: the canonical form that was written."""
    path = Path(path)
    data = read_bytes(path)
    if path.suffix == ".json":
        record = parse_json(data, str(path))
        return _read_form(record, None, QQ, str(path))
    try:
        size = int.from_bytes(data[:8], "little")
        header = parse_json(data[8 : 8 + size], str(path))
        tensors = load(data)
    except SafetensorError:
        raise FormatError(f"{path}: not a safetensors file; write compact files with canonicalize --compact") from None
    metadata = header.get("__metadata__") if isinstance(header, dict) else None
    if not isinstance(metadata, dict) or METADATA_KEY not in metadata or set(tensors) != {"coordinates"}:
        raise FormatError(f"{path}: no compact form found; write compact files with canonicalize --compact")
    return _read_form(parse_json(metadata[METADATA_KEY], str(path)), RR.convert(tensors["coordinates"]), RR, str(path))


def is_compact(path: str | Path) -> bool:
    """Whether a file announces itself as a compact form."""
    data = read_bytes(path)
    if Path(path).suffix == ".json":
        record = parse_json(data, str(path))
        return isinstance(record, dict) and record.get("format") == "attngeom/compact"
    return METADATA_KEY.encode() in data[: 8 + int.from_bytes(data[:8], "little")]


def _read_form(record: Any, vector: Array | None, domain: Domain, name: str) -> CanonicalForm:
    record = check_header(record, "compact", name)
    architecture = Architecture.from_json(record.get("architecture"))
    architecture.check_storable()
    try:
        layers = tuple(
            _read_layer(layer, shape.d_in, shape.d_out, architecture, domain, name)
            for layer, shape in zip(record["layers"], architecture.layers, strict=True)
        )
        log_scale = None
        if record["unit"] is not None:
            place, row, column, sign = (int(x) for x in record["unit"])
            layers[-1].heads[place].O[row, column] = float(sign)
            log_scale = 0.0
        found = domain.convert(record["coordinates"]) if vector is None else vector
    except (KeyError, TypeError, ValueError, IndexError):
        raise FormatError(f"{name}: the pivots do not describe a canonical form; the file is damaged") from None
    if domain not in (QQ, RR):
        raise DomainError(f"compact file over {domain.name}; Q or floats are required")
    return with_coordinates(CanonicalForm(architecture, domain, layers, log_scale), found)


def _read_layer(
    record: dict[str, Any], d_in: int, d_out: int, architecture: Architecture, domain: Domain, name: str
) -> CanonicalLayer:
    """The layer with its fixed entries and zeros elsewhere."""
    size_in, size_out = int(record["size_in"]), int(record["size_out"])
    if not (0 <= size_in <= d_in and 0 <= size_out <= d_out and len(record["heads"]) == architecture.heads):
        raise FormatError(f"{name}: layer sizes beyond the architecture; the file is damaged")
    stack = None if record["stack_pivots"] is None else tuple(int(p) for p in record["stack_pivots"])
    heads, start = [], 0
    for head in record["heads"]:
        queries = tuple(int(p) for p in head["query_pivots"])
        values = tuple(int(p) for p in head["value_pivots"])
        if any(not 0 <= p < size_in for p in (*queries, *values)):
            raise FormatError(f"{name}: a pivot beyond the width of its layer; the file is damaged")
        K, Q = domain.zeros((len(queries), size_in)), domain.zeros((len(queries), size_in))
        V, O = domain.zeros((len(values), size_in)), domain.zeros((size_out, len(values)))
        Q[:, list(queries)] = domain.eye(len(queries))
        V[:, list(values)] = domain.eye(len(values))
        place = None
        if head["scale_pivot"] is not None:
            row, column = (int(x) for x in head["scale_pivot"])
            place = (row, column)
            K[place] = domain.eye(1)[0, 0]
        for index, pivot in enumerate(stack or ()):
            if start <= pivot < start + len(values):
                O[index, pivot - start] = domain.eye(1)[0, 0]
        start += len(values)
        heads.append(CanonicalHead(K, Q, V, O, queries, values, place))
    return CanonicalLayer(tuple(heads), stack, size_in, size_out)
