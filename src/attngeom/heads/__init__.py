"""The heads of one layer: whether they are unique, and how to find them from the function."""

from attngeom.heads.finding import find_heads
from attngeom.heads.results import Heads
from attngeom.heads.uniqueness import Uniqueness, heads_unique

__all__ = ["Heads", "Uniqueness", "find_heads", "heads_unique"]
