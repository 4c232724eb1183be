"""Two networks as sums of the same terms, layer by layer: which heads belong together, in which bases.

A layer is Σ_k W_k m_k, m_k the function that heads of one attention matrix share: up to scale for lightning, up to the
sign of (A, V), beside Σ V, where the attention minus a constant is odd in A (sigmoid, softmax of two tokens). Hidden
tokens are R y in the first network and D y in the second, with y = Σ C_k m_k. What is found here is a guess, which
:mod:`attngeom.comparison.float_corrections` tests.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from attngeom.exact import lapack
from attngeom.exact.domains import Array
from attngeom.network import Architecture, Weights

ROUNDING = 1e-15


@dataclass(frozen=True)
class Member:
    """A head of network ``side`` with A = factor · (A of its term)."""

    side: int
    head: int
    factor: float


@dataclass(frozen=True, eq=False)
class CommonTerms:
    """The terms of one layer, each a list of heads, the first of which gives its A; ``idle`` heads have A = 0.

    ``bases`` are R and D after this layer, None where both networks have one basis; ``unread`` are bases of what no
    head of the next layer reads, for each network.
    """

    terms: list[list[Member]]
    idle: list[Member]
    bases: tuple[Array, Array] | None = None
    unread: tuple[Array, Array] = field(default_factory=lambda: (np.zeros((0, 0)), np.zeros((0, 0))))


def sees(architecture: Architecture) -> str:
    """What a layer sees of A: "scaled", "signed", "plain", or "nothing" of a normalised layer with one token."""
    rule = architecture.rule
    if rule.is_polynomial:
        return "scaled"
    if not rule.is_normalised:
        return "signed"
    return "nothing" if architecture.tokens == 1 else "signed" if architecture.tokens == 2 else "plain"


def seen_part(architecture: Architecture, A: Array) -> Array:
    """A, or A + Aᵀ if there is one token."""
    return A + np.swapaxes(A, -1, -2) if architecture.tokens == 1 else A


def common_terms(networks: tuple[Weights, Weights], close: float, cut: float) -> list[CommonTerms] | None:
    """The terms of both networks, heads whose A differ by less than ``close`` taken as one; None if there is no guess.

    ``close`` = 0 pairs the heads one by one. Singular values below ``cut`` are taken as zero.

    >>> from attngeom.exact import RR
    >>> from attngeom.network import random_weights
    >>> w = random_weights(Architecture((2, 2), 1), RR, seed=0)
    >>> [len(layer.terms) for layer in common_terms((w, w), 0.0, 1e-12)]
    [1]
    """
    architecture = networks[0].architecture
    A, V = ([getattr(w, name)() for w in networks] for name in ("attention_matrices", "value_matrices"))
    bases = [np.eye(architecture.widths[0])] * 2
    layers: list[CommonTerms] = []
    for index in range(architecture.num_layers):
        forms = [[seen_part(architecture, B.T @ a @ B) for a in side[index]] for side, B in zip(A, bases)]
        sizes = [
            [lapack.norm(head.K @ B) * lapack.norm(head.Q @ B) for head in weights.layers[index]]
            for weights, B in zip(networks, bases)
        ]
        terms, idle = _group(forms, sizes, sees(architecture), close)
        if index == architecture.num_layers - 1 or architecture.residual:
            layers.append(CommonTerms(terms, idle))
            continue
        maps = [[v @ B for v in side[index]] for side, B in zip(V, bases)]
        stacks = [list(_sums(terms, maps[side], side, sees(architecture))) for side in (0, 1)]
        unread = _unread(networks[0], index + 1, cut), _unread(networks[1], index + 1, cut)
        found = _common_basis(stacks, unread, cut)
        if found is None:
            return None
        bases = [*found]
        layers.append(CommonTerms(terms, idle, found, unread))
    return layers


def _group(
    forms: list[list[Array]], sizes: list[list[float]], seen: str, close: float
) -> tuple[list[list[Member]], list[Member]]:
    """Heads of both networks by their A, and those with A = 0, which are no terms unless A is seen as it is."""
    if seen == "nothing":
        return [], []
    matrices: dict[tuple[int, int], Array] = {}
    idle: list[Member] = []
    for side, given in enumerate(forms):
        for place, matrix in enumerate(given):
            if lapack.norm(matrix) <= ROUNDING * sizes[side][place] and seen != "plain":
                idle.append(Member(side, place, 0.0))
            else:
                matrices[side, place] = matrix
    # Of one coordinate all matrices are multiples of each other.
    if close == 0.0 and not (seen == "scaled" and all(matrix.size == 1 for matrix in matrices.values())):
        return _pair(matrices, seen), idle
    terms: list[list[Member]] = []
    for (side, place), matrix in matrices.items():
        for term in terms:
            gap, factor = _relation(matrices[term[0].side, term[0].head], matrix, seen)
            if gap <= close:
                term.append(Member(side, place, factor))
                break
        else:
            terms.append([Member(side, place, 1.0)])
    return terms, idle


def _pair(matrices: dict[tuple[int, int], Array], seen: str) -> list[list[Member]]:
    """Each head of the first network with the head of the second whose A is closest; those that are left, alone."""
    from scipy.optimize import linear_sum_assignment  # slow to load

    sides = [[place for side, place in matrices if side == own] for own in (0, 1)]
    relations = [[_relation(matrices[0, a], matrices[1, b], seen) for b in sides[1]] for a in sides[0]]
    terms = []
    if sides[0] and sides[1]:
        # The logarithm makes one head that agrees to many digits count for more than several that agree roughly.
        costs = np.log(np.array([[gap for gap, _ in row] for row in relations]) + 1e-16)
        for row, column in zip(*linear_sum_assignment(costs)):
            factor = relations[row][column][1]
            terms.append([Member(0, sides[0][row], 1.0), Member(1, sides[1][column], factor)])
    paired = {(member.side, member.head) for term in terms for member in term}
    return terms + [[Member(*key, 1.0)] for key in matrices if key not in paired]


def _relation(A: Array, B: Array, seen: str) -> tuple[float, float]:
    """(gap, c) with B ≈ c A as well as the kind allows, the gap relative to the larger."""
    sizes = lapack.norm(A), lapack.norm(B)
    if 0.0 in sizes:
        return (0.0 if sizes[0] == sizes[1] else 1.0), 1.0
    cosine = float(np.sum((A / sizes[0]) * (B / sizes[1])))
    if seen == "scaled":
        sign = 1.0 if cosine >= 0 else -1.0
        return lapack.norm(A / sizes[0] - sign * (B / sizes[1])), sign * sizes[1] / sizes[0]
    factor = -1.0 if seen == "signed" and cosine < 0 else 1.0
    return lapack.norm(A - factor * B) / max(sizes), factor


def _sums(terms: list[list[Member]], maps: list[Array], side: int, seen: str) -> Iterator[Array]:
    """W_k of one network for all terms, and Σ V where that is seen."""
    zero = np.zeros_like(maps[0])
    if seen in ("signed", "nothing"):
        yield sum(maps, zero)
    for term in terms:
        yield sum((member.factor * maps[member.head] for member in term if member.side == side), zero)


def _unread(weights: Weights, index: int, cut: float) -> Array:
    """A basis of the tokens that no head of a layer reads, as columns."""
    rows = np.concatenate([x for head in weights.layers[index] for x in (head.Q, head.K, head.V)])
    sizes = np.max(np.abs(rows), axis=1, keepdims=True, initial=0.0)
    _, values, right = lapack.svd(rows / np.where(sizes > 0, sizes, 1.0))
    return right[int(np.sum(values > cut * max(values.max(initial=0.0), 1e-300))) :].T


def _common_basis(stacks: list[list[Array]], unread: tuple[Array, Array], cut: float) -> tuple[Array, Array] | None:
    """R and D with W_k ≈ R C_k and W'_k ≈ D C_k, up to what is not read.

    The rows of C are an orthonormal basis of the rows of W, or of W' if these are better conditioned; that does not
    hang on the bases in which the networks are given.
    """
    found = []
    for W, N in zip(stacks, unread):
        read = [x - N @ lapack.lstsq(N, x) for x in W] if N.size else W
        sizes = np.concatenate([np.full(x.shape[1], lapack.norm(x) or 1.0) for x in read])
        joined = np.concatenate(read, axis=1) / sizes
        if not np.all(np.isfinite(joined)):
            return None
        rows = np.max(np.abs(joined), axis=1, keepdims=True)
        _, values, right = lapack.svd(joined / np.where(rows > 0, rows, 1.0), full_matrices=False)
        found.append((values, right, sizes))
    rank = min(int(np.sum(values > cut * values.max(initial=0.0))) for values, _, _ in found)
    if not rank:
        return None
    _, right, sizes = min(found, key=lambda side: side[0][0] / side[0][rank - 1])
    one, two = (np.concatenate(W, axis=1) / sizes @ right[:rank].T for W in stacks)
    return one, two
