"""A network is a program: named weights, inputs, and a list of operations of a small table.

``trace`` makes programs from networks as people write them; :class:`Builder` is what front ends use.
"""

from attngeom.programs.builder import Builder
from attngeom.programs.frontends import trace
from attngeom.programs.points import NamedPoint
from attngeom.programs.program import Node, Program

__all__ = ["Builder", "NamedPoint", "Node", "Program", "trace"]


def __dir__() -> list[str]:
    return sorted(__all__)
