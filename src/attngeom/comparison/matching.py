"""The group element that carries one rational point of weight space to another, layer by layer.

With D_0 = I, the heads of layer i of the second network, pulled back by D_{i-1}, must have attention matrices
proportional to those of the first in some order: that gives the order and the scales. The stacked value maps then give
D_i, and the factors of each head give its own groups. D_l must be the identity: this is [G] Eq 13. All matrices are
integers over one denominator for each tensor.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache, reduce
from itertools import islice, permutations, product
from operator import add
from typing import Any, NamedTuple

import numpy as np
from flint import fmpq, fmpz, fmpz_mat

from attngeom.errors import DomainError
from attngeom.exact.domains import QQ, Array
from attngeom.exact.numbers import ClearedMatrix
from attngeom.limits.trials import COMPLETIONS, HEAD_ORDERS
from attngeom.network import Architecture, Symmetry, Weights
from attngeom.network.symmetry import Between, HeadOrder, QueryKey, Scale, ValueOutput
from attngeom.network.symmetry.factor import GroupFactor
from attngeom.results import Failure


@lru_cache(maxsize=64)
def random_matrix(rows: int, columns: int, seed: int = 0) -> ClearedMatrix:
    """Random integers from 1 to 99."""
    rng = np.random.default_rng(seed)
    return ClearedMatrix(fmpz_mat(rows, columns, rng.integers(1, 100, size=rows * columns).tolist()), fmpz(1))


def solve_left(left: Sequence[ClearedMatrix], right: Sequence[ClearedMatrix]) -> ClearedMatrix | None:
    """The matrix X with X left_h = right_h for all h, if there is one; None if [left_1 … left_H] lacks full row rank.

    Whether X left_h = right_h holds is left to the caller. Solved is the square system X Σ left_h R_h = Σ right_h R_h
    with random R_h, or, should it be singular, the one of a basis of columns, which FLINT cannot select.

    >>> solve_left([QQ.clear(QQ.convert([[0, 1, 1]]))], [QQ.clear(QQ.convert([[0, 3, 3]]))]).to_array().tolist()
    [[3]]
    """
    rows = left[0].matrix.nrows()
    is_square = len(left) == 1 and left[0].matrix.ncols() == rows
    S, T = (left[0], right[0]) if is_square else (_mix(left, rows), _mix(right, rows))
    solved = S.solve_left(T)
    if solved is not None or is_square:
        return solved
    columns, images = (np.concatenate([x.to_array() for x in side], axis=1) for side in (left, right))
    pivots = list(QQ.rref(columns).pivots)
    return QQ.clear(columns[:, pivots]).solve_left(QQ.clear(images[:, pivots])) if len(pivots) == rows else None


def _mix(matrices: Sequence[ClearedMatrix], columns: int) -> ClearedMatrix:
    """Σ M_h R_h, with so many columns."""
    parts = (M * random_matrix(M.matrix.ncols(), columns, seed) for seed, M in enumerate(matrices))
    return reduce(add, parts).reduced()


def solve_gauge(
    P: ClearedMatrix, P_moved: ClearedMatrix, R: ClearedMatrix, R_moved: ClearedMatrix
) -> ClearedMatrix | None:
    """An invertible B with B P = P_moved and R_moved B = R, or None if none was found.

    P is b×n and R is m×b. B is unique if P has full row rank or R_moved full column rank; otherwise it is completed by
    small random matrices. The result satisfies both equations.

    >>> P, R = QQ.convert([[1], [0]]), QQ.convert([[1, 0]])
    >>> solve_gauge(*map(QQ.clear, (P, P * 2, R * 2, R))).to_array()[0, 0]
    2
    """
    B = solve_left([P], [P_moved])
    if B is None and (transposed := solve_left([R_moved.transpose()], [R.transpose()])) is not None:
        B = transposed.transpose()
    elif B is None:
        B = _complete(P.to_array(), P_moved.to_array(), R.to_array(), R_moved.to_array())
    is_solution = B is not None and (B * P).equals(P_moved) and (R_moved * B).equals(R) and B.is_invertible()
    return B if is_solution else None


def _complete(P: Array, P_moved: Array, R: Array, R_moved: Array) -> ClearedMatrix | None:
    """B on the column space of P as given, on a complement so that R_moved B = R, random in what is left."""
    size = P.shape[0]
    span = list(QQ.rref(P).pivots)
    basis = np.concatenate([P[:, span], QQ.eye(size)], axis=1)
    basis = basis[:, list(QQ.rref(basis).pivots)]
    complement = basis[:, len(span) :]
    images = QQ.solve(R_moved, QQ.matmul(R, complement))
    if images is None:
        return None
    kernel = QQ.nullspace(R_moved).T
    rng = np.random.default_rng(0)
    for _ in range(COMPLETIONS):
        shift = QQ.matmul(kernel, QQ.convert(rng.integers(-1, 2, size=(kernel.shape[1], complement.shape[1]))))
        moved = np.concatenate([P_moved[:, span], images + shift], axis=1)
        if QQ.rank(moved) == size:
            return QQ.clear(QQ.matmul(moved, QQ.inverse(basis)))
    return None


UNDETERMINED = "the stacked value maps lack full row rank, so the basis after the layer is not determined"

Mark = tuple[fmpz, ...]
Found = tuple[dict[GroupFactor, Any], ClearedMatrix | None]
"""The elements of the head symmetries of one layer, and the change of basis after it."""


class ClearedHead(NamedTuple):
    """The matrices of one head."""

    Q: ClearedMatrix
    K: ClearedMatrix
    V: ClearedMatrix
    O: ClearedMatrix | None = None

    def values(self) -> ClearedMatrix:
        """The d_out×d_in value map: V, or O V."""
        return self.V if self.O is None else (self.O * self.V).reduced()


@dataclass(frozen=True, eq=False)
class ClearedNetwork:
    """Rational weights, converted once for all steps of a comparison."""

    weights: Weights
    layers: tuple[tuple[ClearedHead, ...], ...]

    @property
    def architecture(self) -> Architecture:
        return self.weights.architecture

    @property
    def denominator_bits(self) -> int:
        """The bits of the largest common denominator of a tensor."""
        return max(tensor.denominator.bit_length() for tensor in self.tensors())

    def tensors(self) -> Iterator[ClearedMatrix]:
        return (tensor for heads in self.layers for head in heads for tensor in head if tensor is not None)


def clear(weights: Weights) -> ClearedNetwork:
    """The tensors of rational weights over one denominator each.

    >>> from attngeom.network import random_weights
    >>> clear(random_weights(Architecture((2, 1), 1), QQ, seed=0)).layers[0][0].K.denominator
    1
    """
    if weights.domain != QQ:
        raise DomainError(f"weights over {weights.domain.name} given; rational weights are required")
    layers = (tuple(ClearedHead(*map(QQ.clear, head.tensors.values())) for head in heads) for heads in weights.layers)
    return ClearedNetwork(weights, tuple(layers))


def no_match(layer: int, reason: str) -> Failure:
    """Why no group element was found, and at which layer, from 0; it does not prove that the functions differ."""
    return Failure(stage=f"layer {layer}", reason=reason)


def match_rational(first: ClearedNetwork, second: ClearedNetwork) -> Callable[[], Symmetry] | Failure:
    """The g with g · first = second over Q, found and checked, or the reason why the search failed.

    It finds g whenever one exists, the attention matrices of each layer are nonzero and pairwise not proportional, and
    the stacked value maps of each layer but the last have full row rank d_i. A result g is proven: every tensor was
    compared exactly, in equations without inverse matrices such as K' D_{i-1} = C K. The network with the shorter
    denominators is carried to the other one: of g and g^{-1} that is the one with shorter entries. g is written out
    when it is called for, which takes longer than finding it: entries of g^{-1} have d times as many digits.

    >>> from attngeom.network import Architecture, random_symmetry, random_weights
    >>> w = random_weights(Architecture((3, 2, 2), 2), QQ, seed=0)
    >>> moved = random_symmetry(w.architecture, QQ, seed=1).apply(w)
    >>> match_rational(clear(w), clear(moved))().between[0].tolist()
    [[7, -1], [-4, 6]]
    """
    is_inverse = second.denominator_bits < first.denominator_bits
    elements = _carry(second, first) if is_inverse else _carry(first, second)
    if isinstance(elements, Failure):
        return elements

    def write() -> Symmetry:
        written = {key: x.to_array() if isinstance(x, ClearedMatrix) else x for key, x in elements.items()}
        symmetry = Symmetry(first.architecture, QQ, written)
        return symmetry.inverse() if is_inverse else symmetry

    return write


def _carry(first: ClearedNetwork, second: ClearedNetwork) -> dict[GroupFactor, Any] | Failure:
    """The elements of the g with g · first = second, layer by layer."""
    architecture = first.architecture
    before: ClearedMatrix | None = None
    elements: dict[GroupFactor, Any] = {}
    for index, (heads, moved) in enumerate(zip(first.layers, second.layers)):
        moved = tuple(_pull_back(head, before) for head in moved)
        u = random_matrix(architecture.widths[index], 1)
        (sizes, marks), (moved_sizes, moved_marks) = (zip(*(_attend(head, u) for head in x)) for x in (heads, moved))
        if () in marks:
            return no_match(index, "an attention matrix is zero")
        free = not architecture.residual and index < architecture.num_layers - 1
        carried: Found | Failure = no_match(
            index, "the attention matrices of the heads are not proportional in any order"
        )
        for order in _orders(marks, moved_marks):
            pairs = [(head, moved[order[place]]) for place, head in enumerate(heads)]
            scales = [moved_sizes[order[place]] / size for place, size in enumerate(sizes)]
            if not architecture.rule.has_scale and any(scale != 1 for scale in scales):
                carried = no_match(index, "the attention matrices differ by a scale")
            else:
                carried = _match_layer(index, pairs, scales, free)
            if not isinstance(carried, Failure):
                break
        if isinstance(carried, Failure):
            return carried
        parts, before = carried
        elements |= parts
        elements[HeadOrder(index, architecture.heads)] = order
        if before is not None:
            elements[Between(index, architecture.widths[index + 1])] = before
    return elements


def _pull_back(head: ClearedHead, D: ClearedMatrix | None) -> ClearedHead:
    """The head of layer i in the coordinates D^{-1} X of its input: Q D, K D, V D."""
    if D is None:
        return head
    return ClearedHead((head.Q * D).reduced(), (head.K * D).reduced(), (head.V * D).reduced(), head.O)


def _attend(head: ClearedHead, u: ClearedMatrix) -> tuple[fmpq, Mark]:
    """The vector A u as c m, m primitive with a positive lead; proportional attention matrices have one mark m."""
    vector = head.K.transpose() * (head.Q * u)
    entries = vector.matrix.entries()
    lead = next((x for x in entries if x), None)
    if lead is None:
        return fmpq(0), ()
    content = reduce(fmpz.gcd, entries, fmpz(0)) * (1 if lead > 0 else -1)
    return fmpq(content, vector.denominator), tuple((vector.matrix / content).entries())


def _orders(first: Sequence[Mark], second: Sequence[Mark]) -> Iterator[tuple[int, ...]]:
    """The orders π such that head h of the first list looks like head π(h) of the second."""
    distinct = [mark for place, mark in enumerate(first) if mark not in first[:place]]
    groups = [[[place for place, x in enumerate(side) if x == mark] for side in (first, second)] for mark in distinct]
    if any(len(places) != len(targets) for places, targets in groups):
        return
    for choice in islice(product(*(permutations(targets) for _, targets in groups)), HEAD_ORDERS):
        order = [0] * len(first)
        for (places, _), targets in zip(groups, choice):
            for place, target in zip(places, targets):
                order[place] = target
        yield tuple(order)


def _match_layer(
    index: int, pairs: list[tuple[ClearedHead, ClearedHead]], scales: list[fmpq], free: bool
) -> Found | Failure:
    """The elements for the heads of one layer and D_i (None if it is the identity), or what went wrong."""
    values = [head.values() for head, _ in pairs]
    moved_values = [moved.values().scaled(scale) for (_, moved), scale in zip(pairs, scales)]
    D = None
    if free:
        D = solve_left(values, moved_values)
        if D is None:
            return no_match(index, UNDETERMINED)
        if not D.is_invertible():
            return no_match(index, "the value maps of the two networks have different ranks")
    if not all((x if D is None else D * x).equals(y) for x, y in zip(values, moved_values)):
        return no_match(index, "the value maps do not fit")
    elements: dict[GroupFactor, Any] = {}
    for place, ((head, moved), scale) in enumerate(zip(pairs, scales)):
        C = solve_gauge(head.K, moved.K, head.Q.scaled(scale).transpose(), moved.Q.transpose())
        B = None
        if head.O is not None and moved.O is not None:
            outputs = head.O if D is None else D * head.O
            B = solve_gauge(head.V, moved.V.scaled(scale), outputs, moved.O)
        if C is None or (head.O is not None and B is None):
            return no_match(index, "the factors of a head are not related by an invertible matrix")
        elements[QueryKey(index, place, head.K.matrix.nrows())] = C
        if scale != 1:
            elements[Scale(index, place)] = QQ.convert([[scale]])
        if B is not None:
            elements[ValueOutput(index, place, head.V.matrix.nrows())] = B
    return elements, D
