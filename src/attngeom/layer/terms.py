"""The terms of coefficient files in little memory: tables of indices and values, not one JSON object for each."""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from itertools import chain, islice
from typing import Any

import numpy as np
from flint import fmpq

from attngeom.errors import InputError
from attngeom.exact.domains import Array, as_fmpq
from attngeom.exact.multisets import pair_index, pairs, triple_places, triples
from attngeom.files import to_json
from attngeom.layer.coefficients import Coefficients, Entry, Monomial, Term, array_shapes
from attngeom.limits.memory import KNOWN_NUMBERS, TERMS_AT_ONCE
from attngeom.streams import Irregular, LongArray

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
