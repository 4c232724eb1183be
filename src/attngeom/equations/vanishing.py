"""Whether a family vanishes on its variety: on generic weights, which is a proof, or at random ones mod p."""

from __future__ import annotations

import numpy as np

from attngeom.equations.family import Family
from attngeom.equations.points import generic_point, random_points
from attngeom.exact.domains import GF
from attngeom.exact.primes import BIG_PRIME


def vanishes_identically(family: Family, start: int = 0, stop: int | None = None) -> bool:
    """Whether members start … stop−1 vanish on generic weights, as polynomials over Q: a proof for this size.

    >>> from attngeom.equations import Variety, family
    >>> vanishes_identically(family(Variety(2, 1), "sylvester-resultant"))
    True
    """
    point, ring = generic_point(family.variety)
    return ring.is_zero(family.evaluate(point, start, stop))


def vanishes_at_random(family: Family, seed: int, most: int = 2000) -> tuple[bool, float]:
    """Whether the first members vanish at random weights mod 2⁶¹ − 1, and a bound for the error of a yes for each.

    A member of degree n has at most degree 3n in the weights; if it is not zero on the variety it vanishes there with
    probability at most 3n/p (Schwartz and Zippel).

    >>> from attngeom.equations import Variety, family
    >>> vanishes_at_random(family(Variety(4, 4), "pluecker-quartic"), seed=0, most=10)[0]
    True
    """
    field = GF(BIG_PRIME)
    count = min(family.count, most)
    values = family.evaluate(random_points(family.variety, 1, field, np.random.default_rng(seed)), 0, count)
    return field.is_zero(values), 3 * family.degree / BIG_PRIME
