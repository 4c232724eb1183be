"""Equality layer by layer, up to a change of basis between the layers: heads merged, mixed or unread, any ranks."""

from __future__ import annotations

import numpy as np

from attngeom.comparison.matching import solve_left
from attngeom.exact.domains import QQ, Array, Domain
from attngeom.layer.forms import HeadMatrices, are_equal, head_matrices, layer_form
from attngeom.limits.memory import QUADRIC_TABLE
from attngeom.network import Weights
from attngeom.network.attention import Attention
from attngeom.network.attention.kind import Key

Mixings = tuple[Array | None, ...]
"""For each layer the H×H matrix G with A'_h = Σ_k G_hk A_k, where one exists."""


def live_heads(weights: Weights) -> list[list[HeadMatrices]]:
    """(A, V) of all heads that count: heads with V = 0, and lightning heads with A = 0, add nothing."""
    domain, zero_counts = weights.domain, "Q" not in weights.architecture.rule.factors
    return [
        [(A, V) for A, V in heads if not domain.is_zero(V) and (zero_counts or not domain.is_zero(A))]
        for heads in head_matrices(weights)
    ]


def merge_heads(layers: list[list[HeadMatrices]], rule: Attention, domain: Domain) -> list[list[HeadMatrices]]:
    """The same network of a kind that is not polynomial, with heads of one A added up and without those that cancel.

    Once all A of a layer are zero, normalised attention without a mask makes all tokens equal (unless a skip connection
    is added): later layers then are their Σ V, whatever their A.

    >>> from attngeom.exact import QQ
    >>> from attngeom.network.attention import Softmax
    >>> one = QQ.eye(1)
    >>> merge_heads([[(one, one), (one, -one)]], Softmax(), QQ)
    [[]]
    """
    merged = []
    equal = False
    for heads in layers:
        sums: dict[Key, HeadMatrices] = {}
        for A, V in heads:
            A = domain.zeros(A.shape) if equal else A
            key = tuple(A.ravel().tolist())
            sums[key] = (A, domain.reduce(sums[key][1] + V) if key in sums else V)
        merged.append([(A, V) for A, V in sums.values() if not domain.is_zero(V)])
        equal = equal or (rule.is_normalised and not rule.mask.hides and all(domain.is_zero(A) for A, _ in merged[-1]))
    return merged


def drop_unread(layers: list[list[HeadMatrices]], domain: Domain) -> list[list[HeadMatrices]]:
    """The same function, of a network without skip connection, with only those hidden directions that are read.

    Layer i+1 reads z through the rows of A, Aᵀ and V; with E a basis of their span in echelon form, it is a layer in
    the coordinates E z.
    """
    layers = list(layers)
    for index in range(len(layers) - 1, 0, -1):
        heads = layers[index]
        if not heads:
            continue
        echelon = domain.rref(np.concatenate([x for A, V in heads for x in (A, A.T, V)]))
        pivots = list(echelon.pivots)
        E = echelon.matrix
        layers[index] = [(A[np.ix_(pivots, pivots)], V[:, pivots]) for A, V in heads]
        moved = [(A, domain.matmul(E, V)) for A, V in layers[index - 1]]
        layers[index - 1] = [(A, V) for A, V in moved if not domain.is_zero(V)]
    return layers


def layerwise_equality(first: Weights, second: Weights) -> Mixings | None:
    """The mixings of the heads, if two networks are proven equal layer by layer up to a change of basis between them.

    It covers heads that are mixed, merged or cancel, both points of a two-point fiber, identity layers beside a skip
    connection, any ranks and any attention width. With W, W' the forms of a layer, equal row spaces give W = B R and
    W' = B' R, and both networks go on from the same R m. None if it is not so, or if the tables would be too large.
    For one layer with a table that fits, None proves that the functions differ (if the kind has a theorem on heads).

    >>> from attngeom.exact import QQ
    >>> from attngeom.network import Architecture, random_weights
    >>> w = random_weights(Architecture((2, 2), 1), QQ, seed=0)
    >>> layerwise_equality(w, w)[0].tolist()
    [[1]]
    """
    if not fits_table(first):
        return None
    architecture, domain = first.architecture, first.domain
    if architecture.rule.is_normalised and architecture.tokens == 1:
        return () if domain.equal(_linear_map(first), _linear_map(second)) else None
    sides = [live_heads(weights) for weights in (first, second)]
    if architecture.residual:
        return _equal_with_skip(sides[0], sides[1], first)
    if not architecture.is_homogeneous:
        sides = [merge_heads(side, architecture.rule, domain) for side in sides]
    sides = [drop_unread(side, domain) for side in sides]
    if not all(map(all, sides)):
        return () if all(_vanishes(side, first) for side in sides) else None
    bases: list[Array | None] = [None, None]
    mixings: list[Array | None] = []
    for layers in zip(*sides):
        heads, moved = (_pull_back(x, B, domain) for x, B in zip(layers, bases))
        mixings.append(_mixing(heads, moved))
        W, W_moved = _common(heads, moved, first)
        if domain.is_zero(W) and domain.is_zero(W_moved):
            return ()
        if len(mixings) == architecture.num_layers:
            break
        echelon = domain.rref(W)
        if not domain.equal(echelon.matrix, domain.rref(W_moved).matrix):
            return () if all(_vanishes(side, first) for side in sides) else None
        bases = [x[:, list(echelon.pivots)] for x in (W, W_moved)]
    return tuple(mixings) if domain.equal(W, W_moved) else None


