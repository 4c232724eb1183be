"""Lower bounds for the dimension with a witness, and the Monte Carlo value when the bounds do not meet."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from attngeom.dimensions.effective import effective_widths
from attngeom.dimensions.jacobian import Samples, jacobian, random_samples
from attngeom.dimensions.sliced import random_slice, slice_weights
from attngeom.errors import SizeError
from attngeom.exact.balls import certify_rank
from attngeom.exact.domains import GF, RR, Balls
from attngeom.exact.elimination import Elimination
from attngeom.exact.modular import rank_mod_p
from attngeom.exact.primes import BLAS_PRIME, WORD_PRIME
from attngeom.network.architecture import Architecture
from attngeom.network.symmetry import count_generators, infinitesimal_action
from attngeom.network.weights import random_weights

Method = Literal["minor", "schur", "krylov", "balls"]

TOKENS = 3
"""Tokens per sample: other tokens are zero (lightning), copies (softmax) or come later (causal); see below."""
SPARE_ROWS = 4
MAX_DENSE_BYTES = 4 * 10**9
MAX_BALLS = 2 * 10**7


@dataclass(frozen=True)
class LowerBound:
    """A proven lower bound: the minor of these rows (samples) and columns (weights) is nonzero at the stored seeds.

    ``rows`` and ``columns`` are given by the methods minor and balls only; ``tokens`` counts distinct tokens.
    """

    value: int
    method: Method
    prime: int | None
    seed: int
    tokens: int
    samples: int
    rows: tuple[int, ...] = ()
    columns: tuple[int, ...] = ()


def sample_tokens(architecture: Architecture, most: int = TOKENS) -> int:
    """How many distinct tokens samples have: at most ``most``, which loses nothing that is true for t tokens.

    A function of t tokens restricts to fewer: zero tokens change nothing for lightning attention, later tokens change
    nothing for causal attention, and copies of a token only rescale the exponentials of formal softmax, which are
    free. So a rank with fewer tokens is a lower bound for t tokens.
    """
    return min(architecture.tokens, most)


def minor_lower_bound(
    architecture: Architecture, rows: int, seed: int = 0, p: int = BLAS_PRIME, tokens: int | None = None
) -> LowerBound:
    """The rank mod p of the gauge-sliced Jacobian at one random point: at most the dimension, for every p and seed.

    ``rows`` random samples are used; the rank cannot exceed that, and reaches the dimension with high probability if
    there are at least that many. Softmax is formal, see :mod:`attngeom.dimensions.jacobian`.

    >>> minor_lower_bound(Architecture((2, 2), 2, tokens=2), rows=9).value
    7
    """
    tokens = tokens or sample_tokens(architecture)
    network = random_slice(architecture, p, seed)
    if 8 * rows * network.num_columns > MAX_DENSE_BYTES:
        raise SizeError(
            f"a {rows:,}×{network.num_columns:,} Jacobian was asked for; use the krylov method for this size"
        )
    matrix = jacobian(network, random_samples(network, rows, tokens, seed + 1))
    elimination = Elimination(matrix, p, keep_upper=False).run()
    chosen = np.sort(elimination.order[: elimination.rank])
    columns = network.columns[elimination.columns]
    return LowerBound(elimination.rank, "minor", p, seed, tokens, rows, tuple(chosen.tolist()), tuple(columns.tolist()))


def check_balls_size(rows: int, tokens: int, architecture: Architecture) -> None:
    """Refuse Jacobians of balls that would take hours: entries are Python objects."""
    entries = rows * max(tokens * tokens * architecture.heads, architecture.num_parameters)
    if entries > MAX_BALLS:
        raise SizeError(f"{entries:,} balls are needed; at most {MAX_BALLS:,} are supported, use fewer tokens or minor")


def balls_lower_bound(architecture: Architecture, rows: int, seed: int = 0, precision: int = 128) -> LowerBound:
    """The certified rank of the true Jacobian (real exponentials) at one random float point, in ball arithmetic.

    Independent of formal softmax: the sliced Jacobian is enclosed entry by entry, and a square part of it is proven
    invertible by ‖I − R J‖ < 1 with an approximate inverse R.

    >>> balls_lower_bound(Architecture((2, 2), 1, tokens=2, kind="softmax"), rows=12).value
    7
    """
    # Copies of a token would change the true softmax, so all tokens are needed there.
    free = architecture.rule.is_polynomial or architecture.causal
    tokens = sample_tokens(architecture) if free else architecture.tokens
    check_balls_size(2 * rows, tokens, architecture)
    weights = random_weights(architecture, RR, seed)
    balls = Balls(precision)
    network = slice_weights(weights, balls)
    # Normal inputs keep the scores moderate: integer inputs would make softmax one-hot and the matrix singular.
    points = random_samples(slice_weights(weights, RR), 2 * rows, tokens, seed + 1)
    exact = Samples(balls.array(points.X), balls.array(points.C), None)
    certified = certify_rank(jacobian(network, exact), precision)
    columns = network.columns[list(certified.columns)]
    return LowerBound(
        certified.lower_bound, "balls", None, seed, tokens, 2 * rows, certified.rows, tuple(columns.tolist())
    )


def symmetry_upper_bound(architecture: Architecture, seed: int = 0, p: int = WORD_PRIME) -> int:
    """Parameters minus the rank mod p of the infinitesimal symmetries at one random point: a proven upper bound.

    The vector fields lie in the kernel of the Jacobian at every point, and their generic rank over Q is at least the
    rank mod p at a point. Weaker than :func:`attngeom.dimensions.counting.upper_bound`, but with other means.

    >>> symmetry_upper_bound(Architecture((3, 3, 3), 2))
    23
    """
    count = sum(count_generators(architecture).values())
    if 8 * count * architecture.num_parameters > MAX_DENSE_BYTES:
        raise SizeError(
            f"{count:,} symmetry vectors of length {architecture.num_parameters:,}; use the parameter count"
        )
    weights = random_weights(architecture, GF(p), seed)
    return architecture.num_parameters - rank_mod_p(infinitesimal_action(weights).rows, p)


def entry_degree(architecture: Architecture) -> int:
    """A bound for the degree of an entry of the Jacobian as a polynomial in weights, inputs, cotangents, attention.

    >>> entry_degree(Architecture((2, 2), 2))
    6
    """
    factors = 2 if architecture.is_factored else 1
    value, tangent = 1, 0
    # Attention from symmetric exponentials has denominators: the sums of all columns, at most squared.
    clearing = 2 * TOKENS * architecture.heads if 1 in effective_widths(architecture)[:-1] else 0
    for _ in range(architecture.num_layers):
        if not architecture.rule.is_polynomial:
            # V X P with dP = P dS − P (Σ P dS), dS of degree 1 + 2·value or 2 + value + tangent.
            scores = max(1 + 2 * value, 2 + value + tangent)
            tangent = max(factors + value, factors + tangent + 1, factors + value + 2 + scores)
            tangent += clearing
            value = factors + value + 1 + clearing
        else:
            value, tangent = factors + 2 + 3 * value, factors + 2 + 2 * value + max(tangent, value - 1)
    return tangent + 1


@dataclass(frozen=True)
class Estimate:
    """The largest rank found at random points, and a bound for the probability that the dimension is larger.

    The probability is over the points, for a prime at which the generic rank is that over Q (all but finitely many).
    """

    value: int
    error_probability: float
    trials: int
    prime: int


def estimate_dimension(
    architecture: Architecture, upper: int, seed: int = 0, p: int = WORD_PRIME, trials: int = 3
) -> Estimate:
    """The rank at ``trials`` random points mod p, with enough samples for the upper bound (Schwartz and Zippel).

    >>> estimate_dimension(Architecture((2, 2), 2, tokens=2), 7).value
    7
    """
    best = 0
    for trial in range(trials):
        found = minor_lower_bound(architecture, upper + SPARE_ROWS, seed + 1000 * (trial + 1), p)
        best = max(best, found.value)
    single = min(1.0, upper * entry_degree(architecture) / p)
    return Estimate(best, single**trials, trials, p)
