"""The rank of the true Jacobian at one float point, certified by ball arithmetic: no formal attention is involved."""

from __future__ import annotations

from attngeom.dimensions.jacobian import Samples, random_samples, sampled_jacobian
from attngeom.dimensions.lower.bound import LowerBound, sample_tokens
from attngeom.dimensions.slices import slice_weights
from attngeom.errors import SizeError
from attngeom.exact.domains import RR, Balls
from attngeom.exact.precise import certify_rank
from attngeom.limits.memory import JACOBIAN_BALLS
from attngeom.network.architecture import Architecture
from attngeom.network.weights import random_weights


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
