"""Words and pictures of a lineage: a summary for the terminal with a map of layers, a heat map for notebooks."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any

import numpy as np

from attngeom import digits
from attngeom.exact.arrays import Array
from attngeom.limits.shown import LISTED_NAMES, MAP_COLUMNS, MAP_ROWS, MAP_TITLE

if TYPE_CHECKING:
    from attngeom.models.ancestry.lineage import Lineage, Parentage

SHADES = " ░▒▓█"


def describe(found: Lineage, *, every: bool) -> str:
    """One sentence, then each parent: numbers, the layers least alike first, what is shared, and a map."""
    lines = [f"{_verdict(found)} ({found.standing}): {found.reason}"]
    for parent in found.parents:
        lines += _parent_lines(parent, every)
    table = found.table
    words = f"reference: {table.pairs} independent pairs, at most {table.largest_independent:.3f} alike"
    if found.best.similarity is not None and found.verdict:
        kinds = (f"{x.name} {x.least:.3f} to {x.largest:.3f}" for x in table.nearest(found.best.similarity))
        words += f"; nearest of the derived ones: {', '.join(kinds)}"
    lines.append(words)
    return "\n".join(lines)


def _verdict(lineage: Lineage) -> str:
    words = {True: "alike", False: "no more alike than independent models", None: "cannot be told"}
    return words[lineage.verdict]


def _parent_lines(parent: Parentage, every: bool) -> list[str]:
    if parent.similarity is None:
        words = f"singular values of heads are {parent.spectra:.3f} alike, which independent models can be as well"
        return [f"{parent.path}: contents not compared: {parent.left_out}; {words}"]
    lines = [
        f"{parent.path}: similarity {parent.similarity:.3f}, heads {parent.heads:.3f}, units {parent.units:.3f} "
        f"(medians); stream aligned by {parent.stream}"
    ]
    order = sorted(parent.layers, key=lambda layer: digits.ranking(layer.similarity))
    shown = order if every else order[:LISTED_NAMES]
    for layer in shown:
        lines.append(
            f"  layer {layer.layer} is most like layer {layer.matches}: {layer.similarity:.3f} "
            f"({layer.found:.0%} of the units found again)"
        )
    if len(shown) < len(order):
        lines.append(f"  and {len(order) - len(shown)} layers more alike; --all lists them")
    lines += _shared_lines(parent, every)
    if parent.test is not None:
        lines.append(f"  {parent.test.sentence}")
    elif parent.untested:
        lines.append(f"  no test: {parent.untested}")
    if parent.table is not None:
        rows = draw_map(parent.table)
        if any(set(row) & set(SHADES[1:]) for row in rows):
            lines += ["  layers of the child (down) × layers of the parent:", *rows]
        else:
            lines.append(f"  no map: no two layers are alike, at most {parent.table.max():.3f}")
    return lines


def _shared_lines(parent: Parentage, every: bool) -> list[str]:
    lines = []
    for part in parent.shared if every else parent.shared[:LISTED_NAMES]:
        where = part.part if part.layer is None else f"{part.part} {part.layer} (of the parent: {part.matches})"
        if part.heads:
            where = f"layer {part.layer} (of the parent: {part.matches}), heads {', '.join(map(str, part.heads))}"
        lines.append(f"  shared within rounding: {where}, by {part.symmetry}")
    if len(lines) < len(parent.shared):
        lines.append(f"  and {len(parent.shared) - len(lines)} shared parts more")
    return lines


def draw_map(table: Array) -> list[str]:
    """Rows of shaded cells, from 0 (blank) to 1 (full).

    >>> draw_map(np.eye(2))
    ['  │█ │', '  │ █│']
    """
    cells = np.array([[part.max() for part in np.array_split(row, min(len(row), MAP_COLUMNS))] for row in table])
    rows = [part.max(axis=0) for part in np.array_split(cells, min(len(cells), MAP_ROWS))]
    steps = len(SHADES) - 1
    shades = [[SHADES[int(np.clip(round(float(x) * steps), 0, steps))] for x in row] for row in rows]
    return [f"  │{''.join(row)}│" for row in shades]


def draw_lineage(found: Lineage) -> Any:
    """A heat map for every parent: layers of the child × layers of the parent."""
    from matplotlib.ticker import MaxNLocator

    from attngeom.drawing import new_picture

    shown = [parent for parent in found.parents if parent.table is not None]
    width = 1.6 + 3.0 * max(len(shown), 1)
    # About 12 characters of the title fit an inch.
    title = textwrap.wrap(found.reason, int(12 * width))
    picture, first = new_picture("\n".join(title), width=width, height=3.4 + 0.2 * len(title))
    first.remove()
    for place, parent in enumerate(shown):
        axes = picture.add_subplot(1, len(shown), place + 1)
        image = axes.imshow(np.asarray(parent.table), vmin=0, vmax=1, cmap="Blues", aspect="auto")
        name = parent.path if len(parent.path) <= MAP_TITLE else f"…{parent.path[-MAP_TITLE:]}"
        axes.set_title(f"{name}: {parent.similarity:.3f}", fontsize=9)
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_locator(MaxNLocator(integer=True))
        axes.set_xlabel("layer of the parent")
        axes.set_ylabel("layer of the child")
        if place == len(shown) - 1:
            picture.colorbar(image, ax=axes, label="likeness")
    return picture
