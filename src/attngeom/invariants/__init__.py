"""Polynomial equations that hold on every attention layer, in families; see :mod:`attngeom.invariants.family`."""

from attngeom.invariants.family import Family, Invariant
from attngeom.invariants.registry import families, family
from attngeom.invariants.variety import Points, Variety, random_points

__all__ = ["Family", "Invariant", "Points", "Variety", "families", "family", "random_points"]
