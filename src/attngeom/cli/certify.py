"""``attngeom certify``: decide whether one attention layer, or several, compute given coefficients."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from attngeom import digits
from attngeom.certification import certify
from attngeom.certification.results import Certification
from attngeom.cli.app import VERDICTS
from attngeom.cli.options import MASK, Json, MaskedLayers, Seed, file_option
from attngeom.cli.output import READING, pairs, print_answer, prose, working
from attngeom.errors import InputError
from attngeom.layer.files import read_coefficients
from attngeom.layer.polynomial_maps import read_map
from attngeom.limits.rounding import DECIDED_DISTANCE
from attngeom.limits.shown import MATRIX_WIDTH
from attngeom.verification import write_certificate

if TYPE_CHECKING:
    from attngeom.certification.heads import HeadsCertification
    from attngeom.certification.layers import LayersCertification


def certify_command(
    coefficients: Annotated[Path, typer.Argument(metavar="COEFFS", help="Coefficients of a cubic map (.json).")],
    attention: Annotated[int | None, typer.Option("--attention", min=1, help="Bound on rank A; default: none.")] = None,
    heads: Annotated[int | None, typer.Option("--heads", min=1, help="Sums of so many heads; default: one.")] = None,
    value: Annotated[int | None, typer.Option("--value", min=1, help="Bound on rank V of each head.")] = None,
    layers: Annotated[int | None, typer.Option("--layers", min=2, help="So many layers of one head.")] = None,
    masked: MaskedLayers = False,
    out: Annotated[Path | None, file_option("--out", "Where to write the certificate (.json).")] = None,
    tolerance: Annotated[
        float, typer.Option("--tolerance", min=0, help="Relative distance, float input only.")
    ] = DECIDED_DISTANCE,
    json: Json = False,
    seed: Seed = 0,
) -> int:
    """Decide whether attention computes these coefficients, with weights or a violated relation.

    With --layers the question is about lightning layers of one head, of any widths (exact input of degree 3^l). With
    --heads the layer is a sum of heads with rank A ≤ --attention and rank V ≤ --value each (exact input only).
    """
    if heads is None and value is not None:
        raise InputError("--value given without --heads; give the number of heads, 1 for one head")
    if layers is not None and (heads, attention) != (None, None):
        raise InputError("--layers given with --heads or --attention; these are about one layer: leave them out")
    if masked and layers is None:
        raise InputError(f"{MASK} given without --layers; a mask changes no equation of one layer")
    result: Certification | HeadsCertification | LayersCertification
    with working("reading") as report:
        if layers is not None:
            from attngeom.certification.layers import certify_layers

            result = certify_layers(read_map(coefficients, layers), layers, masked, seed)
            return _finish(result, out, json, seed)
        given = read_coefficients(coefficients, partial(report, READING))
        report("deciding", 0, None)
        if heads is None:
            result = certify(given, attention, seed, tolerance)
        else:
            result = certify(given, attention, seed, heads=heads, value=value)
    return _finish(result, out, json, seed)


def _finish(
    result: Certification | HeadsCertification | LayersCertification, out: Path | None, json: bool, seed: int
) -> int:
    # What is printed is made before the file: an error leaves no certificate behind.
    record = {**result.to_json(), "seed": seed}
    if out is not None:
        if result.certificate is None:
            raise InputError(f"no certificate for the verdict {result.verdict} of this input: {result.reason}")
        write_certificate(result.certificate, out)
    shown = pairs("certify", {**result.rows(), **({} if out is None else {"certificate": out})})
    print_answer(json, record, shown, *(_points(result) if isinstance(result, Certification) else ()))
    return VERDICTS[result.is_positive]


def _points(result: Certification) -> Iterator[str]:
    """The lines of the weights that were found."""
    for number, point in enumerate(result.points):
        title = f"weights over {point.domain.written}" + (f", point {number + 1}" if len(result.points) > 1 else "")
        if max(point.A.shape + point.V.shape) > MATRIX_WIDTH:
            yield prose(f"{title}: A {point.A.shape}, V {point.V.shape}; use --json or --out to see them")
            continue
        yield f"{title}:"
        for name, array in (("A", point.A), ("V", point.V)):
            for row in array:
                yield f"  {name}  " + "  ".join(digits.number(point.domain.format(x)) for x in row)
