"""The question "completeness": do the known families of invariants generate the ideal up to a degree?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from attngeom.atlas.ideals import check_listable, ideal_models
from attngeom.atlas.questions import Question, integers, register, table_values
from attngeom.atlas.records import Answer, Task
from attngeom.equations import Variety
from attngeom.equations.ideal import implicitize
from attngeom.equations.ideal.ledger import ledger
from attngeom.network import Architecture

KEYS: Mapping[str, Any] = {"d": 2, "a": "all", "targets": "d", "max_degree": 4}
MEMBERS = 48
"""Members of each family that are looked at: a family is a few modules, and a few members show which."""


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
        rows = ledger(model, summary, MEMBERS)
        answer = {
            "minimal_generators": {str(row.degree): row.minimal_generators for row in rows},
            "from_paper": {str(row.degree): row.from_paper for row in rows},
            "from_families": {str(row.degree): row.from_families for row in rows},
            "is_complete": all(row.is_closed for row in rows),
        }
        # A module is reached if one product with it is nonzero mod p: a proof. That none is reached was only sampled.
        is_proven = answer["is_complete"] and all(degree.is_generation_proven for degree in summary.degrees)
        return Answer(answer, "proven" if is_proven else "probabilistic", summary.primes[0])


register(Completeness())
