"""``attngeom inspect``: is this checkpoint at a singular or boundary point, and is it identifiable?"""

from __future__ import annotations

from typing import Annotated

import typer

from attngeom.cli.options import Json, Seed, WeightsPath
from attngeom.cli.output import pairs, print_answer, working
from attngeom.inspection.geometry import inspect
from attngeom.interop import read_weights


def inspect_command(
    weights: WeightsPath,
    noise: Annotated[float, typer.Option("--noise", help="Relative accuracy of float weights.")] = 0.0,
    json: Json = False,
    seed: Seed = 0,
) -> None:
    """Describe a point of weight space: its stratum, its fiber, and which hypotheses of the theorems hold."""
    with working("inspecting"):
        inspection = inspect(read_weights(weights), noise, seed)
    title = "exact weights" if inspection.weights.domain.is_exact else "float weights: ranks are estimates"
    print_answer(json, {**inspection.to_json(), "seed": seed}, pairs(title, inspection.rows()))
