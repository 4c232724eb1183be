"""Jacobians of W ↦ (⟨C_n, phi_W(X_n)⟩)_n by reverse propagation, over any domain.

Row n pairs the output at a random input X_n with a random cotangent C_n: as many rows as the dimension suffice, for the
reason in docs/explanation/dimension.md. Tokens are rows here: X has shape (N, t, d). Kinds of attention that are not
polynomial are formal mod p: their weights are drawn as the algebraically independent functions that they are.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np

from attngeom.dimensions.slices import SlicedNetwork, named_slice
from attngeom.errors import SingularError
from attngeom.exact.arrays import swap
from attngeom.exact.domains import Array
from attngeom.exact.points import name_point, residues
from attngeom.limits.memory import TANGENTS_AT_ONCE
from attngeom.network.architecture import Architecture
from attngeom.network.weights import Head


@dataclass(frozen=True, eq=False)
class Samples:
    """Inputs X (N, t, d_0), cotangents C (N, t, d_l), and formal attention for each layer and head (or none).

    With several cotangents for one input, X has shape (N, 1, t, d_0) and C (N, k, t, d_l).
    """

    X: Array
    C: Array
    attention: tuple[tuple[Array, ...], ...] | None

    def select(self, part: slice | Array) -> Samples:
        """Some of the samples."""
        attention = self.attention
        if attention is not None:
            attention = tuple(tuple(P[part] for P in heads) for heads in attention)
        return Samples(self.X[part], self.C[part], attention)


def random_samples(network: SlicedNetwork, count: int, tokens: int, seed: int) -> Samples:
    """Samples from a seed, drawn in the order X, C, then the formal attention of every layer and head.

    Over floats and balls, and for polynomial kinds, attention is computed from the scores.
    """
    architecture, domain = network.architecture, network.domain
    rng = np.random.default_rng(seed)
    X = domain.random((count, tokens, architecture.widths[0]), rng)
    C = domain.random((count, tokens, architecture.widths[-1]), rng)
    if architecture.rule.is_polynomial or not domain.is_exact:
        return Samples(X, C, None)
    rule, attention = architecture.rule.formal, []
    for heads in network.layers:
        copies = count_copies(architecture, heads[0], tokens)
        attention.append(tuple(rule.draw((count, tokens, tokens), copies, domain, rng) for _ in heads))
    return Samples(X, C, tuple(attention))


def named_samples(network: SlicedNetwork, count: int, tokens: int, name: str) -> Samples:
    """The samples of a named point: ``Xr`` (d_0×t), ``Cr`` (d_l×t) and formal attention from ``Pr.l.h`` (t×t).

    SingularError where a sum of symmetric exponentials vanishes mod p: another name is needed.
    """
    architecture, domain = network.architecture, network.domain
    p = domain.characteristic

    def draw(label: str, rows: int, end: str = "") -> Array:
        shape = (rows, tokens)
        return domain.convert(np.stack([residues(name, f"{label}{r}{end}", shape, p) for r in range(count)]))

    X, C = (
        swap(draw(label, width)) for label, width in (("X", architecture.widths[0]), ("C", architecture.widths[-1]))
    )
    if architecture.rule.is_polynomial:
        return Samples(X, C, None)
    rule, attention = architecture.rule.formal, []
    for index, heads in enumerate(network.layers):
        copies = count_copies(architecture, heads[0], tokens)
        drawn = [rule.formal_weights(draw("P", tokens, f".{index}.{h}"), copies, domain) for h in range(len(heads))]
        matrices = tuple(P for P in drawn if P is not None)
        if len(matrices) < len(drawn):
            raise SingularError(f"a sum of exponentials vanishes mod {p} at the point {name}; another name is required")
        attention.append(matrices)
    return Samples(X, C, tuple(attention))


def draw_named(
    architecture: Architecture, p: int, count: int, tokens: int, seed: int
) -> tuple[SlicedNetwork, Samples, str]:
    """The first point of a seed at which no sum of exponentials vanishes: weights, samples, name."""
    names = (name_point(seed) + "'" * tries for tries in itertools.count())
    while True:
        name = next(names)
        network = named_slice(architecture, p, name)
        try:
            return network, named_samples(network, count, tokens, name), name
        except SingularError:
            continue


def count_copies(architecture: Architecture, head: Head, tokens: int) -> int | None:
    """Tokens beyond ``tokens`` are copies of the last one: with symmetric exponentials that is visible."""
    return architecture.tokens - tokens + 1 if head.Q.shape[1] == 1 else None


def sampled_jacobian(network: SlicedNetwork, samples: Samples) -> Array:
    """The matrix of all samples against the free entries of the slice, over the domain of the network.

    >>> from attngeom.dimensions.slices import random_slice
    >>> from attngeom.network import Architecture
    >>> network = random_slice(Architecture((2, 2), 1), 8388593, seed=0)
    >>> sampled_jacobian(network, random_samples(network, 6, 2, seed=1)).shape
    (6, 6)
    """
    out = np.empty((*samples.C.shape[:-2], network.num_columns), dtype=samples.X.dtype)
    with network.domain.working():
        size = max(1, TANGENTS_AT_ONCE * len(out) // max(out.size, 1))
        for start in range(0, len(out), size):
            part = slice(start, start + size)
            _write_rows(network, samples.select(part), out[part])
    return out


def _write_rows(network: SlicedNetwork, samples: Samples, out: Array) -> None:
    """Write the rows of these samples into ``out`` (N, columns), or (N, k, columns)."""
    start = 0
    gradients = network.passes(samples.X, samples.attention).pull(samples.C)
    for gradient, block in zip(gradients, network.blocks):
        stop = start + block.num_free
        if stop > start:
            rows_of_block = gradient.product(network.domain, block.start)
            out[..., start:stop] = rows_of_block.reshape(*rows_of_block.shape[:-2], -1)[..., int(block.fix_corner) :]
        start = stop
