"""``attngeom forward``, ``attngeom coefficients`` and ``attngeom import``: weights as functions and as files."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from attngeom import digits
from attngeom.cli.options import (
    IgnoredSeed,
    ImportedMask,
    Json,
    Kind,
    Tokens,
    WeightsPath,
    file_option,
    flag,
    parse_list,
)
from attngeom.cli.output import pairs, print_answer, print_json, prose
from attngeom.errors import DomainError, InputError, SingularError
from attngeom.exact.domains import QQ, RR, Array, Balls
from attngeom.interop import import_checkpoint, read_weights, write_weights
from attngeom.interop.arrays import read_array, write_array
from attngeom.layer.coefficients import coefficients, count_cubics, count_output, count_support
from attngeom.layer.files import coefficients_to_json, write_coefficients
from attngeom.layer.polynomial_maps import PolynomialMap, expand_network, write_map
from attngeom.limits.rounding import SEPARATING_BITS, UNIT_ROUNDOFF
from attngeom.network import Weights, forward
from attngeom.network.programs import is_rational


def forward_command(
    weights: WeightsPath,
    inputs: Annotated[Path, typer.Argument(metavar="X", help="Input X, d×t: .json rows, or .npy.")],
    out: Annotated[Path | None, file_option("--out", "Where to write the output.")] = None,
    json: Json = False,
    seed: IgnoredSeed = 0,
) -> None:
    """Evaluate a network at X: exactly for rational weights and inputs, else in double precision."""
    network = read_weights(weights)
    X, domain = read_array(inputs)
    exact = network.domain == QQ and domain == QQ and is_rational(network.architecture)
    domain = QQ if exact else RR
    outputs = forward(network.to(domain), domain.convert(X))
    Y = outputs if exact or np.all(np.isfinite(outputs)) else _enclosed(network, X)
    if Y is None:
        raise InputError(f"{inputs}: the outputs overflow in double precision; give smaller inputs, or smaller weights")
    if out is not None:
        write_array(Y, domain, out)
    shape = list(Y.shape)
    output = np.frompyfunc(domain.format, 1, 1)(Y)
    lines = ["  ".join(map(digits.number, row)) for row in output.reshape(-1, shape[-1])]
    if out is not None:
        lines = [f"{'exact' if exact else 'float'} output of shape {shape} written to {out}"]
    print_answer(json, {"exact": exact, "shape": shape, "output": output.tolist(), "out": _name(out)}, *lines)


def _enclosed(network: Weights, X: Array) -> Array | None:
    """The outputs by balls, in which exponentials of large scores do not overflow; None if no precision suffices."""
    for bits in SEPARATING_BITS:
        balls = Balls(bits)
        with suppress(SingularError, DomainError):
            Y = forward(network.to(balls), balls.convert(X))
            middles, radii = (np.vectorize(part, otypes=[float])(Y) for part in (lambda y: y.mid(), lambda y: y.rad()))
            if np.all(np.isfinite(middles)) and np.all(radii <= UNIT_ROUNDOFF * np.abs(middles)):
                return np.asarray(middles)
    return None


def coefficients_command(
    weights: WeightsPath,
    out: Annotated[Path | None, file_option("--out", "Where to write the coefficients (.json).")] = None,
    json: Json = False,
    seed: IgnoredSeed = 0,
) -> None:
    """Expand a lightning layer, or an exact deep network, into the coefficients of its polynomials."""
    network = read_weights(weights)
    if out is not None and out.suffix != ".json":
        raise InputError(f"--out {out} given; coefficients are written as .json")
    if network.architecture.num_layers > 1 and network.domain == QQ:
        _expand(expand_network(network), out, json)
        return
    layer = coefficients(network)
    if out is not None:
        write_coefficients(layer, out)
    if json:
        print_json(coefficients_to_json(layer))
        return
    d, t = layer.d, layer.t
    shown = {
        "map": f"{d}×{t} → {layer.d_out}×{t}, cubic, {'exact' if layer.domain.is_exact else 'float'}",
        "monomials of one output": f"{count_output(d, t):,}",
        "monomials in use": f"{count_support(d, t):,} of {count_cubics(d, t):,} cubic ones",
        "written to": _name(out) or "nothing (give --out)",
    }
    print(pairs("coefficients", shown))


def _expand(given: PolynomialMap, out: Path | None, json: bool) -> None:
    """Write and show the polynomials of a deep network."""
    if out is not None:
        write_map(given, out)
    shown = {
        "map": f"{given.d}×{given.t} → {given.d_out}×{given.t}, degree {given.degree}, exact",
        "terms": f"{sum(len(f) for row in given.outputs for f in row):,}",
        "written to": _name(out) or "nothing (give --out)",
    }
    print_answer(json, given.to_json(), pairs("coefficients", shown))


def import_command(
    checkpoint: Annotated[Path, typer.Argument(help="A safetensors checkpoint of another library.")],
    out: Annotated[Path, file_option("--out", "Where to write the weights (.safetensors).")],
    heads: Annotated[int | None, typer.Option("--heads", help="Heads; default: config.json beside the file.")] = None,
    key_value_heads: Annotated[int | None, typer.Option("--key-value-heads", help="Grouped-query heads.")] = None,
    blocks: Annotated[str | None, typer.Option("--blocks", help="Attention blocks to take, e.g. 0,1.")] = None,
    kind: Kind = "softmax",
    tokens: Tokens = 3,
    residual: Annotated[
        bool | None, typer.Option("--residual/--no-residual", help="A skip connection; default: as config.json says.")
    ] = None,
    masked: ImportedMask = None,
    idealised: Annotated[
        bool, flag("--idealised", "Take the attention weights alone, and name what is left out.")
    ] = False,
    json: Json = False,
    seed: IgnoredSeed = 0,
) -> None:
    """Take attention weights from a checkpoint of torch or Hugging Face that holds nothing else.

    Norms, rotary embeddings, biases and hidden layers change the function: such checkpoints are refused unless
    --idealised is given. Whole transformers are compared by attngeom model.
    """
    result = import_checkpoint(
        checkpoint,
        heads,
        key_value_heads,
        None if blocks is None else parse_list(blocks, "blocks"),
        kind,
        masked,
        residual,
        tokens,
        idealised,
    )
    write_weights(result.weights, out, result.unmodelled)
    architecture = result.weights.architecture
    record = {"architecture": architecture.to_json(), "blocks": list(result.blocks)}
    record |= {"unmodelled": dict(result.unmodelled), "out": str(out)}
    shown = {
        "blocks": ", ".join(block.rstrip(".") or "(top level)" for block in result.blocks),
        "widths": list(architecture.widths),
        "heads": f"{architecture.heads}, attention width {architecture.attention[0]}",
        "parameters": f"{architecture.num_parameters:,}",
        "written to": out,
    }
    lines = [f"not modelled ({len(result.unmodelled)}):"] if result.unmodelled else []
    lines += [prose(f"  {name}: {reason}") for name, reason in result.unmodelled.items()]
    print_answer(json, record, pairs("imported", shown), *lines)


def _name(path: Path | None) -> str | None:
    return None if path is None else str(path)
