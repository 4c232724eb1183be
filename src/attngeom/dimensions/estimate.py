"""The dimension with a bound for the probability of error: the largest rank at random points (Schwartz and Zippel)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from attngeom.dimensions.effective import effective_widths
from attngeom.dimensions.lower_bounds import minor_lower_bound
from attngeom.exact.numbers import WORD_PRIME
from attngeom.limits.trials import JACOBIAN_TOKENS, SPARE_JACOBIAN_ROWS
from attngeom.network.architecture import Architecture
from attngeom.results import Result


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
        return self.select("value", "standing", "reason", "error_probability", "trials", "prime", "seed")

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
