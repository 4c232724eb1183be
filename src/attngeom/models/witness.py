"""Do two layers, or two models, compute the same? Evaluated at random states or inputs, where weights do not decide it.

Weights that differ by a symmetry that no part of `symmetry` describes (equal rotary frequencies, equal gains of a
QK-norm, units that never switch) give equal outputs; heads that the function does not determine may give others.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import numpy as np

from attngeom import digits
from attngeom.errors import AttnGeomError
from attngeom.exact.arrays import Array
from attngeom.limits.rounding import OUTPUT_ROUNDING, OUTPUTS_AGREE, OUTPUTS_OPEN, TENSORS_AGREE
from attngeom.limits.trials import (
    CHOICE_BISECTIONS,
    CHOICE_PATHS,
    EXPERT_STATES,
    OUTPUT_CHECKS,
    OUTPUT_TOKENS,
    WITNESS_PATCHES,
    WITNESS_STEPS,
    WITNESS_TOKENS,
    WRONG_EXPERTS,
    WRONG_HEADS,
)
from attngeom.limits.work import OUTPUT_PRODUCTS
from attngeom.models.evaluation import (
    apply_experts,
    apply_layer,
    distance_states,
    forward,
    relative_buckets,
    route,
)
from attngeom.models.findings import hidden_parts
from attngeom.models.layer import ExpertsWeights, LayerWeights, RecurrentWeights
from attngeom.models.mismatches import Mismatches
from attngeom.models.mixers import RecurrentMixer
from attngeom.models.model import Model
from attngeom.models.orbits import Recovered
from attngeom.models.recurrences import apply_recurrence, normalise
from attngeom.models.specification import Experts, Norm, Stack, TransformerBlock
from attngeom.models.symmetry.units import CORRECTION
from attngeom.models.tensor_errors import TensorPart
from attngeom.models.views import ModelView


def read_distances(view: ModelView, stack: Stack) -> Array | None:
    """The states of the distances that scores read, behind their norm.

    A vector that all of them have in common adds the same to all scores of a query, where keys alone read them.
    """
    states = distance_states(stack, view.distances(stack))
    if states is None:
        return None
    states = states[stack.read_distances]
    readers = [block.attention.disentangled for block in stack.kinds if block.attention is not None]
    shows = any(reader is not None and reader.queries for reader in readers)
    return states if shows else states - states.mean(axis=0)


def written(view: ModelView, layer: int, folded: LayerWeights) -> Array:
    """What a folded layer adds to random states, the same ones for every model of this width."""
    rng, width = np.random.default_rng(layer), view.model.spec.width
    stack, _ = view.model.place(layer)
    block, table = view.model.block(layer), view.relative(stack)
    own = None if block.attention is None else block.attention.relative
    count = WITNESS_TOKENS if own is None or not own.tokens else min(own.tokens, WITNESS_PATCHES)
    x, memory = rng.normal(size=(2, count, width))
    if table is not None:
        assert block.attention is not None
        table = table[relative_buckets(len(x), len(x), stack, block.attention)].transpose(2, 0, 1)
    norm: Norm | None = view.model.spec.stacks[0].final_norm
    states = memory if norm is None else normalise(memory, norm)
    distances = rng.normal(size=(stack.distances, width)) if stack.distances else None
    with np.errstate(over="ignore", invalid="ignore"):
        return np.asarray(apply_layer(x, block, folded, states, table, distances) - x)


def relative_gap(ours: Array, theirs: Array) -> float:
    """Largest difference relative to the largest entry."""
    size = max(float(np.abs(ours).max()), float(np.abs(theirs).max()), 1e-300)
    return float(np.abs(ours - theirs).max()) / size


def expert_gap(
    spec: Experts, one: ExpertsWeights, other: ExpertsWeights, wrong: Collection[int], centred: bool
) -> float:
    """Largest relative difference of what two sets of experts write, at states that are sent to the wrong ones.

    Random states hardly meet each of many experts: these lie along its row of the router.
    """
    rng, d = np.random.default_rng(0), one.router.weight.shape[1]
    rows = one.router.weight - one.router.weight.mean(axis=0)
    looked = list(wrong)[:WRONG_EXPERTS]
    near = [2 * rows[e] * np.sqrt(d) / (np.linalg.norm(rows[e]) or 1.0) + rng.normal(size=(4, d)) for e in looked]
    points = np.concatenate([*near, rng.normal(size=(EXPERT_STATES, d))])
    points = points - points.mean(axis=1, keepdims=True) if centred else points
    points = points * np.sqrt(d) / np.linalg.norm(points, axis=1, keepdims=True)
    chosen = np.stack([route(scores, spec, one.correction) != 0 for scores in one.router(points.T).T])
    kept = np.unique(np.concatenate([np.flatnonzero(chosen[:, e])[:4] for e in looked]))
    if not len(kept):
        return 0.0
    ours, theirs = (apply_experts(points[kept], spec, mlp) for mlp in (one, other))
    return relative_gap(ours, theirs)


def chooses_otherwise(spec: Experts, one: ExpertsWeights, other: ExpertsWeights, centred: bool) -> bool:
    """Whether a state is found for which two routers choose different experts.

    Between two states for which the first router chooses differently there is one at which its choice changes; the
    second has to change its choice at the same place.
    """
    rng = np.random.default_rng(0)

    def state(point: Array) -> Array:
        point = point - point.mean() if centred else point
        return np.asarray(point * np.sqrt(len(point)) / np.linalg.norm(point))

    def chosen(mlp: ExpertsWeights, point: Array) -> Array:
        return np.asarray(route(mlp.router(state(point)[:, None])[:, 0], spec, mlp.correction) != 0)

    for _ in range(CHOICE_PATHS):
        low, high = rng.normal(size=(2, one.router.weight.shape[1]))
        first = chosen(one, low)
        if np.array_equal(chosen(one, high), first):
            continue
        for _ in range(CHOICE_BISECTIONS):
            middle = (low + high) / 2
            low, high = (middle, high) if np.array_equal(chosen(one, middle), first) else (low, middle)
        if any(not np.array_equal(chosen(one, point), chosen(other, point)) for point in (low, high)):
            return True
    return False


def mixer_gap(spec: RecurrentMixer, one: RecurrentWeights, other: RecurrentWeights, wrong: Collection[int]) -> float:
    """Largest relative difference of what two mixers write, at tokens with all sizes of time steps in the wrong heads.

    With large steps alone a state is forgotten at once, with small ones nothing is written: random tokens hardly show
    then by how much it decays. These lie at all angles to the row of the steps.
    """
    rng, d = np.random.default_rng(0), one.output.shape[1]
    gap = 0.0
    for head in [head for head in wrong if head < spec.heads][:WRONG_HEADS]:
        row = np.zeros(d) if one.step is None else one.step.weight[head]
        along = np.linspace(-3, 3, WITNESS_STEPS)[rng.permutation(WITNESS_STEPS), None]
        points = rng.normal(size=(WITNESS_STEPS, d)) + along * np.sqrt(d) * row / (np.linalg.norm(row) or 1.0)
        points = points * np.sqrt(d) / np.linalg.norm(points, axis=1, keepdims=True)
        with np.errstate(over="ignore", invalid="ignore"):
            gap = max(gap, relative_gap(*(apply_recurrence(points, spec, mixer) for mixer in (one, other))))
    return gap


def unexplained_gap(
    block: TransformerBlock, target: LayerWeights, recovered: Recovered, beyond: list[tuple[Mismatches, Array]],
    gross: bool, gap: float, unit: float,
) -> float | None:  # fmt: skip
    """How far outputs differ if they do not tell layers apart whose weights differ; else None.

    What differs may lie in heads or units that the function does not determine, or alignment may have failed.
    """
    wrong, noise = (
        {m.of for m, places in beyond if len(places)},
        min(OUTPUTS_AGREE * max(unit, OUTPUT_ROUNDING), OUTPUTS_OPEN),
    )
    one, norm = target.mlp, block.mlp_norms.input
    centred = norm is not None and norm.kind == "layer"
    if wrong == {CORRECTION}:
        # Random states hardly meet the places where a choice of experts changes: they are looked for.
        aligned = recovered.aligned.mlp
        assert isinstance(block.mlp, Experts)
        assert isinstance(one, ExpertsWeights) and isinstance(aligned, ExpertsWeights)
        return None if chooses_otherwise(block.mlp, one, aligned, centred) else 0.0
    mixers = target.mixer, recovered.aligned.mixer
    if block.mixer is not None and mixers[0] is not None and mixers[1] is not None:
        heads = {int(i) for m, places in beyond if m.of.place == "mixer" and len(m.values) > 1 for i in places}
        gap = max(gap, mixer_gap(block.mixer, mixers[0], mixers[1], sorted(heads)))
    if not gap <= TENSORS_AGREE * noise:
        return None
    hidden = hidden_parts(target, recovered)
    unclear = all(m[int(i)].index in hidden.get(m.of, ()) for m, places in beyond for i in places)
    if not unclear and not gross:
        return None
    spoilt = _wrong_experts(target, wrong) if isinstance(block.mlp, Experts) else []
    if spoilt:
        moved = recovered.moved.mlp
        assert isinstance(block.mlp, Experts)
        assert isinstance(one, ExpertsWeights) and isinstance(moved, ExpertsWeights)
        gap = max(gap, expert_gap(block.mlp, one, moved, spoilt, centred))
    return gap if gap <= (TENSORS_AGREE if unclear else 1.0) * noise else None


def _wrong_experts(layer: LayerWeights, wrong: set[TensorPart]) -> list[int]:
    """The numbers of the experts with tensors that do not fit."""
    assert isinstance(layer.mlp, ExpertsWeights)
    places = {part.place for part in wrong}
    return [number for number, name in zip(range(len(layer.mlp.experts)), layer.hidden) if name in places]


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
        worst = max(worst, relative_gap(left, right))
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
