"""Equations: the families that hold on every layer, a member as a formula with its value, the ideal by degree."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import islice
from typing import Any
from urllib.parse import urlencode

import numpy as np

from attngeom.equations import Family, Points, Variety, families, find_family, random_points
from attngeom.equations.export import FORMATS, export
from attngeom.equations.ideal import Limits, complete, implicitize
from attngeom.errors import FormatError, InputError, SizeError
from attngeom.exact.domains import QQ
from attngeom.explore.controls import Choice, File, Number, State, Text
from attngeom.explore.drawings import young_diagram
from attngeom.explore.formulas import show_polynomial
from attngeom.explore.markup import Html, Node, badge, job_button, join, pairs, section, standing_line, table, tag
from attngeom.explore.shelf import ShelfItem
from attngeom.explore.view import Progress, View
from attngeom.interop.weights import read_weights
from attngeom.layer.coefficients import Coefficients, coefficients
from attngeom.layer.files import read_coefficients

MAX_SIZE = 6
"""The largest d and a of the page; the command has no such bound."""
EXPANDED_D, EXPANDED_DEGREE = 3, 4
"""Members are written out up to this width, or up to this degree: others can have millions of terms."""
MAX_BYTES = 2**20
EXPORTED = 200
"""Members of a family in a downloaded file; the command writes all."""
MAX_IDEAL_D = 3


def variety_of(state: State) -> Variety:
    """One layer with these sizes."""
    return Variety(state["d"], state["a"], 2, state["d_out"])


def chosen(state: State) -> Family:
    """The family that is named, or the first one."""
    known = families(variety_of(state))
    if not known:
        raise InputError("no equations: every cubic map of this kind is a layer; choose a larger d or a smaller a")
    return find_family(variety_of(state), state["family"]) if state["family"] else known[0]


@lru_cache(maxsize=8)
def _read(file: ShelfItem) -> Coefficients:
    if file.size > MAX_BYTES:
        raise SizeError(f"{file.name[:60]}: {file.size:,} bytes; layers of at most {MAX_BYTES:,} are read here")
    try:
        return read_coefficients(file.path)
    except FormatError:
        return coefficients(read_weights(file.path).to(QQ))


def point_of(state: State) -> Points:
    """The point where the member is evaluated: a random layer, a random cubic map, or the file."""
    variety = variety_of(state)
    if state["point"] == "file":
        if state["file"] is None:
            raise InputError("no file is open; drop weights or coefficients, or choose a random layer")
        found = _read(state["file"])
        if (found.d, found.d_out) != (variety.d, variety.d_out) or found.t != 2:
            given = f"d = {found.d}, d_out = {found.d_out}, t = {found.t}"
            raise InputError(
                f"{state['file'].name[:60]}: {given}; d = {variety.d}, d_out = {variety.d_out}, t = 2 here"
            )
        return Points.of(found)
    rng = np.random.default_rng(state["seed"])
    on = random_points(variety, 1, QQ, rng)
    if state["point"] == "layer":
        return on
    assert on.single is not None and on.cross is not None
    single, cross = (QQ.convert(rng.integers(-3, 4, part.shape)) for part in (on.single, on.cross))
    return Points(single, cross, QQ)


def value_at(state: State) -> str:
    """The exact value of the member at the point."""
    member = chosen(state)
    return str(np.ravel(member.evaluate(point_of(state), state["index"], state["index"] + 1))[0])


def _counts(known: Sequence[Family], current: Family) -> Html:
    rows: list[list[Node]] = []
    for each in known:
        choose = urlencode({"family": each.name, "index": 0})
        here = each.name == current.name
        button = tag("button", each.name, type="button", data_set=choose, aria_pressed="true" if here else "false")
        span = "" if each.span is None else f"{each.span:,}"
        rows.append([str(each.number), button, str(each.degree), f"{each.count:,}", span, each.source])
    return table(("no", "family", "degree", "count", "span", "from"), rows, id="families")


def _diagrams(shapes: Sequence[Sequence[int]]) -> Html:
    return join((young_diagram(shape, f"partition {','.join(map(str, shape))}") for shape in shapes), " ⊗ ")


def show_ideal(state: State) -> Html:
    """All minimal generators of the ideal of one output row, by the theorem for every d and a."""
    found = complete(state["d"], state["a"], state["d"])
    rows = [
        [str(degree), str(module), _diagrams(module.shapes), f"{module.dimension:,}", badge(found.standing)]
        for degree, module in found.modules
    ]
    facts: dict[str, Node] = {
        "affine dimension": f"{found.dimension:,}",
        "degree of the variety": "not computed" if found.variety_degree is None else f"{found.variety_degree:,}",
    }
    listed = table(("degree", "module", "Young diagrams", "dimension", "standing"), rows, id="ideal")
    return join((tag("p", found.reason, class_="reason"), listed, pairs(facts)))


class EquationsView(View):
    """Sizes, a family, a member, a point."""

    name = "equations"

    def __init__(self) -> None:
        points = [("layer", "a random layer"), ("cubic", "a random cubic map"), ("file", "the layer of a file")]
        self.controls = (
            Number(name="d", label="d", default="2", low=1, high=MAX_SIZE),
            Number(name="a", label="a", default="1", low=1, high=MAX_SIZE, hint="bound on rank A"),
            Number(name="d_out", label="Output rows", default="1", low=1, high=3),
            Text(name="family", label="Family", longest=60, hint="none: the first; or click on one"),
            Number(name="index", label="Member", default="0", low=0, high=10**18),
            Choice(name="point", label="Evaluate at", default="layer", options=points),
            File(name="file", label="Weights or coefficients", suffixes=(".json",), only="point=file"),
            Number(name="seed", label="Seed", default="0", low=0, high=2**32 - 1, only="point=layer cubic"),
            Number(name="max_degree", label="Compute the ideal up to degree", default="4", low=1, high=5),
        )
        self.jobs = {"ideal": self.ideal}
        self.downloads = {form: self._exporter(form) for form in FORMATS}

    def show(self, state: State) -> Html:
        variety, current = variety_of(state), chosen(state)
        known = families(variety)
        links = [tag("a", form, href=f"/equations/download/{form}?{state['query']}") for form in FORMATS]
        words = f"Take the first {min(EXPORTED, current.count):,} members of {current.name} as "
        compute = job_button("Compute the ideal", "ideal")
        return join(
            (
                section("Families", _counts(known, current)),
                section("A member", *self._member(state, current)),
                tag("p", words, join(links, " · ")),
                section("The ideal, one output row", show_ideal(state), tag("p", compute)),
            )
        )

    def _member(self, state: State, current: Family) -> list[Node]:
        member = current[state["index"]]
        value = value_at(state)
        shown: list[Node] = [tag("p", f"{member.label}: member {state['index']:,} of {current.count:,}")]
        if current.variety.d <= EXPANDED_D or current.degree <= EXPANDED_DEGREE:
            shown.append(tag("p", show_polynomial(member.polynomial()), " = 0", class_="formula"))
        else:
            shown.append(tag("p", "Too long to be written out at this size.", class_="reason"))
        where = {"layer": "at a random layer", "cubic": "at a random cubic map", "file": "at the layer of the file"}
        words = f"value {where[state['point']]}"
        return [*shown, pairs({words: tag("span", value[:200], id="value")})]

    def _exporter(self, form: str) -> Any:
        def download(state: State) -> tuple[str, bytes]:
            current = chosen(state)
            if current.variety.d > EXPANDED_D and current.degree > EXPANDED_DEGREE:
                raise SizeError("members of this size are too long for the page; use attngeom invariants --out")
            lines = islice(export([current], form, min(EXPORTED, current.count)), 10**5)
            suffix = {"latex": "tex", "sympy": "py", "singular": "sing", "text": "txt"}.get(form, form)
            return f"{current.name}.{suffix}", "".join(f"{line}\n" for line in lines).encode()

        return download

    def ideal(self, state: State, progress: Progress) -> Html:
        """The ideal computed degree by degree, beside the theorem."""
        if state["d"] > MAX_IDEAL_D:
            raise SizeError(
                f"d = {state['d']} given; the page computes up to d = {MAX_IDEAL_D}: use attngeom implicitize"
            )
        found = implicitize(
            Variety(state["d"], state["a"]),
            state["max_degree"],
            seed=state["seed"],
            budget=Limits(50.0, None),
            progress=lambda degree, done, total: progress(done, total),
        )
        rows: list[list[Node]] = []
        for each in found.degrees:
            explained = "" if each.from_families is None else f"{each.from_families:,}"
            numbers = (each.degree, each.hilbert_function, each.ideal_dimension, each.minimal_generators)
            drawn = join((_diagrams(module.shapes) for module in each.modules), " ⊕ ")
            rows.append([*(f"{number:,}" for number in numbers), explained, drawn, badge(each.standing)])
        columns = ("degree", "HF", "dim I", "new generators", "from families", "modules", "standing")
        parts: list[Node] = [tag("h2", "The ideal, computed"), table(columns, rows, id="computed")]
        return join((*parts, standing_line(found.standing, found.reason)))

    def command(self, state: State) -> str:
        current = chosen(state)
        rows = f" --d-out {state['d_out']}" if state["d_out"] > 1 else ""
        sizes = f"--d {state['d']} --a {state['a']}{rows}"
        return f"attngeom invariants {sizes} --family {current.name} --index {state['index']}"

    def python(self, state: State) -> str:
        sizes = f"{state['d']}, {state['a']}, 2, {state['d_out']}"
        return (
            "from attngeom.equations import Variety, find_family; "
            f"print(find_family(Variety({sizes}), {chosen(state).name!r})[{state['index']}].polynomial())"
        )


VIEW = EquationsView()
