"""``attngeom implicitize``: all equations of an attention variety, degree by degree."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, get_args

import typer
from rich.progress import Progress, TaskID

from attngeom.cli.app import EXIT_UNDECIDED
from attngeom.cli.options import (
    MASK,
    Heads,
    Json,
    Masked,
    Residual,
    Seed,
    ValueWidth,
    check_choice,
    choice_option,
    file_option,
    flag,
    parse_list,
)
from attngeom.cli.output import print_answer, progress, prose, table
from attngeom.equations import Variety
from attngeom.equations.ideal import CompletenessResult, IdealSummary, Limits, implicitize
from attngeom.equations.ideal.certificate import certify_complete
from attngeom.equations.ideal.degrees import Method
from attngeom.equations.ideal.export import FORMATS, find_system, write_generators
from attngeom.equations.ideal.limits import OverBudget
from attngeom.errors import InputError
from attngeom.limits.sizes import VARIETY_SIZE
from attngeom.verification import write_certificate

METHODS: tuple[Method, ...] = get_args(Method)
TOKENS = "Use all coefficients of t tokens; 1 gives the single-column variety."
HIDDEN = "Widths between layers of a deep network of one head; for one token, or t ≥ d without --tokens."
CHECK = "--no-check: no second prime for what is not proven. --complete --check: repeat the finite runs."


def implicitize_command(
    d: Annotated[int, typer.Option("--d", min=1, max=VARIETY_SIZE, help="Embedding width d.")],
    a: Annotated[int, typer.Option("--a", min=1, max=VARIETY_SIZE, help="Attention width a.")],
    max_degree: Annotated[
        int, typer.Option("--max-degree", min=1, max=VARIETY_SIZE, help="Largest degree of the equations.")
    ],
    targets: Annotated[
        int | None,
        typer.Option("--targets", min=1, max=VARIETY_SIZE, help="Number of target directions (d by default)."),
    ] = None,
    d_out: Annotated[int, typer.Option("--d-out", min=1, max=VARIETY_SIZE, help="Output rows d'.")] = 1,
    tokens: Annotated[int | None, typer.Option("--tokens", min=1, max=VARIETY_SIZE, help=TOKENS)] = None,
    heads: Heads = 1,
    value_width: ValueWidth = None,
    masked: Masked = False,
    residual: Residual = False,
    hidden: Annotated[str, typer.Option("--hidden", metavar="D1,…", help=HIDDEN)] = "",
    method: Annotated[
        str | None, choice_option("--method", METHODS, "weights or highest; by default highest where it applies.")
    ] = None,
    generators: Annotated[
        Path | None, file_option("--generators", f"Write the minimal generators; {', '.join(FORMATS)}.")
    ] = None,
    highest_only: Annotated[
        bool, flag("--highest-only", "With --generators: one highest weight vector for each module.")
    ] = False,
    max_seconds: Annotated[
        float | None, typer.Option("--max-seconds", min=0, help="Stop after this wall time (exit code 3).")
    ] = None,
    max_megabytes: Annotated[
        float | None, typer.Option("--max-megabytes", min=0, help="Take no more memory than this (exit code 3).")
    ] = None,
    state: Annotated[
        Path | None, file_option("--state", "Keep results of single weights here and resume from them.")
    ] = None,
    families: Annotated[
        bool, typer.Option("--families/--no-families", help="Compare with the families of invariants.")
    ] = True,
    prove: Annotated[
        bool, flag("--prove", "Verify the generators by substitution, which proves the dimensions.")
    ] = False,
    complete: Annotated[bool, flag("--complete", "All minimal generators in all degrees, by theorem.")] = False,
    check: Annotated[bool | None, typer.Option("--check/--no-check", help=CHECK)] = None,
    workers: Annotated[int, typer.Option("--workers", min=1, help="Processes that share --complete --check.")] = 1,
    certificate: Annotated[
        Path | None, file_option("--certificate", "With --complete: write a certificate for attngeom verify.")
    ] = None,
    json: Json = False,
    seed: Seed = 0,
) -> int:
    """All equations of degree ≤ N on the attention variety: Hilbert function, minimal generators, modules."""
    if tokens is None and (masked or residual):
        raise InputError(f"{MASK} or --residual given without --tokens; the number of tokens is required")
    if tokens is not None and targets is not None:
        raise InputError("--targets given with --tokens; a network has as many targets as its width")
    if certificate is not None and not complete:
        raise InputError("--certificate given without --complete; the list in all degrees is what is certified")
    widths = tuple(parse_list(hidden, "hidden")) if hidden else ()
    variety = Variety(d, a, tokens, d_out, targets, heads, value_width, masked, residual, widths)
    engine = None if method is None else check_choice(method, METHODS, "method")
    if generators is not None:
        find_system(generators)
    budget = Limits(max_seconds, max_megabytes)
    with progress() as bar:
        summary = implicitize(
            variety,
            max_degree,
            engine,
            families=families,
            vectors=generators is not None,
            prove=prove,
            complete=complete,
            check=check,
            seed=seed,
            budget=budget,
            progress=ProgressBar(bar),
            state=state,
            workers=workers,
        )
    lines, is_short = list(describe(summary)), summary.standing == "undecided"
    if generators is not None:
        written = write(generators, summary, not highest_only, budget)
        lines.append(prose(written or "No generators were written: the budget ended before"))
        is_short = is_short or written is None
    if certificate is not None and summary.completeness is not None:
        write_certificate(certify_complete(variety, summary.completeness), certificate)
        lines.append(prose(f"certificate written to {certificate}"))
    print_answer(json, summary.to_json, *lines)
    return EXIT_UNDECIDED if is_short else 0


def write(path: Path, summary: IdealSummary, whole: bool, budget: Limits) -> str | None:
    """Write the generators that were found, and say how much that is; None if the budget is too small for it."""
    if summary.vectors is None:
        return None
    try:
        with budget.hold():
            count, size = write_generators(path, summary.variety, summary.vectors, whole)
    except OverBudget:
        return None
    amount = f"{size / 10**6:,.1f} MB" if size >= 10**6 else f"{size:,} bytes"
    return f"{count:,} generator{'' if count == 1 else 's'} written to {path} ({amount})"


class ProgressBar:
    """One bar for each degree, advanced by each weight."""

    def __init__(self, bar: Progress) -> None:
        self.bar = bar
        self.tasks: dict[int, TaskID] = {}

    def __call__(self, degree: int, done: int, total: int) -> None:
        if degree not in self.tasks:
            self.tasks[degree] = self.bar.add_task(f"degree {degree}, weights", total=total)
        self.bar.update(self.tasks[degree], completed=done)


def describe(summary: IdealSummary) -> Iterator[str]:
    """The degrees as a table, then their modules, and what is known of all degrees."""
    yield prose(summary.rows()["ideal"])
    rows = []
    for degree in summary.degrees:
        counts = [degree.degree, degree.monomials, degree.hilbert_function, degree.ideal_dimension]
        explained = "" if degree.from_families is None else degree.from_families
        evidence = degree.standing if degree.standing == "proven" else f"error < {max(degree.error_bound, 1e-9):.0e}"
        expected = (degree.hilbert_function, degree.minimal_generators)
        formula = "" if degree.formula is None else "agrees" if degree.formula == expected else "differs"
        rows.append([*counts, degree.minimal_generators, formula, explained, evidence])
    yield table(("degree", "monomials", "HF", "dim I", "new", "formula", "families", "evidence"), rows)
    for degree in summary.degrees:
        if degree.modules:
            modules = " + ".join(f"{module} ({module.dimension})" for module in degree.modules)
            yield prose(f"degree {degree.degree}: {modules}")
        for shapes, text in degree.unexplained:
            yield prose(f"degree {degree.degree}: no family explains {shapes}: {text}")
    yield prose(f"primes {', '.join(map(str, summary.primes))}, seed {summary.seed}")
    if summary.completeness is not None:
        yield from describe_completeness(summary.completeness)
    if not summary.is_finished:
        yield prose(f"Stopped in {summary.stopped}. Only complete degrees are shown.")


def describe_completeness(result: CompletenessResult) -> Iterator[str]:
    """One sentence about all degrees, and one about the check."""
    shown = result.rows()
    if not result.modules:
        yield prose(shown["generators"])
        return
    yield prose(f"The ideal is generated {shown['generators']} ({result.theorem}).")
    yield prose(f"All minimal generators: {shown['modules']}; {shown['variety']}.")
    if "check" in shown:
        yield prose(f"Finite check beside the theorem: {shown['check']}.")
