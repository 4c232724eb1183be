"""Comparisons that come out one way wherever one looks: clamps that do not act are left out, and that is said."""

from __future__ import annotations

import numpy as np

from attngeom.exact.arrays import Array
from attngeom.limits.trials import SIGN_INPUTS, SIGN_WEIGHTS
from attngeom.programs.arithmetic import RealArithmetic
from attngeom.programs.builder import Builder
from attngeom.programs.operations import Point
from attngeom.programs.passes import run
from attngeom.programs.program import Program
from attngeom.programs.trimming import trim

FIXED_SIGNS = (
    f"comparisons that came out one way at {SIGN_WEIGHTS * SIGN_INPUTS:,} random points of many sizes count as "
    "fixed: this is about inputs at which clamps such as max(x, 1e-12) do not act"
)


def fix_signs(program: Program, seed: int = 0) -> Program:
    """The program with constants for signs that are the same at many real points, and a note that says so.

    It is the same function where these signs are so: an open set. Where a weight or an input would no longer be seen,
    all signs stay as they are.

    >>> b = Builder()
    >>> w, x = b.parameter("w", ()), b.input("x", ())
    >>> norm = b.root(b.add(b.multiply(x, x), b.multiply(w, w)))
    >>> clamped = b.build(b.divide(w, b.maximum(norm, b.constant(1e-12))))
    >>> [sum(node.operation == "pattern" for node in p.nodes) for p in (clamped, fix_signs(clamped))]
    [1, 0]
    """
    places = [k for k in program.places("pattern") if program.nodes[k].data["kind"] == "positive"]
    signs = _observe(program, places, seed) if places else {}
    if not signs:
        return program
    builder, numbers = Builder(), dict[int, int]()
    for place, node in enumerate(program.nodes):
        known = signs.get(place)
        numbers[place] = builder.copy(node, numbers) if known is None else builder.constant(known)
    smaller = builder.build(numbers[program.output])
    if _reaching(trim(smaller)) != _reaching(trim(program)):
        return program
    return smaller.with_notes(*program.notes, FIXED_SIGNS)


def _observe(program: Program, places: list[int], seed: int) -> dict[int, Array]:
    """The signs of the nodes all of whose entries have one at all points, as 0 and 1."""
    rng, seen = np.random.default_rng(seed), dict[int, Array]()
    for number in range(SIGN_WEIGHTS):
        tensors = {name: rng.standard_normal((1, *shape)) for name, shape in program.parameters.items()}
        for name, shape in program.inputs.items():
            sizes = 10 ** rng.uniform(-1.5, 1.5, SIGN_INPUTS).reshape(-1, *(1,) * len(shape))
            tensors[name] = sizes * rng.standard_normal((SIGN_INPUTS, *shape))
        traces = run(program, Point(RealArithmetic(), tensors))
        for place in list(places):
            trace = traces[place]
            assert trace is not None
            x = trace.values[0]
            first = np.where(x[:1] > 0, 1, 0) if number == 0 else seen[place][None]
            if not np.isfinite(x).all() or np.any((x > 0) != (first > 0)):
                places.remove(place)
                seen.pop(place, None)
            else:
                seen[place] = first[0]
        if not places:
            break
    return seen


def _reaching(program: Program) -> set[str]:
    """The names of weights and inputs on which the output rests."""
    needed = program.ancestors([program.output])
    return {program.nodes[k].data["name"] for k in needed if program.nodes[k].operation in ("parameter", "input")}
