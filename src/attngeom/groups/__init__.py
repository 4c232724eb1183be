"""Groups and the axes on which they act: what idealised networks and real blocks share of their symmetries."""

from attngeom.groups.gauges import DEFAULT, Gauge, balance, fix_pair
from attngeom.groups.group import ComplexScales, GeneralLinear, Group, Orthogonal, RealScales
from attngeom.groups.sampler import Sampler

__all__ = [
    "DEFAULT",
    "ComplexScales",
    "Gauge",
    "GeneralLinear",
    "Group",
    "Orthogonal",
    "RealScales",
    "Sampler",
    "balance",
    "fix_pair",
]
