"""Two figures from a store: how much of the parameters is dimension, and how ideals grow with the degree."""

from __future__ import annotations

import io
from collections import defaultdict
from pathlib import Path

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from attngeom.atlas.store import FactStore
from attngeom.errors import InputError
from attngeom.files import make_folder, write_atomic
from attngeom.palette import DARK, LIGHT, WARM

COLORS = ("#0b6e99", "#d1495b", "#66a182", "#edae49", "#6a4c93", "#3d3d3d")
Series = dict[str, dict[int, list[int]]]


def draw_figures(store: FactStore, folder: Path, kind: str = "svg") -> list[Path]:
    """Draw both figures into a folder; the same store gives the same files."""
    dimensions, ideals = dimension_series(store), ideal_series(store)
    if not dimensions and not ideals:
        raise InputError(f"store {store.path} has no facts on dimensions or ideals; run a sweep first")
    make_folder(folder)
    written = []
    for name, series, draw in (("dimension", dimensions, _draw_dimensions), ("ideal", ideals, _draw_ideals)):
        if series:
            figure = Figure(figsize=(7.6, 4.0), layout="constrained")
            draw(figure.add_subplot(), series)
            path = folder / f"atlas_{name}.{kind}"
            write_atomic(path, _render(figure, kind))
            written.append(path)
    return written


def dimension_series(store: FactStore) -> Series:
    """For each kind of network, t ≥ 2 (softmax of one token is a linear map): parameters ↦ proven dimensions."""
    series: Series = defaultdict(lambda: defaultdict(list))
    for fact in store.facts("dimension"):
        network, found = fact.task.architecture, fact.result.answer
        if fact.result.evidence == "proven" and network["tokens"] > 1:
            marks = [network["kind"], *(name for name in ("causal", "residual") if network[name])]
            marks += [f"{network['heads']} heads"] if network["heads"] > 1 else []
            series[" ".join(marks)][found["num_parameters"]].append(found["dimension"])
    return series


def ideal_series(store: FactStore) -> Series:
    """For each (d, a) with one output row and t ≥ 2: degree ↦ dimensions of the ideal and of all polynomials."""
    series: Series = defaultdict(lambda: defaultdict(list))
    for fact in store.facts("ideal"):
        (d, rows), (a,) = fact.task.architecture["widths"], fact.task.architecture["attention"]
        parameters, found = fact.task.parameters, fact.result.answer
        if rows == 1 and parameters["coordinates"] == "cross" and parameters["targets"] == d:
            values = [found["ideal_dimension"], found["monomials"]]
            series[f"d = {d}, a = {a}"][parameters["degree"]] = values
    return series


def _draw_dimensions(axes: Axes, series: Series) -> None:
    """One box for each kind of network: how much of its parameters is dimension, over all its architectures."""
    # Causal networks are left out: they differ only where a lightning layer of attention width 1 makes tokens parallel.
    names = [name for name in sorted(series, reverse=True) if "causal" not in name]
    shares = [[value / size for size, values in series[name].items() for value in values] for name in names]
    for place, (name, values) in enumerate(zip(names, shares), start=1):
        low, first, median, last, high = quantiles(values)
        axes.plot([low, high], [place, place], color=DARK, linewidth=1)
        color = LIGHT if name.startswith("lightning") else WARM
        axes.barh(place, last - first, left=first, height=0.6, color=color, edgecolor=DARK)
        axes.plot([median, median], [place - 0.3, place + 0.3], color=DARK, linewidth=2)
    counted = [f"{name} ({len(values):,})" for name, values in zip(names, shares)]
    axes.set_yticks(range(1, len(names) + 1), counted)
    axes.set_xlabel("dimension / parameters: range, quartiles, median")
    axes.set_xlim(0, 1)
    axes.grid(axis="x", color="#dddddd", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.set_title("How much of the parameters is dimension (proven, t ≥ 2)", fontsize=11)


def quantiles(values: list[float]) -> list[float]:
    """The least value, the quartiles and the largest one, values in between taken on a line.

    >>> quantiles([1.0, 2.0, 3.0, 4.0, 5.0])
    [1.0, 2.0, 3.0, 4.0, 5.0]
    """
    ordered = sorted(values)
    found = []
    for part in (0.0, 0.25, 0.5, 0.75, 1.0):
        place = part * (len(ordered) - 1)
        below = int(place)
        above = min(below + 1, len(ordered) - 1)
        found.append(ordered[below] + (place - below) * (ordered[above] - ordered[below]))
    return found


def _draw_ideals(axes: Axes, series: Series) -> None:
    """The share of the polynomials of each degree that vanish on the variety: colours for d, the name at the end."""
    widths = sorted({int(name.split(",")[0].split(" = ")[1]) for name in series})
    places: list[tuple[float, float, str, str]] = []
    for name in sorted(series):
        width, rank = (int(part.split(" = ")[1]) for part in name.split(", "))
        color = COLORS[widths.index(width) % len(COLORS)]
        degrees = sorted(series[name])
        shares = [series[name][n][0] / series[name][n][1] for n in degrees]
        axes.plot(degrees, shares, "o-", color=color, ms=3.5, lw=1.4)
        places.append((degrees[-1], shares[-1], f"a = {rank}", color))
    _label_ends(axes, places)
    for width in widths:
        axes.plot([], [], "o-", color=COLORS[widths.index(width) % len(COLORS)], ms=3.5, label=f"d = {width}")
    axes.set_xlim(right=max(place[0] for place in places) + 0.6)
    axes.set_xlabel("degree n")
    axes.set_ylabel("dim Iₙ / dim Rₙ")
    axes.set_ylim(0, 1.02)
    axes.set_title("Share of degree-n polynomials that vanish on the variety", fontsize=11)
    axes.legend(fontsize=9, frameon=False, loc="upper left")


def _label_ends(axes: Axes, places: list[tuple[float, float, str, str]], gap: float = 0.034) -> None:
    """Write each name beside the end of its curve; names that would touch are merged or moved apart."""
    by_end: dict[tuple[float, str], list[tuple[float, str]]] = defaultdict(list)
    for x, y, text, color in places:
        by_end[x, color].append((y, text))
    labels: dict[float, list[tuple[float, str, str]]] = defaultdict(list)
    for (x, color), ends in by_end.items():
        groups: list[tuple[float, list[str]]] = []
        for y, text in sorted(ends):
            if groups and y - groups[-1][0] < gap:
                groups[-1][1].append(text.removeprefix("a = "))
            else:
                groups.append((y, [text]))
        labels[x] += [(y, ", ".join(texts), color) for y, texts in groups]
    for x, named in labels.items():
        least = -gap
        for y, text, color in sorted(named):
            least = max(y, least + gap)
            axes.annotate(text, (x, least), (5, -3), textcoords="offset points", fontsize=8, color=color)


def _render(figure: Figure, kind: str) -> bytes:
    stream = io.BytesIO()
    # Without a date and with fixed identifiers the file depends on the data alone.
    with matplotlib.rc_context({"svg.hashsalt": "attngeom", "savefig.dpi": 110}):
        figure.savefig(stream, format=kind, metadata={"Date": None} if kind == "svg" else {"Software": None})
    return stream.getvalue()
