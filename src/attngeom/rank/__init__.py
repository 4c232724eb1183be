"""Ranks of programs: lower bounds mod p, symmetries found by linear algebra and proven node by node, the answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attngeom.rooms import names_of, open_room

if TYPE_CHECKING:
    from attngeom.rank.analysis import Analysis, analyze, certify_network
    from attngeom.rank.lower import RankBound, bound_rank
    from attngeom.rank.search import find_symmetries

__all__ = ["Analysis", "RankBound", "analyze", "bound_rank", "certify_network", "find_symmetries"]

_NAMES = names_of(
    {
        "analysis": ("Analysis", "analyze", "certify_network"),
        "lower": ("RankBound", "bound_rank"),
        "search": ("find_symmetries",),
    }
)
__getattr__, __dir__ = open_room(__name__, _NAMES)
