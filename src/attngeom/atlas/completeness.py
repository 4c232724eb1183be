"""Two questions on whether the known families of invariants generate the ideal.

"completeness" looks at the degrees up to one; "finite-check" is the run beside Theorem 6
(docs/theorems/completeness.md), module by module. The modules that could hold a generator of degree 5 or more, and are
not decided by their multiplicities alone, are facts "ideal-weight" of the smallest network that has them all; the fact
of an attention width says what they hold together.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from attngeom.atlas.ideals import check_listable, ideal_models, model_task, weight_result, weight_task
from attngeom.atlas.questions import Question, integers, register, table_values
from attngeom.atlas.records import Answer, Fact, Task
from attngeom.equations import Variety
from attngeom.equations.ideal import check_complete, implicitize
from attngeom.equations.ideal.completeness import (
    all_candidates,
    check_reach,
    check_theorem,
    generator_bound,
    modules_to_check,
)
from attngeom.equations.ideal.ledger import ledger
from attngeom.exact.numbers import WORD_PRIME
from attngeom.limits.work import FAMILY_MEMBERS_TRIED
from attngeom.network import Architecture

KEYS: Mapping[str, Any] = {"d": 2, "a": "all", "targets": "d", "max_degree": 4}


class Completeness(Question):
    """Minimal generators up to a degree, and how many lie in modules that the families of [I], or all known, reach."""

    name = "completeness"

    def tasks(self, table: Mapping[str, Any], seed: int) -> Iterator[Task]:
        values = table_values(table, KEYS, self.name)
        for model in ideal_models(values["d"], values["a"], values["targets"], 1):
            for degree in integers(values["max_degree"], "max_degree"):
                architecture = Architecture((model["d"], 1), model["a"], tokens=2).to_json()
                yield Task(self.name, architecture, {"max_degree": degree, "targets": model["targets"]}, seed)

    def size(self, table: Mapping[str, Any]) -> int:
        values = table_values(table, KEYS, self.name)
        degrees = integers(values["max_degree"], "max_degree")
        models = list(ideal_models(values["d"], values["a"], values["targets"], 1))
        for model in models:
            check_listable(model, max(degrees), "cross")
        return len(models) * len(degrees)

    def cost(self, task: Task) -> float:
        d, degree = task.architecture["widths"][0], task.parameters["max_degree"]
        check_listable({"d": d, "rows": 1, **task.parameters}, degree, "cross")
        return 1e-3 * float(d ** (degree + 1))

    def run(self, task: Task) -> Answer:
        d, (a,) = task.architecture["widths"][0], task.architecture["attention"]
        model = Variety(d, a, targets=task.parameters["targets"])
        summary = implicitize(model, task.parameters["max_degree"], seed=task.seed)
        rows = ledger(model, summary, FAMILY_MEMBERS_TRIED)
        answer = {
            "minimal_generators": {str(row.degree): row.minimal_generators for row in rows},
            "from_paper": {str(row.degree): row.from_paper for row in rows},
            "from_families": {str(row.degree): row.from_families for row in rows},
            "is_complete": all(row.is_closed for row in rows),
        }
        # A module is reached if one product with it is nonzero mod p: a proof. That none is reached was only sampled.
        is_proven = answer["is_complete"] and all(degree.is_generation_proven for degree in summary.degrees)
        return Answer(answer, "proven" if is_proven else "probabilistic", summary.primes[0])


class FiniteCheck(Question):
    """Whether a module that Theorem 5 leaves open holds a generator, for one attention width and every d."""

    name = "finite-check"

    def tasks(self, table: Mapping[str, Any], seed: int) -> Iterator[Task]:
        for task in self._checks(table, seed):
            yield from self.parts(task) or (task,)

    def size(self, table: Mapping[str, Any]) -> int:
        widths = integers(table_values(table, {"a": 2}, self.name)["a"], "a")
        for a in widths:
            check_reach(a + 2, a, a)
        return sum(1 + sum(1 for _ in modules_to_check(a + 2, a)) for a in widths)

    def cost(self, task: Task) -> float:
        (a,) = task.architecture["attention"]
        return 5 + 1e-3 * float(a) ** 4

    def run(self, task: Task) -> Answer:
        """All modules in one process, for a second look at a fact."""
        (a,) = task.architecture["attention"]
        check = check_complete(a + 2, a, a, seed=task.seed).check
        assert check is not None
        new = {f"{degree}: {weight}": extra for degree, weight, extra in check.new}
        return self._answer(a, new, check.is_proven)

    def sums(self, table: Mapping[str, Any], seed: int) -> Iterator[Task]:
        return (task for task in self._checks(table, seed) if self.parts(task))

    def _checks(self, table: Mapping[str, Any], seed: int) -> Iterator[Task]:
        for a in integers(table_values(table, {"a": 2}, self.name)["a"], "a"):
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
        results = [weight_result(fact) for fact in parts]
        new = {f"{r.degree}: {r.weight}": r.ideal_dimension - r.generated for r in results}
        is_proven = all(r.is_rank_proven and r.is_generated_proven for r in results)
        return self._answer(a, {name: extra for name, extra in new.items() if extra}, is_proven)

    def _answer(self, a: int, new: dict[str, int], is_proven: bool) -> Answer:
        modules = sum(len(weights) for weights in all_candidates(a + 2, a).values())
        answer = {"bound": generator_bound(a + 2, a, a), "modules": modules, "new": new}
        return Answer(answer, "proven" if is_proven else "probabilistic", WORD_PRIME)


register(Completeness())
register(FiniteCheck())
