"""The figures of both papers, drawn from computed data: PNG and SVG, and a page to turn the 3-D one."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure as Canvas
from matplotlib.patches import Patch

from attngeom.drawing import DARK, LIGHT, MIDDLE, WARM
from attngeom.files import make_folder, write_atomic
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
CREAM = "#f2efe6"
SHEETS = ("sheet b > 0: the weights (A, V)", "sheet b < 0: the same, with k and v exchanged")
LINES = (
    "singular line: two weights for each function",
    "in the Zariski closure only: no real weights",
    "boundary point",
)
AXES = ("x (coefficient of x₁₂ s u)", "y (coefficient of x₁₂ u²)", "w (minus that of x₁₁ u²)")
Data = dict[str, Any]
SAMPLE_BARS: tuple[Data, ...] = (
    {"facecolor": LIGHT, "hatch": "////"},
    {"facecolor": WARM, "hatch": ".."},
    {"facecolor": MIDDLE},
)
GRID: Data = {"axis": "y", "color": "#dddddd", "linewidth": 0.6}
Drawing = tuple[Canvas, str, str, str]
"""A drawn figure, its title, its caption in one sentence, and what is to be known besides."""


def draw_figures(store: Store) -> list[Figure]:
    """Draw every figure whose data is in the store, into its folder ``figures``."""
    loaded = {claim_id: store.load_data(claim_id) for claim_id in DRAWINGS}
    return [draw_figure(claim_id, data, store.folder) for claim_id, data in loaded.items() if data is not None]


def draw_figure(claim_id: str, data: Data, folder: Path) -> Figure:
    """Draw one figure: PNG and SVG without dates, and the page of the 3-D one."""
    target = folder / "figures"
    make_folder(target)
    parts = {}
    with matplotlib.rc_context(STYLE):
        canvas, title, caption, details = DRAWINGS[claim_id](data)
        for kind, metadata in (("png", {"Software": None}), ("svg", {"Date": None})):
            stream = io.BytesIO()
            canvas.savefig(stream, format=kind, metadata=metadata, bbox_inches="tight", pad_inches=0.15)
            parts[kind] = stream.getvalue()
    page, note = _interactive_umbrella(data) if claim_id == "G-figure-1" else (None, None)
    pages = {} if page is None else {"html": page.encode()}
    for kind, content in (parts | pages).items():
        write_atomic(target / f"{claim_id}.{kind}", content)
    files = tuple(f"figures/{claim_id}.{kind}" for kind in parts | pages)
    width = int.from_bytes(parts["png"][16:20]) * 96 // STYLE["savefig.dpi"]  # of its header, as a browser counts
    return Figure(claim_id, title, caption, details, parts["png"], files, note, width)


def draw_samples(data: Data) -> Drawing:
    """[G] Section 1: shares of interpolating fits that are the true function, around the dimension."""
    canvas = Canvas(figsize=(6.4, 3.8))
    axes = canvas.add_subplot()
    sizes = sorted({row["dimension"] for row in data["rows"]})
    for place, size in enumerate(sizes):
        rows = sorted((row for row in data["rows"] if row["dimension"] == size), key=lambda row: row["samples"])
        for offset, (row, look) in enumerate(zip(rows, SAMPLE_BARS), -1):
            share = 100 * row["equal"] / max(row["interpolating"], 1)
            label = f"{'D' if not offset else f'D {offset:+d}'.replace('-1', '− 1').replace('+1', '+ 1')} samples"
            axes.bar(place + 0.27 * offset, share, 0.25, edgecolor=DARK, label=None if place else label, **look)
            axes.text(place + 0.27 * offset, share + 2, f"{share:.0f} %", ha="center", fontsize=9)
    names = [(size, next(row["parameters"] for row in data["rows"] if row["dimension"] == size)) for size in sizes]
    axes.set_xticks(range(len(sizes)), [f"D = {size}\n{count} parameters" for size, count in names])
    axes.set(ylabel="interpolating fits\nthat are the truth, %", ylim=(0, 112), xlim=(-0.6, len(sizes) - 0.4))
    axes.grid(**GRID)
    axes.set_axisbelow(True)
    axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=3)
    counts = "; ".join(
        f"D = {row['dimension']}, N = {row['samples']}: {row['equal']} of {row['interpolating']}"
        for row in data["rows"]
    )
    caption = "One sample more than the dimension D determines the function; one less never does."
    details = (
        f"Theorem N (docs/theorems/training.md), whatever the number of parameters. {data['rows'][0]['fits']} fits for"
        f" each number N of samples; interpolating fits that are the truth: {counts}."
    )
    return canvas, "The sample threshold", caption, details


def draw_umbrella(data: Data) -> Drawing:
    """[G] Figure 1: the surface (x, b x, b²), its singular line, and the part of it in the Zariski closure only."""
    x, b = np.meshgrid(data["x"], data["b"])
    zero, line, dashed = [0, 0], data["line"], data["dashed"]
    canvas = Canvas(figsize=(7.5, 6.5))
    axes = canvas.add_subplot(projection="3d", computed_zorder=False)
    sheets = np.where((b > 0)[..., None], to_rgba(LIGHT, 0.82), to_rgba(CREAM, 0.82))
    mesh = {"edgecolor": MIDDLE, "linewidth": 0.3, "rstride": 3, "cstride": 4, "shade": False}
    axes.plot_surface(x, b * x, b**2, facecolors=sheets, **mesh)
    axes.plot(zero, zero, line, color=DARK, linewidth=5.5, zorder=5)
    axes.plot(zero, zero, line, color=WARM, linewidth=3, zorder=6, label=LINES[0])
    dash = {"linewidth": 2.2, "linestyle": (0, (3, 2)), "zorder": 6}
    axes.plot(zero, zero, dashed, color=DARK, label=LINES[1], **dash)
    point = {"color": "white", "edgecolor": DARK, "s": 55, "linewidth": 1.6, "zorder": 7, "depthshade": False}
    axes.scatter([0], [0], [0], label=LINES[2], **point)
    axes.set_xlabel(AXES[0], labelpad=9)
    axes.set_ylabel(AXES[1], labelpad=9)
    axes.set_zlabel(AXES[2], labelpad=4)
    axes.set(**{f"{letter}ticks": [-1, 0, 1] for letter in "xyz"}, zlim=(dashed[0], line[1]))
    axes.set_box_aspect((1, 1, 1.15), zoom=0.92)
    axes.view_init(elev=17, azim=-57)
    handles = [
        Patch(facecolor=LIGHT, edgecolor=MIDDLE, label=SHEETS[0]),
        Patch(facecolor=CREAM, edgecolor=MIDDLE, label=SHEETS[1]),
        *axes.get_legend_handles_labels()[0],
    ]
    axes.legend(handles=handles, loc="upper center", bbox_to_anchor=(0.5, 1.12), fontsize=9)
    caption = "A slice of the functions of one layer: the surface y² = w x², which crosses itself."
    details = (
        f"The affine slice {data['slice']}, of the functions of one layer with d = t = a = 2, d' = 1. The variety cuts"
        " it in the surface y² = w x²; layers give the points (x, b x, b²)."
    )
    return canvas, "[G] Figure 1, recomputed", caption, details


def _interactive_umbrella(data: Data) -> tuple[str | None, str | None]:
    """A page with the surface to turn; without plotly a note instead."""
    try:
        import plotly.graph_objects as go
    except ImportError:
        return None, "The interactive page needs plotly, which is not installed (extra viz3d)."
    lit = {"ambient": 1, "diffuse": 0.1, "specular": 0, "fresnel": 0}
    grid = {"show": True, "color": MIDDLE, "width": 1, "start": -2, "end": 2, "size": 0.25}
    sheets = []
    for colour, name, sign in ((LIGHT, SHEETS[0], 1), ("#e8ddba", SHEETS[1], -1)):
        x, b = np.meshgrid(data["x"], np.array([v for v in data["b"] if sign * v >= 0]))
        flat = {"colorscale": [[0, colour], [1, colour]], "showscale": False, "showlegend": True, "opacity": 0.85}
        contours = {"x": grid, "z": grid}
        sheets.append(go.Surface(x=x, y=b * x, z=b**2, name=name, lighting=lit, contours=contours, **flat))
    zero, lines = [0, 0], {"x": [0, 0], "y": [0, 0], "mode": "lines"}
    solid, dash = {"color": WARM, "width": 9}, {"color": DARK, "width": 6, "dash": "dash"}
    mark = {"color": "white", "size": 5, "line": {"color": DARK, "width": 2}}
    page = go.Figure(
        [
            *sheets,
            go.Scatter3d(z=data["line"], line=solid, name=LINES[0], **lines),
            go.Scatter3d(z=data["dashed"], line=dash, name=LINES[1], **lines),
            go.Scatter3d(x=zero[:1], y=zero[:1], z=zero[:1], mode="markers", marker=mark, name=LINES[2]),
        ]
    )
    axis = {"backgroundcolor": "#f7f7f7", "gridcolor": "#cccccc", "tickvals": [-1, 0, 1]}
    page.update_layout(
        title={"text": "The slice y² = w x² of the functions of one layer", "font": {"size": 15}},
        scene={
            f"{name}axis": {**axis, "title": {"text": label, "font": {"size": 11}}} for name, label in zip("xyz", AXES)
        }
        | {"camera": {"eye": {"x": 1.1, "y": -1.75, "z": 0.6}, "center": {"x": 0, "y": 0, "z": -0.1}}},
        legend={"orientation": "h", "y": -0.02, "yanchor": "top"},
        margin={"l": 0, "r": 0, "t": 40, "b": 0},
    )
    tall = "max(30rem, min(96vh, 80vw))"
    text = page.to_html(include_plotlyjs=True, full_html=True, div_id="umbrella", default_height=tall)
    narrow = "<meta name='viewport' content='width=device-width,initial-scale=1'>"
    return str(text).replace("<head>", f"<head><title>[G] Figure 1</title>{narrow}", 1), None


def draw_words(data: Data) -> Drawing:
    """[G] Figure 2: one bar for each letter M_i (filled) or M_iᵀ (hatched), of height i, for l = 1 … 4 layers."""
    shades, edges = (LIGHT, "#93b3d2", MIDDLE, DARK), ("#7d98b5", "#93b3d2", MIDDLE, DARK)
    canvas = Canvas(figsize=(11, 8.2))
    panels = canvas.subplots(4, 1, gridspec_kw={"hspace": 0.62, "height_ratios": [1.2, 1.5, 2, 2.6]})
    for axes, (l, letters) in zip(panels, data.items()):
        axes.spines["left"].set_visible(False)
        size = 11 if int(l) < 4 else 10
        for place, (index, transposed) in enumerate(letters, start=1):
            color, hatch = ("white", "////") if transposed else (shades[index - 1], None)
            axes.bar(place, index, 0.84, color=color, edgecolor=edges[index - 1], linewidth=1.1, hatch=hatch)
            if int(l) < 4 or index > 1:
                name = f"$M_{index}^\\top$" if transposed else f"$M_{index}$"
                axes.text(place, index + 0.1, name, ha="center", va="bottom", fontsize=size)
        ticks = range(1, len(letters) + 1) if len(letters) < 20 else [1, *range(3, len(letters) + 1, 3)]
        axes.set(xlim=(0.2, max(len(letters), 13) + 0.8), ylim=(0, int(l) + 0.9), xticks=list(ticks), yticks=[])
        axes.set_title(f"l = {l}: {len(letters)} letter{'s' if len(letters) > 1 else ''}", loc="left", fontsize=11)
    panels[-1].set_xlabel("place j of the letter in the word; the height is one plus the number of factors 3 in j")
    handles = [
        Patch(facecolor=MIDDLE, label="$M_i$"),
        Patch(facecolor="white", edgecolor=MIDDLE, hatch="////", label="$M_i^\\top$"),
    ]
    panels[0].legend(handles=handles, loc="upper right", ncols=2, bbox_to_anchor=(1, 1.5))
    caption = "The word of Equation 12 for one to four layers, built of blocks that are their mirror images."
    details = (
        "φ(X) = L X times the product of the letters Xᵀ M X. The last letter is M₁; the others follow the base-3 digits"
        " of their place. In the last panel the unlabelled bars are M₁ and its transpose."
    )
    return canvas, "[G] Figure 2, recomputed", caption, details


def draw_dimensions(data: Data) -> Drawing:
    """[G] Figure 3: expected and estimated dimensions against δ, for softmax and lightning attention."""
    delta, shifted = data["delta"], np.array(data["delta"]) + 0.24
    circle = {"color": "white", "markeredgecolor": DARK, "markersize": 9}
    triangle = {"color": WARM, "markeredgecolor": DARK, "markersize": 5, "markeredgewidth": 0.6}
    canvas = Canvas(figsize=(10, 4.6))
    panels = canvas.subplots(1, 2, sharey=True, gridspec_kw={"wspace": 0.08})
    for axes, kind in zip(panels, ("softmax", "lightning")):
        values = data[kind]
        proven = [(n, v) for n, v in zip(delta, values["exact"]) if v is not None]
        axes.plot(delta, values["expected"], color=MIDDLE, linewidth=1.6, label="expected (formula)", zorder=1)
        axes.plot(delta, values["float64"], "o", label="estimated, double precision", **circle)
        axes.plot(*zip(*proven), "x", color=DARK, markersize=5, label="proven (rank mod p)")
        axes.plot(shifted, values["float32"], "v", label="estimated, single precision", **triangle)
        axes.set_title(f"{kind} attention", fontsize=11)
        axes.set(xlabel="width δ", xticks=delta)
        axes.grid(**GRID)
    panels[0].set_ylabel("dimension")
    panels[0].legend(loc="upper left", fontsize=10)
    caption = "Dimension of the set of functions for l = 2, t = 3, a = 2, all widths δ."
    details = (
        f"Circles: the numerical rank of the Jacobian at {data['samples']} random inputs; crosses: proven values;"
        " triangles: the same rank in single precision (shifted to the right), which can fall short."
    )
    return canvas, "[G] Figure 3, recomputed", caption, details


def draw_quartic(data: Data) -> Drawing:
    """[I] Figure 1: the plane section of the quartic invariant, with points that come from weights."""
    x, y = np.meshgrid(np.linspace(-3.2, 3.2, 900), np.linspace(-2.6, 1.7, 900))
    value = sum((float(c) * x**i * y**j for (i, j), c in data["terms"]), np.zeros_like(x))
    points = np.array([p for p in data["points"] if abs(p[0]) <= 3.2 and -2.6 <= p[1] <= 1.7])
    canvas = Canvas(figsize=(6.8, 5.6))
    axes = canvas.add_subplot()
    axes.contourf(x, y, np.sign(value), levels=[-2, 0, 2], colors=["#f3f6fa", "white"])
    axes.contour(x, y, value, levels=[0], colors=[MIDDLE], linewidths=2)
    axes.plot([], [], color=MIDDLE, linewidth=2, label="zero set of the quartic")
    mark: Data = {"color": WARM, "markeredgecolor": DARK, "markersize": 4.5, "markeredgewidth": 0.7}
    axes.plot(points[:, 0], points[:, 1], "o", label="functions of layers", **mark)
    axes.set(xlabel="x", ylabel="y", aspect="equal")
    axes.legend(loc="lower left", bbox_to_anchor=(0, 1.0), ncols=2)
    names = ("y₁₁₁", "y₁₂₁", "y₂₂₁", "y₁₁₂", "y₁₂₂", "y₂₂₂")
    plane = ", ".join(f"{name} = {_affine(c)}" for name, c in zip(names, data["plane"]))
    caption = "A plane section of the quartic invariant of d = t = 2, with points that come from weights."
    details = f"The quartic D₂₀ D₀₂ − D₁₁² on the plane {plane}. It is negative in the shaded part."
    return canvas, "[I] Figure 1, recomputed", caption, details


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


DRAWINGS: dict[str, Callable[[Data], Drawing]] = {
    "G-section-1-samples": draw_samples,
    "G-figure-1": draw_umbrella,
    "G-figure-2": draw_words,
    "G-figure-3": draw_dimensions,
    "I-figure-1": draw_quartic,
}
