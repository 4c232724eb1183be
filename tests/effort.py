"""How far the tests go: `make test` takes few repetitions and small cases, `make test-thorough` all of them."""

from __future__ import annotations

import os
from typing import TypeVar

from hypothesis import settings

THOROUGH = os.environ.get("ATTNGEOM_TESTS") == "thorough"
T = TypeVar("T")


def choose(quick: T, thorough: T) -> T:
    """The number or the cases of this run."""
    return thorough if THOROUGH else quick


def thorough(*cases: T) -> tuple[T, ...]:
    """Cases of the thorough run alone, to be listed after those of every run."""
    return choose((), cases)


def repeat(number: int) -> range:
    """So many repetitions in the thorough run, a quarter of them, at least eight, in every run."""
    return range(choose(min(number, max(8, number // 4)), number))


def examples(number: int) -> settings:
    """So many hypothesis examples, counted in the same way."""
    return settings(max_examples=len(repeat(number)))
