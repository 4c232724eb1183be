"""The rank of the differential at given weights, and how far it falls short of the generic dimension."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from attngeom.dimensions.answer import dimension
from attngeom.dimensions.counts import upper_bound
from attngeom.dimensions.estimate import entry_degree
from attngeom.dimensions.lower_bounds import check_balls_size
from attngeom.dimensions.program_point import lower_rank_at, measured_rank_at, orbit_rank_at
from attngeom.dimensions.sliced_network import Samples, full_blocks, random_samples, sampled_jacobian
from attngeom.dimensions.symmetry_bound import symmetry_upper_bound_at
from attngeom.errors import DomainError, InputError, SizeError
from attngeom.exact.domains import QQ, RR, BalancedField, Balls
from attngeom.exact.numbers import BLAS_PRIME, modulo_some_prime
from attngeom.exact.precise import Rank, certify_rank, measured_rank
from attngeom.exact.residues import Elimination
from attngeom.limits.memory import LOCAL_BALLS, LOCAL_JACOBIAN
from attngeom.limits.trials import INPUT_SCALES, POINT_TOKENS, SAMPLE_DOUBLINGS, SPARE_JACOBIAN_ROWS
from attngeom.network.architecture import Architecture
from attngeom.network.inputs import telling_tokens
from attngeom.network.symmetry import count_generators
from attngeom.network.weights import Weights, random_weights
from attngeom.results import Result, Standing


@dataclass(frozen=True, kw_only=True, eq=False)
class PointRank(Result):
    """The rank of the differential of W ↦ phi_W at one point.

    Exact weights: between the proven bounds, exact if they meet; if they do not, ``rank`` is the lower one and
    ``error_probability`` bounds the chance that random samples missed more (None if no such bound is known). Floats:
    an estimate, ``measured`` holds the singular values and the gap behind it. ``generic`` is the dimension of the
    architecture (None if unknown).
    """

    architecture: Architecture
    rank: int
    lower_bound: int | None = None
    upper_bound: int | None = None
    generic: int | None
    method: str
    prime: int | None = None
    error_probability: float | None = None
    measured: Rank | None = None

    @property
    def is_exact(self) -> bool:
        """Whether proven bounds meet."""
        return self.lower_bound is not None and self.lower_bound == self.upper_bound

    @property
    def defect(self) -> int | None:
        """How far the rank falls short of the generic one: positive at critical points of the parametrization."""
        return None if self.generic is None else self.generic - self.rank

    @property
    def kernel_dimension(self) -> int:
        """Parameters minus the rank: the dimension of the fiber wherever the rank is locally constant."""
        return self.architecture.num_parameters - self.rank

    def to_json(self) -> dict[str, Any]:
        claim = self.select("rank", "lower_bound", "upper_bound", "is_exact", "generic", "defect")
        return claim | self.select("standing", "reason", "method", "prime", "seed", "error_probability")

    def rows(self) -> Mapping[str, Any]:
        how = "exact" if self.is_exact else f"between {self.lower_bound} and {self.upper_bound}"
        if self.measured is not None:
            how = "estimate" if self.measured.is_clear else "no clear gap"
        rows: dict[str, Any] = {"rank at this point": f"{self.rank} ({how}, {self.method})"}
        if self.defect is not None:
            rows["defect"] = f"{self.defect} below the generic dimension {self.generic}"
        if self.error_probability is not None:
            rows["error probability"] = f"at most {self.error_probability:.1e} that random samples hide a larger rank"
        return rows


def rank_at(weights: Weights, seed: int = 0) -> PointRank:
    """The rank of the differential at given weights: bounds that are proven for rational ones, an estimate for floats.

    Floats are rationals too: ``rank_at(weights.to(QQ))`` speaks of the numbers as they are. Rational functions:
    lower bound mod p; others: lower bound certified by ball arithmetic. Upper bound from the symmetry vectors at
    the point and from directions along which a layer does not change there, found over Q.

    >>> from attngeom.exact import QQ
    >>> from attngeom.network import random_weights
    >>> rank_at(random_weights(Architecture((2, 2), 2, tokens=2), QQ, seed=0)).rank
    7
    """
    if not (weights.domain.is_rational or weights.domain.rounds):
        raise DomainError(f"weights over {weights.domain.name} given; rational or float weights are required")
    architecture = weights.architecture
    if not architecture.is_plain:
        return _from_program(weights, seed)
    size = architecture.num_parameters * max(
        upper_bound(architecture).value + SPARE_JACOBIAN_ROWS, sum(count_generators(architecture).values())
    )
    if size > LOCAL_JACOBIAN:
        raise SizeError(f"a matrix of {size:,} entries is needed; at most {LOCAL_JACOBIAN:,} are supported")
    return _estimate(weights, seed) if weights.domain.rounds else _bound(weights, seed)


def _from_program(weights: Weights, seed: int) -> PointRank:
    """The rank at weights of a kind beyond the papers, or with options.

    >>> from attngeom.exact import QQ
    >>> point = rank_at(random_weights(Architecture((2, 2), 1, kind="gla", tokens=2), QQ, seed=0))
    >>> point.rank, point.generic, point.is_exact
    (8, 8, True)
    """
    architecture = weights.architecture
    known = dimension(architecture, seed=seed)
    generic = None if known.standing == "undecided" else known.dimension
    if weights.domain.rounds:
        measured = measured_rank_at(weights, 2 * (known.upper_bound + SPARE_JACOBIAN_ROWS), seed)
        return _measured(weights, measured, known.upper_bound, generic, seed)
    most = min(known.upper_bound, architecture.num_parameters - orbit_rank_at(weights))
    lower = lower_rank_at(weights, most, seed)
    method = "balls" if lower.prime is None else "minor"
    return _between(weights, (min(lower.value, most), most), generic, method, seed, lower.prime)


def _bound(weights: Weights, seed: int) -> PointRank:
    """Proven bounds at rational weights."""
    architecture = weights.architecture
    most = min(upper_bound(architecture).value, symmetry_upper_bound_at(weights))
    generic = dimension(architecture, seed=seed).dimension
    if not architecture.rule.evaluates(QQ):
        return _between(weights, (_rank_by_balls(weights, most, seed), most), generic, "balls", seed)
    p, lower = _rank_mod_p(weights, most + SPARE_JACOBIAN_ROWS, seed)
    # Samples with fewer tokens than the network has may miss more than chance explains.
    known = lower < most and architecture.tokens <= POINT_TOKENS
    error = min(1.0, most * entry_degree(architecture) / p) if known else None
    return _between(weights, (lower, most), generic, "minor", seed, p, error)


def _between(
    weights: Weights,
    bounds: tuple[int, int],
    generic: int | None,
    method: str,
    seed: int,
    prime: int | None = None,
    error: float | None = None,
) -> PointRank:
    lower, upper = bounds
    standing: Standing = "proven" if lower == upper else "undecided" if error is None else "probabilistic"
    return PointRank(
        standing=standing,
        reason="the bounds meet" if lower == upper else f"proven to be between {lower} and {upper}",
        seed=seed,
        architecture=weights.architecture,
        rank=lower,
        lower_bound=lower,
        upper_bound=upper,
        generic=generic,
        method=method,
        prime=prime,
        error_probability=error,
    )


def _rank_mod_p(weights: Weights, rows: int, seed: int) -> tuple[int, int]:
    """A prime that divides no denominator, and the rank of the full Jacobian modulo it."""
    p, residues = modulo_some_prime(lambda p: weights.to(BalancedField(p)), BLAS_PRIME)
    network = full_blocks(residues)
    samples = random_samples(network, rows, min(weights.architecture.tokens, POINT_TOKENS), seed + 1)
    return p, Elimination(sampled_jacobian(network, samples), p, keep_upper=False).run().rank


def _rank_by_balls(weights: Weights, rows: int, seed: int) -> int:
    """A certified lower bound with true exponentials, at normal inputs of several sizes."""
    balls = Balls()
    architecture = weights.architecture
    tokens = telling_tokens(architecture, POINT_TOKENS)
    check_balls_size(2 * rows, tokens, architecture, LOCAL_BALLS)
    points = _float_samples(weights.to(RR), 2 * rows, tokens, seed)
    samples = Samples(balls.convert(points.X), balls.convert(points.C), None)
    return certify_rank(sampled_jacobian(full_blocks(weights.to(balls)), samples), balls.precision).rank


def _float_samples(weights: Weights, rows: int, tokens: int, seed: int) -> Samples:
    """Normal inputs of several sizes (of one where functions are homogeneous), with normal cotangents."""
    points = random_samples(full_blocks(weights), rows, tokens, seed + 1)
    if weights.architecture.is_homogeneous:
        return points
    return Samples(points.X * np.resize(INPUT_SCALES, rows)[:, None, None], points.C, None)


def _estimate(weights: Weights, seed: int) -> PointRank:
    """The numerical rank of float weights of a kind of the papers."""
    most, generic = upper_bound(weights.architecture).value, dimension(weights.architecture, seed=seed).dimension
    return _measured(weights, _measure(weights, most, seed), most, generic, seed)


def _measured(weights: Weights, measured: Rank, most: int, generic: int | None, seed: int) -> PointRank:
    """A numerical rank as an estimate; undecided if the gap is not clear, or floats do not see generic ranks here.

    A rank below the generic one is believed only if random weights with tensors of the same norms show the generic one.
    """
    architecture = weights.architecture
    reason = "numerical rank of a Jacobian at random inputs"
    clear = measured.is_clear and measured.value <= most
    if not clear:
        reason += ", without a clear gap"
    elif generic is not None and measured.value < generic:
        other = _random_like(weights, seed)
        rows = 2 * (most + SPARE_JACOBIAN_ROWS)
        rank = _measure(other, most, seed) if architecture.is_plain else measured_rank_at(other, rows, seed)
        clear = rank.value >= generic
        reason += "" if clear else f"; at random weights floats show {rank.value} of {generic} dimensions"
    return PointRank(
        standing="estimate" if clear else "undecided",
        reason=reason,
        seed=seed,
        architecture=architecture,
        rank=min(measured.value, most),
        generic=generic,
        method="floats",
        measured=measured,
    )


def _measure(weights: Weights, most: int, seed: int) -> Rank:
    """The numerical rank of a Jacobian, with samples added until it is stable or as large as it can be.

    As many random rows as the dimension suffice for exact numbers; rounding may hide some, so rows are doubled until
    the rank stays the same twice. Rows have unit norm, and each tensor is varied relative to its own norm.
    """
    network, tokens = full_blocks(weights), min(weights.architecture.tokens, POINT_TOKENS)
    units = np.concatenate([np.full(tensor.size, np.linalg.norm(tensor) or 1.0) for _, tensor in weights.tensors()])
    ranks: list[Rank] = []
    for doubling in range(SAMPLE_DOUBLINGS + 1):
        rows = (most + SPARE_JACOBIAN_ROWS) << doubling
        if ranks and rows * len(units) > LOCAL_JACOBIAN:
            break
        with np.errstate(all="ignore"):
            J = sampled_jacobian(network, _float_samples(weights, rows, tokens, seed + doubling)) * units
            sizes = np.linalg.norm(J, axis=1)
        finite = np.isfinite(sizes)
        if 2 * np.count_nonzero(finite) < rows:
            raise InputError("weights whose derivatives are beyond the range of floats given; rescale them")
        kept = finite & (sizes > 0)
        ranks.append(measured_rank(J[kept] / sizes[kept][:, None], RR))
        if ranks[-1].value >= most or (len(ranks) > 1 and ranks[-1].value == ranks[-2].value):
            break
    return ranks[-1]


def _random_like(weights: Weights, seed: int) -> Weights:
    """Random weights whose tensors have the norms of the given ones, or norm 1 where these vanish."""
    tensors = {}
    for (name, tensor), (_, other) in zip(weights.tensors(), random_weights(weights.architecture, RR, seed).tensors()):
        tensors[name] = other * ((np.linalg.norm(tensor) or 1.0) / np.linalg.norm(other))
    return Weights.from_tensors(weights.architecture, tensors, RR)
