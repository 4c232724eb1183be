"""``attngeom verify``: recheck a certificate, with code that shares nothing with the search."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from attngeom.cli.app import EXIT_NEGATIVE
from attngeom.cli.options import IgnoredSeed, Json
from attngeom.cli.output import print_json, print_pairs
from attngeom.errors import FormatError
from attngeom.verification import Certificate, verify
from attngeom.verification.records import Verdict


def register(app: typer.Typer) -> None:
    app.command("verify")(verify_command)


def verify_command(
    certificate: Annotated[Path, typer.Argument(metavar="CERT", help="A certificate (.json).")],
    json: Json = False,
    seed: IgnoredSeed = 0,
) -> int:
    """Recheck a certificate from scratch, with code that shares nothing with the search."""
    try:
        verdict = verify(Certificate.load(certificate))
    except FormatError as error:
        verdict = Verdict(False, "unreadable certificate", str(error))
    if json:
        print_json({"valid": verdict.valid, "claim": verdict.claim, "reason": verdict.reason})
    else:
        print_pairs("verify", {"valid": verdict.valid, "claim": verdict.claim, "reason": verdict.reason})
    return 0 if verdict.valid else EXIT_NEGATIVE
