"""Rechecking a store: its pages, the digest of each row, sums, certificates, and proven answers without certificate."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import chain, islice
from math import inf
from operator import itemgetter
from typing import Any

from attngeom.atlas.questions import get_question
from attngeom.atlas.records import Fact, Task
from attngeom.atlas.store import FactStore
from attngeom.atlas.worker import answer
from attngeom.errors import AttnGeomError, SizeError
from attngeom.network.architecture import Architecture
from attngeom.processes import run_apart
from attngeom.results import Result
from attngeom.verification import verify

CHUNK, BATCH = 500, 16
RECOMPUTE_SECONDS = 30.0
"""For proven facts without certificate, which are computed again from another seed, the cheapest first."""
Finding = tuple[str, str]
Findings = tuple[list[Finding], list[Finding]]


@dataclass(frozen=True, kw_only=True, eq=False)
class Recheck(Result):
    """What was checked, what is wrong, and which proven facts nothing could recheck: pairs (fact in words, reason).

    ``valid`` is False if something is wrong, None if nothing is wrong and proven facts are left ``unchecked``.
    """

    facts: int
    certificates: int
    sums: int
    recomputed: int
    problems: tuple[Finding, ...]
    unchecked: tuple[Finding, ...]

    @property
    def valid(self) -> bool | None:
        if self.problems:
            return False
        return None if self.unchecked else True

    @property
    def is_positive(self) -> bool | None:
        return self.valid

    def to_json(self) -> dict[str, Any]:
        return {
            "valid": self.valid,
            "claim": f"{self.facts} facts of the store",
            "reason": self.reason,
            **self.select("facts", "certificates", "sums", "recomputed"),
            "problems": [{"fact": fact, "reason": why} for fact, why in self.problems],
            "unchecked": [{"fact": fact, "reason": why} for fact, why in self.unchecked],
        }

    def rows(self) -> Mapping[str, Any]:
        return {
            "facts": f"{self.facts:,}, all digests match",
            "certificates": f"{self.certificates:,} rechecked",
            "sums": f"{self.sums:,} rechecked",
            "recomputed": f"{self.recomputed:,}",
            "unchecked": f"{len(self.unchecked):,} proven facts",
            "reason": self.reason,
        }


def recheck(
    store: FactStore,
    certificates: int | None = None,
    recompute: int = 0,
    seed: int = 0,
    workers: int = 1,
    progress: Callable[[int, int], None] | None = None,
) -> Recheck:
    """Check pages and digests (FormatError if damaged), then every sum, and certificates in ``workers`` processes.

    All certificates are checked, or as many as asked for, chosen at random. Proven facts without certificate are
    computed again from another seed, as far as :data:`RECOMPUTE_SECONDS` allow; what is left is ``unchecked``. So are
    ``recompute`` further facts, chosen at random: an exact answer does not depend on the seed.
    """
    store.check()
    problems: list[Finding] = []
    unchecked: list[Finding] = []
    count = sums = 0
    proofs: list[Task] = []
    others: list[Task] = []
    bare: list[tuple[float, Task]] = []
    for fact in store.facts():
        count += 1
        question = get_question(fact.task.question)
        try:
            contradiction, parts = question.check(fact), question.parts(fact.task)
            cost = 0.0 if parts else question.cost(fact.task)
        except SizeError as error:
            unchecked += [(str(fact.task), str(error))] if fact.result.is_proven else []
            continue
        except (AttnGeomError, AttributeError, KeyError, TypeError, ValueError) as error:
            # Digests show accidents; whoever forges a row can make it anything.
            problems.append((str(fact.task)[:200], f"its task or its answer is malformed: {str(error)[:80]!r}"))
            continue
        problems += [] if contradiction is None else [(str(fact.task), contradiction)]
        if fact.result.certificate is not None:
            proofs.append(fact.task)
        if parts:
            sums += 1
            problems += [(str(fact.task), why) for why in _check_sum(store, fact, parts)]
        elif fact.result.is_proven and fact.result.certificate is None:
            bare.append((cost, fact.task))
        elif recompute:
            others.append(fact.task)
    rng = random.Random(seed)
    proofs = proofs if certificates is None else rng.sample(proofs, min(certificates, len(proofs)))
    found: dict[int, Findings] = {}
    for place, findings in _check_certificates(store, proofs, workers):
        found[place] = findings
        if progress is not None:
            progress(len(found), len(proofs))
    for _, (wrong, unproven) in sorted(found.items()):
        problems += wrong
        unchecked += unproven
    started, recomputed = time.monotonic(), 0
    # Facts that were asked for are computed again whatever they take.
    asked = [(-inf, task) for task in rng.sample(others, min(recompute, len(others)))]
    for cost, task in (*sorted(bare, key=itemgetter(0)), *asked):
        if time.monotonic() - started + cost > RECOMPUTE_SECONDS:
            unchecked.append((str(task), f"proven without certificate; computing it again takes about {cost:.0f} s"))
            continue
        recomputed += 1
        problems += _check_again(store, task, rng.randrange(1, 2**31))
    return Recheck(
        standing="proven" if not problems and not unchecked else "undecided",
        reason=_summarize(problems, unchecked),
        seed=seed,
        facts=count,
        certificates=len(proofs),
        sums=sums,
        recomputed=recomputed,
        problems=tuple(problems),
        unchecked=tuple(unchecked),
    )


def _summarize(problems: list[Finding], unchecked: list[Finding]) -> str:
    if problems:
        return "; ".join(f"{fact}: {why}" for fact, why in problems[:3])
    if unchecked:
        return f"{len(unchecked):,} proven facts could not be rechecked, such as {unchecked[0][0]}: {unchecked[0][1]}"
    return "everything that was checked holds"


def _check_certificates(store: FactStore, tasks: list[Task], workers: int) -> Iterator[tuple[int, Findings]]:
    """For the certificate of each task what was found and its place, in any order."""
    facts = (fact for start in range(0, len(tasks), CHUNK) for fact in store.get(tasks[start : start + CHUNK]))
    numbered = enumerate(facts)
    batches = iter(lambda: list(islice(numbered, BATCH)), [])
    yield from chain.from_iterable(
        map(_check_batch, batches) if workers == 1 else run_apart(_check_batch, batches, workers)
    )


def _check_batch(batch: list[tuple[int, Fact]]) -> list[tuple[int, Findings]]:
    return [(place, check_certificate(fact)) for place, fact in batch]


def check_certificate(fact: Fact) -> Findings:
    """What is wrong with the certificate of a fact, refused or about something else; and whether it is out of reach."""
    name = str(fact.task)
    certificate, expected = fact.result.certificate, get_question(fact.task.question).claim(fact)
    assert certificate is not None
    if expected is None:
        return [(name, f"certificates prove no answers to the question {fact.task.question!r}")], []
    verdict = verify(certificate)
    if verdict.valid is None:
        return [], [(name, verdict.reason)]
    if not verdict.valid:
        return [(name, f"certificate refused: {verdict.reason}")], []
    claim = certificate["claim"]
    wrong = [key for key in expected if _meant(key, claim.get(key)) != _meant(key, expected[key])][:1]
    if not wrong and fact.result.is_proven and verdict.standing == "probabilistic":
        return [], [(name, "its certificate leaves a probability of error, and its evidence claims a proof")]
    return [(name, f"the certificate is about another {key}, {str(claim.get(key))[:80]}") for key in wrong], []


def _meant(key: str, value: Any) -> Any:
    """What a part of a claim says: fields of an architecture that are left out have their usual values."""
    return Architecture.from_json(value) if key == "architecture" and value is not None else value


def _check_sum(store: FactStore, fact: Fact, parts: tuple[Task, ...]) -> list[str]:
    found = store.get(parts)
    if len(found) < len(parts):
        return [f"{len(parts) - len(found)} of its {len(parts)} parts are missing"]
    again = get_question(fact.task.question).combine(fact.task, found)
    if again.answer != fact.result.answer:
        return ["its parts give another answer"]
    return [] if again.evidence == fact.result.evidence else [f"its parts give the evidence {again.evidence!r}"]


def _check_again(store: FactStore, task: Task, seed: int) -> list[Finding]:
    (fact,) = store.get([task])
    outcome = answer(replace(task, seed=seed))
    if "reason" in outcome:
        return [(str(task), f"computing it again failed: {outcome['detail']}")]
    if outcome["answer"] != fact.result.answer:
        return [(str(task), f"seed {seed} gives {str(outcome['answer'])[:200]}")]
    if fact.result.is_proven and outcome["evidence"] != fact.result.evidence:
        return [(str(task), f"seed {seed} gives the evidence {outcome['evidence']!r}")]
    return []
