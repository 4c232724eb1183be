"""Family 12, binary-restriction cubics: on a line the slice quadrics span at most two dimensions."""

from __future__ import annotations

from dataclasses import dataclass
from math import comb
from typing import ClassVar

import numpy as np

from attngeom.equations.family import RowFamily, combination_array
from attngeom.equations.lines import decode, restrict, restricted_forms, separating_line
from attngeom.equations.minor_tables import submatrix_minors
from attngeom.equations.terms import Terms, expand_determinant
from attngeom.exact.combinations import combination_at
from attngeom.exact.domains import Array, Domain
from attngeom.exact.partitions import schur_dimension
from attngeom.exact.tableaux import two_row_tableau


@dataclass(frozen=True)
class BinaryRestriction(RowFamily):
    """On a line the quadrics v(z) a_m(z) are binary quadrics with a common factor: at most two are independent.

    Members are (line, targets L): the 3×3 minors with columns L of the 3×m matrix (q_m(p), B_m(p, r), q_m(r)), one line
    for each semistandard tableau of shape (3, 3), see :func:`separating_line`. They are a basis of S_33 V ⊗ Λ³U, so
    dim S_33(C^d) C(m,3) linearly independent cubics.

    >>> from attngeom.equations.variety import Variety
    >>> BinaryRestriction(Variety(4, 4)).count
    200
    """

    number: ClassVar[int] = 12
    source: ClassVar[str] = "binary quadrics with a common factor; in [I] for d = 3 only"

    @property
    def name(self) -> str:
        return "binary-restriction"

    @property
    def degree(self) -> int:
        return 3

    @property
    def row_count(self) -> int:
        return schur_dimension((3, 3), self.variety.d) * comb(self.variety.num_targets, 3)

    @property
    def dimension(self) -> int:
        return self.count

    def line(self, number: int) -> Array:
        """Line number ``number`` of the dim S_33(C^d) lines, as the 2×d matrix with rows p and r."""
        return separating_line(two_row_tableau(self.variety.d, 3, number), self.variety.d)

    def _place(self, index: int) -> tuple[Array, tuple[int, ...]]:
        m = self.variety.num_targets
        line, triple = divmod(index, comb(m, 3))
        return self.line(line), combination_at(m, 3, triple)

    def row_label(self, index: int) -> str:
        line, L = self._place(index)
        return f"p={tuple(line[0].tolist())} r={tuple(line[1].tolist())} L={L}"

    def row_terms(self, index: int, row: int) -> Terms:
        line, L = self._place(index)
        forms = restricted_forms(line, self.variety.num_targets)
        minor = expand_determinant([[form[m] for m in L] for form in forms])
        return decode(minor, self.variety.d, self.variety.num_targets, row)

    def row_evaluate(self, y: Array, domain: Domain, start: int, stop: int) -> Array:
        m = self.variety.num_targets
        size = comb(m, 3)
        if start == stop:
            return domain.zeros((*y.shape[:-2], 0))
        first, last = start // size, -(-stop // size)
        lines = np.stack([self.line(k) for k in range(first, last)])
        columns = combination_array(m, 3, np.arange(size))
        rows = np.broadcast_to(np.arange(3), columns.shape)
        values = submatrix_minors(restrict(y, lines, domain), rows, columns, domain)
        flat = values.reshape(*values.shape[:-2], (last - first) * size)
        return flat[..., start - first * size : stop - first * size]
