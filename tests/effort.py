"""How far the tests go: `make test` takes few repetitions and small cases, `make test-thorough` all of them."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TypeVar

from hypothesis import settings

THOROUGH = os.environ.get("ATTNGEOM_TESTS") == "thorough"
S, T = TypeVar("S"), TypeVar("T")


def choose(quick: T, thorough: T) -> T:
    """The number or the cases of this run."""
    return thorough if THOROUGH else quick


def thorough(*cases: T) -> tuple[T, ...]:
    """Cases of the thorough run alone, to be listed after those of every run."""
    return choose((), cases)


def spread(rows: Iterable[S], columns: Iterable[T]) -> list[tuple[S, T]]:
    """All pairs in the thorough run; in every run each row with one column, in turn, so that each column occurs."""
    columns = list(columns)
    pairs = [(x, y, i == j % len(columns)) for j, x in enumerate(rows) for i, y in enumerate(columns)]
    return [(x, y) for x, y, is_quick in pairs if THOROUGH or is_quick]


def repeat(number: int) -> range:
    """So many repetitions in the thorough run, an eighth of them, at least five, in every run."""
    return range(choose(min(number, max(5, number // 8)), number))


def examples(number: int) -> settings:
    """So many hypothesis examples, counted in the same way."""
    return settings(max_examples=len(repeat(number)))
