"""A point of weight space cut to the effective sizes, with the entries that are free in the gauge slice."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from attngeom.dimensions.effective import Block, gauge_slice
from attngeom.dimensions.residues import BalancedField
from attngeom.exact.domains import GF, Array, Domain
from attngeom.network.architecture import Architecture
from attngeom.network.weights import Weights, random_weights


@dataclass(frozen=True, eq=False)
class SlicedHead:
    """The tensors of one head of the smaller network and their blocks in the gauge slice."""

    arrays: tuple[Array, ...]
    blocks: tuple[Block, ...]


@dataclass(frozen=True, eq=False)
class SlicedNetwork:
    """A point of weight space, cut to the effective sizes; ``columns`` are the free entries in the weight vector."""

    architecture: Architecture
    domain: Domain
    layers: tuple[tuple[SlicedHead, ...], ...]
    columns: Array

    @property
    def num_columns(self) -> int:
        return len(self.columns)


def slice_weights(weights: Weights, domain: Domain) -> SlicedNetwork:
    """The corner blocks of the weights over another domain of the same field, with the free entries of the slice."""
    architecture = weights.architecture
    tensors = dict(weights.tensors())
    starts, offset = {}, 0
    for name, (rows, columns) in architecture.tensor_shapes():
        starts[name] = (offset, columns)
        offset += rows * columns
    layers: list[list[SlicedHead]] = [[] for _ in range(architecture.num_layers)]
    free = []
    for index, _, blocks in gauge_slice(architecture):
        arrays = tuple(domain.array(tensors[block.name][: block.rows, : block.columns]) for block in blocks)
        layers[index].append(SlicedHead(arrays, blocks))
        for block in blocks:
            first, stride = starts[block.name]
            entries = first + stride * np.arange(block.rows)[:, None] + np.arange(block.start, block.columns)
            free.append(entries.ravel()[int(block.fix_corner) :])
    return SlicedNetwork(architecture, domain, tuple(map(tuple, layers)), np.concatenate(free))


def full_blocks(weights: Weights) -> SlicedNetwork:
    """All entries of the weights as free columns: no slice, for points that are not generic."""
    architecture = weights.architecture
    shapes = iter(weights.tensors())
    layers = []
    for heads in weights.layers:
        cut = []
        for head in heads:
            named = [next(shapes) for _ in head.tensors]
            blocks = tuple(Block(name, array.shape[0], array.shape[1], 0) for name, array in named)
            cut.append(SlicedHead(tuple(array for _, array in named), blocks))
        layers.append(tuple(cut))
    return SlicedNetwork(architecture, weights.domain, tuple(layers), np.arange(architecture.num_parameters))


def count_columns(architecture: Architecture) -> int:
    """The number of free entries of the gauge slice: the dimension, plus what no slice is known for.

    >>> count_columns(Architecture((3, 3, 3), 2))
    23
    """
    return sum(block.num_free for _, _, blocks in gauge_slice(architecture) for block in blocks)


def random_slice(architecture: Architecture, p: int, seed: int) -> SlicedNetwork:
    """Random weights mod p from a seed, cut to the effective sizes.

    >>> random_slice(Architecture((2, 2), 1), 8388593, seed=0).num_columns
    6
    """
    return slice_weights(random_weights(architecture, GF(p), seed), BalancedField(p))
