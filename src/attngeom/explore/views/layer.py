"""Is this an attention layer? A table of coefficients to edit, or a file; verdict, violated equation, distance."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from functools import lru_cache

import numpy as np

from attngeom.certification import Certification, certify
from attngeom.errors import InputError, SizeError
from attngeom.exact.domains import QQ, RR, Array
from attngeom.exact.multisets import pairs
from attngeom.explore.controls import Area, Choice, File, Number, State, Text
from attngeom.explore.drawings import heat_map
from attngeom.explore.formulas import Broken, expand
from attngeom.explore.lists import parse_integers, parse_numbers
from attngeom.explore.markup import (
    Html,
    Node,
    badge,
    job_button,
    join,
    section,
    standing_line,
    subscript,
    table,
    tag,
    verdict_line,
)
from attngeom.explore.markup import pairs as labelled
from attngeom.explore.shelf import ShelfItem
from attngeom.explore.view import Progress, View, json_file, setting
from attngeom.layer.coefficients import Coefficients, expand_matrices
from attngeom.layer.files import coefficients_to_json, read_coefficients
from attngeom.verification import verify

MAX_D = 4
INSTANT_ENTRIES = 3000
"""Coefficients up to this number are decided while the page waits; more in a process of their own."""
INSTANT_BYTES = 2**20
MAX_SHOWN = 6
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
    cross = QQ.convert(rows).reshape(d_out, size, d)
    return Coefficients.of_cross(cross, 2, QQ)


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


def _values(coefficients: Coefficients, broken: Broken | None) -> Node:
    """The cross coefficients of target column 0 and context column 1, those of the violated equation marked."""
    d = coefficients.d
    if coefficients.t < 2 or d > MAX_SHOWN:
        return None
    marked = {entry.key for entry in broken.entries} if broken else set()
    shown: list[Node] = []
    for i in range(min(coefficients.d_out, MAX_SHOWN)):
        rows: list[list[Node]] = []
        for s, (k, l) in enumerate(pairs(d)):
            cells: list[Node] = [tag("b", f"x{subscript(k)}x{subscript(l)}" if k != l else f"x{subscript(k)}²")]
            for m in range(d):
                key = ("cross", i, 0, 1, k, l, m)
                value = coefficients.domain.format(coefficients.cross[i, 0, 0, s, m])
                cells.append(tag("span", str(value)[:40], class_="broken" if key in marked else None))
            rows.append(cells)
        caption = f"output row {i}" if coefficients.d_out > 1 else ""
        columns = ("context", *(f"target x{subscript(m)}" for m in range(d)))
        shown.append(join((tag("h3", caption) if caption else None, table(columns, rows))))
    return section("The coefficients", *shown)


def verdict_lines(result: Certification) -> list[Html]:
    """The verdict in words, its standing and its reason."""
    return [
        verdict_line(VERDICTS[result.verdict], result.verdict),
        standing_line(result.standing, result.reason[:400]),
    ]


def show_result(result: Certification, state: State) -> Html:
    """Verdict, weights or violated equation, distance, certificate."""
    coefficients = result.coefficients
    parts: list[Node] = [section("Verdict", *verdict_lines(result))]
    broken = None
    if result.violated is not None:
        broken = expand(result.violated, coefficients)
        entries = ([entry.name, str(entry.value)[:60]] for entry in broken.entries[:40])
        words = f"{result.violated.family}, {result.violated.label[:200]}, degree {result.violated.degree}"
        value = labelled({"its value here": tag("span", result.violated.value[:200], id="value")})
        reading = table(("entry it reads", "value"), entries)
        note = tag("p", "y is the coefficient divided by the number of orders of its monomial.", class_="reason")
        parts.append(section("The violated equation", tag("p", words), broken.show(), value, reading, note))
    if result.points:
        parts.append(section("Weights", *_weights(result)))
    parts.append(_values(coefficients, broken))
    if result.is_exact and result.verdict != "realizable" and coefficients.size <= INSTANT_ENTRIES:
        parts.append(
            section(
                "Distance to the nearest layer",
                tag("p", badge("estimate"), " ", distance(coefficients, result.attention, result.seed), id="distance"),
            )
        )
    links = [tag("a", "Take the coefficients", href=f"/layer/download/coefficients?{state['query']}")]
    if coefficients.size <= INSTANT_ENTRIES and result.certificate is not None:
        links.append(tag("a", "Take the certificate", href=f"/layer/download/certificate?{state['query']}"))
    parts.append(tag("p", join(links, " · ")))
    return join(parts)


def _weights(result: Certification) -> list[Node]:
    shown: list[Node] = []
    for number, point in enumerate(result.points):
        title = f"over {point.domain.written}" + (
            f", point {number + 1} of {len(result.points)}" if result.points[1:] else ""
        )
        shown.append(tag("h3", title))
        matrices: list[tuple[str, Array]] = [("A", point.A), ("V", point.V)]
        if max(*point.A.shape, *point.V.shape) > MAX_SHOWN:
            shown.append(tag("p", "too large to be drawn; take the certificate", class_="reason"))
        elif point.domain.written in ("Q", "RR"):
            shown.append(tag("div", *(heat_map(*each) for each in matrices), class_="panels"))
        else:
            for name, m in matrices:
                rows = [[point.domain.format(x) for x in row] for row in m]
                shown.append(join((tag("p", f"{name} ="), table([""] * len(rows[0]), rows))))
    return shown


class LayerView(View):
    """Coefficients, a bound on rank A, and the decision."""

    name = "layer"

    def __init__(self) -> None:
        sources = [("table", "edit a table"), ("file", "coefficients of a file")]
        only = "source=table"
        self.controls = (
            Choice(name="source", label="Coefficients", default="table", options=sources),
            File(name="file", label="File of coefficients", suffixes=(".json",), only="source=file"),
            Number(name="d", label="d", default="2", low=1, high=MAX_D, only=only),
            Number(name="d_out", label="Output rows", default="1", low=1, high=3, only=only),
            Area(
                name="table",
                label="Table",
                default=EXAMPLES["no layer"],
                only=only,
                hint="rows: x₀², x₀x₁, x₁², … of the context token; columns: rows of the target token",
            ),
            Text(name="attention", label="Bound on rank A", longest=6, hint="none: any rank"),
            Number(name="seed", label="Seed", default="0", low=0, high=2**32 - 1),
        )
        shown = {"source": "table", "d": "2", "d_out": "1", "attention": ""}
        examples = {name: setting(**shown, table=text) for name, text in EXAMPLES.items()}
        self.actions = {**examples, "random layer": self.draw}
        self.jobs = {"decide": self.decide}
        self.downloads = {"certificate": self.certificate, "coefficients": self.coefficients}

    def draw(self, state: State) -> dict[str, str]:
        """The table of a random layer of these sizes, from the next seed."""
        rng = np.random.default_rng(state["seed"] + 1)
        d, d_out = state["d"], state["d_out"]
        A, V = (QQ.convert(rng.integers(-3, 4, shape)) for shape in ((d, d), (d_out, d)))
        cross = expand_matrices(A, V, QQ)[1]
        rows = cross.reshape(-1, d)
        return {
            "source": "table",
            "seed": str(state["seed"] + 1),
            "table": "\n".join(" ".join(str(x) for x in row) for row in rows),
        }

    def show(self, state: State) -> Html:
        file = state["file"] if state["source"] == "file" else None
        if file is None or file.size <= INSTANT_BYTES:
            coefficients = given(state)
            if coefficients.size <= INSTANT_ENTRIES:
                return show_result(decide(state), state)
        words = "These are more coefficients than are decided while the page waits. "
        return tag("p", words, job_button("Decide", "decide"))

    def decide(self, state: State, progress: Progress) -> Html:
        """The verdict for a larger map."""
        return show_result(decide(state), state)

    def certificate(self, state: State) -> tuple[str, bytes]:
        """The certificate, rechecked before it is handed out."""
        if given(state).size > INSTANT_ENTRIES:
            raise SizeError("too many coefficients for a certificate at once; use attngeom certify --out")
        certificate = decide(state).certificate
        if certificate is None:
            raise InputError("no certificate for this verdict: exact coefficients and a verdict are required")
        record = certificate.to_json()
        verdict = verify(record)
        if not verdict.valid:
            raise ArithmeticError(f"the certificate that was made does not prove its claim: {verdict.reason}")
        return json_file("certificate.json", record)

    def coefficients(self, state: State) -> tuple[str, bytes]:
        """The coefficients as a file."""
        return json_file("coefficients.json", coefficients_to_json(given(state)))

    def command(self, state: State) -> str:
        bound = f" --attention {state['attention']}" if state["attention"] else ""
        seed = f" --seed {state['seed']}" if state["seed"] else ""
        return f"attngeom certify coefficients.json{bound}{seed} --out certificate.json"

    def python(self, state: State) -> str:
        bound = f", attention={_attention(state)}" if state["attention"] else ""
        return (
            f'import attngeom; print(attngeom.certify(attngeom.read_coefficients("coefficients.json"){bound}).verdict)'
        )


VIEW = LayerView()
