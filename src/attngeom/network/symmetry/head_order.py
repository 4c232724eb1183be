"""The symmetric group on the heads of a layer, whose outputs are summed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from attngeom.errors import InputError
from attngeom.exact.domains import Domain
from attngeom.network.symmetry.factor import Draw, GroupFactor, Tensors

Order = tuple[int, ...]


@dataclass(frozen=True)
class HeadOrder(GroupFactor):
    """π ∈ S_H: head h moves to place π(h). A finite group, it has no tangent vectors.

    >>> HeadOrder(layer=0, size=3).inverse((1, 2, 0), None)
    (2, 0, 1)
    """

    layer: int
    size: int
    name: ClassVar[str] = "head-order"

    def identity(self, domain: Domain) -> Order:
        return tuple(range(self.size))

    def random(self, rng: np.random.Generator, draw: Draw, domain: Domain) -> Order:
        return tuple(int(place) for place in rng.permutation(self.size))

    def check(self, element: Any) -> None:
        if sorted(element) != list(range(self.size)):
            raise InputError(f"{str(element)[:40]} given; a permutation of {self.size} heads is required")

    def act(self, element: Order, tensors: Tensors, domain: Domain) -> Tensors:
        return {
            (layer, element[head], letter): array
            for (layer, head, letter), array in tensors.items()
            if layer == self.layer and head is not None
        }

    def compose(self, late: Order, early: Order, domain: Domain) -> Order:
        return tuple(late[place] for place in early)

    def inverse(self, element: Order, domain: Domain | None) -> Order:
        return tuple(int(place) for place in np.argsort(element))

    def transposed_inverse(self, element: Order, domain: Domain) -> Order:
        return element
