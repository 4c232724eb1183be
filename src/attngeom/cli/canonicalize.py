"""``attngeom canonicalize`` and ``attngeom teleport``: move along the fiber without changing the function."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from attngeom.canonical.compact import coordinates
from attngeom.canonical.compact_files import is_compact, read_compact, write_compact
from attngeom.canonical.form import canonical_form, restore
from attngeom.canonical.projection import loss, loss_gradient
from attngeom.canonical.teleport import maximise_gradient, minimise_norm
from attngeom.cli.options import IgnoredSeed, Json, Seed, WeightsPath, file_option, flag
from attngeom.cli.output import print_json, print_pairs
from attngeom.errors import InputError
from attngeom.exact.domains import RR, Array
from attngeom.interop import read_weights, write_weights
from attngeom.interop.arrays import read_array
from attngeom.network import Weights, random_symmetry

Out = Annotated[Path, file_option("--out", "Where to write the result.")]
OBJECTIVES = ("random", "norm", "gradient")
GAUGES = ("echelon", "balanced")


def register(app: typer.Typer) -> None:
    app.command("canonicalize")(canonicalize_command)
    app.command("teleport")(teleport_command)


def canonicalize_command(
    weights: WeightsPath,
    out: Out,
    compact: Annotated[bool, flag("--compact", "Store the canonical coordinates only.")] = False,
    gauge: Annotated[str | None, typer.Option("--gauge", help="echelon or balanced (floats; their default).")] = None,
    json: Json = False,
    seed: IgnoredSeed = 0,
) -> None:
    """Write the canonical representative of the weights; a compact file is restored to weights."""
    if gauge is not None and gauge not in GAUGES:
        raise InputError(f"--gauge {gauge[:40]!r} given; one of {', '.join(GAUGES)} is required")
    form = read_compact(weights) if is_compact(weights) else canonical_form(read_weights(weights))
    if compact:
        write_compact(form, out)
    else:
        balanced = gauge == "balanced" if gauge is not None else form.domain.rounds
        write_weights(restore(form, "balanced" if balanced else "echelon"), out)
    before, after = weights.stat().st_size, out.stat().st_size
    free = len(coordinates(form))
    record = {
        "num_parameters": form.architecture.num_parameters,
        "num_free": free,
        "bytes_before": before,
        "bytes_after": after,
        "bytes_saved": before - after,
        "compact": compact,
        "out": str(out),
    }
    if json:
        print_json(record)
        return
    print_pairs(
        "canonical form",
        {
            "parameters": f"{form.architecture.num_parameters:,}, of which {free:,} are free",
            "bytes": f"{before:,} before, {after:,} after ({before - after:,} saved)",
            "written to": out,
        },
    )


def teleport_command(
    weights: WeightsPath,
    out: Out,
    objective: Annotated[
        str, typer.Option("--objective", help="random, norm (smallest weights) or gradient (largest gradient).")
    ] = "random",
    inputs: Annotated[
        Path | None, typer.Option("--inputs", help="Inputs N×d×t for the gradient (.npy, .json).")
    ] = None,
    targets: Annotated[Path | None, typer.Option("--targets", help="Targets N×d_out×t for the gradient.")] = None,
    budget: Annotated[float, typer.Option("--budget", help="Largest weight norm, relative to the present one.")] = 1.0,
    json: Json = False,
    seed: Seed = 0,
) -> None:
    """Move the weights along their fiber: by a random symmetry, to the least norm, or to a larger gradient."""
    if objective not in OBJECTIVES:
        raise InputError(f"--objective {objective[:40]!r} given; one of {', '.join(OBJECTIVES)} is required")
    start = read_weights(weights)
    record: dict[str, object] = {"objective": objective, "seed": seed, "out": str(out)}
    if objective == "random":
        moved = start.act(random_symmetry(start.architecture, start.domain, seed))
    elif objective == "norm":
        found = minimise_norm(start.to(RR))
        moved = found.weights
        record |= {"norm_before": found.before, "norm_after": found.after}
    else:
        X, Y = _data(inputs, targets, start)
        found = maximise_gradient(start.to(RR), loss_gradient(start.to(RR), X, Y), budget)
        moved = found.weights
        record |= {"gradient_before": found.before, "gradient_after": found.after}
        record |= {"loss_before": loss(start.to(RR), X, Y), "loss_after": loss(moved, X, Y)}
    write_weights(moved, out)
    if json:
        print_json(record)
        return
    print_pairs("teleported", {key.replace("_", " "): value for key, value in record.items()})


def _data(inputs: Path | None, targets: Path | None, weights: Weights) -> tuple[Array, Array]:
    if inputs is None or targets is None:
        raise InputError("--objective gradient given without data; give --inputs and --targets")
    X, Y = (RR.convert(read_array(path)[0]) for path in (inputs, targets))
    widths = weights.architecture.widths
    if X.ndim != 3 or X.shape[1] != widths[0] or Y.shape != (X.shape[0], widths[-1], X.shape[2]):
        raise InputError(
            f"inputs of shape {X.shape} and targets of shape {Y.shape} given;"
            f" (N, {widths[0]}, t) and (N, {widths[-1]}, t) are required"
        )
    return np.ascontiguousarray(X), np.ascontiguousarray(Y)
