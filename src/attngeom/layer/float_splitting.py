"""One layer from a table of quadrics in floats, with noise: (A, V) by least squares, and how far the table is off."""

from __future__ import annotations

import numpy as np

from attngeom import digits
from attngeom.errors import SizeError
from attngeom.exact import lapack
from attngeom.exact.domains import RR, Array
from attngeom.exact.multisets import pair_orbits, pair_rows
from attngeom.exact.precise import null_vector
from attngeom.layer.coefficients import multiply_forms, quadric_table
from attngeom.layer.quadrics import symmetric_matrix
from attngeom.layer.splitting import LayerMatrices, LayerSplitting, Status, check_table
from attngeom.limits.rounding import RECOVERED_ERROR
from attngeom.limits.trials import SPLITTING_SWEEPS
from attngeom.limits.work import SPLIT_WIDTH

COMPLEX = "the quadrics have definite common factors: only complex weights give them"


def check_width(d: int) -> None:
    """SizeError where least squares for A and V would take minutes."""
    if d > SPLIT_WIDTH:
        raise SizeError(f"float coefficients with d = {d} given; give d ≤ {SPLIT_WIDTH}, or exact strings as values")


def split_layer_floats(table: Array, tolerance: float = RECOVERED_ERROR, seed: int = 0) -> LayerSplitting:
    """The (A, V) with T[n, m] ≈ α_m ν_n of least squares; "none" if the relative residual exceeds ``tolerance``.

    V is found from the directions of G(y) = (V y)(Aᵀ y)ᵀ over many y, if rk V ≥ 2, or A from the other directions, if
    rk A ≥ 2; the rest is linear. If both have rank one, G = b(y) h qᵀ with a quadratic form b = k v.

    >>> T = quadric_table(np.eye(2), np.array([[2.0, 3.0]]), RR)
    >>> split_layer_floats(T).points[0].V.round(9).tolist()
    [[1.0, 1.5]]
    """
    check_table(table)
    check_width(table.shape[1])
    size = float(np.linalg.norm(table))
    if size == 0:
        return LayerSplitting("zero", RR)
    candidates = [_from_directions(table, seed), *_rank_one(table)]
    scored = []
    for separation, A, V in candidates:
        A, V = alternate(table, A, V)
        residual = float(np.linalg.norm(table - quadric_table(A, V, RR))) / size
        scored.append((residual, separation, A, V))
    # Candidates that differ by rounding keep their order: the first knows how well it is determined.
    least = min(entry[0] for entry in scored)
    scored.sort(key=lambda entry: 0.0 if entry[0] <= max(10 * least, 1e-13) else entry[0])
    best, separation, A, V = scored[0]
    if not best <= tolerance:
        pair = conjugate_pair(table)
        is_complex = pair is not None and np.linalg.norm(table - pair) <= tolerance * size
        reason = f"the closest layer misses the coefficients by {digits.error(best)}, more than {tolerance:.0e}"
        status: Status = "complex" if is_complex else "none"
        return LayerSplitting(
            status, RR, reason=COMPLEX if is_complex else reason, residual=best, separation=separation
        )
    points = [_normalised(A, V)]
    for residual, _, other_A, other_V in scored[1:]:
        # A second point of the fiber fits as well and has another A.
        if residual <= max(10 * best, 1e-12) and _angle(A, other_A) > 1e-6 + 100 * best**0.5:
            points.append(_normalised(other_A, other_V))
            break
    spectra = lapack.svdvals(points[0].A), lapack.svdvals(points[0].V)
    rank_A, rank_V = (int(np.sum(values > max(1e-10, 100 * best) * values[0])) for values in spectra)
    return LayerSplitting("real", RR, tuple(points), rank_A, rank_V, residual=best, separation=separation)


def _angle(a: Array, b: Array) -> float:
    a, b = a / np.linalg.norm(a), b / np.linalg.norm(b)
    return float(min(np.linalg.norm(a - b), np.linalg.norm(a + b)))


def _normalised(A: Array, V: Array) -> LayerMatrices:
    """Scaled so that the first entry of V that is not small is 1, as in the exact splitting."""
    flat = V.ravel()
    lead = flat[np.argmax(np.abs(flat) > 1e-8 * np.abs(flat).max())]
    return LayerMatrices(A * lead, V / lead, RR)


