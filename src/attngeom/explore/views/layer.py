"""Is this an attention layer? A table of coefficients to edit, or a file; verdict, violated equation, distance."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
from markupsafe import Markup

from attngeom import digits
from attngeom.certification import Certification, certify
from attngeom.errors import InputError, SizeError
from attngeom.exact.domains import QQ, RR
from attngeom.exact.multisets import pairs
from attngeom.explore.controls import Control, State, parse_integers, parse_numbers, write_options
from attngeom.explore.formulas import Broken, expand, show_label
from attngeom.explore.pages import subscript
from attngeom.explore.shelf import ShelfItem, named, quoted
from attngeom.explore.view import Download, Facts, json_file, setting
from attngeom.layer.coefficients import Coefficients, expand_matrices
from attngeom.layer.files import coefficients_to_json, read_coefficients
from attngeom.limits.shown import MATRIX_WIDTH
from attngeom.limits.sizes import PAGE_BYTES, PAGE_LAYER
from attngeom.limits.work import PAGE_LAYER_COEFFICIENTS
from attngeom.verification import verify

VERDICTS = {
    "realizable": "Yes: a layer computes this",
    "closure_only": "Only with complex weights: in the Zariski closure, not a layer",
    "not_realizable": "No: no layer computes this",
    "undecided": "Cannot be told",
}
EXAMPLES = {
    "a layer": "1 2\n5 8\n6 6",
    "two weights": "1 0\n0 0\n-4 0",
    "the closure only": "1 0\n0 0\n1 0",
    "no layer": "1 0\n0 1\n1 1",
}
"""Tables for d = 2: rows x₀², x₀x₁, x₁² of the context token, columns the target's rows."""


def coefficients_of_table(rows: list[list[Fraction]], d: int, d_out: int) -> Coefficients:
    """The cubic map of two tokens with these cross coefficients: (d_out · D) rows, d columns.

    Copies and one-token coefficients follow from them by the linear relations, so that only the others can fail.
    """
    size = d * (d + 1) // 2
    if len(rows) != d_out * size or any(len(row) != d for row in rows):
        raise InputError(f"{len(rows)} rows given; {d_out * size} rows of {d} numbers are required")
    return Coefficients.of_cross(QQ.convert(rows).reshape(d_out, size, d), 2, QQ)


@lru_cache(maxsize=16)
def _read(file: ShelfItem) -> Coefficients:
    return read_coefficients(file.path)


def given(state: State) -> Coefficients:
    """The coefficients that the controls describe."""
    if state["source"] == "file":
        if state["file"] is None:
            raise InputError("no file is open; drop a file of coefficients (.json), or edit the table")
        return _read(state["file"])
    return coefficients_of_table(parse_numbers(state["table"], "table"), state["d"], state["d_out"])


def _attention(state: State) -> int | None:
    return parse_integers(state["attention"], "bound on rank A", 1)[0] if state["attention"] else None


def decide(state: State) -> Certification:
    """The verdict of the library."""
    return certify(given(state), _attention(state), state["seed"])


def distance(coefficients: Coefficients, attention: int | None, seed: int) -> str:
    """How far the nearest layer is, relative to the norm: from floats, so an estimate with its own words."""
    single, cross = RR.convert(coefficients.single), RR.convert(coefficients.cross)
    return certify(replace(coefficients, single=single, cross=cross, domain=RR), attention, seed).reason


def _values(coefficients: Coefficients, broken: Broken | None) -> list[list[list[str]]]:
    """For each output row, the cross coefficients of target column 0 and context column 1 by their monomial.

    Those that the violated equation reads are marked.
    """
    d = coefficients.d
    if coefficients.t < 2 or d > MATRIX_WIDTH:
        return []
    marked = {entry.key for entry in broken.entries} if broken else set()

    def cell(i: int, s: int, k: int, l: int, m: int) -> str:
        value = str(coefficients.domain.format(coefficients.cross[i, 0, 0, s, m]))[:40]
        return Markup("<span class=broken>{}</span>").format(value) if ("cross", i, 0, 1, k, l, m) in marked else value

    def line(i: int, s: int, k: int, l: int) -> list[str]:
        monomial = f"x{subscript(k)}²" if k == l else f"x{subscript(k)}x{subscript(l)}"
        return [monomial, *(cell(i, s, k, l, m) for m in range(d))]

    rows = range(min(coefficients.d_out, MATRIX_WIDTH))
    return [[line(i, s, k, l) for s, (k, l) in enumerate(pairs(d))] for i in rows]


def _weights(result: Certification) -> list[dict[str, Any]]:
    """The points of the fiber: matrices to draw, or their texts where the numbers are not rational."""
    shown = []
    for point in result.points:
        is_drawn = point.domain.written in ("Q", "RR")
        large = max(*point.A.shape, *point.V.shape) > MATRIX_WIDTH
        maps = [("A", point.A), ("V", point.V)]
        texts = {name: digits.matrix([_number(point.domain.format(x)) for x in row] for row in m) for name, m in maps}
        over = {"Q": "ℚ", "RR": "ℝ, in floats"}.get(point.domain.written, point.domain.written)
        shown.append({"over": over, "maps": maps if is_drawn and not large else [], "texts": {} if is_drawn else texts})
    return shown


