"""Neuromanifold: the slice of [G] Figure 1 in space, to turn; a point of it with its verdict, weights and λ."""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from typing import Any

from attngeom.certification import Certification, certify
from attngeom.errors import InputError, SizeError
from attngeom.exact.domains import QQ
from attngeom.explore.controls import State, Text
from attngeom.explore.lists import parse_numbers
from attngeom.explore.markup import Html, Node, badge, join, section, table, tag
from attngeom.explore.view import View, json_file, setting
from attngeom.explore.views.layer import verdict_lines
from attngeom.files import to_json
from attngeom.inspection.geometry import layer_stratum
from attngeom.layer.files import coefficients_to_json
from attngeom.learning import learning_coefficient
from attngeom.network import Architecture
from attngeom.network.weights import weights_from_matrices
from attngeom.palette import DARK, LIGHT, MIDDLE, WARM
from attngeom.papers.figures import SLICE_TEXT, slice_coefficients
from attngeom.results import matrix_text

ARCHITECTURE = Architecture((2, 1), 2, tokens=2)
CREAM = "#f2efe6"
STEPS = 10
"""Squares of the mesh from 0 to the border, in each direction; its corners are rational points of the surface."""
REACH = Fraction(23, 20)
"""The largest b."""
LARGEST = 1000
SPECIAL = {
    "a smooth point": ("1/2", "1/4", "1/4"),
    "the singular line": ("0", "0", "1/4"),
    "the boundary point": ("0", "0", "0"),
    "the closure only": ("0", "0", "-1/4"),
    "off the surface": ("1/2", "1/2", "-1/4"),
}
EXPLAINED = (
    (LIGHT, "sheet b > 0", "points (x, b x, b²) of the weights V = (1, b), A = ((1, 0), (−b, x))"),
    (CREAM, "sheet b < 0", "the same with negative b; both sheets meet along the line x = 0"),
    (WARM, "singular line", "x = y = 0, w > 0: two weights for each function, b and −b; the surface crosses itself"),
    ("#ffffff", "boundary point", "x = y = w = 0: the end of the line, a limit of functions that no layer computes"),
    (DARK, "dashed line", "x = y = 0, w < 0: in the Zariski closure, but only complex weights"),
)


def point_of(state: State) -> tuple[Fraction, Fraction, Fraction]:
    """The point of the slice, three rational numbers."""
    found = []
    for name in "xyw":
        rows = parse_numbers(state[name], name)
        if len(rows) != 1 or len(rows[0]) != 1:
            raise InputError(f"{name}: {state[name][:40]!r} given; one number such as 1/2 is required")
        if abs(rows[0][0]) > LARGEST:
            raise SizeError(f"{name}: {state[name][:40]} given; at most {LARGEST} is shown here")
        found.append(rows[0][0])
    return found[0], found[1], found[2]


def decide(state: State) -> Certification:
    """What the library says of the function at the point."""
    return certify(slice_coefficients(*(QQ.convert([value])[0] for value in point_of(state))), 2)


