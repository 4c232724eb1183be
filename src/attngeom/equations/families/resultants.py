"""Family 9, Sylvester resultants: the slice quadrics restricted to a line have a common root."""

from __future__ import annotations

from itertools import combinations

import numpy as np

from attngeom.equations.lines import LineFamily
from attngeom.equations.minors import submatrix_minors
from attngeom.equations.target_squares import format_square, on_target_squares, target_squares
from attngeom.exact.domains import Array, Domain
from attngeom.exact.partitions import schur_dimension


class SylvesterResultants(LineFamily):
    """On a line z = s p + u r the quadrics q_m = v(z) a_m(z) share a root: Res(Σ λ_m q_m, Σ μ_m q_m) = 0.

    With P, 2B, R the coefficients of q_m on the line, Res = [PR]² − 4 [PB][BR] in 2×2 minors of the two forms, so its
    coefficients in (λ, μ) are indexed by a basis of S_22 U. There is one line for each semistandard tableau of shape
    (4, 4), see :func:`separating_line`; together the quartics are a basis of S_44 V ⊗ S_22 U, what all lines span.

    >>> from attngeom.equations.variety import Variety
    >>> SylvesterResultants(Variety(3, 3)).count
    90
    """

    number = 9
    title = "sylvester-resultant"
    source = "resultants on lines, [I] Theorem 40"
    degree = 4

    @property
    def row_sizes(self) -> tuple[int, ...]:
        return schur_dimension((4, 4), self.variety.d), schur_dimension((2, 2), self.variety.num_targets)

    def row_label(self, *index: int) -> str:
        number, square = index
        targets = format_square(target_squares(self.variety.num_targets)[square])
        return f"{self.line_label(number)} targets={targets}"

    def table(self, y: Array, domain: Domain, rows: Array, columns: Array) -> Array:
        return resultant_values(self.on_lines(y, domain, rows), domain, columns)


def resultant_values(b: Array, domain: Domain, squares: Array | None = None) -> Array:
    """The quartics of S_22 U for binary quadrics (…, 3, m): all m²(m²−1)/12 of the basis, or those chosen.

    For two 2-subsets of targets: [PR]_u [PR]_w − 2 [PB]_u [BR]_w − 2 [PB]_w [BR]_u, the resultant itself if u = w.
    """
    m = b.shape[-1]
    pairs = np.array(list(combinations(range(m), 2)), dtype=np.int64).reshape(-1, 2)
    # Rows (P, B), (P, R), (B, R) of each pair of columns.
    rows = np.repeat(list(combinations(range(3), 2)), len(pairs), axis=0)
    minors = np.moveaxis(submatrix_minors(b, rows, np.tile(pairs, (3, 1)), domain), -1, 0)
    left, outer, right = minors.reshape(3, len(pairs), *b.shape[:-2])

    def product(u: Array, w: Array) -> Array:
        mixed = domain.times(left[u], right[w]) + domain.times(left[w], right[u])
        return domain.reduce(domain.times(outer[u], outer[w]) - 2 * domain.reduce(mixed))

    return np.moveaxis(on_target_squares(product, m, domain, squares), 0, -1)
