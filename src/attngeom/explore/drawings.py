"""Drawings as SVG in the colours of the report's figures; patterns and numbers carry what colours say, for grey."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import tanh

from attngeom.exact.arrays import Array
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


CELL = 52


def _shade(goal: str, share: float) -> str:
    """From white, for 0, to a colour, for 1."""
    channels = (int(goal[k : k + 2], 16) for k in (1, 3, 5))
    return "#" + "".join(f"{round(255 + share * (channel - 255)):02x}" for channel in channels)


def _drawing(shapes: Iterable[Node], box: tuple[int, int, int, int], label: str, class_: str = "matrix") -> Html:
    """Shapes in a box (left, top, width, height), as large as that many pixels."""
    left, top, width, height = box
    return tag(
        "svg", *shapes, viewBox=f"{left} {top} {width} {height}", width=width, height=height, class_=class_,
        role="img", aria_label=label,
    )  # fmt: skip


def shorten(value: float) -> str:
    """A number for a cell of a matrix.

    >>> [shorten(x) for x in (0.0, -0.5, 12.25, 1234567.0, -1e-9)]
    ['0', '−0.5', '12.2', '1e6', '−1e-9']
    """
    size = abs(value)
    if size == 0:
        return "0"
    if 0.005 <= size < 1000:
        shown = f"{size:.{2 if size < 10 else 1}f}".rstrip("0").rstrip(".")
    else:
        shown = f"{size:.0e}".replace("e+0", "e").replace("e-0", "e-").replace("e+", "e")
    return "−" + shown if value < 0 else shown


def heat_map(title: str, matrix: Array) -> Html:
    """A matrix as coloured cells; each holds its number, so that nothing hangs on colour.

    White is 0, warm colours are positive numbers, blue ones negative.
    """
    rows = [[float(x) for x in row] for row in matrix]
    cells = []
    for i, row in enumerate(rows):
        for j, value in enumerate(row):
            fill = _shade(WARM if value > 0 else MIDDLE, tanh(abs(value) / 3))
            place: dict[str, object] = {"x": CELL * j, "y": CELL * i, "width": CELL, "height": CELL}
            cells.append(tag("rect", **place, fill=fill, stroke=DARK, stroke_width=0.5))
            middle: dict[str, object] = {"x": CELL * (j + 0.5), "y": CELL * (i + 0.5) + 5}
            cells.append(tag("text", shorten(value), **middle, text_anchor="middle", font_size=13.5, fill=DARK))
    drawn = _drawing(cells, (-1, -1, CELL * len(rows[0]) + 2, CELL * len(rows) + 2), title)
    return tag("figure", tag("figcaption", title), drawn)


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


def young_diagram(shape: Sequence[int], label: str) -> Html:
    """The boxes of a partition, one row for each part."""
    size = 11
    boxes = (
        tag("rect", x=size * j, y=size * i, width=size, height=size, fill=LIGHT, stroke=DARK)
        for i, part in enumerate(shape)
        for j in range(part)
    )
    return _drawing(boxes, (-1, -1, size * max(shape, default=0) + 2, size * len(shape) + 2), label, "young")


def head_map(rows: Sequence[Sequence[tuple[float | None, str]]], label: str) -> Html:
    """Layers × heads as cells from white to dark; each names its number, which is written in where there is room.

    A cell is (size between 0 and 1 or None where there is nothing to tell, text).
    """
    most = max(len(row) for row in rows)
    side = 44 if most <= 16 else 22
    shapes: list[Node] = []
    for i, row in enumerate(rows):
        middle = side * (i + 0.5) + 5
        shapes.append(tag("text", f"layer {i}", x=-6, y=middle, text_anchor="end", font_size=12, fill=DARK))
        for j, (size, words) in enumerate(row):
            fill = "#ffffff" if size is None else _shade(DARK, min(1.0, max(0.0, size)))
            title = tag("title", f"layer {i}, head {j}: {words}")
            place: dict[str, object] = {"x": side * j, "y": side * i, "width": side, "height": side}
            shapes.append(tag("rect", title, **place, fill=fill, stroke=DARK, stroke_width=0.6))
            if side == 44:
                ink = "#ffffff" if size is not None and size > 0.55 else DARK
                shapes.append(
                    tag("text", words, x=side * (j + 0.5), y=middle, text_anchor="middle", font_size=12, fill=ink)
                )
    shapes += [
        tag("text", j, x=side * (j + 0.5), y=-5, text_anchor="middle", font_size=12 if side == 44 else 9, fill=DARK)
        for j in range(most)
    ]
    drawn = _drawing(shapes, (-60, -20, side * most + 62, side * len(rows) + 22), label)
    return tag("div", drawn, class_="scroll", tabindex=0, role="group", aria_label=label)


MARKS = ("circle", "square", "diamond", "cross")


def _mark(kind: int, x: float, y: float) -> Html:
    """A small mark; shapes differ as well as colours."""
    shape = MARKS[kind % len(MARKS)]
    fill = (DARK, WARM, MIDDLE, LIGHT)[kind % 4]
    if shape == "circle":
        return tag("circle", cx=f"{x:.1f}", cy=f"{y:.1f}", r=4, fill=fill, stroke=DARK)
    paths = {"square": "m-4-4h8v8h-8z", "diamond": "m0-5 5 5-5 5-5-5z", "cross": "m-4-4 8 8m0-8-8 8"}
    return tag("path", d=f"M{x:.1f} {y:.1f}{paths[shape]}", fill=fill, stroke=DARK)


def scatter(points: Sequence[tuple[float, float, str, str]], x_name: str, y_name: str) -> Html:
    """Points (x, y, group, words) between axes; groups have their own marks, listed below."""
    groups = list(dict.fromkeys(group for _, _, group, _ in points))
    left, right = _ends([x for x, _, _, _ in points])
    low, high = _ends([y for _, y, _, _ in points])
    shapes: list[Node] = [tag("path", d="M60 10V290H600", fill="none", stroke=DARK)]
    style: dict[str, object] = {"font_size": 13, "fill": DARK}
    for part in (0.0, 0.5, 1.0):
        x, y = 60 + 540 * part, 290 - 280 * part
        shapes.append(tag("text", shorten(left + part * (right - left)), x=x, y=308, text_anchor="middle", **style))
        shapes.append(tag("text", shorten(low + part * (high - low)), x=54, y=y + 4, text_anchor="end", **style))
    shapes.append(tag("text", x_name, x=330, y=330, text_anchor="middle", font_size=14, fill=DARK))
    shapes.append(tag("text", y_name, x=66, y=16, font_size=14, fill=DARK))
    for x, y, group, words in points:
        u = 60 + 540 * (x - left) / (right - left)
        v = 290 - 280 * (y - low) / (high - low)
        shapes.append(tag("g", tag("title", words), _mark(groups.index(group), u, v)))
    drawn = _drawing(shapes, (0, 0, 620, 340), f"{y_name} against {x_name}")
    legend = (
        tag("li", tag("svg", _mark(k, 9, 8), viewBox="0 0 18 16", class_="plain"), tag("span", group))
        for k, group in enumerate(groups)
    )
    return join((drawn, tag("ul", *legend, class_="marks")))


def _ends(values: Sequence[float]) -> tuple[float, float]:
    low, high = min(values), max(values)
    return (low, high) if high > low else (low - 1, high + 1)
