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

from attngeom.equations.family import without_unused
from attngeom.equations.variety import Variety, coordinate_name, generic_cross, random_cross, single_coordinates
from attngeom.errors import InputError, SizeError
from attngeom.exact.arrays import Array
from attngeom.exact.domains import GF, Domain
from attngeom.exact.domains.polynomials import Polynomial
from attngeom.exact.multisets import pairs, triples
from attngeom.exact.partitions import Weight
from attngeom.limits.memory import LISTED_COORDINATES

Label = tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class Coordinate:
    """One coordinate: sorted multisets of indices, the group that acts on each, and a tag no group acts on (tokens).

    A tag (j,) means the single-column coordinate of target column j, (j, n) a cross-column one with context n.
    """

    label: Label
    owners: tuple[int, ...]
    tag: tuple[int, ...] = ()


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
        if variety.num_coordinates > LISTED_COORDINATES:
            raise SizeError(
                f"{variety.num_coordinates:,} coordinates needed; at most {LISTED_COORDINATES:,} are listed"
            )
        self.variety = variety
        self.groups = variety.groups
        self.all, self.names = self._list()

    def _list(self) -> tuple[tuple[Coordinate, ...], tuple[str, ...]]:
        variety, listed, names = self.variety, [], []
        last = len(self.groups) - 1
        context = last - 1 if variety.tokens is None else last
        cross: list[Label] = [(S, (m,)) for S in pairs(variety.d) for m in range(variety.num_targets)]
        for r, tag in self.blocks:
            row: Label = () if variety.d_out == 1 else ((r,),)
            owners = (*range(len(row)), *([last] if len(tag) == 1 else [context, last]))
            for label in [(R,) for R in triples(variety.d)] if len(tag) == 1 else cross:
                listed.append(Coordinate((*row, *label), owners, tag))
                names.append(coordinate_name(variety, r, tag or (0, 1), [i for part in label for i in part]))
        if variety.residual:
            listed.append(Coordinate((), ()))
            names.append("u")
        return tuple(listed), tuple(names)

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
                context = variety.mask.others(j, variety.tokens)
                blocks += [(r, (j,)), *((r, (j, n)) for n in context if n != j)]
        return blocks

    @cached_property
    def weights(self) -> tuple[Weight, ...]:
        """The torus weight of each coordinate."""
        weights = []
        for c in self.all:
            counts = [[0] * size for size in self.groups]
            for part, owner in zip(c.label, c.owners):
                for i in part:
                    counts[owner][i] += 1
            weights.append(tuple(tuple(count) for count in counts))
        return tuple(weights)

    @cached_property
    def position(self) -> dict[Coordinate, int]:
        return {c: i for i, c in enumerate(self.all)}

    @cached_property
    def _alike(self) -> list[tuple[Array, tuple[int, ...], list[Array]]]:
        """Coordinates that permutations mix (same tag, owners and sizes of the multisets), in order of their labels.

        Their numbers, their owners, and one array of indices for each multiset.
        """
        blocks: dict[tuple[Any, ...], list[int]] = {}
        for i, c in enumerate(self.all):
            blocks.setdefault((c.tag, c.owners, *map(len, c.label)), []).append(i)
        alike = []
        for (_, owners, *_), block in blocks.items():
            parts = zip(*(self.all[i].label for i in block))
            alike.append((np.array(block), owners, [np.array(part) for part in parts]))
        return alike

    def _encode(self, parts: Sequence[Array], shape: tuple[int, ...]) -> Array:
        """One integer for each coordinate, from its sorted indices along the last axis."""
        codes = np.zeros(shape, dtype=np.int64)
        for column in (part[..., i] for part in parts for i in range(part.shape[-1])):
            codes = codes * max(self.groups) + column
        return codes

    def permute(self, images: Sequence[Array]) -> Array:
        """Permutations of coordinates that rename the indices of each group, one in each row: entry i is where i goes.

        ``images`` holds one array for each group, a row for each permutation.
        """
        count = len(images[0])
        moved = np.empty((count, len(self.all)), dtype=np.int64)
        for members, owners, parts in self._alike:
            renamed = [np.sort(images[g][:, part], axis=-1) for part, g in zip(parts, owners)]
            codes = self._encode(renamed, (count, len(members)))
            moved[:, members] = members[np.searchsorted(self._encode(parts, members.shape), codes)]
        return moved

    def replace_index(self, group: int, old: int, new: int) -> list[list[tuple[int, int]]]:
        """The derivation that replaces the index ``old`` of one group by ``new``: lists of (factor, coordinate)."""
        images: list[list[tuple[int, int]]] = []
        for c in self.all:
            image = []
            for place, (part, owner) in enumerate(zip(c.label, c.owners)):
                if owner == group and old in part:
                    rest = list(part)
                    rest.remove(old)
                    label = (*c.label[:place], tuple(sorted([*rest, new])), *c.label[place + 1 :])
                    image.append((part.count(old), self.position[Coordinate(label, c.owners, c.tag)]))
            images.append(image)
        return images

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

    def parametrization(self) -> tuple[tuple[str, ...], list[Polynomial]]:
        """The names of the generic weights, and every coordinate as a polynomial in them.

        >>> Coordinates(Variety(1, 1, targets=1)).parametrization()
        (('V_0_0', 'A_0_0'), [Polynomial('V_0_0*A_0_0')])
        """
        _, ring = generic_cross(self.variety)
        return ring.variables, [without_unused(f) for f in self.generic()]

    def _in_order(self, cross: Array, domain: Domain) -> Array:
        """The coordinates (count, number) of points whose first cross-column coordinates are given, without u."""
        flat = cross.reshape(*cross.shape[:2], -1)
        single = single_coordinates(cross, self.variety.d, domain) if self.variety.has_single else flat
        return np.concatenate([(single if len(tag) == 1 else flat)[:, r] for r, tag in self.blocks], axis=1)


@lru_cache(maxsize=16)
def coordinates(variety: Variety) -> Coordinates:
    """The coordinates of a variety; few are kept."""
    if variety.hidden:
        from attngeom.equations.ideal.deep_coordinates import DeepCoordinates

        return DeepCoordinates(variety)
    return Coordinates(variety)
