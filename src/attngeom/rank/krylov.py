"""A proven lower bound for the rank of a linear map mod p whose matrix is never formed: a block Krylov sequence.

Let M be a map of n columns, F a sparse random matrix that folds its rows into n numbers, Δ a random diagonal matrix
without zeros, and B = F M Δ. For U of k columns and V of l columns the block Hankel matrix

    (Uᵀ B^{i+j+1} V)_{i, j} = (Uᵀ B^i)_i · B · (B^j V)_j

has rank at most rank B ≤ rank M: its rank is a proof over GF(p), hence over Q, whatever the random choices were. Blocks
allow p < 2^8, where single vectors would fail, and there products in float32 are exact and more than twice as fast.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from math import ceil

import numpy as np

from attngeom.exact.domains import Array, BalancedField
from attngeom.exact.hankel import hankel_rank
from attngeom.limits.memory import KRYLOV_STACK
from attngeom.limits.trials import KRYLOV_CHECKPOINTS, KRYLOV_LEFT, KRYLOV_RIGHT
from attngeom.rank.maps import LinearMap


class SquareOperator:
    """The n×n operator B = F M Δ of a linear map M, with F and Δ from a seed; see the module docstring."""

    def __init__(self, linear: LinearMap, seed: int) -> None:
        self.linear, self.field, self.size = linear, linear.field, linear.size
        rng = np.random.default_rng(seed)
        n, outputs = linear.size, linear.outputs
        self.scale = self.field.random((n,), rng)
        self.scale[self.scale == 0] = 1
        layers = ceil(outputs / n) + 1
        self.gather = np.resize(rng.permutation(outputs), layers * n).reshape(layers, n)
        self.fold = self.field.random((layers, n), rng)

    def apply(self, vectors: Array) -> Array:
        """B times a stack of vectors of balanced residues, (q, n)."""
        field = self.field
        outputs = self.linear.push(field.times(self.scale, vectors))
        total = np.zeros_like(vectors)
        for coefficients, places in zip(self.fold, self.gather):
            if field.one_product_fits:
                total = field.balance(total + coefficients * outputs[:, places])
            else:
                total = field.add(total, field.times(coefficients, outputs[:, places]))
        return total

    def powers(self, length: int, right: int, seed: int, workers: int) -> Iterator[Array]:
        """V, B V, …, B^length V for random V, each as (right, n) and valid until the next one."""
        block = self.field.random((right, self.size), np.random.default_rng(seed))
        parts = [slice(start, start + KRYLOV_STACK) for start in range(0, right, KRYLOV_STACK)]

        def advance(part: slice) -> None:
            block[part] = self.apply(block[part])

        yield block
        with ThreadPoolExecutor(workers) as pool:
            for _ in range(length):
                list(pool.map(advance, parts) if workers > 1 else map(advance, parts))
                yield block


@dataclass(frozen=True, eq=False)
class KrylovRank:
    """A lower bound for the rank of a linear map, and the sequence that proves it.

    ``blocks`` are W_0, …, W_c with W_{i+1} = B^step W_i, and ``sequence`` the matrices Uᵀ B^k W_0, k ≥ 1, as residues
    from 0 on: bytes for p < 2^8, else four bytes each.
    """

    value: int
    left: int
    right: int
    step: int
    blocks: Array
    sequence: Array


def _pack(x: Array, field: BalancedField) -> Array:
    """Residues from 0 on, in one byte each for p < 2^8, else in four."""
    return field.to_integers(x).astype(np.uint8 if field.p < 2**8 else "<u4")


def krylov_rank(
    linear: LinearMap, seed: int = 0, progress: Callable[[int, int], None] | None = None, workers: int = 1
) -> KrylovRank:
    """The rank of a linear map mod p from below, which is it with high probability; ``workers`` threads push vectors.

    F and Δ come from the next but one seed, V from the one behind it: the map itself may have used the first two.
    """
    n, field = linear.size, linear.field
    operator = SquareOperator(linear, seed + 2)
    left, right = min(KRYLOV_LEFT, n), min(KRYLOV_RIGHT, n)
    least = ceil(n / left) + ceil(n / right) + 2
    step = ceil(least / KRYLOV_CHECKPOINTS)
    length = step * ceil(least / step)
    sequence, blocks = np.empty((length, left, right), dtype=field.dtype), []
    for k, block in enumerate(operator.powers(length, right, seed + 3, workers)):
        if k % step == 0:
            blocks.append(_pack(block, field))
        if k:
            sequence[k - 1] = block[:, :left].T
            if progress is not None:
                progress(k, length)
    value = hankel_rank(sequence, ceil(n / left) + 1, field)
    return KrylovRank(value, left, right, step, np.stack(blocks), _pack(sequence, field))
