"""Do two models whose weights cannot be brought side by side give the same outputs? Evaluated at random inputs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from attngeom import digits
from attngeom.errors import AttnGeomError
from attngeom.limits.trials import OUTPUT_CHECKS, OUTPUT_TOKENS
from attngeom.limits.work import OUTPUT_PRODUCTS
from attngeom.models.evaluation import forward
from attngeom.models.model import Model


@dataclass(frozen=True)
class OutputCheck:
    """The largest difference of outputs relative to the largest output; None where nothing was evaluated."""

    gap: float | None
    reason: str


def allowed_gap(unit: float, least: float) -> float:
    """How far outputs may move by rounding of files, amplified by layers, at least by the steps of the arithmetic."""
    return min(max(2e3 * unit, least), 0.3)


def check_outputs(one: Model, other: Model, seed: int = 0) -> OutputCheck:
    """Evaluate both models at the same random inputs, which both of them take."""
    if max(one.spec.parameters, other.spec.parameters) * OUTPUT_TOKENS * OUTPUT_CHECKS > OUTPUT_PRODUCTS:
        return OutputCheck(None, "they are too large to be evaluated")
    worst = 0.0
    for number in range(OUTPUT_CHECKS):
        inputs = _inputs(one, other, np.random.default_rng([seed, number]))
        if inputs is None:
            return OutputCheck(None, "they take different inputs")
        try:
            left, right = (forward(model, inputs) for model in (one, other))
        except AttnGeomError as error:
            return OutputCheck(None, f"they cannot be evaluated: {error}")
        if left.shape != right.shape:
            sizes = f"{left.shape[-1]} and {right.shape[-1]} numbers"
            return OutputCheck(float("inf"), f"they give {sizes} for each token")
        size = max(float(np.abs(left).max()), float(np.abs(right).max()), 1e-300)
        worst = max(worst, float(np.abs(left - right).max()) / size)
    words = f"outputs at {OUTPUT_CHECKS} random inputs of seed {seed}"
    return OutputCheck(worst, f"{words} {'differ by' if worst > 0.01 else 'agree to'} {digits.error(worst)}")


def _inputs(one: Model, other: Model, rng: np.random.Generator) -> dict[str, Any] | None:
    """Random inputs that both models take; None if there are none."""
    models = one, other
    fronts = {model.places.front for model in models}
    stacks = {len(model.spec.stacks) for model in models}
    if len(fronts) > 1 or len(stacks) > 1:
        return None
    rows = [
        stack.positions - model.places.position_offset - model.places.first_position
        for model in models
        for stack in model.spec.stacks
        if stack.positions and stack.embeds_tokens
    ]
    count = min([OUTPUT_TOKENS, *rows])
    front = fronts.pop()
    if front == "patches":
        shapes = {tuple(int(model.config.get(k, d)) for k, d in (("num_channels", 3), ("image_size", 224)))
                  for model in models}  # fmt: skip
        if len(shapes) > 1:
            return None
        channels, side = shapes.pop()
        return {"pixel_values": rng.normal(size=(channels, side, side))}
    tokens = rng.integers(0, min(model.spec.vocabulary for model in models), size=(2, count))
    if front == "audio":
        shapes = {(int(model.config.get("num_mel_bins", 80)), 2 * model.spec.stacks[0].positions) for model in models}
        if len(shapes) > 1:
            return None
        return {"input_features": rng.normal(size=shapes.pop()), "decoder_input_ids": tokens[0]}
    return {"input_ids": tokens[0], **({"decoder_input_ids": tokens[1]} if stacks == {2} else {})}
