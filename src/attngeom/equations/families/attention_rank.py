"""Family 6, attention rank: the flattening of the cross-column coefficients has rank at most a."""

from __future__ import annotations

from dataclasses import dataclass
from math import comb
from typing import ClassVar

from attngeom.equations.family import RowFamily, combination_array, index_digits, mixed_radix
from attngeom.equations.minor_tables import submatrix_minors
from attngeom.equations.terms import Terms, expand_determinant, linear, variable_determinant
from attngeom.exact.combinations import combination_at
from attngeom.exact.domains import Array, Domain
from attngeom.exact.multisets import pairs

MAX_PERMUTED = 5


@dataclass(frozen=True)
class AttentionRank(RowFamily):
    """Fl = (y_{S,m}), D×m, equals Φ(v) A, so rank Fl ≤ rank A ≤ a: its minors of size a+1 vanish.

    Members are (S, L): a+1 pairs of context rows and a+1 targets; C(D, a+1) C(m, a+1) of degree a+1. Minors of a
    generic matrix are linearly independent, so the count is the dimension of the span.

    >>> from attngeom.equations.variety import Variety
    >>> AttentionRank(Variety(3, 2)).count
    20
    """

    number: ClassVar[int] = 6
    source: ClassVar[str] = "minors of the flattening, [I] Theorem 25"

    @property
    def name(self) -> str:
        return "attention-rank"

    @property
    def degree(self) -> int:
        return self.variety.a + 1

    @property
    def row_count(self) -> int:
        return comb(self.variety.num_pairs, self.degree) * comb(self.variety.num_targets, self.degree)

    @property
    def dimension(self) -> int:
        return self.count

    def _place(self, index: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
        D, m, r = self.variety.num_pairs, self.variety.num_targets, self.degree
        s, l = mixed_radix(index, comb(D, r), comb(m, r))
        return combination_at(D, r, s), combination_at(m, r, l)

    def row_label(self, index: int) -> str:
        S, L = self._place(index)
        return f"S=({', '.join(str(pairs(self.variety.d)[s]) for s in S)}) L={L}"

    def row_terms(self, index: int, row: int) -> Terms:
        S, L = self._place(index)
        return flattening_minor(self.variety.d, S, L, row)

    def row_evaluate(self, y: Array, domain: Domain, start: int, stop: int) -> Array:
        D, m, r = self.variety.num_pairs, self.variety.num_targets, self.degree
        s, l = index_digits(start, stop, comb(D, r), comb(m, r))
        return submatrix_minors(y, combination_array(D, r, s), combination_array(m, r, l), domain)


def flattening_minor(d: int, S: tuple[int, ...], L: tuple[int, ...], row: int) -> Terms:
    """The minor of the flattening with rows S (places of pairs) and target columns L."""
    chosen = [pairs(d)[s] for s in S]
    if len(S) > MAX_PERMUTED:
        return expand_determinant([[linear([(("y", row, k, l, m), 1)]) for m in L] for k, l in chosen])
    return variable_determinant([[("y", row, k, l, m) for m in L] for k, l in chosen])
