"""A proven lower bound for the rank of a Jacobian that is never formed, by a block Krylov sequence mod p.

Let J be the Jacobian of all outputs at N samples against the free entries of the gauge slice. The last linear map is
eliminated by hand, as in :mod:`attngeom.dimensions.lower.schur`: the output at a token is W b, so r tokens with an
invertible matrix of vectors b clear all others, and rank J ≥ r d_l + rank M, where M is what is left in the n columns
of the other maps. Let F be a sparse random matrix that folds the rows of M into n numbers, Δ a random diagonal matrix
without zeros, and B = F M Δ. For U of k columns and V of l columns the block Hankel matrix

    (Uᵀ B^{i+j+1} V)_{i, j} = (Uᵀ B^i)_i · B · (B^j V)_j

has rank at most rank B ≤ rank M: its rank is a proof over GF(p), hence over Q, whatever the random choices were. Blocks
allow p < 2^8, where single vectors would fail, and there products in float32 are exact and more than twice as fast.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from math import ceil

import numpy as np

from attngeom.dimensions.effective import effective_layers
from attngeom.dimensions.jacobian import random_samples
from attngeom.dimensions.lower.bound import LowerBound, Transcript
from attngeom.dimensions.lower.schur import hold_last_map, token_features
from attngeom.dimensions.slices import count_columns, random_slice
from attngeom.errors import SizeError
from attngeom.exact.domains import Array, BalancedField
from attngeom.exact.hankel import hankel_rank
from attngeom.exact.numbers import SMALL_PRIME
from attngeom.exact.residues import Elimination
from attngeom.limits.memory import KRYLOV_STACK
from attngeom.limits.trials import KRYLOV_CHECKPOINTS, KRYLOV_FULL_SAMPLES, KRYLOV_LEFT, KRYLOV_RIGHT, KRYLOV_TOKENS
from attngeom.limits.work import KRYLOV_COLUMNS
from attngeom.network.architecture import Architecture


def count_samples(architecture: Architecture, columns: int, tokens: int) -> int:
    """Samples with all their outputs so that nothing limits the rank below the number of columns.

    Without skip connection a sample X shows the network only through a t×t matrix Z in L X Z of rank at most every α_i
    (t(t−1) free entries for softmax, about half with a mask), so at most t·min(t, α) of its outputs count. One sample
    is added where that is the limit, for it may not be reached, and where there are few: from two samples of one layer
    nobody can tell A from N A if N commutes with (X_1 X_1ᵀ)⁻¹ X_2 X_2ᵀ.

    >>> count_samples(Architecture((4, 3, 5), 2, tokens=3), 36, 3), count_samples(Architecture((3, 3), 3), 17, 3)
    (7, 3)
    """
    outputs = counted = tokens * architecture.widths[-1]
    if not architecture.residual:
        ranks = [layer.heads * layer.attention for layer in effective_layers(architecture)]
        free = architecture.rule.count_free(tokens, min(ranks))
        counted = min(counted, max(architecture.mask.count(free), 1))
    least = ceil(columns / counted)
    return least + int(counted < outputs or least < KRYLOV_FULL_SAMPLES)


class ClearedJacobian:
    """The n×n operator B = F M Δ at random weights and samples; see the module docstring.

    ``cleared`` is the rank of what was eliminated by hand: 0 if the features b are dependent, and then M = J.
    """

    def __init__(self, architecture: Architecture, p: int, seed: int, samples: int) -> None:
        self.field, self.samples = BalancedField(p), samples
        whole = random_slice(architecture, p, seed)
        self.tokens = min(architecture.tokens, KRYLOV_TOKENS)
        points = random_samples(whole, samples, self.tokens, seed + 1)
        self.passes = whole.passes(points.X, points.attention)
        features = token_features(self.passes)
        features = features.reshape(-1, features.shape[-1])
        elimination = Elimination(features.copy(), p, keep_upper=False).run()
        held, is_invertible = hold_last_map(whole), elimination.rank == features.shape[1]
        self.network = held if is_invertible and held.num_columns else whole
        self.pivots = np.sort(elimination.order[: elimination.rank]) if self.network is not whole else np.arange(0)
        self.others = np.setdiff1d(np.arange(len(features)), self.pivots)
        self.cleared = len(self.pivots) * architecture.widths[-1]
        if self.cleared:
            inverse = self.field.inverse(features[self.pivots])
            self.clear = self.field.matmul(features[self.others], inverse)
        rng = np.random.default_rng(seed + 2)
        n, outputs = self.network.num_columns, len(self.others) * architecture.widths[-1]
        self.scale = self.field.random((n,), rng)
        self.scale[self.scale == 0] = 1
        layers = ceil(outputs / n) + 1
        self.gather = np.resize(rng.permutation(outputs), layers * n).reshape(layers, n)
        self.fold = self.field.random((layers, n), rng)

    @property
    def size(self) -> int:
        return self.network.num_columns

    def apply(self, vectors: Array) -> Array:
        """B times a stack of vectors of balanced residues, (q, n)."""
        field = self.field
        moved = self.push_forward(field.times(self.scale, vectors))
        moved = moved.reshape(len(vectors), -1, moved.shape[-1])
        rest = moved[:, self.others]
        if self.cleared:
            field.subtract_product(rest, self.clear, moved[:, self.pivots])
        outputs = rest.reshape(len(vectors), -1)
        total = np.zeros_like(vectors)
        for coefficients, places in zip(self.fold, self.gather):
            total = field.balance(total + coefficients * outputs[:, places])
        return total

    def push_forward(self, vectors: Array) -> Array:
        """J times a vector, or a stack of them (q, n): the derivative of all outputs (…, N, t, d_l) along it."""
        moved = self.passes.push(list(self.network.directions(vectors)))
        if moved is None:
            raise ArithmeticError("the slice has no free entry, so there is nothing to differentiate")
        return moved

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


def pack(x: Array, field: BalancedField) -> Array:
    """Residues from 0 on, in one byte each for p < 2^8, else in four."""
    return field.to_integers(x).astype(np.uint8 if field.p < 2**8 else "<u4")


def krylov_lower_bound(
    architecture: Architecture,
    seed: int = 0,
    p: int = SMALL_PRIME,
    more: int = 0,
    progress: Callable[[int, int], None] | None = None,
    workers: int = 1,
) -> LowerBound:
    """A lower bound for the dimension, proven by the rank of a block Hankel matrix mod p.

    It is the dimension with high probability if the gauge slice has no superfluous column and the samples suffice;
    ``more`` samples are added. ``workers`` threads push vectors forward.

    >>> krylov_lower_bound(Architecture((2, 2), 2, tokens=2), seed=0).value
    7
    """
    columns = count_columns(architecture)
    if columns > KRYLOV_COLUMNS:
        raise SizeError(
            f"{columns:,} free weights given; proofs are possible for at most {KRYLOV_COLUMNS:,}, use a formula"
        )
    samples = more + count_samples(architecture, columns, min(architecture.tokens, KRYLOV_TOKENS))
    operator = ClearedJacobian(architecture, p, seed, samples)
    n, right = operator.size, min(KRYLOV_RIGHT, operator.size)
    left = min(KRYLOV_LEFT, n)
    least = ceil(n / left) + ceil(n / right) + 2
    step = ceil(least / KRYLOV_CHECKPOINTS)
    length = step * ceil(least / step)
    sequence, blocks = np.empty((length, left, right), dtype=operator.field.dtype), []
    for k, block in enumerate(operator.powers(length, right, seed + 3, workers)):
        if k % step == 0:
            blocks.append(pack(block, operator.field))
        if k:
            sequence[k - 1] = block[:, :left].T
            if progress is not None:
                progress(k, length)
    rank = hankel_rank(sequence, ceil(n / left) + 1, operator.field)
    by_hand = f"{operator.cleared} by hand and " if operator.cleared else ""
    return LowerBound(
        standing="proven",
        reason=f"the Jacobian has rank at least {by_hand}{rank} by a block Hankel matrix of a Krylov sequence mod {p}",
        value=operator.cleared + rank,
        method="krylov",
        prime=p,
        seed=seed,
        tokens=operator.tokens,
        samples=operator.samples,
        transcript=Transcript(
            free=tuple((block.start, int(block.fix_corner)) for block in operator.network.blocks),
            pivots=tuple(operator.pivots.tolist()),
            left=left,
            right=right,
            step=step,
            blocks=np.stack(blocks),
            sequence=pack(sequence, operator.field),
        ),
    )
