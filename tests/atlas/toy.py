"""A cheap question for tests: the rank of the first size×size integers mod p, and tasks that misbehave on demand.

Named in ATTNGEOM_QUESTIONS, so that child processes and Dask workers know it too.
"""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import numpy as np

from attngeom.atlas.questions import Question, integers, register, table_values
from attngeom.atlas.records import Answer, Task
from attngeom.exact.modular import rank_mod_p
from attngeom.exact.numbers import WORD_PRIME


class Rank(Question):
    name = "toy"

    def tasks(self, table, seed):
        values = table_values(table, {"sizes": 1, "sleep": 0.0, "act": "rank", "healed": ""}, self.name)
        for size in integers(values["sizes"], "sizes"):
            parameters = {"size": size, "sleep": values["sleep"], "act": values["act"], "healed": values["healed"]}
            yield Task(self.name, {"widths": [size, size], "attention": [1]}, parameters, seed)

    def size(self, table):
        return len(integers(table.get("sizes", 1), "sizes"))

    def cost(self, task):
        return 1e-3 + task.parameters["sleep"]

    def run(self, task):
        size = task.parameters["size"]
        act = getattr(self, task.parameters["act"])
        return act(size, task)

    def rank(self, size, task):
        time.sleep(task.parameters["sleep"])
        # No entry is 0: the rank of one number is 1, whatever the seed.
        matrix = np.random.default_rng(task.seed).integers(1, WORD_PRIME, (size, max(1, size // 2)))
        return Answer({"rank": int(rank_mod_p(matrix, WORD_PRIME))}, "proven", WORD_PRIME)

    def hang(self, size, task):
        while True:
            time.sleep(1)

    def allocate(self, size, task):
        return Answer({"sum": int(np.ones(size * 2**17).sum())}, "proven")

    def die(self, size, task):
        print("going down", flush=True)
        os.kill(os.getpid(), signal.SIGKILL)

    def fail(self, size, task):
        raise ArithmeticError(f"size {size} is unlucky")

    def heal(self, size, task):
        """Fails until a file exists."""
        if not Path(task.parameters["healed"]).exists():
            raise ArithmeticError("not yet")
        return Answer({"rank": size}, "proven")

    def sums(self, table, seed):
        parts = list(self.tasks(table, seed))
        if parts[0].parameters["act"] == "rank":
            yield Task(self.name, {"widths": [], "attention": []}, {"lines": [part.to_line() for part in parts]}, seed)

    def parts(self, task):
        return tuple(Task.from_line(line) for line in task.parameters.get("lines", ()))

    def combine(self, task, parts):
        return Answer({"total": sum(fact.result.answer["rank"] for fact in parts)}, "proven")


register(Rank())
