"""Infinitesimal symmetries as vectors of weight changes, and sublayer outputs that they move by a constant."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from attngeom.exact.arrays import Array
from attngeom.exact.domains import GF
from attngeom.models.proofs.coordinates import ResiduePoint
from attngeom.models.proofs.formal import PRIME, inverse
from attngeom.models.specification import Norm

Change = Mapping[str, Array]


@dataclass(eq=False)
class Moves:
    """Vectors along which the function of a block does not change."""

    point: ResiduePoint
    vectors: list[Array] = field(default_factory=list)

    def vector(self, change: Change) -> Array:
        """The weight change with the given tensors; names that are no weights are left out."""
        found = np.zeros(self.point.size, np.int64)
        for name, values in change.items():
            if name in self.point:
                found[self.point.indices(name)] = values
        return found % PRIME

    def add(self, change: Change) -> None:
        self.vectors.append(self.vector(change))

    def scaled(self, names: list[str], inverse_names: list[str]) -> Change:
        """Some tensors times 1 + ε, others times 1 − ε."""
        point = self.point
        up = {name: point[name] for name in names if name in point}
        return up | {name: -point[name] for name in inverse_names if name in point}

    def zeros(self, name: str) -> Array:
        return np.zeros(self.point.shapes[name], np.int64)


@dataclass(frozen=True, eq=False)
class Reader:
    """What readers see of a norm: gains, bias and their quotients; ``name`` is that of the norm's weights."""

    point: ResiduePoint
    norm: Norm | None
    name: str
    width: int

    @property
    def gain(self) -> Array:
        has_gain = self.norm is not None and self.norm.gain
        return self.point[f"{self.name}.gain"] if has_gain else np.ones(self.width, np.int64)

    @property
    def bias(self) -> Array | None:
        return self.point[f"{self.name}.bias"] if self.norm is not None and self.norm.bias else None

    @property
    def mean_direction(self) -> Array | None:
        """The row 1/gain that a LayerNorm annihilates up to a constant; None for other norms."""
        return inverse(self.gain) if self.norm is not None and self.norm.kind == "layer" else None

    @property
    def mean_constant(self) -> int:
        """The constant that the row 1/gain reads: Σ bias/gain."""
        return 0 if self.bias is None else int((self.bias * inverse(self.gain) % PRIME).sum() % PRIME)

    def seen(self, weight: Array) -> Array:
        """A matrix (…, width) as it acts on n(x): times gain, and without mean for a LayerNorm."""
        acting = weight * self.gain % PRIME
        if self.mean_direction is None:
            return acting
        mean = acting.sum(axis=-1, keepdims=True) * pow(self.width, -1, PRIME) % PRIME
        centred: Array = (acting - mean) % PRIME
        return centred

    def constant(self, weight: Array, bias: Array | None) -> Array:
        """W·bias of the norm + own bias."""
        own: Array = np.zeros(weight.shape[:-1], np.int64) if bias is None else bias
        if self.bias is None:
            return own
        total: Array = (weight @ self.bias + own) % PRIME
        return total

    def shift(self, index: int, weights: list[tuple[str, str]]) -> Change:
        """The norm's bias moved by a unit vector, and readers (matrix, bias) changed so that they do not notice."""
        unit = np.zeros(self.width, np.int64)
        unit[index] = 1
        change = {f"{self.name}.bias": unit}
        for matrix, own in weights:
            column = self.point[matrix][..., index]
            if own in self.point:
                change[own] = -column
            else:
                row = inverse(self.gain) * pow(self.mean_constant, -1, PRIME) % PRIME
                change[matrix] = -column[..., None] * row
        return change


def kernel(matrix: Array) -> Array:
    """A basis of {x : matrix·x = 0} as rows; a matrix without rows has the whole space as kernel."""
    return GF(PRIME).nullspace(matrix % PRIME)


@dataclass(frozen=True, eq=False)
class Shifts:
    """Weight changes (rows of ``vectors``) that add the constants ``effects`` (rows) to the output of a sublayer."""

    vectors: Array
    effects: Array

    @staticmethod
    def collect(pairs: list[tuple[Array, Array]], size: int, width: int) -> Shifts:
        vectors = np.array([vector for vector, _ in pairs], np.int64).reshape(len(pairs), size)
        effects = np.array([effect for _, effect in pairs], np.int64).reshape(len(pairs), width)
        return Shifts(vectors, effects % PRIME)

    def joined(self, other: Shifts) -> Shifts:
        return Shifts(np.concatenate([self.vectors, other.vectors]), np.concatenate([self.effects, other.effects]))


def without_mean(effects: Array) -> Array:
    """Vectors modulo 1: differences to the first coordinate."""
    return (effects[..., 1:] - effects[..., :1]) % PRIME


def combine(steps: list[tuple[Shifts, bool]]) -> Array:
    """Combinations of the shifts of successive sublayers that the block does not show.

    A step says whether what is read after the sublayer ignores the mean; after the last one nothing may remain (or
    only the mean, if its step says so). The sum so far is constrained after every step.
    """
    width = steps[0][0].effects.shape[1]
    total = sum(len(shifts.vectors) for shifts, _ in steps)
    constraints = []
    start = 0
    running = np.zeros((total, width), np.int64)
    for shifts, mean_ignored in steps:
        running[start : start + len(shifts.vectors)] = shifts.effects
        start += len(shifts.vectors)
        seen = without_mean(running) if mean_ignored else running
        constraints.append(seen.T.copy())
    coefficients = kernel(np.concatenate(constraints)) if total else np.zeros((0, 0), np.int64)
    vectors = np.concatenate([shifts.vectors for shifts, _ in steps])
    product = [(row[:, None] * vectors % PRIME).sum(axis=0) % PRIME for row in coefficients]
    return np.array(product, np.int64).reshape(len(product), vectors.shape[1])
