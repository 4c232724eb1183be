"""Derived weights: what a program computes from weights alone before inputs meet it, taken as weights of its own.

f = F∘φ, where φ gives the derived weights and F is the program with these as weights. The rank of F∘φ is nowhere larger
than that of F, so that every upper bound for F is one for f. Symmetries of F are linear where those of f are not: of
W = g v/|v|, of steps exp(λ softplus δ) of a recurrence, of kernels that a small network makes from positions.
"""

from __future__ import annotations

from collections.abc import Sequence

from attngeom.errors import InputError
from attngeom.programs.builder import Builder
from attngeom.programs.program import Program


def find_cuts(program: Program) -> tuple[int, ...]:
    """The nodes that give the derived weights: none that is linear in weights, none larger than the weights behind it.

    >>> import numpy as np
    >>> from attngeom.programs import trace
    >>> program = trace(lambda w, x: w["v"] / np.sqrt((w["v"] ** 2).sum()) @ x, 3, weights={"v": 3})
    >>> [program.nodes[place].shape for place in find_cuts(program)]
    [(3,)]
    """
    fixed = [w and not x for w, x in zip(program.depends_on_weights, program.depends_on_input)]
    sizes = {name: place.stop - place.start for name, place in program.offsets.items()}
    chosen: set[int] = set()
    waiting = [
        k for k, node in enumerate(program.nodes) if program.depends_on_input[k] for k in node.inputs if fixed[k]
    ]
    seen: set[int] = set()
    while waiting:
        place = waiting.pop()
        node = program.nodes[place]
        sources = [k for k in node.inputs if fixed[k]]
        if place in seen or node.operation == "parameter":
            continue
        seen.add(place)
        is_linear = node.operation in ("gather", "add") or (node.operation == "contract" and len(sources) == 1)
        if is_linear or node.size > sum(sizes[name] for name in weights_behind(program, [place])):
            waiting += sources
        else:
            chosen.add(place)
    return tuple(sorted(chosen))


def weights_behind(program: Program, places: Sequence[int]) -> tuple[str, ...]:
    """The names of the weights on which some nodes rest."""
    needed = set(places)
    for place in range(max(needed), -1, -1):
        if place in needed:
            needed.update(program.nodes[place].inputs)
    return tuple(program.nodes[k].data["name"] for k in program.places("parameter") if k in needed)


def cut(program: Program, places: Sequence[int]) -> Program | None:
    """The program with the derived weights as weights, without those behind them; None if names are taken."""
    needed = {program.output}
    for place in range(program.output, -1, -1):
        if place in needed and place not in places:
            needed.update(program.nodes[place].inputs)
    builder, numbers = Builder(), dict[int, int]()
    try:
        for place in sorted(needed):
            node = program.nodes[place]
            is_cut = place in places
            numbers[place] = (
                builder.parameter(f"derived {place}", node.shape) if is_cut else builder.copy(node, numbers)
            )
    except InputError:
        return None
    return builder.build(numbers[program.output])
