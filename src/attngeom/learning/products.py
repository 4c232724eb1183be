"""Products of two matrices at every point: Theorem A0."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from attngeom.errors import InputError
from attngeom.learning.pairs import Pair


@dataclass(frozen=True)
class ProductPoint:
    """A point (B_0, A_0) of the product B A, B of shape P×H, A of shape H×N, up to changes of basis.

    ``left`` = rk B_0, ``right`` = rk A_0, ``rank`` = rk B_0 A_0; these three decide (λ, m).

    >>> ProductPoint(2, 1, 2, 0, 0, 0).pair
    Pair(value=Fraction(1, 1), multiplicity=2)
    """

    P: int
    H: int
    N: int
    left: int
    right: int
    rank: int

    def __post_init__(self) -> None:
        P, H, N, left, right, rank = self.sizes + self.ranks
        if (
            min(P, N) < 0
            or H < 0
            or not (
                0 <= left <= min(P, H)
                and 0 <= right <= min(H, N)
                and max(0, left + right - H) <= rank <= min(left, right)
            )
        ):
            raise InputError(
                f"ranks {left}, {right}, product {rank} of {P}×{H} and {H}×{N} given; no matrices have these"
            )

    @property
    def sizes(self) -> tuple[int, int, int]:
        return self.P, self.H, self.N

    @property
    def ranks(self) -> tuple[int, int, int]:
        return self.left, self.right, self.rank

    @property
    def is_smooth(self) -> bool:
        """Whether (B, A) ↦ BA is a submersion onto the matrices of rank min(P, H, N) here: that rank is reached."""
        return self.rank == min(self.sizes)

    @property
    def pair(self) -> Pair:
        """(λ, m) of ‖BA − B_0 A_0‖² at (B_0, A_0): Pρ + β(N − ρ) coordinates, and a product at the origin.

        With (p, h, n) = (P − β, H − β − ρ + r, N − ρ) the rest contributes ½ min_t ((h − t)(n − t) + p t), and m is
        the number of t at which the minimum is attained. The terms are convex in t with second difference 2, so that
        t and the next one decide.
        """
        p, h, n = self.P - self.left, self.H - self.left - self.right + self.rank, self.N - self.right
        most = min(h, n)
        # (h−t−1)(n−t−1) + p − (h−t)(n−t) = 2t + 1 + p − h − n < 0 as long as t < (h + n − p − 1)/2.
        best = min(max(0, -((p + 1 - h - n) // 2)), most)
        costs = [(h - t) * (n - t) + p * t for t in range(max(0, best - 1), min(best + 1, most) + 1)]
        least = min(costs)
        pair = Pair.coordinates(self.P * self.right + self.left * n)
        return pair + Pair(Pair.coordinates(least).value, costs.count(least))


def product_points(P: int, H: int, N: int, rank: int | None = None) -> Iterator[ProductPoint]:
    """All points of the product up to changes of basis, those with a given rank of B_0 A_0 if one is given.

    >>> [point.ranks for point in product_points(1, 1, 1)]
    [(0, 0, 0), (0, 1, 0), (1, 0, 0), (1, 1, 1)]
    """
    for left in range(min(P, H) + 1):
        for right in range(min(H, N) + 1):
            for product in range(max(0, left + right - H), min(left, right) + 1):
                if rank is None or product == rank:
                    yield ProductPoint(P, H, N, left, right, product)


def least_pair(P: int, H: int, N: int, rank: int) -> Pair:
    """The smallest λ, with its largest m, over all (B, A) with a given product: reduced-rank regression.

    Aoyagi and Watanabe (2005) found it in another way.

    >>> str(least_pair(1, 1, 1, 0))
    '(1/2, 2)'
    """
    return min((point.pair for point in product_points(P, H, N, rank)), key=lambda pair: pair.rank)
