"""``attngeom recover``: which weights give this function?"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from attngeom.cli.app import EXIT_UNDECIDED, VERDICTS
from attngeom.cli.options import Json, Kind, Masked, Seed, file_option, flag, parse_list
from attngeom.cli.output import READING, print_answer, titled, working
from attngeom.errors import InputError
from attngeom.exact.domains import QQ, RR
from attngeom.interop import write_weights
from attngeom.layer.files import coefficients_from_json, collect_terms
from attngeom.limits.rounding import RECOVERED_ERROR
from attngeom.network import Architecture, Weights
from attngeom.recovery.query_table import QueryTable, continue_queries, plan_queries, table_from_json, write_table
from attngeom.recovery.recover import recover
from attngeom.recovery.results import Recovery
from attngeom.streams import read_long_json


def recover_command(
    source: Annotated[
        Path | None, typer.Argument(metavar="SOURCE", help="Coefficients of one layer, or a table of queries (.json).")
    ] = None,
    out: Annotated[
        Path | None, file_option("--out", "Where to write the weights; a second point gets the suffix -2.")
    ] = None,
    plan: Annotated[bool, flag("--plan", "Write the (next) queries to --out instead of weights.")] = False,
    widths: Annotated[str | None, typer.Option("--widths", help="Widths, for the first --plan.")] = None,
    attention: Annotated[str | None, typer.Option("--attention", help="Attention widths; default: as needed.")] = None,
    tokens: Annotated[int, typer.Option("--tokens", help="Tokens, for the first --plan.")] = 3,
    kind: Kind = "lightning",
    causal: Masked = False,
    tolerance: Annotated[
        float, typer.Option("--tolerance", help="Largest relative error of held-out outputs.")
    ] = RECOVERED_ERROR,
    json: Json = False,
    seed: Seed = 0,
) -> int:
    """Find weights from coefficients (exactly if they are exact) or from answers to planned queries.

    Exit code 0: recovered; 1: no real weights fit; 3: not identifiable, or more queries must be answered.
    """
    if source is None:
        if not plan or widths is None or attention is None or out is None:
            raise InputError("no SOURCE given; give coefficients, or --plan with --widths, --attention and --out")
        architecture = Architecture(
            parse_list(widths, "widths"), parse_list(attention, "attention"), tokens=tokens, kind=kind, causal=causal
        )
        _report_plan(plan_queries(architecture, seed), out, json)
        return 0
    with working("reading") as report:
        record = read_long_json(source, {"terms": collect_terms}, report=partial(report, READING))
        report("recovering", 0, None)
        if isinstance(record, dict) and record.get("format") == "attngeom/queries":
            recovery = continue_queries(table_from_json(record, str(source)), tolerance)
        else:
            coefficients = coefficients_from_json(record, str(source))
            chosen = None
            if attention is not None:
                sizes = (coefficients.d, coefficients.d_out)
                chosen = Architecture(sizes, parse_list(attention, "attention"), tokens=coefficients.t, causal=causal)
            recovery = recover(coefficients, chosen, seed, tolerance, causal)
    if isinstance(recovery, QueryTable):
        if not plan or out is None:
            raise InputError(f"{source}: another round of queries is needed; run again with --plan and --out")
        _report_plan(recovery, out, json)
        return EXIT_UNDECIDED
    _report(recovery, out, json)
    return VERDICTS[recovery.is_positive]


def _report_plan(table: QueryTable, out: Path, json: bool) -> None:
    write_table(table, out)
    number, count = len(table.rounds), len(table.rounds[-1][0])
    record = {"outcome": "answers needed", "round": number, "queries": count, "out": str(out)}
    words = f"round {number}: {count} inputs written to {out}; fill in its outputs, then run recover again"
    print_answer(json, record, words)


def _report(recovery: Recovery, out: Path | None, json: bool) -> None:
    paths = []
    if out is not None:
        for index, weights in enumerate(recovery.weights):
            path = out if index == 0 else out.with_name(f"{out.stem}-{index + 1}{out.suffix}")
            write_weights(_storable(weights, path), path)
            paths.append(str(path))
    written = {"written_to": ", ".join(paths)} if paths else {}
    print_answer(json, {**recovery.to_json(), "out": paths}, titled(recovery.rows(), **written))


def _storable(weights: Weights, path: Path) -> Weights:
    """Weights in a domain that the kind of file can hold: floats for .safetensors, rationals for .json."""
    if path.suffix == ".json":
        if weights.domain == QQ:
            return weights
        raise InputError(
            f"weights over {weights.domain.name} found; they are written as floats, give a .safetensors name"
        )
    return weights.to(RR)
