"""What can be asked: a registry of questions, each of which cuts its tables into tasks, estimates and answers them.

Further questions live in any importable module that calls :func:`register`; the environment variable
``ATTNGEOM_QUESTIONS`` names such modules (comma separated), for this process and for all that it starts.
"""

from __future__ import annotations

import importlib
import os
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any, ClassVar

from attngeom.atlas.records import Answer, Fact, Task
from attngeom.errors import InputError, SizeError
from attngeom.limits.sizes import SWEEP_RANGE, SWEEP_VALUE

BUILT_IN = {
    "dimension": "attngeom.atlas.dimensions",
    "ideal": "attngeom.atlas.ideals",
    "ideal-weight": "attngeom.atlas.ideals",
    "completeness": "attngeom.atlas.completeness",
    "finite-check": "attngeom.atlas.completeness",
    "network": "attngeom.atlas.networks",
}
"""Where the questions of this package are; a module is imported when it is first asked for."""
VARIABLE = "ATTNGEOM_QUESTIONS"


class Question(ABC):
    """One kind of question. Instances hold no state: tasks are answered in other processes."""

    name: str
    rests_on: ClassVar[Mapping[str, str]] = {}
    """Fields that :meth:`derive` computes from another field: they are as good as that one."""

    @abstractmethod
    def tasks(self, table: Mapping[str, Any], seed: int) -> Iterator[Task]:
        """The tasks that one table of a sweep file asks for, in an order in which neighbours share work."""

    @abstractmethod
    def size(self, table: Mapping[str, Any]) -> int:
        """A bound on the number of tasks of a table, by a formula: nothing is listed.

        InputError or SizeError for a table that is not valid, or that asks for what is out of reach.
        """

    @abstractmethod
    def cost(self, task: Task) -> float:
        """CPU seconds that the task is expected to take; a rough guess will do, it is corrected while running."""

    def group(self, task: Task) -> str | None:
        """Tasks of one group share most of their work: they are sent together. None is a group of its own."""
        return None

    @abstractmethod
    def run(self, task: Task) -> Answer:
        """The answer. It depends on the task alone: the same task gives the same answer on every machine."""

    def sums(self, table: Mapping[str, Any], seed: int) -> Iterator[Task]:
        """Tasks whose facts follow from those of :meth:`tasks` without computation; none unless a question says so."""
        yield from ()

    def parts(self, task: Task) -> tuple[Task, ...]:
        """The tasks from whose facts the fact of a sum follows; none for a task that is run."""
        return ()

    def combine(self, task: Task, parts: Sequence[Fact]) -> Answer:
        """The result of a sum, from the facts of all its parts."""
        raise InputError(f"question {self.name!r} has no sums; ask for its tasks")

    def claim(self, fact: Fact) -> Mapping[str, Any] | None:
        """What the certificate of a fact must claim; None if there are no certificates for this question."""
        return None

    def certified(self, fact: Fact) -> frozenset[str]:
        """The fields of the answer that the claim of its certificate covers."""
        return frozenset()

    def check(self, fact: Fact) -> str | None:
        """What is wrong with a fact by itself: parts of its answer that contradict each other or the task."""
        return None

    def derive(self, fact: Fact) -> Mapping[str, Any]:
        """Fields of the answer that follow from the task, and from other fields, without the work of :meth:`run`."""
        return {}

    def confirm(self, fact: Fact, field: str, again: Mapping[str, Any]) -> bool | None:
        """Whether a field is right, when parts of the answer, or all of it and ``evidence``, are computed again.

        None if that does not tell; a question says so where versions may differ and be right, both of them.
        """
        return bool(field_of(fact, field) == again[field])


def field_of(fact: Fact, field: str) -> Any:
    """A field of the answer of a fact, or its evidence."""
    return fact.result.evidence if field == "evidence" else fact.result.answer[field]


_registry: dict[str, Question] = {}


def register(question: Question) -> None:
    """Make a question known under its name; a later one of the same name replaces it."""
    _registry[question.name] = question


def question_modules() -> tuple[str, ...]:
    """The modules of further questions that the environment names."""
    return tuple(name.strip() for name in os.environ.get(VARIABLE, "").split(",") if name.strip())


@cache
def _load(names: tuple[str, ...]) -> None:
    for name in names:
        try:
            importlib.import_module(name)
        except ImportError as error:
            raise InputError(f"{VARIABLE}: module {name!r} cannot be imported ({error}); install it") from None


def get_question(name: str) -> Question:
    """The question of a name.

    >>> get_question("ideal").name
    'ideal'
    """
    _load(question_modules())
    if name not in _registry and name in BUILT_IN:
        importlib.import_module(BUILT_IN[name])
    if name not in _registry:
        known = sorted({*_registry, *BUILT_IN})
        raise InputError(f"question {name[:40]!r} given; known questions are {', '.join(known)}")
    return _registry[name]


def table_values(table: Mapping[str, Any], known: Mapping[str, Any], name: str) -> dict[str, Any]:
    """The values of a table of a sweep file, with defaults; unknown keys are an error.

    >>> table_values({"d": 3}, {"d": 2, "degree": 4}, "ideal")
    {'d': 3, 'degree': 4}
    """
    for key in table:
        if key not in known:
            raise InputError(f"[[{name}]] has the key {key[:40]!r}; known keys are {', '.join(known)}")
    return {**known, **table}


def integers(value: Any, name: str) -> list[int]:
    """A positive integer or a list of them; the ends of a range can be given as {from = 1, to = 6}.

    >>> integers({"from": 2, "to": 4}, "widths"), integers(3, "tokens")
    ([2, 3, 4], [3])
    """
    if isinstance(value, Mapping) and set(value) == {"from", "to"}:
        first, last = integers([value["from"], value["to"]], name)
        if last - first >= SWEEP_RANGE:
            raise SizeError(f"{name} from {first} to {str(last)[:20]} given; at most {SWEEP_RANGE:,} values are swept")
        value = list(range(first, last + 1))
    values = value if isinstance(value, list) else [value]
    if not values or any(isinstance(x, bool) or not isinstance(x, int) or x < 1 for x in values):
        raise InputError(
            f"{name} = {str(value)[:40]} given; a positive integer, a list of them or {{from = 1, to = 6}} is required"
        )
    if max(values) > SWEEP_VALUE:
        raise SizeError(f"{name} = {str(max(values))[:20]} given; sizes of at most {SWEEP_VALUE:,} are required")
    return values
