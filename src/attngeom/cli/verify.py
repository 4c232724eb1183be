"""``attngeom verify``: recheck a certificate, with code that shares nothing with the search."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from attngeom.cli.app import VERDICTS
from attngeom.cli.options import IgnoredSeed, Json
from attngeom.cli.output import pairs, print_answer, working
from attngeom.verification import verify


def verify_command(
    certificate: Annotated[Path, typer.Argument(metavar="CERT", help="A certificate (.json).")],
    budget: Annotated[float, typer.Option("--budget", help="Times the usual work, about ten seconds.")] = 1.0,
    json: Json = False,
    seed: IgnoredSeed = 0,
) -> int:
    """Recheck a certificate from scratch, with code that shares nothing with the search.

    Exit code 0: it proves its claim, up to the error that the reason states where the standing is "probabilistic";
    1: it does not; 3: the recheck needs more than the budget, as the reason says.
    """
    with working("rechecking"):
        verdict = verify(certificate, budget)
    print_answer(json, verdict.to_json(), pairs("verify", verdict.rows()))
    return VERDICTS[verdict.is_positive]
