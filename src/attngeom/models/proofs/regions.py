"""Signs, clamps and choices of piecewise parts, read off a real point: an open region of weights and inputs has them.

Let the output matrices of attention (or the gains behind them) be small. Then the stream in front of the MLP is any
vector that the block receives, up to little, so that real vectors drawn at random, one for each sample, and one set of
real rows for all of them are a point of the block. The signs at this point hold together in a neighbourhood of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from attngeom.exact.arrays import Array
from attngeom.models.counts.sublayers import mlps
from attngeom.models.specification import MLP, Experts, Norm

MARGIN = 1e-6
"""Least distance from a boundary, far above the rounding of sums of a few products."""


@dataclass(frozen=True)
class Pieces:
    """For every sample: which units are on, which gates and ups are at a bound (±1), and whether all is clear."""

    is_on: Array
    gate: Array
    up: Array
    clear: Array


@dataclass(eq=False)
class Region:
    """A real point of the rows of MLPs, routers and norms, by the names of their weights; drawn where first asked for.

    >>> region = Region(np.random.default_rng(0))
    >>> mlp = MLP(width=3, activation="relu", gated=False)
    >>> region.units("mlp", mlp, np.array([[1.0, 2.0], [-1.0, -2.0]])).is_on.sum(axis=0).tolist()
    [1, 1, 1]
    """

    rng: np.random.Generator
    known: dict[str, Array] = field(default_factory=dict)

    def _tensor(self, name: str, shape: tuple[int, ...]) -> Array:
        if name not in self.known:
            self.known[name] = self.rng.normal(size=shape)
        return self.known[name]

    def vectors(self, count: int, width: int) -> Array:
        """Vectors of the stream of different lengths."""
        lengths = np.exp(self.rng.uniform(-1.5, 1.5, (count, 1)))
        return self.rng.normal(size=(count, width)) * lengths

    def table(self, name: str, rows: int, width: int) -> Array:
        """A table of real vectors."""
        return self._tensor(name, (rows, width))

    def normalise(self, name: str, norm: Norm | None, x: Array) -> Array:
        """n(x) plus the norm's bias; its gains are 1."""
        if norm is None:
            return x
        if norm.kind == "layer":
            x = x - x.mean(axis=1, keepdims=True)
        x = x / np.sqrt((x * x).mean(axis=1, keepdims=True) + norm.eps)
        return x + self._tensor(f"{name}.bias", x.shape[1:]) if norm.bias else x

    def _rows(self, name: str, rows: int, u: Array, bias: bool, size: float = 1.0) -> Array:
        found = u @ self._tensor(name, (rows, u.shape[1])).T
        return size * (found + self._tensor(f"{name}_bias", (rows,)) if bias else found)

    def units(self, name: str, mlp: MLP, u: Array) -> Pieces:
        """The pieces of the hidden units at u (samples, width); rows are as large as the limit."""
        size = 1.0 if mlp.limit is None else mlp.limit
        up = self._rows(f"{name}.up", mlp.width, u, mlp.up_bias, size)
        gate = self._rows(f"{name}.gate", mlp.width, u, mlp.up_bias, size) if mlp.gated else up
        clear = np.abs(gate).min(axis=1) > MARGIN if mlp.activation == "relu" else np.ones(len(u), bool)
        if mlp.limit is None:
            none = np.zeros(up.shape, np.int64)
            return Pieces((gate > 0).astype(np.int64), none, none, clear)
        margins = np.minimum(np.abs(gate - mlp.limit), np.abs(np.abs(up) - mlp.limit))
        above, beyond = (gate > mlp.limit).astype(np.int64), (up > mlp.limit).astype(np.int64) - (up < -mlp.limit)
        return Pieces((gate > 0).astype(np.int64), above, beyond, clear & (margins.min(axis=1) > MARGIN))

    def choice(self, name: str, experts: Experts, u: Array) -> tuple[Array, Array]:
        """Which experts run (rows of 0 and 1), and for which samples this is clear: best groups, then best experts."""
        scores = self._rows(f"{name}.router", experts.count, u, experts.router_bias)
        gaps = np.diff(np.sort(scores, axis=1), axis=1)
        clear = gaps.min(axis=1, initial=1.0) > MARGIN
        if experts.expert_groups > 1:
            shares = 1 / (1 + np.exp(-scores)) if experts.router == "sigmoid" else scores
            ordered = np.sort(shares.reshape(len(u), experts.expert_groups, -1), axis=2)
            best = ordered[:, :, -2:].sum(axis=2) if experts.router == "sigmoid" else ordered[:, :, -1]
            clear &= np.diff(np.sort(best, axis=1), axis=1).min(axis=1) > MARGIN
            kept = _largest(best, experts.active_groups).repeat(experts.count // experts.expert_groups, axis=1)
            scores = np.where(kept, scores, -np.inf)
        return _largest(scores, experts.active).astype(np.int64), clear

    def read(self, name: str, part: MLP | Experts, u: Array) -> tuple[Mapping[str, Pieces], Array | None, Array]:
        """All pieces of a sublayer by the names of its MLPs, the chosen experts, and for which samples all is clear."""
        if isinstance(part, MLP):
            found = {name: self.units(name, part, u)}
            return found, None, found[name].clear
        chosen, clear = self.choice(name, part, u)
        found = {f"{name}.{index}": self.units(f"{name}.{index}", part.expert, u) for index in range(part.count)}
        if part.shared is not None:
            found[f"{name}.shared"] = self.units(f"{name}.shared", part.shared, u)
        return found, chosen, np.logical_and.reduce([clear, *(pieces.clear for pieces in found.values())])


def _largest(scores: Array, count: int) -> Array:
    """Whether an entry is among the largest of its row."""
    places = np.argsort(np.argsort(-scores, axis=1, kind="stable"), axis=1, kind="stable")
    chosen: Array = places < count
    return chosen


def is_piecewise(part: MLP | Experts | None) -> bool:
    """Whether the part has units that switch on and off, clamps, or a choice of experts."""
    if part is None or (isinstance(part, Experts) and part.active < part.count):
        return part is not None
    return any(mlp.activation == "relu" or mlp.limit is not None for mlp in mlps(part))
