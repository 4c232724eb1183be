"""Do two points of weight space give the same function? With the group element, or an input that separates them."""

from __future__ import annotations

import numpy as np

from attngeom.comparison.exact_decision import compare_exact
from attngeom.comparison.float_decision import compare_floats
from attngeom.comparison.kinds import compare_kinds
from attngeom.comparison.results import Comparison, Report, ignore
from attngeom.errors import DomainError, InputError, SizeError
from attngeom.exact.domains import QQ, RR
from attngeom.limits.memory import INPUT_ENTRIES
from attngeom.network import Weights


def compare(
    first: Weights, second: Weights, tolerance: float = 1e-9, seed: int = 0, report: Report = ignore
) -> Comparison:
    """Whether two weights of one architecture compute the same function, with a witness.

    Rational weights: a separating input is a proof, and so is a symmetry; see :class:`Comparison` for the rest. Floats:
    True if the difference is no larger than weights known to relative accuracy ``tolerance`` explain, False if it is
    30 times larger, else None. Weights over different domains are compared as floats. ``report`` is told of the work.

    >>> from attngeom.exact import QQ
    >>> from attngeom.network import Architecture, random_symmetry, random_weights
    >>> w = random_weights(Architecture((3, 2, 3), 2), QQ, seed=0)
    >>> found = compare(w, random_symmetry(w.architecture, QQ, seed=1).apply(w))
    >>> found.same_function, found.standing
    (True, 'proven')
    """
    if first.architecture != second.architecture:
        raise InputError("weights of different architectures given; only weights of one architecture can be aligned")
    if max(first.architecture.widths) * first.architecture.tokens > INPUT_ENTRIES:
        raise SizeError(
            f"{first.architecture.tokens:,} tokens given; inputs of at most {INPUT_ENTRIES:,} entries are compared"
        )
    if not 0 < tolerance < 1:
        raise InputError(f"tolerance {tolerance} given; a relative accuracy between 0 and 1 is required")
    if first.domain != second.domain:
        first, second = first.to(RR), second.to(RR)
    if first.domain.rounds:
        if not np.all(np.isfinite(first.vector())) or not np.all(np.isfinite(second.vector())):
            raise InputError("weights with NaN or infinite entries given; finite numbers are required")
        if not first.architecture.is_plain:
            return compare_kinds(first, second, tolerance, seed, report)
        return compare_floats(first, second, tolerance, seed, report)
    if first.domain != QQ:
        raise DomainError(f"weights over {first.domain.name} given; rational or float weights are required")
    if not first.architecture.is_plain:
        return compare_kinds(first, second, tolerance, seed, report)
    return compare_exact(first, second, seed, report)
