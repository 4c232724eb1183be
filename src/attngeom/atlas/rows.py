"""Facts as rows of the store and back."""

from __future__ import annotations

import json
from typing import Any

from attngeom.atlas.records import Answer, Fact, Task, TaskFailure, canonical_json, sha256
from attngeom.atlas.shapes import has_shape

Row = tuple[Any, ...]


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
