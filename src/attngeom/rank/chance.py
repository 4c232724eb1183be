"""How likely it is that ranks at random points mod p are too small (Schwartz and Zippel), for rational programs.

A minor of the Jacobian is a fraction of polynomials in weights, inputs and forms on the outputs. If it is not zero mod
p, it vanishes at a random point of GF(p) with probability at most its degree over p; points at which a denominator
vanishes are drawn again. The bound is over the points, for a prime at which the generic rank is that over Q (all but
finitely many).
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from attngeom.limits.rounding import ERROR_PROBABILITY
from attngeom.limits.trials import ERROR_TRIALS
from attngeom.programs.points import Progress
from attngeom.programs.program import Node, Program
from attngeom.rank.lower import RankBound, bound_rank

RATIONAL = frozenset({"parameter", "input", "constant", "gather", "contract", "add", "inverse"})
"""Operations of rational functions."""


@dataclass(frozen=True)
class _Fraction:
    """All entries of a node over one denominator: the degree of the numerators, and its factors with multiplicities.

    A factor is the product of all entries that one node inverts.
    """

    numerator: int
    factors: Counter[int]

    def denominator(self, degrees: dict[int, int]) -> int:
        return sum(count * degrees[factor] for factor, count in self.factors.items())


def jacobian_degrees(program: Program) -> tuple[int, int] | None:
    """The degrees of numerators and of their common denominator in a row of the Jacobian; None if it is not rational.

    >>> from attngeom.programs import trace
    >>> jacobian_degrees(trace(lambda w, x: w["B"] @ (w["A"] @ x) ** 2, 3, weights={"A": (2, 3), "B": (3, 2)}))
    (6, 0)
    """
    if not {node.operation for node in program.nodes} <= RATIONAL:
        return None
    known: list[_Fraction] = []
    degrees: dict[int, int] = {}
    for place, node in enumerate(program.nodes):
        known.append(_fraction(place, node, [known[k] for k in node.inputs], degrees))
    last = known[program.output]
    below = last.denominator(degrees)
    # (N/D)' = (N'D − ND')/D², and a random form on the outputs.
    return last.numerator + below + 1, 2 * below


def _fraction(place: int, node: Node, inputs: list[_Fraction], degrees: dict[int, int]) -> _Fraction:
    if node.operation in ("parameter", "input"):
        return _Fraction(1, Counter())
    if node.operation == "constant":
        return _Fraction(0, Counter())
    if node.operation == "inverse":
        (inner,) = inputs
        degrees[place] = node.size * inner.numerator
        return _Fraction(inner.denominator(degrees) + (node.size - 1) * inner.numerator, Counter({place: 1}))
    if node.operation == "contract":
        factors = sum((x.factors for x in inputs), Counter[int]())
        return _Fraction(sum(x.numerator for x in inputs), factors)
    union: Counter[int] = Counter()
    for each in inputs:
        union |= each.factors
    common = _Fraction(0, union).denominator(degrees)
    return _Fraction(max(x.numerator + common - x.denominator(degrees) for x in inputs), union)


def error_of_one_point(program: Program, rank: int, prime: int) -> float | None:
    """A bound for the probability that a minor of this size vanishes at a random point mod p, though not everywhere.

    >>> from attngeom.programs import trace
    >>> error_of_one_point(trace(lambda w, x: w["A"] @ x, 3, weights={"A": (2, 3)}), 6, 101)
    0.1782178217821782
    """
    degrees = jacobian_degrees(program)
    if degrees is None:
        return None
    vanishes, exists = rank * degrees[0] / prime, 1 - rank * degrees[1] / prime
    return min(1.0, vanishes / exists) if exists > 0 else 1.0


@dataclass(frozen=True)
class LikelyRank:
    """The largest rank at independent random points, and a bound for the probability that the generic one is larger."""

    bound: RankBound
    points: int
    error: float


def estimate_rank(lower: RankBound, upper: int, seed: int = 0, progress: Progress | None = None) -> LikelyRank | None:
    """The largest rank at so many points that the error is small; None where no error can be stated, or not small.

    ``lower`` is the rank at the first of them. All minors of sizes up to ``upper`` count.
    """
    program = lower.point.program
    single = error_of_one_point(program, upper, lower.prime) if program.inputs else None
    if single is None:
        return None
    points = next((k for k in range(2, ERROR_TRIALS + 1) if single**k <= ERROR_PROBABILITY), None)
    if points is None:
        return None
    best = lower
    for number in range(1, points):
        bound = bound_rank(program, seed + 1000 * number, progress)
        best = bound if bound.value > best.value else best
    return LikelyRank(best, points, single**points)
