"""What the definitions of invariants share: access to coefficients, strict reading of indices, determinants."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from attngeom.errors import FormatError

Data = dict[str, Any]


@dataclass(frozen=True)
class Accessor:
    """Scaled coefficients of a cubic map: ``cross(i, j, n, k, l, m)``, ``single(i, j, k, l, m)``, ``outside(…)``.

    i is the output row, j the target column, n ≠ j the context column, (k, l) and m context and target rows.
    """

    d: int
    d_out: int
    t: int
    cross: Callable[[int, int, int, int, int, int], Any]
    single: Callable[[int, int, int, int, int], Any]
    outside: Callable[[tuple[int, int], tuple[tuple[int, int], ...]], Any]

    def y(self, i: int, k: int, l: int, m: int) -> Any:
        """y_{(k,l),m} of row i at target column 0 and context column 1."""
        return self.cross(i, 0, 1, min(k, l), max(k, l), m)


@dataclass(frozen=True)
class Definition:
    """An invariant: ``evaluate(data, accessor)``; ``degree(data)`` in the coefficients."""

    evaluate: Callable[[Data, Accessor], Any]
    degree: Callable[[Data], int]


def read_index(value: Any, bound: int) -> int:
    """An integer in [0, bound)."""
    if type(value) is not int or not 0 <= value < bound:
        raise FormatError(f"index {str(value)[:40]} found; an integer in [0, {bound}) is required")
    return value


def read_indices(value: Any, length: int, bound: int, strict: bool = True) -> list[int]:
    """A list of indices in increasing order, strictly unless repetitions are allowed."""
    if type(value) is not list or len(value) != length:
        raise FormatError(f"indices {str(value)[:40]} found; a list of {length} is required")
    found = [read_index(x, bound) for x in value]
    if any(x > y or (strict and x == y) for x, y in pairwise(found)):
        raise FormatError(f"indices {found} found; increasing order is required")
    return found


def read_integers(value: Any, rows: int, columns: int) -> list[list[int]]:
    """A matrix of integers with at most 19 digits."""
    if type(value) is not list or len(value) != rows or any(type(row) is not list for row in value):
        raise FormatError(f"a matrix with {rows} rows is required")
    if any(len(row) != columns or any(type(x) is not int or abs(x) >= 10**19 for x in row) for row in value):
        raise FormatError(f"a {rows}×{columns} matrix of integers is required")
    return [list(row) for row in value]


def determinant(matrix: Sequence[Sequence[Any]]) -> Any:
    """The determinant of a nonempty square matrix over a field, by elimination."""
    rows = [list(row) for row in matrix]
    result = None
    for k in range(len(rows)):
        pivot = next((i for i in range(k, len(rows)) if rows[i][k] != 0), None)
        if pivot is None:
            return rows[0][0] * 0
        if pivot != k:
            rows[k], rows[pivot] = rows[pivot], [-x for x in rows[k]]
        result = rows[k][k] if result is None else result * rows[k][k]
        for i in range(k + 1, len(rows)):
            if rows[i][k] != 0:
                factor = rows[i][k] / rows[k][k]
                rows[i] = [x - factor * z for x, z in zip(rows[i], rows[k])]
    return result
