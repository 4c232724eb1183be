"""Echelon gauges: one representative of an orbit of GL, with an identity matrix in chosen columns."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg

from attngeom.exact.domains import Array, Domain

FLOAT_RANK_CUT = 1e-12


@dataclass(frozen=True, eq=False)
class RowGauge:
    """S (m×n) of rank r as basis·rows: ``rows`` (r×n) has the identity at ``pivots`` and basis is S[:, pivots]."""

    basis: Array
    rows: Array
    pivots: tuple[int, ...]


def row_gauge(S: Array, domain: Domain) -> RowGauge:
    """The canonical basis of the row space of S, invariant under S → C S for invertible C.

    Exact domains: the reduced echelon form. Floats: pivots by QR factorization of the orthogonal projector on the row
    space, which is well conditioned and does not depend on C; singular values below 1e-12 σ_1 count as zero.

    >>> from attngeom.exact import QQ
    >>> row_gauge(QQ.convert([[0, 2, 4]]), QQ).rows.tolist()
    [[0, 1, 2]]
    """
    if domain.is_exact:
        echelon = domain.rref(S)
        return RowGauge(S[:, list(echelon.pivots)], echelon.matrix, echelon.pivots)
    _, values, right = np.linalg.svd(S, full_matrices=False)
    rank = int(np.sum(values > FLOAT_RANK_CUT * values[0])) if values.size and values[0] else 0
    if rank == 0:
        return RowGauge(S[:, :0], S[:0], ())
    span = right[:rank]
    order = scipy.linalg.qr(span.T @ span, mode="r", pivoting=True)[1]
    pivots = tuple(sorted(int(place) for place in order[:rank]))
    rows = np.linalg.solve(span[:, list(pivots)], span)
    rows[:, list(pivots)] = np.eye(rank)
    return RowGauge(S[:, list(pivots)], rows, pivots)


def free_columns(width: int, pivots: tuple[int, ...]) -> list[int]:
    """The columns that are not pivots."""
    return [column for column in range(width) if column not in set(pivots)]
