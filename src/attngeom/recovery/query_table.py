"""Query tables: a black box that is answered offline, round by round.

A table is JSON, ``{"format": "attngeom/queries", "version": 2, "architecture": …, "seed": …, "rounds": [{"step": …,
"inputs": …, "plan": …, "outputs": …}, …]}``; inputs are d×t row lists of doubles, which are read back exactly, and
``outputs`` is null until somebody fills it in. The search rests on what the file says: answers belong to the step and
the number of their input, and ``plan`` holds what the inputs were made from, so that nothing is computed once more on
another machine and looked up.

Version 1 had neither steps nor plans: its answers are taken in their order, as long as the inputs are near those that
are computed now.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from attngeom.errors import FormatError, InputError, SizeError
from attngeom.exact.domains import RR, Array
from attngeom.files import check_header, to_json, write_atomic
from attngeom.layer.blackbox import BlackBox, QueryPlan
from attngeom.layer.coefficients import count_entries
from attngeom.layer.interpolation import interpolate
from attngeom.limits.rounding import RECOVERED_ERROR, SAME_QUERY
from attngeom.limits.sizes import QUERY_NUMBERS
from attngeom.network import Architecture
from attngeom.recovery.recover import recover
from attngeom.recovery.recover_deep import check_identifiable
from attngeom.recovery.results import Recovery

VERSION = 2


class Round(NamedTuple):
    """Inputs (N, d, t) of a step, if it has a name, and their outputs (N, d_l, t), None until they are answered."""

    inputs: Array
    outputs: Array | None = None
    step: str | None = None
    sources: Mapping[str, Array] = {}


class QueryTable(NamedTuple):
    """All rounds of queries about a network of an architecture, planned with a seed."""

    architecture: Architecture
    seed: int
    rounds: tuple[Round, ...]

    def answered(self, outputs: Array) -> QueryTable:
        """The table with the outputs of its last round."""
        return self._replace(rounds=(*self.rounds[:-1], self.rounds[-1]._replace(outputs=outputs)))


class _AnswersNeeded(Exception):
    """Raised inside a recovery when it asks for outputs that the table does not have."""

    def __init__(self, planned: Round) -> None:
        super().__init__("outputs are missing")
        self.planned = planned


class _TableBox(BlackBox):
    """The answers of a table: those of a step by its name, those without one in their order."""

    def __init__(self, table: QueryTable) -> None:
        super().__init__(self._next, RR)
        answered = [(plan, plan.outputs) for plan in table.rounds if plan.outputs is not None]
        self.steps = {plan.step: (plan, outputs) for plan, outputs in answered if plan.step is not None}
        unnamed = [(plan.inputs, outputs) for plan, outputs in answered if plan.step is None]
        shape = (0, table.architecture.widths[0], table.architecture.tokens)
        self.inputs = np.concatenate([np.zeros(shape), *(inputs for inputs, _ in unnamed)])
        self.outputs = [row for _, outputs in unnamed for row in outputs]
        self.place = 0

    def planned(self, step: str) -> QueryPlan | None:
        if step not in self.steps:
            return None
        plan = self.steps[step][0]
        return QueryPlan(plan.inputs, plan.sources)

    def ask(self, step: str, plan: QueryPlan) -> tuple[QueryPlan, Array]:
        if step in self.steps:
            asked, outputs = self.steps[step]
            if not asked.sources and len(asked.inputs) != len(plan.inputs):
                raise FormatError(f"{len(asked.inputs)} inputs given for {step}; {len(plan.inputs)} are required")
            self.queries += len(outputs)
            return QueryPlan(asked.inputs, asked.sources), outputs
        if not self._has_next(plan.inputs):
            raise _AnswersNeeded(Round(plan.inputs, None, step, plan.sources))
        outputs = self(plan.inputs)
        return QueryPlan(self.inputs[self.place - len(outputs) : self.place], plan.sources), outputs

    def _has_next(self, X: Array) -> bool:
        stored = self.inputs[self.place : self.place + len(X)]
        return len(stored) == len(X) and bool(np.all(np.abs(stored - X) <= SAME_QUERY * np.abs(X).max(initial=0.0)))

    def _next(self, X: Array) -> Array:
        if not self._has_next(X):
            raise _AnswersNeeded(Round(X))
        self.place += len(X)
        return np.stack(self.outputs[self.place - len(X) : self.place])


def plan_queries(architecture: Architecture, seed: int = 0) -> QueryTable:
    """The first round of queries for an architecture; one layer needs no other.

    >>> plan_queries(Architecture((2, 2, 2), 2)).rounds[0][0].shape
    (144, 2, 3)
    """
    obstacle = check_identifiable(architecture)
    if obstacle is not None:
        raise InputError(f"not identifiable from values: {obstacle.reason}")
    table = QueryTable(architecture, seed, ())
    if not architecture.is_cubic:
        result = continue_queries(table)
        if isinstance(result, Recovery):
            raise InputError("a network that needs no queries was given")
        return result
    asked: list[Array] = []

    def record(X: Array) -> Array:
        asked.append(np.asarray(X, dtype=np.float64) + 0.0)
        return np.zeros((len(X), architecture.widths[1], X.shape[2]))

    d, d_out = architecture.widths
    entries = count_entries(d, d_out, architecture.tokens) // d_out * d * architecture.tokens
    if entries > QUERY_NUMBERS:
        raise SizeError(f"{entries:,} numbers needed to write the inputs; at most {QUERY_NUMBERS:,}; give fewer tokens")
    interpolate(record, d, d_out, architecture.tokens, RR, seed)
    return QueryTable(architecture, seed, (Round(np.concatenate(asked)),))


def continue_queries(table: QueryTable, tolerance: float = RECOVERED_ERROR) -> Recovery | QueryTable:
    """The recovery, if the answers suffice, or the table with one more round of queries."""
    if missing := sum(plan.outputs is None for plan in table.rounds):
        raise InputError(f"{missing} rounds without outputs given; fill in the outputs of every round first")
    try:
        return recover(_TableBox(table), table.architecture, table.seed, tolerance)
    except _AnswersNeeded as needed:
        return table._replace(rounds=(*table.rounds, needed.planned))


def write_table(table: QueryTable, path: str | Path) -> None:
    """Write a table as JSON; numbers are written with all their digits."""
    rounds = [
        {
            "step": plan.step,
            "inputs": (plan.inputs + 0.0).tolist(),
            "plan": {name: array.tolist() for name, array in plan.sources.items()},
            "outputs": None if plan.outputs is None else plan.outputs.tolist(),
        }
        for plan in table.rounds
    ]
    header = {"format": "attngeom/queries", "version": VERSION, "architecture": table.architecture.to_json()}
    write_atomic(path, to_json({**header, "seed": table.seed, "rounds": rounds}) + "\n")


def table_from_json(record: Any, name: str) -> QueryTable:
    """A table from its JSON object, with every shape checked."""
    record = check_header(record, "queries", name, VERSION)
    architecture = Architecture.from_json(record.get("architecture"))
    seed, rounds = record.get("seed"), record.get("rounds")
    if isinstance(seed, bool) or not isinstance(seed, int) or seed < 0 or not isinstance(rounds, list):
        raise FormatError(f"{name}: seed or rounds are missing; write tables with recover --plan")
    plans = []
    t = architecture.tokens
    for index, entry in enumerate(rounds):
        if not isinstance(entry, dict) or not isinstance(entry.get("inputs"), list):
            raise FormatError(f"{name}: round {index} without inputs; write tables with recover --plan")
        inputs = RR.convert(entry["inputs"])
        outputs = None if entry.get("outputs") is None else RR.convert(entry["outputs"])
        if inputs.ndim != 3 or inputs.shape[1:] != (architecture.widths[0], t):
            raise FormatError(f"{name}: inputs of shape {inputs.shape}; (N, {architecture.widths[0]}, {t}) is required")
        if outputs is not None and outputs.shape != (len(inputs), architecture.widths[-1], t):
            needed = (len(inputs), architecture.widths[-1], t)
            raise FormatError(f"{name}: outputs of shape {outputs.shape} in round {index}; {needed} is required")
        step, plan = entry.get("step"), entry.get("plan", {})
        if not isinstance(step, str | None) or not isinstance(plan, dict):
            raise FormatError(f"{name}: step or plan of round {index} cannot be read; write tables with recover --plan")
        plans.append(Round(inputs, outputs, step, {key: RR.convert(values) for key, values in plan.items()}))
    return QueryTable(architecture, seed, tuple(plans))
