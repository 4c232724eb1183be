"""``attngeom laws`` and ``attngeom track``: what gradient flow conserves, and a training run seen through it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from attngeom import digits
from attngeom.cli import options
from attngeom.cli.app import EXIT_UNDECIDED
from attngeom.cli.options import Json, Seed, file_option
from attngeom.cli.output import pairs, print_answer, table, working
from attngeom.errors import InputError
from attngeom.interop import read_weights
from attngeom.learning.laws import conserved_quantities
from attngeom.learning.track import Snapshot, track
from attngeom.verification import write_certificate


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
        course = track([read_weights(path) for path in checkpoints], [str(path) for path in checkpoints], seed)
    if plot is not None:
        draw_track(course, plot)
    there = "(λ, m) of the nearest stratum"
    columns = ("checkpoint", "‖w‖", "stratum", "(λ, m)", "nearest", "distance", there, "Jacobian", "drift")
    rows = [_row(snapshot, course.dimension) for snapshot in course.snapshots]
    shown = table(columns, rows, left=(columns[0], columns[2]))
    print_answer(json, course.to_json(), pairs("training run, measured in double precision", course.rows()), shown)


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
