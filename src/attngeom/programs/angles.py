"""Angles of rotary embeddings in classes of commensurable frequencies: one point of the circle for each class.

The e^{iθ} of angles that are independent over Q are algebraically independent (Lindemann and Weierstrass), and within a
class all are powers of one.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from attngeom.limits.rounding import ANGLES_RATIO


def find_classes(angles: Sequence[float]) -> tuple[list[int], list[int], list[float]]:
    """The classes of commensurable angles: for each angle its class and multiple, for each class its unit.

    Angles whose ratio is a small fraction, up to the digits of float32, are multiples of one unit; units of different
    classes are taken to be independent over Q, as those of the ideal table are.

    >>> find_classes([1.0, 2.0, 0.5, 0.1, 0.0])
    ([0, 0, 0, 0, 0], [10, 20, 5, 1, 0], [0.1])
    """
    units: list[list[Any]] = []
    classes: list[tuple[int, Fraction]] = []
    for angle in angles:
        place, ratio = 0, Fraction(0)
        if angle:
            ratios = [_small_fraction(angle / unit) for unit, _ in units]
            place = next((k for k, known in enumerate(ratios) if known), len(units))
            if place == len(units):
                units.append([angle, 1])
                ratios.append(Fraction(1))
            ratio = ratios[place]
            units[place][1] = int(np.lcm(units[place][1], ratio.denominator))
        classes.append((place, ratio))
    if not units:
        units.append([1.0, 1])
    multiples = [int(ratio * units[place][1]) for place, ratio in classes]
    return [place for place, _ in classes], multiples, [unit / parts for unit, parts in units]


def _small_fraction(x: float) -> Fraction:
    """The fraction with a denominator up to 10,000 that x is in the digits of float32, or 0."""
    candidate = Fraction(x).limit_denominator(ANGLES_RATIO)
    for bound in (ANGLES_RATIO, 10**4):
        candidate = Fraction(x).limit_denominator(bound)
        smooth = candidate.denominator <= ANGLES_RATIO or _is_power_of_ten(candidate)
        if candidate and smooth and abs(float(candidate) / x - 1) < 3e-7:
            return candidate
    return Fraction(0)


def _is_power_of_ten(x: Fraction) -> bool:
    n = x.denominator
    while n % 10 == 0:
        n //= 10
    return n <= ANGLES_RATIO
