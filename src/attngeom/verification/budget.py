"""What a recheck may cost, decided from the claim before any work: beyond it the verdict is undecided, with the need.

The limits keep a recheck below about ten seconds and one gigabyte on one core of 2020. Writers recheck what they write
with ``WRITERS`` times the budget: they have just spent more on the search.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from math import ceil
from typing import Any

from attngeom.errors import InputError, SizeError

MAX_FACTOR = 10_000
"""A day or so."""
WRITERS = 100.0
MAX_BYTES = 2**28
"""Of a certificate file."""
MAX_COEFFICIENTS = 4 * 10**6
"""Coefficients that a claim about one layer is about, zeros included."""
MAX_ELIMINATION = 10**11
"""n⁴ b^(5/4) for the exact rank or determinant of an n×n integer matrix with b bits; measured, about ten seconds."""
MAX_READS = 3 * 10**5
"""Coefficients that the definition of an invariant reads, one by one."""
MAX_PRODUCTS = 5 * 10**6
"""Products of rational numbers, one by one."""
MAX_MATRIX_PRODUCTS = 2 * 10**7
"""The same in products of matrices, times the words of 64 bits of a number."""
MAX_FIELD_PRODUCTS = 4 * 10**5
"""Products of numbers in a cubic field, each a product of polynomials."""
MAX_PARAMETERS = 10**6
MAX_DIMENSION = 4000
MAX_SYMMETRY_ENTRIES = 2 * 10**7
"""Entries of the matrix of infinitesimal symmetries."""
MAX_SAMPLE_ENTRIES = 2 * 10**7
"""Entries of all inputs, cotangents and attention matrices that a minor of the Jacobian is evaluated at."""
MAX_JACOBIAN = 2 * 10**9
"""Multiplications mod p for derivatives in many directions; measured, about ten seconds."""
HEAD = 6 * 10**4
"""What the derivatives of one head at one sample take besides their multiplications, counted in these."""
MAX_CUTS = 10**7
"""Three places among the layers of a network: where a part starts, is cut and ends."""
MAX_BLAS_PRODUCTS = 10**11
"""Multiplications mod p in floating point BLAS for the transcript of a matrix-free proof; about ten seconds."""
MAX_SUMS_PER_RESIDUE = 3
"""Random sums that must all be nonzero mod p, over p: about e^3 draws; small primes would make them endless."""


_factor: ContextVar[float] = ContextVar("factor", default=1.0)


@contextmanager
def budget_times(factor: float) -> Iterator[None]:
    """All limits times a factor, for whoever has the time."""
    if not 0 < factor <= MAX_FACTOR:
        raise InputError(f"budget {factor} given; a factor up to {MAX_FACTOR:,} is required")
    token = _factor.set(factor)
    try:
        yield
    finally:
        _factor.reset(token)


def afford(needed: float, limit: float, what: str) -> None:
    """SizeError unless ``needed`` is within ``limit`` times the factor of :func:`budget_times`.

    >>> afford(10**3, MAX_DIMENSION, "rows")
    >>> with budget_times(100):
    ...     afford(10**5, MAX_DIMENSION, "rows")
    """
    allowed = limit * _factor.get()
    if not needed <= allowed:
        reach = f"--budget {ceil(needed / limit)} allows it" if needed < MAX_FACTOR * limit else "out of reach"
        raise SizeError(f"the recheck needs {_number(needed)} {what}; the budget is {_number(allowed)} ({reach})")


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
    afford(size**4 * bits**1.25, MAX_ELIMINATION, f"operations to eliminate a matrix of size {size} with {bits:,} bits")
