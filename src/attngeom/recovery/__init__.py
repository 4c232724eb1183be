"""Weights from coefficients, from queries, from black boxes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attngeom.rooms import names_of, open_room

if TYPE_CHECKING:
    from attngeom.recovery.query_table import QueryTable, continue_queries, plan_queries
    from attngeom.recovery.results import Recovery

__all__ = ["QueryTable", "Recovery", "continue_queries", "plan_queries"]

_NAMES = names_of({"query_table": ("QueryTable", "continue_queries", "plan_queries"), "results": ("Recovery",)})
__getattr__, __dir__ = open_room(__name__, _NAMES)
