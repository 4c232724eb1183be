"""The question "finite-check": the run beside Theorem 6 (docs/theorems/completeness.md), module by module.

The modules that could hold a generator of degree 5 or more, and are not decided by their multiplicities alone, are
facts "ideal-weight" of the smallest network that has them all; the fact of an attention width says what they hold
together.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from attngeom.atlas.ideals import model_task, weight_result, weight_task
from attngeom.atlas.questions import Question, integers, register, table_values
from attngeom.atlas.records import Answer, Fact, Task
from attngeom.equations.ideal import check_complete
from attngeom.equations.ideal.completeness import (
    all_candidates,
    check_reach,
    check_theorem,
    generator_bound,
    modules_to_check,
)
from attngeom.exact.primes import WORD_PRIME
from attngeom.network import Architecture

KEYS: Mapping[str, Any] = {"a": 2}


class FiniteCheck(Question):
    """Whether a module that Theorem 5 leaves open holds a generator, for one attention width and every d."""

    name = "finite-check"

    def tasks(self, table: Mapping[str, Any], seed: int) -> Iterator[Task]:
        for task in self._checks(table, seed):
            yield from self.parts(task) or (task,)

    def size(self, table: Mapping[str, Any]) -> int:
        widths = integers(table_values(table, KEYS, self.name)["a"], "a")
        for a in widths:
            check_reach(a + 2, a, a)
        return sum(1 + sum(1 for _ in modules_to_check(a + 2, a)) for a in widths)

    def cost(self, task: Task) -> float:
        (a,) = task.architecture["attention"]
        return 5 + 1e-3 * float(a) ** 4

    def run(self, task: Task) -> Answer:
        """All modules in one process, for a second look at a fact."""
        (a,) = task.architecture["attention"]
        found = check_complete(a + 2, a, a, seed=task.seed).check
        assert found is not None
        new = {f"{degree}: {weight}": extra for degree, weight, extra in found.new}
        return self._answer(a, new, found.is_proven)

    def sums(self, table: Mapping[str, Any], seed: int) -> Iterator[Task]:
        return (task for task in self._checks(table, seed) if self.parts(task))

    def _checks(self, table: Mapping[str, Any], seed: int) -> Iterator[Task]:
        for a in integers(table_values(table, KEYS, self.name)["a"], "a"):
            yield Task(self.name, Architecture((a + 2, 1), a, tokens=2).to_json(), {}, seed)

    def parts(self, task: Task) -> tuple[Task, ...]:
        (a,) = task.architecture["attention"]
        check_reach(a + 2, a, a)
        modules = list(modules_to_check(a + 2, a))
        d, targets = (max((len(weight[i]) for _, weight in modules), default=1) for i in (0, 1))
        model = {"d": d, "a": targets, "targets": targets, "rows": 1}
        return tuple(
            weight_task(model_task("ideal", model, degree, "cross", task.seed), weight) for degree, weight in modules
        )

    def combine(self, task: Task, parts: Sequence[Fact]) -> Answer:
        check_theorem()
        (a,) = task.architecture["attention"]
        found = [weight_result(fact) for fact in parts]
        new = {f"{r.degree}: {r.weight}": r.ideal_dimension - r.generated for r in found}
        is_proven = all(r.is_rank_proven and r.is_generated_proven for r in found)
        return self._answer(a, {name: extra for name, extra in new.items() if extra}, is_proven)

    def _answer(self, a: int, new: dict[str, int], is_proven: bool) -> Answer:
        modules = sum(len(weights) for weights in all_candidates(a + 2, a).values())
        answer = {"bound": generator_bound(a + 2, a, a), "modules": modules, "new": new}
        return Answer(answer, "proven" if is_proven else "probabilistic", WORD_PRIME)


register(FiniteCheck())
