"""Jacobians of W ↦ (⟨C_n, phi_W(X_n)⟩)_n in closed form, by reverse propagation, over any domain.

Row n pairs the output at a random input X_n with a random cotangent C_n. For every tangent vector Ẇ that changes the
function, ⟨C, dphi(Ẇ)(X)⟩ is a nonzero polynomial in (X, C), so by induction r random rows have rank r as long as r is
at most the dimension: as many rows as the expected dimension always suffice, and no structure of the outputs can
make them too few. Arrays are token-major here: X has shape (N, t, d).

Formal softmax: over GF(p) attention columns P_n are random elements that sum to 1, with dP = P (dS − Σ P dS). This
gives the generic rank of the true Jacobian because the exponentials of the scores are algebraically independent over
the field of rational functions in (W, X): by Ax's theorem that needs only that the scores of one layer, up to a
constant per column, are linearly independent over Q, and they are for effective width ≥ 2. For effective width 1 the
scores m y_j y_i are symmetric, and the exponentials are drawn symmetric.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from attngeom.dimensions.residues import BalancedField
from attngeom.dimensions.sliced import SlicedHead, SlicedNetwork
from attngeom.exact.domains import Array, Domain
from attngeom.network.forward import softmax_columns

MAX_CHUNK = 2**22
"""Entries of a Jacobian that are propagated at once."""


@dataclass(frozen=True, eq=False)
class Samples:
    """Inputs X (N, t, d_0), cotangents C (N, t, d_l), and formal attention for each layer and head (or none).

    With several cotangents for one input, X has shape (N, 1, t, d_0) and C (N, k, t, d_l).
    """

    X: Array
    C: Array
    attention: tuple[tuple[Array, ...], ...] | None


def random_samples(network: SlicedNetwork, count: int, tokens: int, seed: int) -> Samples:
    """Samples from a seed, drawn in the order X, C, then the attention of every layer and head.

    Attention is random with columns that sum to 1, see :func:`formal_attention`; the true one is used over floats
    and balls.
    """
    architecture, domain = network.architecture, network.domain
    rng = np.random.default_rng(seed)
    X = domain.random((count, tokens, architecture.widths[0]), rng)
    C = domain.random((count, tokens, architecture.widths[-1]), rng)
    if architecture.kind != "softmax" or not isinstance(domain, BalancedField):
        return Samples(X, C, None)
    attention = []
    for heads in network.layers:
        # Tokens beyond ``tokens`` are copies of the last one: with symmetric exponentials that is visible.
        copies = architecture.tokens - tokens + 1 if heads[0].blocks[0].columns == 1 else None
        shape = (count, tokens, tokens)
        attention.append(tuple(formal_attention(shape, architecture.causal, copies, domain, rng) for _ in heads))
    return Samples(X, C, tuple(attention))


def formal_attention(
    shape: tuple[int, int, int], causal: bool, copies: int | None, field: BalancedField, rng: np.random.Generator
) -> Array:
    """Random P of shape (N, t, t) with Σ_j P_ji = 1, P_ji = 0 for j > i if causal.

    P is a random E with each diagonal entry replaced by 1 − the rest of its column. If ``copies`` is given, the scores
    are symmetric: P is the upper triangle of E made symmetric, its last row multiplied by the number of copies of the
    last token (unless causal), divided by the column sums; drawn again should one of these vanish.

    >>> P = formal_attention((1, 2, 2), True, None, BalancedField(7), np.random.default_rng(0))
    >>> P[0, 0, 0].item(), P[0, 1, 0].item()
    (1.0, 0.0)
    """
    diagonal = np.arange(shape[-1])
    while True:
        E = field.random(shape, rng)
        if causal:
            E = np.triu(E)
        elif copies is not None:
            E = np.triu(E) + np.swapaxes(np.triu(E, 1), -1, -2)
            E[..., -1, :] = field.reduce(E[..., -1, :] * (copies % field.p))
        if copies is None:
            E[..., diagonal, diagonal] = 0
            E[..., diagonal, diagonal] = field.reduce(1 - E.sum(axis=-2))
            return E
        sums = field.reduce(E.sum(axis=-2))
        if np.all(sums):
            return field.times(E, field.reciprocals(sums)[..., None, :])


def swap(a: Array) -> Array:
    """The transpose over the last two axes."""
    return np.swapaxes(a, -1, -2)


def _times(domain: Domain, a: Array, b: Array) -> Array:
    return domain.times(a, b) if isinstance(domain, BalancedField) else domain.reduce(a * b)


def project(domain: Domain, X: Array, matrix: Array) -> Array:
    """X matrixᵀ for tokens in rows, as one product."""
    flat = domain.matmul(X.reshape(-1, X.shape[-1]), matrix.T)
    return flat.reshape(*X.shape[:-1], matrix.shape[0])


@dataclass(frozen=True, eq=False)
class HeadTrace:
    """What one head computed: queries, keys, values (N, t, ·), its t×t attention and the values it mixed."""

    q: Array
    k: Array
    v: Array
    attention: Array
    mixed: Array


def trace_head(network: SlicedNetwork, head: SlicedHead, X: Array, formal: Array | None) -> HeadTrace:
    """Run one head forward and keep what the propagation back needs."""
    domain, architecture = network.domain, network.architecture
    q, k, v = (project(domain, X, matrix) for matrix in head.arrays[:3])
    if formal is not None:
        attention = formal
    else:
        attention = domain.matmul(k, swap(q))
        visible = np.ones(attention.shape[-2:], dtype=np.int64)
        if architecture.causal:
            visible = np.triu(visible)
        if architecture.kind == "softmax":
            attention = softmax_columns(attention, visible.astype(bool), domain)
        elif architecture.causal:
            attention = attention * visible
    return HeadTrace(q, k, v, attention, domain.matmul(swap(attention), v))


def trace_network(network: SlicedNetwork, samples: Samples) -> tuple[list[Array], list[list[HeadTrace]], Array]:
    """The inputs of all layers, the traces of all heads, and the output."""
    domain = network.domain
    X, inputs, traces = samples.X, [], []
    for index, heads in enumerate(network.layers):
        inputs.append(X)
        formal = samples.attention[index] if samples.attention is not None else (None,) * len(heads)
        row = [trace_head(network, head, X, P) for head, P in zip(heads, formal)]
        total = X if network.architecture.residual else None
        for head, trace in zip(heads, row):
            part = trace.mixed if len(head.arrays) == 3 else project(domain, trace.mixed, head.arrays[3])
            total = part if total is None else domain.reduce(total + part)
        X = np.asarray(total)
        traces.append(row)
    return inputs, traces, X


def score_cotangent(network: SlicedNetwork, attention: Array, cotangent: Array) -> Array:
    """The cotangent of the scores from that of the attention: itself, or P (P̄ − Σ_j P_ji P̄_ji) for softmax."""
    domain, architecture = network.domain, network.architecture
    if architecture.kind == "softmax":
        product = _times(domain, attention, cotangent)
        sums = domain.reduce(product.sum(axis=-2, keepdims=True))
        return domain.reduce(product - _times(domain, attention, sums))
    return cotangent * np.triu(np.ones(cotangent.shape[-2:], dtype=np.int64)) if architecture.causal else cotangent


def pull_back(
    network: SlicedNetwork, head: SlicedHead, trace: HeadTrace, cotangent: Array
) -> tuple[tuple[Array, ...], list[Array]]:
    """Cotangents of (q, k, v, out) of one head for a given cotangent of its output; and those of its input parts."""
    domain = network.domain
    mixed = cotangent if len(head.arrays) == 3 else project(domain, cotangent, head.arrays[3].T)
    scores = score_cotangent(network, trace.attention, domain.matmul(trace.v, swap(mixed)))
    q = domain.matmul(swap(scores), trace.k)
    k = domain.matmul(scores, trace.q)
    v = domain.matmul(trace.attention, mixed)
    parts = [project(domain, bar, matrix.T) for bar, matrix in zip((q, k, v), head.arrays)]
    return (q, k, v), parts


def jacobian_chunk(network: SlicedNetwork, samples: Samples, out: Array) -> None:
    """Write the rows of the sliced Jacobian of these samples into ``out`` (N, columns), or (N, k, columns)."""
    domain = network.domain
    inputs, traces, _ = trace_network(network, samples)
    cotangent, stop = samples.C, network.num_columns
    for heads, row, X in zip(reversed(network.layers), reversed(traces), reversed(inputs)):
        before = cotangent if network.architecture.residual else None
        for head, trace in zip(reversed(heads), reversed(row)):
            bars, parts = pull_back(network, head, trace, cotangent)
            pairs = [(bar, X) for bar in bars]
            if len(head.arrays) == 4:
                pairs.append((cotangent, trace.mixed))
            for (bar, source), block in zip(reversed(pairs), reversed(head.blocks)):
                if block.num_free == 0:
                    continue
                gradient = domain.matmul(swap(bar), source[..., block.start :])
                flat = gradient.reshape(*gradient.shape[:-2], -1)[..., int(block.fix_corner) :]
                out[..., stop - block.num_free : stop] = flat
                stop -= block.num_free
            for part in parts:
                before = part if before is None else domain.reduce(before + part)
        cotangent = np.asarray(before)


def jacobian(network: SlicedNetwork, samples: Samples) -> Array:
    """The matrix of all samples against the free entries of the slice, over the domain of the network.

    >>> from attngeom.dimensions.sliced import random_slice
    >>> from attngeom.network import Architecture
    >>> network = random_slice(Architecture((2, 2), 1), 8388593, seed=0)
    >>> jacobian(network, random_samples(network, 6, 2, seed=1)).shape
    (6, 6)
    """
    out = np.empty((*samples.C.shape[:-2], network.num_columns), dtype=samples.X.dtype)
    with network.domain.working():
        for part in _chunks(len(out), out.size):
            jacobian_chunk(network, select_samples(samples, part), out[part])
    return out


def select_samples(samples: Samples, part: slice | Array) -> Samples:
    """Some of the samples."""
    attention = samples.attention
    if attention is not None:
        attention = tuple(tuple(P[part] for P in heads) for heads in attention)
    return Samples(samples.X[part], samples.C[part], attention)


def _chunks(count: int, entries: int) -> Iterator[slice]:
    size = max(1, MAX_CHUNK * count // max(entries, 1))
    for start in range(0, count, size):
        yield slice(start, min(start + size, count))
