"""``attngeom verify`` and ``prove``.

A certificate is rechecked, with code that shares nothing with the search; or it becomes a theorem that the kernel of
Coq checks, as a comparison of two networks may.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from attngeom.cli.app import EXIT_UNDECIDED, VERDICTS
from attngeom.cli.options import IgnoredSeed, Json, Seed, choice_option, file_option, flag
from attngeom.cli.output import pairs, print_answer, working
from attngeom.errors import SizeError
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


def prove_command(
    certificate: Annotated[Path, typer.Argument(metavar="CERT", help="A certificate, or exact weights (.json).")],
    out: Annotated[Path, file_option("--out", "The Coq file; the library is written beside it.")],
    other: Annotated[
        Path | None, typer.Argument(metavar="B", help="Exact weights: are those of CERT the same function?")
    ] = None,
    target: Annotated[str, choice_option("--format", ("coq",), "The proof assistant.")] = "coq",
    check: Annotated[bool, flag("--check", "Compile the file with coqc, and look at its axioms.")] = False,
    budget: Annotated[float, typer.Option("--budget", help="Times the usual work of the recheck.")] = 1.0,
    json: Json = False,
    seed: IgnoredSeed = 0,
) -> int:
    """Write a certificate as a Coq file: the theorem repeats the claim, its proof is one computation of the kernel.

    With two files of exact weights of a lightning network: they are the same function of all rational inputs, or have
    different outputs at an input.

    Exit code 0: written, and accepted if --check is there; 1: coqc refuses it; 2: this kind of evidence is not
    exported; 3: the file would be too large or too slow, as the reason says.
    """
    from attngeom.proofs.coq import check_coq, export_certificate, export_comparison, write_coq

    try:
        with working("looking for integer points"):
            made = export_comparison(certificate, other) if other else export_certificate(certificate, budget)
    except SizeError as error:
        print_answer(json, {"written": None, "reason": str(error)}, pairs("prove", {"reason": str(error)}))
        return EXIT_UNDECIDED
    written = write_coq(made, out)
    record = {"written": [str(path) for path in written], "theorem": made.words}
    rows = {"theorem": made.words, "written to": ", ".join(map(str, written))}
    if not check:
        rows["next"] = f"coqc -Q {out.parent} '' {out}, after the modules beside it"
        print_answer(json, record, pairs("prove", rows))
        return 0
    with working("coqc"):
        checked = check_coq(made)
    rows["coqc"] = "accepted" if checked.accepted else f"refused: {checked.words}"
    rows["axioms"] = ", ".join(checked.axioms) or "none"
    answer = {**record, "accepted": checked.accepted, "axioms": list(checked.axioms), "reason": checked.words}
    print_answer(json, answer, pairs("prove", rows))
    return 0 if checked.accepted else 1
