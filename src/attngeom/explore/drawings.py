"""Drawings as SVG in the colours of the report's figures; patterns and numbers carry what colours say, for grey."""

from __future__ import annotations

from collections.abc import Sequence

from attngeom.explore.markup import Html, Node, join, tag
from attngeom.palette import DARK, LIGHT, MIDDLE, WARM

FILLS = (DARK, MIDDLE, LIGHT, WARM, "#93b3d2", "#f2efe6", "#6b7a8f", "#ffffff")
"""Backgrounds of the parts of a whole, by place; from the second on each has its own pattern of lines."""
LINES = ("", "", "M0 8 8 0", "M0 4H8", "M4 0V8", "M0 0 8 8", "M0 8 8 0M0 0 8 8", "M0 4H8M4 0V8")


def _pattern(place: int, prefix: str) -> Html:
    place %= len(FILLS)
    ground = tag("rect", width=8, height=8, fill=FILLS[place])
    lines = tag("path", d=LINES[place], stroke=DARK, stroke_width=1, fill="none") if LINES[place] else None
    name = f"{prefix}{place}"
    return tag("pattern", ground, lines, id=name, width=8, height=8, patternUnits="userSpaceOnUse")


def stacked_bar(parts: Sequence[tuple[str, int, Node]], label: str, prefix: str = "p") -> Html:
    """A whole split into parts (name, size, explanation): one bar, and a list with the size of each part."""
    total = sum(size for _, size, _ in parts) or 1
    shapes, start = [], 0.0
    for place, (name, size, _) in enumerate(parts):
        width = 1000 * size / total
        fill = f"url(#{prefix}{place % len(FILLS)})"
        shapes.append(
            tag("rect", tag("title", f"{name}: {size:,}"), x=f"{start:.3f}", width=f"{width:.3f}", height=40, fill=fill)
        )
        start += width
    patterns = tag("defs", *(_pattern(place, prefix) for place in range(min(len(parts), len(FILLS)))))
    bar = tag(
        "svg", patterns, *shapes, viewBox="0 0 1000 40", preserveAspectRatio="none", class_="bar", role="img",
        aria_label=label,
    )  # fmt: skip
    rows = (
        tag("li", _swatch(place, prefix), tag("b", f"{size:,}"), tag("span", name, " " if note else None, note))
        for place, (name, size, note) in enumerate(parts)
    )
    return join((bar, tag("ul", *rows, class_="legend")))


def _swatch(place: int, prefix: str) -> Html:
    shape = tag("rect", width=20, height=16, fill=f"url(#{prefix}{place % len(FILLS)})")
    return tag("svg", shape, viewBox="0 0 20 16", aria_hidden="true")