@lru_cache(maxsize=1)
def _mesh() -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The two sheets, and the rational points that a click can choose."""
    sheets, picks = [], []
    for sign, fill in ((1, LIGHT), (-1, CREAM)):
        rows = []
        for i in range(STEPS + 1):
            b = sign * REACH * i / STEPS
            row = []
            for j in range(-STEPS, STEPS + 1):
                x = Fraction(j, STEPS)
                exact = (x, b * x, b * b)
                row.append([float(value) for value in exact])
                picks.append({"point": row[-1], "set": {name: str(value) for name, value in zip("xyw", exact)}})
            rows.append(row)
        sheets.append({"fill": fill, "rows": rows})
    for k in range(1, STEPS + 1):
        depth = Fraction(-k, STEPS)
        picks.append({"point": [0, 0, float(depth)], "set": {"x": "0", "y": "0", "w": str(depth)}})
    return sheets, picks


def scene(state: State) -> dict[str, Any]:
    """All that is drawn, in coordinates of the slice."""
    sheets, picks = _mesh()
    here = [float(value) for value in point_of(state)]
    line = [[0, 0, 0], [0, 0, float(REACH**2)]]
    parts = [
        {"points": line, "style": DARK, "width": 6},
        {"points": line, "style": WARM, "width": 3.5},
        {"points": [[0, 0, -1], [0, 0, 0]], "style": DARK, "width": 2.5, "dash": [7, 5]},
    ]
    axes = [
        {"name": "x", "line": [[-1.3, 0, 0], [1.3, 0, 0]]},
        {"name": "y", "line": [[0, -1.3, 0], [0, 1.3, 0]]},
        {"name": "w", "line": [[0, 0, -1.1], [0, 0, 1.6]]},
    ]
    dots = [
        {"point": [0, 0, 0], "fill": "#ffffff", "edge": DARK, "size": 5},
        {"point": here, "fill": DARK, "edge": WARM, "size": 7},
    ]
    shared = {"middle": 0.28, "edge": MIDDLE, "axes": axes}
    return {**shared, "sheets": sheets, "lines": parts, "dots": dots, "picks": picks}


def _weights(result: Certification) -> Node:
    """The weights of the point with their stratum and learning coefficient."""
    rows: list[list[Node]] = []
    for point in result.points:
        shown = [matrix_text(map(point.domain.format, row) for row in m) for m in (point.V, point.A)]
        if point.domain.written == "Q" and result.verdict == "realizable":
            stratum = layer_stratum(point.A, point.V, 2, 2, QQ)
            weights = weights_from_matrices(ARCHITECTURE, [point.A], [point.V], QQ)
            found = learning_coefficient(weights)
            value = "not proven" if found.value is None else f"{found.value} (m = {found.multiplicity})"
            learned: Node = join((tag("span", value, class_="lambda"), " ", badge(found.standing), f" {found.theorem}"))
            place = f"{stratum.name}, rank A = {stratum.rank_A.value}"
        else:
            place, learned = "irrational weights", "asked for rational weights only"
        rows.append([shown[0], shown[1], point.domain.written, place, learned])
    return table(("V", "A, row by row", "over", "stratum", "local λ"), rows)


class ManifoldView(View):
    """A point (x, y, w) of the slice."""

    name = "manifold"

    def __init__(self) -> None:
        start = SPECIAL["a smooth point"]
        self.controls = tuple(
            Text(name=name, label=name, default=value, longest=40, hint=hint)
            for name, value, hint in zip(
                "xyw", start, ("coefficient of s u", "coefficient of u²", "minus that of u² in the first"), strict=True
            )
        )
        self.actions = {name: setting(**dict(zip("xyw", point))) for name, point in SPECIAL.items()}
        self.downloads = {"coefficients": self.coefficients}

    def show(self, state: State) -> Html:
        result = decide(state)
        x, y, w = point_of(state)
        words = "Drag to turn, click a point to choose it; arrow keys turn, + and − change the size."
        drawing = tag(
            "canvas",
            data_scene=to_json(scene(state)),
            class_="space",
            id="space",
            tabindex=0,
            role="img",
            aria_label="The surface y² = w x² in space; use the fields x, y, w to choose a point by keyboard.",
        )
        legend = tag("ul", *(self._explain(*part) for part in EXPLAINED), class_="sheets")
        on = "on" if y * y == w * x * x else "off"
        verdict: list[Node] = [
            *verdict_lines(result),
            tag("p", f"The point ({x}, {y}, {w}) lies {on} the surface y² = w x²."),
        ]
        if result.points:
            verdict.append(_weights(result))
        link = tag("a", "Take the coefficients", href=f"/manifold/download/coefficients?{state['query']}")
        return join(
            (
                tag("div", tag("figure", drawing, tag("figcaption", words)), legend, class_="spread"),
                section("The chosen point", *verdict),
                tag("p", SLICE_TEXT, class_="reason"),
                tag("p", link),
            )
        )

    @staticmethod
    def _explain(colour: str, title: str, words: str) -> Html:
        dash = "6 4" if title.startswith("dashed") else None
        mark = tag("line", x1=1, y1=8, x2=27, y2=8, stroke=colour, stroke_width=4, stroke_dasharray=dash)
        if title.startswith("sheet"):
            mark = tag("rect", x=1, y=1, width=26, height=14, fill=colour, stroke=MIDDLE)
        if title.startswith("boundary"):
            mark = tag("circle", cx=14, cy=8, r=6, fill=colour, stroke=DARK, stroke_width=2)
        return tag(
            "li", tag("svg", mark, viewBox="0 0 28 16", aria_hidden="true"), tag("span", tag("b", title), ": ", words)
        )

    def coefficients(self, state: State) -> tuple[str, bytes]:
        """The cubic map of the point as a file."""
        return json_file("coefficients.json", coefficients_to_json(decide(state).coefficients))

    def command(self, state: State) -> str:
        return "attngeom certify coefficients.json --attention 2"

    def python(self, state: State) -> str:
        x, y, w = point_of(state)
        return (
            "from fractions import Fraction as F; import attngeom; from attngeom.papers.figures import"
            f" slice_coefficients; print(attngeom.certify(slice_coefficients({_exact(x)}, {_exact(y)}, {_exact(w)}), 2)"
            ".verdict)"
        )


def _exact(value: Fraction) -> str:
    return str(value) if value.denominator == 1 else f"F({value.numerator}, {value.denominator})"


VIEW = ManifoldView()
