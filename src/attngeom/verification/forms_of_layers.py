"""A layer as Σ W_k m_k over functions m_k of its input that are independent, and networks that agree layer by layer.

Written independently of :mod:`attngeom.layer` and :mod:`attngeom.comparison`, from Theorems D and S of
docs/theorems/comparison.md. Which functions: the monomials for lightning; for softmax over three tokens and more one
for each A, for two tokens the mean and one for each A ≠ 0 up to sign; for sigmoid the sum and one for each A ≠ 0 up to
sign (one token: A + Aᵀ); one token of softmax is Σ V.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from attngeom.exact.domains import QQ, Array
from attngeom.limits.recheck import RATIONAL_PRODUCTS
from attngeom.network.architecture import Architecture
from attngeom.network.weights import Weights
from attngeom.verification.budget import afford
from attngeom.verification.expansion import expand_row

Pair = tuple[Array, Array]
"""A and V of one head."""
Form = dict[tuple[object, ...], Array]


def pairs_of(weights: Weights) -> list[list[Pair]]:
    """(A, V) of all heads of each layer."""
    return [[(head.attention_matrix(QQ), head.value_matrix(QQ)) for head in layer] for layer in weights.layers]


def afford_forms(architecture: Architecture) -> None:
    """Lightning layers are expanded, coefficient by coefficient."""
    if architecture.kind == "lightning":
        entries = sum(2 * layer.heads * layer.d_out * layer.d_in**3 for layer in architecture.layers)
        afford(entries, RATIONAL_PRODUCTS, "coefficients of layers")


def seen_matrix(A: Array, architecture: Architecture) -> Array:
    """What the function of one head with V ≠ 0 shows of A: nothing for one token of softmax, A + Aᵀ for sigmoid."""
    if architecture.tokens > 1:
        return A
    return A + A.T if architecture.kind == "sigmoid" else A * 0


def form_of(heads: Iterable[Pair], architecture: Architecture) -> Form:
    """The W_k that are not zero, by their functions."""
    form: Form = {}

    def add(key: tuple[object, ...], W: Array) -> None:
        form[key] = form[key] + W if key in form else W

    for A, V in heads:
        if architecture.kind == "lightning":
            add((), np.stack([expand_row(A, row, QQ)[architecture.tokens > 1].ravel() for row in V]))
            continue
        seen = seen_matrix(A, architecture)
        if architecture.kind == "softmax" and architecture.tokens > 2:
            add(tuple(seen.ravel()), V)
            continue
        add((), V)
        lead = next((x for x in seen.ravel() if x), None)
        if lead is not None:
            # The one of ±A whose first entry is positive.
            sign = 1 if lead > 0 else -1
            add(tuple((seen * sign).ravel()), V * sign)
    return {key: W for key, W in form.items() if not QQ.is_zero(W)}


def same_forms(one: Form, two: Form) -> bool:
    return one.keys() == two.keys() and all(QQ.equal(W, two[key]) for key, W in one.items())


def agree_layerwise(first: Weights, second: Weights) -> bool:
    """Whether both networks go on from the same functions after every layer: then they are one function.

    Without a skip connection layer i + 1 reads its input z through the rows E z of A, Aᵀ and V, and the part E z of the
    outputs of layer i is W m; W = B R, W' = B' R with the same R of full row rank says that both go on from R m.
    """
    architecture = first.architecture
    afford_forms(architecture)
    sides = [pairs_of(weights) for weights in (first, second)]
    if architecture.kind == "softmax" and architecture.tokens == 1:
        return QQ.equal(*(_linear_map(layers, architecture) for layers in sides))
    if architecture.residual:
        # A layer that adds nothing is the identity.
        listed = [[form for heads in side if (form := form_of(heads, architecture))] for side in sides]
        return len(listed[0]) == len(listed[1]) and all(map(same_forms, *listed))
    if architecture.kind == "softmax" and not architecture.mask.hides:
        sides = [_after_equal_tokens(side, architecture) for side in sides]
    one, two = (_read_parts([_merged(heads, architecture.kind) for heads in side]) for side in sides)
    if one is None or two is None:
        return _vanishes(one, architecture) and _vanishes(two, architecture)
    bases: tuple[Array | None, Array | None] = None, None
    for heads, others in zip(one[:-1], two[:-1]):
        W, W_other = _side_by_side(_on(heads, bases[0]), _on(others, bases[1]), architecture)
        echelon, other = QQ.rref(W), QQ.rref(W_other)
        if not QQ.equal(echelon.matrix, other.matrix):
            return _vanishes(one, architecture) and _vanishes(two, architecture)
        if not echelon.rank:
            return True
        bases = W[:, list(echelon.pivots)], W_other[:, list(other.pivots)]
    return QQ.equal(*_side_by_side(_on(one[-1], bases[0]), _on(two[-1], bases[1]), architecture))


def _linear_map(layers: list[list[Pair]], architecture: Architecture) -> Array:
    """A token that attends to itself alone is multiplied by Σ V, beside a skip connection by 1 + Σ V."""
    L = QQ.eye(architecture.widths[0])
    for heads in layers:
        moved = QQ.matmul(np.sum([V for _, V in heads], axis=0), L)
        L = L + moved if architecture.residual else moved
    return L


def _vanishes(layers: list[list[Pair]] | None, architecture: Architecture) -> bool:
    """Whether the heads of a layer cancel on what it reads; without layers the function is zero."""
    if layers is None:
        return True
    B: Array | None = None
    for heads in layers:
        form = form_of(_on(heads, B), architecture)
        if not form:
            return True
        W = np.concatenate(list(form.values()), axis=1)
        B = W[:, list(QQ.rref(W).pivots)]
    return False


def _on(heads: list[Pair], B: Array | None) -> list[Pair]:
    """The heads on inputs B y."""
    if B is None:
        return heads
    return [(QQ.matmul(B.T, QQ.matmul(A, B)), QQ.matmul(V, B)) for A, V in heads]


def _after_equal_tokens(layers: list[list[Pair]], architecture: Architecture) -> list[list[Pair]]:
    """Once every A that counts is zero, softmax without mask makes all tokens equal, and no later A counts."""
    changed, equal = [], False
    for heads in layers:
        changed.append([(A * 0, V) for A, V in heads] if equal else heads)
        equal = equal or all(not any(key) for key in form_of(heads, architecture))
    return changed


def _merged(heads: list[Pair], kind: str) -> list[Pair]:
    """The heads with values of equal A added up, without those that add nothing."""
    sums: dict[tuple[object, ...], Pair] = {}
    for A, V in heads:
        key = tuple(A.ravel())
        sums[key] = A, sums[key][1] + V if key in sums else V
    return [(A, V) for A, V in sums.values() if not (QQ.is_zero(V) or (kind == "lightning" and QQ.is_zero(A)))]


def _read_parts(layers: list[list[Pair]]) -> list[list[Pair]] | None:
    """The layers in coordinates of what is read of their inputs; None if the function is zero."""
    layers = list(layers)
    for index in range(len(layers) - 1, 0, -1):
        # What was read may have cost some their values.
        layers[index] = heads = [(A, V) for A, V in layers[index] if not QQ.is_zero(V)]
        if not heads:
            return None
        echelon = QQ.rref(np.concatenate([x for A, V in heads for x in (A, A.T, V)]))
        E, pivots = echelon.matrix, list(echelon.pivots)
        layers[index] = [(A[np.ix_(pivots, pivots)], V[:, pivots]) for A, V in heads]
        layers[index - 1] = [(A, QQ.matmul(E, V)) for A, V in layers[index - 1]]
    return layers if all(layers) else None


def _side_by_side(heads: list[Pair], others: list[Pair], architecture: Architecture) -> tuple[Array, Array]:
    """Both layers as matrices over the functions that occur in one of them."""
    forms = [form_of(own, architecture) for own in (heads, others)]
    widths = {key: W.shape[1] for form in forms for key, W in form.items()}
    rows = [len(own[0][1]) for own in (heads, others)]
    if not widths:
        return QQ.zeros((rows[0], 1)), QQ.zeros((rows[1], 1))
    one, two = (
        np.concatenate([form.get(key, QQ.zeros((n, width))) for key, width in widths.items()], axis=1)
        for form, n in zip(forms, rows)
    )
    return one, two
