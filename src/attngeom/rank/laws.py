"""What gradient flow conserves: quadratic forms of the weights, one for each symmetry with a symmetric matrix."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from math import gcd, lcm, prod

import numpy as np
from flint import fmpq, fmpq_mat

from attngeom.limits.shown import LAW_TERMS
from attngeom.limits.work import EXACT_LAWS
from attngeom.programs.program import Program
from attngeom.rank.search import Field


def symmetric_fields(fields: Sequence[Field]) -> list[Field]:
    """A basis of the combinations ξ = Zθ + c with Z symmetric: gradient flow of every loss conserves θᵀZθ/2 + cᵀθ."""
    if len(fields) > EXACT_LAWS:
        fields = [field for field in fields if _is_symmetric(field)]
    pairs: dict[tuple[int, int], int] = {}
    entries: list[tuple[int, int, fmpq]] = []
    for number, field in enumerate(fields):
        for (moved, source), times in field.items():
            if source is not None and source != moved:
                key, sign = ((moved, source), 1) if moved < source else ((source, moved), -1)
                entries.append((pairs.setdefault(key, len(pairs)), number, sign * times))
    free = [field for field in fields if all(source in (None, moved) for moved, source in field)]
    free.sort(key=lambda field: any(source is not None for _, source in field))
    mixed = [number for number, field in enumerate(fields) if not all(s in (None, m) for m, s in field)]
    if not mixed:
        return free
    column = {number: k for k, number in enumerate(mixed)}
    matrix = fmpq_mat(len(pairs), len(mixed))
    for row, number, times in entries:
        matrix[row, column[number]] += times
    reduced, rank = matrix.rref()
    pivots = [next(j for j in range(len(mixed)) if reduced[i, j]) for i in range(rank)]
    result = list(free)
    for j in range(len(mixed)):
        if j in pivots:
            continue
        combination: Field = dict(fields[mixed[j]])
        for i, pivot in enumerate(pivots):
            if reduced[i, j]:
                for term, times in fields[mixed[pivot]].items():
                    combination[term] = combination.get(term, fmpq(0)) - reduced[i, j] * times
        result.append({term: times for term, times in combination.items() if times})
    return result


def _is_symmetric(field: Field) -> bool:
    return all(s is None or field.get((s, m)) == t for (m, s), t in field.items())


def describe_law(program: Program, field: Field) -> str:
    """The conserved quantity θᵀZθ + 2cᵀθ of a symmetric field, or a multiple: squares and products of lines of tensors.

    A form of many terms that are no lines is named by its weights, not written.

    >>> from attngeom.programs import trace
    >>> program = trace(lambda w, x: w["a"] * (w["b"] * x), (), weights={"a": (), "b": ()})
    >>> describe_law(program, {(0, 0): fmpq(1), (1, 1): fmpq(-1)})
    '|a|² − |b|²'
    """
    squares: Groups = defaultdict(list)
    products: Groups = defaultdict(list)
    sums: Groups = defaultdict(list)
    places = _Places(program)
    for (moved, source), times in field.items():
        if source is None:
            sums[places.owner(moved), "", (), 2 * times].append((moved, moved))
        elif source == moved:
            squares[places.owner(moved), "", (), times].append((moved, moved))
        elif moved < source:
            # The other half of the symmetric matrix makes it twice.
            key = places.owner(moved), places.owner(source), places.shift(moved, source), 2 * times
            products[key].append((moved, source))
    terms = [(key[3], _around("|", places.line(m for m, _ in pairs), "|²")) for key, pairs in squares.items()]
    for key, pairs in products.items():
        one, two = places.line(m for m, _ in pairs), places.line(s for _, s in pairs)
        terms.append((key[3], f"⟨{one}, {two}⟩" if one and two else ""))
    for key, pairs in sums.items():
        terms.append((key[3], _around("" if len(pairs) == 1 else "Σ ", places.line(m for m, _ in pairs), "")))
    if len(terms) > LAW_TERMS or not all(text for _, text in terms):
        owners = sorted({places.owner(moved) for moved, _ in field})
        return f"a quadratic form in {len({m for m, _ in field}):,} weights of {', '.join(owners)}"
    return _written(terms)


Groups = dict[tuple[str, str, tuple[int, ...], fmpq], list[tuple[int, int]]]
"""Pairs of weights of two tensors, one step apart, with one coefficient."""


class _Places:
    """Weights by their number: the tensor, and lines of it."""

    def __init__(self, program: Program) -> None:
        self.shapes, self.offsets = program.parameters, program.offsets
        self._starts = [place.start for place in program.offsets.values()]
        self._names = list(program.offsets)

    def owner(self, weight: int) -> str:
        return self._names[int(np.searchsorted(self._starts, weight, side="right")) - 1]

    def _index(self, weight: int) -> tuple[int, ...]:
        name = self.owner(weight)
        return tuple(int(k) for k in np.unravel_index(weight - self.offsets[name].start, self.shapes[name]))

    def shift(self, one: int, two: int) -> tuple[int, ...]:
        """In one tensor the axes on which two weights differ, with their places there: pairs of one pair of lines."""
        if self.owner(one) != self.owner(two):
            return ()
        a, b = self._index(one), self._index(two)
        return tuple(x for k in range(len(a)) if a[k] != b[k] for x in (k, a[k], b[k]))

    def line(self, weights: Iterable[int]) -> str:
        """Some weights of one tensor as a part of it, a product of places on its axes; nothing if they are none."""
        numbers = sorted(set(weights))
        name = self.owner(numbers[0])
        shape = self.shapes[name]
        used = [sorted(set(axis)) for axis in zip(*map(self._index, numbers))]
        if prod(map(len, used)) != len(numbers):
            return ""
        if len(numbers) == prod(shape):
            return name
        return f"{name}[{', '.join(_slice(own, size) for own, size in zip(used, shape))}]"


def _around(before: str, text: str, behind: str) -> str:
    return f"{before}{text}{behind}" if text else ""


def _slice(used: Sequence[int], size: int) -> str:
    """Places on an axis as they are written between brackets.

    >>> _slice([0, 1, 2], 3), _slice([2], 3), _slice([1, 2, 3], 5), _slice([0, 2], 3)
    (':', '2', '1:4', '[0, 2]')
    """
    if len(used) == size:
        return ":"
    if len(used) == 1:
        return str(used[0])
    is_range = used[-1] - used[0] == len(used) - 1
    return f"{used[0]}:{used[-1] + 1}" if is_range else f"[{', '.join(map(str, used))}]"


def _written(terms: Sequence[tuple[fmpq, str]]) -> str:
    """A combination with coprime integers, the first of them positive."""
    scale = fmpq(lcm(*(int(x.q) for x, _ in terms)), gcd(*(int(x.p) for x, _ in terms)))
    scale = scale if terms[0][0] > 0 else -scale
    parts = []
    for times, text in terms:
        number = times * scale
        size = abs(int(number.p))
        parts.append(f"{'−' if number < 0 else '+'} {'' if size == 1 else f'{size}·'}{text}")
    return " ".join(parts).removeprefix("+ ")
