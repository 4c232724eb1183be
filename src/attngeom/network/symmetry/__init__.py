"""Symmetries of weight space that leave the function of a network unchanged."""

from attngeom.network.symmetry.element import (
    Symmetry,
    identity_symmetry,
    random_symmetry,
    random_unimodular_symmetry,
)
from attngeom.network.symmetry.factor import Between, QueryKey, Scale, ValueOutput
from attngeom.network.symmetry.group import (
    HeadOrder,
    count_generators,
    factors,
    infinitesimal_action,
    linear_factors,
    tensors_of,
    weights_of,
)

__all__ = [
    "Between",
    "HeadOrder",
    "QueryKey",
    "Scale",
    "Symmetry",
    "ValueOutput",
    "count_generators",
    "factors",
    "identity_symmetry",
    "infinitesimal_action",
    "linear_factors",
    "random_symmetry",
    "random_unimodular_symmetry",
    "tensors_of",
    "weights_of",
]
