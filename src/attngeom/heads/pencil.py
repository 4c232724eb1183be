"""The function of a layer as a linear space of matrices: T = U C R with the smallest C, and what commutes with it.

For t ≥ 2 the layer is its table of quadrics T[n, m]; each monomial s gives a d_out×d matrix T_s, all of them a
representation of the Kronecker quiver. Its endomorphisms are the pairs (X, Y) with X C_s = C_s Y for all s.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from attngeom.errors import SizeError
from attngeom.exact.domains import GF, QQ, Array
from attngeom.exact.lifting import lift_nullspace
from attngeom.limits.memory import QUADRIC_TABLE
from attngeom.limits.trials import MIXED_SLICES
from attngeom.limits.work import COMMUTANT_UNKNOWNS

Endomorphism = tuple[Array, Array]
"""A pair (X, Y) with X C_s = C_s Y for all s."""


@dataclass(frozen=True, eq=False)
class Pencil:
    """T = U C R over Q: U is d_out×n, C is n×m×S, R is m×d, and n, m are the ranks of the two flattenings of T.

    C is the part of T in these ``rows`` and ``columns``.
    """

    U: Array
    C: Array
    R: Array
    rows: tuple[int, ...]
    columns: tuple[int, ...]

    @property
    def shape(self) -> tuple[int, int]:
        """(n, m): sums of the ranks of the V_h and of the A_h, for any heads that form a direct sum."""
        return int(self.C.shape[0]), int(self.C.shape[1])


def check_exact_size(d: int, d_out: int) -> None:
    """SizeError for tables beyond which an exact search for heads would take minutes."""
    entries = d_out * d * d * (d + 1) // 2
    if entries > QUADRIC_TABLE:
        raise SizeError(
            f"d = {d}, d_out = {d_out} give {entries:,} coefficients; at most {QUADRIC_TABLE:,} for exact heads"
        )


def compress(table: Array) -> Pencil:
    """The table (d_out, d, S) over Q in the smallest coordinates.

    >>> compress(QQ.convert([[[1, 0, 0], [0, 0, 0]], [[2, 0, 0], [0, 0, 0]]])).shape
    (1, 1)
    """
    d_out, d, S = table.shape
    rows = QQ.rref(_independent(table.reshape(d_out, d * S).T))
    chosen = table[list(rows.pivots)]
    n = len(chosen)
    columns = QQ.rref(_independent(np.swapaxes(chosen, 0, 1).reshape(d, n * S).T))
    C = chosen[:, list(columns.pivots)]
    return Pencil(rows.matrix.T, C, columns.matrix, rows.pivots, columns.pivots)


def _independent(tall: Array) -> Array:
    """A tall matrix without its zero rows: they are most of a sparse table."""
    keep = [index for index, row in enumerate(tall.tolist()) if any(row)]
    return tall[keep]


def commutant(C: Array, seed: int = 0) -> list[Endomorphism] | None:
    """A basis over Q of {(X, Y) : X C_s = C_s Y for all s}, proven complete; None if its numbers are too long.

    The equations of a few random combinations of the C_s are solved modulo primes and lifted; the solutions are then
    checked for every s, and there cannot be more of them than modulo a prime.
    """
    n, m, S = C.shape
    if n * n + m * m > COMMUTANT_UNKNOWNS:
        raise SizeError(
            f"flattening ranks {n} and {m} give {n * n + m * m:,} unknowns; at most"
            f" {COMMUTANT_UNKNOWNS:,} for exact heads"
        )
    rng = np.random.default_rng(seed)
    for few in (True, False):
        if few and S <= MIXED_SLICES:
            continue
        slices = np.moveaxis(C, 2, 0)
        if few:
            mixed = QQ.convert(rng.integers(-99, 100, size=(MIXED_SLICES, S)))
            slices = QQ.matmul(mixed, slices.reshape(S, n * m)).reshape(MIXED_SLICES, n, m)
        basis = lift_nullspace(partial(_equations_mod, slices), check=lambda basis: _commute(basis, C))
        if basis is not None:
            return [_unpack(row, n, m) for row in basis]
    return None


def _unpack(row: Array, n: int, m: int) -> Endomorphism:
    return row[: n * n].reshape(n, n), row[n * n :].reshape(m, m)


def _equations_mod(slices: Array, p: int) -> Array:
    """The equations X C − C Y = 0 for some matrices C, in the entries of X and Y, mod p."""
    residues = GF(p).convert(slices)
    one, other = (np.eye(size, dtype=np.int64) for size in residues.shape[1:])
    return np.block([[np.kron(one, C.T), np.kron(-C % p, other)] for C in residues])


def _commute(basis: Array, C: Array) -> bool:
    """Whether X C_s = C_s Y for all s and all rows (X, Y)."""
    n, m, S = C.shape
    left, right = C.reshape(n, m * S), np.swapaxes(C, 1, 2).reshape(n * S, m)
    for row in basis:
        X, Y = _unpack(row, n, m)
        XC = QQ.matmul(X, left).reshape(n, m, S)
        CY = np.swapaxes(QQ.matmul(right, Y).reshape(n, S, m), 1, 2)
        if not QQ.equal(XC, CY):
            return False
    return True


def sandwich(left: Array, C: Array, right: Array) -> Array:
    """left C_s right over Q for all slices C_s of an array (n, m, S)."""
    _, m, S = C.shape
    moved = QQ.matmul(left, C.reshape(len(C), m * S)).reshape(len(left), m, S)
    transposed = QQ.matmul(np.swapaxes(moved, 1, 2).reshape(-1, m), right)
    return np.swapaxes(transposed.reshape(len(left), S, -1), 1, 2)


def trace_form(basis: list[Endomorphism]) -> Array:
    """The matrix of tr(X_i X_j) + tr(Y_i Y_j); its radical is that of the algebra which the basis spans.

    >>> trace_form([(QQ.eye(2), QQ.eye(1))]).tolist()
    [[3]]
    """
    flat = np.stack([np.concatenate([X.ravel(), Y.ravel()]) for X, Y in basis])
    transposed = np.stack([np.concatenate([X.T.ravel(), Y.T.ravel()]) for X, Y in basis])
    return QQ.matmul(flat, transposed.T)
