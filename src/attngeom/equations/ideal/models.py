"""Torus-graded parametrizations of attention varieties: coordinates with weights, and random points mod p.

Every model is a frozen record, so that a task which names it can be sent to another process. Coordinates are scaled
(each ordinary coefficient divided by the number of distinct permutations of its multiset), so that permuting indices
permutes coordinates.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from itertools import combinations_with_replacement
from math import comb
from typing import Any

import numpy as np

from attngeom.errors import InputError
from attngeom.exact.arrays import Array
from attngeom.exact.domains import matmul_mod
from attngeom.exact.partitions import Weight
from attngeom.network import Architecture

Label = tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class Coordinate:
    """One coordinate: sorted multisets of indices, the group that acts on each, and a tag no group acts on (tokens)."""

    label: Label
    owners: tuple[int, ...]
    tag: tuple[int, ...] = ()

    def name(self) -> str:
        """A name that computer algebra systems accept.

        >>> Coordinate(((0, 1), (2,)), (0, 1)).name()
        'y_0_1_2'
        """
        return "_".join(["y", *(str(i) for part in self.label for i in part), *(f"t{i}" for i in self.tag)])

    def sizes(self, num_groups: int) -> tuple[int, ...]:
        """How many indices each group acts on."""
        return tuple(
            sum(len(part) for part, owner in zip(self.label, self.owners) if owner == g) for g in range(num_groups)
        )


@dataclass(frozen=True, eq=False)
class CoordinateBlock:
    """Coordinates of one form: their numbers, owners, one array of indices per multiset, and sortable codes."""

    members: Array
    owners: tuple[int, ...]
    parts: tuple[Array, ...]
    codes: Array
    order: Array

    @classmethod
    def of(cls, coordinates: tuple[Coordinate, ...], members: list[int], base: int) -> CoordinateBlock:
        """The block of the given coordinates, whose indices are below ``base``."""
        labels = [coordinates[i].label for i in members]
        parts = tuple(np.array(part) for part in zip(*labels))
        codes = _encode_indices(parts, (len(members),), base)
        return cls(np.array(members), coordinates[members[0]].owners, parts, codes, np.argsort(codes))


def _encode_indices(parts: Sequence[Array], shape: tuple[int, ...], base: int) -> Array:
    """One integer for each coordinate, from its sorted indices along the last axis, all below ``base``."""
    codes = np.zeros(shape, dtype=np.int64)
    for part in parts:
        for i in range(part.shape[-1]):
            codes = codes * base + part[..., i]
    return codes


class Model(ABC):
    """A variety: the closure of the image of a polynomial map whose coordinates are weight vectors of a torus.

    The products of symmetric groups, and of general linear groups, of ``groups`` act on the coordinates and preserve
    the variety.
    """

    @property
    @abstractmethod
    def groups(self) -> tuple[int, ...]:
        """The sizes of the general linear groups that act."""

    @property
    @abstractmethod
    def degree_in_parameters(self) -> int:
        """The degree of the parametrization, for error probabilities."""

    @property
    @abstractmethod
    def num_coordinates(self) -> int:
        """The number of coordinates, without listing them."""

    @abstractmethod
    def describe(self) -> dict[str, Any]:
        """The parameters as JSON values; what follows from others is filled in."""

    @abstractmethod
    def restrict(self, sizes: Sequence[int]) -> Model:
        """The same variety for smaller groups: its coordinates are those whose indices are below the sizes.

        A polynomial in these coordinates vanishes on one variety if and only if it does on the other, because the upper
        left blocks of V and A are those of a layer of the smaller size.
        """

    @abstractmethod
    def _coordinates(self) -> tuple[Coordinate, ...]: ...

    @abstractmethod
    def sample(self, count: int, p: int, rng: np.random.Generator) -> Array:
        """``count`` random points of the variety mod p, as rows of residues in the order of the coordinates."""

    @cached_property
    def coordinates(self) -> tuple[Coordinate, ...]:
        return self._coordinates()

    @cached_property
    def weights(self) -> tuple[Weight, ...]:
        """The torus weight of each coordinate."""
        found = []
        for c in self.coordinates:
            counts = [[0] * size for size in self.groups]
            for part, owner in zip(c.label, c.owners):
                for i in part:
                    counts[owner][i] += 1
            found.append(tuple(tuple(count) for count in counts))
        return tuple(found)

    @cached_property
    def position(self) -> dict[Coordinate, int]:
        return {c: i for i, c in enumerate(self.coordinates)}

    @cached_property
    def _alike(self) -> tuple[CoordinateBlock, ...]:
        """The coordinates in blocks that permutations preserve: same tag, owners and sizes of the multisets."""
        blocks: dict[tuple[object, ...], list[int]] = {}
        for i, c in enumerate(self.coordinates):
            blocks.setdefault((c.tag, c.owners, *map(len, c.label)), []).append(i)
        return tuple(CoordinateBlock.of(self.coordinates, members, max(self.groups)) for members in blocks.values())

    def permute(self, images: Sequence[Array]) -> Array:
        """Permutations of coordinates that rename the indices of each group, one in each row: entry i is where i goes.

        ``images`` holds one array for each group, a row for each permutation.
        """
        count = len(images[0])
        moved = np.empty((count, len(self.coordinates)), dtype=np.int64)
        for block in self._alike:
            parts = [np.sort(images[g][:, part], axis=-1) for part, g in zip(block.parts, block.owners)]
            codes = _encode_indices(parts, (count, len(block.members)), max(self.groups))
            places = np.searchsorted(block.codes, codes, sorter=block.order)
            moved[:, block.members] = block.members[block.order[places]]
        return moved


def _check_sizes(**sizes: int | None) -> None:
    for name, value in sizes.items():
        if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
            raise InputError(f"{name} = {value!r} given; a positive integer is required")


def default_value_width(d: int, d_out: int, a: int, heads: int, value_width: int | None) -> int | None:
    """The value width of each head by the rule of every network: d_out / heads if it divides, None for one plain head.

    >>> default_value_width(2, 2, 1, heads=2, value_width=None)
    1
    """
    return Architecture((d, d_out), a, heads=heads, value_width=value_width).layer(0).value_width


def sample_heads(
    model: CrossColumn | LayerCoefficients, count: int, p: int, rng: np.random.Generator
) -> tuple[Array, Array]:
    """Random (V_h, A_h) for each head, count×H×d_out×d and count×H×d×targets; rank A ≤ a, rank V ≤ value width."""
    d, targets, heads = model.d, model.num_targets, model.heads
    if model.a >= min(d, targets):
        A = rng.integers(0, p, (count, heads, d, targets))
    else:
        left = rng.integers(0, p, (count, heads, d, model.a))
        A = matmul_mod(left, rng.integers(0, p, (count, heads, model.a, targets)), p)
    width = model.value_width
    if width is None or width >= min(d, model.d_out):
        V = rng.integers(0, p, (count, heads, model.d_out, d))
    else:
        left = rng.integers(0, p, (count, heads, model.d_out, width))
        V = matmul_mod(left, rng.integers(0, p, (count, heads, width, d)), p)
    return V, A


@dataclass(frozen=True)
class CrossColumn(Model):
    """y_{r,(k,l),m} = Σ_h (V_rk A_lm + V_rl A_km)/2: the coefficients of x_k x_l x'_m, t ≥ 2.

    One head and one output row by default. A is d×targets of rank ≤ a. Coordinates are ordered by row, then pair (k
    ≤ l), then target.

    >>> len(CrossColumn(d=3, a=2).coordinates), CrossColumn(d=3, a=2).groups
    (18, (3, 3))
    """

    d: int
    a: int
    targets: int | None = None
    d_out: int = 1
    heads: int = 1
    value_width: int | None = None

    def __post_init__(self) -> None:
        _check_sizes(
            d=self.d,
            a=self.a,
            targets=self.targets,
            d_out=self.d_out,
            heads=self.heads,
            value_width=self.value_width,
        )
        width = default_value_width(self.d, self.d_out, self.a, self.heads, self.value_width)
        object.__setattr__(self, "value_width", width)

    @property
    def num_targets(self) -> int:
        return self.d if self.targets is None else self.targets

    @property
    def groups(self) -> tuple[int, ...]:
        inner = (self.d, self.num_targets)
        return inner if self.d_out == 1 else (self.d_out, *inner)

    @property
    def degree_in_parameters(self) -> int:
        return 2 + int(self.a < min(self.d, self.num_targets)) + int(self.value_width is not None)

    @property
    def num_coordinates(self) -> int:
        return self.d_out * comb(self.d + 1, 2) * self.num_targets

    def describe(self) -> dict[str, Any]:
        return {**asdict(self), "targets": self.num_targets}

    def restrict(self, sizes: Sequence[int]) -> CrossColumn:
        *rows, d, targets = sizes
        # With one row there is no group for the rows any more.
        d_out = min(self.d_out, max(2, *rows)) if rows else 1
        return replace(self, d=min(self.d, d), targets=min(self.num_targets, targets), d_out=d_out)

    def _coordinates(self) -> tuple[Coordinate, ...]:
        pairs = list(combinations_with_replacement(range(self.d), 2))
        rows: list[Label] = [()] if self.d_out == 1 else [((r,),) for r in range(self.d_out)]
        owners = tuple(range(len(self.groups)))
        return tuple(
            Coordinate((*row, pair, (m,)), owners) for row in rows for pair in pairs for m in range(self.num_targets)
        )

    def sample(self, count: int, p: int, rng: np.random.Generator) -> Array:
        V, A = sample_heads(self, count, p, rng)
        return evaluate_layer(V, A, p).reshape(count, -1)


def evaluate_layer(V: Array, A: Array, p: int) -> Array:
    """y_{r,(k,l),m} mod p for batches of heads: V is …×H×d_out×d, A is …×H×d×m; the result is …×d_out×D×m.

    >>> evaluate_layer(np.array([[[1, 2]]]), np.array([[[3], [4]]]), 101).tolist()
    [[[3], [5], [8]]]
    """
    half = (p + 1) // 2
    k, l = np.array(list(combinations_with_replacement(range(V.shape[-1]), 2))).T
    first = V[..., k][..., None] * A[..., None, l, :] % p
    second = V[..., l][..., None] * A[..., None, k, :] % p
    return np.asarray((first + second) % p * half % p).sum(axis=-4) % p


@dataclass(frozen=True)
class LayerCoefficients(Model):
    """All coefficients of one layer with t tokens, nothing assumed: the linear relations are part of the ideal.

    Coordinates: single-column y^{(r,j)}_R, cross-column y^{(r,j),n}_{S,m} for context n ≠ j (n < j if causal), and,
    with a residual stream, one homogenising coordinate for the coefficient of x_{rj} itself. t = 1 gives cubics
    (linear form) · (quadratic form).

    >>> len(LayerCoefficients(d=3, a=2, tokens=1).coordinates)
    10
    """

    d: int
    a: int
    tokens: int
    d_out: int = 1
    heads: int = 1
    value_width: int | None = None
    causal: bool = False
    residual: bool = False

    def __post_init__(self) -> None:
        _check_sizes(d=self.d, a=self.a, tokens=self.tokens, d_out=self.d_out, heads=self.heads)
        _check_sizes(value_width=self.value_width)
        width = default_value_width(self.d, self.d_out, self.a, self.heads, self.value_width)
        object.__setattr__(self, "value_width", width)
        if self.residual and self.d_out != self.d:
            raise InputError(f"d_out = {self.d_out} given with d = {self.d}; a residual stream needs equal widths")

    @property
    def num_targets(self) -> int:
        return self.d

    @property
    def groups(self) -> tuple[int, ...]:
        return (self.d,) if self.d_out == 1 else (self.d_out, self.d)

    @property
    def degree_in_parameters(self) -> int:
        return 2 + int(self.a < self.d) + int(self.value_width is not None)

    @property
    def num_coordinates(self) -> int:
        visible = self.tokens * (self.tokens - 1) // (2 if self.causal else 1)
        per_row = self.tokens * comb(self.d + 2, 3) + visible * comb(self.d + 1, 2) * self.d
        return self.d_out * per_row + int(self.residual)

    def describe(self) -> dict[str, Any]:
        return asdict(self)

    def restrict(self, sizes: Sequence[int]) -> LayerCoefficients:
        if self.residual:
            return self
        *rows, d = sizes
        return replace(self, d=min(self.d, d), d_out=min(self.d_out, max(2, *rows)) if rows else 1)

    def blocks(self) -> list[tuple[int, tuple[int, ...]]]:
        """(row, tag) of each block of coordinates: tag (j,) single-column, (j, n) cross-column."""
        blocks: list[tuple[int, tuple[int, ...]]] = []
        for r in range(self.d_out):
            for j in range(self.tokens):
                blocks.append((r, (j,)))
                context = range(j) if self.causal else range(self.tokens)
                blocks.extend((r, (j, n)) for n in context if n != j)
        return blocks

    def _coordinates(self) -> tuple[Coordinate, ...]:
        found = []
        triples = list(combinations_with_replacement(range(self.d), 3))
        pairs = list(combinations_with_replacement(range(self.d), 2))
        for r, tag in self.blocks():
            row: Label = () if self.d_out == 1 else ((r,),)
            before = tuple(range(len(row)))
            group = len(self.groups) - 1
            if len(tag) == 1:
                found += [Coordinate((*row, triple), (*before, group), tag) for triple in triples]
            else:
                owners = (*before, group, group)
                found += [Coordinate((*row, pair, (m,)), owners, tag) for pair in pairs for m in range(self.d)]
        if self.residual:
            found.append(Coordinate((), ()))
        return tuple(found)

    def sample(self, count: int, p: int, rng: np.random.Generator) -> Array:
        V, A = sample_heads(self, count, p, rng)
        cross = evaluate_layer(V, A, p)
        pairs = {pair: i for i, pair in enumerate(combinations_with_replacement(range(self.d), 2))}
        third = pow(3, -1, p)
        single = []
        for k, l, m in combinations_with_replacement(range(self.d), 3):
            # y_R is the mean over the choice of the target among the three indices.
            parts = cross[:, :, pairs[k, l], m] + cross[:, :, pairs[k, m], l] + cross[:, :, pairs[l, m], k]
            single.append(parts % p * third % p)
        one = np.stack(single, axis=-1)
        columns = [one[:, r] if len(tag) == 1 else cross[:, r].reshape(count, -1) for r, tag in self.blocks()]
        if self.residual:
            columns.append(rng.integers(0, p, (count, 1)))
        return np.concatenate(columns, axis=1)


def single_column(d: int, a: int) -> LayerCoefficients:
    """The t = 1 variety: cubics that are a linear form times a quadratic form of rank ≤ 2a.

    >>> single_column(3, 1).tokens
    1
    """
    return LayerCoefficients(d=d, a=a, tokens=1)
