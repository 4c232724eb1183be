"""The idealised network as a linear map at a point: the free entries of its gauge slice, samples, rows and products.

Row n of the Jacobian of W ↦ (⟨C_n, phi_W(X_n)⟩)_n pairs the output at a random input X_n with a random cotangent C_n:
as many rows as the dimension suffice, for the reason in docs/explanation/dimension.md. Tokens are rows here: X has
shape (N, t, d). Kinds of attention that are not polynomial are formal mod p: weights are drawn as the algebraically
independent functions that they are.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from attngeom.dimensions.effective import effective_layers
from attngeom.errors import SingularError
from attngeom.exact.arrays import swap
from attngeom.exact.domains import GF, Array, BalancedField, Domain
from attngeom.exact.points import name_point, residues
from attngeom.limits.memory import TANGENTS_AT_ONCE
from attngeom.network.architecture import Architecture
from attngeom.network.layer import Formal, Passes
from attngeom.network.weights import Head, Weights, named_weights, random_weights
from attngeom.rank.maps import LinearMap


@dataclass(frozen=True)
class SlicedTensor:
    """Where a tensor of the smaller network lies: rows×columns in the corner of tensor ``name``, free from ``start``.

    In the gauge slice the columns before ``start`` are held fixed, and the corner entry too if ``fix_corner``.
    """

    name: str
    rows: int
    columns: int
    start: int
    fix_corner: bool = False

    @property
    def num_free(self) -> int:
        return self.rows * (self.columns - self.start) - int(self.fix_corner)


def gauge_slice(architecture: Architecture) -> Iterator[tuple[int, list[SlicedTensor]]]:
    """For every head its layer and the blocks of its tensors; holding the fixed entries loses no function generically.

    Fixed are: α columns of K (the group GL_α of a head), ν columns of V in a factored head (GL_ν), s_i columns of V_i
    or of the O_i of all heads together (GL_{s_i} between layers), and one entry of Q per scale.
    """
    scales = architecture.rule.has_scale
    for index, layer in enumerate(effective_layers(architecture)):
        moves = not architecture.residual and not layer.is_last
        for head in range(layer.heads):
            Q, K, V, O = (architecture.tensor_name(index, head, letter) for letter in "QKVO")
            values = [SlicedTensor(V, layer.d_out, layer.d_in, layer.d_out if moves else 0)]
            if layer.value_width is not None:
                v = layer.value_width
                fixed = min(max(layer.d_out - head * v, 0), v) if moves else 0
                values = [SlicedTensor(V, v, layer.d_in, v), SlicedTensor(O, layer.d_out, v, fixed)]
            queries = SlicedTensor(Q, layer.attention, layer.d_in, 0, scales)
            keys = SlicedTensor(K, layer.attention, layer.d_in, layer.attention)
            yield index, [queries, keys, *values]


@dataclass(frozen=True, eq=False)
class SlicedNetwork:
    """A point of weight space, cut to the effective sizes; ``blocks`` are its tensors in storage order.

    ``columns`` are the places of the free entries in the weight vector of the whole network.
    """

    architecture: Architecture
    domain: Domain
    layers: tuple[tuple[Head, ...], ...]
    blocks: tuple[SlicedTensor, ...]
    columns: Array

    @property
    def num_columns(self) -> int:
        return len(self.columns)

    def passes(self, X: Array, formal: Formal | None) -> Passes:
        """The network at inputs X with tokens in rows."""
        architecture = self.architecture
        rule = architecture.rule if formal is None else architecture.rule.formal
        return Passes.at(self.layers, X, rule, self.domain, architecture.residual, formal)

    def directions(self, vectors: Array) -> Iterator[Array | None]:
        """Vectors (..., columns) in the shapes of the tensors; None where a tensor is held fixed."""
        start, lead = 0, vectors.shape[:-1]
        for block in self.blocks:
            stop = start + block.num_free
            if stop == start:
                yield None
                continue
            direction = np.zeros((*lead, block.rows * (block.columns - block.start)), dtype=vectors.dtype)
            direction[..., int(block.fix_corner) :] = vectors[..., start:stop]
            whole = np.zeros((*lead, block.rows, block.columns), dtype=vectors.dtype)
            whole[..., block.start :] = direction.reshape(*lead, block.rows, -1)
            yield whole
            start = stop


def slice_weights(weights: Weights, domain: Domain) -> SlicedNetwork:
    """The corner blocks of the weights over another domain of the same field, with the free entries of the slice."""
    architecture = weights.architecture
    tensors, slots, shapes = dict(weights.tensors()), architecture.slots(), dict(architecture.tensor_shapes())
    layers: list[list[Head]] = [[] for _ in range(architecture.num_layers)]
    blocks: list[SlicedTensor] = []
    free = []
    for index, parts in gauge_slice(architecture):
        layers[index].append(Head(*(domain.convert(tensors[part.name][: part.rows, : part.columns]) for part in parts)))
        blocks += parts
        for part in parts:
            rows = slots[part.name].start + shapes[part.name][1] * np.arange(part.rows)
            entries = rows[:, None] + np.arange(part.start, part.columns)
            free.append(entries.ravel()[int(part.fix_corner) :])
    return SlicedNetwork(architecture, domain, tuple(map(tuple, layers)), tuple(blocks), np.concatenate(free))


def full_blocks(weights: Weights) -> SlicedNetwork:
    """All entries of the weights as free columns: no slice, for points that are not generic."""
    architecture = weights.architecture
    blocks = tuple(SlicedTensor(name, rows, columns, 0) for name, (rows, columns) in architecture.tensor_shapes())
    return SlicedNetwork(architecture, weights.domain, weights.layers, blocks, np.arange(architecture.num_parameters))


def count_columns(architecture: Architecture) -> int:
    """The number of free entries of the gauge slice: the dimension, plus what no slice is known for.

    >>> count_columns(Architecture((3, 3, 3), 2))
    23
    """
    return sum(block.num_free for _, blocks in gauge_slice(architecture) for block in blocks)


def random_slice(architecture: Architecture, p: int, seed: int) -> SlicedNetwork:
    """Random weights mod p from a seed, cut to the effective sizes.

    >>> random_slice(Architecture((2, 2), 1), 8388593, seed=0).num_columns
    6
    """
    return slice_weights(random_weights(architecture, GF(p), seed), BalancedField(p))


def named_slice(architecture: Architecture, p: int, name: str) -> SlicedNetwork:
    """The weights of a named point mod p, cut to the effective sizes.

    >>> named_slice(Architecture((2, 2), 1), 8388593, "attngeom/0").num_columns
    6
    """
    return slice_weights(named_weights(architecture, GF(p), name), BalancedField(p))


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
    if architecture.rule.evaluates(domain):
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
    if architecture.rule.evaluates(domain):
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


class NetworkMap(LinearMap):
    """The derivative of all outputs at all samples along the free entries of a slice, by forward propagation."""

    def __init__(self, network: SlicedNetwork, passes: Passes, field: BalancedField) -> None:
        self.network, self.passes, self.field = network, passes, field
        self.size, self.outputs = network.num_columns, passes.output().size

    def push(self, vectors: Array) -> Array:
        moved = self.passes.push(list(self.network.directions(vectors)))
        if moved is None:
            raise ArithmeticError("the slice has no free entry, so there is nothing to differentiate")
        return moved.reshape(len(vectors), self.outputs)


def hold_last_map(network: SlicedNetwork) -> SlicedNetwork:
    """The same network with the last V, or all O of the last layer, held fixed."""
    each = len(network.blocks) // (network.architecture.num_layers * network.architecture.heads)
    first = len(network.blocks) - each * network.architecture.heads
    blocks = tuple(
        replace(block, start=block.columns) if place >= first and place % each == each - 1 else block
        for place, block in enumerate(network.blocks)
    )
    # Only the number of columns is used from here on.
    return replace(network, blocks=blocks, columns=np.arange(sum(block.num_free for block in blocks)))


def token_features(passes: Passes) -> Array:
    """The vectors b of all tokens of all samples, (N, t, r): the output at a token is W b, plus its input if any."""
    last = passes.layers[-1]
    parts = [last.domain.matmul(swap(x.P), last.X) if x.head.O is None else x.mixed for x in last.traces]
    return np.concatenate(parts, axis=-1)


def last_features(network: SlicedNetwork, samples: Samples) -> Array:
    """The vectors b with ⟨C, phi(X)⟩ = W_i · b for C = c ⊗ e_i: shape (N, r); c is the sum of C over output rows."""
    features = token_features(network.passes(samples.X, samples.attention))
    return network.domain.matmul(samples.C.sum(axis=-1)[:, None], features)[:, 0]
