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
    """The mean share of parameters that is dimension: colours for variants, dashes for softmax."""
    # Causal networks are left out: they differ only where a lightning layer of attention width 1 makes tokens parallel.
    names = [name for name in sorted(series) if "causal" not in name]
    variants = sorted({name.partition(" ")[2] for name in names})
    for name in names:
        kind, _, variant = name.partition(" ")
        groups: dict[int, list[float]] = defaultdict(list)
        for size, values in series[name].items():
            groups[10 * (size // 10) + 5] += [value / size for value in values]
        sizes = sorted(groups)
        means = [sum(groups[size]) / len(groups[size]) for size in sizes]
        style = "o-" if kind == "lightning" else "s--"
        axes.plot(sizes, means, style, color=COLORS[variants.index(variant) % len(COLORS)], ms=4, lw=1.3, label=name)
    axes.set_xlabel("parameters (bins of 10)")
    axes.set_ylabel("dimension / parameters")
    axes.set_ylim(0, 1)
    axes.set_title("How much of the parameters is dimension (proven, mean, t ≥ 2)", fontsize=11)
    _place_legend(axes)


def _draw_ideals(axes: Axes, series: Series) -> None:
    """The share of the polynomials of each degree that vanish on the variety."""
    colors = {name: COLORS[i % len(COLORS)] for i, name in enumerate(sorted({n.split(",")[0] for n in series}))}
    styles = ("o-", "s--", "^-.", "v:", "D-", "x--")
    for name in sorted(series):
        width, rank = name.split(", ")
        degrees = sorted(series[name])
        shares = [series[name][n][0] / series[name][n][1] for n in degrees]
        style = styles[(int(rank.split(" = ")[1]) - 1) % len(styles)]
        axes.plot(degrees, shares, style, color=colors[width], ms=4, lw=1.2, label=name)
    axes.set_xlabel("degree n")
    axes.set_ylabel("dim Iₙ / dim Rₙ")
    axes.set_ylim(0, 1)
    axes.set_title("Share of degree-n polynomials that vanish on the variety", fontsize=11)
    _place_legend(axes)


def _place_legend(axes: Axes) -> None:
    axes.legend(fontsize=8, frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5))


def _render(figure: Figure, kind: str) -> bytes:
    stream = io.BytesIO()
    # Without a date and with fixed identifiers the file depends on the data alone.
    with matplotlib.rc_context({"svg.hashsalt": "attngeom", "savefig.dpi": 110}):
        figure.savefig(stream, format=kind, metadata={"Date": None} if kind == "svg" else {"Software": None})
    return stream.getvalue()
