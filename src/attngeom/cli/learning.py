"""``attngeom lambda``, ``laws`` and ``track``.

The learning coefficient (λ, m) at given weights, or a table over all rank strata; what gradient flow conserves; a
training run seen through both.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from attngeom import digits
from attngeom.cli import options
from attngeom.cli.app import EXIT_UNDECIDED
from attngeom.cli.options import Json, Seed, file_option
from attngeom.cli.output import pairs, print_answer, working
from attngeom.cli.output import table as table_of
from attngeom.errors import FormatError, InputError
from attngeom.interop import read_weights
from attngeom.interop.arrays import read_array
from attngeom.interop.learning_benchmark import write_benchmark
from attngeom.interop.learning_suite import write_suite
from attngeom.learning import global_learning_coefficient, learning_coefficient, learning_table
from attngeom.learning.laws import conserved_quantities
from attngeom.learning.losses import LOSSES
from attngeom.learning.track import Snapshot, track
from attngeom.network import Weights
from attngeom.verification import write_certificate

BENCHMARK = "Write weights, λ, m and a torch module for estimators."
LOSS = "squared, or cross-entropy: outputs are logits, inputs bounded."
VOCABULARY = "Inputs are all sequences of the columns of this matrix, d×N (.json, .npy)."
SUITE = "Write points with proven λ for estimators, and a script that runs one over them."


@dataclass(frozen=True, kw_only=True)
class TableOptions(options.OptionalArchitecture):
    """The architecture of a table."""

    widths: Annotated[str, typer.Option("--widths", help="Widths d_0,…,d_l of a table, comma separated.")] = ""
    tokens: options.Tokens = 2


@options.takes_shape
def lambda_command(
    shape: TableOptions,
    weights: options.OptionalWeights = None,
    table: Annotated[bool, options.flag("--table", "One row for each rank stratum of the architecture.")] = False,
    everywhere: Annotated[
        bool, options.flag("--global", "The least pair over all weights of the same function.")
    ] = False,
    loss: Annotated[str, options.choice_option("--loss", LOSSES, LOSS)] = "squared",
    vocabulary: Annotated[Path | None, options.file_option("--vocabulary", VOCABULARY)] = None,
    certificate: Annotated[
        Path | None, options.file_option("--certificate", "Write a certificate for attngeom verify to this file.")
    ] = None,
    export_benchmark: Annotated[Path | None, typer.Option("--export-benchmark", metavar="DIR", help=BENCHMARK)] = None,
    suite: Annotated[Path | None, typer.Option("--suite", metavar="DIR", help=SUITE)] = None,
    json: options.Json = False,
    seed: options.Seed = 0,
) -> int:
    """The learning coefficient λ and its multiplicity m: vol{K ≤ ε} is of order ε^λ (log 1/ε)^(m−1).

    Exit code 0: proven; 3: not proven, an estimate of floats or bounds for λ.
    """
    if suite is not None:
        if weights is not None or table or shape.widths or certificate or export_benchmark:
            raise InputError("--suite given with weights or a table; it writes points of its own")
        with working("measuring Hessians"):
            points = write_suite(suite, seed)
        columns = ("name", "lambda", "multiplicity", "half_hessian_rank", "half_parameters")
        titles = ("point", "λ", "m", "half the rank of the Hessian", "half the weights")
        shown = table_of(titles, [[point[key] for key in columns] for point in points], left=("point",))
        print_answer(
            json, {"folder": str(suite), "points": points}, shown, f"next: python {suite}/run.py (needs torch)"
        )
        return 0
    if (weights is None) != table or table != bool(shape.widths):
        raise InputError("give a file of weights, or --widths and --table for the strata of an architecture")
    options.check_either(shape, weights)
    if (certificate is not None or export_benchmark is not None) and (table or everywhere):
        raise InputError("files asked for with --table or --global; they are about the point of given weights")
    if table:
        strata = learning_table(shape.architecture)
        rows = [(row.words, row.pair.value, row.pair.multiplicity, row.theorem) for row in strata.strata]
        shown = table_of(("stratum", "λ", "m", "theorem"), rows, left=("stratum", "theorem"))
        print_answer(json, strata.to_json(), f"rank strata of {strata.scope}", shown)
        return 0
    point = read_weights(Path(str(weights)))
    chosen = options.check_choice(loss, LOSSES, "loss")
    tokens = None if vocabulary is None else read_array(vocabulary)[0]
    if (everywhere or export_benchmark is not None) and (chosen != "squared" or tokens is not None):
        raise InputError("--loss or --vocabulary given with --global or --export-benchmark; leave one of them out")
    if everywhere:
        coefficient = global_learning_coefficient(point, seed=seed)
    else:
        coefficient = learning_coefficient(point, vocabulary=tokens, loss=chosen, seed=seed)
    if certificate is not None:
        if coefficient.certificate is None:
            raise InputError(
                f"no certificate can be written: {coefficient.standing}, by Theorem {coefficient.theorem}; see docs"
            )
        write_certificate(coefficient.certificate, certificate)
    if export_benchmark is not None:
        write_benchmark(coefficient, export_benchmark)
    title = f"learning coefficient, {point.architecture.kind} attention"
    print_answer(json, coefficient.to_json(), pairs(title, coefficient.rows()))
    return 0 if coefficient.is_proven else EXIT_UNDECIDED


@options.takes_shape
def laws_command(
    shape: options.OptionalArchitecture,
    weights: options.OptionalWeights = None,
    prove: Annotated[
        bool, options.flag("--prove", "Prove that there are no other laws; small networks always are.")
    ] = False,
    certificate: options.CertificateFile = None,
    json: options.Json = False,
    seed: options.Seed = 0,
) -> int:
    """The conserved quantities of gradient flow on any loss of the function, and a proof that there are no others.

    WEIGHTS in place of --widths: those of their architecture.
    """
    options.check_either(shape, weights)
    architecture = shape.architecture if weights is None else read_weights(weights).architecture
    if certificate is not None:
        options.check_stored_seed(seed)
    wanted = prove or certificate is not None
    with working("brackets"):
        answer = conserved_quantities(architecture, prove=True if wanted else None, seed=seed)
    if certificate is not None:
        if answer.certificate is None:
            raise InputError(f"no certificate was written: {answer.reason}")
        write_certificate(answer.certificate, certificate)
    title = f"{architecture.kind} attention, widths {','.join(map(str, architecture.widths))}"
    print_answer(json, answer.to_json(), pairs(title, answer.rows()))
    return EXIT_UNDECIDED if wanted and not answer.is_complete else 0


def track_command(
    checkpoints: Annotated[
        list[Path], typer.Argument(metavar="CKPT…", help="Weights files of one run, in the order of training.")
    ],
    plot: Annotated[
        Path | None, file_option("--plot", "Draw distances, ranks and drift into this file (.png, .svg or .pdf).")
    ] = None,
    json: Json = False,
    seed: Seed = 0,
) -> None:
    """Ranks with gaps, (λ, m) at each checkpoint and of the nearest singular stratum, drift of conserved quantities."""
    if plot is not None:
        # What draws is loaded only if it is asked for, and a wrong name is told at once.
        from attngeom.learning.track_plot import check_format, draw_track

        check_format(plot)
    with working("tracking"):
        course = track([_read_named(path) for path in checkpoints], [str(path) for path in checkpoints], seed)
    if plot is not None:
        draw_track(course, plot)
    there = "(λ, m) of the nearest stratum"
    columns = ("checkpoint", "‖w‖", "stratum", "(λ, m)", "nearest", "distance", there, "Jacobian", "drift")
    rows = [_row(snapshot, course.dimension) for snapshot in course.snapshots]
    shown = table_of(columns, rows, left=(columns[0], columns[2]))
    print_answer(json, course.to_json(), pairs("training run, measured in double precision", course.rows()), shown)


def _read_named(path: Path) -> Weights:
    """One of several files, which errors name."""
    try:
        return read_weights(path)
    except (InputError, FormatError) as error:
        if path.name in str(error):
            raise
        raise type(error)(f"{path.name}: {error}") from None


def _row(snapshot: Snapshot, dimension: int | None) -> list[str]:
    near = snapshot.nearest
    place = "–" if near is None else f"rk {near.name} < {near.full}"
    rank = "–" if snapshot.jacobian is None else str(snapshot.jacobian.rank)
    return [
        Path(snapshot.name).name,
        f"{snapshot.norm:.3g}",
        snapshot.stratum,
        "unknown" if snapshot.pair is None else str(snapshot.pair),
        place,
        "–" if near is None else digits.error(near.distance),
        "–" if near is None else "unknown" if snapshot.nearest_pair is None else str(snapshot.nearest_pair),
        rank if dimension is None else f"{rank} of {dimension}",
        "–" if snapshot.drift is None else digits.error(snapshot.drift),
    ]