def _linear_map(weights: Weights) -> Array:
    """One token of normalised attention, which sees itself alone: the product of the Σ V, or of 1 + Σ V."""
    domain, residual = weights.domain, weights.architecture.residual
    L = start = domain.eye(weights.architecture.widths[0])
    for values in weights.value_matrices():
        L = domain.matmul(domain.reduce(sum(values, start if residual else 0 * values[0])), L)
    return L


def fits_table(weights: Weights) -> bool:
    """Whether the coefficients of each layer are few enough to be listed; kinds that are not polynomial have none."""
    return weights.architecture.view != "scaled" or all(
        layer.d_out * layer.d_in**2 * (layer.d_in + 1) // 2 <= QUADRIC_TABLE for layer in weights.architecture.layers
    )


def _equal_with_skip(
    layers: list[list[HeadMatrices]], moved: list[list[HeadMatrices]], weights: Weights
) -> Mixings | None:
    """Equal layers in turn; layers that add nothing are the identity and are skipped."""
    architecture, domain = weights.architecture, weights.domain
    sides = [
        [form for heads in side if (form := layer_form(heads, architecture.rule, architecture.tokens, domain))]
        for side in (layers, moved)
    ]
    if len(sides[0]) != len(sides[1]) or not all(are_equal(domain, a, b) for a, b in zip(*sides)):
        return None
    matched = len(sides[0]) == architecture.num_layers
    return tuple(_mixing(a, b) for a, b in zip(layers, moved)) if matched else ()


def _pull_back(heads: list[HeadMatrices], B: Array | None, domain: Domain) -> list[HeadMatrices]:
    """The heads on inputs B y."""
    if B is None:
        return heads
    multiply = domain.matmul
    return [(multiply(B.T, multiply(A, B)), multiply(V, B)) for A, V in heads]


def _vanishes(layers: list[list[HeadMatrices]], weights: Weights) -> bool:
    """Whether a layer has no heads, or heads that cancel on what it reads: then the network is zero."""
    architecture, domain = weights.architecture, weights.domain
    if not all(layers):
        return True
    B: Array | None = None
    for heads in layers:
        form = layer_form(_pull_back(heads, B, domain), architecture.rule, architecture.tokens, domain)
        if not form:
            return True
        W = np.concatenate(list(form.values()), axis=1)
        B = W[:, list(domain.rref(W).pivots)]
    return False


def _common(heads: list[HeadMatrices], moved: list[HeadMatrices], weights: Weights) -> tuple[Array, Array]:
    """The forms of both layers side by side, W = [W_k] over the union of their functions."""
    architecture, domain = weights.architecture, weights.domain
    forms = [layer_form(side, architecture.rule, architecture.tokens, domain) for side in (heads, moved)]
    widths = {(): 0} | {key: W.shape[1] for form in forms for key, W in form.items()}
    one, two = (
        np.concatenate([form.get(key, domain.zeros((len(V), n))) for key, n in widths.items()], axis=1)
        for form, ((_, V), *_) in zip(forms, (heads, moved))
    )
    return one, two


def _mixing(heads: list[HeadMatrices], moved: list[HeadMatrices]) -> Array | None:
    """The G with A'_h = Σ_k G_hk A_k, if the attention matrices are independent and span the same space."""
    if not heads or not moved or heads[0][0].shape != moved[0][0].shape:
        return None
    A, moved_A = (QQ.clear(np.stack([a.ravel() for a, _ in side])) for side in (heads, moved))
    G = solve_left([A], [moved_A])
    return G.to_array() if G is not None and (G * A).equals(moved_A) else None
