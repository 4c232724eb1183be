"""Rechecking a store: its pages, the digest of each row, sums, certificates and, on request, answers."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from attngeom.atlas.questions import get_question
from attngeom.atlas.records import Fact
from attngeom.atlas.store import Store
from attngeom.atlas.worker import answer
from attngeom.certificates.verify import verify


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


def recheck(store: Store, recompute: int = 0, seed: int = 0, progress: Callable[[int], None] | None = None) -> Recheck:
    """Check pages and digests (FormatError if damaged), then every certificate and every sum.

    ``recompute`` facts, chosen at random, are computed again from another seed: an exact answer does not depend on it.
    """
    store.check()
    problems: list[tuple[str, str]] = []
    counts = {"facts": 0, "certificates": 0, "sums": 0}
    sample: list[Fact] = []
    rng = random.Random(seed)
    for fact in store.facts():
        counts["facts"] += 1
        if fact.result.certificate is not None:
            counts["certificates"] += 1
            problems += [(str(fact.task), why) for why in _check_certificate(fact)]
        if get_question(fact.task.question).parts(fact.task):
            counts["sums"] += 1
            problems += [(str(fact.task), why) for why in _check_sum(store, fact)]
        else:
            _reservoir(sample, fact, recompute, counts["facts"], rng)
        if progress is not None:
            progress(counts["facts"])
    for fact in sample:
        problems += [(str(fact.task), why) for why in _check_again(fact, rng.randrange(1, 2**31))]
    return Recheck(recomputed=len(sample), problems=tuple(problems), **counts)


def _reservoir(sample: list[Fact], fact: Fact, size: int, seen: int, rng: random.Random) -> None:
    """Keep a random sample of a stream of unknown length."""
    if len(sample) < size:
        sample.append(fact)
    elif size and (place := rng.randrange(seen)) < size:
        sample[place] = fact


def _check_certificate(fact: Fact) -> list[str]:
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
