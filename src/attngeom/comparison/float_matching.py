"""The group element that best carries one float point of weight space to another, and how far it misses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment

from attngeom.canonical.least_norm import rough_gauge
from attngeom.comparison.float_refinement import refine
from attngeom.comparison.matching import UNDETERMINED, no_match
from attngeom.errors import RangeError, SingularError
from attngeom.exact import lapack
from attngeom.exact.domains import RR, Array
from attngeom.network import Head, Symmetry, Weights, identity_symmetry
from attngeom.network.symmetry import Between, HeadOrder, QueryKey, Scale, ValueOutput
from attngeom.network.symmetry.factor import GroupFactor
from attngeom.results import Failure

RANK_CUT = 1e-13
LARGE_MISFIT = 0.5
"""A symmetry that misses by more than this is not worth a second refinement."""
LARGEST = 1e60
"""Entries beyond this mean that a chain of changes of basis has run away; their products would overflow."""


@dataclass(frozen=True, eq=False)
class FloatMatch:
    """A group element g, and how far g · first misses second: max |difference| / max |entry|, the worst tensor.

    ``gauge`` brings second to about the least norm on its orbit, the identity if there is no least one.
    """

    symmetry: Symmetry
    residual: float
    gauge: Symmetry


def match_floats(first: Weights, second: Weights) -> FloatMatch | Failure:
    """The g for which g · first is close to second: layer by layer, as in the exact matching, then all layers at once.

    Solving D_i V_i = λ V'_i D_{i-1} for one D_i after another multiplies errors by the condition of every V_i. In the
    gauge of least norm the D_i are orthogonal, and the orthogonal solution does not magnify the error of D_{i-1}.

    >>> from attngeom.network import Architecture, random_symmetry, random_weights
    >>> w = random_weights(Architecture((3, 2, 2), 2), RR, seed=0)
    >>> match_floats(w, w.act(random_symmetry(w.architecture, RR, seed=1))).residual < 1e-12
    True
    """
    with np.errstate(all="ignore"):
        try:
            gauges = [rough_gauge(weights) for weights in (first, second)]
            one, two = (gauge or identity_symmetry(first.architecture, RR) for gauge in gauges)
            moved = one.apply(first), two.apply(second)
            start = _match(*moved, is_balanced=None not in gauges)
            if isinstance(start, Failure):
                return start
            found = refine(start, *moved)
            misfit = relative_distance(found.apply(moved[0]), moved[1], None)
            symmetry = two.inverse().compose(found).compose(one)
            if misfit < LARGE_MISFIT:
                # Errors of the weights are of equal size in the gauge in which they were given.
                symmetry = refine(symmetry, first, second)
            residual = relative_distance(symmetry.apply(first), second)
        except (SingularError, RangeError):
            return no_match(first.architecture.num_layers - 1, "the change of basis is singular in double precision")
    return FloatMatch(symmetry, residual, two)


def _match(first: Weights, second: Weights, is_balanced: bool) -> Symmetry | Failure:
    architecture = first.architecture
    D: Array | None = None
    elements: dict[GroupFactor, Any] = {}
    for index, heads in enumerate(first.layers):
        moved = [
            head if D is None else Head(head.Q @ D, head.K @ D, head.V @ D, head.O) for head in second.layers[index]
        ]
        if not all(np.all(np.abs(x) < LARGEST) for head in moved for x in head.tensors.values()):
            return no_match(index, "the change of basis leaves the range of floats")
        order = _match_heads(heads, moved)
        if order is None:
            return no_match(index, "an attention matrix is zero")
        pairs = [(head, moved[order[place]]) for place, head in enumerate(heads)]
        scales = [_scale(*pair) if architecture.rule.has_scale else 1.0 for pair in pairs]
        if not all(np.isfinite(scales)) or 0.0 in scales:
            return no_match(index, "the scales of the attention matrices do not fit")
        free = not architecture.residual and index < architecture.num_layers - 1
        values = np.concatenate([head.value_matrix(RR) for head, _ in pairs], axis=1)
        D_next = np.eye(values.shape[0])
        if free:
            moved_values = np.concatenate([pair[1].value_matrix(RR) * s for pair, s in zip(pairs, scales)], axis=1)
            if _rank(values) < values.shape[0] or _rank(moved_values) < values.shape[0]:
                return no_match(index, UNDETERMINED)
            D_next = (_solve_orthogonal if is_balanced else _solve_left)(values, moved_values)
        for place, ((head, other), scale) in enumerate(zip(pairs, scales)):
            C = _solve_gauge(head.K, other.K, head.Q.T * scale, other.Q.T)
            B = None
            if head.O is not None and other.O is not None:
                B = _solve_gauge(head.V, other.V * scale, D_next @ head.O, other.O)
            if _rank(C) < len(C) or (B is not None and _rank(B) < len(B)):
                return no_match(index, "the factors of a head are not related by an invertible matrix")
            elements[QueryKey(index, place, len(C))] = C
            if architecture.rule.has_scale:
                elements[Scale(index, place)] = np.array([[scale]])
            if B is not None:
                elements[ValueOutput(index, place, len(B))] = B
        elements[HeadOrder(index, architecture.heads)] = order
        if free:
            elements[Between(index, len(D_next))] = D_next
        D = D_next if free else None
    return Symmetry(architecture, RR, elements)


def relative_distance(first: Weights, second: Weights, order: float | None = np.inf) -> float:
    """‖difference‖ / ‖tensor‖ of the worst tensor: largest entries, or Euclidean norms if ``order`` is None."""
    worst = 0.0
    for (_, a), (_, b) in zip(first.tensors(), second.tensors()):
        size, gap = (float(np.linalg.norm(x.ravel(), order)) for x in (b, a - b))
        if not np.isfinite(gap):
            return np.inf
        if gap:
            worst = max(worst, gap / size if size else np.inf)
    return worst


def _match_heads(heads: tuple[Head, ...], moved: list[Head]) -> tuple[int, ...] | None:
    """The order in which the attention matrices of the heads are closest to proportional."""
    first = np.stack([head.attention_matrix(RR).ravel() for head in heads])
    second = np.stack([head.attention_matrix(RR).ravel() for head in moved])
    sizes, moved_sizes = np.linalg.norm(first, axis=1), np.linalg.norm(second, axis=1)
    if not np.all(sizes) or not np.all(moved_sizes):
        return None
    cosines = np.abs((first / sizes[:, None]) @ (second / moved_sizes[:, None]).T)
    # Heads beyond the range of floats have no angle to any other.
    _, places = linear_sum_assignment(-np.nan_to_num(cosines, posinf=0.0, neginf=0.0))
    return tuple(int(place) for place in places)


def _scale(head: Head, moved: Head) -> float:
    """The λ that brings λ A closest to the attention matrix of the moved head."""
    A, moved_A = head.attention_matrix(RR), moved.attention_matrix(RR)
    return float(np.sum(A * moved_A) / np.sum(A * A))


def _rank(a: Array) -> int:
    if not np.all(np.isfinite(a)):
        return 0
    return int(lapack.matrix_rank(a, rtol=RANK_CUT))


def _solve_left(S: Array, T: Array) -> Array:
    """The X with X S ≈ T of least squares."""
    return lapack.lstsq(S.T, T.T, rcond=RANK_CUT).T


def _solve_orthogonal(S: Array, T: Array) -> Array:
    """The orthogonal X with X S ≈ T of least squares."""
    left, _, right = lapack.svd(T @ S.T)
    return np.asarray(left @ right)


def _solve_gauge(P: Array, P_moved: Array, R: Array, R_moved: Array) -> Array:
    """A matrix B with B P ≈ P_moved and R_moved B ≈ R; see :func:`attngeom.comparison.gauges.solve_gauge`."""
    size = P.shape[0]
    if _rank(P) == size:
        return _solve_left(P, P_moved)
    if _rank(R_moved) == size:
        return lapack.lstsq(R_moved, R, rcond=RANK_CUT)
    left = lapack.svd(P)[0]
    rank = _rank(P)
    span, complement = left[:, :rank], left[:, rank:]
    on_span = P_moved @ lapack.pinv(P, rcond=RANK_CUT) @ span
    kernel = lapack.svd(R_moved)[2][_rank(R_moved) :].T
    mixing = np.eye(kernel.shape[1], complement.shape[1])
    on_complement = lapack.pinv(R_moved, rcond=RANK_CUT) @ R @ complement + kernel @ mixing
    return np.asarray(np.concatenate([on_span, on_complement], axis=1) @ left.T)
