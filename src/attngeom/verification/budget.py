"""What a recheck may cost, decided from the claim before any work: beyond it the verdict is undecided, with the need.

The limits keep a recheck below about ten seconds and one gigabyte on one core of 2020. Writers recheck what they write
with ``WRITERS_FACTOR`` times the budget: they have just spent more on the search.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from math import ceil
from typing import Any

from attngeom.errors import InputError, SizeError
from attngeom.limits.recheck import (
    ELIMINATION_WORK,
    LARGEST_FACTOR,
)

_factor: ContextVar[float] = ContextVar("factor", default=1.0)


@contextmanager
def budget_times(factor: float) -> Iterator[None]:
    """All limits times a factor, for whoever has the time."""
    if not 0 < factor <= LARGEST_FACTOR:
        raise InputError(f"budget {factor} given; a factor up to {LARGEST_FACTOR:,} is required")
    token = _factor.set(factor)
    try:
        yield
    finally:
        _factor.reset(token)


def afford(needed: float, limit: float, what: str) -> None:
    """SizeError unless ``needed`` is within ``limit`` times the factor of :func:`budget_times`.

    >>> afford(10**3, 4000, "rows")
    >>> with budget_times(100):
    ...     afford(10**5, 4000, "rows")
    """
    allowed = allowance(limit)
    if not needed <= allowed:
        reach = f"--budget {ceil(needed / limit)} allows it" if needed < LARGEST_FACTOR * limit else "out of reach"
        raise SizeError(f"the recheck needs {_number(needed)} {what}; the budget is {_number(allowed)} ({reach})")


def allowance(limit: float) -> float:
    """What a limit allows here: times the factor of :func:`budget_times`."""
    return limit * _factor.get()


def _number(x: float) -> str:
    return f"{int(x):,}" if x < 10**12 else f"{x:.1e}"


def height(numbers: Iterable[Any]) -> int:
    """The bits of the largest numerator or denominator among rationals; 1 if there are none.

    >>> from flint import fmpq
    >>> height([fmpq(3, 16)])
    5
    """
    return max((int(part).bit_length() for x in numbers for part in (x.p, x.q)), default=1) or 1


def afford_elimination(size: int, bits: int) -> None:
    """An exact rank or determinant of an integer matrix of this size, with entries of so many bits."""
    afford(
        size**4 * bits**1.25, ELIMINATION_WORK, f"operations to eliminate a matrix of size {size} with {bits:,} bits"
    )
