"""The contract of benchmarks: one JSON record for each measurement, into the file that ATTNGEOM_BENCHMARKS names.

A record has a table (what is compared), a case (one row of it), a size (a number that grows with the case, or null),
who was measured (``ours``, the name of a peer, or ``limit`` for what the machine allows), a value and its unit. Scripts
print what they like besides; ``benchmarks/page.py`` collects the records of all of them.

A time counts only if what was timed was complete and right: a script says so with :func:`require` before it emits.
"""

from __future__ import annotations

import json
import os
import sys
import time
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path

VARIABLE = "ATTNGEOM_BENCHMARKS"
OURS, LIMIT = "ours", "limit"


@dataclass(frozen=True)
class Measurement:
    """One number: of whom, in which row of which table of which benchmark."""

    benchmark: str
    table: str
    case: str
    size: float | None
    who: str
    value: float
    unit: str

    @classmethod
    def from_line(cls, line: str) -> Measurement:
        return cls(**json.loads(line))


class WrongResult(AssertionError):
    """What was timed was not complete, or not right: the script ends, and the page says so."""


def require(holds: object, what: str) -> None:
    """WrongResult unless what was timed was complete and right, as ``what`` says; not switched off by ``python -O``.

    >>> require(2 + 2 == 4, "the sum is right")
    """
    if not holds:
        raise WrongResult(f"not so: {what}")


def emit(table: str, case: str, value: float, who: str = OURS, size: float | None = None, unit: str = "CPU s") -> None:
    """Add one record to the file of this run, if there is one."""
    target = os.environ.get(VARIABLE)
    if target is None:
        return
    found = Measurement(Path(sys.argv[0]).stem, table, case, size, who, float(value), unit)
    with Path(target).open("a", encoding="utf-8") as stream:
        stream.write(json.dumps(asdict(found)) + "\n")


@lru_cache(maxsize=1)
def multiply_rate() -> float:
    """Multiplications with addition per CPU second of this core, in a float64 matrix product of size 1000.

    The limit of everything here that is linear algebra: no exact method can be faster than a plain product.
    """
    import numpy as np

    size = 1000
    a = np.random.default_rng(0).standard_normal((size, size))
    a @ a
    best = float("inf")
    for _ in range(3):
        start = time.process_time()
        a @ a
        best = min(best, time.process_time() - start)
    return size**3 / max(best, 1e-6)


@lru_cache(maxsize=1)
def read_rate() -> float:
    """Bytes per CPU second of this core that one pass over memory reads: a sum of 32 million doubles.

    The limit of everything that looks at each number once.
    """
    import numpy as np

    numbers = np.ones(2**25)
    best = float("inf")
    for _ in range(3):
        start = time.process_time()
        numbers.sum()
        best = min(best, time.process_time() - start)
    return numbers.nbytes / max(best, 1e-6)
