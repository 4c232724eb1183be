"""``attngeom verify`` and ``prove``.

A certificate is rechecked, with code that shares nothing with the search; or it becomes a theorem that the kernel of
Coq checks, as a comparison of two networks may.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from json import dumps as encode
from pathlib import Path
from typing import Annotated, Any

import typer

from attngeom.cli.app import EXIT_UNDECIDED, VERDICTS
from attngeom.cli.options import (
    IgnoredSeed,
    InputShapes,
    Json,
    LastToken,
    Seed,
    WeightsName,
    choice_option,
    file_option,
    flag,
)
from attngeom.cli.output import pairs, print_answer, working
from attngeom.errors import FormatError, InputError, SizeError
from attngeom.limits.sizes import STORED_SEED
from attngeom.streams import as_plain
from attngeom.verification import Certificate, Verdict, read_certificate, verify


def verify_command(
    certificate: Annotated[Path, typer.Argument(metavar="CERT", help="A certificate (.json).")],
    budget: Annotated[float, typer.Option("--budget", help="Times the usual work, about ten seconds.")] = 1.0,
    upgrade: Annotated[
        Path | None, file_option("--upgrade", "Write the same claim as a certificate of the newest version.")
    ] = None,
    standalone: Annotated[
        bool, flag("--standalone", "Ask the lone checker attngeom_check.py too; a difference is an error.")
    ] = False,
    source: Annotated[
        str | None,
        typer.Option("--source", metavar="FILE.py:NAME", help="Is this file, which is run, the network that is meant?"),
    ] = None,
    inputs: InputShapes = None,
    weights: WeightsName = "weights",
    last_token: LastToken = False,
    json: Json = False,
    seed: Seed = 0,
) -> int:
    """Recheck a certificate from scratch, with code that shares nothing with the search.

    With --source, the network of a certificate of `attngeom net` is traced again, with --input, --weights and
    --last-token as they were there: a certificate of another program is not valid. FILE.py is your own code and is run.

    Exit code 0: it proves its claim, up to the error that the reason states where the standing is "probabilistic";
    1: it does not; 3: the recheck needs more than the budget, as the reason says; 4: the lone checker says something
    else. The seed is that of the point of an upgraded certificate; nothing else is random.
    """
    network = None if source is None else read_network(certificate)
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
    if source is not None and network is not None:
        verdict, retraced = compare_source(verdict, network, source, inputs or (), weights, last_token)
        record |= {**verdict.to_json(), "source": retraced}
        rows |= verdict.rows()
        if retraced["matches"]:
            rows["source"] = f"the program of this certificate is {retraced['name']}"
    if upgrade is not None and verdict.valid:
        # Looks for a witness at a named point, which the recheck never does.
        from attngeom.proofs.upgrade import upgrade as renew
        from attngeom.verification import write_certificate

        with working("upgrading"):
            write_certificate(renew(certificate, budget, seed), upgrade)
        record["upgraded"] = rows["written to"] = str(upgrade)
    print_answer(json, record, pairs("verify", rows))
    return VERDICTS[verdict.is_positive]


def read_network(path: Path) -> Certificate | None:
    """A certificate of a network, None if the file is none that can be read; InputError if it claims something else."""
    try:
        certificate = read_certificate(path)
    except (FormatError, SizeError):
        return None
    kind = certificate.claim.get("kind")
    if kind == "network":
        return certificate
    raise InputError(f"--source with a certificate of kind {str(kind)[:40]!r} given; leave it out, it is for networks")


def compare_source(
    verdict: Verdict, certificate: Certificate, source: str, inputs: Sequence[str], weights: str, last_token: bool
) -> tuple[Verdict, dict[str, Any]]:
    """The verdict on a certificate as one about the network of FILE.py:NAME, and the SHA-256 of both programs."""
    # What traces is imported here alone: the recheck shares nothing with it.
    from attngeom.cli.net import trace_network
    from attngeom.programs.association import multiply_weights_first

    seed, record = certificate.provenance.get("seed"), as_plain(certificate.claim.get("program"))
    seed = seed if isinstance(seed, int) and 0 <= seed <= STORED_SEED else 0
    with working("tracing"):
        own = trace_network(source, inputs, weights, last_token, seed)
        # Where bounds do not meet otherwise, certificates are about the same sums and products in another order.
        other = multiply_weights_first(own)
    text = encode(record, sort_keys=True, separators=(",", ":"))
    digest = sha256(text.encode()).hexdigest()
    own = other if other is not None and other.digest == digest else own
    retraced = {"name": Path(source).name, "sha256": own.digest, "matches": own.digest == digest}
    retraced["certificate"] = {"sha256": digest}
    if retraced["matches"]:
        return verdict, retraced
    words = f"the program of {retraced['name']} is not that of this certificate: {difference(own.to_json(), record)}"
    return Verdict.without_proof(False, verdict.claim, words), retraced


def difference(own: Any, other: Any) -> str:
    """In what two programs differ first: weights and inputs, operations, or what these are given."""
    try:
        nodes, others = own["nodes"], other["nodes"]
        leaves = [
            [f"{n[3]['name']} {n[2]}" for n in both if n[0] in ("parameter", "input")] for both in (nodes, others)
        ]
        for mine, theirs in zip(*leaves):
            if mine != theirs:
                return f"it has {mine}, the certificate {theirs}"
        for place, (mine, theirs) in enumerate(zip(nodes, others)):
            if mine != theirs:
                is_same = mine[0] == theirs[0]
                return f"node {place} is {mine[0]}, {'on other data' if is_same else f'in the certificate {theirs[0]}'}"
        return f"it has {len(nodes)} nodes, the certificate {len(others)}"
    except (TypeError, KeyError, IndexError, AttributeError):
        return "this is no program"


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
