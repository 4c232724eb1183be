"""One head of any kind of attention, moved to one point of the orbit of its own symmetries."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any

import numpy as np

from attngeom.errors import DomainError
from attngeom.exact import lapack
from attngeom.exact.domains import Array, Domain
from attngeom.groups.balance import balanced_factors
from attngeom.groups.pivots import choose_pivots, first_large
from attngeom.limits.rounding import CANONICAL_FIXED, GAUGE_RANK
from attngeom.network import Head
from attngeom.network.attention import Kind
from attngeom.network.invariants import exchanged, head_invariants, joined, pivot_of, scores_of, values_of

ROTATED = "query-key-rotation"


def canonical_head(head: Head, kind: Kind, domain: Domain, is_hidden: bool, open_choices: list[str]) -> Head:
    """The head at one point of its orbit; what is left open is added to ``open_choices``.

    Where it ``is_hidden`` the basis of its outputs is free, and its scores carry the scale that they share with values.
    Rotations of exact queries and keys need roots: these stay as they are, and :func:`described` tells of them.
    """
    names = set(kind.symmetries())
    if "lambda" in head.extra:
        head = _ordered_maps(head, domain)
    own = dict(head.tensors)
    Q, K, W = joined(head, "Q"), joined(head, "K"), values_of(head, kind, domain)
    if {"scale", "scale-sign"} & names:
        scale = _scale(head, kind, domain, is_hidden)
        if scale is None:
            open_choices.append("a head without scores or values keeps its scale")
        else:
            factor = np.array([scale], dtype=Q.dtype)
            W, Q = _divide(W, scale, domain), np.asarray(domain.times(Q, factor))
            if "m" in own and "scale" in names:
                own["m"] = np.asarray(domain.times(own["m"], factor))
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
    elif ROTATED in names and domain.rounds:
        Q, K = _rotated(Q, K, "key-scale" in names)
    elif {"channels", "signed-channels", "channel-order"} & names:
        Q, K, W, order = _channels(Q, K, W, own, names, domain, open_choices)
    if "second-query-key" in names:
        own["Q2"], own["K2"] = _factor(domain.matmul(own["K2"].T, own["Q2"]), len(K), domain)
    if "second-plane-scale" in names:
        own["Q2"], own["K2"] = _planes(own["Q2"], own["K2"], domain)
    if "key-scale" in names and (domain.rounds or ROTATED not in names):
        Q, K = (_divide(x, _size(x, domain), domain) for x in (Q, K))
    d = head.Q.shape[1]
    own |= {"Q": Q[:, :d], "K": K[:, :d]}
    if "bQ" in head.extra:
        own |= {"bQ": Q[:, d:], "bK": K[:, d:]}
    for letter in ("G", "bG"):
        if letter in own and order is not None:
            own[letter] = own[letter][order]
    return Head.of(own | _values(head, W, kind, domain, is_hidden, open_choices))


def check_roots(kind: Kind, domain: Domain) -> None:
    """DomainError where canonical weights would need roots of exact numbers."""
    if ROTATED in kind.symmetries() and not domain.rounds:
        raise DomainError(
            "exact weights given; rotating keys to a triangle needs roots: give floats (.safetensors),"
            " or type attngeom fingerprint"
        )


def described(head: Head, kind: Kind, domain: Domain, is_hidden: bool) -> dict[str, Array]:
    """The tensors of a canonical head; exact Gram matrices in place of queries and keys that rotations move."""
    if ROTATED not in kind.symmetries() or domain.rounds:
        return dict(head.tensors)
    kept = {letter: array for letter, array in head.tensors.items() if letter not in ("Q", "K", "bQ", "bK")}
    seen = head_invariants(head, kind, domain, pivot_of(head, kind, domain, is_hidden), is_hidden).whole
    return {"QK": seen[None], **kept}


def sort_key(array: Array) -> list[Any]:
    """Entries for sorting; floats to eight digits of the largest."""
    if array.dtype == np.float64:
        size = float(np.abs(array).max(initial=0.0)) or 1.0
        return [float(np.round(x / size, 8)) for x in array.ravel()]
    return list(array.ravel())


def _scale(head: Head, kind: Kind, domain: Domain, is_hidden: bool) -> Any:
    """What values are divided and queries multiplied by; None where neither values nor scores tell.

    Exact: the first entry of the values becomes 1, or where they are zero or their basis is free that of the scores.
    Floats: values and scores of equal norms, or norm 1 of what is not zero.
    """
    scores = scores_of(head, kind, domain).ravel()
    if "m" in head.extra:
        scores = np.concatenate([scores, head.extra["m"].ravel()])
    values = values_of(head, kind, domain).ravel()
    by_values = not is_hidden and not domain.is_zero(values)
    if not by_values and domain.is_zero(scores):
        return None
    lead = _lead(values if by_values else scores, domain)
    if "scale-sign" in kind.symmetries():
        return domain.one if lead > 0 else -domain.one
    if not domain.rounds:
        return lead if by_values else domain.invert(np.array([lead], dtype=scores.dtype))[0]
    sizes = [float(np.linalg.norm(x)) for x in (values, scores)]
    size = (np.sqrt(sizes[0] / sizes[1]) if sizes[1] else sizes[0]) if by_values else 1 / sizes[1]
    return np.copysign(size, lead)


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
        factors = balanced_factors(product, min(rank, _numerical_rank(lapack.svdvals(product))))
        T, S = factors.T, factors.S
    else:
        echelon = domain.rref(product)
        T, S = echelon.matrix[: echelon.rank], product[:, list(echelon.pivots)].T
    padded = domain.zeros((rank, T.shape[1])), domain.zeros((rank, S.shape[1]))
    padded[0][: len(T)], padded[1][: len(S)] = T, S
    return padded


def _values(
    head: Head, W: Array, kind: Kind, domain: Domain, is_hidden: bool, open_choices: list[str]
) -> dict[str, Array]:
    """V, O and b_V of a value map; channels of values that are no linear functions in the order of their rows."""
    d = head.V.shape[1]
    V, O = W, None
    if not kind.has_linear_values:
        V, O = joined(head, "V"), head.O
        if O is not None:
            seen = [np.concatenate([V[j], O[:, j]]) if not is_hidden else V[j] for j in range(len(V))]
            order = sorted_places(seen, is_hidden, "two value channels are the same", open_choices)
            V, O = V[order], O[:, order]
    elif head.O is not None:
        V, S = _factor(W, len(head.V), domain)
        O = S.T
    parts = {"V": V[:, :d]} | ({} if O is None else {"O": np.ascontiguousarray(O)})
    return parts | ({"bV": V[:, d:]} if V.shape[1] > d else {})


def sorted_places(rows: list[Array], must_differ: bool, words: str, open_choices: list[str]) -> list[int]:
    """The places of the rows in sorted order; ``words`` are an open choice where two rows that must differ do not."""
    keys = [sort_key(row) for row in rows]
    order = sorted(range(len(rows)), key=keys.__getitem__)
    if must_differ and any(keys[i] == keys[j] for i, j in itertools.pairwise(order)):
        open_choices.append(words)
    return order


def _size(x: Array, domain: Domain) -> Any:
    """The norm of floats; over exact domains the largest entry without its sign."""
    return float(np.linalg.norm(x)) or 1.0 if domain.rounds else max(abs(entry) for entry in x.ravel()) or domain.one


def _ordered_maps(head: Head, domain: Domain) -> Head:
    """The head of differential attention with |λ| ≤ 1, at |λ| = 1 with its two maps in the order of their scores."""
    size = abs(head.extra["lambda"].ravel()[0])
    if size == 1:
        first, second = (domain.matmul(head.tensors[k].T, head.tensors[q]) for k, q in (("K", "Q"), ("K2", "Q2")))
        return exchanged(head, domain) if sort_key(second) < sort_key(first) else head
    return exchanged(head, domain) if size > 1 else head


def _planes(Q: Array, K: Array, domain: Domain) -> tuple[Array, Array]:
    """Each plane multiplied by the complex number that makes one entry of its key 1, of floats real at equal norms.

    A plane without keys or without queries is not seen, and zero.
    """
    Q, K = Q.copy(), K.copy()
    for p in range(0, len(K), 2):
        k, q = K[p : p + 2], Q[p : p + 2]
        if domain.is_zero(k) or domain.is_zero(q):
            k[:], q[:] = domain.zeros(k.shape), domain.zeros(q.shape)
            continue
        sizes = domain.times(k[0], k[0]) + domain.times(k[1], k[1])
        place = first_large(sizes)[0] if domain.rounds else int(np.argmax([bool(x) for x in sizes]))
        x, y = k[0][place], k[1][place]
        # 1/(x + iy) as a matrix; queries are multiplied by the inverse transpose.
        g = _divide(np.array([[x, y], [-y, x]], dtype=K.dtype), sizes[place], domain)
        if domain.rounds:
            g = g * np.sqrt(sizes[place]) * np.sqrt(np.linalg.norm(q) / np.linalg.norm(k))
        q[:], k[:] = domain.matmul(domain.inverse(g).T, q), domain.matmul(g, k)
    return Q, K


def _rotated(Q: Array, K: Array, sees_sizes: bool) -> tuple[Array, Array]:
    """K triangular at pivots, with a positive diagonal; the same for what is left of Q where sizes are seen, else 0."""
    basis = _triangular_basis(K)
    if sees_sizes:
        rest = Q - basis @ (basis.T @ Q)
        if np.linalg.norm(rest) > GAUGE_RANK * np.linalg.norm(Q):
            rest -= basis @ (basis.T @ rest)
            basis = np.concatenate([basis, _triangular_basis(rest)], axis=1)
    rotated = np.zeros(Q.shape), np.zeros(K.shape)
    rotated[0][: basis.shape[1]], rotated[1][: basis.shape[1]] = basis.T @ Q, basis.T @ K
    return rotated


def _numerical_rank(values: Array) -> int:
    return int(np.sum(values > GAUGE_RANK * values.max(initial=0.0)))


def _triangular_basis(M: Array) -> Array:
    """Orthonormal columns that span those of M, in which M is triangular at pivots of its rows."""
    values, right = lapack.svd(M, full_matrices=False)[1:]
    rank = _numerical_rank(values)
    if not rank:
        return np.zeros((len(M), 0))
    pivots, _ = choose_pivots(right[:rank])
    basis, triangle = lapack.qr(M[:, pivots])
    return np.asarray(basis * np.where(np.diagonal(triangle) < 0, -1.0, 1.0))


def _channels(
    Q: Array, K: Array, W: Array, own: Mapping[str, Array], names: set[str], domain: Domain, open_choices: list[str]
) -> tuple[Array, Array, Array, list[int]]:
    """Channels with keys of one sort, ordered by their gates, or by keys and queries without gates."""
    Q, K = Q.copy(), K.copy()
    square = "G" not in own and "channels" in names
    for j in range(len(K)) if "channel-order" not in names else ():
        if "key-scale" not in names and not any(K[j]):
            # Nothing is written to the channel: its queries are not seen.
            Q[j] = domain.zeros(Q[j].shape)
        if "channels" in names and not any(Q[j]):
            K[j] = domain.zeros(K[j].shape)
        lead = _lead(K[j] if any(K[j]) else Q[j], domain)
        if not lead:
            continue
        if "signed-channels" in names:
            factor = domain.one if lead > 0 else -domain.one
        elif domain.rounds:
            # The sizes of all queries together are divided out: those of keys are 1 then.
            norms = [float(np.linalg.norm(K[j])), 1.0 if square else float(np.linalg.norm(Q[j]))]
            norms = [norms[0] ** 2, 1.0] if square else norms
            factor = np.copysign(np.sqrt(norms[0] / norms[1]), lead)
        else:
            factor = lead
        K[j], Q[j] = _divide(K[j], factor, domain), domain.times(Q[j], np.array([factor], dtype=Q.dtype))
        if square and _lead(Q[j], domain) < 0:
            Q[j] = -Q[j]
    if {"square-scale", "query-scale"} & names and square and not domain.is_zero(Q):
        size = _size(Q, domain)
        Q = _divide(Q, size, domain)
        if "square-scale" in names:
            W = np.asarray(domain.times(W, np.array([size * size], dtype=W.dtype)))
    gates = [own[letter] for letter in ("G", "bG") if letter in own]
    rows = [np.concatenate([x[j] for x in gates or (K, Q)]) for j in range(len(K))]
    order = sorted_places(rows, bool(gates), "two channels have the same gates and mix", open_choices)
    return Q[order], K[order], W, order


def is_close(one: Array, other: Array, domain: Domain) -> bool:
    """Whether two tensors are equal, floats to rounding relative to the largest entry."""
    if domain.is_exact:
        return domain.equal(one, other)
    return float(np.abs(one - other).max(initial=0.0)) <= CANONICAL_FIXED * float(np.abs(one).max(initial=0.0))
