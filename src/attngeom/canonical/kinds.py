"""Canonical weights for kinds of attention beyond the papers: one representative for each orbit of the symmetries."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from attngeom.canonical.faithful import check_same_function
from attngeom.dimensions.programs import orbit_bound
from attngeom.errors import DomainError, InputError
from attngeom.exact import lapack
from attngeom.exact.domains import Array, Domain
from attngeom.groups.balance import balanced_factors
from attngeom.groups.pivots import first_large
from attngeom.limits.rounding import CANONICAL_FIXED
from attngeom.network import Head, Weights
from attngeom.network.attention import Kind
from attngeom.network.invariants import (
    are_layers_apart,
    exchanged,
    joined,
    layer_bias,
    values_of,
)
from attngeom.results import Result


@dataclass(frozen=True, kw_only=True, eq=False)
class CanonicalWeights(Result):
    """Canonical weights, and whether all weights of the orbit would give the same ones."""

    weights: Weights
    gauge: str
    num_free: int
    is_canonical: bool
    difference: float

    def to_json(self) -> dict[str, Any]:
        return {
            "num_parameters": self.weights.architecture.num_parameters,
            **self.select("num_free", "gauge", "is_canonical", "standing", "reason"),
        }

    def rows(self) -> Mapping[str, Any]:
        return {
            "canonical form": "",
            "parameters": f"{self.weights.architecture.num_parameters:,}, of which {self.num_free:,} are free",
            "canonical": f"{'yes' if self.is_canonical else 'no'}: {self.reason}",
        }


def canonicalize_kind(weights: Weights, gauge: str | None = None) -> CanonicalWeights:
    """The canonical representative of one layer, or of a residual stack, of any kind of attention.

    >>> from attngeom.exact import QQ
    >>> from attngeom.network import Architecture, random_symmetry, random_weights
    >>> w = random_weights(Architecture((3, 2), 2, kind="gla"), QQ, seed=0)
    >>> moved = random_symmetry(w.architecture, QQ, seed=1).apply(w)
    >>> canonicalize_kind(moved).weights.equals(canonicalize_kind(w).weights)
    True
    """
    architecture, domain = weights.architecture, weights.domain
    usual = "balanced" if domain.rounds else "echelon"
    if gauge not in (None, usual):
        raise InputError(f"gauge {gauge} given for {architecture.kind} attention over {domain.name}; {usual} is known")
    if not are_layers_apart(architecture):
        raise InputError(
            "several layers without skip connections, or with biases, given; canonical forms are not known"
        )
    moved = _canonical(weights)
    difference = check_same_function(weights, moved)
    reason, is_canonical = "one representative for each orbit of the symmetry group", True
    if domain.rounds:
        is_canonical = _is_fixed(moved)
        words = ", to rounding" if is_canonical else ""
        reason = f"{reason}{words}" if is_canonical else "an order or a pivot hangs on rounding errors"
    return CanonicalWeights(
        standing="estimate" if domain.rounds else "proven",
        reason=reason,
        weights=moved,
        gauge=usual,
        num_free=orbit_bound(architecture, 0).value,
        is_canonical=is_canonical,
        difference=difference,
    )


def _is_fixed(weights: Weights) -> bool:
    again = _canonical(weights)
    pairs = zip((x for _, x in weights.tensors()), (x for _, x in again.tensors()))
    return all(float(np.abs(a - b).max()) <= CANONICAL_FIXED * float(np.abs(a).max(initial=0.0)) for a, b in pairs)


def _canonical(weights: Weights) -> Weights:
    architecture, domain, kind = weights.architecture, weights.domain, weights.architecture.mechanism
    layers, shared = [], []
    for index, heads in enumerate(weights.layers):
        bias = layer_bias(weights, index)
        moved = [_canonical_head(head, kind, domain) for head in heads]
        if kind.orders_heads:
            moved.sort(key=lambda head: [_key(array) for array in head.tensors.values()])
        if bias is not None and kind.adds_value_bias:
            moved = [_with_bias(head, bias, domain, place) for place, head in enumerate(moved)]
        layers.append(tuple(moved))
        shared.append({} if not weights.shared else {"bO": bias if bias is not None else weights.shared[index]["bO"]})
    return Weights(architecture, domain, tuple(layers), tuple(shared) if any(shared) else ())


def _with_bias(head: Head, bias: Array, domain: Domain, place: int) -> Head:
    """The head without b_V where the layer has a bias of its own; else it carries all of it."""
    own = head.tensors
    return Head.of({**own, "bV": bias if head.O is None else domain.zeros(own["bV"].shape)})


def _key(array: Array) -> list[Any]:
    """Entries for sorting; floats to eight digits."""
    if array.dtype == np.float64:
        size = float(np.abs(array).max(initial=0.0)) or 1.0
        return [float(np.round(x / size, 8)) for x in array.ravel()]
    return list(array.ravel())


def _lead(row: Array, domain: Domain) -> Any:
    """The entry that is made 1 or positive: the first one, of floats the first large one."""
    if domain.rounds:
        return row[first_large(row)[0]]
    return next((x for x in row if x), domain.one)


def _divide(array: Array, number: Any, domain: Domain) -> Array:
    return np.asarray(domain.times(array, domain.invert(np.array([number], dtype=array.dtype))))


def _factor(product: Array, rank: int, domain: Domain) -> tuple[Array, Array]:
    """T and S with ``rank`` rows and SᵀT = product: echelon over exact domains, balanced floats."""
    if domain.rounds:
        factors = balanced_factors(product, rank)
        T, S = factors.T, factors.S
    else:
        echelon = domain.rref(product)
        T, S = echelon.matrix[: echelon.rank], product[:, list(echelon.pivots)].T
    padded = domain.zeros((rank, T.shape[1])), domain.zeros((rank, S.shape[1]))
    padded[0][: len(T)], padded[1][: len(S)] = T, S
    return padded


def _canonical_head(head: Head, kind: Kind, domain: Domain) -> Head:
    names = set(kind.symmetries())
    if "lambda" in head.extra:
        head = _ordered_maps(head, domain)
    Q, K, W = joined(head, "Q"), joined(head, "K"), values_of(head, kind, domain)
    biased = "bQ" in head.extra
    own = dict(head.tensors)
    if {"scale", "scale-sign"} & names:
        lead = _lead(W.ravel(), domain)
        if "scale-sign" in names:
            lead = domain.one if lead > 0 else -domain.one
        elif domain.rounds and lead:
            # Values and scores of one size: the scale is in neither of them.
            sizes = [float(np.linalg.norm(x)) for x in (W, K.T @ Q)]
            lead = np.copysign(np.sqrt(sizes[0] / sizes[1]) if all(sizes) else 1.0, lead)
        if lead:
            W, Q = _divide(W, lead, domain), np.asarray(domain.times(Q, np.array([lead], dtype=Q.dtype)))
            if "m" in own and "scale" in names:
                own["m"] = np.asarray(domain.times(own["m"], np.array([lead], dtype=Q.dtype)))
    order = None
    if "query-key-beside-bias" in names:
        Q, K = _factor(domain.matmul(head.K.T, Q), len(K), domain)
        K = np.concatenate([K, domain.zeros((len(K), 1))], axis=1)
    elif "query-key" in names:
        A = domain.matmul(K.T, Q)
        if "query-scale" in names and not domain.is_zero(A):
            A = _divide(A, _lead(A.ravel(), domain), domain)
        Q, K = _factor(A, len(K), domain)
    elif "plane-scale" in names:
        Q, K = _planes(Q, K, domain)
    elif "query-key-rotation" in names:
        Q, K = _rotated(Q, K, "key-scale" in names, domain)
    elif {"channels", "signed-channels", "channel-order"} & names:
        Q, K, W, order = _channels(Q, K, W, own, names, domain)
    if "second-query-key" in names:
        own["Q2"], own["K2"] = _factor(domain.matmul(own["K2"].T, own["Q2"]), len(K), domain)
    if "key-scale" in names:
        Q, K = (_divide(x, _size(x, domain), domain) for x in (Q, K))
    d = head.Q.shape[1]
    own |= {"Q": Q[:, :d], "K": K[:, :d]}
    if biased:
        own |= {"bQ": Q[:, d:], "bK": K[:, d:]}
    for letter in ("G", "bG"):
        if letter in own and order is not None:
            own[letter] = own[letter][order]
    return Head.of(own | _values(head, W, kind, domain))


def _values(head: Head, W: Array, kind: Kind, domain: Domain) -> dict[str, Array]:
    """V, O and b_V of a value map."""
    d = head.V.shape[1]
    if not kind.has_linear_values:
        return {"V": head.V} | ({} if head.O is None else {"O": head.O})
    V, O = W, None
    if head.O is not None:
        V, S = _factor(W, len(head.V), domain)
        O = S.T
    parts = {"V": V[:, :d]} | ({} if O is None else {"O": np.ascontiguousarray(O)})
    return parts | ({"bV": V[:, d:]} if V.shape[1] > d else {})


def _size(x: Array, domain: Domain) -> Any:
    """The norm of floats; over exact domains the first entry without its sign."""
    return float(np.linalg.norm(x)) or 1.0 if domain.rounds else abs(_lead(x.ravel(), domain))


def _ordered_maps(head: Head, domain: Domain) -> Head:
    """The head of differential attention with |λ| ≤ 1."""
    factor = head.extra["lambda"].ravel()[0]
    return exchanged(head, domain) if factor and abs(factor) > 1 else head


def _planes(Q: Array, K: Array, domain: Domain) -> tuple[Array, Array]:
    """Each plane multiplied by the complex number that makes one entry of its key 1, of floats real at equal norms."""
    rows = []
    for p in range(0, len(K), 2):
        k, q = K[p : p + 2], Q[p : p + 2]
        sizes = domain.times(k[0], k[0]) + domain.times(k[1], k[1])
        place = first_large(sizes)[0] if domain.rounds else int(np.argmax([bool(x) for x in sizes]))
        x, y = k[0][place], k[1][place]
        if not sizes[place]:
            rows.append((q, k))
            continue
        # 1/(x + iy) as a matrix; queries are multiplied by the inverse transpose.
        g = _divide(np.array([[x, y], [-y, x]], dtype=K.dtype), sizes[place], domain)
        if domain.rounds:
            norm = float(np.sqrt(np.linalg.norm(q) / np.linalg.norm(k))) if q.any() else 1.0
            g = g * np.sqrt(sizes[place]) * norm
        rows.append((domain.matmul(domain.inverse(g).T, q), domain.matmul(g, k)))
    return np.concatenate([q for q, _ in rows]), np.concatenate([k for _, k in rows])


def _rotated(Q: Array, K: Array, sees_sizes: bool, domain: Domain) -> tuple[Array, Array]:
    """K upper triangular with a positive diagonal; rows of Q that no key meets are zero, or triangular if seen."""
    if not domain.rounds:
        raise DomainError("exact weights given; rotating keys to a triangle needs roots: give floats (.safetensors)")
    basis, triangle = lapack.qr(K, complete=K.shape[0] > K.shape[1])
    signs = np.where(np.diagonal(triangle) < 0, -1.0, 1.0)
    signs = np.concatenate([signs, np.ones(len(triangle) - len(signs))])[:, None]
    K, Q = signs * triangle, signs * (basis.T @ Q)
    d = min(K.shape)
    if len(Q) > d and not sees_sizes:
        Q[d:] = 0.0
    elif len(Q) > d:
        lower, rest = lapack.qr(Q[d:], complete=True)[1], Q[:d]
        diagonal = np.diagonal(lower)
        flips = np.concatenate([np.where(diagonal < 0, -1.0, 1.0), np.ones(len(lower) - len(diagonal))])[:, None]
        Q = np.concatenate([rest, flips * lower])
    return Q, K


def _channels(
    Q: Array, K: Array, W: Array, own: Mapping[str, Array], names: set[str], domain: Domain
) -> tuple[Array, Array, Array, list[int]]:
    """Channels with keys of one sort, ordered by their gates, or by keys and queries without gates."""
    Q, K = Q.copy(), K.copy()
    square = "G" not in own and "channels" in names
    for j in range(len(K)):
        if "channel-order" in names:
            continue
        if "key-scale" not in names and not any(K[j]):
            # Nothing is written to the channel: its queries are not seen.
            Q[j] = domain.zeros(Q[j].shape)
        if "channels" in names and not any(Q[j]):
            K[j] = domain.zeros(K[j].shape)
        lead = _lead(K[j], domain)
        if not lead:
            continue
        if "signed-channels" in names:
            factor = domain.one if lead > 0 else -domain.one
        elif domain.rounds:
            # The sizes of all queries together are divided out: those of keys are 1 then.
            norms = [float(np.linalg.norm(K[j])), 1.0 if square else float(np.linalg.norm(Q[j]))]
            norms = [norms[0] ** 2, 1.0] if square else norms
            factor = np.copysign(np.sqrt(norms[0] / norms[1]) if all(norms) else 1.0, lead)
        else:
            factor = lead
        K[j], Q[j] = _divide(K[j], factor, domain), domain.times(Q[j], np.array([factor], dtype=Q.dtype))
        if square and _lead(Q[j], domain) < 0:
            Q[j] = -Q[j]
    sorting = [np.concatenate([own[x][j] for x in ("G", "bG") if x in own] or [K[j], Q[j]]) for j in range(len(K))]
    order = sorted(range(len(K)), key=lambda j: _key(sorting[j]))
    Q, K = Q[order], K[order]
    if {"square-scale", "query-scale"} & names and square and not domain.is_zero(Q):
        size = _size(Q[0], domain) if not domain.rounds else float(np.linalg.norm(Q))
        Q = _divide(Q, size, domain)
        if "square-scale" in names:
            W = np.asarray(domain.times(W, np.array([size * size], dtype=W.dtype)))
    return Q, K, W, order
