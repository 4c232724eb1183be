"""Recover the symmetry between two folded layers: orders by matching, matrices by least squares, all per head.

`recover(block, L, M)` returns parts s with act(M, s) ≈ L where one exists; it never fails, the misfit decides. The
condition numbers of the matrices say how far rounding in the files may show.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from attngeom.exact import lapack
from attngeom.exact.arrays import Array
from attngeom.models.layer import AttentionWeights, ExpertsWeights, LayerWeights, MLPWeights
from attngeom.models.matching import assign_points, match_heads, match_units
from attngeom.models.readers import has_unit_scale
from attngeom.models.specification import MLP, Experts, GroupedAttention, TransformerBlock
from attngeom.models.symmetry import (
    ExpertOrder,
    GroupedHeadOrder,
    GroupedQueryKey,
    GroupedValueOutput,
    LatentTurn,
    Part,
    QKNormTurn,
    Symmetry,
    Units,
    Which,
    act,
    centred_turn,
)

SINGULAR = 1e13
WELL = 1e3
"""Conditions of Gram matrices: up to the second, least squares by them lose no more than rounding is granted."""
SMALL = 1e-300


@dataclass(frozen=True, eq=False)
class Recovered:
    """The symmetry, and the largest condition number of its matrices.

    ``aligned`` is the source after all parts but those of hidden units, which are most of a layer: who only measures
    takes ``units`` (by expert, −1 for a dense layer) and reads unit by unit, who writes takes `moved`.
    """

    block: TransformerBlock
    symmetry: Symmetry
    aligned: LayerWeights
    units: Mapping[int, Units]
    condition: float

    @cached_property
    def moved(self) -> LayerWeights:
        """The source after the whole symmetry."""
        return act(self.block, self.aligned, list(self.units.values()))


def recover(block: TransformerBlock, target: LayerWeights, source: LayerWeights, *, ordered: bool = False) -> Recovered:
    """Parts that move the folded ``source`` onto the folded ``target``; ``ordered`` keeps the order of heads."""
    symmetry: list[Part] = []
    condition = 1.0
    moved = source
    del source  # its arrays go as they are moved

    def take(part: Part) -> None:
        nonlocal moved
        symmetry.append(part)
        moved = part.act(block, moved)

    sublayers: list[tuple[Which, GroupedAttention | None]] = [("attention", block.attention), ("cross", block.cross)]
    for which, spec in sublayers:
        goal: AttentionWeights | None = getattr(target, which)
        if spec is None or goal is None:
            continue
        if goal.key_latent is not None:
            take(_latent_part(goal, getattr(moved, which)))
        if not (spec.alibi or (ordered and which == "attention")):
            take(GroupedHeadOrder(*match_heads(goal, getattr(moved, which)), which))
        if spec.qk_norm is not None:
            find = _centred_part if spec.qk_norm.is_centred else _qk_norm_part
            take(find(goal, getattr(moved, which)))
        else:
            take(_query_key_part(goal, getattr(moved, which), which))
            condition = max(condition, _condition(symmetry[-1].plain))  # type: ignore[attr-defined]
        take(_value_part(goal, getattr(moved, which), which))
        condition = max(condition, _condition(symmetry[-1].matrices))  # type: ignore[attr-defined]
    if isinstance(block.mlp, Experts):
        take(_expert_order(block.mlp, target.mlp, moved.mlp))
    units = _unit_parts(block, target, moved)
    return Recovered(block, (*symmetry, *units.values()), moved, units, condition)


def _condition(matrices: Array) -> float:
    if not matrices.size:
        return 1.0
    values = lapack.svdvals(matrices)
    return float((values[:, 0] / np.maximum(values[:, -1], SMALL)).max())


def _map_rows(goal: Array, rows: Array) -> Array:
    """C with C rows ≈ goal in least squares, batched; the identity where rows or C has no full rank."""
    gram = rows @ rows.transpose(0, 2, 1)
    found = np.empty_like(gram)
    # A matrix whose inverse has no digits left counts as singular, like one that has no inverse.
    inverse, conditions = lapack.inverses(gram)
    regular = np.asarray(conditions < SINGULAR)
    if regular.any():
        own, wanted = (rows, goal) if regular.all() else (rows[regular], goal[regular])
        inverse = inverse if regular.all() else inverse[regular]
        first = (wanted @ own.transpose(0, 2, 1)) @ inverse
        if conditions[regular].max() > WELL:
            # Least squares by the Gram matrix lost digits: one step of refinement.
            first += (wanted - first @ own) @ own.transpose(0, 2, 1) @ inverse
        found[regular] = first
        regular[regular] = lapack.inverses(first)[1] < SINGULAR
    for g in np.flatnonzero(~regular):
        solution = lapack.lstsq(rows[g].T, goal[g].T).T
        usable = lapack.matrix_rank(solution) == len(solution)
        found[g] = solution if usable else np.eye(len(solution))
    return found


def _query_key_part(goal: AttentionWeights, weights: AttentionWeights, which: Which) -> GroupedQueryKey:
    keys, wanted = weights.turned_key.weight, goal.turned_key.weight
    inner = (keys.conj() * wanted).sum(axis=-1)
    size = (np.abs(keys) ** 2).sum(axis=-1)
    ratio = np.where((size > 0) & (np.abs(inner) > 0), inner / np.where(size > 0, size, 1.0), 1.0)
    plain = _map_rows(goal.key.weight, weights.key.weight) if weights.key.weight.size else _eyes(weights.key.weight)
    return GroupedQueryKey(1 / ratio.conj(), plain, which)


def _eyes(weight: Array) -> Array:
    groups, a = weight.shape[:2]
    return np.tile(np.eye(a), (groups, 1, 1))


def _value_part(goal: AttentionWeights, weights: AttentionWeights, which: Which) -> GroupedValueOutput:
    return GroupedValueOutput(_map_rows(goal.value.weight, weights.value.weight), which)


def _latent_part(goal: AttentionWeights, weights: AttentionWeights) -> LatentTurn:
    """Orthogonal Procrustes between the down-projections; gains are folded to one."""
    assert goal.key_latent is not None and weights.key_latent is not None

    def polar(wanted: Array, rows: Array) -> Array:
        u, _, w = lapack.svd(wanted @ rows.T)
        return np.asarray(u @ w)

    key = polar(goal.key_latent.down.weight, weights.key_latent.down.weight)
    query = None
    if goal.query_latent is not None and weights.query_latent is not None:
        query = polar(goal.query_latent.down.weight, weights.query_latent.down.weight)
    ones = None if query is None else np.ones(len(query))
    return LatentTurn(query, key, ones, np.ones(len(key)))


def _qk_norm_part(goal: AttentionWeights, weights: AttentionWeights) -> QKNormTurn:
    """Quarter turns that fit best, signs of the rows, scales between the gains."""
    assert goal.query_gain is not None and goal.key_gain is not None
    assert weights.query_gain is not None and weights.key_gain is not None
    f, rows = goal.turned_key.weight.shape[1], len(weights.key_gain)
    share = weights.heads // weights.groups

    def fits(turned: Array) -> Array:
        """Re⟨goal, turned⟩ per group and pair, over keys and the queries of the group, without the sign."""
        keys = (goal.turned_key.weight.conj() * weights.turned_key.weight * turned).real.sum(axis=-1)
        queries = (goal.turned_query.weight.conj() * weights.turned_query.weight * turned).real.sum(axis=-1)
        return np.asarray(np.abs(keys) + np.abs(queries).reshape(len(keys), share, f).sum(axis=1))

    straight, quarter = fits(np.array(1.0)), fits(np.array(1j))
    if rows == 1:
        straight, quarter = straight.sum(axis=0, keepdims=True), quarter.sum(axis=0, keepdims=True)
    turns = quarter > straight
    factors = np.where(turns, 1j, 1.0)
    inner = (goal.turned_key.weight.conj() * weights.turned_key.weight).sum(axis=-1) * factors
    plain = (goal.key.weight * weights.key.weight).sum(axis=-1)
    signs = np.where(np.concatenate([inner.real, plain], axis=1) < 0, -1.0, 1.0)
    pair = np.concatenate([turns, turns], axis=1)

    def swapped(gain: Array) -> Array:
        spread = np.repeat(pair, len(gain) // rows, axis=0)
        other = np.concatenate([gain[:, f : 2 * f], gain[:, :f]], axis=1)
        return np.concatenate([np.where(spread, other, gain[:, : 2 * f]), gain[:, 2 * f :]], axis=1)

    have, want = swapped(weights.key_gain), goal.key_gain
    top = np.concatenate([(have * have)[:, :f] + (have * have)[:, f : 2 * f], (have * have)[:, 2 * f :]], axis=1)
    bottom = np.concatenate([(have * want)[:, :f] + (have * want)[:, f : 2 * f], (have * want)[:, 2 * f :]], axis=1)
    scales = np.where(bottom > 0, top / np.where(bottom > 0, bottom, 1.0), 1.0)
    return QKNormTurn(signs, scales, turns, np.ones_like(weights.query_gain), np.ones_like(weights.key_gain))


def _centred_part(goal: AttentionWeights, weights: AttentionWeights) -> QKNormTurn:
    """Pairs whose rows change places, the sign of every head, scales between the gains with their signs."""
    assert goal.key_gain is not None and weights.key_gain is not None
    share = weights.heads // weights.groups

    def inner(name: str, swapped: bool) -> Array:
        """⟨goal, rows⟩ per head and pair, real and imaginary rows having changed places if ``swapped``."""
        rows: Array = getattr(weights, name).weight
        rows = 1j * rows.conj() if swapped else rows
        return np.asarray((getattr(goal, name).weight.conj() * rows).real.sum(axis=-1))

    fits = [
        np.abs(inner("turned_key", s)) + np.abs(inner("turned_query", s)).reshape(weights.groups, share, -1).sum(axis=1)
        for s in (False, True)
    ]
    turns = np.asarray(fits[1] > fits[0])
    signs = []
    for side, count in (("query", share), ("key", 1)):
        straight, swapped = (inner(f"turned_{side}", s) for s in (False, True))
        chosen = np.where(np.repeat(turns, count, axis=0), swapped, straight)
        plain = (getattr(goal, side).weight * getattr(weights, side).weight).sum(axis=(1, 2))
        signs.append(np.where(chosen.sum(axis=1) + plain < 0, -1.0, 1.0))
    f, plain_size = turns.shape[1], weights.key.weight.shape[1]
    still = centred_turn(np.ones((weights.groups, f + plain_size)), turns, *signs)
    have, want = still.turn(weights).key_gain, goal.key_gain
    assert have is not None

    def gather(products: Array) -> Array:
        return np.concatenate([products[:, :f] + products[:, f : 2 * f], products[:, 2 * f :]], axis=1)

    top, bottom = gather(have * have), gather(have * want)
    return centred_turn(np.where(bottom != 0, top / np.where(bottom != 0, bottom, 1.0), 1.0), turns, *signs)


def _unit_part(spec: MLP, goal: MLPWeights, mlp: MLPWeights, expert: int) -> Units:
    order = match_units(spec, goal, mlp)
    if not has_unit_scale(spec):
        return Units(order, np.ones(mlp.units), expert)
    bias = mlp.up.bias[order].astype(np.float64)
    inner, size = bias * goal.up.bias, bias**2
    columns = mlp.up.by_columns
    for part in mlp.up.parts(columns=columns):
        rows, place = mlp.up.piece(part, order, columns=columns), slice(None) if columns else part
        inner[place] += np.einsum("ij,ij->i", rows, goal.up.piece(part, columns=columns), dtype=np.float64)
        size[place] += np.einsum("ij,ij->i", rows, rows, dtype=np.float64)
    good = (size > 0) & ((inner > 0) | ((inner != 0) & spec.gated))
    return Units(order, np.where(good, inner / np.where(size > 0, size, 1.0), 1.0), expert)


def _expert_order(spec: Experts, goal: MLPWeights | ExpertsWeights, mlp: MLPWeights | ExpertsWeights) -> ExpertOrder:
    """Experts by the rows of their router, inside their groups."""
    assert isinstance(goal, ExpertsWeights) and isinstance(mlp, ExpertsWeights)
    left = np.concatenate([goal.router.weight, goal.router.bias[:, None]], axis=1)
    right = np.concatenate([mlp.router.weight, mlp.router.bias[:, None]], axis=1)
    order = assign_points(left, right)
    size = spec.count // spec.expert_groups
    if spec.expert_groups > 1 and any(len(set(order[g : g + size] // size)) > 1 for g in range(0, spec.count, size)):
        order = np.arange(spec.count)
    return ExpertOrder(order, np.zeros(left.shape[1] - 1), 0.0)


def _unit_parts(block: TransformerBlock, target: LayerWeights, layer: LayerWeights) -> dict[int, Units]:
    """Order and scales of the units of every MLP, experts being in order."""
    if isinstance(layer.mlp, MLPWeights):
        assert isinstance(block.mlp, MLP) and isinstance(target.mlp, MLPWeights)
        return {-1: _unit_part(block.mlp, target.mlp, layer.mlp, -1)}
    assert isinstance(block.mlp, Experts) and isinstance(target.mlp, ExpertsWeights)
    spec, goal, mlp = block.mlp, target.mlp, layer.mlp
    found = {e: _unit_part(spec.expert, goal.experts[e], mlp.experts[e], e) for e in range(spec.count)}
    if spec.shared is not None and goal.shared is not None and mlp.shared is not None:
        found[-2] = _unit_part(spec.shared, goal.shared, mlp.shared, -2)
    return found
