"""Canonical forms: one representative of every orbit of a folded layer, in three gauges.

echelon, the default: identity blocks at pivot columns of K, V and unit pivots, all entries at most 1.05, and after a
LayerNorm readers with last column zero, triangles in the maps to latents: as many entries are exactly 0 or 1 as the
layer has redundant ones. Pivots hang on the span of the rows alone, so that no gap of singular values amplifies the
rounding of two copies. balanced: KᵀQ and OV split by their singular values, pairs and units with equal norms on both
sides: least norm. rotated: balanced, then Hadamard matrices on the plain coordinates (for quantisation). In all of them
signs and phases follow the first of the largest entries, heads and units are sorted by invariants.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Literal, get_args

import numpy as np

from attngeom.errors import InputError
from attngeom.exact import lapack
from attngeom.exact.arrays import Array
from attngeom.models.affine import Affine, pick_columns
from attngeom.models.folding import input_norms
from attngeom.models.layer import AttentionWeights, ExpertsWeights, LatentWeights, LayerWeights, MLPWeights
from attngeom.models.pivots import choose_pivots, farthest_columns, first_largest, pivot_signs
from attngeom.models.readers import has_bias, has_unit_scale, map_readers
from attngeom.models.specification import MLP, Experts, GroupedAttention, TransformerBlock
from attngeom.models.symmetry import GroupedHeadOrder, QKNormTurn, centred_turn
from attngeom.models.tall import tall_qr

Gauge = Literal["echelon", "balanced", "rotated"]
DEFAULT: Gauge = "echelon"
SINGULAR = 1e12
"""Beyond this condition rows count as dependent."""
GOLDEN = (np.sqrt(5) - 1) / 2


def canonical(
    block: TransformerBlock, layer: LayerWeights, gauge: Gauge = DEFAULT, *, ordered: bool = False
) -> LayerWeights:
    """The canonical form of a folded layer; ``ordered`` keeps the order of heads (tables of relative positions)."""
    if gauge not in get_args(Gauge):
        raise InputError(f"gauge {str(gauge)[:40]!r} given; echelon, balanced or rotated is required")
    assert block.attention is not None
    if gauge == "echelon":
        layer = _without_last_column(block, layer)
    keep = ordered or bool(block.attention.alibi)
    layer = layer.with_(attention=_fix_attention(block.attention, layer.attention, gauge, keep))
    if layer.cross is not None and block.cross is not None:
        layer = layer.with_(cross=_fix_attention(block.cross, layer.cross, gauge, False))
    if isinstance(layer.mlp, MLPWeights):
        assert isinstance(block.mlp, MLP)
        return layer.with_(mlp=fix_units(block.mlp, layer.mlp, gauge))
    assert isinstance(block.mlp, Experts)
    return layer.with_(mlp=_fix_experts(block.mlp, layer.mlp, gauge))


def _without_last_column(block: TransformerBlock, layer: LayerWeights) -> LayerWeights:
    """Readers of a LayerNorm, whose output has mean zero, with an exact zero in place of the last entry of each row.

    Where a reader has no place for its bias, the direction of the mean carries it and stays as it is.
    """

    def lower(reader: str, affine: Affine) -> Affine:
        return Affine(affine.weight - affine.weight[..., -1:], affine.bias)

    for name, norm in input_norms(block).items():
        places: list[bool] = []

        def note(reader: str, affine: Affine, name: str = name, places: list[bool] = places) -> Affine:
            places.append(has_bias(block, name, reader))
            return affine

        map_readers(block, layer, name, note)
        if norm.kind == "layer" and all(places):
            layer = map_readers(block, layer, name, lower)
    return layer


def _fix_attention(spec: GroupedAttention, weights: AttentionWeights, gauge: Gauge, keep: bool) -> AttentionWeights:
    weights = _fix_latents(weights, gauge)
    if spec.qk_norm is not None:
        weights = _fix_qk_norm(weights, spec.qk_norm.is_centred)
    else:
        weights = _fix_turned(weights, gauge)
        weights = _fix_plain(weights, gauge)
    weights = _fix_values(weights, gauge)
    return weights if keep else _sort_heads(weights)


def balance(left: Array, right: Array, cut: float = 1e-14) -> tuple[Array, Array]:
    """left (a, m) and right (a, n) with leftᵀ right kept, rows orthogonal on both sides, of equal norms, decreasing.

    Singular values of at most ``cut`` times the largest, and the missing ones, give rows of zeros.
    """
    q_left, r_left = tall_qr(left.T)
    q_right, r_right = tall_qr(right.T)
    u, values, w = lapack.svd(r_left @ r_right.T)
    rank, a = int(np.sum(values > cut * values.max(initial=0.0))), len(left)
    root = np.sqrt(values[:rank])[:, None]
    new_left, new_right = root * (q_left @ u[:, :rank]).T, root * (q_right @ w[:rank].T).T
    signs, zeros = pivot_signs(new_left)[:, None], ((0, a - rank), (0, 0))
    return np.pad(new_left * signs, zeros), np.pad(new_right * signs, zeros)


def turn(left: Array, right: Array, gauge: Gauge) -> tuple[Array, Array]:
    """The chosen gauge of a pair with leftᵀ right kept."""
    if gauge == "echelon":
        return _to_echelon(left, right)
    left, right = balance(left, right)
    if gauge == "rotated":
        matrix = rotation(len(left))
        return matrix @ left, matrix @ right
    return left, right


def _to_echelon(left: Array, right: Array) -> tuple[Array, Array]:
    """An identity in columns of left that its row space alone determines; rows of zeros if left has no full rank."""
    q, r = tall_qr(left.T)
    if len(r) < len(left) or lapack.cond(r) > SINGULAR:
        left, right = balance(left, right, 10 / SINGULAR)
        rank = int(np.any(left, axis=1).sum())
        if rank:
            left[:rank], right[:rank] = _to_echelon(left[:rank], right[:rank])
        return left, right
    pivots = choose_pivots(q.T)
    rows = lapack.inv(q.T[:, pivots]) @ q.T
    rows[:, pivots] = np.eye(len(left))
    # Adding zero makes −0.0 to 0.0: entries that the gauge fixes are equal in all bits.
    return rows + 0.0, left[:, pivots].T @ right + 0.0


def rotation(size: int) -> Array:
    """An orthogonal matrix that spreads coordinates: Hadamard blocks of the largest power of two that divides size."""
    if not size:
        return np.zeros((0, 0))
    power, block = size & -size, np.ones((1, 1))
    while len(block) < power:
        block = np.block([[block, block], [block, -block]])
    return np.kron(np.eye(size // power), block / np.sqrt(power))


def _fix_turned(weights: AttentionWeights, gauge: Gauge) -> AttentionWeights:
    """|k_f| = (Σ_h |q_hf|²)^½ and a real positive pivot; echelon: pivot 1."""
    key, query = weights.turned_key, weights.turned_query
    if not key.bias.size:
        return weights
    share = weights.heads // weights.turned_groups
    sizes = (np.abs(query.weight) ** 2).sum(axis=-1) + np.abs(query.bias) ** 2
    right = np.sqrt(sizes.reshape(weights.turned_groups, share, -1).sum(axis=1))
    left = np.sqrt((np.abs(key.weight) ** 2).sum(axis=-1) + np.abs(key.bias) ** 2)
    places = first_largest(np.abs(key.weight))
    pivots = np.take_along_axis(key.weight, places[..., None], axis=-1)[..., 0]
    alive = (left > 0) & (right > 0) & (np.abs(pivots) > 0)
    safe = np.where(alive, pivots, 1.0)
    size = np.where(alive, left, 1.0) / np.where(alive, right, 1.0)
    factors = np.where(alive, np.sqrt(size) * safe.conj() / np.abs(safe), 1.0)
    if gauge == "echelon":
        alive = np.abs(pivots) > 0
        factors = np.where(alive, pivots.conj(), 1.0)
    key = key.scaled(1 / factors.conj())
    if gauge == "echelon":
        exact = np.where(alive, 1.0, np.take_along_axis(key.weight, places[..., None], axis=-1)[..., 0])
        np.put_along_axis(key.weight, places[..., None], exact[..., None], axis=-1)
    return weights.with_(
        turned_key=key,
        turned_query=query.scaled(np.repeat(factors, share, axis=0)),
    )


def _fix_plain(weights: AttentionWeights, gauge: Gauge) -> AttentionWeights:
    groups, share, a = weights.groups, weights.heads // weights.groups, weights.key.weight.shape[1]
    if not a:
        return weights
    keys, queries = weights.key.rows, weights.query.rows
    new_keys, new_queries = np.empty_like(keys), np.empty_like(queries)
    for g in range(groups):
        heads = slice(g * share, (g + 1) * share)
        right = queries[heads].transpose(1, 0, 2).reshape(a, -1)
        left, right = turn(keys[g], right, gauge)
        new_keys[g], new_queries[heads] = left, right.reshape(a, share, -1).transpose(1, 0, 2)
    key, query = Affine(new_keys[..., :-1], new_keys[..., -1]), Affine(new_queries[..., :-1], new_queries[..., -1])
    if not np.any(weights.key.bias):
        key = Affine.linear(key.weight)
    return weights.with_(key=key, query=query)


def _fix_values(weights: AttentionWeights, gauge: Gauge) -> AttentionWeights:
    groups, share = weights.groups, weights.heads // weights.groups
    values = weights.value.rows
    new_values, output = np.empty_like(values), np.empty_like(weights.output)
    d, v = weights.output.shape[1:]
    for g in range(groups):
        heads = slice(g * share, (g + 1) * share)
        right = weights.output[heads].reshape(share * d, v).T
        left, right = turn(values[g], right, gauge)
        new_values[g], output[heads] = left, right.T.reshape(share, d, v)
    value = Affine(new_values[..., :-1], new_values[..., -1])
    if not np.any(weights.value.bias):
        value = Affine.linear(value.weight)
    return weights.with_(value=value, output=output)


def head_sizes(weights: AttentionWeights) -> Array:
    """‖O_h V_g‖ of every head, by Gram matrices."""
    values = weights.value.rows
    gram = np.repeat(values @ values.transpose(0, 2, 1), weights.heads // weights.groups, axis=0)
    outer = weights.output.transpose(0, 2, 1) @ weights.output
    return np.asarray(np.sqrt(np.maximum(np.einsum("hij,hij->h", gram, outer), 0)))


def _sort_heads(weights: AttentionWeights) -> AttentionWeights:
    sizes, share = head_sizes(weights), weights.heads // weights.groups
    table = sizes.reshape(weights.groups, share)
    groups = np.argsort(-(table**2).sum(axis=1), kind="stable")
    heads = np.concatenate([g * share + np.argsort(-table[g], kind="stable") for g in groups])
    return GroupedHeadOrder(heads, groups).pick(weights)


def _fix_qk_norm(weights: AttentionWeights, centred: bool) -> AttentionWeights:
    """Equal norms of query and key gains per pair, larger query gain first, pivot of every key row positive.

    Under a ``centred`` norm the pivot of all rows of a head is positive, and the larger key gain of every pair.
    """
    assert weights.query_gain is not None and weights.key_gain is not None
    f, groups = weights.turned_key.weight.shape[1], weights.groups
    query_gain, key_gain = weights.query_gain, weights.key_gain
    rows = len(key_gain)
    grouped = query_gain.reshape(rows, -1, query_gain.shape[1])
    first, second = (grouped[..., :f] ** 2).sum(axis=1), (grouped[..., f : 2 * f] ** 2).sum(axis=1)
    turns = second > first
    query_sizes = np.concatenate([first + second, (grouped[..., 2 * f :] ** 2).sum(axis=1)], axis=1)
    key_pairs = key_gain[:, :f] ** 2 + key_gain[:, f : 2 * f] ** 2
    key_sizes = np.concatenate([key_pairs, key_gain[:, 2 * f :] ** 2], axis=1)
    alive = (query_sizes > 0) & (key_sizes > 0)
    scales = (np.where(alive, key_sizes, 1.0) / np.where(alive, query_sizes, 1.0)) ** 0.25
    if centred:
        heads = [pivot_signs(_all_rows(weights, side)) for side in ("query", "key")]
        pairs = key_gain.reshape(rows, -1)[:, : 2 * f].reshape(rows, 2, f)
        larger = np.abs(pairs).argmax(axis=1)
        chosen = np.take_along_axis(pairs, larger[:, None], axis=1)[:, 0]
        # A quarter turn changes the sign of the gain that comes first.
        chosen = np.where(turns & (larger == 1), -chosen, chosen) * heads[1][:, None]
        plain = key_gain[:, 2 * f :] * heads[1][:, None]
        scales = scales * np.where(np.concatenate([chosen, plain], axis=1) < 0, -1.0, 1.0)
        return centred_turn(scales, turns, *heads).turn(weights)
    turned = weights.turned_key.weight * np.where(turns, 1j, 1.0)[..., None]
    stacked = np.concatenate([turned.real, turned.imag], axis=-1)
    signs = np.concatenate([pivot_signs(stacked), pivot_signs(weights.key.weight)], axis=1)
    signs = np.broadcast_to(signs, (groups, signs.shape[1]))
    part = QKNormTurn(signs, scales, turns, np.ones_like(query_gain), np.ones_like(key_gain))
    return part.turn(weights)


def _all_rows(weights: AttentionWeights, side: str) -> Array:
    """All rows of every head of ``query`` or ``key`` as one vector."""
    turned, plain = getattr(weights, f"turned_{side}").weight, getattr(weights, side).weight
    return np.concatenate([turned.real, turned.imag, plain], axis=1).reshape(len(turned), -1)


def _fix_latents(weights: AttentionWeights, gauge: Gauge) -> AttentionWeights:
    """Latents along the left singular vectors of their down-projection, signs by the pivot; gains are folded.

    Echelon: a triangle with a positive diagonal in the columns that stick out farthest.
    """
    changes: dict[str, object] = {}
    sides = (("key_latent", ("key", "value")), ("query_latent", ("query", "turned_query")))
    for name, readers in sides:
        latent: LatentWeights | None = getattr(weights, name)
        if latent is None:
            continue
        rows = latent.down.rows
        pivots = _triangle_columns(latent.down.weight) if gauge == "echelon" else None
        if pivots is None:
            u = lapack.svd(rows, full_matrices=rows.shape[1] < rows.shape[0])[0]
            down = latent.down.then((u := u * pivot_signs(u.T @ rows)).T)
        else:
            u, triangle = lapack.qr(rows[:, pivots])
            down = latent.down.then((u := u * np.where(np.diag(triangle) < 0, -1.0, 1.0)).T)
            for place, column in enumerate(pivots):
                down.weight[place + 1 :, column] = 0.0
        changes[name] = replace(latent, down=down)
        for reader in readers:
            affine: Affine = getattr(weights, reader)
            changes[reader] = Affine(affine.weight @ u, affine.bias)
    return weights.with_(**changes)


def _triangle_columns(matrix: Array) -> Array | None:
    """Columns of a triangle, as many as there are rows; None if the rows are dependent."""
    order = farthest_columns(matrix) if matrix.shape[1] >= len(matrix) else np.zeros(0, dtype=np.int64)
    return order if len(order) and lapack.cond(matrix[:, order]) < SINGULAR else None


def unit_scales(spec: MLP, mlp: MLPWeights, gauge: Gauge) -> Array:
    """Factors of up that fix the scale of every unit, where the unit has one."""
    if not has_unit_scale(spec):
        return np.ones(mlp.units, mlp.up.weight.dtype)
    dtype = mlp.up.weight.dtype
    left = np.sqrt(np.einsum("ij,ij->i", mlp.up.weight, mlp.up.weight) + mlp.up.bias**2)
    right = np.sqrt(np.einsum("ij,ij->j", mlp.down, mlp.down))
    alive = (left > 0) & (right > 0)
    scales = np.sqrt(np.where(alive, right, 1.0) / np.where(alive, left, 1.0))
    if gauge == "echelon":
        largest = np.abs(mlp.up.weight).max(axis=1)
        scales = 1 / np.where(largest > 0, largest, 1.0)
    if spec.gated:
        scales = scales * pivot_signs(mlp.up.weight)
    return scales.astype(dtype)


def _sorting_sizes(reader: Affine) -> Array:
    """Σ c_j w_ij² + b_i² per row: weights c_j between 1 and 2 tell rows of few digits apart whose norms are equal."""
    weights = 1 + np.arange(reader.shape[1]) * GOLDEN % 1
    sizes = reader.bias.astype(np.float64) ** 2
    for part in reader.parts():
        sizes[part] += reader.weight[part] ** 2 @ weights
    return sizes


def fix_units(spec: MLP, mlp: MLPWeights, gauge: Gauge) -> MLPWeights:
    """Scales of the units fixed and units sorted by the size of the row that no scale changes."""
    scales = unit_scales(spec, mlp, gauge)
    reader = mlp.gate if mlp.gate is not None else mlp.up
    sizes = _sorting_sizes(reader)
    if mlp.gate is None:
        sizes = sizes * scales**2
    order = np.argsort(-sizes, kind="stable")
    up, down = mlp.up.pick(order), pick_columns(mlp.down, order)
    if has_unit_scale(spec):
        # Both arrays are fresh: scale them in place.
        up.weight[...] *= scales[order, None]
        if gauge == "echelon":
            places = first_largest(np.abs(up.weight))[:, None]
            pivots = np.take_along_axis(up.weight, places, axis=1)
            np.put_along_axis(up.weight, places, np.where(pivots != 0, np.sign(pivots), 0), axis=1)
            up.weight[...] += 0.0
        down /= scales[order]
        up = Affine(up.weight, up.bias * scales[order])
    return mlp.with_(gate=None if mlp.gate is None else mlp.gate.pick(order), up=up, down=down)


def _fix_experts(spec: Experts, weights: ExpertsWeights, gauge: Gauge) -> ExpertsWeights:
    """Units of every expert fixed; experts sorted by the norms of their router rows, inside their groups."""
    sizes = (weights.router.weight**2).sum(axis=1) + weights.router.bias**2
    table = sizes.reshape(spec.expert_groups, -1)
    size = table.shape[1]
    groups = np.argsort(-table.max(axis=1), kind="stable")
    order = np.concatenate([g * size + np.argsort(-table[g], kind="stable") for g in groups])
    experts = tuple(fix_units(spec.expert, weights.experts[e], gauge) for e in order)
    shared = None
    if spec.shared is not None and weights.shared is not None:
        shared = fix_units(spec.shared, weights.shared, gauge)
    correction = None if weights.correction is None else weights.correction[order]
    return ExpertsWeights(weights.router.pick(order), correction, experts, shared)
