"""Family 6, attention rank: the flattening of the cross-column coefficients has rank at most a."""

from __future__ import annotations

from attngeom.equations.minors import CoordinateMatrix, MinorFamily
from attngeom.exact.multisets import pairs


class AttentionRank(MinorFamily):
    """Fl = (y_{S,m}), D×m, equals Φ(v) A, so rank Fl ≤ rank A ≤ a: its minors of size a+1 vanish.

    Members are (S, L): a+1 pairs of context rows and a+1 targets; C(D, a+1) C(m, a+1) of degree a+1. Minors of a
    generic matrix are linearly independent, so the count is the dimension of the span.

    >>> from attngeom.equations.variety import Variety
    >>> AttentionRank(Variety(3, 2)).count
    20
    """

    number = 6
    title = "attention-rank"
    source = "minors of the flattening, [I] Theorem 25"

    @property
    def size(self) -> int:
        return self.variety.a + 1

    @property
    def matrix(self) -> CoordinateMatrix:
        def name(s: int) -> str:
            return str(pairs(self.variety.d)[s])

        shape = (self.variety.num_pairs, self.variety.num_targets)
        return CoordinateMatrix(shape, words=("S", "L"), names=(name, None))