def _from_directions(table: Array, seed: int) -> tuple[float, Array, Array]:
    """(A, V) from the directions of V y or of Aᵀ y, whichever determines its matrix better."""
    d_out, d, _ = table.shape
    rng = np.random.default_rng(seed)
    y = rng.standard_normal((3 * d + 6, d))
    k, l = pair_rows(d)
    G = np.einsum("ns,oms->nom", y[:, k] * y[:, l], table)
    left, values, right = lapack.svd(G, full_matrices=False)
    weights = values[:, 0] / values[:, 0].max()
    results = []
    for name, directions, size in (("V", left[:, :, 0], d_out), ("A", right[:, 0, :], d)):
        if size < 2:
            continue
        projectors = np.eye(size)[None] - directions[:, :, None] * directions[:, None, :]
        rows = (weights[:, None, None, None] * projectors[:, :, :, None] * y[:, None, None, :]).reshape(-1, size * d)
        kernel = null_vector(rows[np.linalg.norm(rows, axis=1) > 1e-14], RR)
        results.append((kernel.separation, name, kernel.vector.reshape(size, d)))
    if not results:
        return 0.0, np.ones((d, d)), np.ones((d_out, d))
    separation, name, matrix = max(results, key=lambda result: result[0])
    if name == "V":
        return separation, _solve_factors(np.moveaxis(table, 1, 0), matrix), matrix
    return separation, matrix.T, _solve_factors(table, matrix).T


def _solve_factors(table: Array, forms: Array) -> Array:
    """The linear forms of least squares, as columns: column m times the rows of ``forms`` gives the quadrics T[m]."""
    units = multiply_forms(np.eye(forms.shape[1])[:, None], forms, RR)
    return lapack.lstsq(units.reshape(len(units), -1).T, table.reshape(len(table), -1).T)


def alternate(
    table: Array, A: Array, V: Array, sweeps: int = SPLITTING_SWEEPS, worthwhile: float = 0.01
) -> tuple[Array, Array]:
    """Alternating least squares for T[n, m] ≈ α_m ν_n until a sweep lowers the residual by less than is worthwhile."""
    last = np.inf
    for _ in range(sweeps):
        A = _solve_factors(np.moveaxis(table, 1, 0), V)
        V = _solve_factors(table, A.T).T
        residual = float(np.linalg.norm(table - quadric_table(A, V, RR)))
        if residual > (1 - worthwhile) * last:
            break
        last = residual
    return A, V


def _rank_one(table: Array) -> list[tuple[float, Array, Array]]:
    """The candidates (k qᵀ, h vᵀ) and (v qᵀ, h kᵀ) for T ≈ h ⊗ q ⊗ B with B indefinite of rank at most 2."""
    h, q, B = _leading_form(table)
    values, vectors = lapack.eigh(B)
    positive, negative = max(values[-1], 0.0), max(-values[0], 0.0)
    root, other = np.sqrt(positive) * vectors[:, -1], np.sqrt(negative) * vectors[:, 0]
    k, v = root + other, root - other
    return [(0.0, np.outer(k, q), np.outer(h, v)), (0.0, np.outer(v, q), np.outer(h, k))]


def _leading_form(table: Array) -> tuple[Array, Array, Array]:
    """h, q and the symmetric B whose product h ⊗ q ⊗ B is a best rank-one guess for T."""
    d_out, d, _ = table.shape
    tensor = symmetric_matrix(table, d, RR)
    h = lapack.svd(tensor.reshape(d_out, -1), full_matrices=False)[0][:, 0]
    slices = np.tensordot(h, tensor, axes=1)
    left, values, right = lapack.svd(slices.reshape(d, -1), full_matrices=False)
    return h, left[:, 0], (values[0] * right[0]).reshape(d, d)


def conjugate_pair(table: Array) -> Array | None:
    """A table h ⊗ q ⊗ B near T with B definite of rank 2: a conjugate pair of complex weights; None if B is not."""
    h, q, B = _leading_form(table)
    roots, vectors = lapack.eigh(B)
    order = np.argsort(-np.abs(roots))[:2]
    if len(order) < 2 or roots[order[0]] * roots[order[1]] <= 0:
        return None
    kept = (vectors[:, order] * roots[order]) @ vectors[:, order].T
    return np.asarray(np.einsum("n,m,s->nms", h, q, kept[pair_rows(len(B))] * pair_orbits(len(B))))
