"""Float linear algebra under the names of ``numpy.linalg``, which LAPACK cannot trip over.

LAPACK prints to stdout, does not converge or does not return when it meets infinities. Here matrices are checked first,
and scaled by a power of two, which is exact, when products of their entries could leave the range of floats. What
cannot be computed is an error with a message: :class:`SingularError` where an inverse was asked for that floats do not
have, :class:`RangeError` for other numbers that are not finite. All other modules use these functions; a test sees to
it.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from math import isfinite
from typing import Any

import numpy as np

from attngeom.errors import RangeError, SingularError
from attngeom.exact.arrays import Array
from attngeom.exact.numbers import join_scale, split_scale
from attngeom.limits.rounding import MODERATE_SIZE


def moderate(a: Array) -> tuple[Array, int]:
    """(m, e) with a = m · 2^e and entries of m in a range that LAPACK can square; e = 0 for most matrices.

    >>> moderate(np.array([2.0**900])), moderate(np.array([3.0]))
    ((array([0.5]), 901), (array([3.]), 0))
    """
    largest = float(np.abs(a).max(initial=0.0))
    if not isfinite(largest):
        raise RangeError("numbers left the range of floats; give weights and inputs of moderate size, or exact ones")
    if largest == 0 or 1 / MODERATE_SIZE <= largest <= MODERATE_SIZE:
        return a, 0
    return split_scale(a)


def _rescaled(a: Array, exponent: int) -> Array:
    return join_scale(a, exponent) if exponent else a


def _decompose(function: Callable[..., Any], a: Array, **options: Any) -> tuple[Any, int]:
    """What a function of numpy.linalg finds for a in moderate size, and the exponent; RangeError if it diverges."""
    unit, exponent = moderate(a)
    try:
        return function(unit, **options), exponent
    except np.linalg.LinAlgError as error:
        text = f"LAPACK found no decomposition ({error}); give weights of moderate size, or exact ones"
        raise RangeError(text) from None


def norm(a: Array) -> float:
    """The Frobenius norm, also where squares of the entries are out of range; infinite entries give infinity.

    >>> norm(np.array([3e-200, 4e-200]))
    5e-200
    """
    try:
        unit, exponent = moderate(a)
    except RangeError:
        return float("inf")
    return float(join_scale(np.asarray(np.linalg.norm(unit)), exponent))


def svd(a: Array, full_matrices: bool = True) -> tuple[Array, Array, Array]:
    """(U, σ, Wᵀ) with a = U diag(σ) Wᵀ, σ decreasing."""
    (left, values, right), exponent = _decompose(np.linalg.svd, a, full_matrices=full_matrices)
    return left, _rescaled(values, exponent), right


def svdvals(a: Array) -> Array:
    """The singular values, decreasing, of one matrix or of a stack.

    >>> svdvals(np.array([[0.0, 3e300], [1e300, 0.0]])).tolist()
    [3e+300, 1e+300]
    """
    values, exponent = _decompose(np.linalg.svd, a, compute_uv=False)
    return _rescaled(values, exponent)


def matrix_rank(a: Array, rtol: float | None = None) -> int:
    """The number of singular values above rtol σ_1; by default max(m, n) ε σ_1."""
    unit, _ = moderate(a)
    values = svdvals(unit)
    cut = max(a.shape) * float(np.finfo(np.float64).eps) if rtol is None else rtol
    return int(np.sum(values > cut * values.max(initial=0.0)))


def cond(a: Array) -> float:
    """σ_1 / σ_n; infinite for singular matrices and for those that are not finite."""
    try:
        values = svdvals(moderate(a)[0])
    except RangeError:
        return float("inf")
    return float(values[0] / values[-1]) if values.size and values[-1] > 0 else float("inf")


def inverses(a: Array) -> tuple[Array, Array]:
    """For each of a stack its inverse and ‖a‖ ‖a^{-1}‖ in the norm of largest column sums; NaN and infinity without.

    >>> inverses(np.array([[[2.0]], [[0.0]]]))[1].tolist()
    [1.0, inf]
    """
    inverse = np.full(a.shape, np.nan)
    try:
        inverse = inv(a)
    except SingularError:
        for place in np.ndindex(a.shape[:-2]):
            with suppress(SingularError):
                inverse[place] = inv(a[place])
    sums = np.abs(a).sum(axis=-2).max(axis=-1, initial=0.0) * np.abs(inverse).sum(axis=-2).max(axis=-1, initial=0.0)
    return inverse, np.where(np.isnan(sums), np.inf, sums)


def qr(a: Array, complete: bool = False) -> tuple[Array, Array]:
    """(Q, R) with orthonormal columns, a whole basis if wanted, and an upper triangle, for one matrix or a stack."""
    (basis, triangle), exponent = _decompose(np.linalg.qr, a, mode="complete" if complete else "reduced")
    return basis, _rescaled(triangle, exponent)


def triangle(a: Array) -> Array:
    """The R of :func:`qr`."""
    factor, exponent = _decompose(np.linalg.qr, a, mode="r")
    return _rescaled(factor, exponent)


def pivoted_qr(a: Array) -> tuple[Array, Array]:
    """(R, order) of a QR factorization with column pivoting."""
    import scipy.linalg  # slow to load, and few commands need it

    unit, exponent = moderate(a)
    factor, order = scipy.linalg.qr(unit, mode="r", pivoting=True, check_finite=False)
    return _rescaled(factor, exponent), np.asarray(order)


def eigh(a: Array) -> tuple[Array, Array]:
    """Eigenvalues, increasing, and eigenvectors of a symmetric matrix."""
    (values, vectors), exponent = _decompose(np.linalg.eigh, a)
    return _rescaled(values, exponent), vectors


def eig(a: Array) -> tuple[Array, Array]:
    """Eigenvalues and eigenvectors, complex in general, of a square matrix."""
    (values, vectors), exponent = _decompose(np.linalg.eig, a)
    real, imaginary = (_rescaled(part, exponent) for part in (values.real, values.imag))
    return np.asarray(real + 1j * imaginary if np.iscomplexobj(values) else real), vectors


def eigvalsh(a: Array) -> Array:
    """Eigenvalues, increasing, of a symmetric matrix or of a stack."""
    values, exponent = _decompose(np.linalg.eigvalsh, a)
    return _rescaled(values, exponent)


def cholesky(a: Array) -> Array:
    """The lower triangle R with a = R Rᵀ, for a positive definite matrix or a stack."""
    unit, exponent = moderate(a)
    if exponent % 2:
        unit, exponent = unit / 2, exponent + 1
    try:
        return _rescaled(np.linalg.cholesky(unit), exponent // 2)
    except np.linalg.LinAlgError:
        raise SingularError("a matrix that is not positive definite given; a positive one is required") from None


def inv(a: Array) -> Array:
    """The inverse of a matrix, or of each of a stack.

    >>> inv(np.array([[1e300]])).item()
    1e-300
    """
    try:
        unit, exponent = moderate(a)
        inverse = np.linalg.inv(unit)
    except (np.linalg.LinAlgError, RangeError):
        raise _singular(a) from None
    return _finite(_rescaled(inverse, -exponent), a)


def pinv(a: Array, rcond: float, hermitian: bool = False) -> Array:
    """The Moore–Penrose inverse; singular values below rcond σ_1 count as zero."""
    inverse, exponent = _decompose(np.linalg.pinv, a, rcond=rcond, hermitian=hermitian)
    return _finite(_rescaled(inverse, -exponent), a)


def solve(a: Array, b: Array) -> Array:
    """The x with a x = b."""
    try:
        (left, e), (right, f) = moderate(a), moderate(b)
        solution = np.linalg.solve(left, right)
    except (np.linalg.LinAlgError, RangeError):
        raise _singular(a) from None
    return _finite(_rescaled(solution, f - e), a)


def lstsq(a: Array, b: Array, rcond: float | None = None) -> Array:
    """The x of least norm with a x ≈ b of least squares; singular values below rcond σ_1 count as zero."""
    right, f = moderate(b)
    (solution, *_), e = _decompose(np.linalg.lstsq, a, b=right, rcond=rcond)
    return _finite(_rescaled(solution, f - e), a)


def solve_left(a: Array, b: Array, rcond: float | None = None) -> Array:
    """The x of least norm with x a ≈ b of least squares, as :func:`lstsq`."""
    return lstsq(a.T, b.T, rcond).T


def det(a: Array) -> Any:
    """The determinants over the last two axes, infinite beyond the range of floats."""
    unit, exponent = moderate(a)
    determinant = np.linalg.det(unit)
    return join_scale(determinant, exponent * a.shape[-1]) if exponent else determinant


def _finite(solution: Array, a: Array) -> Array:
    if not np.isfinite(solution).all():
        raise _singular(a)
    return solution


def _singular(a: Array) -> SingularError:
    return SingularError(f"singular {a.shape[-2]}×{a.shape[-1]} matrix; an invertible one is required")
