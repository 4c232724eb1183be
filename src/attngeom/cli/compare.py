"""``attngeom compare``: do two checkpoints compute the same function?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from attngeom.cli.app import EXIT_NEGATIVE, EXIT_UNDECIDED
from attngeom.cli.options import Json, Seed, file_option
from attngeom.cli.output import print_json, print_pairs
from attngeom.comparison.align import Alignment, align
from attngeom.errors import InputError
from attngeom.files import to_json, write_atomic
from attngeom.interop import read_weights
from attngeom.network.symmetry_json import symmetry_to_json

VERDICTS = {True: "same function", False: "different functions", None: "cannot be told"}


def register(app: typer.Typer) -> None:
    app.command("compare")(compare_command)


def compare_command(
    first: Annotated[Path, typer.Argument(metavar="A", help="Weights: .safetensors, or .json for exact ones.")],
    second: Annotated[Path, typer.Argument(metavar="B", help="Weights of the same architecture.")],
    tolerance: Annotated[float, typer.Option("--tolerance", help="Relative accuracy of float weights.")] = 1e-9,
    out: Annotated[Path | None, file_option("--out", "Where to write the symmetry (.json).")] = None,
    json: Json = False,
    seed: Seed = 0,
) -> None:
    """Decide whether two checkpoints compute the same function: a symmetry, or an input that separates them.

    Exit code 0: same function; 1: different; 3: cannot be told.
    """
    if out is not None and out.suffix != ".json":
        raise InputError(f"--out {out} given; symmetries are written as .json")
    result = align(read_weights(first), read_weights(second), tolerance, seed)
    if out is not None and result.symmetry is not None:
        write_atomic(out, to_json(symmetry_to_json(result.symmetry)) + "\n")
    if json:
        print_json(result.to_json())
    else:
        print_pairs(VERDICTS[result.same_function], _summary(result, out))
    if result.same_function is not True:
        raise typer.Exit(EXIT_NEGATIVE if result.same_function is False else EXIT_UNDECIDED)


def _summary(result: Alignment, out: Path | None) -> dict[str, object]:
    lines: dict[str, object] = {"reason": result.reason, "proven": "yes" if result.is_proven else "no"}
    if result.error_probability is not None:
        lines["error probability"] = f"at most {result.error_probability:.1e}"
    if result.failed_hypotheses:
        lines["hypotheses that fail"] = "; ".join(result.failed_hypotheses)
    if result.residual is not None:
        lines["misfit after alignment"] = f"{result.residual:.1e}"
    if result.separation is not None:
        record = result.separation.to_json()
        lines["separating input"] = record["separating_input"]
        lines["outputs"] = " and ".join(str(output) for output in record["outputs"])
    if out is not None:
        lines["written to"] = out if result.symmetry is not None else "nothing: there is no symmetry to write"
    return lines
