"""The symmetry group of an architecture: the list of its factors, their dimensions and tangent vectors.

A new symmetry is a factor, as in :mod:`attngeom.network.symmetry.factor`, and a row of :data:`SORTS`; the kinds of
attention name those that they have.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np

from attngeom.errors import InputError
from attngeom.exact.domains import Array, Domain
from attngeom.network.architecture import Architecture
from attngeom.network.symmetry.factor import (
    Between,
    Draw,
    GroupFactor,
    HeadFactor,
    LinearFactor,
    QueryKey,
    QueryKeyBesideBias,
    Scale,
    SecondQueryKey,
    Tensors,
    ValueOutput,
)
from attngeom.network.symmetry.smaller import (
    BetweenOrder,
    ChannelOrder,
    Channels,
    HeadPart,
    KeyBias,
    KeyScale,
    PlaneScale,
    QueryKeyRotation,
    QueryScale,
    ScaleSign,
    SecondPlaneScale,
    SignedChannels,
    SquareScale,
    ValueOrder,
)
from attngeom.network.symmetry.translation import Translation, ValueBias, has_translations
from attngeom.network.weights import Head, Weights

LINEAR = (QueryKey, Scale, ValueOutput, Between)
SORTS: dict[str, type[HeadFactor] | type[HeadPart]] = {
    "query-key": QueryKey,
    "query-key-beside-bias": QueryKeyBesideBias,
    "second-query-key": SecondQueryKey,
    "query-key-rotation": QueryKeyRotation,
    "plane-scale": PlaneScale,
    "second-plane-scale": SecondPlaneScale,
    "channels": Channels,
    "signed-channels": SignedChannels,
    "channel-order": ChannelOrder,
    "scale": Scale,
    "scale-sign": ScaleSign,
    "square-scale": SquareScale,
    "key-scale": KeyScale,
    "query-scale": QueryScale,
    "key-bias": KeyBias,
}
"""The symmetries of a head by the names that kinds of attention and their options use."""


@lru_cache(maxsize=256)
def factors(architecture: Architecture) -> tuple[GroupFactor, ...]:
    """The factors of the symmetry group, in the order in which they act: head by head, between layers, orders.

    Scales exist where attention is linear in the scores; changes of basis between layers where nothing is skipped,
    translations where outputs and all that reads them have biases.

    >>> [factor.name for factor in factors(Architecture((3, 2, 3), 2, kind="softmax"))]
    ['query-key', 'query-key', 'between', 'head-order', 'head-order']
    """
    kind = architecture.mechanism
    listed: list[GroupFactor] = []
    for index, layer in enumerate(architecture.layers):
        for head in range(layer.heads):
            listed += [SORTS[name].of(index, head, layer) for name in kind.symmetries()]
            if layer.value_width is not None:
                listed.append((ValueOutput if kind.has_linear_values else ValueOrder).of(index, head, layer))
                if kind.adds_value_bias and architecture.options.get("bias"):
                    listed.append(ValueBias(index, head, layer.value_width))
    if not architecture.residual:
        sort = Between if kind.has_linear_values or architecture.is_factored else BetweenOrder
        listed += [sort(index, width) for index, width in enumerate(architecture.widths[1:-1])]
    if has_translations(architecture):
        how = (architecture.residual, "key-bias" not in kind.symmetries())
        listed += [Translation(index, width, *how) for index, width in enumerate(architecture.widths[1:-1])]
    if kind.orders_heads:
        listed += [HeadOrder(index, layer.heads) for index, layer in enumerate(architecture.layers)]
    return tuple(listed)


def linear_factors(architecture: Architecture) -> tuple[LinearFactor, ...]:
    """The factors that are general linear groups."""
    return tuple(factor for factor in factors(architecture) if isinstance(factor, LinearFactor))


def moving_factors(architecture: Architecture) -> tuple[GroupFactor, ...]:
    """The factors that have tangent vectors: all but the finite ones."""
    return tuple(factor for factor in factors(architecture) if factor.count)


def tensors_of(weights: Weights) -> Tensors:
    """The tensors of weights by layer, head and letter."""
    tensors: Tensors = {}
    for index, heads in enumerate(weights.layers):
        for place, head in enumerate(heads):
            tensors |= {(index, place, letter): array for letter, array in head.tensors.items()}
        if weights.shared:
            tensors |= {(index, None, letter): array for letter, array in weights.shared[index].items()}
    return tensors


def weights_of(architecture: Architecture, tensors: Tensors, domain: Domain) -> Weights:
    """The inverse of :func:`tensors_of`."""
    layers = tuple(
        tuple(
            Head.of({letter: tensors[index, place, letter] for letter in layer.tensor_shapes})
            for place in range(layer.heads)
        )
        for index, layer in enumerate(architecture.layers)
    )
    shared = tuple(
        {letter: tensors[index, None, letter] for letter, _ in layer.shared}
        for index, layer in enumerate(architecture.layers)
    )
    return Weights(architecture, domain, layers, shared if any(shared) else ())


def count_generators(architecture: Architecture) -> dict[str, int]:
    """The dimension of each sort of factor; their sum bounds the fiber dimension only if independent.

    >>> count_generators(Architecture((3, 2, 3), 2))
    {'query-key': 8, 'scale': 2, 'value-output': 0, 'between': 4}
    """
    counts = {sort.name: 0 for sort in LINEAR}
    for factor in moving_factors(architecture):
        counts[factor.name] = counts.get(factor.name, 0) + factor.count
    return counts


def infinitesimal_action(weights: Weights) -> Array:
    """One row for each generator of the Lie algebra: the derivative of g · W at the identity, tangent to the fiber.

    Each row lies in the kernel of the Jacobian of W ↦ phi_W at W.

    >>> from attngeom.exact import GF
    >>> from attngeom.network.weights import random_weights
    >>> infinitesimal_action(random_weights(Architecture((3, 2, 3), 2), GF(7), seed=0)).shape
    (14, 32)
    """
    domain, architecture = weights.domain, weights.architecture
    tensors = tensors_of(weights)
    slots = dict(zip(tensors, architecture.slots().values()))
    parts = moving_factors(architecture)
    rows = domain.zeros((sum(factor.count for factor in parts), architecture.num_parameters))
    with domain.working():
        for row, changes in zip(rows, (x for factor in parts for x in factor.tangents(tensors, domain))):
            for place, change in changes.items():
                row[slots[place]] = change.ravel()
    return rows


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
