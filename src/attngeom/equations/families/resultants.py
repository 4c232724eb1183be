"""Family 9, Sylvester resultants: the slice quadrics restricted to a line have a common root."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from typing import ClassVar

import numpy as np

from attngeom.equations.family import RowFamily
from attngeom.equations.lines import decode, form_minor, restrict, restricted_forms, separating_line
from attngeom.equations.minor_tables import pair_table, points_first, points_last
from attngeom.equations.target_squares import (
    Pair,
    count_target_squares,
    format_square,
    on_target_squares,
    target_squares,
)
from attngeom.equations.terms import Terms, add, multiply
from attngeom.exact.domains import Array, Domain
from attngeom.exact.partitions import schur_dimension
from attngeom.exact.tableaux import two_row_tableau


@dataclass(frozen=True)
class SylvesterResultants(RowFamily):
    """On a line z = s p + u r the quadrics q_m = v(z) a_m(z) share a root: Res(Σ λ_m q_m, Σ μ_m q_m) = 0.

    With P, 2B, R the coefficients of q_m on the line, Res = [PR]² − 4 [PB][BR] in 2×2 minors of the two forms, so its
    coefficients in (λ, μ) are indexed by a basis of S_22 U. There is one line for each semistandard tableau of shape
    (4, 4), see :func:`separating_line`; together the quartics are a basis of S_44 V ⊗ S_22 U, what all lines span.

    >>> from attngeom.equations.variety import Variety
    >>> SylvesterResultants(Variety(3, 3)).count
    90
    """

    number: ClassVar[int] = 9
    source: ClassVar[str] = "resultants on lines, [I] Theorem 40"

    @property
    def name(self) -> str:
        return "sylvester-resultant"

    @property
    def degree(self) -> int:
        return 4

    @property
    def row_count(self) -> int:
        return schur_dimension((4, 4), self.variety.d) * count_target_squares(self.variety.num_targets)

    @property
    def dimension(self) -> int:
        return self.count

    def line(self, number: int) -> Array:
        """Line number ``number`` of the dim S_44(C^d) lines, as the 2×d matrix with rows p and r."""
        return separating_line(two_row_tableau(self.variety.d, 4, number), self.variety.d)

    def _place(self, index: int) -> tuple[Array, tuple[tuple[tuple[int, int], tuple[int, int]], ...]]:
        m = self.variety.num_targets
        line, square = divmod(index, count_target_squares(m))
        return self.line(line), target_squares(m)[square]

    def row_label(self, index: int) -> str:
        line, square = self._place(index)
        return f"p={tuple(line[0].tolist())} r={tuple(line[1].tolist())} targets={format_square(square)}"

    def row_terms(self, index: int, row: int) -> Terms:
        line, square = self._place(index)
        minors = line_minors(tuple(map(tuple, line.tolist())), self.variety.num_targets)
        total = add(*[(1, resultant_terms(minors, b, c)) for b, c in square])
        return decode(total, self.variety.d, self.variety.num_targets, row)

    def row_evaluate(self, y: Array, domain: Domain, start: int, stop: int) -> Array:
        m = self.variety.num_targets
        size = count_target_squares(m)
        first, last = start // size, -(-stop // size)
        if first >= last:
            return domain.zeros((*y.shape[:-2], 0))
        lines = np.stack([self.line(k) for k in range(first, last)])
        binary = restrict(y, lines, domain)
        values = [resultant_values(binary[..., k, :, :], domain) for k in range(last - first)]
        return np.concatenate(values, axis=-1)[..., start - first * size : stop - first * size]


@lru_cache(maxsize=4)
def line_minors(line: tuple[tuple[int, ...], ...], targets: int) -> dict[Pair, tuple[Terms, Terms, Terms]]:
    """[PB], [PR] and [BR] on one line for every 2-subset of targets, in coded variables."""
    forms = restricted_forms(np.array(line), targets)
    return {
        pair: (form_minor(forms, 0, 1, pair), form_minor(forms, 0, 2, pair), form_minor(forms, 1, 2, pair))
        for pair in combinations(range(targets), 2)
    }


def resultant_terms(minors: dict[Pair, tuple[Terms, Terms, Terms]], b: Pair, c: Pair) -> Terms:
    """[PR]_b [PR]_c − 2 [PB]_b [BR]_c − 2 [PB]_c [BR]_b: the resultant itself if b = c, its polarization otherwise."""
    (PB, PR, BR), (other_PB, other_PR, other_BR) = minors[b], minors[c]
    if b == c:
        return add((1, multiply(PR, PR)), (-4, multiply(PB, BR)))
    return add((1, multiply(PR, other_PR)), (-2, multiply(PB, other_BR)), (-2, multiply(other_PB, BR)))


def resultant_values(b: Array, domain: Domain) -> Array:
    """The quartics of S_22 U for binary quadrics (…, 3, m): shape (…, m²(m²−1)/12)."""
    batch, m = b.shape[:-2], b.shape[-1]
    # Rows of the table: (P, B), (P, R), (B, R).
    left, outer, right = pair_table(points_last(b), domain)
    number = len(outer)
    # [PR]_u [PR]_w − 2 [PB]_u [BR]_w − 2 [PB]_w [BR]_u for all pairs, symmetric in u and w.
    table = np.empty((number, number, outer.shape[-1]), dtype=outer.dtype)
    for u in range(number):
        mixed = domain.reduce(left[u] * right[u:]) + domain.reduce(left[u:] * right[u])
        table[u, u:] = domain.reduce(domain.reduce(outer[u] * outer[u:]) - 2 * domain.reduce(mixed))
    # Products of 2-subsets are listed in increasing order, so the upper half of the table is enough.
    return points_first(on_target_squares(lambda u, w: table[u, w], m, domain), batch)
