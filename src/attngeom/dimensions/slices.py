"""The gauge slice: which entries of the effective network are free, and points of weight space cut to it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from attngeom.dimensions.effective import effective_layers
from attngeom.exact.domains import GF, Array, BalancedField, Domain
from attngeom.network.architecture import Architecture
from attngeom.network.layer import Formal, Passes
from attngeom.network.weights import Head, Weights, named_weights, random_weights


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
