"""``attngeom atlas``: run sweeps, and show, export, recheck and plot what their store holds."""

from __future__ import annotations

import os
from contextlib import AbstractContextManager
from dataclasses import asdict, replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from attngeom.atlas import Budget, FactStore, Progress, RunReport, dask_executor, local_executor, read_sweep, run_sweep
from attngeom.atlas.executors import Transport
from attngeom.atlas.recheck import recheck
from attngeom.atlas.records import Fact, canonical_json, short_name
from attngeom.atlas.summary import summary_tables
from attngeom.atlas.sweep import Shard, Sweep, make_plan
from attngeom.atlas.tables import FORMATS, Row, RowCondition, check_format, export, select, summarize_answer
from attngeom.cli.app import EXIT_NEGATIVE, EXIT_UNDECIDED, VERDICTS, Interrupted
from attngeom.cli.options import IgnoredSeed, Json, check_choice, choice_option, file_option, flag
from attngeom.cli.output import notice, pairs, print_answer, progress, prose, table, working
from attngeom.errors import InputError
from attngeom.files import write_atomic
from attngeom.limits.seconds import RECOMPUTE_SECONDS
from attngeom.limits.shown import FACT_ROWS

StorePath = Annotated[Path, typer.Option("--store", help="The SQLite file that holds the facts.")]
Question = Annotated[str | None, typer.Option("--question", help="Only facts of this question, such as dimension.")]
Where = Annotated[
    list[str] | None, typer.Option("--where", help="Only facts with COLUMN=VALUE (also != < <= > >=); repeatable.")
]
Sort = Annotated[str | None, typer.Option("--sort", help="Sort by a column; largest first with a leading -.")]


group = typer.Typer(help="Many architectures, many questions: resumable sweeps and their store of facts.")


@group.command("run")
def run_command(
    sweep: Annotated[Path, typer.Argument(metavar="SWEEP", help="The sweep: a TOML file, see docs/how-to/atlas.md.")],
    store: StorePath = Path("atlas.db"),
    workers: Annotated[int | None, typer.Option("--workers", help="Local processes; default: all cores.")] = None,
    scheduler: Annotated[str | None, typer.Option("--scheduler", help="Address of a Dask scheduler.")] = None,
    tls_ca_file: Annotated[Path | None, typer.Option("--tls-ca-file", help="Who signs the cluster (PEM).")] = None,
    tls_cert: Annotated[Path | None, typer.Option("--tls-cert", help="Our certificate for the cluster (PEM).")] = None,
    tls_key: Annotated[Path | None, typer.Option("--tls-key", help="Its private key (PEM).")] = None,
    retry_failed: Annotated[bool, flag("--retry-failed", "Try tasks again that failed before.")] = False,
    seconds: Annotated[float | None, typer.Option("--seconds", help="Time budget of a task.")] = None,
    megabytes: Annotated[float | None, typer.Option("--megabytes", help="Memory budget of a task.")] = None,
    shard: Annotated[
        str | None, typer.Option("--shard", help="Only part I of N, as I/N; merge the stores later.")
    ] = None,
    dry_run: Annotated[bool, flag("--dry-run", "Only say what is left to do, by estimates.")] = False,
    seed: Annotated[int | None, typer.Option("--seed", min=0, help="Instead of the seed of the sweep.")] = None,
    json: Json = False,
) -> int:
    """Compute every fact of a sweep that the store lacks. Interrupt it at any time: the same command goes on."""
    if workers is not None and scheduler is not None:
        raise InputError("--workers and --scheduler given; a cluster has its own workers, give one of the two")
    transport = Transport.of(tls_ca_file, tls_cert, tls_key)
    if transport is not None and not (scheduler or "").startswith("tls://"):
        raise InputError("--tls-cert given; it is for a cluster, give its --scheduler tls://HOST:PORT")
    wanted = read_sweep(sweep)
    limits = Budget(
        wanted.budget.seconds if seconds is None else seconds,
        wanted.budget.megabytes if megabytes is None else megabytes,
    )
    part = None if shard is None else Shard.parse(shard)
    wanted = replace(wanted, seed=wanted.seed if seed is None else seed, budget=limits, shard=part)
    if dry_run:
        _print_plan(wanted, store, retry_failed, json)
        return 0
    place: AbstractContextManager[Any]
    if scheduler is None:
        place = local_executor(workers or os.cpu_count() or 1)
    else:
        place = dask_executor(scheduler, transport, notice)
    with FactStore(store) as opened:
        try:
            with progress() as bar, place as (executor, count):
                line = bar.add_task("planning", total=None)

                def update(seen: Progress) -> None:
                    left = _clock(seen.seconds_left)
                    failed = f", {seen.failures} failed" if seen.failures else ""
                    text = f"{seen.tasks_per_second:,.1f}/s{failed}, about {left} left"
                    bar.update(line, completed=seen.done, total=seen.total, description=text)

                report = run_sweep(wanted, opened, executor, count, retry_failed, progress=update)
        except KeyboardInterrupt:
            raise Interrupted(f"{opened.count():,} facts are stored, run it again to go on") from None
        total = opened.count()
    _print_report(report, total, store, json)
    if report.contradictions:
        return EXIT_NEGATIVE
    return 0 if report.is_complete else EXIT_UNDECIDED


