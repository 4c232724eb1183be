"""Pairs (2λ, m) of sums, products and matrices of heads, for the recheck of learning coefficients.

Written independently of :mod:`attngeom.learning`, from the statements in docs/theorems/learning.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from math import prod

from attngeom.verification.compositions import bounded_rank
from attngeom.verification.reading import require

Twice = tuple[Fraction, int]
"""(2λ, m)."""


def plus(*pairs: Twice) -> Twice:
    """Sums of functions in disjoint variables."""
    return sum((value for value, _ in pairs), Fraction(0)), 1 + sum(m - 1 for _, m in pairs)


def times(first: Twice, second: Twice) -> Twice:
    """Products of functions in disjoint variables: the smaller value; m adds up where both are equal."""
    if first[0] != second[0]:
        return min(first, second)
    return first[0], first[1] + second[1]


def product_pair(P: int, H: int, N: int, b: int, c: int, r: int) -> Twice:
    """Theorem A0 for B (P×H, rank b) times A (H×N, rank c) with a product of rank r, all t tried.

    >>> product_pair(2, 1, 2, 0, 0, 0)
    (Fraction(2, 1), 2)
    """
    p, h, n = P - b, H - b - c + r, N - c
    costs = [(h - t) * (n - t) + p * t for t in range(min(h, n) + 1)]
    return Fraction(P * c + b * N - b * c + min(costs)), costs.count(min(costs))


@dataclass(frozen=True)
class RankedMatrix:
    """A matrix of a head: its size, its rank, and the inner size and ranks of its factors if it has any."""

    rows: int
    columns: int
    rank: int
    inner: int | None = None
    left: int = 0
    right: int = 0

    @property
    def pair(self) -> Twice:
        if self.inner is None:
            return Fraction(self.rows * self.columns), 1
        return product_pair(self.rows, self.inner, self.columns, self.left, self.right, self.rank)

    @property
    def below(self) -> Twice:
        """What is left beside one direction: a product of zero, with all sizes and ranks less one."""
        if self.inner is None:
            return Fraction((self.rows - 1) * (self.columns - 1)), 1
        return product_pair(self.rows - 1, self.inner - 1, self.columns - 1, self.left - 1, self.right - 1, 0)

    @property
    def listed(self) -> list[int | None]:
        factors = [None, None] if self.inner is None else [self.left, self.right]
        return [*factors, self.rank]

    @property
    def is_full(self) -> bool:
        """Whether its factors stay: its rank is the largest."""
        return self.inner is None or self.rank == min(self.rows, self.columns, self.inner)

    @property
    def dimension(self) -> int:
        """What it adds to Θ."""
        free = self.inner is None or not self.is_full
        return self.rows * self.columns if free else bounded_rank(self.rows, self.columns, self.rank)


HeadMatrices = tuple[RankedMatrix, RankedMatrix]


def chain_pair(widths: tuple[int, ...], rank: int) -> Twice:
    """Aoyagi's pair of a product of matrices where all of them and the product have this rank; all sets are tried.

    >>> chain_pair((1, 1, 1, 1), 0)
    (Fraction(1, 1), 3)
    """
    first, rest = Fraction(rank * (widths[0] + widths[-1] - rank)), [width - rank for width in widths]
    if 0 in rest:
        return first, 1
    rest.sort()
    for number in range(2, len(rest) + 1):
        mean = Fraction(sum(rest[:number]), number - 1)
        if all(x < mean for x in rest[:number]) and all(x >= mean for x in rest[number:]):
            ell, total = number - 1, sum(rest[:number])
            a = total - (-(-total // ell) - 1) * ell
            pairs = sum(x * y for x, y in combinations(rest[:number], 2))
            value = Fraction(a * (ell - a), 2 * ell) - Fraction(ell * (ell - 1), 2) * (mean * mean) + pairs
            return first + value, a * (ell - a) + 1
    raise ArithmeticError("no set of places fits; this is a defect")


Interval = tuple[int, int]
Path = tuple[Interval, ...]


def product_of_ranks(ranks: dict[Interval, int], last: int) -> Twice:
    """Theorem P: the pair of a product of ``last`` matrices, from the ranks of all products of consecutive ones.

    Paths of intervals from a source to a sink apart from it are listed; those that share an interval must be all
    choices of one interval from each of several sets, so that they are one product of matrices.

    >>> product_of_ranks({(0, 0): 2, (1, 1): 1, (2, 2): 2, (0, 1): 0, (1, 2): 0, (0, 2): 0}, 2)
    (Fraction(2, 1), 2)
    """
    counts: dict[Interval, int] = {}
    for a in range(last + 1):
        for b in range(a, last + 1):
            around = [ranks.get(place, 0) for place in ((a, b), (a - 1, b), (a, b + 1), (a - 1, b + 1))]
            counts[a, b] = around[0] - around[1] - around[2] + around[3]
    full = counts[0, last]
    present = [J for J, count in counts.items() if count and J[0] + last - J[1]]
    first = full * (ranks[0, 0] + ranks[last, last] - full)
    paths: list[Path] = []
    for S, T in ((S, T) for S in present for T in present if S[0] == 0 and T[1] == last):
        if T[0] <= S[1] + 1:
            first += counts[S] * counts[T]
        else:
            paths += _paths((S,), T, [J for J in present if J[0] > 0 and J[1] < last])
            require(len(paths) <= 10_000, "there are more than 10,000 paths of intervals")
    groups: list[list[Path]] = []
    for path in paths:
        near = [group for group in groups if any(set(path) & set(other) for other in group)]
        groups = [group for group in groups if group not in near] + [[path, *(x for group in near for x in group)]]
    parts = []
    for group in groups:
        rows = [set(row) for row in zip(*group)]
        is_product = len({len(path) for path in group}) == 1 and len(group) == prod(map(len, rows))
        require(is_product, "the intervals between two ends are not in chains")
        parts.append(chain_pair(tuple(sum(counts[J] for J in row) for row in rows), 0))
    return plus((Fraction(first), 1), *parts)


def _paths(path: Path, T: Interval, inner: list[Interval]) -> list[Path]:
    """All ways to go on to T: the next interval begins later, at the latest one after the end, and ends later."""
    a, b = path[-1]
    ends = [(*path, T)] if a < T[0] <= b + 1 else []
    steps = [K for K in inner if a < K[0] <= b + 1 <= K[1] < T[1]]
    return ends + [longer for K in steps for longer in _paths((*path, K), T, inner)]
