"""cos mθ and sin mθ as residues: one random point of the circle for every class of commensurable frequencies.

exp(iθ) of algebraic θ that are linearly independent over Q are algebraically independent (Lindemann–Weierstrass), so a
free point may stand for each class; the other angles of a class are multiples of one angle. Base 10,000 with 64 pairs
has 16 classes. Frequencies are floats: a quotient that is a simple fraction up to rounding is taken to be one.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from attngeom.exact.arrays import Array
from attngeom.models.commensurable import check_frequencies, classes
from attngeom.models.proofs.formal import PRIME
from attngeom.models.specification import Rotary

MAX_DISTANCE = 64


class Turns:
    """Tables of the rotations of a block or a model."""

    def __init__(self, rng: np.random.Generator, rotaries: Iterable[Rotary]) -> None:
        frequencies = {frequency for rotary in rotaries for frequency in rotary.frequencies}
        check_frequencies(frequencies)
        self.powers = {0.0: np.tile(np.array([1, 0], np.int64), (MAX_DISTANCE, 1))}
        for members in classes(frequencies):
            u = int(rng.integers(2, PRIME))
            scale = pow(1 + u * u, -1, PRIME)
            point = ((1 - u * u) * scale % PRIME, 2 * u * scale % PRIME)
            for frequency, multiple in members.items():
                step, row, rows = _power(point, multiple), (1, 0), []
                for _ in range(MAX_DISTANCE):
                    rows.append(row)
                    row = _product(row, step)
                self.powers[frequency] = np.array(rows, np.int64)

    def table(self, rotary: Rotary) -> Array:
        """Shape (64, 2, pairs): cosine and sine for every distance."""
        return np.stack([self.powers[frequency] for frequency in rotary.frequencies], axis=-1)


def _product(one: tuple[int, int], other: tuple[int, int]) -> tuple[int, int]:
    (a, b), (c, d) = one, other
    return (a * c - b * d) % PRIME, (a * d + b * c) % PRIME


def _power(point: tuple[int, int], exponent: int) -> tuple[int, int]:
    result = (1, 0)
    for bit in f"{exponent:b}":
        result = _product(result, result)
        if bit == "1":
            result = _product(result, point)
    return result
