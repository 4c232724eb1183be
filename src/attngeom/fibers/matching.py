"""The group element that carries one exact point of weight space to another, layer by layer.

With D_0 = I, the heads of layer i of the second network, pulled back by D_{i-1}, must have attention matrices
proportional to those of the first in some order: that gives the order and the scales. The stacked value maps then give
D_i, and the factors of each head give its own groups. D_l must be the identity: this is [G] Eq 13.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice, permutations, product
from typing import Any

import numpy as np

from attngeom.exact.domains import Array, Domain
from attngeom.fibers.evaluation import Integral, integral_tensors
from attngeom.fibers.gauges import is_invertible, ratio, solve_gauge, solve_left
from attngeom.network import Head, Symmetry, Weights
from attngeom.network.symmetries import HeadSymmetry

MAX_ORDERS = 120


@dataclass(frozen=True)
class NoMatch:
    """Why no group element was found; it does not prove that the functions differ."""

    layer: int
    reason: str


def pull_back(head: Head, D: Array | None, domain: Domain) -> Head:
    """The head of layer i in the coordinates D^{-1} X of its input: Q D, K D, V D."""
    if D is None:
        return head
    return Head(domain.matmul(head.Q, D), domain.matmul(head.K, D), domain.matmul(head.V, D), head.O)


def _fingerprint(head: Head, u: Array, domain: Domain) -> tuple[Any, Array]:
    """The vector A u for a fixed u: proportional attention matrices have proportional vectors."""
    vector = domain.matmul(head.K.T, domain.matmul(head.Q, u))[:, 0]
    lead = next((x for x in vector.tolist() if x), None)
    if lead is None:
        return (), vector
    inverse = domain.inverse(domain.array([[lead]]))[0, 0]
    return tuple(domain.reduce(vector * inverse).tolist()), vector


def _orders(first: list[Any], second: list[Any]) -> Iterator[tuple[int, ...]]:
    """The orders π such that head h of the first list looks like head π(h) of the second."""
    groups: dict[Any, list[int]] = {}
    for place, mark in enumerate(second):
        groups.setdefault(mark, []).append(place)
    wanted: dict[Any, list[int]] = {}
    for place, mark in enumerate(first):
        wanted.setdefault(mark, []).append(place)
    if {mark: len(places) for mark, places in groups.items()} != {mark: len(x) for mark, x in wanted.items()}:
        return
    choices = [permutations(groups[mark]) for mark in wanted]
    for choice in islice(product(*choices), MAX_ORDERS):
        order = [0] * len(first)
        for places, targets in zip(wanted.values(), choice):
            for place, target in zip(places, targets):
                order[place] = target
        yield tuple(order)


def match_weights(first: Weights, second: Weights) -> Symmetry | NoMatch:
    """The g with g · first = second over an exact field, or the reason why the search failed.

    It finds g whenever one exists, the attention matrices of each layer are nonzero and pairwise not proportional, and
    the stacked value maps of each layer but the last have full row rank d_i; a result g is always checked.

    >>> from attngeom.exact import QQ
    >>> from attngeom.network import Architecture, random_symmetry, random_weights
    >>> w = random_weights(Architecture((3, 2, 2), 2), QQ, seed=0)
    >>> match_weights(w, w.act(random_symmetry(w.architecture, QQ, seed=1))).between[0].tolist()
    [[7, -1], [-4, 6]]
    """
    architecture, domain = first.architecture, first.domain
    rng = np.random.default_rng(0)
    D: Array | None = None
    layers, orders, between = [], [], []
    for index, heads in enumerate(first.layers):
        u = domain.array(rng.integers(1, 1000, size=(architecture.widths[index], 1)))
        moved = [pull_back(head, D, domain) for head in second.layers[index]]
        marks = [_fingerprint(head, u, domain) for head in heads]
        moved_marks = [_fingerprint(head, u, domain) for head in moved]
        if any(mark == () for mark, _ in marks):
            return NoMatch(index, "an attention matrix is zero")
        free = not architecture.residual and index < architecture.num_layers - 1
        reason = "the attention matrices of the heads are not proportional in any order"
        for order in _orders([mark for mark, _ in marks], [mark for mark, _ in moved_marks]):
            pairs = [(head, moved[order[place]]) for place, head in enumerate(heads)]
            vectors = [(marks[place][1], moved_marks[order[place]][1]) for place in range(len(heads))]
            found = _match_layer(pairs, vectors, architecture.kind == "softmax", free, domain)
            if not isinstance(found, str):
                break
            reason = found
        else:
            return NoMatch(index, reason)
        elements, D_next = found
        layers.append(tuple(elements))
        orders.append(order)
        if free:
            between.append(D_next)
        D = D_next if free else None
    return Symmetry(architecture, domain, tuple(layers), tuple(between), tuple(orders))


def _match_layer(
    pairs: list[tuple[Head, Head]], vectors: list[tuple[Array, Array]], softmax: bool, free: bool, domain: Domain
) -> tuple[list[HeadSymmetry], Array] | str:
    """The head symmetries of one layer and D_i, or what went wrong."""
    scales = [ratio(*pair, domain) for pair in vectors]
    if any(scale is None for scale in scales) or (softmax and any(scale != 1 for scale in scales)):
        return "the scales of the attention matrices do not fit"
    values = np.concatenate([head.value_matrix(domain) for head, _ in pairs], axis=1)
    moved_values = np.concatenate(
        [domain.reduce(moved.value_matrix(domain) * scale) for (_, moved), scale in zip(pairs, scales)], axis=1
    )
    D: Array = domain.eye(values.shape[0])
    if free:
        solved = solve_left(values, moved_values, domain)
        if solved is None:
            return "the stacked value maps lack full row rank, so the basis after the layer is not determined"
        if not is_invertible(solved, domain):
            return "the value maps of the two networks have different ranks"
        D = solved
    if not domain.equal(domain.matmul(D, values), moved_values):
        return "the value maps do not fit"
    elements = []
    for (head, moved), scale in zip(pairs, scales):
        C = solve_gauge(head.K, moved.K, domain.reduce(head.Q.T * scale), moved.Q.T, domain)
        B = None
        if head.O is not None and moved.O is not None:
            scaled = domain.reduce(moved.V * scale)
            B = solve_gauge(head.V, scaled, domain.matmul(D, head.O), moved.O, domain)
        if C is None or (head.O is not None and B is None):
            return "the factors of a head are not related by an invertible matrix"
        elements.append(HeadSymmetry(C, domain.array([[scale]]), B))
    return elements, D


def carries(symmetry: Symmetry, first: Weights, second: Weights) -> bool:
    """Whether g · first = second exactly over Q, checked without inverting matrices; g must be invertible."""
    size = 4 if first.architecture.is_factored else 3
    tensors, moved_tensors = integral_tensors(first), integral_tensors(second)
    count, last = first.architecture.heads, first.architecture.num_layers - 1
    for index in range(last + 1):
        before = Integral.of(symmetry.between[index - 1]) if symmetry.between and index > 0 else None
        after = Integral.of(symmetry.between[index]) if symmetry.between and index < last else None
        for place, g in enumerate(symmetry.heads[index]):
            start = (index * count + place) * size
            target = (index * count + symmetry.permutations[index][place]) * size
            Q, K, V = tensors[start : start + 3]
            moved = moved_tensors[target : target + 3]
            moved_Q, moved_K, moved_V = moved if before is None else (tensor * before for tensor in moved)
            C, scale = Integral.of(g.C), g.scale[0, 0]
            if not (C * K).equals(moved_K) or not (C.transpose() * moved_Q).equals(Q.scaled(scale)):
                return False
            inside = after if g.B is None else Integral.of(g.B)
            if not moved_V.scaled(scale).equals(V if inside is None else inside * V):
                return False
            if g.B is not None and inside is not None:
                O, moved_O = tensors[start + 3], moved_tensors[target + 3]
                if not (moved_O * inside).equals(O if after is None else after * O):
                    return False
    return True
