"""Facts as rows of the store and back, and what a fact of each question holds.

Digests show accidents, but whoever forges a row can make it anything.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from math import isfinite
from typing import Any

from attngeom.atlas.records import Answer, Fact, Task, TaskFailure, canonical_json, sha256
from attngeom.errors import AttnGeomError
from attngeom.network import Architecture

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
