"""``attngeom verify``: recheck a certificate, with code that shares nothing with the search."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from attngeom.cli.app import VERDICTS
from attngeom.cli.options import Json, Seed, file_option, flag
from attngeom.cli.output import pairs, print_answer, working
from attngeom.verification import verify


def verify_command(
    certificate: Annotated[Path, typer.Argument(metavar="CERT", help="A certificate (.json).")],
    budget: Annotated[float, typer.Option("--budget", help="Times the usual work, about ten seconds.")] = 1.0,
    upgrade: Annotated[
        Path | None, file_option("--upgrade", "Write the same claim as a certificate of the newest version.")
    ] = None,
    standalone: Annotated[
        bool, flag("--standalone", "Ask the lone checker attngeom_check.py too; a difference is an error.")
    ] = False,
    json: Json = False,
    seed: Seed = 0,
) -> int:
    """Recheck a certificate from scratch, with code that shares nothing with the search.

    Exit code 0: it proves its claim, up to the error that the reason states where the standing is "probabilistic";
    1: it does not; 3: the recheck needs more than the budget, as the reason says; 4: the lone checker says something
    else. The seed is that of the point of an upgraded certificate; nothing else is random.
    """
    with working("rechecking"):
        verdict = verify(certificate, budget)
    record, rows = verdict.to_json(), dict(verdict.rows())
    if standalone:
        from attngeom.proofs.standalone import check_standalone

        with working("asking the lone checker"):
            finding = check_standalone(certificate)
        record["standalone"] = {"verdict": finding.word, "reason": finding.reason}
        rows["lone checker"] = f"{finding.word}: {finding.reason}"
        if finding.contradicts(verdict):
            print_answer(json, record, pairs("verify", rows))
            raise ArithmeticError("verify and the lone checker differ; one of them is wrong, please report this")
    if upgrade is not None and verdict.valid:
        # Looks for a witness at a named point, which the recheck never does.
        from attngeom.proofs.upgrade import upgrade as renew
        from attngeom.verification import write_certificate

        with working("upgrading"):
            write_certificate(renew(certificate, budget, seed), upgrade)
        record["upgraded"] = rows["written to"] = str(upgrade)
    print_answer(json, record, pairs("verify", rows))
    return VERDICTS[verdict.is_positive]
