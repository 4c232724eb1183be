"""Random residues that readers are evaluated at: what they see of a norm, and of a latent behind it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product

import numpy as np

from attngeom.exact.arrays import Array
from attngeom.models.affine import Affine
from attngeom.models.layer import AttentionWeights, LatentWeights, NormWeights
from attngeom.models.residues import P, apply, dot, integers, random_residues, residue
from attngeom.models.specification import GroupedAttention, Norm


class Vectors:
    """Random residue vectors by name and length, the same for every layer and model with the same seed."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self._known: dict[tuple[str, int, bool], Array] = {}

    def get(self, name: str, length: int, total_zero: bool = False) -> Array:
        key = (name, length, total_zero)
        if key not in self._known:
            self._known[key] = random_residues(length, f"{self.seed}/{name}/{total_zero}", total_zero=total_zero)
        return self._known[key]


class Input:
    """What readers of a norm see: γ ∘ x for the probes x, and β as the constant."""

    def __init__(self, norm: Norm | None, weights: NormWeights | None, width: int, vectors: Vectors) -> None:
        self.centred = norm is not None and norm.kind == "layer"
        self.vectors, self.width = vectors, width
        self.weights = NormWeights.plain(width) if weights is None else weights
        self.gain = np.ones(width, dtype=object)
        self.shift = np.zeros(width, dtype=object)
        if weights is not None:
            self.gain = (integers(weights.stored) + residue(weights.offset)) % P
            self.shift = integers(weights.bias)

    def probe(self, name: str) -> Array:
        return np.asarray(self.gain * self.vectors.get(name, self.width, self.centred) % P)

    def read(self, reader: Affine, *names: str) -> Array:
        """(…, out, 1 + number of names): constants first, then the values at the probes, as integers mod p."""
        columns = [self.shift, *(self.probe(name) for name in names)]
        weight = reader.weight.reshape(-1, reader.weight.shape[-1])
        values = apply(weight, columns)
        values[:, 0] = (values[:, 0] + integers(reader.bias.reshape(-1))) % P
        return values.reshape(*reader.bias.shape, len(columns))

    def read_rotated(self, reader: Affine, *names: str) -> tuple[Array, Array]:
        """Real and imaginary parts of complex rows."""
        return (
            self.read(Affine(reader.weight.real, reader.bias.real), *names),
            self.read(Affine(reader.weight.imag, reader.bias.imag), *names),
        )


class LatentInput(Input):
    """What readers of a latent see: gain ∘ down(γ ∘ x, t), t being what the constant of the map is multiplied by.

    A norm follows the map, so that its constant is a column like the others: the composite has no constant.
    """

    def __init__(self, source: Input, latent: LatentWeights) -> None:
        self.vectors, self.width = source.vectors, source.width
        self.source, self.latent = source, latent
        self.own = integers(latent.gain)
        self.shift = np.zeros(len(latent.gain), dtype=object)

    def down(self, name: str) -> Array:
        constant, value = self.source.read(self.latent.down, name).T
        return np.asarray((value + constant * self.vectors.get(f"{name}, constant", 1)) % P)

    def probe(self, name: str) -> Array:
        return np.asarray(self.own * self.down(name) % P)

    def gram(self) -> int:
        """⟨down x, down x'⟩, which orthogonal changes of the latent keep."""
        return dot(self.down("gram"), self.down("gram'"))


Rows = tuple[Array, Array, Array]
"""Values of real parts, imaginary parts and plain coordinates of queries or keys: (heads, rows, 3).

Columns: the constant, the probe, and a second probe for Gram invariants."""
PAIRS = tuple(product((0, 1), (0, 1)))
"""Columns of key and query whose products are seen."""


@dataclass(frozen=True, eq=False)
class AttentionProbe:
    """The maps of one attention at random residues: ``queries`` and ``keys`` are behind latents where there are some.

    ``source`` is what rotated keys read, ``written`` the probe of what is written.
    """

    spec: GroupedAttention
    weights: AttentionWeights
    queries: Input
    keys: Input
    source: Input
    written: Array

    @cached_property
    def query_rows(self) -> Rows:
        weights = self.weights
        rotated = self.queries.read_rotated(weights.rotated_query, "y", "y'")
        return *rotated, self.queries.read(weights.query, "y", "y'")

    @cached_property
    def key_rows(self) -> Rows:
        weights = self.weights
        rotated = self.source.read_rotated(weights.rotated_key, "x", "x'")
        return *rotated, self.keys.read(weights.key, "x", "x'")

    def rotated(self, query: Rows, key: Rows) -> Iterator[list[list[int]]]:
        """Per head, for each of `PAIRS`: real and imaginary parts of k̄ q, pair by pair."""
        heads, groups = self.weights.heads, self.weights.rotated_groups
        amplitude = 1 if self.spec.rotary is None else residue(self.spec.rotary.amplitude) ** 2 % P
        scale = residue(self.spec.scale)
        (key_re, key_im, _), (query_re, query_im, _) = key, query
        for h in range(heads):
            t = h // (heads // groups)
            values = []
            for i, j in PAIRS:
                real = key_re[t, :, i] * query_re[h, :, j] + key_im[t, :, i] * query_im[h, :, j]
                imag = key_re[t, :, i] * query_im[h, :, j] - key_im[t, :, i] * query_re[h, :, j]
                values.append([int(v * scale * amplitude % P) for v in (*real, *imag)])
            yield values

    def plain(self, query: Rows, key: Rows) -> Iterator[list[list[int]]]:
        """Per head, for each of `PAIRS`: the products of plain coordinates, one by one."""
        heads, groups, scale = self.weights.heads, self.weights.groups, residue(self.spec.scale)
        for h in range(heads):
            g = h // (heads // groups)
            yield [[int(v * scale % P) for v in key[2][g, :, i] * query[2][h, :, j]] for i, j in PAIRS]

    @cached_property
    def outputs(self) -> Array:
        """What every head writes, seen by the probe: (heads, v)."""
        output = self.weights.output
        rows = output.transpose(0, 2, 1).reshape(-1, output.shape[1])
        return apply(rows, [self.written])[:, 0].reshape(len(output), -1)

    @cached_property
    def values(self) -> Array:
        """The values of every head: (heads, v, 2), constants first."""
        weights = self.weights
        return np.repeat(self.keys.read(weights.value, "w"), weights.heads // weights.groups, axis=0)

    @property
    def value_constants(self) -> list[int]:
        """Per head what its values add to every token."""
        return [dot(row, value[:, 0]) for row, value in zip(self.outputs, self.values)]


@dataclass(frozen=True)
class Invariants:
    """What a factor keeps of one attention: per head ``scores`` for each of `PAIRS`, ``lengths`` and others.

    ``joint`` ones belong to all heads together. ``is_generic``: the group is no larger than the factor says.
    """

    scores: list[list[list[int]]] = field(default_factory=list)
    lengths: list[list[int]] = field(default_factory=list)
    heads: list[list[int]] = field(default_factory=list)
    joint: list[int] = field(default_factory=list)
    is_generic: bool = True
