"""``attngeom inspect``: is this checkpoint at a singular or boundary point, and is it identifiable?"""

from __future__ import annotations

from typing import Annotated

import typer

from attngeom.cli.options import Json, Seed, WeightsPath
from attngeom.cli.output import print_json, print_pairs
from attngeom.exact.ranks import Rank
from attngeom.heads.uniqueness import heads_unique
from attngeom.inspection.geometry import Inspection, inspect
from attngeom.interop import read_weights

ANSWERS = {True: "yes", False: "no", None: "cannot be told"}


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
    print_pairs("exact" if found.weights.domain.is_exact else "in floats", _summary(found))


def _summary(found: Inspection) -> dict[str, object]:
    lines: dict[str, object] = {}
    stratum = found.stratum
    if stratum is not None:
        lines["stratum"] = f"{stratum.name}: {stratum.reason}"
        lines["fiber in (A, V), up to scale"] = stratum.fiber
        for label, flag in (("singular", stratum.is_singular), ("boundary", stratum.is_boundary)):
            lines[label] = ANSWERS[flag]
        lines["critical for (A, V)"] = ANSWERS[stratum.is_critical]
        if stratum.is_singular is not None:
            lines["distance to singular"] = f"{stratum.distance:.3g} (with A and V of norm 1)"
    architecture = found.weights.architecture
    if architecture.num_layers == 1 and architecture.heads > 1:
        unique = heads_unique(found.weights)
        lines["heads"] = f"{unique.verdict.replace('_', ' ')}: {unique.reason}"
    if found.fiber is not None:
        lines["fiber in (M, L)"] = found.fiber.words
    if found.ranks is not None:
        for index, (A, M) in enumerate(zip(found.ranks.A, found.ranks.M)):
            lines[f"rank of A_{index + 1}, M_{index + 1}"] = f"{_show(A)}, {_show(M)}"
        lines["rank of L"] = _show(found.ranks.L)
    if found.local is not None:
        local = found.local
        strength = "proven" if local.is_exact else "lower bound" if local.measured is None else "measured"
        lines["Jacobian rank here"] = f"{local.rank} ({strength}) of {local.architecture.num_parameters} parameters"
        lines["kernel dimension"] = local.kernel_dimension
        lines["rank defect"] = f"{local.defect} against random weights"
        if local.measured is not None:
            lines["gap at that rank"] = "none below" if local.measured.gap is None else f"{local.measured.gap:.1e}"
    for hypothesis in found.hypotheses:
        lines[f"{hypothesis.theorem}: {hypothesis.statement}"] = ANSWERS[hypothesis.holds]
    return lines


def _show(rank: Rank) -> str:
    if rank.is_exact or rank.gap is None:
        return str(rank.value)
    return f"{rank.value} (gap {rank.gap:.1e}{'' if rank.is_clear else ': not clear'})"
