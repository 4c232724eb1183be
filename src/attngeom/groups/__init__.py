"""Groups and the axes on which they act: what idealised networks and real blocks share of their symmetries."""

from attngeom.groups.gauges import Gauge
from attngeom.groups.group import ComplexScales, GeneralLinear, Group, Orthogonal, Phases, RealScales
from attngeom.groups.sampler import Sampler

__all__ = ["ComplexScales", "Gauge", "GeneralLinear", "Group", "Orthogonal", "Phases", "RealScales", "Sampler"]


def __dir__() -> list[str]:
    return sorted(__all__)
