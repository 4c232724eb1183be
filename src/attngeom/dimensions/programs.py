"""The dimension of an architecture from its program: rank mod p below, symmetries above."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from attngeom.dimensions.counts import UpperBound
from attngeom.dimensions.program_point import lower_rank_at, tokens_at
from attngeom.dimensions.symmetry_bound import check_size
from attngeom.errors import InputError, SingularError
from attngeom.exact.domains import GF, QQ, RR
from attngeom.exact.modular import rank_mod_p
from attngeom.exact.numbers import WORD_PRIME
from attngeom.exact.points import name_point
from attngeom.limits.trials import PROGRAM_TOKENS, ROOT_SAMPLES, ROOT_SEEDS
from attngeom.network.architecture import Architecture
from attngeom.network.programs import program_of
from attngeom.network.symmetry import infinitesimal_action
from attngeom.network.symmetry.group import moving_factors
from attngeom.network.weights import named_weights, random_weights
from attngeom.programs.program import Program
from attngeom.rank.hypotheses import prove_rank
from attngeom.rank.lower import LowerBound, RankBound, bound_rank, find_point
from attngeom.rank.upper import bound_above


@dataclass(frozen=True, kw_only=True)
class Bounds:
    """A lower and an upper bound."""

    lower: LowerBound
    upper: UpperBound
    seconds: float


def sampled_tokens(architecture: Architecture) -> int:
    """How many tokens the program gets: what is true of so many is true of t.

    With a mask the first outputs do not depend on later tokens; otherwise all tokens are taken.
    """
    if architecture.mask.hides and not architecture.options.get("memory"):
        return min(architecture.tokens, max(PROGRAM_TOKENS, architecture.heads + 1))
    return architecture.tokens


def without_idle_values(architecture: Architecture) -> Architecture:
    """The architecture with the same functions and no value width beyond the ranks that value maps can have.

    >>> without_idle_values(Architecture((2, 2), 1, kind="gla", value_width=5)).value_width
    2
    """
    v = architecture.layer(0).value_width
    if v is None or not architecture.mechanism.has_linear_values:
        return architecture
    biased = bool(architecture.options.get("bias"))
    most = max(min(layer.d_in + biased, layer.d_out) for layer in architecture.layers)
    return replace(architecture, value_width=most) if v > most else architecture


def _seed_with_roots(program: Program, seed: int) -> int:
    """The first seed from this one on at whose point the roots of the program exist."""
    for attempt in range(ROOT_SEEDS):
        try:
            find_point(program, seed + attempt)
            return seed + attempt
        except InputError:
            continue
    raise SingularError(f"roots of the network exist at none of {ROOT_SEEDS} random points mod p")


def orbit_bound(architecture: Architecture, seed: int) -> UpperBound:
    """Parameters minus the rank of the listed infinitesimal symmetries at a named point mod p, sort by sort.

    >>> orbit_bound(Architecture((3, 2), 2, kind="deltanet"), 0).value
    19
    """
    check_size(architecture)
    total, parts = architecture.num_parameters, {}
    weights = named_weights(architecture, GF(WORD_PRIME), name_point(seed))
    rows = infinitesimal_action(weights)
    names = np.array([factor.name for factor in moving_factors(architecture) for _ in range(factor.count)])
    chosen = np.zeros(len(names), dtype=bool)
    rank = 0
    for name in dict.fromkeys(names.tolist()):
        chosen |= names == name
        grown = rank_mod_p(rows[chosen], WORD_PRIME)
        parts[name], rank = grown - rank, grown
    reason = "the infinitesimal symmetries of its kind of attention lie in the kernel of the differential"
    return UpperBound(standing="proven", reason=reason, value=total - rank, parts=parts)


def program_bounds(
    architecture: Architecture, seed: int = 0, progress: Callable[[str, int, int], None] | None = None
) -> Bounds:
    """Bounds for the dimension: the rank of the Jacobian of the program, and the symmetries, listed or found.

    >>> bounds = program_bounds(Architecture((2, 2), 1, kind="gla", tokens=2))
    >>> bounds.lower.value, bounds.upper.value
    (8, 8)
    """
    started = time.perf_counter()
    given, architecture = architecture, without_idle_values(architecture)
    few = sampled_tokens(architecture)
    upper = orbit_bound(architecture, seed)
    bounds: list[tuple[LowerBound, RankBound | None, int]] = []
    # Rotary planes beyond the width, and others, are told by more tokens than most kinds need.
    for number in dict.fromkeys((few, min(2 * few, architecture.tokens))):
        try:
            bounds.append((*_lower_mod_p(architecture, number, upper.value, seed, progress), number))
        except SingularError:
            bounds.append((_lower_by_balls(architecture, upper.value, seed), None, number))
        if bounds[-1][0].value >= upper.value:
            break
    # More tokens have more roots, which exist at fewer samples: the first of the largest.
    lower, rank, tokens = max(bounds, key=lambda bound: bound[0].value)
    if rank is not None and lower.value < upper.value and tokens == architecture.tokens:
        upper = _with_found_symmetries(upper, rank, seed, progress)
    idle = given.num_parameters - architecture.num_parameters
    if idle:
        upper = replace(upper, parts={**upper.parts, "unseen": idle})
    return Bounds(lower=lower, upper=upper, seconds=time.perf_counter() - started)


def _lower_mod_p(
    architecture: Architecture,
    tokens: int,
    most: int,
    seed: int,
    progress: Callable[[str, int, int], None] | None,
) -> tuple[LowerBound, RankBound]:
    """The rank of the program mod p, and why it is one over the reals; SingularError where roots are too rare."""
    program = program_of(architecture, tokens)
    rank = bound_rank(program, _seed_with_roots(program, seed), progress)
    if any(program.places("root")):
        # Later outputs need more roots: at most samples they do not exist.
        for times in ROOT_SAMPLES:
            if rank.value < most:
                rank = bound_rank(program, _seed_with_roots(program, seed), progress, times * program.num_parameters)
    proof = prove_rank(rank)
    lower = LowerBound(
        standing=proof.standing,
        reason=proof.reason,
        seed=seed,
        value=rank.value,
        method="minor",
        prime=rank.prime,
        tokens=tokens,
        samples=len(rank.samples),
    )
    return lower, rank


def _lower_by_balls(architecture: Architecture, most: int, seed: int) -> LowerBound:
    """The rank at random weights, enclosed by balls: no roots mod p are needed.

    >>> _lower_by_balls(Architecture((2, 2), 2, kind="deltanet", normalised_keys=True, tokens=2), 11, 0).value
    11
    """
    weights = random_weights(architecture, RR, seed).to(QQ)
    return LowerBound(
        standing="proven",
        reason="the rank at random weights, certified by ball arithmetic",
        seed=seed,
        value=min(lower_rank_at(weights, most, seed).value, most),
        method="balls",
        prime=None,
        tokens=tokens_at(architecture),
        samples=2 * most,
    )


def _with_found_symmetries(
    upper: UpperBound, rank: RankBound, seed: int, progress: Callable[[str, int, int], None] | None
) -> UpperBound:
    """The better of a bound and that of symmetries, coefficients or slices that a search finds and proves."""
    try:
        better = bound_above(rank, seed, progress)
    except InputError:
        # The search draws points of its own, at which roots may be missing.
        return upper
    if better.value >= upper.value:
        return upper
    parts: Mapping[str, int] = {**upper.parts, "searched": upper.value - better.value}
    reason = f"{upper.reason}; further ones were searched and proven ({better.method})"
    return UpperBound(standing="proven", reason=reason, value=better.value, parts=dict(parts))
