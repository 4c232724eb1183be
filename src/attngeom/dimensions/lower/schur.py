"""Rank of the Jacobian with the last linear map eliminated by hand: the matrix that remains is much smaller.

The output is W b(X) with W the last value matrix (or the O of all heads side by side), so the derivative of output row
i along W only involves row i of W, and there it is the vector b. Take cotangents C = c ⊗ e_i. The rows of r = dim b
samples, each with all d_l output rows i, contain the block B ⊗ I in the columns of W, with B the r×r matrix of their
vectors b. If B is invertible, every other row can be cleared in these columns by r pivot rows with the same i, and

    rank J ≥ r d_l + rank of what is left in the other columns,

with equality for these rows. The argument for enough samples is as in :mod:`attngeom.dimensions.jacobian`.
"""

from __future__ import annotations

from dataclasses import replace
from math import ceil

import numpy as np

from attngeom.dimensions.effective import effective_layers
from attngeom.dimensions.jacobian import Samples, random_samples, sampled_jacobian
from attngeom.dimensions.lower.bound import LowerBound
from attngeom.dimensions.slices import SlicedNetwork, count_columns, random_slice
from attngeom.exact.arrays import swap
from attngeom.exact.domains import Array, BalancedField
from attngeom.exact.numbers import BLAS_PRIME
from attngeom.exact.residues import Elimination
from attngeom.limits.memory import PIVOT_ENTRIES
from attngeom.limits.trials import SPARE_JACOBIAN_ROWS
from attngeom.network.architecture import Architecture
from attngeom.network.layer import Passes


def hold_last_map(network: SlicedNetwork) -> SlicedNetwork:
    """The same network with the last V, or all O of the last layer, held fixed."""
    each = len(network.blocks) // (network.architecture.num_layers * network.architecture.heads)
    first = len(network.blocks) - each * network.architecture.heads
    blocks = tuple(
        replace(block, start=block.columns) if place >= first and place % each == each - 1 else block
        for place, block in enumerate(network.blocks)
    )
    # Only the number of columns is used from here on.
    return replace(network, blocks=blocks, columns=np.arange(sum(block.num_free for block in blocks)))


def token_features(passes: Passes) -> Array:
    """The vectors b of all tokens of all samples, (N, t, r): the output at a token is W b, plus its input if any."""
    last = passes.layers[-1]
    parts = [last.domain.matmul(swap(x.P), last.X) if x.head.O is None else x.mixed for x in last.traces]
    return np.concatenate(parts, axis=-1)


def last_features(network: SlicedNetwork, samples: Samples) -> Array:
    """The vectors b with ⟨C, phi(X)⟩ = W_i · b for C = c ⊗ e_i: shape (N, r); c is the sum of C over output rows."""
    features = token_features(network.passes(samples.X, samples.attention))
    return network.domain.matmul(samples.C.sum(axis=-1)[:, None], features)[:, 0]


def _one_row_cotangents(samples: Samples, rows: Array) -> Samples:
    """Replace C by its first column, put into the given output rows."""
    C = np.zeros_like(samples.C)
    C[np.arange(len(rows)), :, rows] = samples.C[:, :, 0]
    return replace(samples, C=C)


def _each_row_cotangents(samples: Samples, rows: slice) -> Samples:
    """For every sample the first column of C, put into each of the given output rows in turn."""
    unit = np.eye(samples.C.shape[-1], dtype=samples.C.dtype)[rows]
    C = samples.C[:, None, :, :1] * unit[:, None, :]
    attention = samples.attention
    if attention is not None:
        attention = tuple(tuple(P[:, None] for P in heads) for heads in attention)
    return Samples(samples.X[:, None], C, attention)


def count_remaining(architecture: Architecture, target: int) -> int:
    """The number of entries of the matrix that is eliminated.

    >>> count_remaining(Architecture((2, 2), 2, tokens=2), 7)
    21
    """
    last = effective_layers(architecture)[-1]
    cleared = last.num_features * last.d_out
    return (max(target - cleared, 0) + SPARE_JACOBIAN_ROWS) * (count_columns(architecture) - cleared)


def schur_lower_bound(
    architecture: Architecture, target: int, tokens: int, seed: int = 0, p: int = BLAS_PRIME
) -> LowerBound:
    """The bound r d_l plus the rank mod p of the cleared rows; 0 if B is singular, as when features are dependent.

    ``target`` is the dimension that is hoped for: as many rows are used, and a few more.

    >>> schur_lower_bound(Architecture((2, 2), 2, tokens=2), 7, tokens=2).value
    7
    """
    value = schur_rank(architecture, target, tokens, seed, p)
    return LowerBound(
        standing="proven",
        reason=f"the Jacobian has rank at least {value} mod {p}, the last linear map eliminated by hand",
        value=value,
        method="schur",
        prime=p,
        seed=seed,
        tokens=tokens,
        samples=target + SPARE_JACOBIAN_ROWS,
    )


def schur_rank(architecture: Architecture, target: int, tokens: int, seed: int, p: int) -> int:
    """r d_l plus the rank mod p of the cleared rows, for as many of them as the target needs; 0 if B is singular."""
    network, field = random_slice(architecture, p, seed), BalancedField(p)
    held, d_out = hold_last_map(network), architecture.widths[-1]
    # The length r of the vectors b: the columns of the last V, or of all O side by side.
    size: int = sum((head.V if head.O is None else head.O).shape[1] for head in network.layers[-1])
    pivot = random_samples(network, size + SPARE_JACOBIAN_ROWS, tokens, seed + 1)
    features = last_features(network, _one_row_cotangents(pivot, np.zeros(len(pivot.X), dtype=np.intp)))
    independent = Elimination(features.copy(), p, keep_upper=False).run()
    if independent.rank < size:
        return 0
    chosen = independent.order[:size]
    pivot, inverse = pivot.select(chosen), field.inverse(features[chosen])
    # The same number of rows for every output row.
    each = ceil((max(target - size * d_out, 0) + SPARE_JACOBIAN_ROWS) / d_out)
    others = random_samples(network, d_out * each, tokens, seed + 2)
    others = _one_row_cotangents(others, np.repeat(np.arange(d_out), each))
    clear = field.matmul(last_features(network, others), inverse).reshape(d_out, each, size)
    matrix = sampled_jacobian(held, others)
    cleared = matrix.reshape(d_out, each, held.num_columns)
    step = max(1, PIVOT_ENTRIES // max(1, size * held.num_columns))
    for start in range(0, d_out, step):
        rows = slice(start, start + step)
        pivots = np.swapaxes(sampled_jacobian(held, _each_row_cotangents(pivot, rows)), 0, 1)
        field.subtract_product(cleared[rows], clear[rows], pivots)
    return size * d_out + Elimination(matrix, p, keep_upper=False).run().rank
