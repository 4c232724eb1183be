"""Heads of an exact layer: idempotents of the commutant over Q, then (A, V) of every summand."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from attngeom.exact.domains import QQ, Array
from attngeom.heads.pencil import Endomorphism, Pencil, commutant, compress
from attngeom.heads.summands import Summand, split_summands
from attngeom.layer.splitting import LayerSplitting, split_layer


@dataclass(frozen=True, eq=False)
class Decomposition:
    """A nonzero table over Q as a direct sum: its pencil, a basis of its commutant, its summands and their splittings.

    ``splittings[k]`` says whether summand k is a head (over Q, a quadratic field, C, or not at all).
    """

    pencil: Pencil
    basis: list[Endomorphism]
    summands: list[Summand]
    tables: list[Array]
    splittings: list[LayerSplitting]


def decompose(table: Array, seed: int = 0) -> Decomposition | None:
    """A table of quadrics over Q, not zero, as a direct sum; None if the numbers of its commutant are too long."""
    pencil = compress(table)
    basis = commutant(pencil.C, seed)
    if basis is None:
        return None
    summands = split_summands(basis, seed)
    tables = [_expand(pencil, summand.table(pencil.C)) for summand in summands]
    return Decomposition(pencil, basis, summands, tables, [split_layer(part, QQ) for part in tables])


def _expand(pencil: Pencil, C: Array) -> Array:
    """U C R: a table in the coordinates of the layer."""
    n, m, S = C.shape
    d_out, d = pencil.U.shape[0], pencil.R.shape[1]
    left = QQ.matmul(pencil.U, C.reshape(n, m * S)).reshape(d_out, m, S)
    right = QQ.matmul(np.swapaxes(left, 1, 2).reshape(d_out * S, m), pencil.R)
    return np.swapaxes(right.reshape(d_out, S, d), 1, 2)
