"""``attngeom inspect``: is this checkpoint at a singular or boundary point, and is it identifiable?"""

from __future__ import annotations

from typing import Annotated

import typer

from attngeom.cli.options import Json, Seed, WeightsPath
from attngeom.cli.output import print_json, print_pairs
from attngeom.inspection.geometry import inspect
from attngeom.interop import read_weights


def register(app: typer.Typer) -> None:
    app.command("inspect")(inspect_command)


def inspect_command(
    weights: WeightsPath,
    noise: Annotated[float, typer.Option("--noise", help="Relative accuracy of float weights.")] = 0.0,
    json: Json = False,
    seed: Seed = 0,
) -> None:
    """Describe a point of weight space: its stratum, its fiber, and which hypotheses of the theorems hold."""
    found = inspect(read_weights(weights), noise, seed)
    if json:
        print_json({**found.to_json(), "seed": seed})
        return
    print_pairs("exact" if found.weights.domain.is_exact else "in floats", found.rows())
