"""Lower bounds for the dimension of an idealised network; every one is a proof, whatever the random choices were.

Four ways to the rank of its Jacobian at one point: a nonzero minor mod p; the rank mod p after the last linear map was
eliminated by hand (the output is W b(X) with W the last value matrix, or the O of all heads side by side, so that the
columns of W are B ⊗ I with the vectors b in B); the same without forming a matrix; and a minor in balls at floats.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import ceil
from typing import Literal, get_args

import numpy as np

from attngeom.dimensions.effective import effective_layers
from attngeom.dimensions.sliced_network import (
    NetworkMap,
    Samples,
    count_columns,
    draw_named,
    hold_last_map,
    last_features,
    random_samples,
    random_slice,
    sampled_jacobian,
    slice_weights,
    token_features,
)
from attngeom.errors import SizeError
from attngeom.exact.domains import RR, Array, BalancedField, Balls
from attngeom.exact.modular import choose_minor
from attngeom.exact.numbers import BLAS_PRIME, SMALL_PRIME, WORD_PRIME
from attngeom.exact.precise import certify_rank
from attngeom.limits.memory import DENSE_BYTES, JACOBIAN_BALLS
from attngeom.limits.trials import JACOBIAN_TOKENS, KRYLOV_FULL_SAMPLES, KRYLOV_TOKENS, SPARE_JACOBIAN_ROWS
from attngeom.limits.work import DIMENSION_PROVEN_ANYWAY, KRYLOV_COLUMNS
from attngeom.network.architecture import Architecture
from attngeom.network.weights import random_weights
from attngeom.rank.krylov import krylov_rank
from attngeom.rank.lower import LowerBound, Transcript
from attngeom.rank.maps import ClearedMap, LinearMap, cleared_rank, independent_features

Request = Literal["auto", "theorem", "minor", "schur", "krylov", "balls"]
REQUESTS: tuple[Request, ...] = get_args(Request)
PRIMES = {"schur": (SMALL_PRIME, BLAS_PRIME, WORD_PRIME), "krylov": (SMALL_PRIME, SMALL_PRIME, BLAS_PRIME)}
"""Of the attempts of a method: a point mod a small prime is degenerate now and then, but costs half as much."""


def sample_tokens(architecture: Architecture, most: int = JACOBIAN_TOKENS) -> int:
    """How many distinct tokens samples have: at most ``most``, which loses nothing that is true for t tokens.

    A function of t tokens restricts to fewer: zero tokens change nothing for polynomial attention, later tokens change
    nothing for masked attention, and formal attention to further tokens may be specialised to zero (where it is drawn
    symmetric, the last token stands for its copies). So a rank with fewer tokens is a lower bound for t tokens.
    """
    return min(architecture.tokens, most)


def minor_lower_bound(
    architecture: Architecture, rows: int, seed: int = 0, p: int = BLAS_PRIME, tokens: int | None = None
) -> LowerBound:
    """The rank mod p of the gauge-sliced Jacobian at one named point: at most the dimension, for every p and seed.

    ``rows`` random samples are used; the rank cannot exceed that, and reaches the dimension with high probability if
    there are at least that many. Attention that is not polynomial is formal mod p.

    >>> minor_lower_bound(Architecture((2, 2), 2, tokens=2), rows=9).value
    7
    """
    tokens = tokens or sample_tokens(architecture)
    size = count_columns(architecture)
    if 8 * rows * size > DENSE_BYTES:
        raise SizeError(f"a {rows:,}×{size:,} Jacobian was asked for; use the krylov method for this size")
    network, samples, point = draw_named(architecture, p, rows, tokens, seed)
    minor = choose_minor(sampled_jacobian(network, samples), p)
    return LowerBound(
        standing="proven",
        reason=f"a minor of size {minor.rank} of the Jacobian is nonzero mod {p}",
        value=minor.rank,
        method="minor",
        prime=p,
        seed=seed,
        point=point,
        tokens=tokens,
        samples=rows,
        minor_rows=minor.rows,
        minor_columns=tuple(network.columns[list(minor.columns)].tolist()),
    )


def check_balls_size(rows: int, tokens: int, architecture: Architecture, most: int = JACOBIAN_BALLS) -> None:
    """Refuse Jacobians of balls that would take long: entries are Python objects."""
    entries = rows * max(tokens * tokens * architecture.heads, architecture.num_parameters)
    if entries > most:
        raise SizeError(f"{entries:,} balls are needed; at most {most:,} are supported, use fewer tokens or minor")


def balls_lower_bound(architecture: Architecture, rows: int, seed: int = 0) -> LowerBound:
    """The certified rank of the true Jacobian (real exponentials) at one random float point, in ball arithmetic.

    Independent of formal softmax: the sliced Jacobian is enclosed entry by entry, and a square part of it is proven
    invertible by ‖I − R J‖ < 1 with an approximate inverse R.

    >>> balls_lower_bound(Architecture((2, 2), 1, tokens=2, kind="softmax"), rows=12).value
    7
    """
    # Copies of a token would change the true softmax, so all tokens are needed there.
    tokens = sample_tokens(architecture) if architecture.rule.drops_tokens else architecture.tokens
    check_balls_size(2 * rows, tokens, architecture)
    weights = random_weights(architecture, RR, seed)
    balls = Balls()
    network = slice_weights(weights, balls)
    # Normal inputs keep the scores moderate: integer inputs would make softmax one-hot and the matrix singular.
    points = random_samples(slice_weights(weights, RR), 2 * rows, tokens, seed + 1)
    exact = Samples(balls.convert(points.X), balls.convert(points.C), None)
    certified = certify_rank(sampled_jacobian(network, exact), balls.precision)
    columns = network.columns[list(certified.columns)]
    return LowerBound(
        standing="proven",
        reason=f"a minor of size {certified.rank} of the Jacobian, enclosed by balls, is invertible",
        value=certified.rank,
        method="balls",
        prime=None,
        seed=seed,
        tokens=tokens,
        samples=2 * rows,
        minor_rows=certified.rows,
        minor_columns=tuple(columns.tolist()),
    )


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
    """r d_l plus the rank mod p of the cleared rows, for as many of them as the target needs; 0 if B is singular.

    Cotangents are C = c ⊗ e_i: the derivative of output row i along W involves row i of W alone, and there it is b. The
    rows of r samples, each with all d_l output rows i, clear all others.
    """
    network, field = random_slice(architecture, p, seed), BalancedField(p)
    held, d_out = hold_last_map(network), architecture.widths[-1]
    # The length r of the vectors b: the columns of the last V, or of all O side by side.
    size: int = sum((head.V if head.O is None else head.O).shape[1] for head in network.layers[-1])
    pivot = random_samples(network, size + SPARE_JACOBIAN_ROWS, tokens, seed + 1)
    features = last_features(network, _one_row_cotangents(pivot, np.zeros(len(pivot.X), dtype=np.intp)))
    chosen = independent_features(features, p)
    if chosen is None:
        return 0
    pivots = pivot.select(np.array(chosen, dtype=np.intp))
    # The same number of rows for every output row.
    each = ceil((max(target - size * d_out, 0) + SPARE_JACOBIAN_ROWS) / d_out)
    others = random_samples(network, d_out * each, tokens, seed + 2)
    others = _one_row_cotangents(others, np.repeat(np.arange(d_out), each))
    return cleared_rank(
        last_features(network, others).reshape(d_out, each, size),
        sampled_jacobian(held, others).reshape(d_out, each, held.num_columns),
        features[list(chosen)],
        lambda rows: np.swapaxes(sampled_jacobian(held, _each_row_cotangents(pivots, rows)), 0, 1),
        field,
    )


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


def free_map(architecture: Architecture, p: int, seed: int, samples: int) -> tuple[LinearMap, NetworkMap]:
    """What krylov takes the rank of: the map with the last linear map cleared, and that of the entries which are left.

    Both are one, the whole map, where the features b are dependent, and where the last map alone has free entries.
    """
    whole = random_slice(architecture, p, seed)
    points = random_samples(whole, samples, min(architecture.tokens, KRYLOV_TOKENS), seed + 1)
    passes, field = whole.passes(points.X, points.attention), BalancedField(p)
    features = token_features(passes)
    features = features.reshape(-1, features.shape[-1])
    pivots, held = independent_features(features, p), hold_last_map(whole)
    if pivots is None or not held.num_columns:
        linear = NetworkMap(whole, passes, field)
        return linear, linear
    linear = NetworkMap(held, passes, field)
    return ClearedMap(linear, features, pivots), linear


def krylov_lower_bound(
    architecture: Architecture,
    seed: int = 0,
    p: int = SMALL_PRIME,
    more: int = 0,
    progress: Callable[[int, int], None] | None = None,
    workers: int = 1,
) -> LowerBound:
    """A lower bound for the dimension, proven by the rank of a block Hankel matrix mod p, with nothing dense formed.

    It is the dimension with high probability if the gauge slice has no superfluous column and the samples suffice;
    ``more`` samples are added. ``workers`` threads push vectors forward.

    >>> krylov_lower_bound(Architecture((2, 2), 2, tokens=2), seed=0).value
    7
    """
    columns, tokens = count_columns(architecture), min(architecture.tokens, KRYLOV_TOKENS)
    if columns > KRYLOV_COLUMNS:
        raise SizeError(
            f"{columns:,} free weights given; proofs are possible for at most {KRYLOV_COLUMNS:,}, use a formula"
        )
    samples = more + count_samples(architecture, columns, tokens)
    linear, rest = free_map(architecture, p, seed, samples)
    result = krylov_rank(linear, seed, progress, workers)
    cleared, pivots = (linear.cleared, linear.pivots.tolist()) if isinstance(linear, ClearedMap) else (0, [])
    by_hand = f"{cleared} by hand and " if cleared else ""
    hankel = f"rank at least {by_hand}{result.value} by a block Hankel matrix of a Krylov sequence mod {p}"
    return LowerBound(
        standing="proven",
        reason=f"the Jacobian has {hankel}",
        value=cleared + result.value,
        method="krylov",
        prime=p,
        seed=seed,
        tokens=tokens,
        samples=samples,
        transcript=Transcript(
            free=tuple((block.start, int(block.fix_corner)) for block in rest.network.blocks),
            pivots=tuple(pivots),
            krylov=result,
        ),
    )


def find_lower_bound(
    architecture: Architecture,
    target: int,
    method: Request = "auto",
    seed: int = 0,
    progress: Callable[[int, int], None] | None = None,
    workers: int = 1,
) -> LowerBound:
    """The best of a few attempts at the target: other seeds, a larger prime, more tokens or samples."""
    if method == "balls":
        return balls_lower_bound(architecture, target + SPARE_JACOBIAN_ROWS, seed)
    chosen = choose_method(architecture, target) if method == "auto" else method
    bounds: list[LowerBound] = []
    for attempt, prime in enumerate(PRIMES.get(chosen, (BLAS_PRIME, WORD_PRIME, BLAS_PRIME))):
        tokens = sample_tokens(architecture, 3 + 3 * attempt)
        if chosen == "krylov":
            bounds.append(krylov_lower_bound(architecture, seed + attempt, prime, 2 * attempt, progress, workers))
        elif chosen == "schur":
            bounds.append(schur_lower_bound(architecture, target, tokens, seed + attempt, prime))
        else:
            bounds.append(minor_lower_bound(architecture, target + SPARE_JACOBIAN_ROWS, seed + attempt, prime, tokens))
        rank = bounds[-1].value
        if rank > target:
            raise ArithmeticError(
                f"rank {rank} exceeds the proven upper bound {target} for {architecture}; please report this"
            )
        if rank == target:
            break
    best = max(bounds, key=lambda bound: bound.value)
    if method == "auto" and chosen == "schur" and best.value == 0 < target:
        # The features of the last map satisfy a linear relation, so that nothing can be cleared.
        return find_lower_bound(architecture, target, choose_whole(architecture, target), seed, progress, workers)
    return best


def choose_method(architecture: Architecture, target: int) -> Request:
    """The minor for small dimensions (it is a certificate), else elimination after the last map was cleared, or Krylov.

    The smaller matrix saves two thirds of the time for three layers and more for fewer; beyond 4 GB nothing is formed.

    >>> choose_method(Architecture((2, 2), 2), 7)
    'minor'
    """
    if target <= DIMENSION_PROVEN_ANYWAY:
        return "minor"
    remaining = 8 * count_remaining(architecture, target)
    return "schur" if remaining <= DENSE_BYTES else choose_whole(architecture, target)


def choose_whole(architecture: Architecture, target: int) -> Request:
    """Elimination of the whole Jacobian if it fits into 4 GB, else Krylov."""
    return "minor" if 8 * (target + SPARE_JACOBIAN_ROWS) * count_columns(architecture) <= DENSE_BYTES else "krylov"
