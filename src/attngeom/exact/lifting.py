"""From residues to rational numbers: Chinese remaindering, rational reconstruction, and lifts that were checked.

A reconstruction from residues is only a guess. The functions ``lift_…`` return a value after a check of it passed,
and the returned record says which one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from math import isqrt

import numpy as np
from flint import fmpq

from attngeom.errors import InputError
from attngeom.exact.domains import GF, Array
from attngeom.exact.modular import nullspace_mod_p
from attngeom.exact.primes import WORD_PRIME, primes_from


@dataclass(frozen=True)
class Lift:
    """Rational numbers found from their residues and then checked.

    ``primes`` were used to find ``value``; ``checked`` is ``"exact"`` (the caller's exact check passed: a proof) or
    ``"mod p"`` (it passed modulo a further prime p: an error would need p to divide it).
    """

    value: Array
    primes: tuple[int, ...]
    checked: str


def crt(residues: Sequence[Array], primes: Sequence[int]) -> Array:
    """The integers x with x ≡ residues[i] mod primes[i] and |x| < (Π primes)/2, entry by entry.

    >>> crt([np.array([2, 4]), np.array([3, 4])], [5, 7]).tolist()
    [17, 4]
    """
    if len(residues) != len(primes) or not primes:
        raise InputError(f"{len(residues)} arrays and {len(primes)} primes given; one array per prime is required")
    if len(set(primes)) != len(primes):
        raise InputError(f"primes {tuple(primes)} given; distinct primes are required")
    modulus = primes[0]
    x = np.asarray(residues[0]).astype(object) % modulus
    for residue, p in zip(residues[1:], primes[1:]):
        step = (np.asarray(residue).astype(object) - x) * pow(modulus, -1, p) % p
        x = x + modulus * step
        modulus *= p
    return np.where(2 * x > modulus, x - modulus, x)


def reconstruct(x: int, modulus: int) -> fmpq | None:
    """The fraction n/d ≡ x mod modulus with |n|, d ≤ √(modulus/2) and gcd(d, modulus) = 1, if there is one.

    It is unique. None says only that no fraction of that size exists.

    >>> reconstruct(67, 101), reconstruct(8, 101)
    (-1/3, None)
    """
    bound = isqrt((modulus - 1) // 2)
    r0, r1, t0, t1 = modulus, x % modulus, 0, 1
    while r1 > bound:
        q = r0 // r1
        r0, r1, t0, t1 = r1, r0 - q * r1, t1, t0 - q * t1
    if abs(t1) > bound or t1 == 0:
        return None
    value = fmpq(r1, t1)
    return value if int(value.q) == abs(t1) else None


def reconstruct_array(x: Array, modulus: int) -> Array | None:
    """:func:`reconstruct` for every entry; None if one entry has no reconstruction.

    >>> reconstruct_array(np.array([51, 3]), 101).tolist()
    [1/2, 3]
    """
    out = np.empty(x.size, dtype=object)
    for index, entry in enumerate(x.ravel().tolist()):
        value = reconstruct(entry, modulus)
        if value is None:
            return None
        out[index] = value
    return out.reshape(x.shape)


def lift_array(
    residues: Sequence[Array], primes: Sequence[int], check: Callable[[Array], bool], checked: str = "exact"
) -> Lift | None:
    """The rational array with the given residues, if it is small enough and ``check`` accepts it; else None.

    >>> lift_array([np.array([51])], [101], check=lambda x: x[0] * 2 == 1).value.tolist()
    [1/2]
    """
    modulus = 1
    for p in primes:
        modulus *= p
    value = reconstruct_array(crt(residues, primes), modulus)
    if value is None or not check(value):
        return None
    return Lift(value, tuple(primes), checked)


def lift_nullspace(
    matrix_mod: Callable[[int], Array],
    primes: Iterable[int] | None = None,
    check: Callable[[Array], bool] | None = None,
    max_primes: int = 64,
) -> Lift | None:
    """A basis over Q (as rows) of the nullspace of a matrix that is known modulo any prime.

    ``matrix_mod(p)`` is the matrix mod p; its rows may change with p as long as the rational nullspace does not.
    Without ``check`` the basis must be annihilated modulo one further prime.

    >>> lift_nullspace(lambda p: np.array([[2, 3, 0]]) % p).value.tolist()
    [[-3/2, 1, 0], [0, 0, 1]]
    """
    stream = iter(primes) if primes is not None else primes_from(WORD_PRIME)
    residues: list[Array] = []
    used: list[int] = []
    best: tuple[int, ...] | None = None
    for _ in range(max_primes):
        p = next(stream, None)
        if p is None:
            return None
        basis = nullspace_mod_p(matrix_mod(p), p)
        free = tuple(int(np.flatnonzero(row)[-1]) for row in basis)
        if best is None or (len(free), [-j for j in free]) < (len(best), [-j for j in best]):
            best, residues, used = free, [], []
        if free == best:
            residues.append(basis)
            used.append(p)
        value = reconstruct_array(crt(residues, used), int(np.prod(np.array(used, dtype=object))))
        if value is None:
            continue
        if check is not None:
            if check(value):
                return Lift(value, tuple(used), "exact")
            continue
        q = next(stream, None)
        if q is None:
            return None
        stream = chain([q], stream)
        field = GF(q)
        if field.is_zero(field.matmul(field.array(matrix_mod(q)), field.array(value).T)):
            return Lift(value, tuple(used), f"mod {q}")
    return None
