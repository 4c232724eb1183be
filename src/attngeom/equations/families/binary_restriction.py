"""Family 12, binary-restriction cubics: on a line the slice quadrics span at most two dimensions."""

from __future__ import annotations

from dataclasses import dataclass
from math import comb
from typing import ClassVar

import numpy as np

from attngeom.equations.family import TableFamily, combination_array
from attngeom.equations.lines import format_line, restrict, separating_line
from attngeom.equations.minor_tables import submatrix_minors
from attngeom.exact.combinations import combination_at
from attngeom.exact.domains import Array, Domain
from attngeom.exact.partitions import schur_dimension
from attngeom.exact.tableaux import two_row_tableau


@dataclass(frozen=True)
class BinaryRestriction(TableFamily):
    """On a line the quadrics v(z) a_m(z) are binary quadrics with a common factor: at most two are independent.

    Members are (line, targets L): the 3×3 minors with columns L of the 3×m matrix (q_m(p), B_m(p, r), q_m(r)), one line
    for each semistandard tableau of shape (3, 3), see :func:`separating_line`. They are a basis of S_33 V ⊗ Λ³U, so
    dim S_33(C^d) C(m,3) linearly independent cubics.

    >>> from attngeom.equations.variety import Variety
    >>> BinaryRestriction(Variety(4, 4)).count
    200
    """

    number: ClassVar[int] = 12
    title: ClassVar[str] = "binary-restriction"
    source: ClassVar[str] = "binary quadrics with a common factor; in [I] for d = 3 only"
    degree: ClassVar[int] = 3

    @property
    def row_sizes(self) -> tuple[int, ...]:
        return schur_dimension((3, 3), self.variety.d), comb(self.variety.num_targets, 3)

    def line(self, number: int) -> Array:
        """Line number ``number`` of the dim S_33(C^d) lines, as the 2×d matrix with rows p and r."""
        return separating_line(two_row_tableau(self.variety.d, 3, number), self.variety.d)

    def row_label(self, *index: int) -> str:
        number, triple = index
        return f"{format_line(self.line(number))} L={combination_at(self.variety.num_targets, 3, triple)}"

    def table(self, y: Array, domain: Domain, rows: Array, columns: Array) -> Array:
        targets = combination_array(self.variety.num_targets, 3, columns)
        binary = restrict(y, np.stack([self.line(int(k)) for k in rows]), domain)
        return submatrix_minors(binary, np.broadcast_to(np.arange(3), targets.shape), targets, domain)
