"""Which inputs have the roots that a program needs, seen from the first part of the program alone.

Each root exists at every other input, so that most inputs are drawn in vain. Roots that rest on no exponential need
nothing from the levels below: they are tried first, one after another, each at the inputs that the ones before left.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from attngeom.exact.arrays import Array
from attngeom.programs.arithmetic import ModularArithmetic
from attngeom.programs.operations import OPERATIONS, Point
from attngeom.programs.passes import needed_entries
from attngeom.programs.program import Program

BATCH_ENTRIES = 10**6
"""Entries of all nodes of the first part, for all inputs that are tried at once."""
MAX_BATCH = 4096
MAX_OUTPUTS = 16
"""Outputs of which those roots are found that all of them need."""


class RootFilter:
    """The first part of a program at one level of the chain, and which entries of its roots must exist there.

    >>> from attngeom.programs import Builder
    >>> b = Builder()
    >>> program = b.build(b.root(b.multiply(b.parameter("w", ()), b.input("x", ()))))
    >>> roots = RootFilter(program, ModularArithmetic(0, "doc"), {"w": np.array([1.0])}, 0)
    >>> roots.exists({"x": np.array([4.0, -4.0, 9.0])}).tolist()
    [True, False, True]
    """

    def __init__(self, program: Program, domain: ModularArithmetic, weights: Mapping[str, Array], level: int) -> None:
        self.program, self.domain, self.weights = program, domain, weights
        self.flags = _common_roots(program) if level == 0 else needed_entries(program)
        depth = program.exponents
        known: list[bool] = []
        for place, node in enumerate(program.nodes):
            is_exponential = node.operation == "formal" and node.data["name"] in ("exp", "gauss")
            own = not is_exponential and node.operation != "pattern" and depth[place] >= level
            known.append(own and all(known[source] for source in node.inputs))
        self.roots = {
            place
            for place in program.places("root")
            if known[place] and self.flags[place].any() and program.depends_on_input[place]
        }
        needed = set(self.roots)
        for place in range(len(program.nodes) - 1, -1, -1):
            if place in needed:
                needed.update(program.nodes[place].inputs)
        # Leaves first, so that all of them have the length of the batch.
        leaves = [k for k in sorted(needed) if not program.nodes[k].inputs]
        self.places = leaves + [k for k in sorted(needed) if program.nodes[k].inputs]
        size = sum(program.nodes[k].size for k in self.places) + sum(
            program.nodes[k].size for k in program.places("input")
        )
        self.batch = max(64, min(MAX_BATCH, BATCH_ENTRIES // max(1, size)))

    def exists(self, inputs: Mapping[str, Array]) -> Array:
        """For each of several inputs whether the roots of the first part exist there."""
        count = len(next(iter(inputs.values()))) if inputs else 1
        left = np.arange(count)
        point = Point(self.domain, {**self.weights, **inputs})
        results: dict[int, Array] = {}
        for place in self.places:
            node = self.program.nodes[place]
            values = [results[source] for source in node.inputs]
            results[place] = OPERATIONS[node.operation].run(node, values, point, place).result
            if place not in self.roots:
                continue
            there = ~np.isnan(results[place][:, self.flags[place]]).any(axis=1)
            if not there.all():
                left = left[there]
                results = {k: x if len(x) == 1 else x[there] for k, x in results.items()}
            if not len(left):
                break
        alive = np.zeros(count, dtype=bool)
        alive[left] = True
        return alive


def _common_roots(program: Program) -> list[Array]:
    """Flags of the entries that all outputs need, by some of them spread over all."""
    count = program.outputs
    chosen = range(count) if count <= MAX_OUTPUTS else np.linspace(0, count - 1, MAX_OUTPUTS).astype(int).tolist()
    common = needed_entries(program, 0)
    for output in list(chosen)[1:]:
        for flags, other in zip(common, needed_entries(program, output)):
            flags &= other
    return common
