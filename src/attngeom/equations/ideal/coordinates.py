"""The coordinates of a variety with their torus weights, and random points mod p.

Coordinates are scaled (each ordinary coefficient divided by the number of distinct permutations of its multiset), so
that permuting indices permutes coordinates.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from attngeom.equations.points import generic_cross, random_cross, single_coordinates
from attngeom.equations.variety import Variety, cross_name, single_name
from attngeom.errors import InputError, SizeError
from attngeom.exact.arrays import Array
from attngeom.exact.domains import GF, Domain
from attngeom.exact.multisets import pairs, triples
from attngeom.exact.partitions import Weight

Label = tuple[tuple[int, ...], ...]

MAX_COORDINATES = 10**6


@dataclass(frozen=True)
class Coordinate:
    """One coordinate: sorted multisets of indices, the group that acts on each, and a tag no group acts on (tokens).

    A tag (j,) means the single-column coordinate of target column j, (j, n) a cross-column one with context n.
    """

    label: Label
    owners: tuple[int, ...]
    tag: tuple[int, ...] = ()

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


class Coordinates:
    """All coordinates of a variety, by output row, then column; pairs (k ≤ l), then targets, within one block.

    The products of symmetric groups, and of general linear groups, of ``variety.groups`` act on them and preserve the
    variety.

    >>> [name for name in Coordinates(Variety(2, 1, targets=1)).names]
    ['y_0_0_0', 'y_0_1_0', 'y_1_1_0']
    """

    def __init__(self, variety: Variety) -> None:
        if variety.tokens is not None and not variety.has_single:
            raise InputError(
                f"targets = {variety.targets} given with tokens; a network has as many targets as its width"
            )
        if variety.num_coordinates > MAX_COORDINATES:
            raise SizeError(f"{variety.num_coordinates:,} coordinates needed; at most {MAX_COORDINATES:,} are listed")
        self.variety = variety
        self.groups = variety.groups
        self.all, self.names = self._list()

    def _list(self) -> tuple[tuple[Coordinate, ...], tuple[str, ...]]:
        variety, found, names = self.variety, [], []
        last = len(self.groups) - 1
        context = last - 1 if variety.tokens is None else last
        for r, tag in self.blocks:
            row: Label = () if variety.d_out == 1 else ((r,),)
            before = tuple(range(len(row)))
            if len(tag) == 1:
                found += [Coordinate((*row, R), (*before, last), tag) for R in triples(variety.d)]
                names += [single_name(variety, r, tag[0], R) for R in triples(variety.d)]
                continue
            column, other = tag or (0, 1)
            for S in pairs(variety.d):
                for m in range(variety.num_targets):
                    found.append(Coordinate((*row, S, (m,)), (*before, context, last), tag))
                    names.append(cross_name(variety, r, column, other, S, m))
        if variety.residual:
            found.append(Coordinate((), ()))
            names.append("u")
        return tuple(found), tuple(names)

    @cached_property
    def blocks(self) -> list[tuple[int, tuple[int, ...]]]:
        """(row, tag) of each block of coordinates; the tag is empty if no tokens are given."""
        variety = self.variety
        blocks: list[tuple[int, tuple[int, ...]]] = []
        for r in range(variety.d_out):
            if variety.tokens is None:
                blocks.append((r, ()))
                continue
            for j in range(variety.tokens):
                context = range(j) if variety.causal else range(variety.tokens)
                blocks += [(r, (j,)), *((r, (j, n)) for n in context if n != j)]
        return blocks

    @cached_property
    def weights(self) -> tuple[Weight, ...]:
        """The torus weight of each coordinate."""
        found = []
        for c in self.all:
            counts = [[0] * size for size in self.groups]
            for part, owner in zip(c.label, c.owners):
                for i in part:
                    counts[owner][i] += 1
            found.append(tuple(tuple(count) for count in counts))
        return tuple(found)

    @cached_property
    def position(self) -> dict[Coordinate, int]:
        return {c: i for i, c in enumerate(self.all)}

    @cached_property
    def _alike(self) -> tuple[CoordinateBlock, ...]:
        """The coordinates in blocks that permutations preserve: same tag, owners and sizes of the multisets."""
        blocks: dict[tuple[object, ...], list[int]] = {}
        for i, c in enumerate(self.all):
            blocks.setdefault((c.tag, c.owners, *map(len, c.label)), []).append(i)
        return tuple(CoordinateBlock.of(self.all, members, max(self.groups)) for members in blocks.values())

    def permute(self, images: Sequence[Array]) -> Array:
        """Permutations of coordinates that rename the indices of each group, one in each row: entry i is where i goes.

        ``images`` holds one array for each group, a row for each permutation.
        """
        count = len(images[0])
        moved = np.empty((count, len(self.all)), dtype=np.int64)
        for block in self._alike:
            parts = [np.sort(images[g][:, part], axis=-1) for part, g in zip(block.parts, block.owners)]
            codes = _encode_indices(parts, (count, len(block.members)), max(self.groups))
            places = np.searchsorted(block.codes, codes, sorter=block.order)
            moved[:, block.members] = block.members[block.order[places]]
        return moved

    def sample(self, count: int, p: int, rng: np.random.Generator) -> Array:
        """``count`` random points of the variety mod p, as rows of residues in the order of the coordinates."""
        field = GF(p)
        values = self._in_order(random_cross(self.variety, count, field, rng), field)
        extra = [field.random((count, 1), rng)] if self.variety.residual else []
        return np.concatenate([values, *extra], axis=1)

    def generic(self) -> list[Any]:
        """Every coordinate as a polynomial in generic weights, and in u for that of a residual stream."""
        cross, ring = generic_cross(self.variety)
        values = list(self._in_order(cross, ring)[0])
        return [*values, ring.variable("u_0_0")] if self.variety.residual else values

    def _in_order(self, cross: Array, domain: Domain) -> Array:
        """The coordinates (count, number) of points whose first cross-column coordinates are given, without u."""
        flat = cross.reshape(*cross.shape[:2], -1)
        single = single_coordinates(cross, self.variety.d, domain) if self.variety.has_single else flat
        return np.concatenate([(single if len(tag) == 1 else flat)[:, r] for r, tag in self.blocks], axis=1)


@lru_cache(maxsize=16)
def coordinates(variety: Variety) -> Coordinates:
    """The coordinates of a variety; few are kept."""
    return Coordinates(variety)
