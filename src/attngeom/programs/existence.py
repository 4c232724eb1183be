"""Which inputs have the roots that a program needs, seen from the first part of the program alone.

Each root exists at every other input, so that most inputs are drawn in vain. Roots that rest on no exponential need
nothing from the levels below: they are tried first, one after another, each at the inputs that the ones before left.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache

import numpy as np

from attngeom.errors import SingularError
from attngeom.exact.arrays import Array
from attngeom.limits.memory import TRIED_ENTRIES, TRIED_INPUTS
from attngeom.limits.trials import INPUTS_IN_VAIN, JOINT_ROOTS, ROOT_OUTPUTS
from attngeom.programs.arithmetic import ModularArithmetic
from attngeom.programs.operations import OPERATIONS, Point
from attngeom.programs.passes import needed_entries
from attngeom.programs.program import Program


class RootFilter:
    """The first part of a program at one level of the chain, and which entries of its roots must exist there.

    ``only``: the roots that rest on the input of this name alone.

    >>> from attngeom.programs import Builder
    >>> b = Builder()
    >>> program = b.build(b.root(b.multiply(b.parameter("w", ()), b.input("x", ()))))
    >>> roots = RootFilter(program, ModularArithmetic(0, "doc"), {"w": np.array([1.0])}, 0)
    >>> roots.exists({"x": np.array([4.0, -4.0, 9.0])}).tolist()
    [True, False, True]
    """

    def __init__(
        self,
        program: Program,
        domain: ModularArithmetic,
        weights: Mapping[str, Array],
        level: int,
        only: str = "",
    ) -> None:
        self.only = only
        self.program, self.domain, self.weights = program, domain, weights
        self.flags = _common_roots(program) if level == 0 else _needed_roots(program)
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
        if only:
            self.roots &= {place for place, name in program.lone_roots.items() if name == only}
        self.count = sum(int(self.flags[place].sum()) for place in self.roots)
        needed = program.ancestors(self.roots)
        # Leaves first, so that all of them have the length of the batch.
        leaves = [k for k in sorted(needed) if not program.nodes[k].inputs]
        self.places = leaves + [k for k in sorted(needed) if program.nodes[k].inputs]
        size = sum(program.nodes[k].size for k in self.places) + sum(
            program.nodes[k].size for k in program.places("input")
        )
        self.batch = max(64, min(TRIED_INPUTS, TRIED_ENTRIES // max(1, size)))

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


class InputPool:
    """The inputs of one name whose own roots exist, in the order of their indices; each serves 2^``joint`` tries.

    ``draw`` gives the inputs with some indices.
    """

    def __init__(self, roots: RootFilter, draw: Callable[[Sequence[int]], Array], start: int, joint: int) -> None:
        self.roots, self.draw, self.next = roots, draw, start
        self.repeats = 2 ** min(joint, JOINT_ROOTS)
        self.good: list[int] = []

    def take(self, first: int, count: int) -> list[int]:
        """The indices of the inputs for some tries, by their numbers."""
        need = (first + count - 1) // self.repeats + 1
        start = self.next
        while len(self.good) < need:
            if self.next - start > INPUTS_IN_VAIN:
                raise SingularError("no roots at this point; another one is required")
            room = min(self.roots.batch, max(16, (need - len(self.good)) * 5 // 4 << self.roots.count))
            indices = range(self.next, self.next + room)
            self.next += room
            if not self.roots.count:
                self.good += indices
                continue
            there = self.roots.exists({self.roots.only: self.draw(indices)})
            self.good += [index for index, exists in zip(indices, there.tolist()) if exists]
        return [self.good[number // self.repeats] for number in range(first, first + count)]


@lru_cache(maxsize=4)
def _needed_roots(program: Program) -> list[Array]:
    return needed_entries(program)


@lru_cache(maxsize=4)
def _common_roots(program: Program) -> list[Array]:
    """Flags of the entries that all outputs need, by some of them spread over all."""
    count = program.outputs
    chosen = range(count) if count <= ROOT_OUTPUTS else np.linspace(0, count - 1, ROOT_OUTPUTS).astype(int).tolist()
    common = needed_entries(program, 0)
    for output in list(chosen)[1:]:
        for flags, other in zip(common, needed_entries(program, output)):
            flags &= other
    return common
