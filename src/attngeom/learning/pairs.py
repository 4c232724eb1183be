"""Pairs (λ, m): the volume of {K ≤ ε} near a point is of order ε^λ (log 1/ε)^(m−1); sums and products of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

HALF = Fraction(1, 2)


@dataclass(frozen=True)
class Pair:
    """A learning coefficient λ with its multiplicity m, of a function K = Σ f_i² near a zero.

    >>> Pair(HALF) + Pair(HALF), Pair(HALF) * Pair(HALF)
    (Pair(value=Fraction(1, 1), multiplicity=1), Pair(value=Fraction(1, 2), multiplicity=2))
    """

    value: Fraction
    multiplicity: int = 1

    @classmethod
    def coordinates(cls, number: int) -> Pair:
        """K = x_1² + … + x_n²: (n/2, 1)."""
        return cls(HALF * number)

    def __add__(self, other: Pair) -> Pair:
        """K + K' in disjoint variables: (λ + λ', m + m' − 1)."""
        return Pair(self.value + other.value, self.multiplicity + other.multiplicity - 1)

    def __mul__(self, other: Pair) -> Pair:
        """K · K' in disjoint variables: the smaller λ, and for equal ones (λ, m + m')."""
        if self.value == other.value:
            return Pair(self.value, self.multiplicity + other.multiplicity)
        return min(self, other, key=lambda pair: pair.value)

    def less(self, number: int) -> Pair:
        """Without ``number`` coordinates that K depends on by a sum of their squares."""
        return Pair(self.value - HALF * number, self.multiplicity)

    @property
    def rank(self) -> tuple[Fraction, int]:
        """The order of volumes: a pair with smaller rank stands for a larger volume."""
        return self.value, -self.multiplicity

    def __str__(self) -> str:
        return f"({self.value}, {self.multiplicity})"


@dataclass(frozen=True)
class PairFinding:
    """The pair (λ, m) with the theorem that gives it; or no pair, the reason and proven bounds for λ.

    ``witness`` is what a recheck needs beside the weights: the prime and point of ranks mod p, or nothing.
    """

    theorem: str
    reason: str
    pair: Pair | None = None
    lower: Fraction | None = None
    upper: Fraction | None = None
    is_clear: bool = True
    witness: dict[str, Any] = field(default_factory=dict)
