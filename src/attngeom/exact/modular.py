"""Linear algebra mod p: ranks with a nonzero minor as witness, echelon forms, determinants of many matrices."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Literal

import numpy as np
from flint import nmod_mat

from attngeom.errors import InputError
from attngeom.exact.arrays import Array, check_matrix
from attngeom.exact.numbers import check_prime
from attngeom.exact.residues import BalancedResidues, Elimination

Method = Literal["flint", "blas"]


@dataclass(frozen=True)
class Pivots:
    """Rows and columns of the largest minor that is known not to vanish: its size is the rank, or a bound for it.

    Mod p ``columns`` is lexicographically first.
    """

    rows: tuple[int, ...]
    columns: tuple[int, ...]

    @property
    def rank(self) -> int:
        return len(self.columns)


@dataclass(frozen=True, eq=False)
class Echelon:
    """A reduced row echelon form: ``matrix`` is rank×n (no zero rows), ``pivots`` its pivot columns."""

    matrix: Array
    pivots: tuple[int, ...]

    @property
    def rank(self) -> int:
        return len(self.pivots)

    @property
    def free(self) -> Array:
        """The columns without a pivot."""
        return np.delete(np.arange(self.matrix.shape[1]), self.pivots)


def choose_method(rows: int, columns: int, p: int) -> Method:
    """The faster of FLINT and blocked elimination in float64 BLAS (p < 2^31 only) for a matrix of this shape.

    Measured by benchmarks/modular_rank.py: up to the limits 80 and 110 FLINT's time is mostly the conversion of all
    entries and that of BLAS a few calls per block, so their ratio grows with the longer side, which therefore decides.
    For n from 1,000 to 4,000 BLAS takes a fourth to a ninth of FLINT's time.

    >>> choose_method(50, 50, 101), choose_method(1000, 1000, 101)
    ('flint', 'blas')
    """
    long, short = max(rows, columns), min(rows, columns)
    if p >= 2**31 or short < 20:
        return "flint"
    return "blas" if long >= (110 if BalancedResidues(p).is_split else 80) else "flint"


def residue_dtype(p: int) -> type:
    """The dtype of residues mod p: int64 below 2^31, else Python integers."""
    return np.int64 if p < 2**31 else object


def _prepare(a: Array, p: int, method: Method | None) -> Method:
    """Check the input; the method to use."""
    check_prime(p)
    check_matrix(a)
    if a.dtype != object and not np.issubdtype(a.dtype, np.integer):
        raise InputError(f"matrix of {a.dtype} given; integers are required")
    if method == "blas" and p >= 2**31:
        raise InputError(f"modulus {p} given; the BLAS method needs p < 2^31")
    return method or choose_method(a.shape[0], a.shape[1], p)


def _to_flint(a: Array, p: int) -> nmod_mat:
    return nmod_mat(a.shape[0], a.shape[1], (a % p).ravel().tolist(), p)


def _to_residues(a: Array, p: int) -> Array:
    """A copy with balanced residues, made in parts that stay in cache."""
    residues = BalancedResidues(p)
    out = np.empty(a.shape, dtype=residues.dtype)
    for start in range(0, len(a), 256):
        out[start : start + 256] = residues.from_integers(a[start : start + 256])
    return out


def rank_mod_p(a: Array, p: int, *, method: Method | None = None) -> int:
    """The rank of an integer matrix over GF(p): a lower bound for its rank over Q.

    >>> rank_mod_p(np.array([[1, 2], [3, 6]]), 7), rank_mod_p(np.array([[1, 2], [3, 4]]), 2)
    (1, 1)
    """
    if _prepare(a, p, method) == "flint":
        return int(_to_flint(a, p).rank())
    return choose_minor(_to_residues(a, p), p).rank


def choose_minor(a: Array, p: int) -> Pivots:
    """A largest minor that is not zero of a matrix of balanced residues mod p, which is overwritten.

    Over Q it is not zero either, if the entries are residues of numbers there: its size bounds the rank from below.

    >>> choose_minor(np.array([[0.0, 2.0], [0.0, -3.0], [3.0, 1.0]]), 7)
    Pivots(rows=(1, 2), columns=(0, 1))
    """
    elimination = Elimination(a, p, keep_upper=False).run()
    rows = np.sort(elimination.order[: elimination.rank])
    return Pivots(tuple(rows.tolist()), tuple(map(int, elimination.columns)))


def echelon_mod_p(a: Array, p: int, *, method: Method | None = None) -> Pivots:
    """A largest minor of a that is nonzero mod p, as row and column indices; its size is the rank mod p.

    >>> echelon_mod_p(np.array([[0, 2], [0, 4], [3, 1]]), 7)
    Pivots(rows=(0, 2), columns=(0, 1))
    """
    if _prepare(a, p, method) == "flint":
        columns = _flint_pivots(*_to_flint(a, p).rref())
        return Pivots(_flint_pivots(*_to_flint(a[:, columns].T, p).rref()), columns)
    return choose_minor(_to_residues(a, p), p)


def _flint_pivots(reduced: nmod_mat, rank: int) -> tuple[int, ...]:
    """The columns of the leading ones; entry by entry, since every entry that leaves FLINT costs."""
    pivots: list[int] = []
    for i in range(rank):
        j = pivots[-1] + 1 if pivots else 0
        while not int(reduced[i, j]):
            j += 1
        pivots.append(j)
    return tuple(pivots)


def rref_mod_p(a: Array, p: int, *, method: Method | None = None) -> Echelon:
    """The reduced row echelon form over GF(p).

    >>> rref_mod_p(np.array([[2, 4, 1], [1, 2, 0]]), 7)
    Echelon(matrix=array([[1, 2, 0], [0, 0, 1]]), pivots=(0, 2))
    """
    if _prepare(a, p, method) == "flint":
        reduced, rank = _to_flint(a, p).rref()
        pivots = _flint_pivots(reduced, rank)
        free = np.delete(np.arange(a.shape[1]), pivots)
        entries: Array = np.array(
            [int(reduced[i, j]) for i in range(rank) for j in free.tolist()], dtype=residue_dtype(p)
        )
    else:
        elimination = Elimination(_to_residues(a, p), p).run()
        pivots = tuple(elimination.columns)
        free, values = elimination.reduced()
        entries = elimination.field.to_integers(values)
    matrix: Array = np.zeros((len(pivots), a.shape[1]), dtype=residue_dtype(p))
    matrix[np.arange(len(pivots)), pivots] = 1
    matrix[:, free] = entries.reshape(len(pivots), len(free))
    return Echelon(matrix, pivots)


def laplace_expansion(rows: Sequence[Sequence[Any]], reduce: Callable[[Any], Any] = lambda x: x) -> Any:
    """The determinant of an n×n matrix, n ≥ 1, over any commutative ring: only +, − and *, then ``reduce``.

    n 2^(n−1) products; entries may be arrays, which gives the determinants of a stack of matrices. ``rows`` are lists:
    NumPy would take a polynomial for a sequence of terms.

    >>> from attngeom.exact import QQ
    >>> x, y = QQ.polynomials(("x", "y")).gens()
    >>> laplace_expansion([[x, y], [y, x]])
    x^2 - y^2
    """
    n = len(rows)
    if not n or any(len(row) != n for row in rows):
        raise InputError(f"{n} rows given; a square matrix with at least one row is required")
    # After row i: the minors of rows 0 … i for every set of i + 1 columns.
    partial: dict[tuple[int, ...], Any] = {(j,): rows[0][j] for j in range(n)}
    for i in range(1, n):
        larger = {}
        for columns in combinations(range(n), i + 1):
            total: Any = 0
            for position, j in enumerate(columns):
                term = reduce(rows[i][j] * partial[columns[:position] + columns[position + 1 :]])
                total = total + term if (i - position) % 2 == 0 else total - term
            larger[columns] = reduce(total)
        partial = larger
    return partial[tuple(range(n))]


def determinants_mod_p(stack: Array, p: int) -> Array:
    """Elimination of all matrices in the last two axes at once, p < 2^31: int64 products do not overflow.

    >>> determinants_mod_p(np.array([[[1, 2], [3, 4]], [[1, 1], [1, 1]]]), 7).tolist()
    [5, 0]
    """
    n = stack.shape[-1]
    a = stack.reshape(-1, n, n) % p
    every = np.arange(len(a))
    result = np.ones(len(a), dtype=np.int64)
    for k in range(n):
        pivot = k + np.argmax(a[:, k:, k] != 0, axis=1)
        result = np.where(pivot == k, result, p - result)
        a[every, pivot], a[:, k] = a[:, k].copy(), a[every, pivot]
        # Without a nonzero pivot the determinant becomes zero here, and its column stays zero.
        result = result * a[:, k, k] % p
        factors = a[:, k + 1 :, k] * powers_mod_p(a[:, k, k], p - 2, p)[:, None] % p
        a[:, k + 1 :, k:] = (a[:, k + 1 :, k:] - factors[:, :, None] * a[:, k, None, k:]) % p
    return result.reshape(stack.shape[:-2]) % p


def powers_mod_p(x: Array, exponent: int, p: int) -> Array:
    """x^exponent mod p < 2^31, entry by entry: the inverse for exponent p − 2.

    >>> powers_mod_p(np.array([3, 0]), 5, 7).tolist()
    [5, 0]
    """
    result = np.ones_like(x)
    for bit in bin(exponent)[2:]:
        result = result * result % p
        if bit == "1":
            result = result * x % p
    return result
