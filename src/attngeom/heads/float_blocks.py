"""The common block form of many matrices in floats: B, G and sizes with T_i = B · diag(blocks) · G for all i.

Start: eigenvectors of T_2 T_1⁻¹ lie in one head each, and T_3 T_1⁻¹ couples those of one head; where T_1 is not
square or no gap shows, the near kernel of X T_i = T_i Y. Then least squares over all slices, by conjugate gradients.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from attngeom.errors import RangeError, SingularError
from attngeom.exact import lapack
from attngeom.exact.domains import Array
from attngeom.limits.memory import DENSE_KERNEL
from attngeom.limits.rounding import LEAST_GAP, WIDE_GAP
from attngeom.limits.trials import BLOCK_GRADIENT_STEPS, BLOCK_NEWTON_STEPS, BLOCK_SCALINGS, SLICE_TRIPLES


@dataclass(frozen=True, eq=False)
class Blocks:
    """T_i ≈ B · diag(C_i) · G: ``sizes`` are (rows, columns) of the diagonal blocks.

    ``residual`` is the relative size of all that lies outside the blocks. ``gap`` is the ratio between the weakest
    coupling inside a head and the strongest between two. ``amplification``: a random error of the slices of relative
    size η moves the projectors onto the blocks by about this times η.
    """

    B: Array
    G: Array
    sizes: tuple[tuple[int, int], ...]
    residual: float
    gap: float
    amplification: float

    def spans(self) -> list[tuple[slice, slice]]:
        """The rows and columns of each block."""
        return _spans(self.sizes)


def _spans(sizes: tuple[tuple[int, int], ...]) -> list[tuple[slice, slice]]:
    rows, columns = (np.cumsum([0, *side]) for side in zip(*sizes))
    return [(slice(*rows[k : k + 2]), slice(*columns[k : k + 2])) for k in range(len(sizes))]


def block_form(slices: Array, heads: int | None, seed: int) -> Blocks | None:
    """The finest common block form of the slices (k, n, m), k ≥ 4, with ``heads`` blocks if that is given.

    None if no form was found whose couplings show a gap.
    """
    rng = np.random.default_rng(seed)
    n, m = slices.shape[1:]
    L, R = _whiten(slices)
    even = lapack.solve(L, slices) @ lapack.inv(R)
    best = _from_eigenvectors(even, heads, rng) if n == m else None
    if (best is None or best[2] < LEAST_GAP) and n * n + m * m <= DENSE_KERNEL:
        best = _from_kernel(even, heads, rng) or best
    if best is None:
        return None
    B, G, gap, sizes = best
    blocks = _refine(even, B, G, sizes, gap, _Metric(L, R, float(np.linalg.norm(slices))), rng)
    return None if blocks is None else replace(blocks, B=L @ blocks.B, G=blocks.G @ R)


def _whiten(slices: Array) -> tuple[Array, Array]:
    """Symmetric L, R for which the sums of T Tᵀ and of Tᵀ T over T = L⁻¹ T_i R⁻¹ are near multiples of 1.

    Over many slices that makes the columns of different heads nearly orthogonal, so all later systems are well
    conditioned however oblique the heads are.
    """
    k, n, m = slices.shape
    L, R = np.eye(n), np.eye(m)
    even = slices / np.linalg.norm(slices) * np.sqrt(k * n)
    for _ in range(BLOCK_SCALINGS):
        for side in (0, 1):
            transposed = even if side == 0 else np.swapaxes(even, 1, 2)
            gram = np.einsum("tab,tcb->ac", transposed, transposed, optimize=True) / k
            values, vectors = lapack.eigh(gram)
            roots = np.sqrt(np.maximum(values, np.finfo(float).eps * values[-1]))
            root = (vectors * roots) @ vectors.T
            inverse = (vectors / roots) @ vectors.T
            if side == 0:
                L, even = L @ root, inverse @ even
            else:
                R, even = root @ R, even @ inverse
    return L, R


_Start = tuple[Array, Array, float, tuple[tuple[int, int], ...]]


def _from_eigenvectors(slices: Array, heads: int | None, rng: np.random.Generator) -> _Start | None:
    """Heads from eigenvectors of T_2 T_1⁻¹, for square slices with an invertible one."""
    n = slices.shape[1]
    best: tuple[float, Array, Array, list[list[int]]] | None = None
    for _ in range(SLICE_TRIPLES):
        mixed = np.tensordot(rng.standard_normal((4, len(slices))), slices, axes=1)
        try:
            # M = T_2 T_1⁻¹ and two more, by one factorization of T_1ᵀ.
            moved = lapack.solve(mixed[0].T, np.concatenate([x.T for x in mixed[1:]], axis=1)).T.reshape(3, n, n)
            E = lapack.eig(moved[0])[1]
            inner = lapack.solve(E, moved[1:] @ E)
        except (RangeError, SingularError):
            continue
        if not np.all(np.isfinite(inner)):
            continue
        couplings = np.sqrt(np.sum(np.abs(inner) ** 2, axis=0))
        groups, gap = _cluster(np.maximum(couplings, couplings.T), heads)
        if best is None or gap > best[0]:
            best = gap, E, mixed[0], groups
        if gap > WIDE_GAP:
            break
    if best is None:
        return None
    gap, E, first, groups = best
    B = np.concatenate([_real_span(E[:, group]) for group in groups], axis=1)
    try:
        G = lapack.solve(B, first)
    except (RangeError, SingularError):
        return None
    return _balanced(B, G, tuple((len(group), len(group)) for group in groups), gap)


def _balanced(B: Array, G: Array, sizes: tuple[tuple[int, int], ...], gap: float) -> _Start:
    """Orthonormal rows in each block of G: the blocks C_i take what is multiplied out."""
    G = G.copy()
    stop = 0
    for _, columns in sizes:
        start, stop = stop, stop + columns
        G[start:stop] = lapack.qr(G[start:stop].T)[0].T
    return B, G, gap, sizes


def _real_span(vectors: Array) -> Array:
    """A real orthonormal basis of the span of complex vectors that come in conjugate pairs."""
    left = lapack.svd(np.concatenate([vectors.real, vectors.imag], axis=1), full_matrices=False)[0]
    return left[:, : vectors.shape[1]]


def _cluster(couplings: Array, heads: int | None) -> tuple[list[list[int]], float]:
    """Groups from a maximum spanning tree of the couplings, cut at the widest gap or into ``heads`` groups.

    Numbers at which to cut are never fixed: only ratios of couplings count.
    """
    n = len(couplings)
    if n == 1 or (heads is not None and heads > n):
        return [[index] for index in range(n)], 1.0
    tree = _spanning_tree(couplings)
    # The first number stands for a vector with itself: heads of width one have no other coupling.
    own = float(np.sqrt(np.mean(np.diagonal(couplings) ** 2)))
    strengths = np.array([max(own, tree[0][0]), *(strength for strength, _, _ in tree)])
    # Rounding cannot resolve anything below ε times the largest coupling.
    strengths = np.maximum(strengths, np.finfo(float).eps * strengths[0])
    steps = strengths[:-1] / strengths[1:]
    if heads is None:
        place = int(np.argmax(steps)) if steps.max() > LEAST_GAP else n - 1
    else:
        place = n - heads
    gap = float(steps[place]) if place < n - 1 else float(steps.max())
    labels = list(range(n))
    for _, i, j in tree[:place]:
        old, new = labels[i], labels[j]
        labels = [new if label == old else label for label in labels]
    groups: dict[int, list[int]] = {}
    for index, label in enumerate(labels):
        groups.setdefault(label, []).append(index)
    return list(groups.values()), gap


def _spanning_tree(couplings: Array) -> list[tuple[float, int, int]]:
    """The edges (strength, i, j) of a maximum spanning tree, strongest first (Prim)."""
    n = len(couplings)
    inside = np.zeros(n, dtype=bool)
    inside[0] = True
    strength, origin = couplings[0].copy(), np.zeros(n, dtype=int)
    edges = []
    for _ in range(n - 1):
        strength[inside] = -1.0
        j = int(np.argmax(strength))
        edges.append((float(strength[j]), int(origin[j]), j))
        inside[j] = True
        better = couplings[j] > strength
        strength[better], origin[better] = couplings[j][better], j
    return sorted(edges, reverse=True)


def _from_kernel(slices: Array, heads: int | None, rng: np.random.Generator) -> _Start | None:
    """Heads from the pairs (X, Y) of least Σ ‖X T_i − T_i Y‖²: a random one has one eigenvalue for each head."""
    _, n, m = slices.shape
    normal = np.zeros((n * n + m * m,) * 2)
    # Entries X_ik meet X_jl where i = j, and Y likewise; X meets Y through T_ij T_kl.
    normal[: n * n, : n * n] = np.kron(np.eye(n), np.einsum("tab,tcb->ac", slices, slices))
    normal[n * n :, n * n :] = np.kron(np.einsum("tab,tac->bc", slices, slices), np.eye(m))
    cross = -np.einsum("tkj,til->iklj", slices, slices).reshape(n * n, m * m)
    normal[: n * n, n * n :], normal[n * n :, : n * n] = cross, cross.T
    values, vectors = lapack.eigh(normal)
    # Eigenvalues are squares, known to ε of the largest: nothing below its root is resolved.
    values = np.sqrt(np.maximum(values, 0))
    floor = 10 * np.sqrt(np.finfo(float).eps) * values[-1]
    if heads is None:
        steps = np.maximum(values[1 : 1 + min(n, m)], floor) / np.maximum(values[: min(n, m)], floor)
        heads = int(np.argmax(steps)) + 1
    if heads > min(n, m):
        return None
    gap = float(max(values[heads], floor) / max(values[heads - 1], floor))
    kernel = vectors[:, :heads] @ rng.standard_normal(heads)
    X, Y = kernel[: n * n].reshape(n, n), kernel[n * n :].reshape(m, m)
    sides = [_eigenspaces(matrix, heads) for matrix in (X, Y)]
    if sides[0] is None or sides[1] is None:
        return None
    B, G = (np.concatenate([space for _, space in side], axis=1) for side in sides if side is not None)
    sizes = tuple((a.shape[1], b.shape[1]) for (_, a), (_, b) in zip(*sides))
    if B.shape != (n, n) or G.shape != (m, m):
        return None
    try:
        return _balanced(B, lapack.inv(G), sizes, gap)
    except (RangeError, SingularError):
        return None


def _eigenspaces(matrix: Array, heads: int) -> list[tuple[float, Array]] | None:
    """The real invariant subspaces of a matrix whose eigenvalues form ``heads`` clusters on the line, in order."""
    values, vectors = lapack.eig(matrix)
    order = np.argsort(values.real)
    if len(order) < heads:
        return None
    cuts = sorted(np.argsort(-np.diff(values.real[order]))[: heads - 1] + 1)
    parts = np.split(order, cuts)
    return [(float(values.real[part].mean()), _real_span(vectors[:, part])) for part in parts]


def _refine(
    slices: Array,
    B: Array,
    G: Array,
    sizes: tuple[tuple[int, int], ...],
    gap: float,
    metric: _Metric,
    rng: np.random.Generator,
) -> Blocks | None:
    """Newton steps for off-diagonal blocks zero, each by least squares over all slices; never worse than before."""
    form = _Form(sizes)
    try:
        C, residual = form.blocks_of(slices, B, G)
        for _ in range(BLOCK_NEWTON_STEPS):
            X, Y = form.solve(C)
            moved_B, moved_G = B + B @ X, G + Y @ G
            moved_C, moved = form.blocks_of(slices, moved_B, moved_G)
            if not moved < residual:
                break
            done = moved > residual / 4
            B, G, C, residual = moved_B, moved_G, moved_C, moved
            if done:
                break
        amplification = form.amplification(B, G, C, metric, rng)
    except (RangeError, SingularError):
        return None
    return Blocks(B, G, sizes, residual, gap, amplification)


@dataclass(frozen=True, eq=False)
class _Metric:
    """Slices are L T R for the slices T that are worked with; ``size`` is the norm of all of them."""

    L: Array
    R: Array
    size: float


class _Form:
    """The linear algebra of one block pattern: X D_i + D_i Y off the diagonal, D_i the diagonal blocks of C_i."""

    def __init__(self, sizes: tuple[tuple[int, int], ...]) -> None:
        self.sizes = sizes
        n, m = (sum(size[k] for size in sizes) for k in (0, 1))
        rows, columns = (np.repeat(np.arange(len(sizes)), [size[k] for size in sizes]) for k in (0, 1))
        self.off = rows[:, None] != columns[None, :]
        self.off_rows, self.off_columns = rows[:, None] != rows[None, :], columns[:, None] != columns[None, :]
        self.shape, self.spans = (n, m), _spans(sizes)

    def blocks_of(self, slices: Array, B: Array, G: Array) -> tuple[Array, float]:
        """C_i with T_i = B C_i G, and the relative size of their off-diagonal blocks."""
        count, (n, m) = len(slices), self.shape
        # One factorization of each side for all slices, which lie side by side.
        left = lapack.solve(B, slices.transpose(1, 0, 2).reshape(n, count * m)).reshape(n, count, m)
        C = lapack.solve(G.T, left.transpose(2, 1, 0).reshape(m, count * n)).reshape(m, count, n).transpose(1, 2, 0)
        total = float(np.linalg.norm(C))
        return C, float(np.linalg.norm(C * self.off)) / total if total else np.inf

    def _apply(self, X: Array, Y: Array, D: list[Array]) -> Array:
        out = np.zeros((len(D[0]), *self.shape))
        for (rows, columns), blocks in zip(self.spans, D):
            out[:, :, columns] += X[:, rows] @ blocks
            out[:, rows] += blocks @ Y[columns]
        out *= self.off
        return out

    def _adjoint(self, R: Array, D: list[Array]) -> tuple[Array, Array]:
        n, m = self.shape
        X, Y = np.zeros((n, n)), np.zeros((m, m))
        for (rows, columns), blocks in zip(self.spans, D):
            X[:, rows] += np.tensordot(R[:, :, columns], blocks, axes=((0, 2), (0, 2)))
            Y[columns] += np.tensordot(blocks, R[:, rows], axes=((0, 1), (0, 1)))
        return X * self.off_rows, Y * self.off_columns

    def solve(self, C: Array) -> tuple[Array, Array]:
        """The off-diagonal X, Y of least Σ ‖off(C_i − X D_i − D_i Y)‖², by conjugate gradients."""
        D = [C[:, rows, columns] for rows, columns in self.spans]
        n, m = self.shape
        X, Y = np.zeros((n, n)), np.zeros((m, m))
        R = C * self.off
        GX, GY = self._adjoint(R, D)
        PX, PY = GX, GY
        size = start = float(np.sum(GX**2) + np.sum(GY**2))
        for _ in range(BLOCK_GRADIENT_STEPS):
            if size <= 1e-12 * start or size == 0:
                break
            image = self._apply(PX, PY, D)
            step = size / float(np.sum(image**2))
            X, Y, R = X + step * PX, Y + step * PY, R - step * image
            GX, GY = self._adjoint(R, D)
            last = size
            size = float(np.sum(GX**2) + np.sum(GY**2))
            PX, PY = GX + size / last * PX, GY + size / last * PY
        return X, Y

    def amplification(self, B: Array, G: Array, C: Array, metric: _Metric, rng: np.random.Generator) -> float:
        """How far the projectors move under a random error of the slices, relative to its relative size."""
        noise = np.asarray(rng.standard_normal(C.shape))
        noise = noise * (metric.size / float(np.linalg.norm(noise)))
        left = metric.L @ B
        moved, _ = self.blocks_of(noise, left, G @ metric.R)
        X, _ = self.solve(C * ~self.off + moved * self.off)
        B, inverse = left, lapack.inv(left)
        worst = 0.0
        for rows, _ in self.spans:
            # The projector B E B⁻¹ onto the block moves by B (X E − E X) B⁻¹.
            change = B @ X[:, rows] @ inverse[rows] - B[:, rows] @ X[rows] @ inverse
            worst = max(worst, float(np.linalg.norm(change)))
        return worst
