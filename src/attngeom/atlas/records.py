"""What travels and what is kept: tasks (shapes and seeds), facts (answers with their evidence) and failures.

Facts as rows of a store and back, and what a fact of each question holds. Digests show accidents, but whoever forges
a row can make it anything.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from math import isfinite
from typing import Any

from attngeom.errors import AttnGeomError, FormatError
from attngeom.network import Architecture
from attngeom.network.architecture import FLAGS
from attngeom.version import __version__

REASONS = ("time", "memory", "crash", "error", "lost", "contradiction")
"""Why a task has no fact: over its time or memory budget, its process died, it raised, its machine went away, or it
was computed twice with different answers."""

EVIDENCE = ("proven", "dimension proven", "probabilistic", "undecided")
"""How strong an answer is: its standing, or that of a part; only the first two claim a proof, which `atlas verify` then
asks for."""
FORMER = {"Monte Carlo": "probabilistic", "sampled": "probabilistic", "bounds": "undecided"}
"""What version 0.1 called evidence, as its stores do."""


def canonical_json(value: Any) -> str:
    """JSON that depends on the value alone: sorted keys, no white space, no NaN.

    >>> canonical_json({"b": 1, "a": [2]})
    '{"a":[2],"b":1}'
    """
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False, ensure_ascii=False)


def sha256(text: str) -> str:
    """SHA-256 of a text in UTF-8, in hexadecimal."""
    return hashlib.sha256(text.encode()).hexdigest()


@dataclass(frozen=True)
class Task:
    """One question about one architecture: everything a machine needs to answer it, and nothing computed.

    ``parameters`` says what beside the architecture fixes the question, such as the degree of an ideal. All values are
    JSON; matrices never travel, since they follow from the shapes and the seed.

    >>> Task("dimension", {"tokens": 2, "widths": [2, 2]}).key == Task("dimension", {"widths": [2, 2], "tokens": 2}).key
    True
    """

    question: str
    architecture: Mapping[str, Any]
    parameters: Mapping[str, Any] = field(default_factory=dict)
    seed: int = 0

    @property
    def key(self) -> str:
        """The content hash under which the fact is stored."""
        return sha256(self.to_line())

    @cached_property
    def texts(self) -> tuple[str, str]:
        """Architecture and parameters in canonical JSON, made once: this is most of what a coordinator does."""
        return canonical_json(dict(self.architecture)), canonical_json(dict(self.parameters))

    def to_line(self) -> str:
        """One line of canonical JSON: the form in which tasks are queued and sent."""
        return f"[{canonical_json(self.question)},{','.join(self.texts)},{self.seed}]"

    @property
    def columns(self) -> tuple[str, str, str, str, int]:
        """Key, question, architecture, parameters and seed, as a store keeps them."""
        return self.key, self.question, *self.texts, self.seed

    def named(self) -> dict[str, Any]:
        """What was asked, as the first keys of the JSON objects of facts and failures."""
        shape, parameters = dict(self.architecture), dict(self.parameters)
        return {"architecture": shape, "question": self.question, "parameters": parameters}

    @classmethod
    def from_line(cls, line: str) -> Task:
        question, architecture, parameters, seed = json.loads(line)
        return cls(question, architecture, parameters, seed)

    def __str__(self) -> str:
        more = f" {canonical_json(dict(self.parameters))}" if self.parameters else ""
        return f"{self.question} of {short_name(self.architecture)}{more}"


def short_name(record: Mapping[str, Any]) -> str:
    """A short name of an architecture, without what has its usual value; a network of the gallery has its own.

    >>> short_name({"widths": [3, 2], "attention": [2], "tokens": 3, "kind": "softmax", "residual": True})
    '3→2 a=2 t=3 softmax residual'
    """
    if isinstance(record.get("network"), str):
        return str(record["network"])
    widths, ranks = (value if isinstance(value := record.get(key), list) else [] for key in ("widths", "attention"))
    parts = ["→".join(map(str, widths)), "a=" + ",".join(map(str, ranks))]
    parts += [f"t={record['tokens']}"] if "tokens" in record else []
    parts += [str(record["kind"])] if record.get("kind", "lightning") != "lightning" else []
    parts += [f"heads={record['heads']}"] if record.get("heads", 1) != 1 else []
    parts += [f"v={record['value_width']}"] if record.get("value_width") is not None else []
    parts += [name for name in FLAGS if record.get(name)]
    return " ".join(parts)


@dataclass(frozen=True)
class Answer:
    """What a question returns: the answer, how strong it is, and the prime and certificate it rests on.

    ``evidence`` is one of :data:`EVIDENCE`; former words are translated. ``answer`` holds nothing that changes from
    run to run (no timings), so that two computations of one fact can be compared.
    """

    answer: Mapping[str, Any]
    evidence: str
    prime: int | None = None
    certificate: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "evidence", FORMER.get(self.evidence, self.evidence))
        if self.evidence not in EVIDENCE:
            raise FormatError(f"evidence {str(self.evidence)[:40]!r} given; one of {', '.join(EVIDENCE)} is required")

    @property
    def is_proven(self) -> bool:
        """Whether the evidence, or a flag of the answer such as ``is_rank_proven``, claims a proof of some part."""
        flags = (value for key, value in self.answer.items() if key.endswith("_proven"))
        return "proven" in self.evidence.split() or any(flags)


@dataclass(frozen=True)
class Fact:
    """A task with its result, the version of the code and the CPU seconds it took."""

    task: Task
    result: Answer
    cpu_seconds: float
    version: str = __version__

    def to_json(self) -> dict[str, Any]:
        """The JSON object of the command line contract."""
        return {
            **self.task.named(),
            "answer": dict(self.result.answer),
            "evidence": self.result.evidence,
            "prime": self.result.prime,
            "seed": self.task.seed,
            "version": self.version,
            "cpu_seconds": self.cpu_seconds,
            "certificate": None if self.result.certificate is None else dict(self.result.certificate),
            "key": self.task.key,
        }


@dataclass(frozen=True)
class TaskFailure:
    """A task that has no fact yet, and why; ``attempts`` counts how often it was tried."""

    task: Task
    reason: str
    detail: str
    cpu_seconds: float = 0.0
    version: str = __version__
    attempts: int = 1

    def __post_init__(self) -> None:
        if self.reason not in REASONS:
            raise FormatError(f"failure reason {self.reason[:40]!r} given; one of {', '.join(REASONS)} is required")

    def to_json(self) -> dict[str, Any]:
        return {
            **self.task.named(),
            "seed": self.task.seed,
            "reason": self.reason,
            "detail": self.detail,
            "attempts": self.attempts,
            "cpu_seconds": self.cpu_seconds,
            "version": self.version,
            "key": self.task.key,
        }


Row = tuple[Any, ...]
Check = Callable[[Any], bool]
Shape = Mapping[str, Check]


def _is_count(value: Any) -> bool:
    return type(value) is int and value >= 0


def _is_size(value: Any) -> bool:
    return type(value) is int and value >= 1


def _is_flag(value: Any) -> bool:
    return type(value) is bool


def _are_counts(value: Any) -> bool:
    return isinstance(value, dict) and all(map(_is_count, value.values()))


def _is_weight(value: Any) -> bool:
    """Two partitions."""
    if not isinstance(value, list) or len(value) != 2 or not all(isinstance(shape, list) for shape in value):
        return False
    return all(all(map(_is_size, shape)) and shape == sorted(shape, reverse=True) for shape in value)


def _is_formula(value: Any) -> bool:
    return isinstance(value, dict) and _fits(value, {"value": _is_count, "applies": _is_flag})


def _or_none(check: Check) -> Check:
    return lambda value: value is None or check(value)


def _fits(record: Mapping[str, Any], shape: Shape) -> bool:
    return set(record) == set(shape) and all(check(record[key]) for key, check in shape.items())


_DEGREE: Shape = {
    "degree": _is_size,
    "targets": _is_size,
    "coordinates": lambda value: value in ("cross", "single"),
}
_BOUND = _or_none(_is_count)
SHAPES: Mapping[str, tuple[Shape, Shape]] = {
    "dimension": (
        {},
        {
            "dimension": _BOUND,
            "lower_bound": _BOUND,
            "upper_bound": _BOUND,
            "num_parameters": _is_size,
            "fiber": _are_counts,
            "formula": _or_none(_is_formula),
        },
    ),
    "ideal": (
        _DEGREE,
        {
            **dict.fromkeys(("monomials", "hilbert_function", "ideal_dimension", "minimal_generators"), _is_count),
            "modules": _are_counts,
            "formula": _BOUND,
        },
    ),
    "ideal-weight": (
        {**_DEGREE, "weight": _is_weight},
        {
            **dict.fromkeys(("total", "rank", "generated"), _is_count),
            **dict.fromkeys(("is_rank_proven", "is_generated_proven"), _is_flag),
        },
    ),
    "completeness": (
        {"max_degree": _is_size, "targets": _is_size},
        {
            **dict.fromkeys(("minimal_generators", "from_paper", "from_families"), _are_counts),
            "is_complete": _is_flag,
        },
    ),
    "finite-check": ({}, {"bound": _is_count, "modules": _is_count, "new": _are_counts}),
    "network": (
        {"program": lambda value: isinstance(value, str)},
        {
            **dict.fromkeys(("dimension", "lower_bound", "upper_bound", "unexplained"), _is_count),
            "num_parameters": _is_size,
            "fiber": _are_counts,
        },
    ),
}
"""Parameters and answers of the questions of this package."""


def has_shape(fact: Fact) -> bool:
    """Whether parameters and answer of a fact are those of its question, and its architecture is a network.

    Of a question of another module nothing is known but that its answer is an object.
    """
    task, result = fact.task, fact.result
    if not isinstance(result.answer, dict) or not isinstance(result.certificate, (dict, type(None))):
        return False
    if not isinstance(fact.version, str) or not isfinite(fact.cpu_seconds):
        return False
    if not _is_count(task.seed) or not _BOUND(result.prime):
        return False
    if task.question not in SHAPES:
        return True
    parameters, answer = SHAPES[task.question]
    return _is_named(task) and _fits(task.parameters, parameters) and _fits(result.answer, answer)


def _is_named(task: Task) -> bool:
    """Whether what the question is about is an architecture, or the name of a network."""
    if task.question == "network":
        return _fits(task.architecture, {"network": lambda name: isinstance(name, str)})
    try:
        network = Architecture.from_json(task.architecture)
    except AttnGeomError:
        return False
    return network.to_json() == task.architecture and (task.question == "dimension" or network.num_layers == 1)


def fact_row(fact: Fact, former: str | None = None) -> Row:
    """The columns of the task, then answer, evidence, certificate, prime, version, CPU seconds and digest.

    The digest is of all texts but the seconds: a row that was altered no longer matches it. ``former`` is the word for
    the evidence that a store has of old.
    """
    task, r = fact.task, fact.result
    answer, evidence = canonical_json(r.answer), former or r.evidence
    certificate = None if r.certificate is None else canonical_json(r.certificate)
    digest = sha256(canonical_json([task.to_line(), answer, evidence, r.prime, certificate, fact.version]))
    return (*task.columns, answer, evidence, certificate, r.prime, fact.version, fact.cpu_seconds, digest)


def read_task(question: str, architecture: str, parameters: str, seed: int) -> Task:
    """The task of a row; TypeError unless architecture and parameters are objects."""
    network, values = json.loads(architecture), json.loads(parameters)
    if not isinstance(network, dict) or not isinstance(values, dict):
        raise TypeError
    return Task(question, network, values, seed)


def read_fact(row: Row) -> Fact | None:
    """The fact of a row; None if the row does not match its key and digest, or is not the one that the fact gives."""
    _, question, architecture, parameters, seed, answer, evidence, certificate, prime, version, cpu, _ = row
    try:
        proof = None if certificate is None else json.loads(certificate)
        result = Answer(json.loads(answer), evidence, prime, proof)
        fact = Fact(read_task(question, architecture, parameters, seed), result, cpu, version)
        # A text that is not canonical would have a key under which the fact is never found again.
        return fact if has_shape(fact) and fact_row(fact, evidence) == row else None
    except (ValueError, TypeError, RecursionError):
        return None


def read_failure(row: Row) -> TaskFailure | None:
    """The failure of a row; None if the row does not match its key."""
    key, question, architecture, parameters, seed, reason, detail, attempts, version, cpu = row
    try:
        task = read_task(question, architecture, parameters, seed)
        if task.key != key:
            return None
        return TaskFailure(task, reason, detail, float(cpu), str(version), int(attempts))
    except (ValueError, TypeError, RecursionError):
        return None
