"""Small drawings for the cards of the start page, in the colours of the figures."""

from __future__ import annotations

from attngeom.explore.markup import Html, Node, tag
from attngeom.palette import DARK, LIGHT, MIDDLE, WARM


def _box(x: float, y: float, width: float, height: float, fill: str) -> Html:
    return tag("rect", x=x, y=y, width=width, height=height, fill=fill, stroke=DARK)


def _path(d: str, fill: str = "none", stroke: str = DARK, width: float = 1.5) -> Html:
    return tag("path", d=d, fill=fill, stroke=stroke, stroke_width=width)


def _dot(x: float, y: float, fill: str) -> Html:
    return tag("circle", cx=x, cy=y, r=4, fill=fill, stroke=DARK)


_SHADES = (WARM, LIGHT, MIDDLE, "#ffffff", LIGHT, WARM, "#ffffff", MIDDLE, LIGHT)
EMBLEMS: dict[str, tuple[Node, ...]] = {
    "dimension": (_box(2, 18, 52, 18, DARK), _box(54, 18, 20, 18, MIDDLE), _box(74, 18, 20, 18, LIGHT)),
    "fiber": (_path("M6 44C26 2 70 52 90 10"), _dot(24, 24, "#ffffff"), _dot(52, 27, WARM), _dot(81, 21, DARK)),
    "manifold": (
        _path("M8 10Q28 50 48 50Q68 50 88 10L66 6Q58 34 48 34Q38 34 30 6Z", LIGHT, MIDDLE),
        _path("M48 2V34", stroke=WARM, width=4),
        tag("path", d="M48 34V54", stroke=DARK, stroke_width=2, stroke_dasharray="4 3"),
    ),
    "layer": tuple(_box(2 + 18 * (k % 3), 1 + 17 * (k // 3), 18, 17, fill) for k, fill in enumerate(_SHADES)),
    "equations": tuple(_box(2 + 13 * j, 8 + 13 * i, 13, 13, LIGHT) for i, n in enumerate((5, 3, 1)) for j in range(n)),
    "certificate": (_box(2, 4, 40, 46, "#ffffff"), _path("M12 28l8 9 14-20", stroke=WARM, width=4)),
    "checkpoint": tuple(
        _box(2 + 12 * j, 3 + 12 * i, 12, 12, ("#ffffff", LIGHT, LIGHT, MIDDLE, DARK)[(2 * i + 3 * j * j + i * j) % 5])
        for i in range(4)
        for j in range(6)
    ),
    "atlas": (
        _path("M10 4V48H90"),
        *(_dot(x, y, fill) for x, y, fill in ((22, 40, DARK), (38, 31, WARM), (55, 24, DARK), (74, 11, MIDDLE))),
    ),
}


def emblem(name: str) -> Html:
    """The drawing of a view; it says nothing that its title does not.

    >>> emblem("dimension").count("<rect")
    3
    """
    return tag("svg", *EMBLEMS[name], viewBox="0 0 96 54", aria_hidden="true")
