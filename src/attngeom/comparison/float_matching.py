"""The group element that best carries one float point of weight space to another, and how far it misses."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from attngeom.canonical.least_norm import rough_gauge
from attngeom.comparison.float_refinement import is_explained, refine
from attngeom.comparison.matching import UNDETERMINED, no_match
from attngeom.comparison.powers import RescaledPair
from attngeom.comparison.samples import error_sizes
from attngeom.errors import RangeError, SingularError
from attngeom.exact import lapack
from attngeom.exact.domains import RR, Array
from attngeom.exact.numbers import join_scale, split_scale
from attngeom.limits.rounding import (
    MATCH_AGAIN,
    MATCH_EXACT,
    MATCH_IN_GAUGE,
    MATCH_OVERFLOW,
    MATCH_RANK,
    NOISE_EXPLAINS,
)
from attngeom.network import Head, Symmetry, Weights, identity_symmetry
from attngeom.network.symmetry import Between, HeadOrder, QueryKey, Scale, ValueOutput, tensors_of
from attngeom.network.symmetry.factor import GroupFactor, Tensors
from attngeom.results import Failure


@dataclass(frozen=True, eq=False)
class FloatMatch:
    """A group element g, and how far g · first misses second: max |difference| / max |entry|, the worst tensor.

    ``is_explained`` says that errors of the weights may be the cause, ``is_met`` that no entry is off by 4 errors.
    """

    symmetry: Symmetry
    residual: float
    is_explained: bool
    is_met: bool

    @classmethod
    def of(cls, symmetry: Symmetry, first: Weights, second: Weights, errors: Tensors) -> FloatMatch:
        """What is missed by a given group element, against the errors of the second weights."""
        moved = symmetry.apply(first)
        _check_range(symmetry, first, moved)
        missed = {place: tensors_of(moved)[place] - a for place, a in tensors_of(second).items()}
        is_met = all(bool(np.all(np.abs(missed[place]) <= NOISE_EXPLAINS * a)) for place, a in errors.items())
        # Zero rows and columns have no errors, but what is computed has rounding errors there.
        floors = {place: MATCH_EXACT * np.max(np.abs(a), initial=0.0) for place, a in tensors_of(second).items()}
        rounded = {place: np.where(a > 0, a, floors[place]) for place, a in errors.items()}
        return cls(symmetry, relative_distance(moved, second), is_met or is_explained(missed, rounded), is_met)


def _check_range(symmetry: Symmetry, first: Weights, moved: Weights) -> None:
    """RangeError where a row or column that is not zero vanishes below the smallest float and would meet any zero.

    The action is linear in every tensor, and multiples of group elements give multiples of them: tensors and elements
    of size 1 show which rows and columns of the moved ones are not zero.
    """
    layers = [
        tuple(Head.of({x: split_scale(a)[0] for x, a in head.tensors.items()}) for head in heads)
        for heads in first.layers
    ]
    elements = {
        factor: element if isinstance(factor, HeadOrder) else split_scale(element)[0]
        for factor, element in symmetry.elements.items()
    }
    architecture = first.architecture
    units = Symmetry(architecture, RR, elements).apply(Weights(architecture, RR, tuple(layers)))
    for (_, a), (_, unit) in zip(moved.tensors(), units.tensors()):
        if any(np.any(unit.any(axis=axis) & ~a.any(axis=axis)) for axis in (0, 1)):
            raise RangeError("moved weights leave the range of floats")


@dataclass(frozen=True, eq=False)
class GaugedWeights:
    """Weights, and the group element that leads to about the least norm on their orbit, found once when it is needed.

    ``gauge`` is None if no point of the orbit is least.
    """

    weights: Weights

    @cached_property
    def gauge(self) -> Symmetry | None:
        return rough_gauge(self.weights)

    @property
    def balanced(self) -> Symmetry:
        """The gauge, the identity if there is none."""
        return self.gauge or identity_symmetry(self.weights.architecture, RR)


def match_points(source: GaugedWeights, target: GaugedWeights, tolerance: float) -> FloatMatch | Failure:
    """The g for which g · source is close to target: layer by layer, as in the exact matching, then all layers at once.

    What misses by no more than errors of weights known to the tolerance explain is taken as soon as it is found.
    Solving D_i V_i = λ V'_i D_{i-1} for one D_i after another is cheap, but multiplies errors by the condition of every
    V_i. In the gauge of least norm the D_i are orthogonal, and the orthogonal solution does not magnify the error of
    D_{i-1}: this is tried next.

    >>> from attngeom.network import Architecture, random_symmetry, random_weights
    >>> w = random_weights(Architecture((3, 2, 2), 2), RR, seed=0)
    >>> moved = random_symmetry(w.architecture, RR, seed=1).apply(w)
    >>> match_points(GaugedWeights(w), GaugedWeights(moved), MATCH_EXACT).residual < 1e-12
    True
    """
    first, second = source.weights, target.weights
    with np.errstate(all="ignore"):
        errors = errors_of(second, tolerance)
        direct = _match_directly(first, second, errors)
        if direct is not None and direct.is_explained:
            return direct
        try:
            one, two = source.balanced, target.balanced
            moved = one.apply(first), two.apply(second)
            start = _match(*moved, is_balanced=source.gauge is not None and target.gauge is not None)
            if isinstance(start, Failure):
                return start
            refined = refine(start, *moved)
            residual = relative_distance(refined.apply(moved[0]), moved[1], None)
            symmetry = two.inverse().compose(refined).compose(one)
            if residual < MATCH_AGAIN:
                # Errors of the weights are of equal size in the gauge in which they were given.
                symmetry = refine(symmetry, first, second, errors)
            return FloatMatch.of(symmetry, first, second, errors)
        except (SingularError, RangeError):
            return no_match(first.architecture.num_layers - 1, "the change of basis is singular in double precision")


@dataclass(frozen=True, eq=False)
class FloatAlignment:
    """A symmetry that carries source to target, and how well; refinement may fail in one of the two directions."""

    match: FloatMatch
    source: GaugedWeights
    target: GaugedWeights

    def inverted(self, tolerance: float) -> FloatAlignment:
        """The inverse, refined where it leads: errors may be of another size there. This one if floats are too few."""
        source, target = self.target.weights, self.source.weights
        errors = errors_of(target, tolerance)
        try:
            symmetry = refine(self.match.symmetry.inverse(), source, target, errors)
            return FloatAlignment(FloatMatch.of(symmetry, source, target, errors), self.target, self.source)
        except (SingularError, RangeError):
            return self

    def carrying(self, pair: RescaledPair, places: tuple[int, int]) -> Symmetry:
        """The symmetry between the weights as given, from the first to the second; ``places`` says which is which."""
        source, target = (pair.weights[place] for place in places)
        symmetry = self.match.symmetry
        if self.source.weights is not source:
            symmetry = refine(symmetry.inverse(), source, target)
        return pair.gauges[places[1]].inverse().compose(symmetry).compose(pair.gauges[places[0]])


def align(given: tuple[Weights, Weights], tolerance: float, both: bool) -> FloatAlignment | Failure:
    """The better of the symmetries found from the first weights to the second and, if asked for, back."""
    # On one orbit the longer weights are worse conditioned: what carries them to the shorter ones magnifies errors.
    lengths = [np.linalg.norm(weights.vector()) for weights in given]
    one, two = map(GaugedWeights, given[::-1] if both and lengths[0] > lengths[1] else given)
    match = match_points(one, two, tolerance)
    if not both or (isinstance(match, FloatMatch) and match.is_explained):
        return match if isinstance(match, Failure) else FloatAlignment(match, one, two)
    back = match_points(two, one, tolerance)
    if isinstance(match, Failure) and isinstance(back, Failure):
        return match
    pairs = ((match, (one, two)), (back, (two, one)))
    sides_aligned = [FloatAlignment(side, *points) for side, points in pairs if isinstance(side, FloatMatch)]
    best = min(sides_aligned, key=lambda aligned: aligned.match.residual)
    return min(best, best.inverted(tolerance), key=lambda aligned: aligned.match.residual)


def errors_of(weights: Weights, tolerance: float) -> Tensors:
    """The root mean square errors of all entries of weights known to a tolerance."""
    return {place: error_sizes(a, tolerance) for place, a in tensors_of(weights).items()}


def _match_directly(first: Weights, second: Weights, errors: Tensors) -> FloatMatch | None:
    """What is found in the gauges in which the weights are given, refined if that is worth it."""
    try:
        symmetry = _match(first, second, is_balanced=False)
        if isinstance(symmetry, Failure):
            return None
        if MATCH_EXACT < relative_distance(symmetry.apply(first), second) < MATCH_IN_GAUGE:
            symmetry = refine(symmetry, first, second)
        return FloatMatch.of(symmetry, first, second, errors)
    except (SingularError, RangeError):
        return None


class _NoMatchError(Exception):
    """Why the heads of a layer cannot be matched."""


HeadPair = tuple[Head, Head, float]
"""A head, the one that it goes to, and the λ by which λ A is the attention matrix of that one."""


def _match(first: Weights, second: Weights, is_balanced: bool) -> Symmetry | Failure:
    """Layer by layer: which head goes where and with which scale, the basis behind them, the gauge of each head."""
    architecture = first.architecture
    D: Array | None = None
    elements: dict[GroupFactor, Any] = {}
    for index, heads in enumerate(first.layers):
        moved = [
            head if D is None else Head(head.Q @ D, head.K @ D, head.V @ D, head.O) for head in second.layers[index]
        ]
        is_free = not architecture.residual and index < architecture.num_layers - 1
        try:
            order, pairs = _pair_heads(heads, moved, architecture.rule.has_scale)
            D = _find_basis(pairs, is_balanced) if is_free else None
            for place, pair in enumerate(pairs):
                C, B = _find_gauges(pair, D)
                elements[QueryKey(index, place, len(C))] = C
                if architecture.rule.has_scale:
                    elements[Scale(index, place)] = np.array([[pair[2]]])
                if B is not None:
                    elements[ValueOutput(index, place, len(B))] = B
        except _NoMatchError as reason:
            return no_match(index, str(reason))
        elements[HeadOrder(index, architecture.heads)] = order
        if D is not None:
            elements[Between(index, len(D))] = D
    return Symmetry(architecture, RR, elements)


def _pair_heads(heads: tuple[Head, ...], moved: list[Head], has_scale: bool) -> tuple[tuple[int, ...], list[HeadPair]]:
    """The order of the heads of a layer, and each with the one that it goes to."""
    limits = ((heads, np.inf), (moved, MATCH_OVERFLOW))
    if not all(np.all(np.abs(x) < top) for side, top in limits for head in side for x in head.tensors.values()):
        raise _NoMatchError("the change of basis leaves the range of floats")
    order = _match_heads(heads, moved)
    if order is None:
        raise _NoMatchError("an attention matrix is zero")
    others = [moved[place] for place in order]
    pairs = [(head, other, _scale(head, other) if has_scale else 1.0) for head, other in zip(heads, others)]
    if not all(np.isfinite(scale) and scale for *_, scale in pairs):
        raise _NoMatchError("the scales of the attention matrices do not fit")
    return order, pairs


def _find_basis(pairs: list[HeadPair], is_balanced: bool) -> Array:
    """The D with D V_h = λ_h V'_h for all heads of a layer, orthogonal where both are in the gauge of least norm."""
    values = np.concatenate([head.value_matrix(RR) for head, *_ in pairs], axis=1)
    moved = np.concatenate([other.value_matrix(RR) * scale for _, other, scale in pairs], axis=1)
    if _rank(values) < values.shape[0] or _rank(moved) < values.shape[0]:
        raise _NoMatchError(UNDETERMINED)
    return _solve_orthogonal(values, moved) if is_balanced else lapack.solve_left(values, moved, MATCH_RANK)


