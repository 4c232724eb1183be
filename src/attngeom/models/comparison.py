"""Do two checkpoints compute the same function? Exact first, then within the rounding of their files, head by head."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
from safetensors.numpy import save

from attngeom.errors import InputError
from attngeom.files import to_json
from attngeom.limits.shown import LISTED_NAMES
from attngeom.models.counts.residual import reads_unnormed_tables
from attngeom.models.crews import Crew, Progress, each_layer, hired
from attngeom.models.fingerprints import LayerPrint, OutsidePrint, gather, layers_done, part_fingerprint, parts
from attngeom.models.headline import Blame, find_blame, lines_of, measured, sentence
from attngeom.models.layer_comparison import (
    LayerComparison,
    compare_layers,
    compare_outside,
    fits_no_stream,
    mark_outliers,
)
from attngeom.models.model import Model
from attngeom.models.reading import ROUNDOFF
from attngeom.models.residual import has_free_stream, residual_turns
from attngeom.models.settings import (
    head_differences,
    is_size,
    settings_differences,
    storage_differences,
    unknown_differences,
)
from attngeom.models.sizes import match_sizes
from attngeom.models.symmetry import Symmetry
from attngeom.models.unread import Unread
from attngeom.models.views import ModelView, Turns, can_flatten, head_orders, is_tied
from attngeom.models.witness import allowed_gap, check_outputs
from attngeom.results import Result, Standing, draw_entropy

Level = Literal["auto", "exact", "rounding"]
Scope = Literal["layer", "model"]
AnswerLevel = Literal["exact", "rounding", "config", "outputs"]
MATCHED = "without the parts that contribute nothing"


@dataclass(frozen=True, kw_only=True, eq=False)
class ModelComparison(Result):
    """Whether two models compute the same function, how strongly, and where they differ."""

    same_function: bool | None
    level: AnswerLevel
    unit: float
    error_probability: float | None = None
    layers: tuple[LayerComparison, ...] = ()
    config_differences: dict[str, list[Any]] = field(default_factory=dict)
    symmetry: tuple[Symmetry, ...] = ()
    blame: Blame = field(default_factory=Blame)
    """The smallest set of tensors that explains the difference."""
    entropy: int | None = None
    """What the invariants of an exact comparison were drawn from, in this run: no file can be made to fit them."""

    @property
    def is_positive(self) -> bool | None:
        return self.same_function

    @property
    def is_whole(self) -> bool:
        """Whether it is known that no layer of either model has parts that contribute nothing."""
        layers = [layer for layer in self.layers if layer.layer != "outside"]
        return bool(layers) and all(layer.is_whole for layer in layers)

    def to_json(self) -> dict[str, Any]:
        return {
            **self.select("same_function", "level", "standing", "error_probability", "unit"),
            "layers": [layer.to_json() for layer in self.layers],
            **self.select("config_differences", "reason", "seed"),
            **({} if self.same_function else {"blame": self.blame.to_json()}),
            **({} if self.entropy is None else {"entropy": str(self.entropy)}),
        }

    @property
    def verdict(self) -> str:
        return {True: "same function", False: "different functions", None: "undecided"}[self.same_function]

    def rows(self) -> Mapping[str, Any]:
        shown = {"verdict": self.verdict, "level": self.level, "error probability": self.error_probability}
        wrong = ", ".join(self.blame.tensors[:LISTED_NAMES])
        rows = {**shown, "wrong tensors": wrong or None, "seed": self.seed}
        return {key: value for key, value in rows.items() if value is not None}

    def __str__(self) -> str:
        return self.text()

    def text(self, *, every: bool = False) -> str:
        """One sentence, then what differs, the worst first; ``every``: all of it."""
        lines = [f"{self.verdict} ({self.level}, {self.standing}): {self.reason}"]
        return "\n".join([*lines, *lines_of(self.layers, self.config_differences, self.blame, every)])


def compare(
    one: Model, other: Model, *, level: Level = "auto", scope: Scope = "layer", tolerance: float | None = None,
    unit: float | None = None, seed: int = 0, progress: Progress | None = None, turns: Turns | None = None,
    crew: Crew = 1,
) -> ModelComparison:  # fmt: skip
    """Compare two models: settings, exact fingerprints, then alignment within rounding.

    ``scope`` model also allows a rotated residual stream; ``tolerance`` replaces the expected mismatch of every head.
    ``unit`` is the unit roundoff to allow for, by default that of the coarser file; ``turns`` bring the streams of the
    other model back where they are known and need not be recovered; a ``crew`` works on several layers at once.
    """
    if level not in ("auto", "exact", "rounding") or scope not in ("layer", "model"):
        raise InputError("level auto, exact or rounding and scope layer or model are required")
    if tolerance is not None and not 0 < tolerance < 1:
        raise InputError(f"tolerance {tolerance} given; a number between 0 and 1 is required")
    unit = max(ROUNDOFF[one.dtype], ROUNDOFF[other.dtype]) if unit is None else unit
    one, other = one.headed, other.headed
    if is_tied(one.spec) != is_tied(other.spec) and None in (one.spec.head, other.spec.head):
        # The file of a base model has all that a tied head needs.
        one, other = (replace(m, spec=replace(m.spec, head=one.spec.head or other.spec.head)) for m in (one, other))
    differences = settings_differences(one.spec, other.spec)
    stored = storage_differences(one.config, other.config)
    listed = {**differences, **{key: pair for key, pair in stored.items() if key not in differences}}
    with hired(crew) as crew:
        pair = _Pair(one, other, unit, listed, level, scope, tolerance, seed, progress, crew)
        comparison = None if differences else pair.weigh(turns)
        if comparison is None or not (comparison.same_function or comparison.is_whole):
            matched = match_sizes(one, other, crew)
            if matched is not None and not settings_differences(matched[0].spec, matched[1].spec):
                again = replace(pair, one=matched[0], other=matched[1]).weigh(turns)
                if comparison is None or again.same_function:
                    comparison, (one, other) = replace(again, reason=f"{MATCHED}: {again.reason}"), matched
    return pair.by_settings(differences) if comparison is None else _explained(comparison, one, other)


@dataclass(frozen=True, eq=False)
class _Pair:
    """Two models, and how they are compared; ``listed`` are the settings in which their files differ."""

    one: Model
    other: Model
    unit: float
    listed: dict[str, list[Any]]
    level: Level
    scope: Scope
    tolerance: float | None
    seed: int
    progress: Progress | None
    crew: Crew

    def answer(
        self, same: bool | None, standing: Standing, level: AnswerLevel, reason: str, **more: Any
    ) -> ModelComparison:
        """A verdict of some standing; None is undecided."""
        return ModelComparison(
            same_function=same, standing="undecided" if same is None else standing, level=level, reason=reason,
            unit=self.unit, config_differences=self.listed, seed=self.seed, **more,
        )  # fmt: skip

    def weigh(self, turns: Turns | None) -> ModelComparison:
        """The verdict on models of equal settings: exactly, then within rounding."""
        if self.level in ("auto", "exact"):
            exact = self.exactly(stop_early=self.level == "auto")
            if exact is not None:
                return exact
        rounded = self.rounded(
            residual_turns(self.one, self.other) if self.scope == "model" and turns is None else turns
        )
        assert rounded is not None
        return rounded

    def by_settings(self, differences: dict[str, list[Any]]) -> ModelComparison:
        """The verdict for models whose settings differ: constants decide, sizes lead to an evaluation."""
        names = ", ".join(list(differences)[:3])[:120]
        if not any(is_size(key, pair) for key, pair in differences.items()):
            reason = f"the configurations describe different functions: {names}"
            return self.answer(False, "estimate", "config", reason)
        check = check_outputs(self.one, self.other, self.seed)
        same = False if check.gap is not None and check.gap > allowed_gap(self.unit, 1e-9) else None
        return self.answer(same, "estimate", "outputs", f"sizes differ ({names}), and {check.reason}")

    def exactly(self, *, stop_early: bool) -> ModelComparison | None:
        """The exact verdict; with ``stop_early`` None at the first layer that differs, which rounding may explain."""
        one, other, entropy = self.one, self.other, draw_entropy()
        items = [(one, other, part, entropy) for part in parts(one)]
        prints = each_layer(_print_both, items, self.crew, stop=_prints_differ if stop_early else None)
        if stop_early and any(map(_prints_differ, prints)):
            return None
        left, right = (gather(model, [pair[i] for pair in prints], entropy) for i, model in enumerate((one, other)))
        layers = tuple(
            LayerComparison(layer=i, same=_same_prints(*pair), worst=None, tensor=None)
            for i, pair in enumerate(zip(left.layers, right.layers))
        )
        outside = left.outside == right.outside
        same: bool | None = outside and all(layer.same for layer in layers)
        reason = "all invariants of the weights agree mod 2^61 − 1"
        if not same:
            wrong = [f"layer {layer.layer}" for layer in layers if not layer.same][:3]
            places = wrong + ([] if outside else ["embedding, head or norms outside"])
            reason = f"invariants differ exactly: {', '.join(places)}"
            if not (left.is_generic and right.is_generic):
                same = None
                reason += "; but some invariant is zero or occurs twice, so that weights may be invisible"
            elif one.places.front != "tokens" or (left.tokens != right.tokens and has_free_stream(one)):
                same, reason = None, reason + "; the residual stream may be rotated: level rounding decides"
            elif reads_unnormed_tables(one.spec) and not layers[0].same:
                same, reason = None, reason + "; biases may hold what tables held: level rounding decides"
        same, reason = self.with_settings(same, reason)
        probability = max(left.error_probability, right.error_probability)
        return self.answer(
            same, "probabilistic", "exact", reason, error_probability=probability, layers=layers, entropy=entropy
        )  # fmt: skip

    def with_settings(self, same: bool | None, reason: str) -> tuple[bool | None, str]:
        """The verdict on weights, open where keys of the configurations differ whose effect is not known."""
        one, other = self.one, self.other
        unknown = unknown_differences(one.config, other.config, one.read | other.read)
        apart = [name for model in (one, other) for name, why in model.unread().items() if why.is_compared]
        unknown += head_differences(one.config, other.config, apart)
        if not same or not unknown:
            return same, reason
        return None, f"weights agree, but config keys of unknown effect differ: {', '.join(unknown)[:80]}"

    def views(self, turns: Turns | None, fixed_tables: bool = False) -> tuple[ModelView, ModelView]:
        """Both models as they are compared, the other in the rotated stream, with heads in the order of the first."""
        one, other = self.one, self.other
        loose = is_tied(one.spec) != is_tied(other.spec)
        left = ModelView(one, loose=loose, fixed_tables=fixed_tables)
        return left, ModelView(other, turns, heads=head_orders(one, other), loose=loose, fixed_tables=fixed_tables)

    def rounded(
        self, turns: Turns | None, *, fixed_tables: bool = False, stop_early: bool = False
    ) -> ModelComparison | None:
        """The verdict within rounding; with ``stop_early`` None at the first layer that differs."""
        left, right = self.views(turns, fixed_tables)
        items = [(left, right, part, self.unit, self.tolerance) for part in parts(self.one)]
        stop = _layers_differ if stop_early else None
        results = each_layer(_compare_part, items, self.crew, layers_done(self.one, self.progress), stop)
        if stop_early and any(map(_layers_differ, results)):
            return None
        results.append(results.pop(1))
        layers = mark_outliers([comparison for comparison, _ in results])
        symmetries = tuple(symmetry for _, symmetry in results[:-1])
        verdicts = [layer.same for layer in layers]
        same = False if False in verdicts else None if None in verdicts else True
        unnormed = reads_unnormed_tables(self.one.spec)
        if not same and not fixed_tables and turns is None and not layers[0].same and unnormed:
            # Estimating what the tables hide costs digits: only where it matters.
            again = self.rounded(turns, fixed_tables=True)
            if again is not None and again.same_function is not False:
                return again
        if same is False and self.scope == "layer" and layers[-1].wrong:
            rotated = self.rotated()
            if rotated is not None:
                return rotated
        same, reason = self.with_settings(same, _reason(same, layers))
        return self.answer(same, "estimate", "rounding", reason, layers=tuple(layers), symmetry=symmetries)

    def rotated(self) -> ModelComparison | None:
        """The comparison after a change of the residual stream, if there is one that brings the models together."""
        one, other = self.one, self.other
        if not has_free_stream(one) or is_tied(one.spec) != is_tied(other.spec):
            return None
        flat = can_flatten(one.spec)
        left, right = (replace(view, flat=flat) for view in self.views(None))
        if fits_no_stream(left, right, self.unit, self.tolerance):
            return None
        # What lies outside the layers is far less than these: they are rotated only where it fits.
        turns = residual_turns(one, other)
        if compare_outside(left, replace(right, rotation=turns), self.unit, self.tolerance).same is False:
            return None
        comparison = replace(self, scope="model").rounded(turns, stop_early=True)
        if comparison is None or comparison.same_function is False:
            return None
        return replace(comparison, reason=f"in a rotated residual stream (scope model): {comparison.reason}")


def _explained(comparison: ModelComparison, one: Model, other: Model) -> ModelComparison:
    """The comparison with the tensors that explain a difference; "same" only if no tensor was left out that differs."""
    left_out = [name for name, why in one.unread().items() if why is Unread.BUFFER and _differ(one, other, name)]
    if comparison.same_function and left_out:
        reason = f"weights agree, but {left_out[0][:80]} differs, which is not read"
        return replace(comparison, same_function=None, standing="undecided", reason=reason)
    if comparison.same_function or (comparison.layers and all(layer.same for layer in comparison.layers)):
        return comparison
    blame = find_blame(one, other, comparison.layers)
    worst = max((layer for layer in comparison.layers if layer.worst), key=_ratio, default=None)
    place = None if worst is None or worst.worst is None or worst.tensor is None else (worst.tensor, worst.worst)
    if place is not None and blame.is_equal(place[0]):
        place = None
    text = sentence(blame, place)
    is_plain = comparison.level == "rounding" and all(layer.hidden is None for layer in comparison.layers)
    reason = text if is_plain and text else comparison.reason if not text else f"{text}; {comparison.reason}"
    return replace(comparison, blame=blame, reason=reason)


def _ratio(layer: LayerComparison) -> float:
    return layer.worst.ratio if layer.worst is not None else 0.0


def _differ(one: Model, other: Model, name: str) -> bool:
    """Whether a tensor of both files has other bytes in one than in the other."""
    return name in other.tensors and one.tensors.digest(name) != other.tensors.digest(name)


def _prints_differ(prints: tuple[LayerPrint | OutsidePrint, LayerPrint | OutsidePrint]) -> bool:
    return prints[0].digest != prints[1].digest


def _print_both(
    one: Model, other: Model, part: int | None, entropy: int
) -> tuple[LayerPrint | OutsidePrint, LayerPrint | OutsidePrint]:
    return part_fingerprint(one, part, entropy), part_fingerprint(other, part, entropy)


def _same_prints(a: LayerPrint, b: LayerPrint) -> bool | None:
    if a.digest == b.digest:
        return True
    return False if a.is_generic and b.is_generic else None


def _compare_part(
    left: ModelView, right: ModelView, layer: int | None, unit: float, tolerance: float | None
) -> tuple[LayerComparison, Symmetry]:
    """One layer, or None for what lies outside them; what is written along 1 is taken away only where it matters in a
    layer: that costs a copy of every writer."""
    flat = [replace(view, flat=can_flatten(left.model.spec)) for view in (left, right)]
    if layer is None:
        return compare_outside(flat[0], flat[1], unit, tolerance), ()
    comparison, symmetry = compare_layers(left, right, layer, unit, tolerance)
    if not comparison.same and flat[0].flat:
        return compare_layers(flat[0], flat[1], layer, unit, tolerance)
    return comparison, symmetry


def _layers_differ(result: tuple[LayerComparison, Symmetry]) -> bool:
    return result[0].same is False


def _reason(same: bool | None, layers: list[LayerComparison]) -> str:
    worst = max((layer for layer in layers if layer.worst), key=lambda layer: layer.worst.ratio if layer.worst else 0)
    mismatch = worst.worst
    assert mismatch is not None
    text = measured(worst.tensor or mismatch.part, mismatch)
    hidden = [layer for layer in layers if layer.hidden is not None]
    if same is None and hidden:
        place, gap = hidden[0].layer, hidden[0].hidden
        return f"weights of layer {place} differ, its outputs at random states agree to {gap:.0e}: {text}"
    if same:
        return f"every head and unit agrees within rounding; worst {text}"
    return text


def symmetry_bytes(comparison: ModelComparison) -> bytes:
    """Tensors ``layers.{i}.{k}.{part}.{field}`` that move the folded second model onto the folded first one."""
    if not comparison.symmetry:
        raise InputError(f"no symmetry was recovered ({comparison.reason[:100]}); compare models of the same kind")
    tensors: dict[str, np.ndarray] = {}
    for layer, symmetry in enumerate(comparison.symmetry):
        for number, part in enumerate(symmetry):
            name = f"layers.{layer}.{number}.{part.name}"
            for array, value in part.arrays().items():
                if np.iscomplexobj(value):
                    tensors[f"{name}.{array}.real"] = np.ascontiguousarray(value.real)
                    tensors[f"{name}.{array}.imag"] = np.ascontiguousarray(value.imag)
                else:
                    tensors[f"{name}.{array}"] = np.ascontiguousarray(value)
    summary = {"same_function": comparison.same_function, "level": comparison.level, "reason": comparison.reason}
    return bytes(save(tensors, metadata={"attngeom": to_json(summary)}))
