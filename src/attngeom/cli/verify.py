"""``attngeom verify``: recheck a certificate, with code that shares nothing with the search."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from attngeom.cli.app import EXIT_NEGATIVE, EXIT_UNDECIDED
from attngeom.cli.options import IgnoredSeed, Json
from attngeom.cli.output import print_json, print_pairs
from attngeom.verification import verify

EXIT_CODES = {True: 0, False: EXIT_NEGATIVE, None: EXIT_UNDECIDED}


def register(app: typer.Typer) -> None:
    app.command("verify")(verify_command)


def verify_command(
    certificate: Annotated[Path, typer.Argument(metavar="CERT", help="A certificate (.json).")],
    budget: Annotated[float, typer.Option("--budget", help="Times the usual work, about ten seconds.")] = 1.0,
    json: Json = False,
    seed: IgnoredSeed = 0,
) -> int:
    """Recheck a certificate from scratch, with code that shares nothing with the search.

    Exit code 0: it proves its claim; 1: it does not; 3: the recheck needs more than the budget, as the reason says.
    """
    verdict = verify(certificate, budget)
    if json:
        print_json(verdict.to_json())
    else:
        print_pairs("verify", verdict.rows())
    return EXIT_CODES[verdict.valid]
