"""Neuromanifold: the slice of [G] Figure 1 in space, to turn; a point of it with its verdict, weights and λ."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from functools import lru_cache
from typing import Any

from attngeom import digits
from attngeom.certification import Certification, certify
from attngeom.errors import InputError, SizeError
from attngeom.exact.domains import QQ
from attngeom.explore.controls import Control, State, parse_numbers
from attngeom.explore.pages import math
from attngeom.explore.view import Download, Facts, json_file, setting
from attngeom.explore.views.layer import VERDICTS
from attngeom.files import to_json
from attngeom.inspection.geometry import layer_stratum
from attngeom.layer.files import coefficients_to_json
from attngeom.learning import learning_coefficient
from attngeom.limits.sizes import PAGE_COORDINATE
from attngeom.network import Architecture
from attngeom.network.weights import weights_from_matrices
from attngeom.papers.figures import SLICE_TEXT, slice_coefficients

ARCHITECTURE = Architecture((2, 1), 2, tokens=2)
STEPS = 10
"""Squares of the mesh from 0 to the border, in each direction; its corners are rational points of the surface."""
RANGE = range(-STEPS, STEPS + 1)
REACH = Fraction(23, 20)
"""The largest b."""
SPECIAL = {
    "a smooth point": ("1/2", "1/4", "1/4"),
    "the singular line": ("0", "0", "1/4"),
    "the boundary point": ("0", "0", "0"),
    "the closure only": ("0", "0", "-1/4"),
    "off the surface": ("1/2", "1/2", "-1/4"),
}


def point_of(state: State) -> tuple[Fraction, Fraction, Fraction]:
    """The point of the slice, three rational numbers."""
    coordinates = {name: parse_numbers(state[name], name) for name in "xyw"}
    for name, rows in coordinates.items():
        if [len(row) for row in rows] != [1]:
            raise InputError(f"{name}: {state[name][:40]!r} given; one number such as 1/2 is required")
        if abs(rows[0][0]) > PAGE_COORDINATE:
            raise SizeError(f"{name}: {state[name][:40]} given; at most {PAGE_COORDINATE} is shown here")
    return coordinates["x"][0][0], coordinates["y"][0][0], coordinates["w"][0][0]


def decide(state: State) -> Certification:
    """What the library says of the function at the point."""
    return certify(slice_coefficients(*(QQ.convert([value])[0] for value in point_of(state))), 2)


@lru_cache(maxsize=1)
def _mesh() -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The two sheets, and the rational points that a click can choose."""
    sheets: list[dict[str, Any]] = []
    picks: list[tuple[Fraction, ...]] = []
    for sign, fill in ((1, "part1"), (-1, "part4")):
        places = [(Fraction(j, STEPS), sign * REACH * i / STEPS) for i in range(STEPS + 1) for j in RANGE]
        exact = [(x, b * x, b * b) for x, b in places]
        floats = [list(map(float, point)) for point in exact]
        sheets.append({"fill": fill, "rows": [floats[k : k + len(RANGE)] for k in range(0, len(floats), len(RANGE))]})
        picks += exact
    picks += [(Fraction(0), Fraction(0), Fraction(-k, STEPS)) for k in range(1, STEPS + 1)]
    return sheets, [{"point": list(map(float, p)), "set": dict(zip("xyw", map(str, p)))} for p in picks]


def scene(state: State) -> dict[str, Any]:
    """All that is drawn, in coordinates of the slice; colours are those of the style sheet."""
    sheets, picks = _mesh()
    here = [float(value) for value in point_of(state)]
    line = [[0, 0, 0], [0, 0, float(REACH**2)]]
    parts = [
        {"points": line, "style": "ink", "width": 6},
        {"points": line, "style": "warm", "width": 3.5},
        {"points": [[0, 0, -1], [0, 0, 0]], "style": "ink", "width": 2.5, "dash": [7, 5]},
    ]
    axes = [
        {"name": "x", "line": [[-1.3, 0, 0], [1.3, 0, 0]]},
        {"name": "y", "line": [[0, -1.3, 0], [0, 1.3, 0]]},
        {"name": "w", "line": [[0, 0, -1.1], [0, 0, 1.6]]},
    ]
    dots = [
        {"point": [0, 0, 0], "fill": "paper", "edge": "ink", "size": 5},
        {"point": here, "fill": "ink", "edge": "warm", "size": 7},
    ]
    shared = {"middle": 0.28, "edge": "minus", "axes": axes}
    return {**shared, "sheets": sheets, "lines": parts, "dots": dots, "picks": picks}


def _weights(result: Certification) -> Iterator[tuple[object, ...]]:
    """The weights of the point with their stratum and learning coefficient."""
    for point in result.points:
        V, A = (math(digits.matrix(map(point.domain.format, line) for line in m)) for m in (point.V, point.A))
        if point.domain.written == "Q" and result.verdict == "realizable":
            stratum = layer_stratum(point.A, point.V, 2, 2, QQ)
            coefficient = learning_coefficient(weights_from_matrices(ARCHITECTURE, [point.A], [point.V], QQ))
            value = (
                "not proven" if coefficient.value is None else f"{coefficient.value} (m = {coefficient.multiplicity})"
            )
            learned = f"{value}, {coefficient.standing} {coefficient.theorem}"
            yield V, A, "ℚ", f"{stratum.name}, rank A = {stratum.rank_A.value}", learned
        else:
            yield V, A, point.domain.written, "irrational weights", "asked for rational weights only"


def show(state: State) -> Facts:
    """The surface, and the verdict on the chosen point."""
    result, (x, y, w) = decide(state), point_of(state)
    return {
        "scene": to_json(scene(state)),
        "result": result,
        "verdict": (VERDICTS[result.verdict], result.verdict),
        "words": f"The point ({x}, {y}, {w}) lies {'on' if y * y == w * x * x else 'off'} the surface y² = w x².",
        "weights": list(_weights(result)),
        "slice_text": SLICE_TEXT,
    }


def coefficients(state: State) -> Download:
    """The cubic map of the point as a file."""
    return json_file("coefficients.json", coefficients_to_json(decide(state).coefficients))


def command(state: State) -> str:
    return "attngeom certify coefficients.json --attention 2"


def python(state: State) -> str:
    point = ", ".join(map(_exact, point_of(state)))
    names = (
        "from fractions import Fraction as F; import attngeom; from attngeom.papers.figures import slice_coefficients"
    )
    return f"{names}; print(attngeom.certify(slice_coefficients({point}), 2).verdict)"


def _exact(value: Fraction) -> str:
    return str(value) if value.denominator == 1 else f"F({value.numerator}, {value.denominator})"


HINTS = {"x": "coefficient of s u", "y": "coefficient of u²", "w": "minus that of u² in the first"}
START = dict(zip("xyw", SPECIAL["a smooth point"]))
CONTROLS = tuple(Control(name, name, "text", START[name], HINTS[name], longest=40) for name in "xyw")
ACTIONS = {name: setting(**dict(zip("xyw", point))) for name, point in SPECIAL.items()}
DOWNLOADS = {"coefficients": coefficients}
