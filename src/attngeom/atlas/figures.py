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
from attngeom.drawing import Picture
from attngeom.errors import InputError
from attngeom.files import make_folder, write_atomic
from attngeom.palette import DARK, LIGHT, WARM

COLORS = ("#0b6e99", "#d1495b", "#66a182", "#edae49", "#6a4c93", "#3d3d3d")
GAP = 0.034
"""The least distance of two names at the ends of curves."""
Shares = Mapping[str, list[float]]
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
            axes = picture.add_subplot()
            _draw_dimensions(axes, shares) if name == "dimension" else _draw_ideals(axes, curves)
            picture.savefig(stream, format=kind, dpi=110)
            written.append(folder / f"atlas_{name}.{kind}")
            write_atomic(written[-1], stream.getvalue())
    return written


def dimension_shares(store: FactStore) -> Shares:
    """Proven dimension / parameters of all architectures of each kind, t ≥ 2: softmax of one token is linear.

    Causal networks are left out: they differ only where a lightning layer of attention width 1 makes tokens parallel.
    """
    shares: dict[str, list[float]] = defaultdict(list)
    for fact in store.facts("dimension"):
        network, found = fact.task.architecture, fact.result.answer
        if fact.result.evidence == "proven" and network["tokens"] > 1 and not network["causal"]:
            shares[kind_name(fact)].append(found["dimension"] / found["num_parameters"])
    return shares


def ideal_curves(store: FactStore) -> Curves:
    """For each (d, a) with one output row and t ≥ 2: degree ↦ dim Iₙ / dim Rₙ."""
    curves: dict[tuple[int, int], dict[int, float]] = defaultdict(dict)
    for fact in store.facts("ideal"):
        (d, rows), (a,) = fact.task.architecture["widths"], fact.task.architecture["attention"]
        parameters, found = fact.task.parameters, fact.result.answer
        if rows == 1 and parameters["coordinates"] == "cross" and parameters["targets"] == d:
            curves[d, a][parameters["degree"]] = found["ideal_dimension"] / found["monomials"]
    return curves


def _draw_dimensions(axes: Axes, shares: Shares) -> None:
    """One box for each kind of network: how much of its parameters is dimension, over all its architectures."""
    names = sorted(shares, reverse=True)
    for place, name in enumerate(names, start=1):
        low, first, median, last, high = np.quantile(shares[name], [0, 0.25, 0.5, 0.75, 1])
        axes.plot([low, high], [place, place], color=DARK, linewidth=1)
        color = LIGHT if name.startswith("lightning") else WARM
        axes.barh(place, last - first, left=first, height=0.6, color=color, edgecolor=DARK)
        axes.plot([median, median], [place - 0.3, place + 0.3], color=DARK, linewidth=2)
    axes.set_yticks(range(1, len(names) + 1), [f"{name} ({len(shares[name]):,})" for name in names])
    axes.set_xlabel("dimension / parameters: range, quartiles, median")
    axes.set_xlim(0, 1)
    axes.grid(axis="x", color="#dddddd", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.set_title("How much of the parameters is dimension (proven, t ≥ 2)", fontsize=11)


def _draw_ideals(axes: Axes, curves: Curves) -> None:
    """The share of the polynomials of each degree that vanish on the variety: colours for d, the name at the end."""
    colors = {d: COLORS[k % len(COLORS)] for k, d in enumerate(sorted({d for d, _ in curves}))}
    ends = []
    for (d, a), curve in sorted(curves.items()):
        degrees = sorted(curve)
        axes.plot(degrees, [curve[n] for n in degrees], "o-", color=colors[d], ms=3.5, lw=1.4)
        ends.append((degrees[-1], curve[degrees[-1]], a, colors[d]))
    _label_ends(axes, ends)
    for d, color in colors.items():
        axes.plot([], [], "o-", color=color, ms=3.5, label=f"d = {d}")
    axes.set_xlim(right=max(end[0] for end in ends) + 0.6)
    axes.set_xlabel("degree n")
    axes.set_ylabel("dim Iₙ / dim Rₙ")
    axes.set_ylim(0, 1.02)
    axes.set_title("Share of degree-n polynomials that vanish on the variety", fontsize=11)
    axes.legend(fontsize=9, frameon=False, loc="upper left")


def _label_ends(axes: Axes, ends: list[tuple[int, float, int, str]]) -> None:
    """Write each a beside the end of its curve; those of one colour that would touch are merged, others moved apart."""
    labels: dict[int, list[tuple[float, str, str]]] = defaultdict(list)
    for degree, share, a, color in sorted(ends, key=lambda end: (end[0], end[3], end[1], end[2])):
        named = labels[degree]
        if named and named[-1][2] == color and share - named[-1][0] < GAP:
            named[-1] = (named[-1][0], f"{named[-1][1]}, {a}", color)
        else:
            named.append((share, f"a = {a}", color))
    for degree, named in labels.items():
        least = -GAP
        for share, text, color in sorted(named):
            least = max(share, least + GAP)
            axes.annotate(text, (degree, least), (5, -3), textcoords="offset points", fontsize=8, color=color)
