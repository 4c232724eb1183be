"""Linear algebra mod p: ranks with a nonzero minor as witness, echelon forms, nullspaces, solutions."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from flint import nmod_mat

from attngeom.errors import InputError

Array = np.ndarray


@dataclass(frozen=True)
class Pivots:
    """Rows and columns of a largest nonzero minor: its size is the rank.

    ``columns`` is increasing and lexicographically first.
    """

    rows: tuple[int, ...]
    columns: tuple[int, ...]

    @property
    def rank(self) -> int:
        return len(self.columns)


@dataclass(frozen=True)
class Echelon:
    """A reduced row echelon form: ``matrix`` is rank×n (no zero rows), ``pivots`` its pivot columns."""

    matrix: Array
    pivots: tuple[int, ...]

    @property
    def rank(self) -> int:
        return len(self.pivots)


def _check_matrix(a: Array) -> None:
    if a.ndim != 2:
        raise InputError(f"array of shape {a.shape} given; a matrix is required")


def _to_flint(a: Array, p: int) -> nmod_mat:
    return nmod_mat(a.shape[0], a.shape[1], (a % p).ravel().tolist(), p)


def residue_dtype(p: int) -> type:
    """The dtype of residues mod p: int64 below 2^31, else Python integers."""
    return np.int64 if p < 2**31 else object


def _from_flint(matrix: nmod_mat, p: int) -> Array:
    shape = (matrix.nrows(), matrix.ncols())
    return np.array(list(map(int, matrix.entries())), dtype=residue_dtype(p)).reshape(shape)


def rank_mod_p(a: Array, p: int) -> int:
    """The rank of an integer matrix over GF(p): a lower bound for its rank over Q.

    >>> rank_mod_p(np.array([[1, 2], [3, 6]]), 7), rank_mod_p(np.array([[1, 2], [3, 4]]), 2)
    (1, 1)
    """
    _check_matrix(a)
    return int(_to_flint(a, p).rank())


def rref_mod_p(a: Array, p: int) -> Echelon:
    """The reduced row echelon form over GF(p).

    >>> rref_mod_p(np.array([[2, 4, 1], [1, 2, 0]]), 7)
    Echelon(matrix=array([[1, 2, 0], [0, 0, 1]]), pivots=(0, 2))
    """
    _check_matrix(a)
    reduced, rank = _to_flint(a, p).rref()
    matrix = _from_flint(reduced, p)[:rank]
    return Echelon(matrix, tuple((matrix != 0).argmax(axis=1).tolist()) if rank else ())


def echelon_mod_p(a: Array, p: int) -> Pivots:
    """A largest minor of a that is nonzero mod p, as row and column indices; its size is the rank mod p.

    >>> echelon_mod_p(np.array([[0, 2], [0, 4], [3, 1]]), 7)
    Pivots(rows=(0, 2), columns=(0, 1))
    """
    columns = rref_mod_p(a, p).pivots
    rows = rref_mod_p(a[:, columns].T, p).pivots
    return Pivots(rows, columns)


def nullspace_mod_p(a: Array, p: int) -> Array:
    """A basis of {x : a x = 0 mod p} as rows, with an identity matrix in the non-pivot columns.

    >>> nullspace_mod_p(np.array([[1, 2, 3]]), 7).tolist()
    [[5, 1, 0], [4, 0, 1]]
    """
    echelon = rref_mod_p(a, p)
    free = np.setdiff1d(np.arange(a.shape[1]), echelon.pivots)
    basis: Array = np.zeros((len(free), a.shape[1]), dtype=residue_dtype(p))
    basis[:, echelon.pivots] = -echelon.matrix[:, free].T % p
    basis[np.arange(len(free)), free] = 1
    return basis


def solve_mod_p(a: Array, b: Array, p: int) -> Array | None:
    """A solution x of a x = b mod p with zeros in the non-pivot variables, or None if there is none.

    >>> solve_mod_p(np.array([[1, 1], [2, 2]]), np.array([3, 6]), 7).tolist()
    [3, 0]
    """
    _check_matrix(a)
    right = b.reshape(b.shape[0], -1)
    echelon = rref_mod_p(np.concatenate([a, right], axis=1), p)
    n = a.shape[1]
    if echelon.pivots and echelon.pivots[-1] >= n:
        return None
    x: Array = np.zeros((n, right.shape[1]), dtype=residue_dtype(p))
    x[list(echelon.pivots)] = echelon.matrix[:, n:]
    return x.reshape((n, *b.shape[1:]))


def determinant_mod_p(a: Array, p: int) -> int:
    """The determinant over GF(p).

    >>> determinant_mod_p(np.array([[1, 2], [3, 4]]), 7)
    5
    """
    if a.ndim != 2 or a.shape[0] != a.shape[1]:
        raise InputError(f"array of shape {a.shape} given; a square matrix is required")
    return int(_to_flint(a, p).det())
