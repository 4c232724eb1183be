"""Pictures of answers, drawn on objects of their own: no backend is chosen, and nothing global changes. A leaf.

Every function returns a :class:`Picture`, a matplotlib figure that notebooks show by themselves and ``savefig`` writes.
Colours differ in lightness, so that grey prints can be read.
"""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from attngeom.limits.shown import LEGEND_LETTERS

DARK, MIDDLE, LIGHT, WARM = "#1b2a41", "#4a7fb5", "#c9d7e6", "#e0a100"
DIMENSION = MIDDLE
"""The dimension of a set of functions, in bars of parameters and in plots, wherever it is drawn."""


SHADES = (MIDDLE, WARM, LIGHT, DARK, "#93b3d2", "#8a6d3b")
UNDATED = {"svg": {"Date": None}, "png": {"Software": None}, "pdf": {"CreationDate": None}}
STYLE: dict[Any, Any] = {"svg.hashsalt": "attngeom", "savefig.dpi": 130}


class Picture(Figure):
    """A figure that shows itself in a notebook, and whose files depend on what it shows alone."""

    def _repr_png_(self) -> bytes:
        stream = io.BytesIO()
        self.savefig(stream, format="png")
        return stream.getvalue()

    def savefig(self, fname: Any, **options: Any) -> None:
        """Write the picture; without a date, so that the same answer gives the same file."""
        kind = str(options.get("format") or fname).rpartition(".")[2]
        if kind in UNDATED:
            options.setdefault("metadata", UNDATED[kind])
        with matplotlib.rc_context(STYLE):
            super().savefig(fname, **options)


def new_picture(title: str, width: float = 7.2, height: float = 3.2) -> tuple[Picture, Axes]:
    """An empty picture, and its axes."""
    picture = Picture(figsize=(width, height), layout="constrained")
    axes = picture.add_subplot()
    picture.suptitle(title, fontsize=11)
    axes.spines[["top", "right"]].set_visible(False)
    return picture, axes


def draw_parts(title: str, parts: Mapping[str, int], first: str) -> Picture:
    """One bar split into parts; the part named ``first`` is what is left of the whole, the others are what is lost.

    >>> len(draw_parts("parameters", {"dimension": 23, "between": 9}, "dimension").axes[0].patches)
    2
    """
    labels = {name: f"{_shorten(name, LEGEND_LETTERS - 20)}: {value:,}" for name, value in parts.items()}
    # Columns of a legend are as wide as its longest label, besides the mark of each.
    columns = max(1, min(len(parts), 4, LEGEND_LETTERS // (8 + max(map(len, labels.values()), default=0))))
    picture, axes = new_picture(title, height=2.0 + 0.22 * (-(-len(parts) // columns) - 1))
    start = 0
    shades = iter(SHADES[1:])
    for name, value in parts.items():
        color = DIMENSION if name == first else next(shades, "#bbbbbb")
        axes.barh([0], [value], left=start, color=color, edgecolor="white", label=labels[name])
        start += value
    axes.set_xlim(0, max(start, 1))
    axes.set_yticks([])
    axes.spines["left"].set_visible(False)
    picture.legend(loc="outside lower center", ncols=columns, frameon=False, fontsize=9)
    return picture


def _shorten(text: str, width: int) -> str:
    return text if len(text) <= width else f"{text[: width - 1]}…"


def draw_spectra(title: str, spectra: Mapping[str, Sequence[float]]) -> Picture:
    """Singular values on a logarithmic scale, one column for each name; zeros lie on the lower edge."""
    picture, axes = new_picture(title, width=max(4.0, 1.2 + 0.7 * len(spectra)))
    largest = max((max(values, default=0.0) for values in spectra.values()), default=1.0) or 1.0
    floor = largest * 1e-17
    for place, values in enumerate(spectra.values()):
        axes.plot([place] * len(values), [max(value, floor) for value in values], "o", color=MIDDLE, mec=DARK, ms=5)
    axes.set_yscale("log")
    axes.set_xticks(range(len(spectra)), list(spectra))
    axes.set_xlim(-0.6, len(spectra) - 0.4)
    axes.set_ylabel("singular values")
    axes.grid(axis="y", color="#dddddd", linewidth=0.6)
    return picture


def draw_stacks(title: str, xlabel: str, stacks: Mapping[str, Mapping[str, int]], scale: str = "linear") -> Picture:
    """Bars side by side for each place: ``stacks[name][place]`` is a height."""
    picture, axes = new_picture(title)
    places = list(dict.fromkeys(place for stack in stacks.values() for place in stack))
    width = 0.8 / max(len(stacks), 1)
    for number, (name, stack) in enumerate(stacks.items()):
        shift = (number - (len(stacks) - 1) / 2) * width
        heights = [stack.get(place, 0) for place in places]
        axes.bar([k + shift for k in range(len(places))], heights, width, color=SHADES[number], label=name)
    axes.set_xticks(range(len(places)), places)
    axes.set_xlabel(xlabel)
    axes.set_yscale("symlog" if scale == "log" else scale)
    axes.legend(frameon=False, fontsize=9, loc="upper left", bbox_to_anchor=(1, 1))
    return picture


def draw_grid(
    title: str,
    names: Sequence[Sequence[str]],
    colors: Mapping[str, str],
    here: tuple[int, int],
    labels: tuple[str, str],
) -> Picture:
    """A grid of named cells, column by row, in the colours of their names, with one of them marked."""
    picture, axes = new_picture(title, width=1.8 + 1.1 * len(names), height=1.4 + 0.8 * len(names[0]))
    for x, column in enumerate(names):
        for y, name in enumerate(column):
            cell = matplotlib.patches.Rectangle((x - 0.5, y - 0.5), 1, 1, facecolor=colors[name], edgecolor="white")
            axes.add_patch(cell)
            axes.text(x, y, name, ha="center", va="center", fontsize=8, color=DARK)
    corner = (here[0] - 0.46, here[1] - 0.46)
    axes.add_patch(matplotlib.patches.Rectangle(corner, 0.92, 0.92, fill=False, edgecolor=WARM, linewidth=3))
    axes.set_xlim(-0.5, len(names) - 0.5)
    axes.set_ylim(-0.5, len(names[0]) - 0.5)
    axes.set_xticks(range(len(names)))
    axes.set_yticks(range(len(names[0])))
    axes.set_xlabel(labels[0])
    axes.set_ylabel(labels[1])
    axes.set_aspect("equal")
    return picture
