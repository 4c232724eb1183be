"""``attngeom implicitize``: all equations of an attention variety, degree by degree."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer
from rich.progress import Progress, TaskID
from rich.table import Table

from attngeom.cli.app import EXIT_UNDECIDED
from attngeom.cli.options import Causal, Heads, Json, Residual, Seed, ValueWidth, file_option, flag
from attngeom.cli.output import console, print_json, progress
from attngeom.equations.ideal import Budget, CrossColumn, IdealSummary, LayerCoefficients, Model, implicitize
from attngeom.equations.ideal.completeness import check_reach, prove_complete
from attngeom.equations.ideal.degrees import Method, choose_method
from attngeom.equations.ideal.export import FORMATS, write_generators
from attngeom.equations.ideal.generators import minimal_generators, prove_dimensions
from attngeom.equations.ideal.ledger import with_families
from attngeom.equations.ideal.records import Completeness
from attngeom.errors import InputError

MAX_SIZE = 10**6
"""No variety of this size is computed; larger numbers are refused as options."""

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
    float | None, typer.Option("--max-megabytes", min=0, help="Refuse a weight that needs more memory (exit code 3).")
]
State = Annotated[Path | None, file_option("--state", "Keep results of single weights here and resume from them.")]
Families = Annotated[bool, typer.Option("--families/--no-families", help="Compare with the families of invariants.")]
Prove = Annotated[bool, flag("--prove", "Verify the generators by substitution, which proves the dimensions.")]
Complete = Annotated[
    bool,
    flag("--complete", "Prove that no generator is missing, in all degrees (one row, one head, t ≥ 2)."),
]
Check = Annotated[bool, typer.Option("--check/--no-check", help="Repeat with a second prime what is not proven.")]


def choose_model(
    d: int,
    a: int,
    targets: int | None,
    d_out: int,
    tokens: int | None,
    heads: int,
    value_width: int | None,
    causal: bool,
    residual: bool,
) -> Model:
    """The model that the options describe: cross-column coordinates, or all coefficients if tokens are given."""
    if tokens is None:
        if causal or residual:
            raise InputError("--causal or --residual given without --tokens; the number of tokens is required")
        return CrossColumn(d, a, targets, d_out, heads, value_width)
    if targets is not None:
        raise InputError("--targets given with --tokens; a network has as many targets as its width")
    return LayerCoefficients(d, a, tokens, d_out, heads, value_width, causal, residual)


def register(app: typer.Typer) -> None:
    @app.command("implicitize")
    def command(
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
        check: Check = True,
        json: Json = False,
        seed: Seed = 0,
    ) -> int:
        """All equations of degree ≤ N on the attention variety: Hilbert function, minimal generators, modules."""
        model = choose_model(d, a, targets, d_out, tokens, heads, value_width, causal, residual)
        if generators is not None and generators.suffix not in FORMATS:
            raise InputError(f"--generators {generators.name!r} given; an ending .json, .m2 or .sing is required")
        if complete:
            if choose_method(model) != "highest" or not isinstance(model, CrossColumn):
                raise InputError("--complete given; it needs one output row, one head and no --tokens; leave it out")
            check_reach(model.d, model.a, model.num_targets)
        budget = Budget(max_seconds, max_megabytes)
        with progress() as bar:
            summary = implicitize(model, max_degree, check_method(method), seed, budget, ProgressBar(bar), state, check)
        if families and isinstance(model, CrossColumn) and choose_method(model) == "highest":
            summary = with_families(model, summary)
        if generators is not None or prove:
            vectors = minimal_generators(model, summary)
            summary = prove_dimensions(summary, vectors)
            if generators is not None:
                write_generators(generators, model, vectors, whole=not highest_only)
        if complete and isinstance(model, CrossColumn):
            with progress() as bar:
                found = prove_complete(model.d, model.a, model.num_targets, seed, ProgressBar(bar), budget)
            summary = replace(summary, completeness=found)
        if json:
            print_json(summary.to_json())
        else:
            print_summary(summary)
        undecided = not summary.is_finished or (summary.completeness and not summary.completeness.is_proven)
        return EXIT_UNDECIDED if undecided else 0


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
    """The degrees as a table."""
    parameters = ", ".join(f"{key}={value}" for key, value in summary.parameters.items() if value not in (None, False))
    table = Table(title=f"{summary.model}: {parameters}; method {summary.method}", title_justify="left", box=None)
    for column in ("degree", "monomials", "HF", "dim I", "new", "formula", "families", "evidence"):
        table.add_column(column, justify="right")
    for degree in summary.degrees:
        counts = [degree.degree, degree.monomials, degree.hilbert_function, degree.ideal_dimension]
        explained = "" if degree.from_families is None else str(degree.from_families)
        proven = degree.is_dimension_proven and degree.is_generation_proven
        evidence = "proven" if proven else f"error < {max(degree.error_bound, 1e-9):.0e}"
        expected = (degree.hilbert_function, degree.minimal_generators)
        formula = "" if degree.formula is None else "agrees" if degree.formula == expected else "differs"
        table.add_row(*map(str, counts), str(degree.minimal_generators), formula, explained, evidence)
    console().print(table)
    for degree in summary.degrees:
        if degree.modules:
            modules = " + ".join(f"{module} ({module.dimension})" for module in degree.modules)
            console().print(f"degree {degree.degree}: {modules}")
        for shapes, text in degree.unexplained:
            console().print(f"degree {degree.degree}: no family explains {shapes}: {text}")
    console().print(f"primes {', '.join(map(str, summary.primes))}, seed {summary.seed}")
    if summary.completeness is not None:
        console().print(describe_completeness(summary.completeness))
    if not summary.is_finished:
        console().print("The budget ended the run; only complete degrees are shown.")


def describe_completeness(found: Completeness) -> str:
    """One sentence about all degrees."""
    if found.degree == 0:
        return "The ideal is zero: there are no equations."
    count = sum(modules for _, modules in found.checked)
    evidence = f"no generator has a degree above {found.bound}; {count} modules checked in degrees 5 and more"
    if found.new:
        extra = ", ".join(f"S_{lam} ⊗ S_{mu} in degree {degree}" for degree, (lam, mu), _ in found.new)
        return f"Not generated in degree {found.degree}: new generators {extra} ({evidence})."
    if not found.is_proven:
        return f"Not decided whether degree {found.degree} generates the ideal: give more time or memory ({evidence})."
    return f"The ideal is generated in degrees ≤ {found.degree}: proven ({evidence})."