def _print_plan(sweep: Sweep, store: Path, retry_failed: bool, json: bool) -> None:
    if store.exists():
        with FactStore(store, read_only=True) as opened:
            plan = make_plan(sweep, opened, retry_failed)
    else:
        plan = make_plan(sweep)
    costs: dict[str, list[float]] = {}
    for item in plan.pending:
        costs.setdefault(item.question, []).append(item.cost)
    left = {name: {"tasks": len(each), "cpu_seconds": sum(each)} for name, each in costs.items()}
    record = {"pending": left, "known": plan.known, "failed": plan.failed}
    shown = {name: f"{len(each):,} tasks, about {_clock(sum(each))} of CPU time" for name, each in costs.items()}
    shown |= {"known": f"{plan.known:,}", "failed before": f"{plan.failed:,}"}
    print_answer(json, record, pairs("left to do", shown))


def _print_report(report: RunReport, total: int, store: Path, json: bool) -> None:
    record = {**asdict(report), "is_complete": report.is_complete, "facts": total, "store": str(store)}
    shown = {"new facts": f"{report.new:,}", "there before": f"{report.known:,}"}
    if report.failures or report.skipped:
        shown["failed"] = f"{report.failures:,} now, {report.skipped:,} before (see atlas show --failures)"
    if report.contradictions:
        shown["contradictions"] = str(report.contradictions)
    shown["time"] = f"{_clock(report.seconds)}, CPU {_clock(report.cpu_seconds)}"
    shown["store"] = f"{store}, {total:,} facts"
    print_answer(json, record, pairs("complete" if report.is_complete else "incomplete", shown))


def _clock(seconds: float | None) -> str:
    if seconds is None:
        return "?"
    return str(timedelta(seconds=round(seconds))) if seconds < 10**9 else f"{seconds / 31557600:.0e} years"


def _selected(store: Path, question: str | None, where: list[str] | None, sort: str | None) -> list[tuple[Fact, Row]]:
    conditions = [RowCondition.parse(text) for text in where or ()]
    with FactStore(store, read_only=True) as opened:
        return select(opened.facts(question), conditions, sort)


@group.command("show")
def show_command(
    store: StorePath = Path("atlas.db"),
    question: Question = None,
    where: Where = None,
    sort: Sort = None,
    limit: Annotated[int, typer.Option("--limit", min=1, help="Rows to print (all with --json).")] = FACT_ROWS,
    failures: Annotated[bool, flag("--failures", "The tasks that failed, and why.")] = False,
    json: Json = False,
    seed: IgnoredSeed = 0,
) -> None:
    """Print facts, filtered and sorted; or the failures."""
    if failures:
        _show_failures(store, limit, json)
        return
    selected = _selected(store, question, where, sort)
    rows = []
    for fact, _ in selected[:limit]:
        parameters = " ".join(
            f"{key}={canonical_json(value) if isinstance(value, list | dict) else value}"
            for key, value in fact.task.parameters.items()
        )
        network = short_name(fact.task.architecture)
        rows.append((fact.task.question, network, parameters, summarize_answer(fact), fact.result.evidence))
    columns = ("question", "architecture", "parameters", "answer", "evidence")
    more = f"; the first {limit} are shown, give --limit for more" if len(selected) > limit else ""
    record = {"facts": [fact.to_json() for fact, _ in selected]}
    print_answer(json, record, table(columns, rows, left=columns), f"{len(selected):,} facts{more}")


def _show_failures(store: Path, limit: int, json: bool) -> None:
    with FactStore(store, read_only=True) as opened:
        failures = opened.failures()
    columns = ("task", "reason", "detail", "attempts")
    rows = [(failure.task, failure.reason, failure.detail, failure.attempts) for failure in failures[:limit]]
    record = {"failures": [failure.to_json() for failure in failures]}
    print_answer(json, record, table(columns, rows, left=columns[:3]), f"{len(failures):,} failures")


