"""Rechecking a store: its pages, the digest of each row, and every field of every fact, or it is counted as unchecked.

A field is checked if it follows from the task, if the certificate covers it, if the fact is the sum of checked parts,
or if the fact is computed again from another seed. Prime, version and CPU seconds say how a fact was found; they are
not counted.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from operator import itemgetter
from typing import Any

from attngeom.atlas.children import Budget, run_batch
from attngeom.atlas.executors import local_executor
from attngeom.atlas.questions import get_question
from attngeom.atlas.records import Fact, Task
from attngeom.atlas.store import FactStore
from attngeom.errors import AttnGeomError, InputError, SizeError
from attngeom.limits.memory import FACTS_READ, FACTS_RECHECKED, RECOMPUTE_MEGABYTES
from attngeom.limits.seconds import RECOMPUTE_SECONDS
from attngeom.network.architecture import Architecture
from attngeom.processes import run_apart
from attngeom.results import Result, Standing, draw_entropy
from attngeom.verification import verify

LOST = ("time", "memory", "crash", "lost")
"""Why a fact that is computed again may have no answer without being wrong."""
Finding = tuple[str, str]


@dataclass(frozen=True)
class Unchecked:
    """Fields of a fact, named in words, that nothing checked, and why."""

    fact: str
    fields: tuple[str, ...]
    reason: str

    def to_json(self) -> dict[str, Any]:
        return {"fact": self.fact, "fields": list(self.fields), "reason": self.reason}


@dataclass(frozen=True, kw_only=True, eq=False)
class Recheck(Result):
    """What was checked, what is wrong, as pairs (fact in words, reason), and which fields nothing could check.

    ``valid`` is False if something is wrong, None if nothing is wrong and fields are left ``unchecked``.
    """

    facts: int
    certificates: int
    sums: int
    recomputed: int
    problems: tuple[Finding, ...]
    unchecked: tuple[Unchecked, ...]

    @property
    def valid(self) -> bool | None:
        if self.problems:
            return False
        return None if self.unchecked else True

    @property
    def is_positive(self) -> bool | None:
        return self.valid

    @property
    def unchecked_fields(self) -> int:
        """How many fields nothing checked, of all facts together."""
        return sum(len(each.fields) for each in self.unchecked)

    def to_json(self) -> dict[str, Any]:
        return {
            "valid": self.valid,
            "claim": f"{self.facts} facts of the store",
            **self.select("standing", "reason"),
            **self.select("facts", "certificates", "sums", "recomputed"),
            "unchecked_facts": len(self.unchecked),
            "unchecked_fields": self.unchecked_fields,
            "seed": self.seed,
            "problems": [{"fact": fact, "reason": why} for fact, why in self.problems],
            "unchecked": [each.to_json() for each in self.unchecked],
        }

    def rows(self) -> Mapping[str, Any]:
        return {
            "facts": f"{self.facts:,}, all digests match",
            "certificates": f"{self.certificates:,} rechecked",
            "sums": f"{self.sums:,} rechecked",
            "recomputed": f"{self.recomputed:,} from another seed",
            "not checked": f"{self.unchecked_fields:,} fields of {len(self.unchecked):,} facts",
            "reason": self.reason,
        }


@dataclass
class _Ledger:
    """What is known of the facts so far: what is wrong, and the fields that wait for somebody to check them."""

    names: dict[str, str] = field(default_factory=dict)
    waiting: dict[str, set[str]] = field(default_factory=dict)
    reasons: dict[str, str] = field(default_factory=dict)
    problems: list[Finding] = field(default_factory=list)
    rests: dict[str, Mapping[str, str]] = field(default_factory=dict)

    def open(self, fact: Fact) -> None:
        self.names[fact.task.key] = str(fact.task)[:200]
        self.waiting[fact.task.key] = {*fact.result.answer, "evidence"}

    def wrong(self, key: str, *reasons: str) -> None:
        self.problems += [(self.names[key], reason) for reason in reasons]

    def leave(self, key: str, reason: str) -> None:
        """Say why what still waits is not checked."""
        self.reasons[key] = reason

    def compare(self, fact: Fact, again: Mapping[str, Any], how: str) -> None:
        """Hold the fields of a fact to those that were computed again."""
        key, question = fact.task.key, get_question(fact.task.question)
        for name in again:
            verdict = question.confirm(fact, name, again)
            if verdict is None:
                self.leave(key, f"version {fact.version[:40]} answered otherwise, and {how} does not tell who is right")
                continue
            self.waiting[key].discard(name)
            if not verdict:
                self.wrong(key, f"{how} gives another {name}, {str(again[name])[:200]}")

    def unchecked(self) -> tuple[Unchecked, ...]:
        """Facts with fields that nothing checked, or that rest on such a field."""
        rows = []
        for key, fields in self.waiting.items():
            if fields:
                names = sorted(fields | {name for name, other in self.rests.get(key, {}).items() if other in fields})
                rows.append(Unchecked(self.names[key], tuple(names), self.reasons.get(key, "not looked at")))
        return tuple(rows)


def recheck(
    store: FactStore,
    certificates: int | None = None,
    recompute: int = 0,
    seed: int | None = None,
    workers: int = 1,
    progress: Callable[[int, int], None] | None = None,
    seconds: float = RECOMPUTE_SECONDS,
) -> Recheck:
    """Check pages and digests (FormatError if damaged), then every field of every fact that can be checked.

    All certificates are checked, or as many as asked for, chosen at random. Facts without certificate are computed
    again from another seed, the cheapest first, for so many ``seconds``; so are ``recompute`` further facts, chosen at
    random, whatever they take. Random choices come from entropy of this run, which the result names: nobody who writes
    a store can aim at them. ``seed`` repeats a run. The work is done by ``workers`` processes.
    """
    store.check()
    seed = draw_entropy() if seed is None else seed
    rng = random.Random(seed)
    ledger = _Ledger()
    proofs: list[Task] = []
    costs: list[tuple[float, Task]] = []
    sums: dict[str, tuple[list[str], set[str]]] = {}
    count, is_exact = 0, True
    for fact in store.facts():
        count += 1
        is_exact = is_exact and fact.result.evidence == "proven"
        ledger.open(fact)
        try:
            question = get_question(fact.task.question)
        except InputError as error:
            ledger.leave(fact.task.key, str(error))
            continue
        ledger.rests[fact.task.key] = question.rests_on
        try:
            parts = _look(fact, ledger)
            cost = 0.0 if parts else question.cost(fact.task)
        except SizeError as error:
            ledger.leave(fact.task.key, str(error))
            continue
        except (AttnGeomError, AttributeError, KeyError, TypeError, ValueError) as error:
            # Digests show accidents; whoever forges a row can make it anything.
            ledger.wrong(fact.task.key, f"its task or its answer is malformed: {str(error)[:80]!r}")
            continue
        if parts:
            sums[fact.task.key] = [part.key for part in parts], set(ledger.waiting[fact.task.key])
            _check_sum(store, fact, parts, ledger)
        elif fact.result.certificate is not None:
            proofs.append(fact.task)
        else:
            costs.append((cost, fact.task))
    chosen = proofs if certificates is None else rng.sample(proofs, min(certificates, len(proofs)))
    for done, (fact, outcome) in enumerate(_check_certificates(store, chosen, workers), 1):
        _enter(fact, outcome, ledger)
        if progress is not None:
            progress(done, len(chosen))
    keys = {task.key for task in chosen}
    for task in proofs:
        if task.key not in keys:
            ledger.leave(task.key, "its certificate is not in the sample that was asked for")
    affordable = _affordable(sorted(costs, key=itemgetter(0)), seconds, workers, ledger)
    keys = {task.key for task in affordable}
    rest = [task for task in (*proofs, *(task for _, task in costs)) if task.key not in keys]
    asked = rng.sample(rest, min(recompute, len(rest)))
    _compute_again(store, affordable, asked, rng.randrange(1, 2**31), seconds, workers, ledger)
    for key, (parts_of, fields) in sums.items():
        doubtful = [part for part in parts_of if ledger.waiting.get(part)]
        if doubtful:
            ledger.waiting[key] |= fields
            ledger.leave(key, f"{len(doubtful):,} of its {len(parts_of):,} parts are not checked")
    unchecked = ledger.unchecked()
    strength: Standing = "proven" if is_exact else "probabilistic"
    return Recheck(
        standing="undecided" if ledger.problems or unchecked else strength,
        reason=_summarize(ledger.problems, unchecked),
        seed=seed,
        facts=count,
        certificates=len(chosen),
        sums=len(sums),
        recomputed=len(affordable) + len(asked),
        problems=tuple(ledger.problems),
        unchecked=unchecked,
    )


def _summarize(problems: list[Finding], unchecked: tuple[Unchecked, ...]) -> str:
    if problems:
        return "; ".join(f"{fact}: {why}" for fact, why in problems[:3])
    if unchecked:
        first, fields = unchecked[0], sum(len(each.fields) for each in unchecked)
        return f"{fields:,} fields of {len(unchecked):,} facts were not checked, such as {first.fact}: {first.reason}"
    return "everything holds"


def _look(fact: Fact, ledger: _Ledger) -> tuple[Task, ...]:
    """Check what follows from the task and from the fact itself; its parts, if it is a sum."""
    question = get_question(fact.task.question)
    contradiction, parts = question.check(fact), question.parts(fact.task)
    if contradiction is not None:
        ledger.wrong(fact.task.key, contradiction)
    ledger.compare(fact, question.derive(fact), "counting")
    return parts


def _check_sum(store: FactStore, fact: Fact, parts: tuple[Task, ...], ledger: _Ledger) -> None:
    facts, key = store.get(parts), fact.task.key
    if len(facts) < len(parts):
        ledger.wrong(key, f"{len(parts) - len(facts)} of its {len(parts)} parts are missing")
        return
    again = get_question(fact.task.question).combine(fact.task, facts)
    ledger.waiting[key].clear()
    if again.answer != fact.result.answer:
        ledger.wrong(key, "its parts give another answer")
    elif again.evidence != fact.result.evidence:
        ledger.wrong(key, f"its parts give the evidence {again.evidence!r}")


def _check_certificates(store: FactStore, tasks: list[Task], workers: int) -> Iterator[tuple[Fact, Finding]]:
    """Each fact with what its certificate is found to be, in any order."""
    facts = (
        fact for start in range(0, len(tasks), FACTS_READ) for fact in store.get(tasks[start : start + FACTS_READ])
    )
    batches = iter(lambda: list(islice(facts, FACTS_RECHECKED)), [])
    yield from chain.from_iterable(
        map(_check_batch, batches) if workers == 1 else run_apart(_check_batch, batches, workers)
    )


def _check_batch(batch: list[Fact]) -> list[tuple[Fact, Finding]]:
    return [(fact, check_certificate(fact)) for fact in batch]


def check_certificate(fact: Fact) -> Finding:
    """The certificate of a fact is "right", "wrong" or "open", and why."""
    certificate, expected = fact.result.certificate, get_question(fact.task.question).claim(fact)
    assert certificate is not None
    if expected is None:
        return "wrong", f"certificates prove no answers to the question {fact.task.question!r}"
    verdict = verify(certificate)
    if verdict.valid is None:
        return "open", verdict.reason
    if not verdict.valid:
        return "wrong", f"certificate refused: {verdict.reason}"
    claim = certificate["claim"]
    for key in expected:
        if _meant(key, claim.get(key)) != _meant(key, expected[key]):
            return "wrong", f"the certificate is about another {key}, {str(claim.get(key))[:80]}"
    if verdict.standing == "probabilistic":
        return "open", "its certificate leaves a probability of error, and its evidence claims a proof"
    if fact.result.evidence != "proven":
        return "wrong", f"its certificate is a proof, and its evidence is {fact.result.evidence!r}"
    return "right", verdict.reason


def _meant(key: str, value: Any) -> Any:
    """What a part of a claim says: fields of an architecture that are left out have their usual values."""
    return Architecture.from_json(value) if key == "architecture" and value is not None else value


def _enter(fact: Fact, outcome: Finding, ledger: _Ledger) -> None:
    key, (verdict, why) = fact.task.key, outcome
    if verdict == "right":
        ledger.waiting[key] -= {*get_question(fact.task.question).certified(fact), "evidence"}
    elif verdict == "wrong":
        ledger.wrong(key, why)
    else:
        ledger.leave(key, why)


def _affordable(costs: list[tuple[float, Task]], seconds: float, workers: int, ledger: _Ledger) -> list[Task]:
    """The tasks that can be computed again within the time, by their estimated costs."""
    tasks_within, total = [], 0.0
    for cost, task in costs:
        total += cost / workers
        if total <= seconds:
            tasks_within.append(task)
        else:
            ledger.leave(task.key, f"computing it again takes about {cost:.3g} s, and {seconds:g} s are for all")
    return tasks_within


def _compute_again(
    store: FactStore, tasks: list[Task], asked: list[Task], seed: int, seconds: float, workers: int, ledger: _Ledger
) -> None:
    """Run tasks from another seed in killable processes, the asked ones without limit of time, and compare."""
    if not tasks and not asked:
        return
    ends = time.monotonic() + seconds
    with local_executor(workers) as (executor, _):
        # One seed for all of them: neighbours share work, as in a sweep.
        for each, is_asked in ((tasks, False), (asked, True)):
            batches = [each[start : start + FACTS_RECHECKED] for start in range(0, len(each), FACTS_RECHECKED)]
            limits = Budget(None if is_asked else max(seconds, 1.0), RECOMPUTE_MEGABYTES)
            lines = ([replace(task, seed=_other(seed, task)).to_line() for task in batch] for batch in batches)
            futures = [executor.submit(run_batch, batch, limits.seconds, limits.megabytes) for batch in lines]
            for batch, future in zip(batches, futures):
                if not is_asked and time.monotonic() > ends and future.cancel():
                    for task in batch:
                        ledger.leave(task.key, f"the {seconds:g} s for computing facts again were over")
                    continue
                for task, outcome in zip(batch, future.result()):
                    _compare_again(store, task, _other(seed, task), outcome, ledger)


def _other(seed: int, task: Task) -> int:
    return seed + 1 if seed == task.seed else seed


def _compare_again(store: FactStore, task: Task, seed: int, outcome: Mapping[str, Any], ledger: _Ledger) -> None:
    (fact,) = store.get([task])
    if outcome.get("reason") in LOST:
        ledger.leave(task.key, f"computing it again failed: {outcome['detail']}")
    elif "reason" in outcome:
        ledger.wrong(task.key, f"computing it again failed: {outcome['detail']}")
    elif set(outcome["answer"]) != set(fact.result.answer):
        ledger.wrong(task.key, f"seed {seed} gives {str(outcome['answer'])[:200]}")
    else:
        ledger.compare(fact, {**outcome["answer"], "evidence": outcome["evidence"]}, f"seed {seed}")
