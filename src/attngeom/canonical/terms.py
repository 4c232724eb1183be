"""A layer as a sum of terms with different attention matrices: what remains of its heads when their gauges are gone.

Heads with the same attention matrix A (up to scale, where attention is linear in the scores) act as one head with the
sum of their value maps W; where A W says nothing a head adds nothing. What is left does not depend on the order of the
heads, on their factorizations Kᵀ Q and O V, or on their scales.

Gauges are echelon: one representative of an orbit of GL, with an identity matrix in chosen columns.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from attngeom.exact import lapack
from attngeom.exact.domains import Array, Domain
from attngeom.exact.numbers import join_scale, split_scale
from attngeom.groups.pivots import choose_pivots, first_large
from attngeom.limits.rounding import CHOICE_SHARE, GAUGE_CLOSE_CALL, GAUGE_RANK, HEADS_CLOSE_CALL, HEADS_SAME
from attngeom.network import Head


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


EPSILON = float(np.finfo(np.float64).eps)


@dataclass(frozen=True, eq=False)
class Scaled:
    """array · 2^exponent; ``noise`` is about ‖rounding errors‖ / ‖array‖. Over exact domains both are 0."""

    array: Array
    exponent: int = 0
    noise: float = 0.0

    @property
    def is_zero(self) -> bool:
        """Whether nothing is left but rounding errors."""
        return self.noise >= 1 or not np.any(self.array)

    def split(self, domain: Domain) -> Scaled:
        """The same matrix with entries of size one."""
        if domain.is_exact:
            return self
        unit, exponent = split_scale(self.array)
        return Scaled(unit, self.exponent + exponent, self.noise)

    def join(self, exponent: int = 0) -> Array:
        """The matrix divided by 2^exponent; entries beyond the range of floats become infinite."""
        return self.array if self.exponent == exponent else join_scale(self.array, self.exponent - exponent)

    @property
    def fits(self) -> bool:
        """Whether floats hold the matrix with all its digits."""
        return np.array_equal(join_scale(self.join(), -self.exponent), self.array)

    def transposed(self) -> Scaled:
        return Scaled(self.array.T, self.exponent, self.noise)


def multiply(domain: Domain, *factors: Scaled) -> Scaled:
    """The product of matrices, with what rounding contributes where they cancel.

    >>> from attngeom.exact import RR
    >>> huge = Scaled(np.array([[1e300]])).split(RR)
    >>> multiply(RR, huge, huge, huge).exponent
    2990
    """
    total = factors[0]
    for factor in factors[1:]:
        array = domain.matmul(total.array, factor.array)
        noise = 0.0
        if not domain.is_exact:
            sizes = float(np.linalg.norm(total.array) * np.linalg.norm(factor.array))
            size = float(np.linalg.norm(array))
            noise = (EPSILON + total.noise + factor.noise) * sizes / size if size else 0.0
        total = Scaled(array, total.exponent + factor.exponent, noise).split(domain)
    return total


def add(domain: Domain, terms: list[Scaled]) -> Scaled:
    """The sum of matrices of one shape."""
    if len(terms) == 1:
        return terms[0]
    top = max((term.exponent for term in terms if not term.is_zero), default=0)
    parts = [term.join(top) for term in terms]
    array = domain.reduce(np.sum(parts, axis=0))
    noise = 0.0
    if not domain.is_exact:
        errors = sum((EPSILON + term.noise) * float(np.linalg.norm(part)) for term, part in zip(terms, parts))
        size = float(np.linalg.norm(array))
        noise = errors / size if size else 0.0
    return Scaled(array, top, noise).split(domain)


@dataclass(frozen=True, eq=False)
class Maps:
    """What ``heads`` heads with one attention matrix Kᵀ Q do: the value map W is their sum."""

    K: Scaled
    Q: Scaled
    W: Scaled
    heads: int = 1

    @classmethod
    def of(cls, head: Head, domain: Domain) -> Maps:
        K, Q, V = (Scaled(matrix).split(domain) for matrix in (head.K, head.Q, head.V))
        return cls(K, Q, V if head.O is None else multiply(domain, Scaled(head.O).split(domain), V))


@dataclass(frozen=True, eq=False)
class AttentionTerm:
    """A = Kᵀ Q, with Q (α×r) the identity at ``query_pivots``, and the value map W of ``heads`` heads.

    ``scale_pivot`` is the place of the entry 1 in K where the scale of A is free, else None.
    """

    K: Scaled
    Q: Array
    W: Scaled
    query_pivots: tuple[int, ...]
    scale_pivot: tuple[int, int] | None
    heads: int


def layer_terms(
    layer: list[Maps], embedding: Scaled, has_scale: bool, domain: Domain
) -> tuple[list[AttentionTerm], bool]:
    """The terms of a layer whose inputs are ``embedding`` times coordinates, in canonical order.

    Also whether every choice was clear; over exact domains it always is.
    """
    terms: list[AttentionTerm] = []
    is_clear = True
    for maps in layer:
        term, clear = _term(maps, embedding, has_scale, domain)
        is_clear = is_clear and clear
        if term is not None:
            terms.append(term)
    return _merge_exact(terms, domain) if domain.is_exact else _merge_floats(terms, is_clear, domain)


def _term(maps: Maps, embedding: Scaled, has_scale: bool, domain: Domain) -> tuple[AttentionTerm | None, bool]:
    """The term of one attention matrix, None if it adds nothing."""
    K, Q, W = (multiply(domain, x, embedding) for x in (maps.K, maps.Q, maps.W))
    A = multiply(domain, K.transposed(), Q)
    if W.is_zero or (has_scale and A.is_zero):
        return None, True
    if A.is_zero:
        A = Scaled(domain.zeros(A.array.shape))
    gauge = row_gauge(A.array, domain, len(maps.K.array), A.noise)
    K = Scaled(gauge.basis.T, A.exponent, A.noise)
    if not has_scale:
        return AttentionTerm(K.split(domain), gauge.rows, W, gauge.pivots, None, maps.heads), gauge.is_clear
    flat = K.array.ravel()
    position, clear = (domain.pivot(flat), True) if domain.is_exact else first_large(flat)
    place = (position // K.array.shape[1], position % K.array.shape[1])
    scale = K.array[place]
    W = Scaled(domain.times(W.array, scale), W.exponent + A.exponent, W.noise).split(domain)
    K = Scaled(domain.times(K.array, domain.invert(scale)), 0, A.noise)
    return AttentionTerm(K, gauge.rows, W, gauge.pivots, place, maps.heads), gauge.is_clear and clear


def visible_rows(terms: list[AttentionTerm], after: Array | None, domain: Domain) -> Array:
    """Rows that span what a layer reads of its input; ``after`` spans what is read of its output, None if all is.

    Over floats the rows have length one: small and large ones count alike.
    """
    parts = []
    for term in terms:
        W = term.W.array if after is None else domain.matmul(after, term.W.array)
        parts += [term.K.array, term.Q, W]
    stack = np.concatenate(parts)
    if domain.is_exact:
        return stack
    sizes = np.linalg.norm(stack, axis=1)
    return np.asarray(stack[sizes > 0] / sizes[sizes > 0, None])


def _sum(terms: list[AttentionTerm], domain: Domain) -> list[AttentionTerm]:
    """The terms of one attention matrix as one term; none if their value maps cancel."""
    first = terms[0]
    W = add(domain, [term.W for term in terms])
    heads = sum(term.heads for term in terms)
    return [] if W.is_zero else [AttentionTerm(first.K, first.Q, W, first.query_pivots, first.scale_pivot, heads)]


def _merge_exact(terms: list[AttentionTerm], domain: Domain) -> tuple[list[AttentionTerm], bool]:
    """Equal attention matrices merged; the terms are ordered by the entries of A, which are different then."""
    groups: dict[Any, list[AttentionTerm]] = {}
    for term in terms:
        A = domain.matmul(term.K.array.T, term.Q)
        groups.setdefault(tuple(A.ravel().tolist()), []).append(term)
    keys = sorted(groups, key=lambda key: [domain.sort_key(x) for x in key])
    return [term for key in keys for term in _sum(groups[key], domain)], True


def _merge_floats(terms: list[AttentionTerm], is_clear: bool, domain: Domain) -> tuple[list[AttentionTerm], bool]:
    """Attention matrices that agree to rounding merged, ordered by a generic linear form, then by size."""
    matrices = [multiply(domain, term.K.transposed(), Scaled(term.Q)) for term in terms]
    groups: list[list[int]] = []
    for place, matrix in enumerate(matrices):
        distances = [_distance(matrices[group[0]], matrix) for group in groups]
        nearest = int(np.argmin(distances)) if distances else 0
        if distances and distances[nearest] < HEADS_SAME:
            groups[nearest].append(place)
        else:
            groups.append([place])
        is_clear = is_clear and not any(HEADS_SAME <= distance < HEADS_CLOSE_CALL for distance in distances)
    kept = [(group[0], _sum([terms[place] for place in group], domain)) for group in groups]
    keys = [(_linear_form(matrices[place]), _log_size(matrices[place])) for place, merged_terms in kept if merged_terms]
    order, clear = _sort(keys)
    merged_terms = [term for _, merged in kept for term in merged]
    return [merged_terms[place] for place in order], is_clear and clear


def _distance(first: Scaled, second: Scaled) -> float:
    """‖A − B‖ / max(‖A‖, ‖B‖); 0 for two zero matrices."""
    if first.is_zero or second.is_zero:
        return 0.0 if first.is_zero and second.is_zero else 1.0
    top = max(first.exponent, second.exponent)
    a, b = first.join(top), second.join(top)
    return float(np.linalg.norm(a - b) / max(np.linalg.norm(a), np.linalg.norm(b)))


def _linear_form(A: Scaled) -> float:
    size = float(np.linalg.norm(A.array)) or 1.0
    return float(np.sum(A.array * np.cos(np.arange(1.0, A.array.size + 1)).reshape(A.array.shape))) / size


def _log_size(A: Scaled) -> float:
    return -np.inf if A.is_zero else float(np.log2(np.linalg.norm(A.array))) + A.exponent


def _sort(keys: list[tuple[float, float]]) -> tuple[list[int], bool]:
    """Places ordered by the first number, and by the second among those whose first numbers agree to rounding.

    Not clear if two numbers are neither equal nor different enough to be told apart.
    """
    order = sorted(range(len(keys)), key=lambda place: keys[place][0])
    firsts = np.array([keys[place][0] for place in order])
    gaps = np.diff(firsts)
    is_clear = not bool(np.any((gaps >= HEADS_SAME) & (gaps < HEADS_CLOSE_CALL)))
    sorted_places: list[int] = []
    for block in np.split(np.arange(len(order)), np.flatnonzero(gaps >= HEADS_SAME) + 1) if order else []:
        inside = sorted((order[place] for place in block), key=lambda place: keys[place][1])
        seconds = np.array([keys[place][1] for place in inside])
        is_clear = is_clear and not bool(np.any(np.diff(seconds) < HEADS_CLOSE_CALL))
        sorted_places += inside
    return sorted_places, is_clear
