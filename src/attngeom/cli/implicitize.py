"""``attngeom implicitize``: all equations of an attention variety, degree by degree."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.progress import Progress, TaskID

from attngeom.cli.app import EXIT_UNDECIDED
from attngeom.cli.options import Causal, Heads, Json, Residual, Seed, ValueWidth, file_option, flag
from attngeom.cli.output import print_json, print_table, print_text, progress
from attngeom.equations import Variety
from attngeom.equations.ideal import CompletenessResult, IdealSummary, Limits, implicitize
from attngeom.equations.ideal.degrees import Method
from attngeom.equations.ideal.export import find_system, write_generators
from attngeom.equations.ideal.limits import OverBudget
from attngeom.errors import InputError

MAX_SIZE = 10**6
"""No variety of this size is computed; larger numbers are refused as options."""
NOT_WRITTEN = "No generators were written: the budget ended before"

D = Annotated[int, typer.Option("--d", min=1, max=MAX_SIZE, help="Embedding width d.")]
A = Annotated[int, typer.Option("--a", min=1, max=MAX_SIZE, help="Attention width a.")]
Targets = Annotated[
    int | None, typer.Option("--targets", min=1, max=MAX_SIZE, help="Number of target directions (d by default).")
]
DOut = Annotated[int, typer.Option("--d-out", min=1, max=MAX_SIZE, help="Output rows d'.")]
Tokens = Annotated[
    int | None,
    typer.Option(
        "--tokens", min=1, max=MAX_SIZE, help="Use all coefficients of t tokens; 1 gives the single-column variety."
    ),
]
MaxDegree = Annotated[int, typer.Option("--max-degree", min=1, max=MAX_SIZE, help="Largest degree of the equations.")]
MethodName = Annotated[
    str | None, typer.Option("--method", help="weights or highest; by default highest where it applies.")
]
Generators = Annotated[Path | None, file_option("--generators", "Write the minimal generators; .json, .m2 or .sing.")]
HighestOnly = Annotated[bool, flag("--highest-only", "With --generators: one highest weight vector for each module.")]
Seconds = Annotated[float | None, typer.Option("--max-seconds", min=0, help="Stop after this wall time (exit code 3).")]
Megabytes = Annotated[
    float | None, typer.Option("--max-megabytes", min=0, help="Take no more memory than this (exit code 3).")
]
State = Annotated[Path | None, file_option("--state", "Keep results of single weights here and resume from them.")]
Families = Annotated[bool, typer.Option("--families/--no-families", help="Compare with the families of invariants.")]
Prove = Annotated[bool, flag("--prove", "Verify the generators by substitution, which proves the dimensions.")]
Complete = Annotated[
    bool, flag("--complete", "All minimal generators in all degrees, by theorem (one row, one head, t ≥ 2).")
]
Check = Annotated[
    bool | None,
    typer.Option(
        "--check/--no-check",
        help="--no-check: no second prime for what is not proven. --complete --check: repeat the finite runs.",
    ),
]


def implicitize_command(
    d: D,
    a: A,
    max_degree: MaxDegree,
    targets: Targets = None,
    d_out: DOut = 1,
    tokens: Tokens = None,
    heads: Heads = 1,
    value_width: ValueWidth = None,
    causal: Causal = False,
    residual: Residual = False,
    method: MethodName = None,
    generators: Generators = None,
    highest_only: HighestOnly = False,
    max_seconds: Seconds = None,
    max_megabytes: Megabytes = None,
    state: State = None,
    families: Families = True,
    prove: Prove = False,
    complete: Complete = False,
    check: Check = None,
    json: Json = False,
    seed: Seed = 0,
) -> int:
    """All equations of degree ≤ N on the attention variety: Hilbert function, minimal generators, modules."""
    if tokens is None and (causal or residual):
        raise InputError("--causal or --residual given without --tokens; the number of tokens is required")
    if tokens is not None and targets is not None:
        raise InputError("--targets given with --tokens; a network has as many targets as its width")
    variety = Variety(d, a, tokens, d_out, targets, heads, value_width, causal, residual)
    if generators is not None:
        find_system(generators)
    budget = Limits(max_seconds, max_megabytes)
    with progress() as bar:
        summary = implicitize(
            variety,
            max_degree,
            check_method(method),
            families=families,
            vectors=generators is not None,
            prove=prove,
            complete=complete,
            check=check,
            seed=seed,
            budget=budget,
            progress=ProgressBar(bar),
            state=state,
        )
    written = None if generators is None else write(generators, summary, not highest_only, budget)
    if json:
        print_json(summary.to_json())
    else:
        print_summary(summary)
        if written is not None:
            print_text(written)
    return EXIT_UNDECIDED if summary.standing == "undecided" or written == NOT_WRITTEN else 0


def write(path: Path, summary: IdealSummary, whole: bool, budget: Limits) -> str:
    """Write the generators that were found, and say how much that is."""
    if summary.vectors is None:
        return NOT_WRITTEN
    try:
        with budget.hold():
            count, size = write_generators(path, summary.variety, summary.vectors, whole)
    except OverBudget:
        return NOT_WRITTEN
    return f"{count:,} generators written to {path} ({size / 10**6:,.1f} MB)"


def check_method(method: str | None) -> Method | None:
    """The method as a typed value."""
    if method is None or method in ("weights", "highest"):
        return method  # type: ignore[return-value]
    raise InputError(f"--method {method[:40]!r} given; weights or highest is required")


class ProgressBar:
    """One bar for each degree, advanced by each weight."""

    def __init__(self, bar: Progress) -> None:
        self.bar = bar
        self.tasks: dict[int, TaskID] = {}

    def __call__(self, degree: int, done: int, total: int) -> None:
        if degree not in self.tasks:
            self.tasks[degree] = self.bar.add_task(f"degree {degree}, weights", total=total)
        self.bar.update(self.tasks[degree], completed=done)


def print_summary(summary: IdealSummary) -> None:
    """The degrees as a table, then their modules, and what is known of all degrees."""
    print_text(summary.rows()["ideal"])
    rows = []
    for degree in summary.degrees:
        counts = [degree.degree, degree.monomials, degree.hilbert_function, degree.ideal_dimension]
        explained = "" if degree.from_families is None else degree.from_families
        evidence = degree.standing if degree.standing == "proven" else f"error < {max(degree.error_bound, 1e-9):.0e}"
        expected = (degree.hilbert_function, degree.minimal_generators)
        formula = "" if degree.formula is None else "agrees" if degree.formula == expected else "differs"
        rows.append([*counts, degree.minimal_generators, formula, explained, evidence])
    print_table(("degree", "monomials", "HF", "dim I", "new", "formula", "families", "evidence"), rows)
    for degree in summary.degrees:
        if degree.modules:
            modules = " + ".join(f"{module} ({module.dimension})" for module in degree.modules)
            print_text(f"degree {degree.degree}: {modules}")
        for shapes, text in degree.unexplained:
            print_text(f"degree {degree.degree}: no family explains {shapes}: {text}")
    print_text(f"primes {', '.join(map(str, summary.primes))}, seed {summary.seed}")
    if summary.completeness is not None:
        print_completeness(summary.completeness)
    if not summary.is_finished:
        print_text(f"Stopped in {summary.stopped}. Only complete degrees are shown.")


def print_completeness(found: CompletenessResult) -> None:
    """One sentence about all degrees, and one about the check."""
    shown = found.rows()
    if not found.modules:
        print_text(shown["generators"])
        return
    print_text(f"The ideal is generated {shown['generators']} ({found.reason.split(':')[0]}).")
    print_text(f"All minimal generators: {shown['modules']}; {shown['variety']}.")
    if "check" in shown:
        print_text(f"Finite check beside the theorem: {shown['check']}.")
