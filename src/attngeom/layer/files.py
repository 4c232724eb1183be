"""Coefficient files: the JSON format of a cubic map, read strictly and written atomically.

Terms take little memory: tables of indices and values, not one JSON object for each.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np
from flint import fmpq

from attngeom.errors import DomainError, FormatError, InputError, SizeError
from attngeom.exact.domains import QQ, RR, Array, as_fmpq
from attngeom.exact.multisets import pair_index, pairs, triple_places, triples
from attngeom.files import check_header, replacing, to_json
from attngeom.layer.coefficients import Coefficients, Entry, Monomial, Term, array_shapes, check_size
from attngeom.limits.memory import KNOWN_NUMBERS, TERMS_AT_ONCE
from attngeom.limits.sizes import WRITTEN_COEFFICIENTS
from attngeom.streams import Irregular, LongArray, Report, as_plain, iterate_json, read_long_json

_TEXT = '{"output": [%d, %d], "monomial": [[%d, %d], [%d, %d], [%d, %d]], "value": %s}'
_CANONICAL = '{"monomial":[[%d,%d],[%d,%d],[%d,%d]],"output":[%d,%d],"value":%s}'


class Terms(LongArray):
    """Terms in their order: ``rows`` (N, 8) holds output and monomial as in the file, ``values`` the coefficients.

    A value is a number of the domain, or what the file says where that is another way to write a rational number.
    """

    def __init__(self, rows: Array, values: list[Any]) -> None:
        self.rows, self.values = rows, values

    def __len__(self) -> int:
        return len(self.values)

    def part(self, start: int, stop: int) -> list[dict[str, Any]]:
        return [_write_term(*term) for term in zip(self.rows[start:stop].tolist(), self.values[start:stop])]

    def __iter__(self) -> Iterator[dict[str, Any]]:
        for start in range(0, len(self), TERMS_AT_ONCE):
            yield from self.part(start, start + TERMS_AT_ONCE)

    def pieces(self, canonical: bool) -> Iterator[str]:
        order = [2, 3, 4, 5, 6, 7, 0, 1] if canonical else slice(None)
        comma, text = (",", _CANONICAL) if canonical else (", ", _TEXT)
        for start in range(0, len(self), TERMS_AT_ONCE):
            rows = self.rows[start : start + TERMS_AT_ONCE, order].tolist()
            values = self.values[start : start + TERMS_AT_ONCE]
            written = [f'"{x}"' if type(x) is fmpq else to_json(x) for x in values]
            yield comma.join([text % (*row, value) for row, value in zip(rows, written)])


def _write_term(row: list[int], value: Any) -> dict[str, Any]:
    i, j, a, b, c, d, e, f = row
    written = str(value) if type(value) is fmpq else value
    return {"output": [i, j], "monomial": [[a, b], [c, d], [e, f]], "value": written}


class LayerTerms(LongArray):
    """All nonzero terms of given coefficients: single-column ones, cross-column ones, those outside the support."""

    def __init__(self, coefficients: Coefficients) -> None:
        self.coefficients = coefficients

    def parts(self) -> Iterator[Terms]:
        """The terms of one output row at a time."""
        single, cross, d = self.coefficients.single, self.coefficients.cross, self.coefficients.d
        multisets, context = np.array(triples(d)), np.array(pairs(d))
        for i in range(self.coefficients.d_out):
            j, r = np.nonzero(single[i])
            k, l, m = multisets[r].T
            yield Terms(np.stack([np.full_like(j, i), j, k, j, l, j, m, j], axis=1), single[i, j, r].tolist())
        for i in range(self.coefficients.d_out):
            j, place, s, m = np.nonzero(cross[i])
            (k, l), n = context[s].T, place + (place >= j)
            yield Terms(np.stack([np.full_like(j, i), j, k, n, l, n, m, j], axis=1), cross[i, j, place, s, m].tolist())
        outside = self.coefficients.outside
        rows = [[*term.output, *chain(*term.monomial)] for term in outside]
        yield Terms(np.array(rows, dtype=np.intp).reshape(-1, 8), [term.value for term in outside])

    def __len__(self) -> int:
        parts = (self.coefficients.single, self.coefficients.cross)
        return sum(int(np.count_nonzero(part)) for part in parts) + len(self.coefficients.outside)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return chain.from_iterable(self.parts())

    def part(self, start: int, stop: int) -> list[dict[str, Any]]:
        return list(islice(self, start, stop))

    def pieces(self, canonical: bool) -> Iterator[str]:
        return chain.from_iterable(part.pieces(canonical) for part in self.parts())


def collect_terms(batches: Iterator[list[Any]]) -> Terms:
    """The terms of a file, of which some come at a time; Irregular if one has not the usual form."""
    rows, values = array("i"), []
    known: dict[str, fmpq] = {}
    for batch in batches:
        for term in batch:
            try:
                (i, j), ((a, b), (c, d), (e, f)), value = term["output"], term["monomial"], term["value"]
                row = (i, j, a, b, c, d, e, f)
                if len(term) > 3 or set(map(type, row)) != {int}:
                    raise Irregular
                rows.extend(row)
                values.append(known.get(value) or _collect_value(value, known))
            except (TypeError, KeyError, ValueError, OverflowError, InputError):
                raise Irregular from None
    return Terms(np.frombuffer(rows, dtype=np.intc).reshape(-1, 8), values)


def _collect_value(value: Any, known: dict[str, fmpq]) -> Any:
    """The number if that is how it is written, else what is written; equal numbers are held once, up to a limit."""
    if type(value) is not str:
        if type(value) not in (int, float):
            raise Irregular
        return value
    number = as_fmpq(value)
    if str(number) != value:
        return value
    if len(known) < KNOWN_NUMBERS:
        known[value] = number
    return number


class Placement:
    """The arrays of the support while terms are placed into them, some at a time; what lies outside is kept apart."""

    def __init__(self, d: int, d_out: int, t: int, empty: Any) -> None:
        self.d = d
        self.arrays = [empty(shape) for shape in array_shapes(d, d_out, t)]
        self.taken = [np.zeros(table.size, dtype=bool) for table in self.arrays]
        self.outside: dict[tuple[Entry, Monomial], Any] = {}

    def add(self, rows: Array, values: Array) -> int | None:
        """Place the values of terms; the number of one that was there before, None if all are new."""
        d, i, j = self.d, rows[:, 0], rows[:, 1]
        # The entries of the target column last.
        order = np.argsort(rows[:, 3::2] == j[:, None], axis=1, kind="stable")
        r, c = (np.take_along_axis(rows[:, first::2], order, axis=1) for first in (2, 3))
        targets = (c == j[:, None]).sum(axis=1)
        alone, mixed = targets == 3, (targets == 1) & (c[:, 0] == c[:, 1])
        k, l, m = np.sort(r[alone], axis=1).T
        single = i[alone], j[alone], triple_places(k, l, m, d)
        (k, l, m), n = r[mixed].T, c[mixed, 0]
        cross = i[mixed], j[mixed], n - (n > j[mixed]), pair_index(d)[k, l], m
        for table, taken, place, where in zip(self.arrays, self.taken, (single, cross), (alone, mixed)):
            flat = np.ravel_multi_index(place, table.shape)
            is_new = np.zeros(len(flat), dtype=bool)
            is_new[np.unique(flat, return_index=True)[1]] = True
            is_new &= ~taken[flat]
            if not is_new.all():
                return int(np.flatnonzero(where)[is_new.argmin()])
            taken[flat] = True
            table.reshape(-1)[flat] = values[where]
        for number in np.flatnonzero(~(alone | mixed)).tolist():
            output, x, y, z = map(tuple, rows[number].reshape(4, 2).tolist())
            x, y, z = sorted((x, y, z))
            if (output, (x, y, z)) in self.outside:
                return number
            self.outside[output, (x, y, z)] = values[number]
        return None

    def terms_outside(self) -> tuple[Term, ...]:
        return tuple(Term(*key, value) for key, value in self.outside.items() if value != 0)


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
