"""Coefficient files: the JSON format of a cubic map, read strictly and written atomically."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from flint import fmpq

from attngeom.errors import DomainError, FormatError
from attngeom.exact.domains import QQ, RR, as_fmpq
from attngeom.exact.multisets import pairs, triples
from attngeom.files import check_header, read_json, to_json, write_atomic
from attngeom.layer.coefficients import Coefficients, Entry, Monomial, Term, array_shapes, check_size, locate

FORMAT = "attngeom/coefficients"


def _read_entry(value: Any, rows: int, columns: int, name: str) -> Entry:
    if type(value) is list and len(value) == 2:
        row, column = value
        if type(row) is int and type(column) is int and 0 <= row < rows and 0 <= column < columns:
            return row, column
    raise FormatError(f"{name}: {str(value)[:40]} found; [row, column] with row < {rows}, column < {columns} needed")


def _read_value(value: Any, name: str) -> float | fmpq:
    """JSON numbers and decimal strings are floats; ``"p/q"`` and ``"p"`` are exact."""
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        raise FormatError(f'{name}: value {str(value)[:40]} found; a number or a string "p/q" is required')
    if not isinstance(value, str):
        return float(value) if abs(value) < 1e308 else _overflow(value, name)
    number = as_fmpq(value)
    if any(mark in value for mark in ".eE"):
        return float(number) if abs(number) < fmpq(10) ** 308 else _overflow(value, name)
    return number


def _overflow(value: Any, name: str) -> float:
    raise FormatError(f"{name}: value {str(value)[:40]} overflows double precision; write it as an exact string")


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
    check_size(d, d_out, t)
    if not isinstance(terms, list):
        raise FormatError(f"{name}: terms of type {type(terms).__name__} found; a list is required")
    parsed = [_read_term(term, d, d_out, t, f"{name}: term {number}") for number, term in enumerate(terms)]
    domain = RR if any(isinstance(value, float) for _, _, value in parsed) else QQ
    shapes = array_shapes(d, d_out, t)
    arrays = {"single": domain.zeros(shapes[0]), "cross": domain.zeros(shapes[1])}
    outside: list[Term] = []
    seen = set()
    for number, (output, monomial, value) in enumerate(parsed):
        if (output, monomial) in seen:
            raise FormatError(f"{name}: term {number} repeats an output and monomial; give each once")
        seen.add((output, monomial))
        entry = float(value) if domain == RR else value
        place = locate(output, monomial, d)
        if place is not None:
            arrays[place[0]][place[1]] = entry
        elif entry != 0:
            outside.append(Term(output, monomial, entry))
    return Coefficients(d, d_out, t, arrays["single"], arrays["cross"], domain, tuple(outside))


def _read_term(term: Any, d: int, d_out: int, t: int, name: str) -> tuple[Entry, Monomial, float | fmpq]:
    if not isinstance(term, dict) or set(term) != {"output", "monomial", "value"}:
        raise FormatError(f"{name}: an object with output, monomial and value is required")
    monomial = term["monomial"]
    if not isinstance(monomial, list) or len(monomial) != 3:
        raise FormatError(f"{name}: monomial {str(monomial)[:40]} found; three [row, column] entries are required")
    a, b, c = sorted(_read_entry(entry, d, t, name) for entry in monomial)
    return _read_entry(term["output"], d_out, t, name), (a, b, c), _read_value(term["value"], name)


def iterate_terms(coefficients: Coefficients) -> Iterator[Term]:
    """All nonzero terms: the single-column ones, the cross-column ones, then those outside the support."""
    d = coefficients.d
    for i, j, r in zip(*np.nonzero(coefficients.single)):
        a, b, c = triples(d)[r]
        yield Term((int(i), int(j)), ((a, int(j)), (b, int(j)), (c, int(j))), coefficients.single[i, j, r])
    for i, j, place, s, m in zip(*np.nonzero(coefficients.cross)):
        k, l = pairs(d)[s]
        n = int(place + (place >= j))
        yield Term((int(i), int(j)), ((k, n), (l, n), (int(m), int(j))), coefficients.cross[i, j, place, s, m])
    yield from coefficients.outside


def coefficients_to_json(coefficients: Coefficients) -> dict[str, Any]:
    """The JSON object; rational and float coefficients only."""
    domain = coefficients.domain
    if domain not in (QQ, RR):
        raise DomainError(f"coefficients over {domain.name} given; files hold rational numbers or floats")
    return {
        "format": FORMAT,
        "version": 1,
        "d": coefficients.d,
        "d_out": coefficients.d_out,
        "t": coefficients.t,
        "terms": [
            {
                "output": list(term.output),
                "monomial": [list(x) for x in term.monomial],
                "value": domain.format(term.value),
            }
            for term in iterate_terms(coefficients)
        ],
    }


def read_coefficients(path: str | Path) -> Coefficients:
    """The coefficients in a JSON file."""
    return coefficients_from_json(read_json(path), str(path))


def write_coefficients(coefficients: Coefficients, path: str | Path) -> None:
    """Write a JSON file: all of it, or nothing."""
    write_atomic(path, to_json(coefficients_to_json(coefficients)) + "\n")