@group.command("export")
def export_command(
    out: Annotated[Path, file_option("--out", "Where to write: a name ending in " + ", ".join(FORMATS))],
    store: StorePath = Path("atlas.db"),
    question: Question = None,
    where: Where = None,
    sort: Sort = None,
    json: Json = False,
    seed: IgnoredSeed = 0,
) -> None:
    """Write facts, filtered and sorted, as CSV, Parquet or Markdown."""
    check_format(out)
    table = _selected(store, question, where, sort)
    export(table, out)
    print_answer(json, {"facts": len(table), "out": str(out)}, f"{len(table):,} facts written to {out}")


@group.command("merge")
def merge_command(
    sources: Annotated[list[Path], typer.Argument(metavar="STORES", help="Stores to read.")],
    store: StorePath = Path("atlas.db"),
    json: Json = False,
    seed: IgnoredSeed = 0,
) -> int:
    """Add the facts and failures of other stores to a store.

    Facts that are there already stay as they are.
    """
    new = repeated = contradictions = 0
    with FactStore(store) as target:
        for path in sources:
            with FactStore(path, read_only=True) as source:
                for added in target.merge(source):
                    new, repeated = new + added.new, repeated + added.repeated
                    contradictions += len(added.contradictions)
        total = target.count()
    record = {"new": new, "repeated": repeated, "contradictions": contradictions, "facts": total}
    words = f"{new:,} new facts, {repeated:,} repeated, {contradictions:,} contradictions; {total:,} in all"
    print_answer(json, record, words)
    return EXIT_NEGATIVE if contradictions else 0


@group.command("summary")
def summary_command(
    store: StorePath = Path("atlas.db"),
    out: Annotated[Path | None, file_option("--out", "Where to write the tables (.md).")] = None,
    json: Json = False,
    seed: IgnoredSeed = 0,
) -> None:
    """Sum the facts up in tables; files are Markdown.

    Dimensions by kind, ideals by degree, completeness.
    """
    with FactStore(store, read_only=True) as opened:
        tables = summary_tables(opened)
    if out is not None:
        write_atomic(out, "\n\n".join(each.to_markdown() for each in tables) + "\n")
    record = {"tables": [each.to_json() for each in tables], "out": None if out is None else str(out)}
    shown = (f"{each.title}\n{table(each.columns, each.rows, left=each.columns[:1])}" for each in tables)
    print_answer(json, record, "\n\n".join(shown) if out is None else f"written to {out}")


@group.command("verify")
def verify_command(
    store: StorePath = Path("atlas.db"),
    certificates: Annotated[
        int | None, typer.Option("--certificates", min=0, help="Certificates to recheck, at random; default: all.")
    ] = None,
    recompute: Annotated[int, typer.Option("--recompute", min=0, help="More facts to compute again, at random.")] = 0,
    seconds: Annotated[
        float, typer.Option("--seconds", min=0, help="For facts without certificate, which are computed again.")
    ] = RECOMPUTE_SECONDS,
    workers: Annotated[int | None, typer.Option("--workers", min=1, help="Processes; default: all cores.")] = None,
    json: Json = False,
    seed: Annotated[
        int | None, typer.Option("--seed", min=0, metavar="N", help="Repeat the random choices of a run; default: new.")
    ] = None,
) -> int:
    """Recheck the file, and every field of every fact: by certificates, sums, formulas, or by computing it again.

    Exit code 0: everything holds; 1: something is wrong; 3: fields are left that nothing checked, and are counted.
    """
    with FactStore(store, read_only=True) as opened, working("rechecking") as report:
        update = partial(report, "rechecking certificates")
        verdict = recheck(opened, certificates, recompute, seed, workers or os.cpu_count() or 1, update, seconds)
    title = {True: "valid", False: "not valid", None: "undecided"}[verdict.valid]
    lines = [f"{fact}: {why}" for fact, why in verdict.problems]
    lines += [f"{each.fact}: {', '.join(each.fields)} not checked: {each.reason}" for each in verdict.unchecked]
    print_answer(json, verdict.to_json(), pairs(title, verdict.rows()), *map(prose, lines[:FACT_ROWS]))
    return VERDICTS[verdict.is_positive]


@group.command("plot")
def plot_command(
    out: Annotated[Path, typer.Option("--out", help="The folder for the figures.")],
    store: StorePath = Path("atlas.db"),
    kind: Annotated[str, choice_option("--format", ("svg", "png"), "svg or png.")] = "svg",
    json: Json = False,
    seed: IgnoredSeed = 0,
) -> None:
    """Draw dimension against parameters, and ideals by degree."""
    from attngeom.atlas.figures import draw_figures  # slow to load, and few commands need it

    check_choice(kind, ("svg", "png"), "format")
    with FactStore(store, read_only=True) as opened:
        paths = draw_figures(opened, out, kind)
    print_answer(json, {"figures": [str(path) for path in paths]}, *(f"written to {path}" for path in paths))
