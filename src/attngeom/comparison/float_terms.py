"""Two networks as sums of the same terms, layer by layer: which heads belong together, in which bases.

A layer is Σ_k W_k m_k, m_k the function that heads of one attention matrix share: up to scale for lightning, up to the
sign of (A, V), beside Σ V, where the attention minus a constant is odd in A (sigmoid, softmax of two tokens). Hidden
tokens are R y in the first network and D y in the second, with y = Σ C_k m_k. What is found here is a guess, which
:mod:`attngeom.comparison.float_corrections` tests.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np

from attngeom.exact import lapack
from attngeom.exact.domains import Array
from attngeom.limits.rounding import HEAD_ZERO, PRODUCT_ROUNDING
from attngeom.network import Architecture, Head, Weights


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
    head of the next layer reads, for each network; ``close`` is what was taken as zero.
    """

    terms: list[list[Member]]
    idle: list[Member]
    bases: tuple[Array, Array] | None = None
    unread: tuple[Array, Array] = field(default_factory=lambda: (np.zeros((0, 0)), np.zeros((0, 0))))
    close: float = 0.0

    @property
    def choice(self) -> object:
        """What was guessed: which heads belong together, and the ranks."""
        members = [[(member.side, member.head, member.factor > 0) for member in term] for term in self.terms]
        ranks = None if self.bases is None else [x.shape for x in (*self.bases, *self.unread)]
        return members, [(member.side, member.head) for member in self.idle], ranks


def readers(architecture: Architecture, head: Head, close: float) -> str:
    """The tensors of a head that read its tokens: none of a mute one, not Q and K where scores are not seen."""
    return "" if is_mute(head, close) else "V" if architecture.view == "nothing" else "QKV"


def seen_part(architecture: Architecture, A: Array) -> Array:
    """A, or A + Aᵀ if there is one token."""
    return A + np.swapaxes(A, -1, -2) if architecture.tokens == 1 else A


