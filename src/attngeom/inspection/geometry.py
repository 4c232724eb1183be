"""Where a point of weight space lies: generic, singular, boundary or critical, and what its fiber is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from attngeom import digits
from attngeom.dimensions.point import PointRank, rank_at
from attngeom.errors import InputError, SizeError
from attngeom.exact import lapack
from attngeom.exact.domains import RR, Array, Domain
from attngeom.exact.precise import Rank, measured_rank
from attngeom.heads.uniqueness import heads_unique
from attngeom.inspection.fibers import VirtualFiber, virtual_fiber
from attngeom.inspection.hypotheses import Hypothesis, VirtualRanks, check_hypotheses, in_range, virtual_ranks
from attngeom.inspection.kinds import LocalFreedom, freedom_of, generic_hypotheses
from attngeom.limits.work import LOCAL_RANK_PARAMETERS
from attngeom.network import Weights
from attngeom.network.weights import head_spectra
from attngeom.results import Result

if TYPE_CHECKING:
    from attngeom.drawing import Picture

Fiber = Literal["one point", "two points", "zero function", "unknown"]
ANSWERS = {True: "yes", False: "no", None: "cannot be told"}


@dataclass(frozen=True)
class LayerStratum:
    """The place of φ in the function space of one lightning layer ([G] Theorem 3.4 with the correction for 1 < a < d).

    ``fiber`` is in (A, V) up to the scale (λA, V/λ). ``distance`` is the Frobenius distance of (A, V), scaled to
    ‖A‖ = ‖V‖ = 1, to the nearest weights with a singular function (a float). Flags are None when floats show no clear
    gap or the theorem does not apply.
    """

    rank_A: Rank
    rank_V: Rank
    is_singular: bool | None
    is_boundary: bool | None
    fiber: Fiber
    distance: float
    reason: str

    @property
    def is_critical(self) -> bool | None:
        """Whether the differential of (A, V) ↦ φ falls short here: at the boundary, and nowhere else."""
        return self.is_boundary

    @property
    def name(self) -> str:
        """One word for the stratum."""
        if self.is_singular is None:
            return "undecided"
        if self.fiber == "zero function":
            return "zero"
        if self.is_boundary:
            return "boundary"
        return "singular" if self.is_singular else "generic"

    def to_json(self) -> dict[str, Any]:
        return {
            "stratum": self.name,
            "rank_A": self.rank_A.to_json(),
            "rank_V": self.rank_V.to_json(),
            "singular": self.is_singular,
            "boundary": self.is_boundary,
            "critical": self.is_critical,
            "fiber": self.fiber,
            "distance_to_singular": self.distance,
            "reason": self.reason,
        }


@dataclass(frozen=True, kw_only=True, eq=False)
class Inspection(Result):
    """What is known of given weights: the stratum of one layer, the fiber, hypotheses of the theorems, ranks."""

    weights: Weights
    stratum: LayerStratum | None
    fiber: VirtualFiber | None
    hypotheses: tuple[Hypothesis, ...]
    ranks: VirtualRanks | None
    local: PointRank | None
    freedom: LocalFreedom | None = None

    def rows(self) -> Mapping[str, Any]:
        lines: dict[str, Any] = {}
        stratum = self.stratum
        if stratum is not None:
            lines["stratum"] = f"{stratum.name}: {stratum.reason}"
            lines["fiber in (A, V), up to scale"] = stratum.fiber
            for label, flag in (("singular", stratum.is_singular), ("boundary", stratum.is_boundary)):
                lines[label] = ANSWERS[flag]
            lines["critical for (A, V)"] = ANSWERS[stratum.is_critical]
            if stratum.is_singular is not None:
                lines["distance to singular"] = f"{digits.size(stratum.distance)} (with A and V of norm 1)"
        architecture = self.weights.architecture
        if architecture.is_plain and architecture.num_layers == 1 and architecture.heads > 1:
            unique = heads_unique(self.weights)
            lines["heads"] = f"{unique.verdict.replace('_', ' ')}: {unique.reason}"
        if self.freedom is not None:
            lines |= self.freedom.rows()
        if self.fiber is not None:
            lines["fiber in (M, L)"] = self.fiber.words
        if self.ranks is not None:
            for index, (A, M) in enumerate(zip(self.ranks.A, self.ranks.M)):
                lines[f"rank of A_{index + 1}, M_{index + 1}"] = f"{_show(A)}, {_show(M)}"
            lines["rank of L"] = _show(self.ranks.L)
        if self.local is not None:
            local = self.local
            strength = "proven" if local.is_exact else "lower bound" if local.measured is None else "estimate"
            lines["Jacobian rank here"] = f"{local.rank} ({strength}) of {local.architecture.num_parameters} parameters"
            lines["kernel dimension"] = local.kernel_dimension
            lines["rank defect"] = f"{local.defect} against random weights"
            if local.measured is not None:
                lines["gap at that rank"] = digits.gap(local.measured.gap)
        for hypothesis in self.hypotheses:
            lines[f"{hypothesis.theorem}: {hypothesis.statement}"] = ANSWERS[hypothesis.holds]
        return lines

    def plot(self) -> Picture:
        """One layer: its place among the strata by rank; deeper networks: the singular values of every M_i and L."""
        from attngeom.drawing import draw_grid, draw_spectra

        if self.stratum is None:
            return draw_spectra("singular values", head_spectra(self.weights))
        architecture = self.weights.architecture
        (d, d_out), (a,) = architecture.widths, architecture.attention
        names = [[_stratum_name(x, y, d, d_out, a) for y in range(min(d, d_out) + 1)] for x in range(min(d, a) + 1)]
        here = (self.stratum.rank_A.value, self.stratum.rank_V.value)
        return draw_grid(f"this layer: {self.stratum.name}", names, STRATA, here, ("rank of A", "rank of V"))

    def to_json(self) -> dict[str, Any]:
        ranks = None
        if self.ranks is not None:
            ranks = {
                "A": [rank.to_json() for rank in self.ranks.A],
                "M": [rank.to_json() for rank in self.ranks.M],
                "L": self.ranks.L.to_json(),
            }
        return {
            "architecture": self.weights.architecture.to_json(),
            "exact": self.weights.domain.is_exact,
            **self.select("standing", "reason"),
            "stratum": None if self.stratum is None else self.stratum.to_json(),
            "virtual_fiber": None if self.fiber is None else self.fiber.to_json(),
            "hypotheses": [hypothesis.to_json() for hypothesis in self.hypotheses],
            "ranks": ranks,
            "local": None if self.local is None else _local_json(self.local),
            **({} if self.freedom is None else {"freedom": self.freedom.to_json()}),
        }


STRATA = {
    "zero": "#e8e8e8",
    "generic": "#eef3f8",
    "singular": "#c9d7e6",
    "generic or\nboundary": "#f3dfa8",
    "singular or\nboundary": "#93b3d2",
}
"""The colours of the strata by rank, the same in every picture."""


def _stratum_name(rank_A: int, rank_V: int, d: int, d_out: int, a: int) -> str:
    """The stratum of layers of these ranks, t ≥ 2; both names where the directions of A and V decide."""
    if rank_A == 0 or rank_V == 0:
        return "zero"
    if rank_A == rank_V == 1:
        return "generic or\nboundary" if a == 1 and d_out == 1 else "singular or\nboundary"
    return "singular" if a < d and rank_A < a else "generic"


def inspect(weights: Weights, noise: float = 0.0, seed: int = 0) -> Inspection:
    """The stratum, hypotheses and local rank of given weights; exact for rational ones.

    ``noise`` is the relative accuracy of float weights: singular values below it count as zero, and the gap is shown.

    >>> from attngeom.exact import QQ
    >>> from attngeom.network import Architecture, random_weights
    >>> inspect(random_weights(Architecture((3, 2), 2), QQ, seed=0)).stratum.name
    'generic'
    """
    if not 0 <= noise < 1:
        raise InputError(f"noise {noise} given; a relative accuracy between 0 and 1 is required")
    architecture = weights.architecture
    if not architecture.is_plain:
        return _inspect_kind(weights, noise, seed)
    has_virtual = architecture.has_virtual_weights
    scaled = in_range(weights) if has_virtual and weights.domain.rounds else weights
    stratum = None
    if has_virtual and architecture.is_cubic:
        ((A,),), ((V,),) = scaled.attention_matrices(), scaled.value_matrices()
        stratum = layer_stratum(A, V, architecture.attention[0], architecture.tokens, scaled.domain, noise)
    point = scaled if architecture.is_homogeneous else weights
    fiber = virtual_fiber(scaled, noise)
    known = "no theorem on the fiber covers this architecture" if fiber is None else fiber.words
    if stratum is not None:
        decided = stratum.name != "undecided"
    else:
        decided = fiber is not None and fiber.is_known
    return Inspection(
        standing="undecided" if not decided else "proven" if weights.domain.is_exact else "estimate",
        reason=known if stratum is None else stratum.reason,
        seed=seed,
        weights=weights,
        stratum=stratum,
        fiber=fiber,
        hypotheses=check_hypotheses(scaled, noise),
        ranks=virtual_ranks(scaled, noise) if has_virtual else None,
        local=_local_rank(point, seed) if architecture.num_parameters <= LOCAL_RANK_PARAMETERS else None,
    )


def _inspect_kind(weights: Weights, noise: float, seed: int) -> Inspection:
    """The rank, the symmetries and the hypotheses of Theorem M at weights of a kind beyond the papers."""
    if weights.architecture.num_parameters > LOCAL_RANK_PARAMETERS:
        local = None
    else:
        local = _local_rank(weights, seed)
    freedom = freedom_of(weights, local)
    return Inspection(
        standing=freedom.standing,
        reason=freedom.reason,
        seed=seed,
        weights=weights,
        stratum=None,
        fiber=None,
        hypotheses=generic_hypotheses(weights, noise),
        ranks=None,
        local=local,
        freedom=freedom,
    )


def _show(rank: Rank) -> str:
    if rank.is_exact or rank.gap is None:
        return str(rank.value)
    return f"{rank.value} (gap {digits.gap(rank.gap)}{'' if rank.is_clear else ': not clear'})"


def _local_rank(weights: Weights, seed: int) -> PointRank:
    """The rank of the parametrization here: exact where that is not too much work, else an estimate in floats."""
    try:
        return rank_at(weights, seed)
    except SizeError:
        return rank_at(weights.to(RR), seed)


def _local_json(local: PointRank) -> dict[str, Any]:
    return {
        "jacobian_rank": local.rank,
        "generic_rank": local.generic,
        "defect": local.defect,
        "kernel_dimension": local.kernel_dimension,
        "lower_bound": local.lower_bound,
        "upper_bound": local.upper_bound,
        "proven": local.is_exact,
        "prime": local.prime,
        "measured": None if local.measured is None else local.measured.to_json(),
    }


def layer_stratum(A: Array, V: Array, attention: int, tokens: int, domain: Domain, noise: float = 0.0) -> LayerStratum:
    """The stratum of φ(X) = V X Xᵀ A X for attention width a and t ≥ 2.

    Singular ⇔ rk A · rk V ≤ 1, or a < d and rk A < a. Boundary ⇔ critical ⇔ A = k qᵀ and V = h kᵀ, zero factors
    included.

    For a = d' = 1 always A = k qᵀ and V = vᵀ: the functions (k·z)(v·z)(q·x) are the quadrics that split over the reals,
    times a linear form q. Where k and v are not parallel, k, v is a chart of the split quadrics up to scale and order:
    a smooth point with two points in its fiber. Where they are, it is a boundary point of the split quadrics, and a
    singular one of the quadrics of rank ≤ 2 unless d = 2, when these are all quadrics.

    >>> from attngeom.exact import QQ
    >>> E = QQ.convert([[1, 0], [0, 0]])
    >>> layer_stratum(E, E, 2, 2, QQ).name
    'boundary'
    """
    d, d_out = A.shape[0], V.shape[0]
    rank_A, rank_V = measured_rank(A, domain, noise), measured_rank(V, domain, noise)
    is_split = tokens >= 2 and d >= 2 and d_out == attention == 1

    def found(is_singular: bool | None, is_boundary: bool | None, fiber: Fiber, reason: str) -> LayerStratum:
        distance = 0.0
        # Exact ranks tell a singular point; the singular values of its floats are rounding errors there.
        if not (domain.is_exact and is_singular):
            distance = (_split_distance if is_split else _distance)(RR.convert(A), RR.convert(V), attention)
        return LayerStratum(rank_A, rank_V, is_singular, is_boundary, fiber, distance, reason)

    if tokens < 2 or d < 2:
        return found(None, None, "unknown", "[G] Theorem 3.4 needs t ≥ 2, and d, d' ≥ 2 or d, a ≥ 2")
    if not (rank_A.is_clear and rank_V.is_clear):
        return found(None, None, "unknown", "singular values show no clear gap")
    if rank_A.value == 0 or rank_V.value == 0:
        reason = "A = 0 or V = 0: the function is zero, and its fiber is the union of {A = 0} and {V = 0}"
        return found(True, True, "zero function", reason)
    if rank_A.value == rank_V.value == 1:
        shared = measured_rank(_joined(A, V, domain), domain, noise)
        if not shared.is_clear:
            reason = "floats do not tell whether the key and the value direction agree"
            return found(None if is_split else True, None, "unknown", reason)
        if shared.value == 1 and is_split:
            reason = "A = k qᵀ and V = kᵀ: quadrics near (k·z)² have conjugate factors, which no real weights compute"
            return found(d > 2, True, "one point", reason)
        if shared.value == 1:
            reason = "A = k qᵀ and V = h kᵀ: a limit of functions in the Zariski closure that no real weights compute"
            return found(True, True, "one point", reason)
        h, always = ("", ", as always for a = 1") if is_split else ("h ", "")
        weights = f"the two weights (k qᵀ, {h}vᵀ) and (v qᵀ, {h}kᵀ) give this function{always}"
        reason = f"A = k qᵀ and V = {h}vᵀ: {weights}"
        return found(not is_split, False, "two points", reason)
    if attention < d and rank_A.value < attention:
        reason = f"rk A = {rank_A.value} < a = {attention} < d: A is a singular point of the matrices of rank at most a"
        return found(True, False, "one point", reason)
    full = "rk A is as large as a allows" if rank_A.value == min(attention, d) else "a ≥ d"
    return found(False, False, "one point", f"rk A · rk V ≥ 2 and {full}")


def _joined(A: Array, V: Array, domain: Domain) -> Array:
    """The columns of A beside the rows of V, of equal size over floats."""
    if domain.rounds:
        A, V = A / lapack.norm(A), V / lapack.norm(V)
    return np.concatenate([A, V.T], axis=1)


def _split_distance(A: Array, V: Array, _attention: int) -> float:
    """The distance of A = k qᵀ, V = vᵀ to parallel k and v, 1 for d = 2, where nothing but 0 is singular."""
    if not A.any() or not V.any():
        return 0.0
    key = lapack.svd(A)[0][:, 0]
    cosine = abs(float(V[0] @ key)) / float(np.linalg.norm(V))
    return 1.0 if len(A) == 2 else float(np.sqrt(max(1 - cosine, 0.0)))


def _distance(A: Array, V: Array, attention: int) -> float:
    """Distance from (A, V), scaled to unit norms, to {rk A ≤ 1, rk V ≤ 1} ∪ {A = 0} ∪ {V = 0} ∪ {rk A < a if a < d}.

    The scaling removes the symmetry (λA, V/λ). By Eckart–Young each distance is a norm of trailing singular values.
    """
    if not A.any() or not V.any():
        return 0.0
    left, right = (values / lapack.norm(values) for values in map(lapack.svdvals, (A, V)))
    distance = min(1.0, float(np.hypot(np.linalg.norm(left[1:]), np.linalg.norm(right[1:]))))
    return min(distance, float(left[attention - 1])) if attention < A.shape[0] else distance
