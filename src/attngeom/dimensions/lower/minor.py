"""The rank of the Jacobian at one point from below: mod p with a nonzero minor as witness, or by balls at floats."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from attngeom.dimensions.effective import effective_widths
from attngeom.dimensions.jacobian import Samples, draw_named, random_samples, sampled_jacobian
from attngeom.dimensions.lower.bound import LowerBound, sample_tokens
from attngeom.dimensions.slices import count_columns, slice_weights
from attngeom.errors import SizeError
from attngeom.exact.domains import RR, Balls
from attngeom.exact.numbers import BLAS_PRIME, WORD_PRIME
from attngeom.exact.precise import certify_rank
from attngeom.exact.residues import Elimination
from attngeom.limits.memory import DENSE_BYTES, JACOBIAN_BALLS
from attngeom.limits.trials import JACOBIAN_TOKENS, SPARE_JACOBIAN_ROWS
from attngeom.network.architecture import Architecture
from attngeom.network.weights import random_weights
from attngeom.results import Result


def minor_lower_bound(
    architecture: Architecture, rows: int, seed: int = 0, p: int = BLAS_PRIME, tokens: int | None = None
) -> LowerBound:
    """The rank mod p of the gauge-sliced Jacobian at one named point: at most the dimension, for every p and seed.

    ``rows`` random samples are used; the rank cannot exceed that, and reaches the dimension with high probability if
    there are at least that many. Attention that is not polynomial is formal, see :mod:`attngeom.dimensions.jacobian`.

    >>> minor_lower_bound(Architecture((2, 2), 2, tokens=2), rows=9).value
    7
    """
    tokens = tokens or sample_tokens(architecture)
    size = count_columns(architecture)
    if 8 * rows * size > DENSE_BYTES:
        raise SizeError(f"a {rows:,}×{size:,} Jacobian was asked for; use the krylov method for this size")
    network, samples, point = draw_named(architecture, p, rows, tokens, seed)
    matrix = sampled_jacobian(network, samples)
    elimination = Elimination(matrix, p, keep_upper=False).run()
    chosen = np.sort(elimination.order[: elimination.rank])
    columns = network.columns[elimination.columns]
    return LowerBound(
        standing="proven",
        reason=f"a minor of size {elimination.rank} of the Jacobian is nonzero mod {p}",
        value=elimination.rank,
        method="minor",
        prime=p,
        seed=seed,
        point=point,
        tokens=tokens,
        samples=rows,
        minor_rows=tuple(chosen.tolist()),
        minor_columns=tuple(columns.tolist()),
    )


def entry_degree(architecture: Architecture) -> int:
    """A bound for the degree of an entry of the Jacobian as a polynomial in weights, inputs, cotangents, attention.

    >>> entry_degree(Architecture((2, 2), 2))
    6
    """
    factors = 2 if architecture.is_factored else 1
    value, tangent = 1, 0
    # Attention from symmetric exponentials has denominators: the sums of all columns, at most squared.
    divides = architecture.rule.is_normalised and 1 in effective_widths(architecture)[:-1]
    clearing = 2 * JACOBIAN_TOKENS * architecture.heads if divides else 0
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


@dataclass(frozen=True, kw_only=True, eq=False)
class Estimate(Result):
    """The largest rank found at random points, and a bound for the probability that the dimension is larger.

    The probability is over the points, for a prime at which the generic rank is that over Q (all but finitely many).
    """

    value: int
    error_probability: float
    trials: int
    prime: int

    def to_json(self) -> dict[str, Any]:
        return self.select("value", "error_probability", "trials", "prime", "seed")

    def rows(self) -> Mapping[str, Any]:
        return {"rank at random points": self.value, "reason": self.reason}


def estimate_dimension(architecture: Architecture, upper: int, seed: int = 0, trials: int = 3) -> Estimate:
    """The rank at ``trials`` random points mod p, with enough samples for the upper bound (Schwartz and Zippel).

    >>> estimate_dimension(Architecture((2, 2), 2, tokens=2), 7).value
    7
    """
    best, p = 0, WORD_PRIME
    for trial in range(trials):
        bound = minor_lower_bound(architecture, upper + SPARE_JACOBIAN_ROWS, seed + 1000 * (trial + 1), p)
        best = max(best, bound.value)
    single = min(1.0, upper * entry_degree(architecture) / p)
    probability = single**trials
    return Estimate(
        standing="probabilistic",
        reason=f"the largest rank at {trials} random points of GF({p}); too small with probability ≤ {probability:.1e}",
        seed=seed,
        value=best,
        error_probability=probability,
        trials=trials,
        prime=p,
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
