"""A sweep: which questions about which architectures, with which seed and budget, read from a TOML file.

docs/how-to/atlas.md shows one, with the keys of every question.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from attngeom.atlas.children import Budget
from attngeom.atlas.questions import get_question
from attngeom.atlas.records import Task, sha256
from attngeom.atlas.store import FactStore
from attngeom.errors import FormatError, InputError, SizeError
from attngeom.files import read_bytes
from attngeom.limits.memory import TASKS_PLANNED
from attngeom.limits.sizes import SWEEP_BYTES, SWEEP_TASKS


@dataclass(frozen=True)
class Shard:
    """One of ``count`` disjoint parts of a sweep, for stores that are filled apart and merged; groups stay together."""

    index: int
    count: int

    @classmethod
    def parse(cls, text: str) -> Shard:
        """Read "2/16", the second of sixteen parts.

        >>> Shard.parse("2/16")
        Shard(index=2, count=16)
        """
        index, _, count = text.partition("/")
        if not (index.isdecimal() and count.isdecimal() and 1 <= int(index) <= int(count)):
            raise InputError(f"shard {text[:40]!r} given; I/N with 1 ≤ I ≤ N is required, such as 2/16")
        return cls(int(index), int(count))

    def owns(self, task: Task) -> bool:
        group = get_question(task.question).group(task)
        return int(sha256(group or task.to_line())[:12], 16) % self.count == self.index - 1


@dataclass(frozen=True)
class Sweep:
    """Tables of questions: pairs (name of the question, its ranges)."""

    tables: tuple[tuple[str, Mapping[str, Any]], ...]
    seed: int = 0
    budget: Budget = field(default_factory=Budget)
    shard: Shard | None = None

    def __post_init__(self) -> None:
        if isinstance(self.seed, bool) or not isinstance(self.seed, int) or not 0 <= self.seed < 2**63:
            raise InputError(f"seed = {str(self.seed)[:40]} given; an integer from 0 to 2^63 - 1 is required")

    def tasks(self) -> Iterator[Task]:
        """All tasks of all tables, in the order of the file; a task that two tables ask for comes twice."""
        for name, table in self.tables:
            for task in get_question(name).tasks(table, self.seed):
                if self.shard is None or self.shard.owns(task):
                    yield task

    def sums(self) -> Iterator[Task]:
        """The tasks whose facts follow from those of :meth:`tasks`."""
        for name, table in self.tables:
            yield from get_question(name).sums(table, self.seed)


def parse_sweep(text: str, name: str = "sweep") -> Sweep:
    """Read the text of a sweep file strictly.

    >>> parse_sweep("seed = 7\\n[[ideal]]\\nd = 3").tables
    (('ideal', {'d': 3}),)
    """
    try:
        record = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise FormatError(f"{name}: not valid TOML: {error}") from None
    seed, budget = record.pop("seed", 0), record.pop("budget", {})
    if not isinstance(budget, Mapping):
        raise InputError(f"{name}: budget = {str(budget)[:40]} given; a table [budget] with numbers is required")
    if not set(budget) <= {"seconds", "megabytes"}:
        raise InputError(f"{name}: [budget] has the keys {list(budget)[:5]}; seconds and megabytes are known")
    tables = []
    for question, value in record.items():
        get_question(question)
        if not isinstance(value, list) or not all(isinstance(table, Mapping) for table in value):
            raise InputError(f"{name}: {question} is no list of tables; write [[{question}]]")
        tables += [(question, table) for table in value]
    if not tables:
        raise InputError(f"{name}: no tables; write at least one, such as [[dimension]]")
    size = 0
    for question, table in tables:
        size += get_question(question).size(table)
        if size > SWEEP_TASKS:
            raise SizeError(
                f"{name}: about {_shorten(size)} tasks asked for; at most {SWEEP_TASKS:,} fit into one sweep"
            )
    return Sweep(tuple(tables), seed, Budget(**budget))


def _shorten(count: int) -> str:
    return f"{count:,}" if count < 10**15 else f"10^{len(str(count)) - 1}" if count < 10**4000 else "10^4000"


def read_sweep(path: str | Path) -> Sweep:
    """Read a sweep file; see :func:`parse_sweep`."""
    data = read_bytes(path, SWEEP_BYTES)
    try:
        return parse_sweep(data.decode("utf-8"), str(path))
    except UnicodeDecodeError:
        raise FormatError(f"{path}: not UTF-8 text; a TOML file is required") from None


class Pending(NamedTuple):
    """One task that is left to do, as compact as a million of them in memory require."""

    cost: float
    line: str
    group: int | None

    @property
    def question(self) -> str:
        return self.line[2 : self.line.index('"', 2)]


@dataclass(frozen=True)
class Plan:
    """What is left to do, cheapest first, and how much is there already; costs are estimated CPU seconds."""

    pending: tuple[Pending, ...]
    known: int
    failed: int

    @property
    def cost(self) -> float:
        return sum(item.cost for item in self.pending)


def make_plan(sweep: Sweep, store: FactStore | None = None, retry_failed: bool = False) -> Plan:
    """Compare a sweep with a store. Tasks that failed before are left out unless ``retry_failed``.

    Cheap tasks come first: facts appear early, and a task that exceeds its budget holds up nothing else. Neighbours of
    about equal cost (a factor of two) stay neighbours, because they may share work.
    """
    pending: dict[str, Pending] = {}
    known = failed = 0
    tasks = sweep.tasks()
    while chunk := list(islice(tasks, TASKS_PLANNED)):
        by_key = {task.key: task for task in chunk}
        stored = store.known_keys(by_key) if store else set()
        failures = store.known_keys(by_key, "failures") if store else set()
        for key, task in by_key.items():
            line = task.to_line()
            if key in stored:
                known += 1
            elif key in failures and not retry_failed:
                failed += 1
            elif line not in pending:
                question = get_question(task.question)
                group = question.group(task)
                pending[line] = Pending(question.cost(task), line, None if group is None else hash(group))
    return Plan(tuple(sorted(pending.values(), key=lambda item: _magnitude(item.cost))), known, failed)


def _magnitude(cost: float) -> int:
    return max(1, round(cost * 1e6)).bit_length()
