"""What the function of a layer depends on, for every kind of attention: the invariants of the symmetries of its heads.

Two layers with the same invariants compute the same function at every number of tokens; the converse is Theorem M of
docs/theorems/modern.md at generic weights. Scales are divided out at a place that is given, so that the invariants of
two heads can be compared entry by entry.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from attngeom.errors import InputError
from attngeom.exact.domains import Array, Domain
from attngeom.limits.work import COMPARED_SQUARES
from attngeom.network.attention.kind import Kind
from attngeom.network.weights import Head, Weights

GATES = ("w", "u", "bw", "c", "eta", "gamma", "m", "lambda")
"""Tensors that no symmetry of a head moves, but m where scores have a scale."""


@dataclass(frozen=True, eq=False)
class HeadInvariants:
    """The invariants of one head: ``whole`` in one row, one row of ``channels`` for each channel, in any order.

    ``values`` are columns that a change of basis behind the layer moves: the value map; or, where values are no linear
    functions, O or the unit matrix, with one of ``rows``, the row of V, for each column, in any order.
    """

    whole: Array
    channels: Array
    rows: Array
    values: Array


def joined(head: Head, letter: str) -> Array:
    """[W b_W], or W without a bias."""
    bias = head.extra.get(f"b{letter}")
    return head.tensors[letter] if bias is None else np.concatenate([head.tensors[letter], bias], axis=1)


def values_of(head: Head, kind: Kind, domain: Domain) -> Array:
    """The value map O V, with O b_V beside it where outputs see it apart from other biases."""
    V = head.V if kind.adds_value_bias else joined(head, "V")
    return V if head.O is None else domain.matmul(head.O, V)


def layer_bias(weights: Weights, index: int) -> Array | None:
    """What is added to every output of a layer, whatever its input: its bias, and b_V where weights sum to 1."""
    shared = weights.shared[index] if weights.shared else {}
    return output_bias(weights.layers[index], shared, weights.architecture.mechanism, weights.domain)


def output_bias(heads: Sequence[Head], shared: Mapping[str, Array], kind: Kind, domain: Domain) -> Array | None:
    """:func:`layer_bias` of these heads."""
    parts = [shared["bO"]] if "bO" in shared else []
    if kind.adds_value_bias:
        for head in heads:
            if "bV" in head.extra:
                parts.append(head.extra["bV"] if head.O is None else domain.matmul(head.O, head.extra["bV"]))
    if not parts:
        return None
    total = parts[0]
    for part in parts[1:]:
        total = domain.add(total, part)
    return total


def _products(rows: Array, columns: Array, domain: Domain) -> Array:
    """rows_jᵀ columns_j for each channel j, one row each."""
    product = domain.times(rows[:, :, None], columns[:, None, :])
    return np.asarray(product).reshape(len(rows), -1)


def _planes(Q: Array, K: Array, domain: Domain) -> Array:
    """k̄ qᵀ for each rotary plane, as rows of real and of imaginary parts."""
    k, q = (x.reshape(-1, 2, x.shape[1]) for x in (K, Q))
    real = domain.add(_products(k[:, 0], q[:, 0], domain), _products(k[:, 1], q[:, 1], domain))
    imaginary = domain.reduce(_products(k[:, 0], q[:, 1], domain) - _products(k[:, 1], q[:, 0], domain))
    return np.concatenate([real, imaginary])


def pivot_of(head: Head, kind: Kind, domain: Domain, is_hidden: bool = False) -> int:
    """The place of the largest entry, or over exact domains of the first that is not zero, of what fixes the scale.

    That is the value map; or the scores where the layer is ``is_hidden`` and its outputs may change their basis.
    """
    W = scores_of(head, kind, domain) if is_hidden else values_of(head, kind, domain)
    return int(np.argmax([bool(x) for x in W.ravel()] if domain.is_exact else np.abs(W).ravel()))


def scores_of(head: Head, kind: Kind, domain: Domain) -> Array:
    """A = KᵀQ, or the sums of squares that scores are made of."""
    Q, K = joined(head, "Q"), joined(head, "K")
    if "square-scale" in kind.symmetries():
        return _squares(Q, K, domain.eye(1)[0], False, domain)
    return domain.matmul(K.T, Q)


def _scale(head: Head, kind: Kind, domain: Domain, pivot: int, is_hidden: bool) -> Array:
    """What values are divided and scores are multiplied by, so that the entry at the pivot is 1; or its sign."""
    entry = (scores_of(head, kind, domain) if is_hidden else values_of(head, kind, domain)).ravel()[pivot : pivot + 1]
    if not entry[0]:
        raise InputError("a head with a zero entry where the other has none given; they differ")
    if "scale-sign" in kind.symmetries():
        return domain.convert(np.array([1 if entry[0] > 0 else -1]))
    return np.asarray(domain.invert(entry)) if is_hidden else entry


def head_invariants(head: Head, kind: Kind, domain: Domain, pivot: int, is_hidden: bool = False) -> HeadInvariants:
    """The invariants of a head; a scale that values and scores share is divided out at the entry ``pivot`` of one.

    InputError where that entry is zero: then the heads differ there.
    """
    names = kind.symmetries()
    Q, K, W = joined(head, "Q"), joined(head, "K"), values_of(head, kind, domain)
    scale = domain.eye(1)[0]
    if {"scale", "square-scale", "scale-sign"} & set(names):
        scale = _scale(head, kind, domain, pivot, is_hidden)
        W = domain.times(W, domain.invert(scale))
    own = {letter: head.extra[letter] for letter in GATES if letter in head.extra}
    if "m" in own and "scale" in names:
        own["m"] = domain.times(own["m"], scale)
    whole: list[Array] = list(own.values())
    channels: list[Array] = []
    gates = [joined(head, "G")] if "G" in head.extra else []
    if "query-key-beside-bias" in names:
        whole.append(domain.matmul(head.K.T, Q))
    elif "query-key" in names:
        A = domain.matmul(K.T, Q)
        if "query-scale" in names:
            lead = next((x for x in A.ravel() if x), domain.one) if domain.is_exact else A.ravel()[np.argmax(np.abs(A))]
            A = domain.times(A, domain.invert(np.array([lead], dtype=A.dtype)))
        whole.append(domain.times(A, scale))
    if "plane-scale" in names:
        whole.append(domain.times(_planes(Q, K, domain), scale))
    if "second-query-key" in names:
        whole.append(domain.matmul(head.extra["K2"].T, head.extra["Q2"]))
    if "second-plane-scale" in names:
        whole.append(_planes(head.extra["Q2"], head.extra["K2"], domain))
    if "key-scale" in names:
        whole, channels = _normalised(whole, Q, K, gates, scale, names, domain)
    elif "query-key-rotation" in names:
        whole += [domain.matmul(K.T, K), domain.times(domain.matmul(K.T, Q), scale)]
    elif "signed-channels" in names:
        channels = [*gates, _products(K, K, domain), domain.times(_products(K, Q, domain), scale)]
    elif "channel-order" in names:
        channels = [K, Q]
    elif "channels" in names and gates:
        channels = [*gates, domain.times(_products(K, Q, domain), scale)]
    elif "channels" in names:
        whole.append(_squares(Q, K, scale, "query-scale" in names, domain))
    rows = domain.zeros((0, 1))
    if not kind.has_linear_values:
        rows, W = joined(head, "V"), domain.eye(len(head.V)) if head.O is None else head.O
    # Who attends to one token alone gives it the weight 1, whatever the scores are.
    shows_scores = not (kind.is_normalised and kind.options.get("memory") == 1)
    flat = [x.ravel() for x in whole] if shows_scores else []
    return HeadInvariants(
        whole=np.concatenate(flat) if flat else domain.zeros((0,)),
        channels=np.concatenate(channels, axis=1) if channels else domain.zeros((0, 1)),
        rows=rows,
        values=W,
    )


def _normalised(
    whole: list[Array], Q: Array, K: Array, gates: list[Array], sign: Array, names: Sequence[str], domain: Domain
) -> tuple[list[Array], list[Array]]:
    """Gram matrices over the sizes of keys and queries; k·q by its square with its sign, which needs no root."""
    k, q = (np.asarray(domain.times(x, x).sum()).reshape(1) for x in (K, Q))
    both = domain.times(k, q)

    def signed_squares(x: Array) -> Array:
        return np.asarray(domain.times(domain.times(domain.times(x, np.abs(x)), sign), domain.invert(both)))

    if "query-key-rotation" in names:
        grams = [domain.times(domain.matmul(x.T, x), domain.invert(size)) for x, size in ((K, k), (Q, q))]
        return [*whole, *grams, signed_squares(domain.matmul(K.T, Q))], []
    pairs = [domain.times(_products(x, x, domain), domain.invert(size)) for x, size in ((K, k), (Q, q))]
    return whole, [*gates, *pairs, signed_squares(_products(K, Q, domain))]


def _squares(Q: Array, K: Array, scale: Array, is_projective: bool, domain: Domain) -> Array:
    """Σ_j k_j² ⊗ q_j², on which squares of queries and keys depend."""
    d = K.shape[1]
    if d > COMPARED_SQUARES:
        raise InputError(f"squares of queries and keys of width {d} given; at most {COMPARED_SQUARES} are compared")
    total = domain.matmul(_products(K, K, domain).T, _products(Q, Q, domain))
    if is_projective:
        flat = total.ravel()
        lead = next((x for x in flat if x), domain.one) if domain.is_exact else flat[np.argmax(np.abs(flat))]
        return np.asarray(domain.times(total, domain.invert(np.array([lead], dtype=total.dtype))))
    return np.asarray(domain.times(total, scale))


def exchanged(head: Head, domain: Domain) -> Head:
    """The same head of differential attention with its two maps exchanged: (A_2, A_1, −λV, 1/λ)."""
    own = head.tensors
    moved = {"Q": own["Q2"], "K": own["K2"], "Q2": own["Q"], "K2": own["K"]}
    moved |= {"V": domain.reduce(-domain.times(own["lambda"], own["V"])), "lambda": domain.invert(own["lambda"])}
    return Head.of({**own, **moved})
