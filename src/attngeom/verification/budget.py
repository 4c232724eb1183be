"""What a recheck may cost, decided from the claim before any work: beyond it the verdict is undecided, with the need.

The limits keep a recheck below about ten seconds and one gigabyte on one core of 2020; honest certificates that this
package writes stay below them, because its writers recheck what they write.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from attngeom.errors import SizeError

MAX_BYTES = 2**28
"""Of a certificate file."""
MAX_COEFFICIENTS = 4 * 10**6
"""Coefficients that a claim about one layer is about, zeros included."""
MAX_ELIMINATION = 10**11
"""n⁴ b^(5/4) for the exact rank or determinant of an n×n integer matrix with b bits; measured, about ten seconds."""
MAX_READS = 3 * 10**5
"""Coefficients that the definition of an invariant reads, one by one."""
MAX_FIELD_PRODUCTS = 4 * 10**5
"""Products of numbers in a cubic field, each a product of polynomials."""
MAX_PARAMETERS = 10**6
MAX_DIMENSION = 4000
MAX_SYMMETRY_ENTRIES = 2 * 10**7
"""Entries of the matrix of infinitesimal symmetries."""
MAX_SAMPLE_ENTRIES = 2 * 10**7
"""Entries of all inputs, cotangents and attention matrices that a minor of the Jacobian is evaluated at."""
MAX_JACOBIAN = 10**11
"""Multiplications mod p for a minor of the Jacobian; this one takes minutes, for sizes above a thousand."""
MAX_SUMS_PER_RESIDUE = 3
"""Random sums that must all be nonzero mod p, over p: about e^3 draws; small primes would make them endless."""


def afford(needed: float, limit: float, what: str) -> None:
    """SizeError unless ``needed`` is within ``limit``.

    >>> afford(10**3, MAX_DIMENSION, "rows")
    """
    if not needed <= limit:
        raise SizeError(f"the recheck needs {_number(needed)} {what}; the budget is {_number(limit)}")


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
