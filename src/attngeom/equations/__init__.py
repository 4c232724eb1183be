"""Polynomial equations that hold on every attention layer, in families; see :mod:`attngeom.equations.family`."""

from attngeom.equations.family import Family, Invariant
from attngeom.equations.registry import families, find_family, invariants
from attngeom.equations.variety import Points, Variety, random_points

__all__ = ["Family", "Invariant", "Points", "Variety", "families", "find_family", "invariants", "random_points"]


def __dir__() -> list[str]:
    return sorted(__all__)
