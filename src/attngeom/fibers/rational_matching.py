"""Matching of rational weights through residues: find the group element mod p, lift it, check it over Q."""

from __future__ import annotations

import numpy as np
from flint import fmpq

from attngeom.errors import InputError
from attngeom.exact.domains import QQ, Array
from attngeom.exact.lifting import crt, reconstruct
from attngeom.exact.primes import WORD_PRIME, primes_from
from attngeom.fibers.evaluation import reduce_weights
from attngeom.fibers.matching import NoMatch, carries, match_weights
from attngeom.network import Symmetry, Weights
from attngeom.network.symmetries import HeadSymmetry

LIFT_PRIMES = 4
SMALL = 2**14


def match_rational(
    first: Weights, second: Weights, residues: tuple[Weights, Weights] | None = None
) -> Symmetry | NoMatch:
    """The g with g · first = second over Q, checked exactly, or the reason why the search failed.

    A group element of small height is lifted from a few primes, which is faster than elimination over Q; if that
    fails although the residues match, the search runs over Q itself. ``residues`` may hold both weights modulo
    ``WORD_PRIME``, where they are known already.

    >>> from attngeom.network import Architecture, random_symmetry, random_weights
    >>> w = random_weights(Architecture((3, 3), 2), QQ, seed=0)
    >>> match_rational(w, w.act(random_symmetry(w.architecture, QQ, seed=5))).domain.name
    'QQ'
    """
    found_mod_p: list[Symmetry] = []
    primes: list[int] = []
    for p in primes_from(WORD_PRIME):
        try:
            pair = residues if residues is not None and p == WORD_PRIME else _reduce(first, second, p)
        except InputError:
            continue
        found = match_weights(*pair)
        if isinstance(found, NoMatch):
            # Equal weights over Q are equal mod p, but ranks may drop mod p: only elimination over Q is conclusive.
            return match_weights(first, second) if _is_small(first) else found
        found_mod_p.append(found)
        primes.append(p)
        if found.permutations != found_mod_p[0].permutations:
            break
        lifted = _lift(found_mod_p, primes)
        if lifted is not None and carries(lifted, first, second):
            return lifted
        if len(primes) == LIFT_PRIMES:
            break
    return match_weights(first, second)


def _reduce(first: Weights, second: Weights, p: int) -> tuple[Weights, Weights]:
    return reduce_weights(first, p), reduce_weights(second, p)


def _is_small(weights: Weights) -> bool:
    return weights.architecture.num_parameters <= 2000


def _lift(residues: list[Symmetry], primes: list[int]) -> Symmetry | None:
    """The group element over Q of smallest height with the given residues."""
    heads = []
    for index in range(len(residues[0].heads)):
        layer = []
        for place in range(len(residues[0].heads[index])):
            elements = [symmetry.heads[index][place] for symmetry in residues]
            C = _lift_array([g.C for g in elements], primes)
            scale = _lift_array([g.scale for g in elements], primes)
            if C is None or scale is None:
                return None
            B = None
            if elements[0].B is not None:
                B = _lift_array([g.B for g in elements if g.B is not None], primes)
                if B is None:
                    return None
            layer.append(HeadSymmetry(C, scale, B))
        heads.append(tuple(layer))
    between = []
    for index in range(len(residues[0].between)):
        D = _lift_array([symmetry.between[index] for symmetry in residues], primes)
        if D is None:
            return None
        between.append(D)
    return Symmetry(residues[0].architecture, QQ, tuple(heads), tuple(between), residues[0].permutations)


def _lift_array(residues: list[Array], primes: list[int]) -> Array | None:
    """Rational entries with one common denominator that grows along the array; None if they are too large."""
    modulus = 1
    for p in primes:
        modulus *= p
    x = crt(residues, primes) if len(primes) > 1 else _balanced(residues[0], primes[0])
    if np.all(np.abs(x) < SMALL):
        return _rationals([fmpq(n) for n in x.ravel().tolist()], x.shape)
    denominator = 1
    bound = int(np.sqrt(float(modulus))) // 4
    numerators: list[int] = []
    for entry in x.ravel().tolist():
        value = entry * denominator % modulus
        value = value - modulus if 2 * value > modulus else value
        if abs(value) > bound:
            guess = reconstruct(entry, modulus)
            if guess is None:
                return None
            factor = int(guess.q) // int(np.gcd(int(guess.q), denominator))
            numerators = [n * factor for n in numerators]
            denominator *= factor
            value = int(guess.p) * (denominator // int(guess.q))
        numerators.append(value)
    return _rationals([fmpq(n, denominator) for n in numerators], x.shape)


def _rationals(entries: list[fmpq], shape: tuple[int, ...]) -> Array:
    flat = np.empty(len(entries), dtype=object)
    flat[:] = entries
    return flat.reshape(shape)


def _balanced(x: Array, p: int) -> Array:
    return np.where(2 * x > p, x - p, x)
