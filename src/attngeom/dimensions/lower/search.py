"""Which method finds a lower bound, and with how many attempts: other seeds, a larger prime, more tokens or samples."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, get_args

from attngeom.dimensions.lower.bound import LowerBound, sample_tokens
from attngeom.dimensions.lower.krylov import krylov_lower_bound
from attngeom.dimensions.lower.minor import balls_lower_bound, minor_lower_bound
from attngeom.dimensions.lower.schur import count_remaining, schur_lower_bound
from attngeom.dimensions.slices import count_columns
from attngeom.exact.numbers import BLAS_PRIME, SMALL_PRIME, WORD_PRIME
from attngeom.limits.memory import DENSE_BYTES
from attngeom.limits.trials import SPARE_JACOBIAN_ROWS
from attngeom.limits.work import DIMENSION_PROVEN_ANYWAY
from attngeom.network.architecture import Architecture

Request = Literal["auto", "theorem", "minor", "schur", "krylov", "balls"]
REQUESTS: tuple[Request, ...] = get_args(Request)
PRIMES = {"schur": (SMALL_PRIME, BLAS_PRIME, WORD_PRIME), "krylov": (SMALL_PRIME, SMALL_PRIME, BLAS_PRIME)}
"""Of the attempts of a method: a point mod a small prime is degenerate now and then, but costs half as much."""


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
