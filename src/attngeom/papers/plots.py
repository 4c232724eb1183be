"""The figures of both papers, drawn from computed data: PNG and SVG, and a page to turn the 3-D one."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.figure import Figure as Canvas
from matplotlib.patches import Patch

from attngeom.exact.arrays import Array
from attngeom.files import make_folder, write_atomic
from attngeom.palette import DARK, LIGHT, MIDDLE, WARM
from attngeom.papers import Store
from attngeom.papers.reports import Figure

STYLE: dict[Any, Any] = {
    "font.size": 11,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "svg.hashsalt": "attngeom",
    "svg.fonttype": "none",
    "savefig.dpi": 160,
    "legend.frameon": False,
}


def draw_figures(store: Store) -> list[Figure]:
    """Draw every figure whose data is in the store, into its folder ``figures``."""
    figures = []
    for claim_id, draw in DRAWINGS.items():
        data = store.load_data(claim_id)
        if data is not None:
            figures.append(draw(data, store.folder))
    return figures


def _save(canvas: Canvas, claim_id: str, folder: Path) -> tuple[bytes, list[str]]:
    """Write PNG and SVG without dates, and return the PNG and the names."""
    target = folder / "figures"
    make_folder(target)
    parts = {}
    for kind, metadata in (("png", {"Software": None}), ("svg", {"Date": None})):
        stream = io.BytesIO()
        canvas.savefig(stream, format=kind, metadata=metadata, bbox_inches="tight", pad_inches=0.15)
        parts[kind] = stream.getvalue()
        write_atomic(target / f"{claim_id}.{kind}", parts[kind])
    return parts["png"], [f"figures/{claim_id}.{kind}" for kind in parts]


def draw_samples(data: dict[str, Any], folder: Path) -> Figure:
    """[G] Section 1: shares of interpolating fits that are the true function, around the dimension."""
    sizes = sorted({row["dimension"] for row in data["rows"]})
    marks = ("o", "s", "^")
    with matplotlib.rc_context(STYLE):
        canvas = Canvas(figsize=(6.4, 4.4))
        axes = canvas.add_subplot()
        for number, (size, mark) in enumerate(zip(sizes, marks)):
            rows = [row for row in data["rows"] if row["dimension"] == size]
            offsets = [row["samples"] - size for row in rows]
            shares = [100 * row["equal"] / max(row["interpolating"], 1) for row in rows]
            label = f"D = {size}, {rows[0]['parameters']} parameters"
            axes.plot(offsets, shares, mark, color=(DARK, MIDDLE, WARM)[number], markersize=9 - 2 * number, label=label)
            axes.plot(offsets, shares, color=(DARK, MIDDLE, WARM)[number], linewidth=1, zorder=0)
        axes.set_xticks([-1, 0, 1], ["D − 1", "D", "D + 1"])
        axes.set_xlabel("number of scalar samples")
        axes.set_ylabel("interpolating fits that are the truth, %")
        axes.set_ylim(-6, 106)
        axes.grid(axis="y", color="#dddddd", linewidth=0.6)
        axes.legend(loc="upper left")
        png, files = _save(canvas, "G-section-1-samples", folder)
    counts = "; ".join(
        f"D = {row['dimension']}, N = {row['samples']}: {row['equal']} of {row['interpolating']} interpolating fits"
        for row in data["rows"]
    )
    caption = (
        "One more sample than the dimension determines the function, whatever the number of parameters; one less never"
        f" does (Theorem N). {data['rows'][0]['fits']} fits for each point; fits that are the truth: {counts}."
    )
    return Figure("G-section-1-samples", "The sample threshold", caption, png, tuple(files))


def draw_umbrella(data: dict[str, Any], folder: Path) -> Figure:
    """[G] Figure 1: the surface (x, b x, b²), its singular line, and the part of it in the Zariski closure only."""
    x, b = np.meshgrid(data["x"], data["b"])
    y, w = b * x, b**2
    with matplotlib.rc_context(STYLE):
        canvas = Canvas(figsize=(7.5, 6.5))
        axes = canvas.add_subplot(projection="3d", computed_zorder=False)
        sheets = np.where(
            (b > 0)[..., None], matplotlib.colors.to_rgba(LIGHT, 0.82), matplotlib.colors.to_rgba("#f2efe6", 0.82)
        )
        axes.plot_surface(
            x, y, w, facecolors=sheets, edgecolor=MIDDLE, linewidth=0.3, rstride=3, cstride=4, shade=False
        )
        low, high = data["line"]
        axes.plot([0, 0], [0, 0], [low, high], color=DARK, linewidth=5.5, zorder=5)
        axes.plot(
            [0, 0],
            [0, 0],
            [low, high],
            color=WARM,
            linewidth=3,
            zorder=6,
            label="singular line: two weights for each function",
        )
        start, end = data["dashed"]
        axes.plot(
            [0, 0],
            [0, 0],
            [start, end],
            color=DARK,
            linewidth=2.2,
            linestyle=(0, (3, 2)),
            zorder=6,
            label="in the Zariski closure only: no real weights",
        )
        axes.scatter(
            [0],
            [0],
            [0],
            color="white",
            edgecolor=DARK,
            s=55,
            linewidth=1.6,
            zorder=7,
            depthshade=False,
            label="boundary point",
        )
        for name, label in (
            ("x", "x (coefficient of s u)"),
            ("y", "y (coefficient of u²)"),
            ("z", "w (minus that of u²)"),
        ):
            getattr(axes, f"set_{name}label")(label, labelpad=4 if name == "z" else 9)
            getattr(axes, f"set_{name}ticks")([-1, 0, 1])
        axes.set_zlim(start, high)
        axes.set_box_aspect((1, 1, 1.15), zoom=0.92)
        axes.view_init(elev=17, azim=-57)
        handles, _ = axes.get_legend_handles_labels()
        sheets_shown = [
            Patch(facecolor=LIGHT, edgecolor=MIDDLE, label="sheet b > 0: the weights (A, V)"),
            Patch(facecolor="#f2efe6", edgecolor=MIDDLE, label="sheet b < 0: the same, with k and v exchanged"),
        ]
        axes.legend(handles=[*sheets_shown, *handles], loc="upper center", bbox_to_anchor=(0.5, 1.12), fontsize=9)
        png, files = _save(canvas, "G-figure-1", folder)
    page, note = _interactive_umbrella(x, y, w, data, folder)
    caption = (
        f"The affine slice {data['slice']}, of the functions of one layer with d = t = a = 2, d' = 1. The variety cuts"
        " it in the surface y² = w x²; layers give the points (x, b x, b²)."
    )
    return Figure("G-figure-1", "[G] Figure 1, recomputed", caption, png, (*files, *page), note)


def _interactive_umbrella(
    x: Array, y: Array, w: Array, data: dict[str, Any], folder: Path
) -> tuple[tuple[str, ...], str | None]:
    """A page with the surface to turn; without plotly a note instead."""
    try:
        import plotly.graph_objects as go
    except ImportError:
        return (), "The interactive page needs plotly, which is not installed (extra viz3d)."
    low, high = data["line"]
    start, end = data["dashed"]
    zero = [0, 0]
    page = go.Figure(
        [
            go.Surface(
                x=x, y=y, z=w, surfacecolor=np.sign(y * x), colorscale=[[0, "#e8ddba"], [1, LIGHT]], showscale=False,
                opacity=0.9, name="functions of layers", showlegend=True,
                contours={"z": {"show": True, "color": MIDDLE, "width": 1}},
            ),
            go.Scatter3d(
                x=zero, y=zero, z=[low, high], mode="lines", line={"color": WARM, "width": 9}, name="singular line"
            ),
            go.Scatter3d(
                x=zero, y=zero, z=[start, end], mode="lines", line={"color": DARK, "width": 6, "dash": "dash"},
                name="Zariski closure only",
            ),
            go.Scatter3d(
                x=[0], y=[0], z=[0], mode="markers", marker={"color": "black", "size": 4}, name="boundary point"
            ),
        ]
    )  # fmt: skip
    page.update_layout(
        title="Slice of M(2,1,2), t = 2: y² = w x²",
        scene={"xaxis_title": "x", "yaxis_title": "y", "zaxis_title": "w"},
        margin={"l": 0, "r": 0, "t": 40, "b": 0},
    )
    text = page.to_html(include_plotlyjs=True, full_html=True, div_id="umbrella")
    write_atomic(folder / "figures" / "G-figure-1.html", text)
    return ("figures/G-figure-1.html",), None


def draw_words(data: dict[str, Any], folder: Path) -> Figure:
    """[G] Figure 2: one bar for each letter M_i (filled) or M_iᵀ (hatched), of height i, for l = 1 … 4 layers."""
    shades = [LIGHT, "#93b3d2", MIDDLE, DARK]
    with matplotlib.rc_context({**STYLE, "axes.spines.left": False}):
        canvas = Canvas(figsize=(11, 8.2))
        panels = canvas.subplots(4, 1, gridspec_kw={"hspace": 0.62, "height_ratios": [1.2, 1.5, 2, 2.6]})
        for axes, (l, letters) in zip(panels, data.items()):
            for place, (index, transposed) in enumerate(letters, start=1):
                axes.bar(
                    place, index, width=0.84, color="white" if transposed else shades[index - 1],
                    edgecolor=shades[index - 1] if index > 1 else "#7d98b5", linewidth=1.1,
                    hatch="////" if transposed else None,
                )  # fmt: skip
                name = f"$M_{index}^\\top$" if transposed else f"$M_{index}$"
                if int(l) < 4:
                    axes.text(place, index + 0.1, name, ha="center", va="bottom", fontsize=11)
                elif index > 1:
                    axes.text(place, index + 0.1, name, ha="center", va="bottom", fontsize=10)
            axes.set_xlim(0.2, max(len(letters), 13) + 0.8)
            axes.set_ylim(0, int(l) + 0.9)
            axes.set_yticks([])
            ticks = range(1, len(letters) + 1) if len(letters) < 20 else [1, *range(3, len(letters) + 1, 3)]
            axes.set_xticks(list(ticks))
            axes.set_title(f"l = {l}: {len(letters)} letter{'s' if len(letters) > 1 else ''}", loc="left", fontsize=11)
        panels[-1].set_xlabel("place j of the letter in the word; the height is one plus the number of factors 3 in j")
        handles = [
            Patch(facecolor=MIDDLE, label="$M_i$"),
            Patch(facecolor="white", edgecolor=MIDDLE, hatch="////", label="$M_i^\\top$"),
        ]
        panels[0].legend(handles=handles, loc="upper right", ncols=2, bbox_to_anchor=(1, 1.5))
        png, files = _save(canvas, "G-figure-2", folder)
    caption = (
        "The word of Equation 12: φ(X) = L X times the product of the letters Xᵀ M X. The last letter is M₁; the others"
        " follow the base-3 digits of their place. In the last panel the unlabelled bars are M₁ and its transpose."
    )
    return Figure("G-figure-2", "[G] Figure 2, recomputed", caption, png, tuple(files))


def draw_dimensions(data: dict[str, Any], folder: Path) -> Figure:
    """[G] Figure 3: expected and estimated dimensions against δ, for softmax and lightning attention."""
    delta = data["delta"]
    with matplotlib.rc_context(STYLE):
        canvas = Canvas(figsize=(10, 4.6))
        panels = canvas.subplots(1, 2, sharey=True, gridspec_kw={"wspace": 0.08})
        for axes, kind in zip(panels, ("softmax", "lightning")):
            values = data[kind]
            axes.plot(delta, values["expected"], color=MIDDLE, linewidth=1.6, label="expected (formula)", zorder=1)
            axes.plot(
                delta,
                values["float64"],
                "o",
                color="white",
                markeredgecolor=DARK,
                markersize=9,
                label="estimated, double precision",
            )
            proven = [(n, v) for n, v in zip(delta, values["exact"]) if v is not None]
            axes.plot(*zip(*proven), "x", color=DARK, markersize=5, label="proven (rank mod p)")
            axes.plot(
                np.array(delta) + 0.24,
                values["float32"],
                "v",
                color=WARM,
                markeredgecolor=DARK,
                markersize=5,
                markeredgewidth=0.6,
                label="estimated, single precision",
            )
            axes.set_title(f"{kind} attention", fontsize=11)
            axes.set_xlabel("width δ")
            axes.set_xticks(delta)
            axes.grid(axis="y", color="#dddddd", linewidth=0.6)
        panels[0].set_ylabel("dimension")
        panels[0].legend(loc="upper left", fontsize=10)
        png, files = _save(canvas, "G-figure-3", folder)
    caption = (
        "Dimension of the set of functions for l = 2, t = 3, a = 2, all widths δ. Circles: the numerical rank of the"
        f" Jacobian at {data['samples']} random inputs; crosses: proven values; triangles: the same rank in single"
        " precision (shifted to the right), which can fall short."
    )
    return Figure("G-figure-3", "[G] Figure 3, recomputed", caption, png, tuple(files))


def draw_quartic(data: dict[str, Any], folder: Path) -> Figure:
    """[I] Figure 1: the plane section of the quartic invariant, with points that come from weights."""
    horizontal, vertical = np.meshgrid(np.linspace(-3.2, 3.2, 900), np.linspace(-2.6, 1.7, 900))
    value = np.zeros_like(horizontal)
    for (i, j), c in data["terms"]:
        value += float(c) * horizontal**i * vertical**j
    points = np.array([p for p in data["points"] if abs(p[0]) <= 3.2 and -2.6 <= p[1] <= 1.7])
    with matplotlib.rc_context(STYLE):
        canvas = Canvas(figsize=(6.8, 5.6))
        axes = canvas.add_subplot()
        axes.contourf(horizontal, vertical, np.sign(value), levels=[-2, 0, 2], colors=["#f3f6fa", "white"])
        axes.contour(horizontal, vertical, value, levels=[0], colors=[MIDDLE], linewidths=2)
        axes.plot([], [], color=MIDDLE, linewidth=2, label="zero set of the quartic")
        axes.plot(
            points[:, 0],
            points[:, 1],
            "o",
            color=WARM,
            markeredgecolor=DARK,
            markersize=4.5,
            markeredgewidth=0.7,
            label="functions of layers",
        )
        axes.set_xlabel("x")
        axes.set_ylabel("y")
        axes.set_aspect("equal")
        axes.legend(loc="lower left", bbox_to_anchor=(0, 1.0), ncols=2)
        png, files = _save(canvas, "I-figure-1", folder)
    names = ("y₁₁₁", "y₁₂₁", "y₂₂₁", "y₁₁₂", "y₁₂₂", "y₂₂₂")
    plane = ", ".join(f"{name} = {_affine(c)}" for name, c in zip(names, data["plane"]))
    caption = f"The quartic D₂₀ D₀₂ − D₁₁² of d = t = 2 on the plane {plane}. It is negative in the shaded part."
    return Figure("I-figure-1", "[I] Figure 1, recomputed", caption, png, tuple(files))


def _affine(c: list[int]) -> str:
    """c_0 + c_1 x + c_2 y as text.

    >>> _affine([-1, 0, 2])
    '−1 + 2y'
    """
    text = ""
    for factor, name in zip(c, ("", "x", "y")):
        if factor:
            size = "" if abs(factor) == 1 and name else str(abs(factor))
            sign = ("−" if factor < 0 else "") if not text else (" − " if factor < 0 else " + ")
            text += sign + size + name
    return text or "0"


DRAWINGS: dict[str, Callable[[dict[str, Any], Path], Figure]] = {
    "G-section-1-samples": draw_samples,
    "G-figure-1": draw_umbrella,
    "G-figure-2": draw_words,
    "G-figure-3": draw_dimensions,
    "I-figure-1": draw_quartic,
}
