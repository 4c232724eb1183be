"""The dimension of an architecture: formula, proven bounds, and what is left between them, in one record."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from attngeom.dimensions.bounds import (
    MAX_DENSE_BYTES,
    SPARE_ROWS,
    LowerBound,
    balls_lower_bound,
    estimate_dimension,
    minor_lower_bound,
    sample_tokens,
)
from attngeom.dimensions.counting import UpperBound, upper_bound
from attngeom.dimensions.formulas import Formula, formula, formulas
from attngeom.dimensions.schur import count_remaining, schur_applies, schur_rank
from attngeom.dimensions.sliced import count_columns
from attngeom.dimensions.wiedemann import krylov_lower_bound
from attngeom.errors import InputError
from attngeom.exact.primes import BLAS_PRIME, SMALL_PRIME, WORD_PRIME
from attngeom.network.architecture import Architecture

Request = Literal["auto", "minor", "schur", "krylov", "balls"]
REQUESTS = ("auto", "minor", "schur", "krylov", "balls")
INSTANT = 300
"""Dimensions up to this bound are proven in a fraction of a second, so they always are."""
SMALL = 2000
"""Without a formula, dimensions up to this bound are computed even if no proof was asked for."""


@dataclass(frozen=True)
class Dimension:
    """The dimension of the set of functions of an architecture, with the evidence.

    ``dimension`` is None if nothing is known; ``is_proven`` is true only if a proven lower bound meets a proven upper
    bound in this very computation. ``fiber`` splits the fiber dimension by symmetry.
    """

    architecture: Architecture
    num_parameters: int
    dimension: int | None
    fiber_dimension: int | None
    fiber: dict[str, int]
    formula: Formula | None
    lower_bound: int | None
    upper_bound: int
    is_proven: bool
    method: str
    prime: int | None
    seed: int
    seconds: float
    error_probability: float | None
    status: str
    witness: LowerBound | None

    def to_json(self) -> dict[str, Any]:
        """The JSON object of the command line."""
        return {
            "architecture": self.architecture.to_json(),
            "num_parameters": self.num_parameters,
            "dimension": self.dimension,
            "fiber_dimension": self.fiber_dimension,
            "fiber": self.fiber,
            "formula": None if self.formula is None else self.formula.to_json(),
            "lower_bound": self.lower_bound,
            "upper_bound": self.upper_bound,
            "is_proven": self.is_proven,
            "method": self.method,
            "prime": self.prime,
            "seed": self.seed,
            "seconds": round(self.seconds, 6),
            "error_probability": self.error_probability,
            "status": self.status,
        }


def dimension(
    architecture: Architecture,
    *,
    prove: bool = False,
    method: Request = "auto",
    seed: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> Dimension:
    """The dimension of the set of functions phi_W, by formula at once or with proof.

    Without ``prove`` a formula that applies is the answer for all but small networks; else bounds are computed.

    >>> answer = dimension(Architecture((3, 3, 3), 2), prove=True)
    >>> answer.dimension, answer.is_proven
    (23, True)
    """
    if method not in REQUESTS:
        raise InputError(f"method {method!r} given; one of {', '.join(REQUESTS)} is required")
    started = time.perf_counter()
    known, upper = formula(architecture), upper_bound(architecture)
    wanted = prove or method != "auto" or upper.value <= (SMALL if known is None else INSTANT)
    if not wanted:
        return _by_formula(architecture, known, upper, seed, started)
    lower = find_lower_bound(architecture, upper.value, method, seed, progress)
    value, probability, status = lower.value, None, "proven: the bounds meet"
    is_proven = lower.value == upper.value
    if not is_proven:
        if lower.method in ("minor", "schur") and upper.value <= SMALL:
            estimate = estimate_dimension(architecture, upper.value, seed)
            value, probability = max(estimate.value, lower.value), estimate.error_probability
            status = (
                f"between {lower.value} and {upper.value}; {value} is the rank at random points of GF({estimate.prime})"
            )
        else:
            status = f"proven to be between {lower.value} and {upper.value}; the lower bound is given"
    return Dimension(
        architecture,
        architecture.num_parameters,
        value,
        architecture.num_parameters - value,
        _split(upper, value),
        known or _closest(architecture),
        lower.value,
        upper.value,
        is_proven,
        lower.method,
        lower.prime,
        seed,
        time.perf_counter() - started,
        probability,
        status,
        lower,
    )


def _closest(architecture: Architecture) -> Formula | None:
    """A formula that has a value here although its hypotheses fail; its record says so."""
    candidates = formulas(architecture)
    return candidates[-1] if candidates else None


def _split(upper: UpperBound, value: int) -> dict[str, int]:
    return {**{name: loss for name, loss in upper.parts.items() if loss}, "unexplained": upper.value - value}


def _by_formula(
    architecture: Architecture, known: Formula | None, upper: UpperBound, seed: int, started: float
) -> Dimension:
    words = {
        "theorem": "a theorem whose hypotheses hold; not recomputed here",
        "conjecture": "a conjecture; its value is a proven upper bound",
        "computed": "a proven upper bound; equality was computed in every tested case, not recomputed here",
    }
    value = None if known is None else known.value
    if known is None:
        status = "no formula applies; only the upper bound is known, ask for a proof to compute a lower one"
    else:
        status = f"{known.source}: {words[known.status]}"
    return Dimension(
        architecture,
        architecture.num_parameters,
        value,
        None if value is None else architecture.num_parameters - value,
        _split(upper, upper.value if value is None else value),
        known or _closest(architecture),
        None,
        upper.value,
        False,
        "formula" if known is not None else "count",
        None,
        seed,
        time.perf_counter() - started,
        None,
        status,
        None,
    )


def find_lower_bound(
    architecture: Architecture,
    target: int,
    method: Request = "auto",
    seed: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> LowerBound:
    """The best of a few attempts at the target: other seeds, a larger prime, more tokens or samples."""
    rows = target + SPARE_ROWS
    if method == "auto":
        method = choose_method(architecture, target)
    if method == "balls":
        return balls_lower_bound(architecture, rows, seed)
    best: LowerBound | None = None
    # A point mod a small prime is degenerate now and then, but costs half as much.
    primes = (SMALL_PRIME, BLAS_PRIME, WORD_PRIME) if method == "schur" else (BLAS_PRIME, WORD_PRIME, BLAS_PRIME)
    for attempt, prime in enumerate(primes):
        tokens = sample_tokens(architecture, 3 + 3 * attempt)
        if method == "krylov":
            found = _krylov(architecture, seed + attempt, 2**attempt, progress)
        elif method == "schur":
            value = schur_rank(architecture, target, tokens, seed + attempt, prime)
            found = LowerBound(value, "schur", prime, seed + attempt, tokens, rows)
        else:
            found = minor_lower_bound(architecture, rows, seed + attempt, prime, tokens)
        if found.value > target:
            raise ArithmeticError(
                f"rank {found.value} exceeds the proven upper bound {target} for {architecture}; please report this"
            )
        if best is None or found.value > best.value:
            best = found
        if best.value == target:
            break
    assert best is not None
    return best


def choose_method(architecture: Architecture, target: int) -> Request:
    """The minor for small dimensions (it is a certificate), elimination after the last map was cleared, or Krylov.

    The smaller matrix saves two thirds of the time for three layers and more for fewer; beyond 4 GB nothing is formed.

    >>> choose_method(Architecture((2, 2), 2), 7)
    'minor'
    """
    if target <= INSTANT:
        return "minor"
    if 8 * count_remaining(architecture, target) <= MAX_DENSE_BYTES and schur_applies(architecture):
        return "schur"
    return "minor" if 8 * (target + SPARE_ROWS) * count_columns(architecture) <= MAX_DENSE_BYTES else "krylov"


def _krylov(
    architecture: Architecture, seed: int, more: int, progress: Callable[[int, int], None] | None
) -> LowerBound:
    found = krylov_lower_bound(architecture, seed, more=more, progress=progress)
    return LowerBound(found.lower_bound, "krylov", found.prime, seed, found.tokens, found.samples)
