"""Do two checkpoints compute the same function? Exact first, then within the rounding of their files, head by head."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np

from attngeom.errors import InputError
from attngeom.exact.arrays import Array
from attngeom.models.degenerate import hidden_parts
from attngeom.models.fingerprint import LayerPrint, gather, layer_fingerprint
from attngeom.models.layer import LayerWeights
from attngeom.models.misfits import FLOOR, Misfit, folding_noise, layer_misfits, relative
from attngeom.models.model import Model
from attngeom.models.names import tensor_name
from attngeom.models.reading import ROUNDOFF
from attngeom.models.recovery import recover
from attngeom.models.settings import HARMLESS, settings_differences, storage_differences
from attngeom.models.symmetry import Symmetry
from attngeom.models.views import View, can_flatten, expanded, residual_rotation, scaled_queries

Level = Literal["auto", "exact", "rounding"]
Scope = Literal["layer", "model"]
SAME, DIFFERENT = 3.0, 10.0
OUTLIER = 1.4
"""A head with a misfit this far above the expected one is suspect, although rounding may explain it."""


@dataclass(frozen=True, kw_only=True)
class LayerComparison:
    """Verdict of one layer: the worst head or unit, and every tensor that rounding does not explain."""

    layer: int | str
    same: bool | None
    worst: Misfit | None
    tensor: str | None
    wrong: tuple[tuple[str, Misfit], ...] = ()
    suspects: tuple[tuple[str, Misfit], ...] = ()
    condition: float = 1.0

    def to_json(self) -> dict[str, Any]:
        worst = None
        if self.worst is not None:
            worst = _misfit_json(self.tensor or self.worst.part, self.worst)
        return {
            "layer": self.layer,
            "same": self.same,
            "worst": worst,
            "condition": self.condition,
            "wrong": [_misfit_json(name, misfit) for name, misfit in self.wrong],
            "suspects": [_misfit_json(name, misfit) for name, misfit in self.suspects],
        }


def _misfit_json(tensor: str, misfit: Misfit) -> dict[str, Any]:
    return {
        "tensor": tensor,
        "part": misfit.part,
        "head": misfit.index,
        "misfit": misfit.value,
        "expected": misfit.expected,
    }


@dataclass(frozen=True, kw_only=True)
class ModelComparison:
    """Whether two models compute the same function, how strongly, and where they differ."""

    same_function: bool | None
    level: Literal["exact", "rounding", "config"]
    reason: str
    unit: float
    error_probability: float | None = None
    layers: tuple[LayerComparison, ...] = ()
    config_differences: dict[str, list[Any]] = field(default_factory=dict)
    symmetry: tuple[Symmetry, ...] = ()
    seed: int = 0

    @property
    def standing(self) -> str:
        if self.same_function is None:
            return "undecided"
        return "probabilistic" if self.level == "exact" else "estimate"

    def to_json(self) -> dict[str, Any]:
        return {
            "same_function": self.same_function,
            "level": self.level,
            "standing": self.standing,
            "error_probability": self.error_probability,
            "unit": self.unit,
            "layers": [layer.to_json() for layer in self.layers],
            "config_differences": self.config_differences,
            "reason": self.reason,
            "seed": self.seed,
        }

    def __str__(self) -> str:
        word = {True: "same function", False: "different functions", None: "undecided"}[self.same_function]
        lines = [f"{word} ({self.level}, {self.standing}): {self.reason}"]
        lines += [f"  config {key}: {a!r} and {b!r}" for key, (a, b) in self.config_differences.items()]
        for layer in self.layers:
            for name, misfit in (*layer.wrong, *layer.suspects):
                head = "" if misfit.index is None else f" [{misfit.index}]"
                lines.append(
                    f"  layer {layer.layer}: {name}{head} misfit {misfit.value:.2e}, {misfit.expected:.1e} expected"
                )
        return "\n".join(lines)


def compare(
    one: Model, other: Model, *, level: Level = "auto", scope: Scope = "layer", tolerance: float | None = None,
    unit: float | None = None, seed: int = 0, progress: Callable[[int, int], None] | None = None,
) -> ModelComparison:  # fmt: skip
    """Compare two models: settings, exact fingerprints, then alignment within rounding.

    ``scope`` model also allows a turned residual stream; ``tolerance`` replaces the expected misfit of every head.
    ``unit`` is the unit roundoff to allow for, by default that of the coarser file.
    """
    if level not in ("auto", "exact", "rounding") or scope not in ("layer", "model"):
        raise InputError("level auto, exact or rounding and scope layer or model are required")
    if tolerance is not None and not 0 < tolerance < 1:
        raise InputError(f"tolerance {tolerance} given; a number between 0 and 1 is required")
    unit = max(ROUNDOFF[one.dtype], ROUNDOFF[other.dtype]) if unit is None else unit
    differences = settings_differences(one.spec, other.spec)
    stored = storage_differences(one.config, other.config)
    listed = {**differences, **{key: pair for key, pair in stored.items() if key not in differences}}
    if differences:
        names = ", ".join(list(differences)[:3])
        return ModelComparison(
            same_function=False, level="config", unit=unit, config_differences=listed, seed=seed,
            reason=f"the configurations describe different functions: {names[:120]}",
        )  # fmt: skip
    if level in ("auto", "exact"):
        exact = _compare_exactly(one, other, unit, listed, seed, stop_early=level == "auto")
        if exact is not None:
            return exact
    return _compare_rounded(one, other, unit, listed, scope, tolerance, seed, progress)


def _compare_exactly(
    one: Model, other: Model, unit: float, listed: dict[str, list[Any]], seed: int, *, stop_early: bool
) -> ModelComparison | None:
    """The exact verdict; with ``stop_early`` None at the first layer that differs, which rounding may explain."""
    prints: list[tuple[LayerPrint, LayerPrint]] = []
    for layer in range(one.layers):
        prints.append((layer_fingerprint(one, layer, seed), layer_fingerprint(other, layer, seed)))
        if stop_early and prints[-1][0].digest != prints[-1][1].digest:
            return None
    left, right = (gather(model, [pair[i] for pair in prints], seed) for i, model in enumerate((one, other)))
    if stop_early and left.outside != right.outside:
        return None
    layers = tuple(
        LayerComparison(layer=i, same=_same_prints(a, b), worst=None, tensor=None) for i, (a, b) in enumerate(prints)
    )
    probability = max(left.error_probability, right.error_probability)
    outside = left.outside == right.outside
    same: bool | None = outside and all(layer.same for layer in layers)
    reason = "all invariants of the weights agree mod 2^61 − 1"
    if not same:
        wrong = [str(layer.layer) for layer in layers if not layer.same]
        places = [f"layer {number}" for number in wrong[:3]] + ([] if outside else ["embedding, head or norms outside"])
        reason = f"invariants differ exactly: {', '.join(places)}"
        if not (left.is_generic and right.is_generic):
            same, reason = (
                None,
                reason + "; but some invariant is zero or occurs twice, so that weights may be invisible",
            )
    unknown = _unknown_differences(listed)
    if same and unknown:
        same, reason = None, f"weights agree, but config keys of unknown effect differ: {', '.join(unknown)[:80]}"
    return ModelComparison(
        same_function=same, level="exact", unit=unit, error_probability=probability, layers=layers,
        config_differences=listed, reason=reason, seed=seed,
    )  # fmt: skip


def _same_prints(a: LayerPrint, b: LayerPrint) -> bool | None:
    if a.digest == b.digest:
        return True
    return False if a.is_generic and b.is_generic else None


READ_KEYS = frozenset(
    {
        "model_type", "hidden_size", "n_embd", "d_model", "num_attention_heads", "n_head", "num_key_value_heads",
        "num_kv_heads", "num_heads", "head_dim", "rope_parameters", "rope_scaling", "rope_theta", "attention_bias",
        "mlp_bias", "tie_word_embeddings", "rms_norm_eps", "layer_norm_eps", "layer_norm_epsilon", "hidden_act",
        "hidden_activation", "activation_function", "num_hidden_layers", "n_layer", "vocab_size", "intermediate_size",
        "n_inner", "n_positions", "layer_types", "max_window_layers", "use_sliding_window", "sliding_window",
        "partial_rotary_factor", "rotary_pct", "rotary_dim", "rotary_emb_base", "query_pre_attn_scalar", "multi_query",
        "new_decoder_architecture", "bias", "qk_head_dim", "original_max_position_embeddings", "rope_interleave",
        "scale_attn_weights", "scale_attn_by_inverse_layer_idx", "num_ln_in_parallel_attn", "parallel_attn",
    }
)  # fmt: skip
"""Keys whose effect is in the specification: if they differ and it does not, the function is the same."""


def _unknown_differences(listed: dict[str, list[Any]]) -> list[str]:
    return [key for key in listed if key not in READ_KEYS and key not in HARMLESS]


def _compare_rounded(
    one: Model, other: Model, unit: float, listed: dict[str, list[Any]], scope: Scope, tolerance: float | None,
    seed: int, progress: Callable[[int, int], None] | None,
) -> ModelComparison:  # fmt: skip
    left, right = View(one), View(other)
    if scope == "model":
        flat = can_flatten(one.spec)
        turned = _rotation_if_free(one, other)
        left, right = View(one, flat=flat), View(other, turned, flat)
    layers: list[LayerComparison] = []
    symmetries: list[Symmetry] = []
    for layer in range(one.layers):
        found, symmetry = compare_layers(left, right, layer, unit, tolerance)
        layers.append(found)
        symmetries.append(symmetry)
        if progress is not None:
            progress(layer + 1, one.layers)
    layers.append(_compare_outside(left, right, unit, tolerance))
    layers = _mark_outliers(layers)
    verdicts = [layer.same for layer in layers]
    same: bool | None = None
    if False in verdicts:
        same = False
    elif None not in verdicts:
        same = True
    unknown = _unknown_differences(listed)
    reason = _reason(same, layers)
    if same and unknown:
        same, reason = None, f"weights agree, but config keys of unknown effect differ: {', '.join(unknown)[:80]}"
    return ModelComparison(
        same_function=same, level="rounding", unit=unit, layers=tuple(layers), config_differences=listed,
        reason=reason, symmetry=tuple(symmetries), seed=seed,
    )  # fmt: skip


def _rotation_if_free(one: Model, other: Model) -> Array | None:
    """The turn of the residual stream, or None where the architecture has none (tied heads under LayerNorm)."""
    if one.spec.head is not None and one.spec.head.tied and can_flatten(one.spec):
        return None
    return residual_rotation(one, other)


def _reason(same: bool | None, layers: list[LayerComparison]) -> str:
    worst = max((layer for layer in layers if layer.worst), key=lambda layer: layer.worst.ratio if layer.worst else 0)
    misfit = worst.worst
    assert misfit is not None
    head = "" if misfit.index is None else f", head or unit {misfit.index}"
    text = f"{worst.tensor}{head}: misfit {misfit.value:.2e} against {misfit.expected:.2e} expected from rounding"
    if same:
        return f"every head and unit agrees within rounding; worst {text}"
    return text


def _scaled(view: View, layer: int, folded: LayerWeights) -> LayerWeights:
    block = view.model.block(layer)
    folded = folded.with_(attention=scaled_queries(block.attention, folded.attention))
    if folded.cross is not None:
        folded = folded.with_(cross=scaled_queries(block.cross, folded.cross))
    return folded


def compare_layers(
    left: View, right: View, layer: int, unit: float, tolerance: float | None = None
) -> tuple[LayerComparison, Symmetry]:
    """One layer: align, then measure every head and unit."""
    stack, _ = left.model.place(layer)
    block = left.model.block(layer)
    folded: list[LayerWeights] = []
    noise: dict[str, float] = {}
    for view in (left, right):
        stored = view.model.layer(layer)
        own = view.fold(layer, stored)
        for part, size in folding_noise(view.model.block(layer), stored, own).items():
            noise[part] = max(noise.get(part, 1.0), size)
        del stored
        folded.append(_scaled(view, layer, own))
    if folded[0].attention.groups != folded[1].attention.groups:
        folded = [own.with_(attention=expanded(own.attention)) for own in folded]
    found = recover(block, folded[0], folded[1], ordered=bool(stack.relative_buckets))
    misfits = layer_misfits(block, folded[0], found, unit, noise)
    comparison = _judge(layer, misfits, lambda part: tensor_name(left.model, layer, part), tolerance, found.condition)
    if comparison.same is False:
        limit = SAME if tolerance is None else 1.0
        hidden = hidden_parts(folded[0], found)
        if all(m.index in hidden.get(m.part, ()) for m in misfits if m.expected * limit < m.value):
            # What differs lies in heads or units that the function does not determine.
            comparison = replace(comparison, same=None)
    return comparison, found.symmetry


def _judge(
    layer: int | str, misfits: list[Misfit], name: Callable[[str], str], tolerance: float | None, condition: float
) -> LayerComparison:
    if tolerance is not None:
        misfits = [Misfit(part=m.part, index=m.index, value=m.value, expected=tolerance) for m in misfits]
    worst = max(misfits, key=lambda misfit: misfit.ratio)
    same_up_to, different_from = (SAME, DIFFERENT) if tolerance is None else (1.0, 1.0)
    same: bool | None = None
    if worst.ratio <= same_up_to:
        same = True
    elif worst.ratio >= different_from:
        same = False
    by_part: dict[str, Misfit] = {}
    for misfit in misfits:
        if misfit.ratio > same_up_to and (misfit.part not in by_part or misfit.ratio > by_part[misfit.part].ratio):
            by_part[misfit.part] = misfit
    wrong = tuple((name(part), misfit) for part, misfit in by_part.items())
    suspects = tuple((name(m.part), m) for m in _outliers(misfits)) if same else ()
    return LayerComparison(
        layer=layer,
        same=same,
        worst=worst,
        tensor=name(worst.part),
        wrong=wrong,
        suspects=suspects,
        condition=condition,
    )


def _outliers(misfits: list[Misfit]) -> list[Misfit]:
    """Heads whose misfit stands out above the expected rounding."""
    heads = ("query", "key", "value", "output", "cross.query", "cross.key", "cross.value", "cross.output")
    return [misfit for misfit in misfits if misfit.part in heads and misfit.ratio > OUTLIER]


def _mark_outliers(layers: list[LayerComparison]) -> list[LayerComparison]:
    """A layer with a suspect head is not called the same: the verdict is left open."""
    return [replace(layer, same=None) if layer.same and layer.suspects else layer for layer in layers]


def _compare_outside(left: View, right: View, unit: float, tolerance: float | None) -> LayerComparison:
    """Embeddings, tables, final norms, head, and the tensors outside the transformer."""
    one, other = left.model, right.model
    misfits: list[Misfit] = []
    names: dict[str, str] = {}
    limit = max(1.4 * unit, FLOOR)

    def add(part: str, a: Array, b: Array, name: str) -> None:
        names[part] = name
        values = relative(a, b) if a.shape == b.shape else np.array([1.0])
        worst = int(values.argmax())
        misfits.append(
            Misfit(part=part, index=worst if len(values) > 1 else None, value=float(values[worst]), expected=limit)
        )

    if one.spec.vocabulary:
        add("embedding", left.embedding(), right.embedding(), one.places.tokens)
    for stack in one.spec.stacks:
        twin = next(item for item in other.spec.stacks if item.name == stack.name)
        tables = left.positions(stack), right.positions(twin)
        if tables[0] is not None and tables[1] is not None:
            add(f"{stack.name} positions", tables[0], tables[1], one.places.positions[stack.name])
        relative_tables = one.relative(stack), other.relative(twin)
        if relative_tables[0] is not None and relative_tables[1] is not None:
            centred = [table - table[:1] for table in relative_tables if table is not None]
            add(f"{stack.name} relative positions", centred[0], centred[1], one.places.relative[stack.name])
        _add_norms(add, one, other, stack, twin)
    tied = _is_tied(one) and _is_tied(other)
    heads = (None, None) if tied else (left.reader(), right.reader())
    if heads[0] is not None and heads[1] is not None:
        add("head", heads[0].weight, heads[1].weight, one.places.head)
        add("head bias", heads[0].bias[None], heads[1].bias[None], one.places.head_bias or one.places.head)
    _add_others(add, one, other)
    return _judge("outside", misfits, lambda part: names.get(part, part), tolerance, 1.0)


def _is_tied(model: Model) -> bool:
    return model.spec.head is not None and model.spec.head.tied


def _add_norms(add: Callable[..., None], one: Model, other: Model, stack: Any, twin: Any) -> None:
    """Norms outside the layers that no reader takes up: of embeddings, and the final one unless a head reads it."""
    pairs = [(one.embedding_norm(stack), other.embedding_norm(twin), one.places.embedding_norm)]
    is_last = stack is one.spec.stacks[-1]
    if is_last and (one.spec.head is None or (_is_tied(one) and _is_tied(other))):
        pairs.append((one.final_norm(stack), other.final_norm(twin), one.places.final_norm.get(stack.name, "")))
    for a, b, name in pairs:
        if a is not None and b is not None:
            add(f"norm {name}", a.gain[None], b.gain[None], f"{name}.weight")
            if np.any(a.bias) or np.any(b.bias):
                add(f"norm bias {name}", a.bias[None], b.bias[None], f"{name}.bias")


def _add_others(add: Callable[..., None], one: Model, other: Model) -> None:
    mine = {name for name, reason in one.unread().items() if reason.startswith("outside")}
    theirs = {name for name, reason in other.unread().items() if reason.startswith("outside")}
    for name in sorted(mine | theirs):
        if name in mine and name in theirs:
            a, b = (model.tensors.raw(name).astype(np.float64)[None] for model in (one, other))
            add(name, a, b, name)
        else:
            add(name, np.ones((1, 1)), np.zeros((1, 1)), f"{name} (in one file only)")
