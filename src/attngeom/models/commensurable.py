"""Classes of commensurable rotary frequencies: their turns by all distances are dense in a torus, one circle each.

Algebraic frequencies that are linearly independent over Q are so together with π, so that by Kronecker the turns by
m = 1, 2, … are dense in the torus of their classes; the other angles of a class are multiples of one angle. Base 10,000
with 64 pairs has 16 classes. Frequencies are floats: a quotient that is a simple fraction up to rounding is taken to be
one.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction

from attngeom.errors import InputError
from attngeom.limits.rounding import FREQUENCY_ROUNDING
from attngeom.limits.sizes import FREQUENCY_RATIO, ROTATION_ORDER


def simple_quotient(one: float, other: float) -> Fraction | None:
    """one/other as a fraction of small denominator, if it is one up to rounding.

    >>> simple_quotient(0.1, 0.0001), simple_quotient(1.0, 0.7071067811865476)
    (Fraction(1000, 1), None)
    """
    quotient = max(one, other) / min(one, other)
    fraction = Fraction(quotient).limit_denominator(FREQUENCY_RATIO)
    if abs(quotient - fraction) > FREQUENCY_ROUNDING * quotient:
        return None
    return fraction if one >= other else 1 / fraction


def classes(frequencies: Iterable[float]) -> list[dict[float, int]]:
    """The frequencies that are not 0 as integer multiples of one angle for each class.

    >>> classes([1.0, 0.7071067811865476, 0.5, 0.75, 0.0])
    [{1.0: 4, 0.75: 3, 0.5: 2}, {0.7071067811865476: 1}]
    """
    groups: list[dict[float, Fraction]] = []
    for frequency in sorted({f for f in frequencies if f}, reverse=True):
        for members in groups:
            quotient = simple_quotient(frequency, next(iter(members)))
            if quotient is not None:
                members[frequency] = quotient
                break
        else:
            groups.append({frequency: Fraction(1)})
    multiples = []
    for members in groups:
        common = math.lcm(*(quotient.denominator for quotient in members.values()))
        whole = {frequency: int(quotient * common) for frequency, quotient in members.items()}
        share = math.gcd(*whole.values())
        multiples.append({frequency: number // share for frequency, number in whole.items()})
    return multiples


def check_frequencies(frequencies: Iterable[float]) -> None:
    """Refuse angles that are no free points: from π on, and rational multiples of π."""
    for frequency in frequencies:
        if frequency >= math.pi or (frequency and simple_root(frequency)):
            raise InputError(f"a rotary frequency of {frequency:.6g} given; proofs by rank need simple ones below pi")


def simple_root(frequency: float) -> bool:
    """Whether the angle is a multiple of π by a fraction of small denominator, so that its point is a root of unity."""
    turn = Fraction(frequency / math.pi).limit_denominator(ROTATION_ORDER)
    return abs(frequency / math.pi - turn) <= FREQUENCY_ROUNDING
