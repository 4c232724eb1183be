"""(λ, m) of ‖F_n ⋯ F_1 − L_0‖² at a point of any ranks: products of three and more matrices, by their intervals.

The proof is in docs/theorems/learning.md, Theorem P. The factors are a representation of the linear quiver 0 → 1 → … →
n, a sum of intervals [a, b]: vectors that appear at vertex a and vanish after vertex b. What the product does to first
order and beyond is read off from which intervals follow each other; where these orders are chains, it is a product of
matrices at the origin, whose pair is known (Aoyagi 2024).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import reduce
from itertools import pairwise

from attngeom.exact.domains import Array, Domain
from attngeom.learning.pairs import Pair

Interval = tuple[int, int]
"""First and last vertex at which a vector is not zero."""
RankTable = Mapping[Interval, int]
"""rk F_b ⋯ F_{a+1} by (a, b), a ≤ b; (a, a) has the width at vertex a."""


def product_ranks(factors: Sequence[Array], domain: Domain) -> dict[Interval, int]:
    """The ranks of all products of consecutive factors F_1, F_2, …, each applied after the one before."""
    ranks = {(a, a): F.shape[1] for a, F in enumerate(factors)} | {(len(factors),) * 2: factors[-1].shape[0]}
    for a in range(len(factors)):
        product = factors[a]
        for b in range(a + 1, len(factors) + 1):
            if b > a + 1:
                product = domain.matmul(factors[b - 1], product)
            ranks[a, b] = domain.rank(product)
    return ranks


def interval_counts(ranks: RankTable) -> dict[Interval, int]:
    """How many vectors of a suitable basis live exactly from vertex a to vertex b, where there are any.

    >>> interval_counts({(0, 0): 2, (1, 1): 1, (2, 2): 2, (0, 1): 1, (1, 2): 0, (0, 2): 0})
    {(0, 0): 1, (0, 1): 1, (2, 2): 2}
    """
    counts = {}
    for a, b in sorted(ranks):
        longer = ranks.get((a - 1, b), 0) + ranks.get((a, b + 1), 0) - ranks.get((a - 1, b + 1), 0)
        if ranks[a, b] > longer:
            counts[a, b] = ranks[a, b] - longer
    return counts


def product_pair(ranks: RankTable) -> Pair | None:
    """(λ, m) at a point with these ranks; None where the intervals between two ends are not in chains.

    >>> widths = {(0, 0): 2, (1, 1): 2, (2, 2): 2, (3, 3): 2}
    >>> zero = dict.fromkeys([(0, 1), (1, 2), (2, 3), (0, 2), (1, 3), (0, 3)], 0)
    >>> product_pair(widths | zero) == chain_pair((2, 2, 2, 2), 0)
    True
    """
    last = max(b for _, b in ranks)
    counts = interval_counts(ranks)
    full = counts.pop((0, last), 0)
    total = Pair.coordinates(full * (ranks[0, 0] + ranks[last, last] - full))
    sources, targets = ([J for J in counts if J[side] == end] for side, end in ((0, 0), (1, last)))
    # An end that a source reaches in one step is seen to first order.
    direct = [(S, T) for S in sources for T in targets if T[0] <= S[1] + 1]
    total += Pair.coordinates(sum(counts[S] * counts[T] for S, T in direct))
    apart = [(S, T) for S in sources for T in targets if T[0] > S[1] + 1]
    chains = _chains(counts, apart, last)
    if chains is None:
        return None
    return reduce(Pair.__add__, [chain_pair(widths, 0) for widths in chains], total)


def _follows(J: Interval, K: Interval) -> bool:
    """Whether a small change of the factors may carry the end of J to K: K begins later, in time, and ends later."""
    return J[0] < K[0] <= J[1] + 1 <= K[1]


def _chains(
    counts: Mapping[Interval, int], apart: list[tuple[Interval, Interval]], last: int
) -> list[list[int]] | None:
    """The widths of the products of matrices that pairs of ends apart show; None if they are no products."""
    inner = [J for J in counts if J[0] > 0 and J[1] < last]
    edges: set[tuple[Interval, Interval]] = set()
    joined: dict[Interval, set[Interval]] = defaultdict(set)
    for S, T in apart:
        steps = _steps(S, T, inner)
        edges |= steps
        nodes = {J for step in steps for J in step}
        for J in nodes:
            joined[J] |= nodes
    widths = []
    while joined:
        part = _component(next(iter(joined)), joined)
        rows = _levels(part, [step for step in edges if step[0] in part], set(apart))
        if rows is None:
            return None
        widths.append([sum(counts[J] for J in row) for row in rows])
        for J in part:
            del joined[J]
    return widths


def _steps(S: Interval, T: Interval, inner: list[Interval]) -> set[tuple[Interval, Interval]]:
    """All steps on paths from S to T through intervals in between."""
    nodes = [S, *sorted(inner), T]
    after, before = {S}, {T}
    for J in nodes:
        after |= {K for K in nodes if J in after and _follows(J, K)}
    for K in reversed(nodes):
        before |= {J for J in nodes if K in before and _follows(J, K)}
    kept = after & before
    return {(J, K) for J in kept for K in kept if _follows(J, K)}


def _component(start: Interval, joined: Mapping[Interval, set[Interval]]) -> set[Interval]:
    part, rest = {start}, [start]
    while rest:
        new = joined[rest.pop()] - part
        part |= new
        rest += new
    return part


def _levels(
    part: set[Interval], edges: list[tuple[Interval, Interval]], apart: set[tuple[Interval, Interval]]
) -> list[list[Interval]] | None:
    """The intervals in rows such that the steps are all those from a row to the next, and all ends are apart."""
    level = {J: 0 for J in part if all(K != J for _, K in edges)}
    rows = [sorted(level)]
    while len(level) < len(part):
        row = sorted({K for J, K in edges if J in rows[-1]} - set(level))
        level |= dict.fromkeys(row, len(rows))
        rows.append(row)
    complete = {(J, K) for first, second in pairwise(rows) for J in first for K in second}
    ends = {(S, T) for S in rows[0] for T in rows[-1]}
    return rows if complete == set(edges) and ends <= apart else None


def chain_pair(widths: Sequence[int], rank: int) -> Pair:
    """(λ, m) of ‖V_l ⋯ V_1 − L_0‖² where V_i, of size d_i × d_(i−1), and L_0 all have the same rank r.

    Aoyagi (2024), at this point by docs/theorems/learning.md: with M_i = d_i − r let S be the set of places whose M_i
    are below Σ_S M / ℓ, ℓ = #S − 1, all others being at least that. With c = ⌈Σ_S M / ℓ⌉ and a = Σ_S M − (c − 1) ℓ

        λ = ½ r (d_0 + d_l − r) + a (ℓ − a) / (4ℓ) − (ℓ − 1) (Σ_S M)² / (4ℓ) + ½ Σ_{i<j in S} M_i M_j,
        m = a (ℓ − a) + 1.

    >>> str(chain_pair((1, 1, 1, 1), 0)), str(chain_pair((2, 1, 2), 0))
    ('(1/2, 3)', '(1, 2)')
    """
    rest = sorted(width - rank for width in widths)
    first = Pair.coordinates(rank * (widths[0] + widths[-1] - rank))
    if rest[0] == 0:
        # A width that is full: one factor has no freedom beside what the product shows.
        return first
    for number in range(2, len(rest) + 1):
        ell, total = number - 1, sum(rest[:number])
        if rest[number - 1] * ell < total and (number == len(rest) or rest[number] * ell >= total):
            break
    a = total - (-(-total // ell) - 1) * ell
    products = total**2 - sum(x * x for x in rest[:number])
    value = Fraction(a * (ell - a), 4 * ell) - Fraction((ell - 1) * total**2, 4 * ell) + Fraction(products, 4)
    return first + Pair(value, a * (ell - a) + 1)
