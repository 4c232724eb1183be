"""From residues to rational numbers: Chinese remainders, rational reconstruction, and nullspaces that were checked."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from math import gcd, isqrt, prod

import numpy as np
from flint import fmpq

from attngeom.errors import InputError
from attngeom.exact.domains import GF, Array
from attngeom.exact.numbers import WORD_PRIME, primes_from
from attngeom.limits.trials import LIFTING_PRIMES


def crt(residues: Sequence[Array], primes: Sequence[int]) -> Array:
    """The integers x with x ≡ residues[i] mod primes[i] and |x| < (Π primes)/2, entry by entry.

    The result is int64 if the product of the primes is below 2^62, else it has Python integers.

    >>> crt([np.array([2, 4]), np.array([3, 4])], [5, 7]).tolist()
    [17, 4]
    """
    if len(residues) != len(primes) or not primes:
        raise InputError(f"{len(residues)} arrays and {len(primes)} primes given; one array per prime is required")
    if len(set(primes)) != len(primes):
        raise InputError(f"primes {tuple(primes)} given; distinct primes are required")
    dtype = np.int64 if prod(primes) < 2**62 else object
    x = np.asarray(residues[0]).astype(dtype) % primes[0]
    modulus = primes[0]
    for residue, p in zip(residues[1:], primes[1:]):
        digit = (np.asarray(residue).astype(dtype) - x) % p * pow(modulus, -1, p) % p
        x = x + modulus * digit
        modulus *= p
    return np.asarray(np.where(x > modulus // 2, x - modulus, x))


def reconstruct(x: int, modulus: int) -> fmpq | None:
    """The fraction n/d ≡ x mod modulus with |n|, d ≤ √(modulus/2) and d invertible, if there is one.

    It is unique. None says only that no fraction of that size exists.

    >>> reconstruct(67, 101), reconstruct(8, 101)
    (-1/3, None)
    """
    if modulus < 2:
        raise InputError(f"modulus {modulus} given; at least 2 is required")
    bound = isqrt((modulus - 1) // 2)
    r0, r1, t0, t1 = modulus, int(x) % modulus, 0, 1
    while r1 > bound:
        quotient = r0 // r1
        r0, r1, t0, t1 = r1, r0 - quotient * r1, t1, t0 - quotient * t1
    return fmpq(r1, t1) if abs(t1) <= bound and gcd(r1, t1) == 1 else None


def reconstruct_array(x: Array, modulus: int) -> Array | None:
    """:func:`reconstruct` for every entry; None if one entry has no reconstruction.

    >>> reconstruct_array(np.array([51, 3]), 101).tolist()
    [1/2, 3]
    """
    # Entries repeat (a nullspace has many zeros and ones), so each residue is done once.
    distinct, inverse = np.unique(x.ravel() % modulus, return_inverse=True)
    values = np.empty(len(distinct), dtype=object)
    for index, residue in enumerate(distinct.tolist()):
        value = reconstruct(residue, modulus)
        if value is None:
            return None
        values[index] = value
    return np.asarray(values[inverse]).reshape(x.shape)


def lift_nullspace(
    matrix_mod: Callable[[int], Array],
    primes: Iterable[int] | None = None,
    check: Callable[[Array], bool] | None = None,
) -> Array | None:
    """The reduced basis over Q (as rows) of the nullspace of a matrix that is known modulo any prime.

    ``matrix_mod(p)`` is the matrix mod p; its rows may change with p as long as the rational nullspace does not
    (random evaluations). Primes are added until the basis can be reconstructed and passes the check; None if they were
    not enough. With ``check``, an exact test that every row is in the nullspace, the basis is proven: the nullity
    mod p is an upper bound. Without it, every row is annihilated modulo one further prime: evidence, not a proof.

    >>> lift_nullspace(lambda p: np.array([[2, 3, 0]]) % p).tolist()
    [[-3/2, 1, 0], [0, 0, 1]]
    """
    used: list[int] = []
    bases: list[Array] = []
    candidate: Array | None = None
    for p in islice(primes_from(WORD_PRIME), LIFTING_PRIMES) if primes is None else primes:
        matrix = matrix_mod(p)
        if candidate is not None and _annihilates(matrix, candidate, p):
            return candidate
        basis = GF(p).nullspace(matrix % p)
        quality = _compare_free_columns(basis, bases[0]) if bases else 0
        if quality > 0:
            continue
        if quality < 0:
            used, bases = [], []
        used.append(p)
        bases.append(basis)
        candidate = reconstruct_array(crt(bases, used), prod(used))
        if candidate is not None and check is not None:
            if check(candidate):
                return candidate
            candidate = None
    return None


def _compare_free_columns(basis: Array, other: Array) -> int:
    """Negative if basis belongs to a better prime: smaller nullity, or pivots further to the left.

    The rational matrix has the smallest nullity, and with it the lexicographically first pivots, so only primes
    that divide one of its minors are worse.
    """
    one, two = ([len(x), *(-int(np.flatnonzero(row)[-1]) for row in x)] for x in (basis, other))
    return (one > two) - (one < two)


def _annihilates(matrix: Array, basis: Array, p: int) -> bool:
    """Whether matrix · basisᵀ = 0 mod p; a prime in a denominator proves nothing."""
    field = GF(p)
    try:
        reduced = field.convert(basis)
    except InputError:
        return False
    return field.is_zero(field.matmul(field.convert(matrix), reduced.T))