def _find_gauges(pair: HeadPair, D: Array | None) -> tuple[Array, Array | None]:
    """C and B of one head; B is None where V is one matrix."""
    head, other, scale = pair
    C, B = _solve_gauge(head.K, other.K, head.Q.T * scale, other.Q.T), None
    if head.O is not None and other.O is not None:
        B = _solve_gauge(head.V, other.V * scale, head.O if D is None else D @ head.O, other.O)
    if _rank(C) < len(C) or (B is not None and _rank(B) < len(B)):
        raise _NoMatchError("the factors of a head are not related by an invertible matrix")
    return C, B


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


def _attention(head: Head) -> tuple[Array, int]:
    """(A', e) with A = A' 2^e: products of factors of size 1 neither overflow nor vanish."""
    (Q, e), (K, f) = split_scale(head.Q), split_scale(head.K)
    A, g = split_scale(K.T @ Q)
    return A, e + f + g


def _match_heads(heads: tuple[Head, ...], moved: list[Head]) -> tuple[int, ...] | None:
    """The order in which the attention matrices of the heads are closest to proportional; None if one is zero."""
    first, second = (np.stack([_attention(head)[0].ravel() for head in side]) for side in (heads, moved))
    sizes, moved_sizes = np.linalg.norm(first, axis=1), np.linalg.norm(second, axis=1)
    if not np.all(sizes) or not np.all(moved_sizes):
        return None
    if len(heads) == 1:
        return (0,)
    from scipy.optimize import linear_sum_assignment  # slow to load

    cosines = np.abs((first / sizes[:, None]) @ (second / moved_sizes[:, None]).T)
    _, places = linear_sum_assignment(-cosines)
    return tuple(int(place) for place in places)


