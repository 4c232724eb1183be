"""All equations of an attention variety, degree by degree: what ``attngeom implicitize`` does."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from attngeom.equations.ideal.completeness import check_complete, check_reach, complete_variety
from attngeom.equations.ideal.degrees import Method, OnWeight, Run, has_theory
from attngeom.equations.ideal.generators import generator_vectors, prove_dimensions
from attngeom.equations.ideal.ledger import with_families
from attngeom.equations.ideal.limits import Limits, OverBudget
from attngeom.equations.ideal.records import IdealSummary
from attngeom.equations.variety import Variety
from attngeom.errors import InputError
from attngeom.exact.numbers import WORD_PRIME
from attngeom.processes import check_workers
from attngeom.results import Standing

SECOND_PRIME = 2147483587
"""The next prime below :data:`WORD_PRIME`: a second, independent run of everything that is not proven."""


def implicitize(
    variety: Variety,
    max_degree: int,
    method: Method | None = None,
    *,
    families: bool = True,
    vectors: bool = False,
    prove: bool = False,
    complete: bool = False,
    check: bool | None = None,
    seed: int = 0,
    budget: Limits | None = None,
    progress: OnWeight | None = None,
    state: str | Path | None = None,
    workers: int = 1,
) -> IdealSummary:
    """All equations of degree ≤ max_degree on the variety: dimensions, minimal generators and their modules.

    ``families`` compares with the families of invariants (t ≥ 2, one row, one head). ``vectors`` lifts a highest weight
    vector of each module to Z, ``prove`` uses them to prove dimensions. ``complete`` adds all degrees: Theorems 6, 7.
    Every degree that is not proven is computed again with a second prime, unless ``check`` is False; a difference
    raises ArithmeticError. With ``check`` True, ``complete`` repeats the finite runs too, in ``workers`` processes.
    What a budget ends is left out, and ``stopped`` says so; with ``state``, a file, a later run goes on from there.

    >>> print(implicitize(Variety(2, 2), 4).degrees[-1].modules[0])
    S_44⊗S_22
    """
    listed = complete_variety(variety) if complete else None
    if complete and check and not has_theory(variety):
        raise InputError("--complete --check given; it is for one row and one head, without --tokens: leave one out")
    check_workers(workers)
    if workers > 1 and not (complete and check):
        raise InputError(f"{workers} workers given; they share the finite check: add --complete --check, or take 1")
    limits = budget or Limits()
    run = Run(variety, max_degree, method, seed=seed, limits=limits, progress=progress, state=state)
    if complete and check:
        check_reach(variety.d, variety.a, variety.num_targets)
    degrees = run.degrees()
    summary = IdealSummary(
        standing="undecided",
        reason="",
        seed=run.seed,
        variety=variety,
        method=run.method,
        primes=(run.prime,),
        degrees=degrees,
        stopped=run.stopped,
    )
    if check is not False and run.stopped is None:
        summary = _repeat(summary, method, limits, progress)
    try:
        with limits.hold():
            summary = _with_generators(summary, families, vectors, prove)
    except OverBudget as reason:
        summary = replace(summary, stopped=summary.stopped or f"generators: {reason}")
    if listed is not None and check:
        sizes = (variety.d, variety.a, variety.num_targets)
        listed = check_complete(*sizes, seed=seed, limits=limits, progress=progress, run=run, workers=workers)
    summary = replace(summary, completeness=listed)
    standing, why = _conclude(summary)
    return replace(summary, standing=standing, reason=why)


def _repeat(summary: IdealSummary, method: Method | None, limits: Limits, progress: OnWeight | None) -> IdealSummary:
    """The summary after a second run, with another prime, up to the last degree that is not proven."""
    unproven = [d.degree for d in summary.degrees if d.standing != "proven"]
    if not unproven:
        return summary
    seed = 0 if summary.seed is None else summary.seed
    again = Run(summary.variety, max(unproven), method, prime=SECOND_PRIME, seed=seed, limits=limits, progress=progress)
    for ours, theirs in zip(summary.degrees, again.degrees()):
        if (ours.hilbert_function, ours.modules) != (theirs.hilbert_function, theirs.modules):
            raise InputError(
                f"degree {ours.degree}: results mod {WORD_PRIME} and mod {SECOND_PRIME} differ; give another --seed,"
                " and remove the file of --state if one was given"
            )
    stopped = None if again.stopped is None else f"second prime, {again.stopped}"
    return replace(summary, primes=(WORD_PRIME, SECOND_PRIME), stopped=stopped)


def _with_generators(summary: IdealSummary, families: bool, vectors: bool, prove: bool) -> IdealSummary:
    """The summary with highest weight vectors, which are lifted once for all who need them."""
    compares = families and has_theory(summary.variety)
    if not (compares or vectors or prove):
        return summary
    generators = generator_vectors(summary.variety, summary.degrees, seed=summary.seed or 0)
    summary = replace(summary, vectors=tuple(generators))
    if compares:
        summary = replace(summary, degrees=with_families(summary.variety, summary.degrees, generators))
    if vectors or prove:
        summary = replace(summary, degrees=prove_dimensions(summary.degrees, generators))
    return summary


def _conclude(summary: IdealSummary) -> tuple[Standing, str]:
    if summary.stopped is not None:
        return "undecided", f"stopped, {summary.stopped}"
    if summary.completeness is not None and not summary.completeness.is_checked:
        return "undecided", "the check of completeness was not finished"
    if all(d.standing == "proven" for d in summary.degrees):
        return "proven", "every module was decided over Q"
    error = max(d.error_bound for d in summary.degrees)
    primes = ", ".join(map(str, summary.primes))
    return "probabilistic", f"ranks at random points mod {primes}; error at most {error:.0e}"
