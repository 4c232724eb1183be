"""Whether two sets of weights compute one function: a symmetry, a separating input, or neither."""

from attngeom.comparison.decision import compare
from attngeom.comparison.results import Comparison, Separation

__all__ = ["Comparison", "Separation", "compare"]


def __dir__() -> list[str]:
    return sorted(__all__)