def _scale(head: Head, moved: Head) -> float:
    """The λ that brings λ A closest to the attention matrix of the moved head; it may leave the range of floats."""
    (A, e), (moved_A, f) = _attention(head), _attention(moved)
    return float(join_scale(np.sum(A * moved_A) / np.sum(A * A), f - e))


def _rank(a: Array) -> int:
    if not np.all(np.isfinite(a)):
        return 0
    return int(lapack.matrix_rank(a, rtol=MATCH_RANK))


def _solve_orthogonal(S: Array, T: Array) -> Array:
    """The orthogonal X with X S ≈ T of least squares."""
    left, _, right = lapack.svd(T @ S.T)
    return np.asarray(left @ right)


def _solve_gauge(P: Array, P_moved: Array, R: Array, R_moved: Array) -> Array:
    """A matrix B with B P ≈ P_moved and R_moved B ≈ R; see :func:`attngeom.comparison.matching.solve_gauge`."""
    size = P.shape[0]
    if _rank(P) == size:
        return lapack.solve_left(P, P_moved, MATCH_RANK)
    if _rank(R_moved) == size:
        return lapack.lstsq(R_moved, R, rcond=MATCH_RANK)
    left = lapack.svd(P)[0]
    rank = _rank(P)
    span, complement = left[:, :rank], left[:, rank:]
    on_span = P_moved @ lapack.pinv(P, rcond=MATCH_RANK) @ span
    kernel = lapack.svd(R_moved)[2][_rank(R_moved) :].T
    mixing = np.eye(kernel.shape[1], complement.shape[1])
    on_complement = lapack.pinv(R_moved, rcond=MATCH_RANK) @ R @ complement + kernel @ mixing
    return np.asarray(np.concatenate([on_span, on_complement], axis=1) @ left.T)
