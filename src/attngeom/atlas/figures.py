"""Two figures from a store: how much of the parameters is dimension, and how ideals grow with the degree."""

from __future__ import annotations

import io
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes

from attngeom.atlas.store import FactStore
from attngeom.atlas.summary import kind_name
from attngeom.drawing import DARK, LIGHT, MIDDLE, WARM, Picture
from attngeom.errors import InputError
from attngeom.files import make_folder, write_atomic
from attngeom.limits.shown import CURVE_GAP
from attngeom.network import Architecture

Shares = Mapping[tuple[str, str], list[float]]
"""Shares of all networks of one sort: its name in words, and its kind of attention."""
COLORS = {"lightning": LIGHT}
"""The colors of kinds of attention; others are WARM."""
Curves = Mapping[tuple[int, int], dict[int, float]]


def draw_figures(store: FactStore, folder: Path, kind: str = "svg") -> list[Path]:
    """Draw both figures into a folder; the same store gives the same files."""
    shares, curves = dimension_shares(store), ideal_curves(store)
    if not shares and not curves:
        raise InputError(f"store {store.path} has no facts on dimensions or ideals; run a sweep first")
    make_folder(folder)
    written = []
    for name, is_there in (("dimension", bool(shares)), ("ideal", bool(curves))):
        if is_there:
            picture, stream = Picture(figsize=(7.6, 4.0), layout="constrained"), io.BytesIO()
            _draw_dimensions(picture.add_subplot(), shares) if name == "dimension" else _draw_ideals(picture, curves)
            picture.savefig(stream, format=kind, dpi=110)
            written.append(folder / f"atlas_{name}.{kind}")
            write_atomic(written[-1], stream.getvalue())
    return written


def dimension_shares(store: FactStore) -> Shares:
    """Proven dimension / parameters of all architectures of each kind, t ≥ 2: softmax of one token is linear.

    Masked networks are left out: they differ only where a lightning layer of attention width 1 makes tokens parallel.
    """
    shares: dict[tuple[str, str], list[float]] = defaultdict(list)
    for fact in store.facts("dimension"):
        network, answer = Architecture.from_json(fact.task.architecture), fact.result.answer
        if fact.result.evidence == "proven" and network.tokens > 1 and not network.mask.hides:
            shares[kind_name(fact), network.kind].append(answer["dimension"] / answer["num_parameters"])
    return shares


def ideal_curves(store: FactStore) -> Curves:
    """For each (d, a) with one output row and t ≥ 2: degree ↦ dim Iₙ / dim Rₙ."""
    curves: dict[tuple[int, int], dict[int, float]] = defaultdict(dict)
    for fact in store.facts("ideal"):
        (d, rows), (a,) = fact.task.architecture["widths"], fact.task.architecture["attention"]
        parameters, answer = fact.task.parameters, fact.result.answer
        if rows == 1 and parameters["coordinates"] == "cross" and parameters["targets"] == d:
            curves[d, a][parameters["degree"]] = answer["ideal_dimension"] / answer["monomials"]
    return curves


def _draw_dimensions(axes: Axes, shares: Shares) -> None:
    """One box for each kind of network: how much of its parameters is dimension, over all its architectures."""
    names = sorted(shares, reverse=True)
    for place, (name, kind) in enumerate(names, start=1):
        low, first, median, last, high = np.quantile(shares[name, kind], [0, 0.25, 0.5, 0.75, 1])
        axes.plot([low, high], [place, place], color=DARK, linewidth=1)
        color = COLORS.get(kind, WARM)
        axes.barh(place, last - first, left=first, height=0.6, color=color, edgecolor=DARK)
        axes.plot([median, median], [place - 0.3, place + 0.3], color=DARK, linewidth=2)
    axes.set_yticks(range(1, len(names) + 1), [f"{name} ({len(shares[name, kind]):,})" for name, kind in names])
    axes.set(xlabel="dimension / parameters: range, quartiles, median", xlim=(0, 1))
    axes.grid(axis="x", color="#dddddd", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.set_title("How much of the parameters is dimension (proven, t ≥ 2)", fontsize=11)


def _draw_ideals(picture: Picture, curves: Curves) -> None:
    """The share of the polynomials of each degree that vanish on the variety: a panel for each d, a at the end."""
    widths = sorted({d for d, _ in curves})
    last = max(degree for curve in curves.values() for degree in curve)
    panels = picture.subplots(1, len(widths), sharey=True, squeeze=False)[0]
    for axes, width in zip(panels, widths):
        ends = []
        for (d, a), curve in sorted(curves.items()):
            if d == width:
                degrees = sorted(curve)
                color = DARK if a == 1 else MIDDLE
                axes.plot(degrees, [curve[n] for n in degrees], "o-", color=color, ms=3, lw=1.3)
                ends.append((curve[degrees[-1]], degrees[-1], a))
        _label_ends(axes, ends)
        axes.set_title(f"d = {width}", fontsize=10)
        axes.set(xlim=(0.5, last + 1.9), ylim=(0, 1.04), xticks=range(1, last + 1))
        axes.grid(axis="y", color="#dddddd", linewidth=0.6)
        axes.spines[["top", "right"]].set_visible(False)
    panels[0].set_ylabel("dim Iₙ / dim Rₙ")
    picture.supxlabel("degree n", fontsize=10)
    picture.suptitle("Share of degree-n polynomials that vanish on the variety", fontsize=11)


def _label_ends(axes: Axes, ends: list[tuple[float, int, int]]) -> None:
    """Write a beside the end of each curve; curves that end together share a name."""
    groups: list[tuple[float, int, list[int]]] = []
    for share, degree, a in sorted(ends):
        if groups and share - groups[-1][0] < CURVE_GAP:
            groups[-1][2].append(a)
        else:
            groups.append((share, degree, [a]))
    for share, degree, names in groups:
        text = f"a = {', '.join(map(str, sorted(names)))}"
        axes.annotate(text, (degree, share), (5, -3), textcoords="offset points", fontsize=8)
