"""Coefficient files: the JSON format of a cubic map, read strictly and written atomically."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from flint import fmpq

from attngeom.errors import DomainError, FormatError, SizeError
from attngeom.exact.domains import QQ, RR, as_fmpq
from attngeom.files import check_header, replacing
from attngeom.layer.coefficients import Coefficients, check_size
from attngeom.layer.terms import LayerTerms, Placement, Terms, collect_terms
from attngeom.limits.memory import TERMS_AT_ONCE
from attngeom.limits.sizes import WRITTEN_COEFFICIENTS
from attngeom.streams import Report, as_plain, iterate_json, read_long_json

FORMAT = "attngeom/coefficients"


def _check_entry(value: Any, rows: int, columns: int, name: str) -> None:
    if type(value) is list and len(value) == 2:
        row, column = value
        if type(row) is int and type(column) is int and 0 <= row < rows and 0 <= column < columns:
            return
    raise FormatError(f"{name}: {str(value)[:40]} found; [row, column] with row < {rows}, column < {columns} needed")


def _read_value(value: Any, name: str) -> float | fmpq:
    """JSON numbers and decimal strings are floats; ``"p/q"`` and ``"p"`` are exact."""
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        raise FormatError(f'{name}: value {str(value)[:40]} found; a number or a string "p/q" is required')
    if not isinstance(value, str):
        return _as_float(value, name)
    number = as_fmpq(value)
    return _as_float(number, name) if any(mark in value for mark in ".eE") else number


def _as_float(value: Any, name: str) -> float:
    if not abs(value) < 10**308:
        raise FormatError(
            f"{name}: value {str(value)[:40]} overflows double precision; write all values as exact strings"
        )
    return float(value)


def coefficients_from_json(record: Any, name: str = "coefficients") -> Coefficients:
    """Read the JSON object; over Q if every value is an exact string, else over floats.

    >>> coefficients_from_json({"format": "attngeom/coefficients", "version": 1, "d": 1, "d_out": 1, "t": 1,
    ...     "terms": [{"output": [0, 0], "monomial": [[0, 0], [0, 0], [0, 0]], "value": "3/7"}]}).single[0, 0, 0]
    3/7
    """
    check_header(record, "coefficients", name)
    for key in ("d", "d_out", "t", "terms"):
        if key not in record:
            raise FormatError(f"{name}: key {key!r} is missing")
    d, d_out, t, terms = record["d"], record["d_out"], record["t"], record["terms"]
    check_size(d, d_out, t, exact=False)
    if isinstance(terms, LayerTerms):
        terms = collect_terms(map(list, terms.parts()))
    if not isinstance(terms, (list, Terms)):
        raise FormatError(f"{name}: terms of type {type(terms).__name__} found; a list is required")
    if isinstance(terms, list):
        for number, term in enumerate(terms):
            _check_term(term, d, d_out, t, f"{name}: term {number}")
        terms = collect_terms(iter([terms]))
    is_float = any(type(x) is not fmpq and type(_read_value(x, name)) is float for x in terms.values)
    domain = RR if is_float else QQ
    check_size(d, d_out, t, exact=not is_float)
    placement = Placement(d, d_out, t, domain.zeros)
    for start in range(0, len(terms), TERMS_AT_ONCE):
        rows, part = terms.rows[start : start + TERMS_AT_ONCE], terms.values[start : start + TERMS_AT_ONCE]
        wrong = ((rows < 0) | (rows >= [d_out, t, d, t, d, t, d, t])).any(axis=1)
        if wrong.any():
            number = start + int(wrong.argmax())
            _check_term(terms[number], d, d_out, t, f"{name}: term {number}")
        values = np.empty(len(part), dtype=float if is_float else object)
        numbers = (x if type(x) is fmpq else _read_value(x, name) for x in part)
        values[:] = [_as_float(x, name) for x in numbers] if is_float else list(numbers)
        repeated = placement.add(rows, values)
        if repeated is not None:
            raise FormatError(f"{name}: term {start + repeated} repeats an output and monomial; give each once")
    single, cross = placement.arrays
    return Coefficients(d, d_out, t, single, cross, domain, placement.terms_outside())


def _check_term(term: Any, d: int, d_out: int, t: int, name: str) -> None:
    if not isinstance(term, dict) or set(term) != {"output", "monomial", "value"}:
        raise FormatError(f"{name}: an object with output, monomial and value is required")
    monomial = term["monomial"]
    if not isinstance(monomial, list) or len(monomial) != 3:
        raise FormatError(f"{name}: monomial {str(monomial)[:40]} found; three [row, column] entries are required")
    for entry in monomial:
        _check_entry(entry, d, t, name)
    _check_entry(term["output"], d_out, t, name)
    _read_value(term["value"], name)


def coefficients_record(coefficients: Coefficients) -> dict[str, Any]:
    """The JSON object with its terms as a long array; rational and float coefficients only."""
    domain = coefficients.domain
    if domain not in (QQ, RR):
        raise DomainError(f"coefficients over {domain.name} given; files hold rational numbers or floats")
    sizes = {"d": coefficients.d, "d_out": coefficients.d_out, "t": coefficients.t}
    return {"format": FORMAT, "version": 1, **sizes, "terms": LayerTerms(coefficients)}


def coefficients_to_json(coefficients: Coefficients) -> dict[str, Any]:
    """The JSON object; rational and float coefficients only."""
    return dict(as_plain(coefficients_record(coefficients)))


def read_coefficients(path: str | Path, report: Report | None = None) -> Coefficients:
    """The coefficients in a JSON file; ``report`` is told how much of it is read."""
    return coefficients_from_json(read_long_json(path, {"terms": collect_terms}, report=report), str(path))


def write_coefficients(coefficients: Coefficients, path: str | Path) -> None:
    """Write a JSON file: all of it, or nothing."""
    if coefficients.size > WRITTEN_COEFFICIENTS:
        raise SizeError(
            f"{coefficients.size:,} coefficients given; at most {WRITTEN_COEFFICIENTS:,} are written to a file"
        )
    record = coefficients_record(coefficients)
    with replacing(path) as stream:
        for piece in iterate_json(record):
            stream.write(piece.encode())
        stream.write(b"\n")
