"""One layer of two checkpoints, and what lies outside the layers: aligned, then measured head by head, unit by unit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from attngeom.exact import lapack
from attngeom.exact.arrays import Array
from attngeom.groups.ones import fixing_ones
from attngeom.limits.rounding import (
    BLOCKS_DIFFER,
    FOLDING_ROUNDING,
    GROSS_DIFFERENCE,
    HEADS_AGREE,
    PLAIN_RESIDUAL,
    SAME_STREAM,
    STREAM_ROUNDING,
    TENSORS_AGREE,
    TENSORS_DIFFER,
)
from attngeom.limits.work import STREAM_ROWS, STREAM_STEPS
from attngeom.models.layer import LayerWeights
from attngeom.models.mismatches import (
    Losses,
    Mismatch,
    Mismatches,
    Name,
    Place,
    UnitMismatches,
    folding_losses,
    layer_mismatches,
    mismatch_json,
    noise_of,
    worst_by_head,
    worst_units,
)
from attngeom.models.names import TensorNames
from attngeom.models.orbits import even_rows, recover
from attngeom.models.pooling import pools_otherwise
from attngeom.models.reading import BLOCK_TYPES
from attngeom.models.sizes import is_whole
from attngeom.models.symmetry import Symmetry, inverse
from attngeom.models.tensor_errors import Noise, TensorPart, by_entry, norm_bias_part, norm_part
from attngeom.models.unread import Unread
from attngeom.models.views import ModelView, expanded, scaled_outputs, scaled_queries
from attngeom.models.witness import read_distances, relative_gap, unexplained_gap, written


@dataclass(frozen=True, kw_only=True)
class LayerComparison:
    """Verdict of one layer: the worst head or unit, and every tensor that rounding does not explain."""

    layer: int | str
    same: bool | None
    worst: Mismatch | None
    tensor: str | None
    wrong: tuple[tuple[str, Mismatch], ...] = ()
    suspects: tuple[tuple[str, Mismatch], ...] = ()
    condition: float = 1.0
    heads: tuple[Place, ...] = ()
    """For each head of self-attention its worst tensor."""
    cross_heads: tuple[Place, ...] = ()
    units: tuple[UnitMismatches, ...] = ()
    hidden: float | None = None
    """Where weights differ and outputs do not tell the layers apart: how far outputs at random states differ."""
    is_whole: bool = False
    """Whether it is known that both layers have no part that contributes nothing."""

    def to_json(self) -> dict[str, Any]:
        worst = None
        if self.worst is not None:
            worst = mismatch_json(self.tensor or self.worst.part, self.worst)
        return {
            "layer": self.layer,
            "same": self.same,
            "worst": worst,
            "condition": self.condition,
            "wrong": [mismatch_json(name, mismatch) for name, mismatch in self.wrong],
            "suspects": [mismatch_json(name, mismatch) for name, mismatch in self.suspects],
            "heads": [mismatch_json(name, mismatch) for name, mismatch in self.heads],
            "cross_heads": [mismatch_json(name, mismatch) for name, mismatch in self.cross_heads],
            "units": [units.to_json() for units in self.units],
            **({} if self.hidden is None else {"output_gap": self.hidden}),
        }


def _scaled(view: ModelView, layer: int, folded: LayerWeights) -> LayerWeights:
    block = view.model.block(layer)
    folded = scaled_outputs(block, folded)
    scaled = {place: scaled_queries(block.attentions[place], own) for place, own in folded.attentions.items()}
    return folded.with_(**scaled)


def compare_layers(
    left: ModelView, right: ModelView, layer: int, unit: float, tolerance: float | None = None
) -> tuple[LayerComparison, Symmetry]:
    """One layer: align, then measure every head and unit; where they differ, the outputs are looked at as well."""
    stack, _ = left.model.place(layer)
    block = left.model.block(layer)
    folded: list[LayerWeights] = []
    outputs: list[Array] = []
    losses: list[Losses] = []
    more: Noise = {}
    whole = True
    for view in (left, right):
        stored = view.stored(layer)
        whole &= not view.reads_unnormed(layer) and is_whole(view.model.block(layer), stored)
        own = view.fold(layer, stored)
        losses.append(folding_losses(view.model.block(layer), stored, own))
        if view.unnormed is not None and view.reads_unnormed(layer):
            read = view.unnormed.noise(view.model.layer(layer), own)
            more = {part: max(more.get(part, 1.0), size) for part, size in {**more, **read}.items()}
        del stored
        outputs.append(written(view, layer, own))
        folded.append(_scaled(view, layer, own))
    near, far = (layer.attention for layer in folded)
    if near is not None and far is not None and near.groups != far.groups:
        folded = [folded[0].with_(attention=expanded(near)), folded[1].with_(attention=expanded(far))]
    folded[0], own_gauge = even_rows(block, folded[0])
    folded[1], gauge = even_rows(block, folded[1])
    noise = noise_of(losses)
    noise = {**noise, **{part: max(noise.get(part, 1.0), size) for part, size in more.items()}}
    recovered = recover(block, folded[0], folded.pop(), ordered=bool(stack.relative_buckets))
    symmetry = (*right.order_part(layer), *gauge, *recovered.symmetry, *inverse(own_gauge))
    with np.errstate(over="ignore", invalid="ignore"):
        mismatches = layer_mismatches(folded[0], recovered, unit, noise)
    comparison = _judge(layer, mismatches, TensorNames(left.model, layer), tolerance, recovered.condition, unit)
    comparison = replace(comparison, is_whole=whole)
    if comparison.same is False:
        limit = TENSORS_AGREE if tolerance is None else 1.0
        beyond = [(m, np.flatnonzero(m.expected * limit < m.values)) for m in mismatches]
        worst = comparison.worst
        gross = tolerance is None and worst is not None and worst.value >= GROSS_DIFFERENCE
        gap = unexplained_gap(block, folded[0], recovered, beyond, gross, relative_gap(*outputs), unit)
        if gap is not None:
            comparison = replace(comparison, same=None, hidden=gap)
    return comparison, symmetry


def _judge(
    layer: int | str,
    mismatches: list[Mismatches],
    name: Name,
    tolerance: float | None,
    condition: float,
    unit: float,
) -> LayerComparison:
    in_blocks = tolerance is None and unit in BLOCK_TYPES.values()
    if tolerance is not None:
        mismatches = [replace(m, expected=np.full(m.values.shape, tolerance), is_bound=True) for m in mismatches]
    elif in_blocks:
        # Every row has many entries, with a scale for a few of them: its error is a mean, and no single rounding.
        mismatches = [m if m.is_aligned else replace(m, expected=m.expected / TENSORS_AGREE) for m in mismatches]
    by_part = {m.of: m.worst for m in mismatches}
    worst = max(by_part.values(), key=lambda mismatch: mismatch.ratio)
    same_up_to, different_from = (TENSORS_AGREE, TENSORS_DIFFER) if tolerance is None else (1.0, 1.0)
    different_from = BLOCKS_DIFFER if in_blocks else different_from
    same: bool | None = None
    # Rounding of which nothing is known explains nothing.
    if worst.ratio <= same_up_to and all(np.all(np.isfinite(m.expected)) for m in mismatches):
        same = True
    elif worst.ratio >= different_from:
        same = False
    wrong = tuple((name(part), mismatch) for part, mismatch in by_part.items() if mismatch.ratio > same_up_to)
    suspects = tuple((name(m.of), m) for m in _outliers(mismatches)) if same else ()
    return LayerComparison(
        layer=layer,
        same=same,
        worst=worst,
        tensor=name(worst.of),
        wrong=wrong,
        suspects=suspects,
        condition=condition,
        heads=worst_by_head(mismatches, name, "attention"),
        cross_heads=worst_by_head(mismatches, name, "cross"),
        units=worst_units(mismatches, name, same_up_to),
    )


def _outliers(mismatches: list[Mismatches]) -> list[Mismatch]:
    """Heads whose mismatch stands out above the expected rounding."""
    return [m[int(i)] for m in mismatches if m.is_aligned for i in np.flatnonzero(m.ratios > HEADS_AGREE)]


def mark_outliers(layers: list[LayerComparison]) -> list[LayerComparison]:
    """A layer with a suspect head is not called the same: the verdict is left open."""
    return [replace(layer, same=None) if layer.same and layer.suspects else layer for layer in layers]


def compare_outside(left: ModelView, right: ModelView, unit: float, tolerance: float | None) -> LayerComparison:
    """Embeddings, tables, final norms, head, and the tensors outside the transformer."""
    one, other = left.model, right.model
    mismatches: list[Mismatches] = []
    names: dict[TensorPart, str] = {}
    limit = max(PLAIN_RESIDUAL * unit, FOLDING_ROUNDING)

    growth = _outside_growth(left, right)

    def add(part: str, a: Array, b: Array, name: str) -> None:
        own = TensorPart("outside", part)
        names[own] = name
        values = by_entry(a, b).relative if a.shape == b.shape else np.array([1.0])
        mismatches.append(Mismatches(of=own, values=values, expected=limit * growth.get(part, np.ones(values.shape))))

    near, far = left.tables(), right.tables()
    turn = narrow_turn(left, right)
    if turn is not None:
        far = {part: (name, table @ turn.T) for part, (name, table) in far.items()}
    for part, (name, table) in near.items():
        add(part, table, far[part][1], name)
    for stack in one.spec.stacks:
        twin = next(item for item in other.spec.stacks if item.name == stack.name)
        near_table, far_table = left.relative(stack), right.relative(twin)
        if near_table is not None and far_table is not None:
            centred = [np.delete(table - table[:1], stack.unused_relative, 0) for table in (near_table, far_table)]
            add(f"{stack.name} relative positions", centred[0], centred[1], one.places.relative[stack.name])
        wide = left.widening(stack), right.widening(twin)
        if wide[0] is not None and wide[1] is not None:
            weight = wide[1].weight if turn is None else wide[1].weight @ turn.T
            add(f"{stack.name} widening", wide[0].weight, weight, f"{one.places.widening}.weight")
            add(f"{stack.name} widening bias", wide[0].bias[None], wide[1].bias[None], f"{one.places.widening}.bias")
        states = read_distances(left, stack), read_distances(right, twin)
        if states[0] is not None and states[1] is not None:
            add(f"{stack.name} distances", states[0], states[1], one.places.distances)
        _add_norms(add, left, right, stack, twin)
    heads = (None, None) if left.is_tied else (left.reader(), right.reader())
    if heads[0] is not None and heads[1] is not None:
        add("head", heads[0].weight, heads[1].weight, one.places.head)
        add("head bias", heads[0].bias[None], heads[1].bias[None], one.places.head_bias or one.places.head)
    near_constants, far_constants = left.logit_constants(), right.logit_constants()
    if left.is_tied and near_constants is not None and far_constants is not None:
        norm = one.places.final_norm.get(one.spec.stack.name, "")
        kept = norm and np.array_equal(one.head_bias(), other.head_bias())
        name = f"{norm}.bias" if kept else one.places.head_bias
        add("head bias", near_constants[None], far_constants[None], name)
    _add_others(add, left, right)
    comparison = _judge("outside", mismatches, names.__getitem__, tolerance, 1.0, unit)
    unknown = {name for view in (left, right) for name, why in view.model.unread().items() if why is Unread.UNKNOWN}
    parts = [mismatch.part for _, mismatch in comparison.wrong]
    if comparison.same is False and unknown.issuperset(parts) and not pools_otherwise(one, other, parts, unit):
        # What a tensor does that no family knows cannot be told.
        return replace(comparison, same=None)
    return comparison


def narrow_turn(left: ModelView, right: ModelView) -> Array | None:
    """R that brings the narrow tables of the right model next to those of the left one; it keeps 1, for their norm.

    None where tables are as wide as the stream, or where a head reads the token table, so that its rows stay.
    """
    stack = left.model.spec.stack
    if not stack.embedding_width or left.keeps_tokens or right.keeps_tokens:
        return None
    pairs = [(table, right.tables()[part][1]) for part, (_, table) in left.tables().items()]
    wide = left.widening(stack), right.widening(right.model.spec.stack)
    if wide[0] is None or wide[1] is None or any(one.shape != other.shape for one, other in pairs):
        return None
    pairs.append((wide[0].weight, wide[1].weight))
    inner = sum(one.T.astype(np.float64) @ other / (np.linalg.norm(one) ** 2 or 1.0) for one, other in pairs)
    return fixing_ones(np.asarray(inner))


def fits_no_stream(left: ModelView, right: ModelView, unit: float, tolerance: float | None) -> bool:
    """Whether some row of the tables differs after every orthogonal change R of the right model's stream.

    Of some rows a_i and b_i, of norms |a_i| = 1, min over R of Σ |a_i − R b_i|² is ‖A‖² + ‖B‖² − 2 ‖AᵀB‖_* (nuclear
    norm). Where that is more than the sum of squares of what is allowed, `compare_outside` finds a difference for any
    R. Tables that are alike as they are have no other stream to be told of: beyond what rounding leaves in the mean of
    many rows no change of it makes them equal. False shows nothing.
    """
    limit, growth = max(PLAIN_RESIDUAL * unit, FOLDING_ROUNDING), _outside_growth(left, right)
    near, far = left.tables(), right.tables()
    reaches = "embedding" in near and not left.model.spec.stack.embedding_width
    pairs = {"embedding": (near["embedding"][1], far["embedding"][1])} if reaches else {}
    heads = (None, None) if left.is_tied else (left.reader(), right.reader())
    if heads[0] is not None and heads[1] is not None:
        pairs["head"] = heads[0].weight, heads[1].weight
    sides: tuple[list[Array], list[Array]] = [], []
    expected: list[Array] = []
    for part, (a, b) in pairs.items():
        if a.shape != b.shape:
            return False
        rows = np.linspace(0, len(a) - 1, min(len(a), STREAM_ROWS // len(pairs))).astype(int)
        rows = rows[np.any(a[rows], axis=1)]
        sizes = np.linalg.norm(a[rows].astype(np.float64), axis=1, keepdims=True)
        for side, table in zip(sides, (a, b)):
            side.append(table[rows] / sizes)
        expected.append(limit * np.broadcast_to(growth.get(part, 1.0), len(a))[rows])
    if not sides[0]:
        return False
    tables, limits = [np.concatenate(side) for side in sides], np.concatenate(expected)
    if tolerance is not None:
        limits = np.full(len(limits), tolerance)
    else:
        cosine = float((tables[0] * tables[1]).sum()) / max(lapack.norm(tables[0]) * lapack.norm(tables[1]), 1e-300)
        limits = limits * (HEADS_AGREE if cosine > SAME_STREAM else TENSORS_DIFFER)
    # Any rows show it; a few of them where the difference is large.
    return any(
        _leave_a_difference([table[::step] for table in tables], float((limits[::step] ** 2).sum()))
        for step in STREAM_STEPS
        if step == 1 or len(limits) > step
    )


def _leave_a_difference(tables: list[Array], allowed: float) -> bool:
    """Whether min over R of Σ |a_i − R b_i|² is more than is allowed."""
    squares = sum(float((table**2).sum()) for table in tables)
    triangles = [lapack.triangle(table.T) for table in tables]
    least = squares - 2 * float(lapack.svdvals(triangles[0] @ triangles[1].T).sum())
    return least > allowed + STREAM_ROUNDING * squares


def _outside_growth(*views: ModelView) -> dict[str, Array]:
    """What was summed over what is left: per row of the products of projected tokens, and for constants of the head."""
    growth: dict[str, Array] = {}

    def note(part: str, summed: Array, left: Array) -> None:
        growth[part] = np.maximum(growth.get(part, 1.0), summed / np.maximum(left, 1e-300))

    for view in views:
        model = view.model
        if view.fixed_tables and view.unnormed is not None:
            for part, (_, table) in view.stored_tables().items():
                growth[part] = np.maximum(growth.get(part, 1.0), view.unnormed.growth(part, table))
        if model.spec.embedding_rank:
            table, *maps = model.factors()
            for part, matrix in zip(("embedding", "head") if model.has_product_head else ("embedding",), maps):
                squares = table**2 @ (matrix**2).sum(axis=1)
                note(part, np.sqrt(squares), np.linalg.norm(table @ matrix, axis=1))
        constants, norm = view.logit_constants(), view.last_norm()
        if constants is not None and norm is not None and np.any(norm.bias):
            sizes = np.sqrt(np.asarray(model.head(), dtype=np.float64) ** 2 @ norm.bias**2)
            total = np.linalg.norm(sizes * growth.get("head", 1.0))
            note("head bias", np.array([total]), np.array([np.linalg.norm(constants)]))
    return growth


def _add_norms(add: Callable[..., None], left: ModelView, right: ModelView, stack: Any, twin: Any) -> None:
    """Norms outside the layers that no reader takes up: of embeddings, and the final one unless a head reads it."""
    one = left.model
    pairs = [(left.embedding_norm(stack), right.embedding_norm(twin), one.places.embedding_norm.format(stack.name))]
    is_last = stack is one.spec.stacks[-1]
    if is_last and (one.spec.head is None or left.is_tied):
        pairs.append((left.final_norm(stack), right.final_norm(twin), one.places.final_norm.get(stack.name, "")))
    pairs = pairs[1:] if left.norms_tokens and right.norms_tokens else pairs
    for a, b, name in pairs:
        if a is not None and b is not None:
            add(norm_part(name).name, a.gain[None], b.gain[None], f"{name}.weight")
            taken = is_last and name in one.places.final_norm.values() and left.logit_constants() is not None
            if not taken and (np.any(a.bias) or np.any(b.bias)):
                add(norm_bias_part(name).name, a.bias[None], b.bias[None], f"{name}.bias")


def _add_others(add: Callable[..., None], left: ModelView, right: ModelView) -> None:
    mine, theirs = left.others(), right.others()
    for view, own in ((left, mine), (right, theirs)):
        # A tensor that one file repeats and the other has on its own is compared with what it repeats.
        originals = {view.model.stored(copy): view.model.stored(n) for copy, n in view.model.places.copies.items()}
        for name in (mine.keys() | theirs.keys()) - own.keys():
            if originals.get(name, "") in view.model.tensors:
                own[name] = view.model.tensors.raw(originals[name]).astype(np.float64)
    for name in sorted(mine.keys() | theirs.keys()):
        if name in mine and name in theirs:
            add(name, mine[name][None], theirs[name][None], name)
        else:
            add(name, np.ones((1, 1)), np.zeros((1, 1)), f"{name} (in one file only)")
