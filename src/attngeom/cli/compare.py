"""``attngeom compare``: do two checkpoints compute the same function?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from attngeom.cli.app import VERDICTS
from attngeom.cli.options import Json, Seed, file_option
from attngeom.cli.output import print_answer, prose, titled, working
from attngeom.comparison import compare
from attngeom.comparison.certificate import certify_comparison
from attngeom.errors import InputError
from attngeom.files import to_json, write_atomic
from attngeom.interop import read_weights
from attngeom.interop.weights import read_dropped
from attngeom.network.symmetry.element import symmetry_to_json
from attngeom.verification import write_certificate


def compare_command(
    first: Annotated[Path, typer.Argument(metavar="A", help="Weights: .safetensors, or .json for exact ones.")],
    second: Annotated[Path, typer.Argument(metavar="B", help="Weights of the same architecture.")],
    tolerance: Annotated[float, typer.Option("--tolerance", help="Relative accuracy of float weights.")] = 1e-9,
    out: Annotated[Path | None, file_option("--out", "Where to write the symmetry (.json).")] = None,
    certificate: Annotated[
        Path | None, file_option("--certificate", "Write a certificate for attngeom verify (exact weights).")
    ] = None,
    json: Json = False,
    seed: Seed = 0,
) -> int:
    """Decide whether two checkpoints compute the same function: a symmetry, or an input that separates them.

    Exit code 0: same function; 1: different; 3: cannot be told.
    """
    if out is not None and out.suffix != ".json":
        raise InputError(f"--out {out} given; symmetries are written as .json")
    with working("reading") as report:
        sides = read_weights(first), read_weights(second)
        result = compare(*sides, tolerance, seed, report)
    if certificate is not None:
        with working("rechecking"):
            write_certificate(certify_comparison(*sides, result), certificate)
    if out is not None and result.symmetry is not None:
        write_atomic(out, to_json(symmetry_to_json(result.symmetry)) + "\n")
    dropped = {str(path): unread for path in (first, second) if (unread := read_dropped(path))}
    written = (
        {} if out is None else {"written_to": out if result.symmetry else "nothing: there is no symmetry to write"}
    )
    if certificate is not None:
        written["certificate"] = certificate
    lines = (
        f"about idealised weights: {path} leaves out {len(names)} parts of its model, {_some(names)}"
        for path, names in dropped.items()
    )
    # The symmetry is written out only where it is asked for: that may take longer than the verdict.
    record = result.to_json() | ({"not_modelled": dropped} if dropped else {}) if json else {}
    print_answer(json, record, titled(result.rows(), **written), *map(prose, lines))
    return VERDICTS[result.is_positive]


def _some(names: dict[str, str]) -> str:
    """The first of what was left out."""
    shown = [f"{name} ({reason})" for name, reason in list(names.items())[:3]]
    return ", ".join(shown) + (" …" if len(names) > 3 else "")
