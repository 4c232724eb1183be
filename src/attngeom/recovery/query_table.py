"""Query tables: a black box that is answered offline, round by round.

A table is JSON, ``{"format": "attngeom/queries", "version": 1, "architecture": …, "seed": …, "rounds": [{"inputs": …,
"outputs": …}, …]}``; inputs are d×t row lists, and ``outputs`` is null until somebody fills it in.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from attngeom.errors import FormatError, InputError, SizeError
from attngeom.exact.domains import RR, Array
from attngeom.files import check_header, to_json, write_atomic
from attngeom.layer.blackbox import BlackBox
from attngeom.layer.coefficients import count_entries
from attngeom.layer.interpolation import interpolate
from attngeom.layer.tolerances import RECOVERED
from attngeom.network import Architecture
from attngeom.recovery.recover import recover
from attngeom.recovery.recover_deep import check_identifiable
from attngeom.recovery.results import Recovery

MAX_NUMBERS = 2 * 10**7


@dataclass(frozen=True, eq=False)
class QueryTable:
    """Rounds of inputs (N, d, t) and their outputs (N, d_l, t), or None where they are still to be answered."""

    architecture: Architecture
    seed: int
    rounds: tuple[tuple[Array, Array | None], ...]


class _AnswersNeeded(Exception):
    """Raised inside a recovery when it asks for outputs that the table does not have."""

    def __init__(self, inputs: Array) -> None:
        super().__init__("outputs are missing")
        self.inputs = inputs


def _box(table: QueryTable) -> BlackBox:
    known = {x.tobytes(): y for inputs, outputs in table.rounds if outputs is not None for x, y in zip(inputs, outputs)}

    def evaluate(X: Array) -> Array:
        rows = [np.ascontiguousarray(x, dtype=np.float64) + 0.0 for x in X]
        if any(row.tobytes() not in known for row in rows):
            raise _AnswersNeeded(np.stack(rows))
        return np.stack([known[row.tobytes()] for row in rows])

    return BlackBox(evaluate, RR)


def plan_queries(architecture: Architecture, seed: int = 0) -> QueryTable:
    """The first round of queries for an architecture; one layer needs no other.

    >>> plan_queries(Architecture((2, 2, 2), 2)).rounds[0][0].shape
    (144, 2, 3)
    """
    obstacle = check_identifiable(architecture)
    if obstacle is not None:
        raise InputError(f"not identifiable from values: {obstacle.reason}")
    table = QueryTable(architecture, seed, ())
    if architecture.num_layers > 1 or not architecture.rule.is_polynomial:
        found = continue_queries(table)
        if isinstance(found, Recovery):
            raise InputError("a network that needs no queries was given")
        return found
    asked: list[Array] = []

    def record(X: Array) -> Array:
        asked.append(np.asarray(X, dtype=np.float64) + 0.0)
        return np.zeros((len(X), architecture.widths[1], X.shape[2]))

    d, d_out = architecture.widths
    entries = count_entries(d, d_out, architecture.tokens) // d_out * d * architecture.tokens
    if entries > MAX_NUMBERS:
        raise SizeError(f"{entries:,} numbers needed to write the inputs; at most {MAX_NUMBERS:,}; give fewer tokens")
    interpolate(record, d, d_out, architecture.tokens, RR, seed)
    return QueryTable(architecture, seed, ((np.concatenate(asked), None),))


def continue_queries(table: QueryTable, tolerance: float = RECOVERED) -> Recovery | QueryTable:
    """The recovery, if the answers suffice, or the table with one more round of queries."""
    if missing := sum(outputs is None for _, outputs in table.rounds):
        raise InputError(f"{missing} rounds without outputs given; fill in the outputs of every round first")
    try:
        return recover(_box(table), table.architecture, table.seed, tolerance)
    except _AnswersNeeded as needed:
        return QueryTable(table.architecture, table.seed, (*table.rounds, (needed.inputs, None)))


def write_table(table: QueryTable, path: str | Path) -> None:
    """Write a table as JSON; numbers are written with all their digits."""
    rounds = [
        {"inputs": inputs.tolist(), "outputs": None if outputs is None else outputs.tolist()}
        for inputs, outputs in table.rounds
    ]
    header = {"format": "attngeom/queries", "version": 1, "architecture": table.architecture.to_json()}
    write_atomic(path, to_json({**header, "seed": table.seed, "rounds": rounds}) + "\n")


def table_from_json(record: Any, name: str) -> QueryTable:
    """A table from its JSON object, with every shape checked."""
    record = check_header(record, "queries", name)
    architecture = Architecture.from_json(record.get("architecture"))
    seed, rounds = record.get("seed"), record.get("rounds")
    if isinstance(seed, bool) or not isinstance(seed, int) or seed < 0 or not isinstance(rounds, list):
        raise FormatError(f"{name}: seed or rounds are missing; write tables with recover --plan")
    found = []
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
        found.append((inputs, outputs))
    return QueryTable(architecture, seed, tuple(found))
