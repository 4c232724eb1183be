"""``attngeom reproduce``: recompute every claim, table and figure of both papers."""

from __future__ import annotations

import os
import time

# Matrices here are small: one BLAS thread is as fast, and many on a busy machine are far slower. NumPy reads this once.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from attngeom.cli.app import EXIT_NEGATIVE
from attngeom.cli.options import Json, Seed, choice_option, flag
from attngeom.cli.output import print_answer, progress, prose, table
from attngeom.papers import Claim, Store, Work, find_claims, run_claims
from attngeom.papers.claims import CLAIMS
from attngeom.papers.reports import TOTALS, Report, summary_rows, versions, write_report

NAMES = [claim.id for claim in CLAIMS]


def reproduce_command(
    out: Annotated[Path, typer.Option("--out", help="Folder for results, figures and the report.")] = Path(
        "out/reproduce"
    ),
    quick: Annotated[bool, flag("--quick", "Smaller sizes: about two minutes instead of up to thirty.")] = False,
    claim: Annotated[
        list[str] | None, choice_option("--claim", NAMES, "Only this claim, by id; may be repeated.")
    ] = None,
    workers: Annotated[
        int | None, typer.Option("--workers", min=1, help="Processes that run claims; by default one for each core.")
    ] = None,
    seed: Seed = 0,
    json: Json = False,
) -> int:
    """Recompute the claims of both papers; finished claims are kept, and a second run continues. Exit code 1 if an
    outcome differs from the recorded one."""
    from attngeom.papers.plots import draw_figures

    started = time.perf_counter()
    work, chosen = Work(quick, seed), find_claims(claim or [])
    with progress() as bar:
        task = bar.add_task("claims", total=len(chosen))

        def show(current: Claim, done: int, total: int) -> None:
            bar.update(task, completed=done, description=f"[{current.paper}] {current.place}")

        count = min(os.cpu_count() or 1, len(chosen)) if workers is None else workers
        records = run_claims(chosen, work, out, show, count)
        bar.update(task, completed=len(chosen), description="figures and report")
        figures = draw_figures(Store(out, work))
        report = Report(records, figures, quick, seed, time.perf_counter() - started)
        page, text = write_report(report, out)
    answer = {
        "claims": [{**record.to_json(), "as_expected": record.as_expected} for record in records],
        "unexpected": [record.id for record in report.unexpected],
        "seed": seed,
        "quick": quick,
        "versions": versions(),
        "report": {"html": str(page), "markdown": str(text)},
    }
    print_answer(json, answer, *_lines(report), f"report: {page} and {text}")
    return EXIT_NEGATIVE if report.unexpected else 0


def _lines(report: Report) -> Iterator[str]:
    rows = []
    for record in report.records:
        mark = record.label if record.as_expected else f"{record.label} (!)"
        rows.append((f"[{record.paper}] {record.place}", mark, record.basis, f"{record.seconds:.2f}"))
    columns = ("claim", "outcome", "evidence", "seconds")
    yield table(columns, rows, left=columns[:3])
    for label, counts in summary_rows(report):
        shown = ", ".join(f"{count} {TOTALS[name]}" for name, count in counts.items() if count)
        yield prose(f"{label}: {shown or 'nothing'}")
    for record in report.unexpected:
        yield prose(f"(!) {record.id}: {record.outcome} instead of {record.expected}")
