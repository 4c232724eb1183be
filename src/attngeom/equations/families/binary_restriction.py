"""Family 12, binary-restriction cubics: on a line the slice quadrics span at most two dimensions."""

from __future__ import annotations

from math import comb

import numpy as np

from attngeom.equations.family import combination_array
from attngeom.equations.lines import LineFamily
from attngeom.equations.minors import submatrix_minors
from attngeom.exact.combinations import combination_at
from attngeom.exact.domains import Array, Domain
from attngeom.exact.partitions import schur_dimension


class BinaryRestriction(LineFamily):
    """On a line the quadrics v(z) a_m(z) are binary quadrics with a common factor: at most two are independent.

    Members are (line, targets L): the 3×3 minors with columns L of the 3×m matrix (q_m(p), B_m(p, r), q_m(r)), one line
    for each semistandard tableau of shape (3, 3), see :func:`separating_line`. They are a basis of S_33 V ⊗ Λ³U, so
    dim S_33(C^d) C(m,3) linearly independent cubics.

    >>> from attngeom.equations.variety import Variety
    >>> BinaryRestriction(Variety(4, 4)).count
    200
    """

    number = 12
    title = "binary-restriction"
    source = "binary quadrics with a common factor; in [I] for d = 3 only"
    degree = 3

    @property
    def row_sizes(self) -> tuple[int, ...]:
        return schur_dimension((3, 3), self.variety.d), comb(self.variety.num_targets, 3)

    def row_label(self, *index: int) -> str:
        number, triple = index
        return f"{self.line_label(number)} L={combination_at(self.variety.num_targets, 3, triple)}"

    def table(self, y: Array, domain: Domain, rows: Array, columns: Array) -> Array:
        targets = combination_array(self.variety.num_targets, 3, columns)
        binary = self.on_lines(y, domain, rows)
        return submatrix_minors(binary, np.broadcast_to(np.arange(3), targets.shape), targets, domain)