def _number(value: Any) -> str:
    """A number of a field that powers of θ span, as a sum."""
    powers = ("", " θ", " θ²", " θ³")
    return " + ".join(f"{c}{power}" for c, power in zip(value, powers)) if isinstance(value, list) else str(value)


def decided(state: State) -> Facts:
    """Verdict, weights or violated equation, distance, certificate."""
    result = decide(state)
    given, is_small = result.coefficients, result.coefficients.size <= PAGE_LAYER_COEFFICIENTS
    broken = None if result.violated is None else expand(result.violated, given)
    is_far = result.is_exact and result.verdict != "realizable" and is_small
    return {
        "result": result,
        "verdict": (VERDICTS[result.verdict], result.verdict),
        "broken": broken,
        "label": "" if result.violated is None else show_label(result.violated.label[:200]),
        "read": [(entry.name, str(entry.value)[:60]) for entry in broken.entries[:40]] if broken else [],
        "values": _values(given, broken),
        "targets": ["context", *(f"target x{subscript(m)}" for m in range(given.d))],
        "weights": _weights(result),
        "distance": distance(given, result.attention, result.seed) if is_far else None,
        "downloads": ["coefficients"] + ["certificate"] * (is_small and result.certificate is not None),
    }


def show(state: State) -> Facts:
    """The decision at once where it is small; else the button that starts it."""
    file = state["file"] if state["source"] == "file" else None
    if (file is None or file.size <= PAGE_BYTES) and given(state).size <= PAGE_LAYER_COEFFICIENTS:
        return decided(state)
    return {"result": None}


def draw(state: State) -> dict[str, str]:
    """The table of a random layer of these sizes, from the next seed."""
    rng = np.random.default_rng(state["seed"] + 1)
    d, d_out = state["d"], state["d_out"]
    A, V = (QQ.convert(rng.integers(-3, 4, shape)) for shape in ((d, d), (d_out, d)))
    table = "\n".join(" ".join(map(str, row)) for row in expand_matrices(A, V, QQ)[1].reshape(-1, d))
    return {"source": "table", "seed": str(state["seed"] + 1), "table": table}


def certificate(state: State) -> Download:
    """The certificate, rechecked before it is handed out."""
    if given(state).size > PAGE_LAYER_COEFFICIENTS:
        raise SizeError("too many coefficients for a certificate at once; use attngeom certify --out")
    record = decide(state).certificate
    if record is None:
        raise InputError("no certificate for this verdict: exact coefficients and a verdict are required")
    if not (verdict := verify(record.to_json())).valid:
        raise ArithmeticError(f"the certificate that was made does not prove its claim: {verdict.reason}")
    return json_file("certificate.json", record.to_json())


def command(state: State) -> str:
    file = quoted(state["file"] if state["source"] == "file" else None, "coefficients.json")
    return f"attngeom certify {file}{write_options(CONTROLS, state)} --out certificate.json"


def python(state: State) -> str:
    bound = f", attention={_attention(state)}" if state["attention"] else ""
    file = named(state["file"] if state["source"] == "file" else None, "coefficients.json")
    return f"import attngeom; print(attngeom.certify(attngeom.read_coefficients({file!r}){bound}).verdict)"


SOURCES = {"table": "edit a table", "file": "coefficients of a file"}
TABLE, IN_FILE = "source=table", {"source": "file"}
SHOWN = {"source": "table", "d": "2", "d_out": "1", "attention": ""}
HINT = "rows: x₀², x₀x₁, x₁², … of the context token; columns: rows of the target token"
CONTROLS = (
    Control("source", "Coefficients", "choice", "table", options=SOURCES),
    Control("file", "File of coefficients", "file", "", "", "source=file", kinds=("coefficients",), sets=IN_FILE),
    Control("d", "d", "number", "2", only=TABLE, low=1, high=PAGE_LAYER),
    Control("d_out", "Output rows", "number", "1", only=TABLE, low=1, high=3),
    Control("table", "Table", "area", EXAMPLES["no layer"], HINT, TABLE, 20000),
    Control("attention", "Bound on rank A", hint="none: any rank", longest=6, option="--attention"),
    Control("seed", "Seed", "number", "0", option="--seed"),
)
ACTIONS = {**{name: setting(**SHOWN, table=text) for name, text in EXAMPLES.items()}, "random layer": draw}
JOBS = {"decide": lambda state, progress: decided(state)}
DOWNLOADS = {
    "certificate": certificate,
    "coefficients": lambda state: json_file("coefficients.json", coefficients_to_json(given(state))),
}
