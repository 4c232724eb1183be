"""Family 9, Sylvester resultants: the slice quadrics restricted to a line have a common root."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from attngeom.equations.family import TableFamily
from attngeom.equations.lines import format_line, restrict, separating_line
from attngeom.equations.minor_tables import pair_table, points_first, points_last
from attngeom.equations.target_squares import count_target_squares, format_square, on_target_squares, target_squares
from attngeom.exact.domains import Array, Domain
from attngeom.exact.partitions import schur_dimension
from attngeom.exact.tableaux import two_row_tableau


@dataclass(frozen=True)
class SylvesterResultants(TableFamily):
    """On a line z = s p + u r the quadrics q_m = v(z) a_m(z) share a root: Res(Σ λ_m q_m, Σ μ_m q_m) = 0.

    With P, 2B, R the coefficients of q_m on the line, Res = [PR]² − 4 [PB][BR] in 2×2 minors of the two forms, so its
    coefficients in (λ, μ) are indexed by a basis of S_22 U. There is one line for each semistandard tableau of shape
    (4, 4), see :func:`separating_line`; together the quartics are a basis of S_44 V ⊗ S_22 U, what all lines span.

    >>> from attngeom.equations.variety import Variety
    >>> SylvesterResultants(Variety(3, 3)).count
    90
    """

    number: ClassVar[int] = 9
    title: ClassVar[str] = "sylvester-resultant"
    source: ClassVar[str] = "resultants on lines, [I] Theorem 40"
    degree: ClassVar[int] = 4

    @property
    def row_sizes(self) -> tuple[int, ...]:
        return schur_dimension((4, 4), self.variety.d), count_target_squares(self.variety.num_targets)

    def line(self, number: int) -> Array:
        """Line number ``number`` of the dim S_44(C^d) lines, as the 2×d matrix with rows p and r."""
        return separating_line(two_row_tableau(self.variety.d, 4, number), self.variety.d)

    def row_label(self, *index: int) -> str:
        number, square = index
        targets = format_square(target_squares(self.variety.num_targets)[square])
        return f"{format_line(self.line(number))} targets={targets}"

    def table(self, y: Array, domain: Domain, rows: Array, columns: Array) -> Array:
        binary = restrict(y, np.stack([self.line(int(k)) for k in rows]), domain)
        return resultant_values(binary, domain, columns)


def resultant_values(b: Array, domain: Domain, squares: Array | None = None) -> Array:
    """The quartics of S_22 U for binary quadrics (…, 3, m): all m²(m²−1)/12 of the basis, or those chosen.

    For two 2-subsets of targets: [PR]_u [PR]_w − 2 [PB]_u [BR]_w − 2 [PB]_w [BR]_u, the resultant itself if u = w.
    """
    batch, m = b.shape[:-2], b.shape[-1]
    # Rows of the table: (P, B), (P, R), (B, R).
    left, outer, right = pair_table(points_last(b), domain)

    def product(u: Array, w: Array) -> Array:
        mixed = domain.times(left[u], right[w]) + domain.times(left[w], right[u])
        return domain.reduce(domain.times(outer[u], outer[w]) - 2 * domain.reduce(mixed))

    return points_first(on_target_squares(product, m, domain, squares), batch)
