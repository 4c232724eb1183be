"""Polynomial equations that hold on every attention layer, in families; see :mod:`attngeom.invariants.family`."""

from attngeom.invariants.family import Family, Invariant
from attngeom.invariants.registry import families, family, invariants
from attngeom.invariants.variety import Points, Variety, random_points
from attngeom.packages import make_callable

__all__ = ["Family", "Invariant", "Points", "Variety", "families", "family", "invariants", "random_points"]

make_callable(__name__, invariants)
