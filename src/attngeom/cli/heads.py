"""``attngeom heads``: are the heads of this layer unique, and which heads give this function?"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from attngeom.cli.app import VERDICTS
from attngeom.cli.options import Json, Seed, Tokens, ValueWidth, file_option, flag, parse_list
from attngeom.cli.output import READING, print_answer, titled, working
from attngeom.errors import InputError
from attngeom.heads.certificate import certify_uniqueness
from attngeom.heads.finding import heads as decide_heads
from attngeom.heads.generic import generic_heads
from attngeom.heads.results import Uniqueness
from attngeom.interop import read_weights
from attngeom.interop.weights import weights_from_json
from attngeom.layer.coefficients import Coefficients
from attngeom.layer.files import FORMAT, coefficients_from_json, collect_terms
from attngeom.network import Architecture, Weights
from attngeom.results import Result
from attngeom.streams import Report, read_long_json
from attngeom.verification import write_certificate


def heads_command(
    source: Annotated[
        Path | None, typer.Argument(metavar="SOURCE", help="Weights of one layer, or coefficients (.json).")
    ] = None,
    heads: Annotated[int | None, typer.Option("--heads", min=1, help="Number of heads; default: as found.")] = None,
    noise: Annotated[float, typer.Option("--noise", help="Relative accuracy of float coefficients.")] = 0.0,
    widths: Annotated[str | None, typer.Option("--widths", help="Widths d, d_out of a generic layer.")] = None,
    attention: Annotated[int | None, typer.Option("--attention", min=1, help="Attention width of each head.")] = None,
    value_width: ValueWidth = None,
    tokens: Tokens = 2,
    prove: Annotated[bool, flag("--prove", "Prove that the heads of a generic layer are unique.")] = False,
    certificate: Annotated[
        Path | None, file_option("--certificate", "Write a certificate for attngeom verify (exact weights).")
    ] = None,
    json: Json = False,
    seed: Seed = 0,
) -> int:
    """Say whether the heads of given weights are unique, or find the heads of given coefficients.

    With --prove, --widths, --attention and --heads: whether generic layers of these sizes have unique heads. Exit
    code 0: unique, or found; 1: not unique, or no direct sum of heads; 3: cannot be told.
    """
    answer: Result
    given: Weights | Coefficients | None = None
    if source is None:
        if not prove or widths is None or attention is None or heads is None:
            raise InputError("no SOURCE given; give a file, or --prove with --widths, --attention and --heads")
        sizes = parse_list(widths, "widths")
        architecture = Architecture(sizes, attention, tokens=tokens, heads=heads, value_width=value_width)
        answer = generic_heads(architecture, seed)
    elif prove or widths is not None or attention is not None or value_width is not None:
        raise InputError(f"{source} given with sizes of generic layers; give either a file, or --prove with sizes")
    else:
        with working("reading") as report:
            given = _read(source, partial(report, READING))
            report("deciding", 0, None)
            answer = decide_heads(given, heads, noise=noise, seed=seed)
    written = {}
    if certificate is not None:
        if not isinstance(given, Weights) or not isinstance(answer, Uniqueness):
            what = (
                "generic layers have none" if given is None else "attngeom certify --heads writes those of coefficients"
            )
            raise InputError(f"--certificate given without weights; {what}")
        write_certificate(certify_uniqueness(given, answer), certificate)
        written["certificate"] = certificate
    print_answer(json, answer.to_json(), titled(answer.rows(), **written))
    return VERDICTS[answer.is_positive]


def _read(source: Path, report: Report) -> Weights | Coefficients:
    """Weights or coefficients, told apart by the format that the file names."""
    if source.suffix != ".json":
        return read_weights(source)
    record = read_long_json(source, {"terms": collect_terms}, report=report)
    if isinstance(record, dict) and record.get("format") == FORMAT:
        return coefficients_from_json(record, str(source))
    return weights_from_json(record, str(source))
