"""Equations: the families that hold on every layer, a member as a formula with its value, the ideal by degree."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from itertools import islice
from typing import Any

import numpy as np

from attngeom.equations import Family, Points, Variety, families, find_family, random_points
from attngeom.equations.export import FORMATS, export
from attngeom.equations.ideal import Limits, complete, implicitize
from attngeom.errors import FormatError, InputError, SizeError
from attngeom.exact.domains import QQ
from attngeom.explore.controls import Control, State
from attngeom.explore.formulas import show_label, show_polynomial
from attngeom.explore.shelf import ShelfItem
from attngeom.explore.view import Download, Facts, Progress
from attngeom.interop.weights import read_weights
from attngeom.layer.coefficients import Coefficients, coefficients
from attngeom.layer.files import read_coefficients
from attngeom.limits.shown import EXPANDED_DEGREE, EXPORTED_MEMBERS, MEMBER_WIDTH
from attngeom.limits.sizes import PAGE_BYTES, PAGE_VARIETY
from attngeom.limits.work import PAGE_IDEAL_WIDTH

FIRST = "sylvester-resultant"
"""The family that is shown where none is named: the quartics of [I] Theorem 40."""


def variety_of(state: State) -> Variety:
    """One layer with these sizes, or with those of the file."""
    if state["point"] != "file":
        return Variety(state["d"], state["a"], 2, state["d_out"])
    if state["file"] is None:
        raise InputError("no file is open; drop weights or coefficients, or choose a random layer")
    return _sizes(state["file"], state["a"])


def _sizes(file: ShelfItem, a: int) -> Variety:
    read = _read(file)
    if read.t != 2 or read.d > PAGE_VARIETY:
        size = f"d = {read.d}, t = {read.t}"
        raise InputError(f"{file.name[:60]}: {size}; two tokens of at most {PAGE_VARIETY} rows are shown here")
    return Variety(read.d, min(a, read.d), 2, read.d_out)


def chosen(state: State) -> Family:
    """The family that is named; else one that is worth a look."""
    known = families(variety_of(state))
    if not known:
        raise InputError("no equations: every cubic map of this kind is a layer; choose a larger d or a smaller a")
    if state["family"]:
        return find_family(variety_of(state), state["family"])
    return next((each for each in known if each.name == FIRST), known[-1])


@lru_cache(maxsize=8)
def _read(file: ShelfItem) -> Coefficients:
    if file.size > PAGE_BYTES:
        raise SizeError(f"{file.name[:60]}: {file.size:,} bytes; layers of at most {PAGE_BYTES:,} are read here")
    try:
        return read_coefficients(file.path)
    except FormatError:
        return coefficients(read_weights(file.path).to(QQ))


def point_of(state: State) -> Points:
    """The point where the member is evaluated: a random layer, a random cubic map, or the file."""
    if state["point"] == "file":
        return Points.of(_read(state["file"]))
    rng = np.random.default_rng(state["seed"])
    on = random_points(variety_of(state), 1, QQ, rng)
    if state["point"] == "layer" or on.single is None or on.cross is None:
        return on
    single, cross = (QQ.convert(rng.integers(-3, 4, part.shape)) for part in (on.single, on.cross))
    return Points(single, cross, QQ)


def value_at(state: State) -> str:
    """The exact value of the member at the point."""
    member = chosen(state)
    return str(np.ravel(member.evaluate(point_of(state), state["index"], state["index"] + 1))[0])


def show(state: State) -> Facts:
    """The families, a member of one with its value, and all minimal generators by the theorem for every d and a."""
    variety, current, index = variety_of(state), chosen(state), state["index"]
    member = current[index]
    is_short = current.variety.d <= MEMBER_WIDTH or current.degree <= EXPANDED_DEGREE
    return {
        "families": families(variety),
        "current": current,
        "label": show_label(current.label(index)),
        "index": index,
        "formula": show_polynomial(member.polynomial()) if is_short else None,
        "where": POINTS[state["point"]],
        "value": value_at(state)[:200],
        "exported": min(EXPORTED_MEMBERS, current.count),
        "forms": FORMATS,
        "ideal": complete(variety.d, variety.a, variety.d),
    }


def _exporter(form: str) -> Callable[[State], Download]:
    def download(state: State) -> Download:
        current = chosen(state)
        if current.variety.d > MEMBER_WIDTH and current.degree > EXPANDED_DEGREE:
            raise SizeError("members of this size are too long for the page; use attngeom invariants --out")
        lines = islice(export([current], form, min(EXPORTED_MEMBERS, current.count)), 10**5)
        suffix = {"latex": "tex", "sympy": "py", "singular": "sing", "text": "txt"}.get(form, form)
        return f"{current.name}.{suffix}", "".join(f"{line}\n" for line in lines).encode()

    return download


def ideal(state: State, progress: Progress) -> Facts:
    """The ideal computed degree by degree, beside the theorem."""
    variety = variety_of(state)
    if variety.d > PAGE_IDEAL_WIDTH:
        raise SizeError(
            f"d = {variety.d} given; the page computes up to d = {PAGE_IDEAL_WIDTH}: use attngeom implicitize"
        )
    summary = implicitize(
        Variety(variety.d, variety.a),
        state["max_degree"],
        seed=state["seed"],
        budget=Limits(50.0, None),
        progress=lambda degree, done, total: progress(done, total),
    )
    return {"computed": summary}


def command(state: State) -> str:
    variety = variety_of(state)
    rows = f" --d-out {variety.d_out}" if variety.d_out > 1 else ""
    sizes = f"--d {variety.d} --a {variety.a}{rows}"
    return f"attngeom invariants {sizes} --family {chosen(state).name} --index {state['index']}"


def python(state: State) -> str:
    variety = variety_of(state)
    member = f"find_family(Variety({variety.d}, {variety.a}, 2, {variety.d_out}), {chosen(state).name!r})"
    return f"from attngeom.equations import Variety, find_family; print({member}[{state['index']}].polynomial())"


RANDOM = "point=layer cubic"
OPENED: Any = {"kinds": ("coefficients", "weights"), "sets": {"point": "file"}, "check": lambda item: _sizes(item, 1)}
POINTS = {"layer": "a random layer", "cubic": "a random cubic map", "file": "the layer of a file"}
CONTROLS = (
    Control("d", "d", "number", "3", only=RANDOM, low=1, high=PAGE_VARIETY),
    Control("a", "a", "number", "2", "bound on rank A", low=1, high=PAGE_VARIETY),
    Control("d_out", "Output rows", "number", "1", only=RANDOM, low=1, high=3),
    Control("family", "Family", hint=f"none: {FIRST}; or click on one", longest=60),
    Control("index", "Member", "number", "0", high=10**18),
    Control("point", "Evaluate at", "choice", "layer", options=POINTS),
    Control("file", "Weights or coefficients", "file", "", "", "point=file", **OPENED),
    Control("seed", "Seed", "number", "0", only=RANDOM),
    Control("max_degree", "Compute the ideal up to degree", "number", "4", low=1, high=5),
)
JOBS = {"ideal": ideal}
DOWNLOADS = {form: _exporter(form) for form in FORMATS}
