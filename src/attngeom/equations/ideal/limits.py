"""Limits of a computation: wall time and memory, asked before each step that could pass them.

Loops call :func:`check` with what their next step needs; :class:`OverBudget` ends the run, which then reports how far
it came. Without limits a step may take what the machine has.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from attngeom.limits.memory import UNCOUNTED_BYTES
from attngeom.limits.seconds import ELIMINATION_RATE

STATM = Path("/proc/self/statm")


class OverBudget(Exception):
    """The next step would pass a limit; the text says which, and what it would need."""


def resident_bytes() -> int:
    """The memory that this process holds, 0 where the system does not tell."""
    try:
        with STATM.open("rb", buffering=0) as file:
            pages = int(file.read().split()[1])
    except (OSError, ValueError, IndexError):
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE")


@cache
def machine_bytes() -> int:
    """The memory of the machine, 2^34 where the system does not tell."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError, AttributeError):
        return 2**34


@dataclass(frozen=True)
class Limits:
    """At most so many wall seconds from now on, and so many megabytes beyond what the process holds now."""

    seconds: float | None = None
    megabytes: float | None = None
    started: float = field(default_factory=time.monotonic, compare=False, repr=False)
    resident: int = field(default_factory=resident_bytes, compare=False, repr=False)

    @contextmanager
    def hold(self) -> Iterator[None]:
        """Apply these limits to every :func:`check` inside."""
        token = _current.set(self)
        try:
            yield
        finally:
            _current.reset(token)

    def require(self, operations: float, size: float) -> None:
        """Raise :class:`OverBudget` if a step with so many multiplications and bytes would pass a limit."""
        if self.seconds is not None:
            passed, needed = time.monotonic() - self.started, operations / ELIMINATION_RATE
            if passed > self.seconds:
                raise OverBudget(f"the {self.seconds:g} s that were given are over")
            if passed + needed > self.seconds:
                raise OverBudget(f"of {self.seconds:g} s too few are left for a step of about {needed:.1f} s")
        if not size:
            return
        grown = max(0, resident_bytes() - self.resident - UNCOUNTED_BYTES)
        allowed = machine_bytes() if self.megabytes is None else self.megabytes * 2**20
        if grown + size > allowed:
            needs = f"{(grown + size) / 2**20:,.1f} MB"
            raise OverBudget(f"the next step needs about {needs} of memory; {allowed / 2**20:,.0f} MB are allowed")


_current: ContextVar[Limits] = ContextVar("limits")


def check(operations: float = 0, size: float = 0) -> None:
    """Ask the limits that hold here for a step with so many multiplications mod p and so many bytes.

    >>> check(size=100)
    >>> with Limits(megabytes=1).hold():
    ...     check(size=2**21)
    Traceback (most recent call last):
    attngeom.equations.ideal.limits.OverBudget: the next step needs about 2.0 MB of memory; 1 MB are allowed
    """
    limits = _current.get(None)
    if limits is not None:
        limits.require(operations, size)
