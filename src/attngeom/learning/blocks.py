"""The matrices that a network depends on, A = KᵀQ and its value map for every head, as points of matrix products."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from attngeom.exact import lapack
from attngeom.exact.domains import Array, Domain
from attngeom.exact.precise import EPSILON, Rank, count_above, measured_rank
from attngeom.learning.pairs import Pair
from attngeom.learning.products import ProductPoint
from attngeom.network.architecture import Architecture
from attngeom.network.weights import Head, Weights


@dataclass(frozen=True)
class Block:
    """A matrix of a network, rows×columns of rank ``rank`` at the given weights, and how weights parametrize it.

    ``point`` is None for a matrix whose entries are weights.
    """

    name: str
    rows: int
    columns: int
    rank: int
    point: ProductPoint | None

    @property
    def pair(self) -> Pair:
        """(λ, m) of ‖matrix − given matrix‖² in the weights (Theorem A0)."""
        return Pair.coordinates(self.rows * self.columns) if self.point is None else self.point.pair

    @property
    def is_zero(self) -> bool:
        return self.rank == 0

    @property
    def is_smooth(self) -> bool:
        """Whether the weights map onto a neighbourhood in a manifold: all matrices, or those of the largest rank."""
        return self.point is None or self.point.is_smooth

    @property
    def dimension(self) -> int:
        """Of that manifold, or of the space of all matrices where the weights do not fill a manifold."""
        if self.point is None or not self.point.is_smooth:
            return self.rows * self.columns
        return self.rank * (self.rows + self.columns - self.rank)

    @property
    def words(self) -> str:
        """The ranks in words."""
        if self.point is None:
            return f"rk {self.name} = {self.rank}"
        first, second = ("K", "Q") if self.name[0] == "A" else ("O", "W")
        place = self.name[1:]
        return (
            f"rk {first}{place} = {self.point.left}, rk {second}{place} = {self.point.right}, "
            f"rk {self.name} = {self.rank}"
        )

    def to_json(self) -> dict[str, Any]:
        ranks = None if self.point is None else list(self.point.ranks)
        sizes = [self.rows, self.columns] if self.point is None else list(self.point.sizes)
        pair = self.pair
        return {
            "name": self.name,
            "sizes": sizes,
            "rank": self.rank,
            "ranks": ranks,
            "lambda": str(pair.value),
            "multiplicity": pair.multiplicity,
        }


@dataclass(frozen=True)
class HeadBlocks:
    """The two matrices of one head, and what was measured to find their ranks."""

    attention: Block
    value: Block
    measured: tuple[Rank, ...]

    def __iter__(self) -> Iterator[Block]:
        return iter((self.attention, self.value))


def head_blocks(weights: Weights) -> tuple[tuple[HeadBlocks, ...], ...]:
    """The blocks of every head, with exact ranks for exact weights and measured ones for floats.

    >>> from attngeom.exact import QQ
    >>> from attngeom.network import Architecture, random_weights
    >>> head_blocks(random_weights(Architecture((3, 2), 2), QQ, seed=0))[0][0].attention.words
    'rk K = 2, rk Q = 2, rk A = 2'
    """
    return tuple(
        tuple(_blocks(head, place_name(weights.architecture, index, h), weights.domain) for h, head in enumerate(heads))
        for index, heads in enumerate(weights.layers)
    )


def place_name(architecture: Architecture, layer: int, head: int) -> str:
    """What tells the matrices of a head from those of others: nothing, or _layer,head counted from 1 where needed."""
    parts = [str(layer + 1)] * (architecture.num_layers > 1) + [str(head + 1)] * (architecture.heads > 1)
    return "_" + ",".join(parts) if parts else ""


def _blocks(head: Head, place: str, domain: Domain) -> HeadBlocks:
    attention, ranks = _product(head.K.T, head.Q, f"A{place}", domain)
    if head.O is not None:
        value, others = _product(head.O, head.V, f"V{place}", domain)
        return HeadBlocks(attention, value, ranks + others)
    rank = measured_rank(head.V, domain)
    value = Block(f"V{place}", head.V.shape[0], head.V.shape[1], rank.value, None)
    return HeadBlocks(attention, value, (*ranks, rank))


def _product(left: Array, right: Array, name: str, domain: Domain) -> tuple[Block, tuple[Rank, ...]]:
    """A product of two matrices; its rank is that of one factor where the other one has no kernel in between."""
    (P, H), N = left.shape, right.shape[1]
    first, second = measured_rank(left, domain), measured_rank(right, domain)
    ranks: tuple[Rank, ...] = (first, second)
    if first.value == H:
        rank = second.value
    elif second.value == H:
        rank = first.value
    elif min(first.value, second.value) == 0:
        rank = 0
    else:
        measured = product_rank(left, right, domain)
        ranks, rank = (*ranks, measured), measured.value
        # Rounding may measure ranks that no matrices have.
        least, most = max(0, first.value + second.value - H), min(first.value, second.value)
        rank = min(max(rank, least), most)
    return Block(name, P, N, rank, ProductPoint(P, H, N, first.value, second.value, rank)), ranks


def product_rank(left: Array, right: Array, domain: Domain) -> Rank:
    """The rank of a product; over floats relative to the sizes of the factors, of which it may be a small remainder."""
    if not domain.rounds:
        return measured_rank(domain.matmul(left, right), domain)
    left, right = unit_size(left), unit_size(right)
    product = domain.matmul(left, right)
    size = float(np.linalg.norm(left) * np.linalg.norm(right))
    return count_above(lapack.svdvals(product), max(left.shape + right.shape) * 8 * EPSILON, size)


def unit_size(a: Array) -> Array:
    """A float matrix divided by its largest entry, so that products neither overflow nor vanish."""
    return np.asarray(a / (np.max(np.abs(a), initial=0.0) or 1.0))
