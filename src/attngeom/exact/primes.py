"""The primes in use, each the largest one below a bound that some arithmetic needs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache
from itertools import islice
from typing import TypeVar

from flint import fmpz

from attngeom.errors import InputError
from attngeom.limits.trials import PRIMES_TRIED

T = TypeVar("T")

SMALL_PRIME = 251
"""Largest prime below 2^8: 1,000 balanced products stay below 2^24, so float32 BLAS is exact, twice as fast."""

BLAS_PRIME = 8388593
"""Largest prime below 2^23: blocks of 512 balanced products stay below 2^53, so float64 BLAS is exact."""

WORD_PRIME = 2147483629
"""Largest prime below 2^31 - 1: products of two residues fit in int64."""

BIG_PRIME = 2305843009213693951
"""2^61 - 1: for identity tests whose error probability must be tiny."""


@lru_cache(maxsize=1024, typed=True)
def check_prime(p: int) -> int:
    """Return p if it is a prime below 2^63.

    >>> check_prime(7)
    7
    """
    if isinstance(p, bool) or not isinstance(p, int) or not 2 <= p < 2**63 or not fmpz(p).is_prime():
        raise InputError(f"modulus {p!r} given; a prime between 2 and 2^63 is required")
    return p


def primes_from(p: int) -> Iterator[int]:
    """The primes p, p', p'', … in decreasing order, starting with the largest one that is at most p.

    >>> list(primes_from(10))
    [7, 5, 3, 2]
    """
    for candidate in range(p, 1, -1):
        if fmpz(candidate).is_prime():
            yield candidate


def modulo_some_prime(convert: Callable[[int], T], first: int) -> tuple[int, T]:
    """(p, convert(p)) for the first prime from ``first`` down that divides no denominator of what is converted.

    >>> from attngeom.exact import GF
    >>> modulo_some_prime(lambda p: GF(p).convert(["1/7"]).tolist(), 7)
    (5, [3])
    """
    for p in islice(primes_from(first), PRIMES_TRIED):
        try:
            return p, convert(p)
        except InputError:
            continue
    raise InputError("numbers with denominators divisible by many primes given; simplify them")
