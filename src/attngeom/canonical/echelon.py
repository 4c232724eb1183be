"""Echelon gauges: one representative of an orbit of GL, with an identity matrix in chosen columns."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from attngeom.exact import lapack
from attngeom.exact.domains import Array, Domain
from attngeom.groups.pivots import choose_pivots
from attngeom.limits.rounding import CHOICE_SHARE, GAUGE_CLOSE_CALL, GAUGE_RANK


@dataclass(frozen=True, eq=False)
class RowGauge:
    """S (m×n) of rank r as basis·rows: ``rows`` (r×n) has the identity at ``pivots`` and basis is S[:, pivots].

    ``is_clear`` is False if rank or pivots hang on a close call in floats.
    """

    basis: Array
    rows: Array
    pivots: tuple[int, ...]
    is_clear: bool = True


def row_gauge(S: Array, domain: Domain, max_rank: int | None = None, noise: float = 0.0) -> RowGauge:
    """The canonical basis of the row space of S, invariant under S → C S for invertible C.

    Exact domains: the reduced echelon form. Floats: pivots that depend on the row space alone and leave it well
    conditioned; singular values below 1e-12 σ_1, below ``noise`` times the norm of S, or beyond the ``max_rank`` that S
    is known to have count as zero.

    >>> from attngeom.exact import QQ
    >>> row_gauge(QQ.convert([[0, 2, 4]]), QQ).rows.tolist()
    [[0, 1, 2]]
    """
    if domain.is_exact:
        echelon = domain.rref(S)
        return RowGauge(S[:, list(echelon.pivots)], echelon.matrix, echelon.pivots)
    left, values, right = lapack.svd(S, full_matrices=False)
    cut = max(GAUGE_RANK * float(values.max(initial=0.0)), noise * float(np.linalg.norm(S)))
    rank = int(np.sum(values[:max_rank] > cut))
    if rank == 0:
        return RowGauge(S[:, :0], S[:0], ())
    columns, is_clear = choose_pivots(right[:rank], share=CHOICE_SHARE, swap=None)
    # The right singular vectors once more, small columns to their own accuracy.
    span = (left[:, :rank].T @ S) / values[:rank, None]
    rows = lapack.solve(span[:, columns], span)
    rows[:, columns] = np.eye(rank)
    close = (values > cut / GAUGE_CLOSE_CALL) & (values < cut * GAUGE_CLOSE_CALL)
    return RowGauge(S[:, columns], rows, tuple(columns.tolist()), is_clear and not bool(close.any()))
