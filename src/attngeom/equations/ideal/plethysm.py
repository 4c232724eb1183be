"""Multiplicities of S_λV ⊗ S_μU in R = Sym(S²V ⊗ U): how often S_λV occurs in S_μ(S²V), by characters.

They are the same for every d ≥ ℓ(λ), and can be read off from any space on which S_λ does not vanish. For λ_4 ≤ 1 the
super space C^{3|1} is such a space, and its characters are short, however many rows λ has.
"""

from __future__ import annotations

from functools import cache
from itertools import combinations

from flint import fmpz_mpoly, fmpz_mpoly_ctx

from attngeom.equations.ideal.limits import check
from attngeom.exact.multisets import pairs, signed_permutations
from attngeom.exact.partitions import Partition, column_lengths, kostka, pad, partitions, strip

ROWS = 3
"""S_λ(C^{3|1}) is zero if and only if λ_4 > 1."""


def multiplicity(lam: Partition, mu: Partition) -> int:
    """How often S_λV ⊗ S_μU occurs in R_n, n = |μ|, for every d ≥ ℓ(λ) and every number of targets ≥ ℓ(μ).

    >>> multiplicity((3, 3), (1, 1, 1)), multiplicity((13, 4, 2, 1, 1, 1), (5, 3, 1, 1, 1))
    (1, 11)
    """
    if max(lam[ROWS:], default=0) <= 1:
        return _hook_plethysm(mu).get(lam, 0)
    return plethysm(mu, len(lam)).get(lam, 0)


@cache
def plethysm(shape: Partition, d: int) -> dict[Partition, int]:
    """The multiplicities of S_λ(C^d) in S_shape(S²(C^d)), for all λ.

    λ has at most n = |shape| rows, because each factor S² adds at most one: d > n gives the same as d = n.

    >>> plethysm((1, 1), 3)
    {(3, 1): 1}
    """
    n = sum(shape)
    if d > n >= 1:
        return plethysm(shape, n)
    check()
    dimensions = _character(shape, d, 0).to_dict()
    multiplicities: dict[Partition, int] = {}
    # The largest weight that is left is a highest weight; its module is taken away.
    for lam in partitions(2 * n, d):
        explained = sum(count * kostka(larger, lam) for larger, count in multiplicities.items())
        count = int(dimensions.get(pad(lam, d), 0)) - explained
        if count:
            multiplicities[lam] = count
    return multiplicities


@cache
def _hook_plethysm(shape: Partition) -> dict[Partition, int]:
    """The multiplicities of all S_λ with λ_4 ≤ 1 in S_shape(S²V), from the character on C^{3|1}.

    S_λ(C^{3|1}) is the sum of S_ν(C^3) over all ν of at most three rows for which λ/ν is a vertical strip: λ = (ν+1_S,
    1^i) for a set S of rows. How often S_ν(C^3) occurs in all is an alternating sum of weights.
    """
    check()
    n = sum(shape)
    dimensions = _character(shape, ROWS, 1).to_dict()
    multiplicities: dict[Partition, int] = {}
    for k in range(n + 1):
        for nu in partitions(2 * n - k, ROWS):
            first = pad(nu, ROWS)
            count = sum(
                sign * int(dimensions.get((*(x + j - i for i, (x, j) in enumerate(zip(first, order))), k), 0))
                for order, sign in signed_permutations(ROWS)
            )
            for size in range(1, min(k, ROWS) + 1):
                for rows in combinations(range(ROWS), size):
                    lam = tuple(x + (i in rows) for i, x in enumerate(first)) + (1,) * (k - size)
                    count -= multiplicities.get(strip(lam), 0)
            if count:
                multiplicities[nu + (1,) * k] = count
    return multiplicities


def _character(shape: Partition, d: int, odd: int) -> fmpz_mpoly:
    """The character of S_shape(S²V) by Giambelli: the determinant of the hooks along the diagonal."""
    columns = column_lengths(shape)
    arms = [row - i - 1 for i, row in enumerate(shape) if row > i]
    legs = [columns[i] - i - 1 for i in range(len(arms))]
    total = fmpz_mpoly_ctx.get(_names(d, odd), "lex").constant(0)
    for order, sign in signed_permutations(len(arms)):
        term = total * 0 + sign
        for arm, place in zip(arms, order):
            term = term * _hook(arm, legs[place], d, odd)
        total = total + term
    return total


@cache
def _hook(arm: int, leg: int, d: int, odd: int) -> fmpz_mpoly:
    """The character of S_(arm+1, 1^leg)(S²V): the alternating sum of S^{arm+1+i} ⊗ Λ^{leg-i}."""
    symmetric, exterior = (_powers(arm + leg + 1, d, odd, is_exterior) for is_exterior in (False, True))
    total = 0 * symmetric[0]
    for i in range(leg + 1):
        total = total + (-1) ** i * symmetric[arm + 1 + i] * exterior[leg - i]
    return total


@cache
def _powers(n: int, d: int, odd: int, is_exterior: bool) -> tuple[fmpz_mpoly, ...]:
    """The characters of S^k(S²V), or of Λ^k(S²V), k ≤ n; S²V has the even weights x_i x_j and the odd ones x_i y."""
    ctx = fmpz_mpoly_ctx.get(_names(d, odd), "lex")
    x = ctx.gens()
    powers = [ctx.constant(1)] + [ctx.constant(0)] * n
    weights = [(x[i] * x[j], is_exterior) for i, j in pairs(d)]
    weights += [(x[i] * x[d], not is_exterior) for i in range(d * odd)]
    for weight, is_once in weights:
        for k in range(n, 0, -1) if is_once else range(1, n + 1):
            powers[k] = powers[k] + powers[k - 1] * weight
    return tuple(powers)


def _names(d: int, odd: int) -> list[str]:
    return [f"x{i}" for i in range(d)] + ["y"] * odd
