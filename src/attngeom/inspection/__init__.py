"""Where given weights lie: strata, ranks, hypotheses of the theorems."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attngeom.rooms import names_of, open_room

if TYPE_CHECKING:
    from attngeom.inspection.fibers import virtual_fiber
    from attngeom.inspection.geometry import Inspection, inspect, layer_stratum
    from attngeom.inspection.hypotheses import check_hypotheses

__all__ = ["Inspection", "check_hypotheses", "inspect", "layer_stratum", "virtual_fiber"]

_NAMES = names_of(
    {
        "fibers": ("virtual_fiber",),
        "geometry": ("Inspection", "inspect", "layer_stratum"),
        "hypotheses": ("check_hypotheses",),
    }
)
__getattr__, __dir__ = open_room(__name__, _NAMES)
