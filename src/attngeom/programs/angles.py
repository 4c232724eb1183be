"""Angles of rotary embeddings in classes of commensurable frequencies: one point of the circle for each class.

The e^{iθ} of angles that are independent over Q are algebraically independent (Lindemann and Weierstrass), and within a
class all are powers of one.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from fractions import Fraction
from itertools import permutations
from typing import Any

import numpy as np

from attngeom.errors import InputError
from attngeom.limits.rounding import ANGLES_DENOMINATOR, ANGLES_DIGITS, ANGLES_RATIO, ANGLES_TURN
from attngeom.programs.program import Node


def find_classes(angles: Sequence[float]) -> tuple[list[int], list[int], list[float]]:
    """The classes of commensurable angles: for each angle its class and multiple, for each class its unit.

    Angles whose ratio is a small fraction, up to the digits of float32, are multiples of one unit; units of different
    classes are taken to be independent over Q, as those of the ideal table are. InputError for fractions of π.

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
    bases, numbers = [unit / parts for unit, parts in units], [place for place, _ in classes]
    while pair := _related(bases):
        kept, lost, ratio = pair
        factors = {kept: ratio.denominator, lost: ratio.numerator}
        multiples = [n * factors.get(number, 1) for number, n in zip(numbers, multiples)]
        bases[kept] /= ratio.denominator
        del bases[lost]
        numbers = [(kept if number == lost else number) for number in numbers]
        numbers = [number - (number > lost) for number in numbers]
    for unit in bases:
        if _is_root_of_unity(unit):
            raise InputError(f"the angle {unit:.9g} given, a fraction of pi with an algebraic cosine; give others")
    return numbers, multiples, bases


def _related(bases: list[float]) -> tuple[int, int, Fraction] | None:
    """Two classes of which the second one has a small fraction of the first one's unit, and that."""
    for kept, lost in permutations(range(len(bases)), 2):
        ratio = _small_fraction(bases[lost] / bases[kept]) if abs(bases[lost]) <= abs(bases[kept]) else Fraction(0)
        if ratio:
            return kept, lost, ratio
    return None


def share_classes(nodes: Iterable[Node]) -> list[Node]:
    """The same nodes, circle points with one table of units: a class is one angle wherever it stands."""
    nodes = list(nodes)
    tables = [node for node in nodes if node.operation == "circle"]
    if len({node.data["angles"] for node in tables}) < 2:
        return nodes
    angles = [x["angles"][c] * m for x in (node.data for node in tables) for c, m in zip(x["classes"], x["multiples"])]
    classes, multiples, units = find_classes(angles)
    start = 0
    for place, node in enumerate(nodes):
        if node.operation == "circle":
            own = slice(start, start := start + node.size)
            data = {"classes": tuple(classes[own]), "multiples": tuple(multiples[own]), "angles": tuple(units)}
            nodes[place] = Node(node.operation, node.inputs, node.shape, {"part": node.data["part"], **data})
    return nodes


def _is_root_of_unity(angle: float) -> bool:
    """Whether it is π by a fraction of small numbers, or a turn over a small number or a power of two, in float32."""
    part, turns = abs(angle / math.pi), round(abs(2 * math.pi / angle))
    is_usual = 0 < turns <= ANGLES_TURN and (turns <= ANGLES_RATIO or turns & (turns - 1) == 0)
    near = [2 / turns] if is_usual else []
    near.append(float(Fraction(part).limit_denominator(ANGLES_DENOMINATOR)))
    return any(abs(x / part - 1) < ANGLES_DIGITS for x in near)


def _small_fraction(x: float) -> Fraction:
    """The fraction with a denominator up to 10,000 that x is in the digits of float32, or 0."""
    candidate = Fraction(x).limit_denominator(ANGLES_RATIO)
    for bound in (ANGLES_RATIO, 10**4):
        candidate = Fraction(x).limit_denominator(bound)
        smooth = candidate.denominator <= ANGLES_RATIO or _is_power_of_ten(candidate)
        if candidate and smooth and abs(float(candidate) / x - 1) < ANGLES_DIGITS:
            return candidate
    return Fraction(0)


def _is_power_of_ten(x: Fraction) -> bool:
    n = x.denominator
    while n % 10 == 0:
        n //= 10
    return n <= ANGLES_RATIO
