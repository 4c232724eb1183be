"""What a comparison is doing, for whoever shows it: counted where the work is countable."""

from __future__ import annotations

from collections.abc import Callable

Report = Callable[[str, int, int | None], None]
"""Called with what is done, how much of it is done, and how much there is (None: that is not known before)."""


def ignore(what: str, done: int, total: int | None) -> None:
    """Tell nobody."""
