"""The weights of a block, a stack or a model as one vector: names, shapes, and the maps that they make.

In a head the rotated coordinates come first, pair f being (f, f + r/2), then the unrotated ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from math import prod

import numpy as np

from attngeom.exact.arrays import Array
from attngeom.models.counts.sublayers import sublayers
from attngeom.models.programs import sublayer_name
from attngeom.models.proofs.formal import PRIME, Dual
from attngeom.models.specification import MLP, Experts, GroupedAttention, Norm, TransformerBlock

Shapes = Mapping[str, tuple[int, ...]]


def norm_shapes(name: str, norm: Norm | None, width: int) -> dict[str, tuple[int, ...]]:
    found: dict[str, tuple[int, ...]] = {}
    if norm is not None and norm.gain:
        found[f"{name}.gain"] = (width,)
    if norm is not None and norm.bias:
        found[f"{name}.bias"] = (width,)
    return found


def _with_bias(name: str, shape: tuple[int, ...], bias: bool) -> dict[str, tuple[int, ...]]:
    return {name: shape} | ({f"{name}_bias": shape[:-1]} if bias else {})


def attention_shapes(name: str, attention: GroupedAttention, width: int) -> dict[str, tuple[int, ...]]:
    heads, groups, a, v = attention.heads, attention.groups, attention.head_dim, attention.value_dim
    found: dict[str, tuple[int, ...]] = {}
    if attention.latent is None:
        found |= {f"{name}.query": (heads, a, width), f"{name}.key": (groups, a, width)}
        found[f"{name}.value"] = (groups, v, width)
        biases = {"query": (heads, a), "key": (groups, a), "value": (groups, v)}
        used = {"query": attention.query_bias, "key": attention.key_bias, "value": attention.value_bias}
        found |= {f"{name}.{part}_bias": shape for part, shape in biases.items() if used[part]}
    else:
        latent, plain, turned = attention.latent, attention.unrotated, attention.rotated
        rank = latent.query_rank
        if rank is not None:
            found |= _with_bias(f"{name}.query_latent", (rank, width), latent.bias)
            found |= norm_shapes(f"{name}.query_latent", latent.query_norm, rank)
        found[f"{name}.query"] = (heads, a, rank or width)
        found |= _with_bias(f"{name}.key_latent", (latent.key_rank, width), latent.bias)
        found |= norm_shapes(f"{name}.key_latent", latent.key_norm, latent.key_rank)
        if turned:
            found |= _with_bias(f"{name}.key_turned", (1, turned, width), latent.bias)
        found |= {f"{name}.key": (heads, plain, latent.key_rank), f"{name}.value": (heads, v, latent.key_rank)}
    if attention.qk_norm is not None and attention.qk_norm.norm.gain:
        shared = attention.qk_norm.shares_gains
        found |= {f"{name}.query_gain": (1 if shared else heads, a), f"{name}.key_gain": (1 if shared else groups, a)}
    if attention.sinks:
        found[f"{name}.sinks"] = (heads,)
    found[f"{name}.output"] = (heads, width, v)
    if attention.output_bias:
        found[f"{name}.output_bias"] = (width,)
    return found


def mlp_shapes(name: str, mlp: MLP | Experts, width: int) -> dict[str, tuple[int, ...]]:
    if isinstance(mlp, Experts):
        found: dict[str, tuple[int, ...]] = {f"{name}.router": (mlp.count, width)}
        if mlp.router_bias:
            found[f"{name}.router_bias"] = (mlp.count,)
        for index in range(mlp.count):
            found |= mlp_shapes(f"{name}.{index}", mlp.expert, width)
        return found | ({} if mlp.shared is None else mlp_shapes(f"{name}.shared", mlp.shared, width))
    rows = ("gate", "up") if mlp.gated else ("up",)
    found = {f"{name}.{row}": (mlp.width, width) for row in rows}
    if mlp.up_bias:
        found |= {f"{name}.{row}_bias": (mlp.width,) for row in rows}
    found[f"{name}.down"] = (width, mlp.width)
    if mlp.down_bias:
        found[f"{name}.down_bias"] = (width,)
    return found


def block_shapes(block: TransformerBlock, width: int, prefix: str = "") -> dict[str, tuple[int, ...]]:
    """Names and shapes of all weights of a block, with a prefix in front of every name."""
    found: dict[str, tuple[int, ...]] = {}
    for sublayer in sublayers(block):
        name = prefix + sublayer_name(sublayer)
        if isinstance(sublayer.map, GroupedAttention):
            found |= attention_shapes(name, sublayer.map, width)
        else:
            found |= mlp_shapes(name, sublayer.map, width)
        for place in ("input", "output", "stream"):
            found |= norm_shapes(f"{name}.{place}", getattr(sublayer.norms, place), width)
    return found


@dataclass(frozen=True, eq=False)
class ResiduePoint:
    """Weights mod p. ``slopes`` says whether maps carry derivatives by all weights."""

    shapes: Shapes
    values: Array
    slopes: bool = True

    @cached_property
    def offsets(self) -> dict[str, int]:
        ends = np.cumsum([0, *(prod(shape) for shape in self.shapes.values())])
        return dict(zip(self.shapes, (int(end) for end in ends), strict=False))

    @property
    def size(self) -> int:
        return len(self.values)

    @property
    def without_slopes(self) -> ResiduePoint:
        return ResiduePoint(self.shapes, self.values, False)

    def __contains__(self, name: str) -> bool:
        return name in self.shapes

    def indices(self, name: str) -> Array:
        """The places of a weight tensor in the vector, in its shape."""
        shape = self.shapes[name]
        return self.offsets[name] + np.arange(prod(shape)).reshape(shape)

    def __getitem__(self, name: str) -> Array:
        return self.values[self.indices(name)]

    def get(self, name: str) -> Array | None:
        """A weight tensor, None if the block has no such weight."""
        return self[name] if name in self.shapes else None

    def linear(self, name: str, x: Dual, subscripts: str) -> Dual:
        """einsum(subscripts) of the tensor and of x."""
        tensor = self[name]
        weights, vectors, result = subscripts.replace("->", ",").split(",")
        value = np.einsum(subscripts, tensor, x.value) % PRIME
        if not self.slopes:
            return Dual(value)
        if x.slope is None:
            slope = np.zeros((*value.shape, self.size), np.int64)
        else:
            slope = np.einsum(f"{weights},{vectors}z->{result}z", tensor, x.slope) % PRIME
        self._scatter(slope, name, x.value, weights, vectors, result)
        return Dual(value, slope)

    def _scatter(self, slope: Array, name: str, x: Array, weights: str, vectors: str, result: str) -> None:
        """Add the derivative by the tensor itself: an entry moves the outputs of its rows by the x of its columns."""
        sizes = dict(zip(weights, self.shapes[name], strict=True)) | dict(zip(vectors, x.shape, strict=True))
        letters = result + "".join(letter for letter in weights if letter not in result)
        axes = dict(zip(letters, np.ix_(*(np.arange(sizes[letter]) for letter in letters)), strict=True))
        place = self.indices(name)[tuple(axes[letter] for letter in weights)]
        moved = x[tuple(axes[letter] for letter in vectors)]
        target = (*(axes[letter] for letter in result), place)
        # Every target is hit once: the place determines the letters of the tensor, the rest are the axes of the result.
        slope[target] = (slope[target] + moved) % PRIME

    def add(self, name: str, x: Dual) -> Dual:
        """x + b with b of the shape of the last axes of x; x itself if there is no such weight."""
        if name not in self.shapes:
            return x
        return x + self.tensor(name)

    def tensor(self, name: str) -> Dual:
        """A weight tensor as a dual number with its unit derivatives and one leading axis for the samples."""
        value = self[name][None]
        if not self.slopes:
            return Dual(value)
        slope = np.zeros((*value.shape, self.size), np.int64)
        np.put_along_axis(slope, self.indices(name)[None, ..., None], 1, axis=-1)
        return Dual(value, slope)


def random_point(shapes: Shapes, rng: np.random.Generator) -> ResiduePoint:
    size = sum(prod(shape) for shape in shapes.values())
    return ResiduePoint(shapes, rng.integers(1, PRIME, size))
