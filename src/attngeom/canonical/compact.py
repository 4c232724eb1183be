"""Canonical coordinates: the free entries of a canonical form, as a vector and as a compact file, and back.

Exact forms are JSON, ``{"format": "attngeom/compact", "version": 1, …}``; float forms are safetensors with one tensor
``coordinates`` and the same record, without the coordinates, as metadata.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load, save

from attngeom.canonical.form import CanonicalForm, CanonicalLayer, CanonicalTerm
from attngeom.errors import FormatError, InputError
from attngeom.exact.domains import QQ, RR, Array, Domain
from attngeom.files import check_header, parse_json, read_bytes, to_json, write_atomic
from attngeom.network import Architecture, LayerShape


def _free_entries(form: CanonicalForm) -> Iterator[tuple[int, int, str, Array]]:
    """For each tensor (layer, term, letter) the boolean mask of its free entries."""
    last = len(form.layers) - 1
    for index, layer in enumerate(form.layers):
        starts = np.cumsum([0, *(term.O.shape[1] for term in layer.terms)])
        for place, term in enumerate(layer.terms):
            keys = np.ones(term.K.shape, dtype=bool)
            if term.scale_pivot is not None:
                keys[term.scale_pivot] = False
            yield index, place, "K", keys
            yield index, place, "Q", _outside(term.Q.shape, term.query_pivots)
            yield index, place, "V", _outside(term.V.shape, term.value_pivots)
            if layer.stack_pivots is None:
                outputs = np.ones(term.O.shape, dtype=bool)
                if form.log_scale is not None and index == last and place == largest_output(form)[0]:
                    outputs[largest_output(form)[1]] = False
            else:
                inside = [p - int(starts[place]) for p in layer.stack_pivots if starts[place] <= p < starts[place + 1]]
                outputs = _outside(term.O.shape, tuple(inside))
            yield index, place, "O", outputs


def _outside(shape: tuple[int, ...], pivots: tuple[int, ...]) -> Array:
    mask = np.ones(shape, dtype=bool)
    mask[:, list(pivots)] = False
    return mask


def largest_output(form: CanonicalForm) -> tuple[int, tuple[int, int]]:
    """Term and place of the entry ±1 of the last outputs of a float form that is not zero."""
    terms = form.layers[-1].terms
    sizes = [np.abs(term.O).max(initial=0.0) for term in terms]
    place = int(np.argmax(sizes))
    flat = int(np.argmax(np.abs(terms[place].O)))
    width = terms[place].O.shape[1]
    return place, (flat // width, flat % width)


def without_exponents(form: CanonicalForm) -> CanonicalForm:
    """The form with every power of two multiplied out; InputError if an entry leaves the range of floats."""
    layers = (replace(layer, terms=tuple(map(_multiplied_out, layer.terms))) for layer in form.layers)
    return replace(form, layers=tuple(layers))


def _multiplied_out(term: CanonicalTerm) -> CanonicalTerm:
    K, O = term.keys, term.outputs
    if not (K.exponent or O.exponent):
        return term
    if not (K.fits and O.fits):
        raise InputError("weights with coordinates beyond the range of floats given; rescale them")
    return replace(term, K=K.join(), O=O.join(), key_exponent=0, output_exponent=0)


def coordinates(form: CanonicalForm) -> Array:
    """The free entries of a canonical form; their number is the dimension of the function space at generic weights.

    >>> from attngeom.exact import QQ
    >>> from attngeom.canonical.form import canonical_form
    >>> from attngeom.network import Architecture, random_weights
    >>> len(coordinates(canonical_form(random_weights(Architecture((2, 2), 2), QQ, seed=0))))
    7
    """
    form = without_exponents(form)
    parts = [form.domain.zeros((0,))]
    for index, place, letter, mask in _free_entries(form):
        parts.append(getattr(form.layers[index].terms[place], letter)[mask])
    if form.log_scale is not None:
        parts.append(np.array([form.log_scale]))
    return np.concatenate(parts)


def with_coordinates(form: CanonicalForm, vector: Array) -> CanonicalForm:
    """The form with the same pivots and other free entries."""
    form = without_exponents(form)
    needed = sum(int(mask.sum()) for *_, mask in _free_entries(form)) + (form.log_scale is not None)
    if vector.shape != (needed,):
        raise FormatError(f"{vector.size} canonical coordinates given; {needed} are required for these pivots")
    terms: list[list[CanonicalTerm]] = [list(layer.terms) for layer in form.layers]
    start = 0
    for index, place, letter, mask in _free_entries(form):
        count = int(mask.sum())
        array = getattr(form.layers[index].terms[place], letter).copy()
        array[mask] = vector[start : start + count]
        terms[index][place] = replace(terms[index][place], **{letter: array})
        start += count
    layers = tuple(replace(layer, terms=tuple(moved)) for layer, moved in zip(form.layers, terms))
    return replace(form, layers=layers, log_scale=None if form.log_scale is None else float(vector[-1]))


METADATA_KEY = "attngeom_compact"


def _header(form: CanonicalForm) -> dict[str, Any]:
    layers = [
        {
            "size_in": layer.size_in,
            "size_out": layer.size_out,
            "stack_pivots": None if layer.stack_pivots is None else list(layer.stack_pivots),
            "heads": [
                {
                    "query_pivots": list(term.query_pivots),
                    "value_pivots": list(term.value_pivots),
                    "scale_pivot": None if term.scale_pivot is None else list(term.scale_pivot),
                }
                for term in layer.terms
            ],
        }
        for layer in form.layers
    ]
    record: dict[str, Any] = {"format": "attngeom/compact", "version": 1}
    record |= {"architecture": form.architecture.to_json(), "layers": layers, "unit": None}
    if form.log_scale is not None:
        place, (row, column) = largest_output(form)
        record["unit"] = [place, row, column, int(np.sign(form.layers[-1].terms[place].O[row, column]))]
    return record


def write_compact(form: CanonicalForm, path: str | Path) -> None:
    """Write the canonical coordinates: .json for exact forms, .safetensors for floats; what is written reads back."""
    path = Path(path)
    form = without_exponents(form)
    header, vector = _header(form), coordinates(form)
    if form.domain == QQ and path.suffix == ".json":
        data = (to_json({**header, "coordinates": [str(x) for x in vector]}) + "\n").encode()
    elif form.domain == RR and path.suffix == ".safetensors":
        data = save({"coordinates": np.ascontiguousarray(vector)}, metadata={METADATA_KEY: to_json(header)})
    else:
        raise InputError(f"{path} given; compact files end in .json (exact weights) or .safetensors (floats)")
    reread = _parse(data, path)
    if _header(reread) != header or not form.domain.equal(coordinates(reread), vector):
        raise FormatError(f"{path}: the compact form does not read back; nothing was written")
    write_atomic(path, data)


def read_compact(path: str | Path) -> CanonicalForm:
    """Read a compact file back: the canonical form that was written."""
    path = Path(path)
    return _parse(read_bytes(path), path)


def _parse(data: bytes, path: Path) -> CanonicalForm:
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
            _read_layer(layer, shape, architecture, domain)
            for layer, shape in zip(record["layers"], architecture.layers, strict=True)
        )
        widths = [(layer.size_in, layer.size_out) for layer in layers]
        _require(all(after[0] == before[1] for before, after in pairwise(widths)))
        _require((widths[0][0], widths[-1][1]) == (architecture.widths[0], architecture.widths[-1]))
        log_scale = None
        if record["unit"] is not None:
            place, row, column, sign = (int(x) for x in record["unit"])
            _require(min(place, row, column) >= 0 and domain == RR and sign in (1, -1))
            layers[-1].terms[place].O[row, column] = float(sign)
            log_scale = 0.0
        coordinates = domain.convert(record["coordinates"]) if vector is None else vector
    except (KeyError, TypeError, ValueError, IndexError, AttributeError):
        raise FormatError(f"{name}: the pivots do not describe a canonical form; the file is damaged") from None
    return with_coordinates(CanonicalForm(architecture, domain, layers, log_scale), coordinates)


def _require(condition: bool) -> None:
    if not condition:
        raise ValueError("damaged")


def _read_pivots(values: Any, width: int) -> tuple[int, ...]:
    """Increasing places below a width."""
    pivots = tuple(int(p) for p in values)
    _require(all(0 <= p < width for p in pivots) and list(pivots) == sorted(set(pivots)))
    return pivots


def _read_layer(
    record: dict[str, Any], shape: LayerShape, architecture: Architecture, domain: Domain
) -> CanonicalLayer:
    """The layer with its fixed entries and zeros elsewhere."""
    size_in, size_out = int(record["size_in"]), int(record["size_out"])
    _require(0 <= size_in <= shape.d_in and 0 <= size_out <= shape.d_out and len(record["heads"]) <= shape.heads)
    pivots = [
        (_read_pivots(head["query_pivots"], size_in), _read_pivots(head["value_pivots"], size_in))
        for head in record["heads"]
    ]
    total = sum(len(values) for _, values in pivots)
    stack = None if record["stack_pivots"] is None else _read_pivots(record["stack_pivots"], total)
    _require(stack is None or len(stack) == size_out)
    one = domain.eye(1)[0, 0]
    terms, start = [], 0
    for head, (queries, values) in zip(record["heads"], pivots):
        _require(len(queries) <= shape.attention)
        K, Q = domain.zeros((len(queries), size_in)), domain.zeros((len(queries), size_in))
        V, O = domain.zeros((len(values), size_in)), domain.zeros((size_out, len(values)))
        Q[:, list(queries)] = domain.eye(len(queries))
        V[:, list(values)] = domain.eye(len(values))
        place = None
        if head["scale_pivot"] is not None:
            row, column = (int(x) for x in head["scale_pivot"])
            _require(min(row, column) >= 0)
            place = (row, column)
            K[place] = one
        for index, pivot in enumerate(stack or ()):
            if start <= pivot < start + len(values):
                O[index, pivot - start] = one
        start += len(values)
        heads = 1 if shape.value_width is None else -(-len(values) // shape.value_width)
        # Heads that add nothing were listed once; they have no free entries.
        if values and (queries or not architecture.rule.has_scale):
            terms.append(CanonicalTerm(K, Q, V, O, queries, values, place, heads))
    _require(sum(term.heads for term in terms) <= shape.heads)
    return CanonicalLayer(tuple(terms), stack, size_in, size_out)
