"""The learning coefficient of kinds of attention beyond the papers: Theorem R, and two bounds."""

from __future__ import annotations

from fractions import Fraction

from attngeom.dimensions.point import rank_at
from attngeom.dimensions.program_point import orbit_rank_at
from attngeom.errors import SizeError
from attngeom.exact.domains import QQ
from attngeom.learning.pairs import HALF, Pair, PairFinding
from attngeom.limits.work import LOCAL_RANK_PARAMETERS
from attngeom.network.architecture import Architecture
from attngeom.network.weights import Weights

POLES = "; inputs have compact support where no denominator vanishes"


def of_kind(weights: Weights, seed: int) -> PairFinding:
    """½ rank dφ ≤ λ ≤ ½ (weights − dimension of the orbit); and λ = ½ rank dφ where that rank is the largest.

    Both bounds hold for every analytic family (docs/theorems/learning.md): K vanishes on the orbit, and is at least a
    multiple of a sum of rank dφ squares of coordinates.

    >>> from attngeom.network import Architecture, random_weights
    >>> finding = of_kind(random_weights(Architecture((3, 2), 2, kind="gla"), QQ, seed=0), 0)
    >>> finding.theorem, str(finding.pair)
    ('R', '(21/2, 1)')
    """
    architecture, count = weights.architecture, weights.architecture.num_parameters
    upper = HALF * (count - orbit_rank_at(weights.to(QQ)))
    if count > LOCAL_RANK_PARAMETERS:
        reason = f"not proven: {count:,} weights given; ranks at a point are computed up to {LOCAL_RANK_PARAMETERS:,}"
        return PairFinding("none", reason, lower=Fraction(0), upper=upper)
    try:
        point = rank_at(weights, seed)
    except SizeError as error:
        return PairFinding("none", f"not proven: {error}", lower=Fraction(0), upper=upper)
    poles = POLES if _has_poles(architecture) else ""
    clear = point.standing in ("proven", "estimate")
    witness = {"prime": point.prime}
    lower = HALF * point.rank
    if point.defect == 0 and clear:
        reason = f"the rank of the differential is {point.rank}, the largest that this architecture has{poles}"
        return PairFinding("R", reason, Pair.coordinates(point.rank), is_clear=clear, witness=witness)
    if lower == upper and clear:
        reason = f"the bounds ½ rank dφ and ½ (weights − dimension of the orbit) are both {lower}{poles}"
        return PairFinding("bounds", reason, Pair(lower), is_clear=clear, witness=witness)
    largest = "" if point.generic is None else f" of at most {point.generic}"
    reason = f"not proven: the differential has rank {point.rank}{largest}, and symmetries leave {2 * upper}{poles}"
    return PairFinding("none", reason, lower=lower, upper=upper, is_clear=clear, witness=witness)


def _has_poles(architecture: Architecture) -> bool:
    """Whether a denominator or a norm may vanish, as sums of exponentials do not."""
    divides = architecture.kind == "linear" and not architecture.options.get("unnormalised")
    return divides or bool(architecture.options.get("normalised_keys"))