def common_terms(networks: tuple[Weights, Weights], close: float, cut: float) -> list[CommonTerms] | None:
    """The terms of both networks; None if there is no guess.

    Heads of one network whose A differ by less than ``close`` are taken as one, and products of 0.04 of it as zero; 0
    pairs the heads one by one. Singular values below ``cut`` are taken as zero.

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
        maps = [[v @ B for v in side[index]] for side, B in zip(V, bases)]
        mute = {
            (side, place)
            for side, weights in enumerate(networks)
            for place, head in enumerate(weights.layers[index])
            if is_mute(head, close)
        }
        terms, idle = _group(forms, sizes, mute, architecture.view, close)
        if index == architecture.num_layers - 1 or architecture.residual:
            layers.append(CommonTerms(terms, idle))
            continue
        stacks = [list(_sums(terms, maps[side], side, architecture.view, close)) for side in (0, 1)]
        unread = _unread(networks[0], index + 1, close, cut), _unread(networks[1], index + 1, close, cut)
        basis = _common_basis(stacks, unread, cut)
        if basis is None:
            return None
        bases = [*basis]
        layers.append(CommonTerms(terms, idle, basis, unread, close))
    return layers


def exchange_factors(networks: tuple[Weights, Weights], close: float, cut: float) -> tuple[Weights, Weights]:
    """The networks, K and V of lightning heads of rank one in the second exchanged where that fits the first better.

    Such a head is c (v·x_j)(k·x_j)(q·x_i), where k and v may change places ([G] 3.2); q, too, for one token.

    >>> from attngeom.exact import RR
    >>> from attngeom.network import random_weights
    >>> w = random_weights(Architecture((2, 2), 1, value_width=1), RR, seed=0)
    >>> head = w.layers[0][0]
    >>> other = Weights(w.architecture, RR, ((Head(head.Q, head.V, head.K, head.O),),))
    >>> exchange_factors((w, other), 0.0, 1e-12)[1].equals(w)
    True
    """
    architecture = networks[0].architecture
    if architecture.view != "scaled" or architecture.value_width != 1 or 1 not in architecture.attention:
        return networks
    orders = ("QKV", "QVK", "VKQ", "VQK") if architecture.tokens == 1 else ("QKV", "QVK")
    first, second = networks
    bases = [np.eye(architecture.widths[0])] * 2
    for index in range(architecture.num_layers):
        if architecture.attention[index] == 1:
            heads = _best_orders(first.layers[index], second.layers[index], bases, orders)
            layers = (*second.layers[:index], heads, *second.layers[index + 1 :])
            second = Weights(architecture, second.domain, layers)
        terms = common_terms((first, second), close, cut)
        if terms is None:
            return networks
        bases = [*(terms[index].bases or bases)]
    return first, second


def _best_orders(
    heads: tuple[Head, ...], others: tuple[Head, ...], bases: list[Array], orders: tuple[str, ...]
) -> tuple[Head, ...]:
    """The others with Q, K, V in those orders in which they come closest to some head each."""
    from scipy.optimize import linear_sum_assignment  # slow to load

    def lines(head: Head, basis: Array, order: str) -> list[Array]:
        rows = [(head.tensors[name] @ basis).ravel() for name in order]
        return [row / (lapack.norm(row) or 1.0) for row in rows]

    def gap(head: Head, other: Head, order: str) -> float:
        pairs = zip(lines(head, bases[0], "QKV"), lines(other, bases[1], order))
        return sum(float(np.log(1e-16 + min(lapack.norm(a - b), lapack.norm(a + b)))) for a, b in pairs)

    gaps = np.array([[[gap(head, other, order) for order in orders] for other in others] for head in heads])
    changed = list(others)
    for row, column in zip(*linear_sum_assignment(gaps.min(axis=2))):
        order = orders[int(np.argmin(gaps[row, column]))]
        Q, K, V = (others[column].tensors[name] for name in order)
        changed[column] = Head(Q, K, V, others[column].O)
    return tuple(changed)


def factor_rank_one(weights: Weights, tolerance: float) -> Weights | None:
    """Values of rank one, up to errors of their entries, as a column times a row; None where a rank is higher.

    >>> from attngeom.exact import RR
    >>> w = Weights.from_vector(Architecture((2, 2), 1), np.array([1.0, 2.0, 3.0, 4.0, 1.0, 2.0, 2.0, 4.0]), RR)
    >>> factor_rank_one(w, 1e-9).layers[0][0].O.ravel().tolist()
    [0.5, 1.0]
    """
    shape = weights.architecture
    factored = []
    for (head,) in weights.layers:
        row, column = np.unravel_index(int(np.argmax(np.abs(head.V))), head.V.shape)
        V = head.V[row : row + 1]
        O = head.V[:, column : column + 1] / (V[0, column] or 1.0)
        if np.any(np.abs(O @ V - head.V) > 4 * (tolerance + PRODUCT_ROUNDING) * np.abs(head.V)):
            return None
        factored.append((Head(head.Q, head.K, V, O),))
    architecture = replace(shape, heads=1, value_width=1)
    return Weights(architecture, weights.domain, tuple(factored))


def _group(
    forms: list[list[Array]], sizes: list[list[float]], mute: set[tuple[int, int]], seen: str, close: float
) -> tuple[list[list[Member]], list[Member]]:
    """Heads of both networks by their A, and those with A = 0, which are no terms unless A is seen as it is.

    The A of ``mute`` heads, which have no values, may be anything: they are terms of their own.
    """
    if seen == "nothing":
        return [], []
    matrices: dict[tuple[int, int], Array] = {}
    idle: list[Member] = []
    for side, given in enumerate(forms):
        for place, matrix in enumerate(given):
            if lapack.norm(matrix) <= max(PRODUCT_ROUNDING, HEAD_ZERO * close) * sizes[side][place] and seen != "plain":
                idle.append(Member(side, place, 0.0))
            elif (side, place) not in mute:
                matrices[side, place] = matrix
    # Of one coordinate all matrices are multiples of each other.
    if seen == "scaled" and all(matrix.size == 1 for matrix in matrices.values()):
        close = max(close, PRODUCT_ROUNDING)
    groups: list[list[Member]] = []
    for (side, place), matrix in matrices.items():
        for group in (group for group in groups if close and group[0].side == side):
            gap, factor = _relation(matrices[side, group[0].head], matrix, seen)
            if gap <= close:
                group.append(Member(side, place, factor))
                break
        else:
            groups.append([Member(side, place, 1.0)])
    resting = {(member.side, member.head) for member in idle}
    return _pair(groups, matrices, seen) + [[Member(*key, 1.0)] for key in sorted(mute - resting)], idle


def is_mute(head: Head, close: float) -> bool:
    """Whether the value map of a head is zero, up to ``close`` if it is a product."""
    if head.O is None:
        return not head.V.any()
    return lapack.norm(head.O @ head.V) <= max(PRODUCT_ROUNDING, HEAD_ZERO * close) * lapack.norm(head.O) * lapack.norm(
        head.V
    )


def _pair(groups: list[list[Member]], matrices: dict[tuple[int, int], Array], seen: str) -> list[list[Member]]:
    """Each group of the first network with the one of the second whose A is closest; those that are left, alone."""
    from scipy.optimize import linear_sum_assignment  # slow to load

    sides = [[group for group in groups if group[0].side == side] for side in (0, 1)]
    relations = [[_relation(matrices[0, a[0].head], matrices[1, b[0].head], seen) for b in sides[1]] for a in sides[0]]
    terms: list[list[Member]] = []
    paired: set[tuple[int, int]] = set()
    if sides[0] and sides[1]:
        # The logarithm makes one head that agrees to many digits count for more than several that agree roughly.
        costs = np.log(np.array([[gap for gap, _ in row] for row in relations]) + 1e-16)
        for row, column in zip(*linear_sum_assignment(costs)):
            factor = relations[row][column][1]
            others = [Member(1, member.head, factor * member.factor) for member in sides[1][column]]
            terms.append(sides[0][row] + others)
            paired |= {(0, row), (1, column)}
    alone = [group for side in (0, 1) for place, group in enumerate(sides[side]) if (side, place) not in paired]
    return terms + alone


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


def _sums(terms: list[list[Member]], maps: list[Array], side: int, seen: str, close: float) -> Iterator[Array]:
    """W_k of one network for all terms, and Σ V where that is seen; zero where heads cancel up to ``close``."""
    sets = [[(1.0, V) for V in maps]] if seen in ("signed", "nothing") else []
    sets += [[(member.factor, maps[member.head]) for member in term if member.side == side] for term in terms]
    for parts in sets:
        total = sum((factor * V for factor, V in parts), np.zeros_like(maps[0]))
        size = sum(abs(factor) * lapack.norm(V) for factor, V in parts)
        yield total if lapack.norm(total) > max(PRODUCT_ROUNDING, close) * size else np.zeros_like(total)


def _unread(weights: Weights, index: int, close: float, cut: float) -> Array:
    """A basis of the tokens that no head of a layer reads, as columns."""
    heads, architecture = weights.layers[index], weights.architecture
    parts = [head.tensors[x] for head in heads for x in readers(architecture, head, close)]
    rows = np.concatenate([*parts, np.zeros((1, architecture.widths[index]))])
    sizes = np.max(np.abs(rows), axis=1, keepdims=True, initial=0.0)
    _, values, right = lapack.svd(rows / np.where(sizes > 0, sizes, 1.0))
    return right[int(np.sum(values > cut * max(values.max(initial=0.0), 1e-300))) :].T


def _common_basis(stacks: list[list[Array]], unread: tuple[Array, Array], cut: float) -> tuple[Array, Array] | None:
    """R and D with W_k ≈ R C_k and W'_k ≈ D C_k, up to what is not read.

    The rows of C are an orthonormal basis of the rows of W, or of W' if these are better conditioned; that does not
    hang on the bases in which the networks are given.
    """
    if not all(stacks):
        # All heads of a network are without values: its hidden tokens are zero.
        return None
    bases = []
    for W, N in zip(stacks, unread):
        read = [x - N @ lapack.lstsq(N, x) for x in W] if N.size else W
        sizes = np.concatenate([np.full(x.shape[1], lapack.norm(x) or 1.0) for x in read])
        joined = np.concatenate(read, axis=1) / sizes
        if not np.all(np.isfinite(joined)):
            return None
        rows = np.max(np.abs(joined), axis=1, keepdims=True)
        _, values, right = lapack.svd(joined / np.where(rows > 0, rows, 1.0), full_matrices=False)
        bases.append((values, right, sizes))
    rank = min(int(np.sum(values > cut * values.max(initial=0.0))) for values, _, _ in bases)
    if not rank:
        return None
    _, right, sizes = min(bases, key=lambda side: side[0][0] / side[0][rank - 1])
    one, two = (np.concatenate(W, axis=1) / sizes @ right[:rank].T for W in stacks)
    return one, two
