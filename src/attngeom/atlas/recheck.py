"""Rechecking a store: its pages, the digest of each row, sums, certificates and, on request, answers."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from multiprocessing import get_context
from typing import Any

from attngeom.atlas.questions import get_question
from attngeom.atlas.records import Fact, Task
from attngeom.atlas.store import Store
from attngeom.atlas.worker import answer
from attngeom.verification.dispatch import verify

CHUNK = 500


@dataclass(frozen=True)
class Recheck:
    """What was checked, and what is wrong: pairs (fact in words, reason)."""

    facts: int
    certificates: int
    sums: int
    recomputed: int
    problems: tuple[tuple[str, str], ...]

    @property
    def is_valid(self) -> bool:
        return not self.problems

    def to_json(self) -> dict[str, Any]:
        reason = "; ".join(f"{fact}: {why}" for fact, why in self.problems[:3]) or "everything that was checked holds"
        return {
            "valid": self.is_valid,
            "claim": f"{self.facts} facts of the store",
            "reason": reason,
            "facts": self.facts,
            "certificates": self.certificates,
            "sums": self.sums,
            "recomputed": self.recomputed,
            "problems": [{"fact": fact, "reason": why} for fact, why in self.problems],
        }


def recheck(
    store: Store,
    certificates: int | None = None,
    recompute: int = 0,
    seed: int = 0,
    workers: int = 1,
    progress: Callable[[int, int], None] | None = None,
) -> Recheck:
    """Check pages and digests (FormatError if damaged), then every sum, and certificates in ``workers`` processes.

    All certificates are checked, or as many as asked for, chosen at random. ``recompute`` facts, chosen at random, are
    computed again from another seed: an exact answer does not depend on it.
    """
    store.check()
    problems: list[tuple[str, str]] = []
    count = sums = 0
    proofs, repeats = _Sample(certificates, seed), _Sample(recompute, seed + 1)
    for fact in store.facts():
        count += 1
        if fact.result.certificate is not None:
            proofs.offer(fact.task)
        if get_question(fact.task.question).parts(fact.task):
            sums += 1
            problems += [(str(fact.task), why) for why in _check_sum(store, fact)]
        else:
            repeats.offer(fact.task)
    for done, found in enumerate(_check_certificates(store, proofs.chosen, workers), 1):
        problems += found
        if progress is not None:
            progress(done, len(proofs.chosen))
    for fact in store.get(repeats.chosen):
        problems += [(str(fact.task), why) for why in _check_again(fact, repeats.rng.randrange(1, 2**31))]
    return Recheck(count, len(proofs.chosen), sums, len(repeats.chosen), tuple(problems))


class _Sample:
    """A random sample of a stream of unknown length; everything if no size is given."""

    def __init__(self, size: int | None, seed: int) -> None:
        self.size, self.rng, self.seen = size, random.Random(seed), 0
        self.chosen: list[Task] = []

    def offer(self, task: Task) -> None:
        self.seen += 1
        if self.size is None or len(self.chosen) < self.size:
            self.chosen.append(task)
        elif self.size and (place := self.rng.randrange(self.seen)) < self.size:
            self.chosen[place] = task


def _check_certificates(store: Store, tasks: list[Task], workers: int) -> Iterator[list[tuple[str, str]]]:
    if workers == 1:
        yield from (check_certificate(fact) for task in tasks for fact in store.get([task]))
        return
    # Fresh processes: forking one that has threads, as after a sweep, is not safe.
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        for start in range(0, len(tasks), CHUNK):
            yield from pool.map(check_certificate, store.get(tasks[start : start + CHUNK]), chunksize=16)


def check_certificate(fact: Fact) -> list[tuple[str, str]]:
    """What is wrong with the certificate of a fact: it is refused, or it proves something else."""
    return [(str(fact.task), why) for why in _refute_certificate(fact)]


def _refute_certificate(fact: Fact) -> list[str]:
    assert fact.result.certificate is not None
    verdict = verify(fact.result.certificate)
    if not verdict.valid:
        return [f"certificate refused: {verdict.reason}"]
    claim = fact.result.certificate["claim"]
    if claim.get("architecture", dict(fact.task.architecture)) != dict(fact.task.architecture):
        return ["the certificate is about another architecture"]
    shared = {key for key in claim if key in fact.result.answer}
    wrong = [key for key in sorted(shared) if claim[key] != fact.result.answer[key]]
    return [f"the certificate proves {key} = {claim[key]}, not {fact.result.answer[key]}" for key in wrong]


def _check_sum(store: Store, fact: Fact) -> list[str]:
    question = get_question(fact.task.question)
    parts = question.parts(fact.task)
    found = store.get(parts)
    if len(found) < len(parts):
        return [f"{len(parts) - len(found)} of its {len(parts)} parts are missing"]
    again = question.combine(fact.task, found)
    return [] if again.answer == fact.result.answer else ["its parts give another answer"]


def _check_again(fact: Fact, seed: int) -> list[str]:
    outcome = answer(replace(fact.task, seed=seed))
    if "reason" in outcome:
        return [f"computing it again failed: {outcome['detail']}"]
    return [] if outcome["answer"] == fact.result.answer else [f"seed {seed} gives {str(outcome['answer'])[:200]}"]
