"""Derived weights: what a program computes from weights alone before inputs meet it, taken as weights of its own.

f = F∘φ, where φ gives the derived weights and F is the program with these as weights. The rank of F∘φ is nowhere larger
than that of F, so that every upper bound for F is one for f. Symmetries of F are linear where those of f are not: of
W = g v/|v|, of steps exp(λ softplus δ) of a recurrence, of kernels that a small network makes from positions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from attngeom.errors import InputError
from attngeom.programs.builder import Builder
from attngeom.programs.program import Program


def find_cuts(program: Program) -> list[tuple[int, ...]]:
    """Choices of nodes that give derived weights: none linear in weights.

    They are the last ones before inputs are met, or the last functions of one variable. A table, which has no inputs,
    is cut at one node or another: behind it a tied embedding is a weight of its own.

    >>> import numpy as np
    >>> from attngeom.programs import trace
    >>> program = trace(lambda w, x: w["v"] / np.sqrt((w["v"] ** 2).sum()) @ x, 3, weights={"v": 3})
    >>> [[program.nodes[place].shape for place in places] for places in find_cuts(program)]
    [[(3,)], [()]]
    """
    if not program.inputs:
        return [(k,) for k in _nonlinear(program) if _is_small(program, k)]
    choices = (_before_inputs(program, is_enough) for is_enough in (_is_small, _is_function))
    return list(dict.fromkeys(chosen for chosen in choices if chosen))


def _before_inputs(program: Program, is_enough: Callable[[Program, int], bool]) -> tuple[int, ...]:
    """The last nodes before inputs are met that are not linear in weights, and enough to be weights of their own."""
    fixed = [w and not x for w, x in zip(program.depends_on_weights, program.depends_on_input)]
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
        if is_linear or not is_enough(program, place):
            waiting += sources
        else:
            chosen.add(place)
    return tuple(sorted(chosen))


def _is_function(program: Program, place: int) -> bool:
    """Whether a node is no product: the scale of (W − mean W)/√v is then a weight, beside W itself."""
    return program.nodes[place].operation != "contract"


def _is_small(program: Program, place: int) -> bool:
    """Whether a node has no more entries than the weights behind it."""
    sizes = {name: span.stop - span.start for name, span in program.offsets.items()}
    return bool(program.nodes[place].size <= sum(sizes[name] for name in weights_behind(program, [place])))


def _nonlinear(program: Program) -> list[int]:
    """The nodes before the output that are not linear in the weights, without index work."""
    linear: list[bool] = []
    for node in program.nodes:
        moves = [k for k in node.inputs if program.depends_on_weights[k]]
        is_linear = node.operation in ("gather", "add") or (node.operation == "contract" and len(moves) == 1)
        linear.append(not moves or (is_linear and all(linear[k] for k in moves)))
    return [k for k in range(program.output) if not linear[k] and program.nodes[k].operation != "gather"]


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
