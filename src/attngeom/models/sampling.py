"""Random symmetries of a layer, every part that the block has, from a seed."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from attngeom.errors import InputError
from attngeom.exact import lapack
from attngeom.exact.arrays import Array
from attngeom.models.affine import Affine
from attngeom.models.folding import input_norms
from attngeom.models.layer import AttentionWeights, ExpertsWeights, LayerWeights, MLPWeights
from attngeom.models.readers import has_bias, has_unit_scale, key_bias_is_invisible, map_readers, value_bias_is_constant
from attngeom.models.specification import MLP, Experts, GroupedAttention, TransformerBlock
from attngeom.models.symmetry import (
    ConstantShift,
    ExpertOrder,
    GroupedHeadOrder,
    GroupedQueryKey,
    GroupedValueOutput,
    HeadMeans,
    LatentTurn,
    MeanShift,
    NormMove,
    OutputSigns,
    Part,
    QKNormTurn,
    StreamShift,
    Symmetry,
    Units,
    Which,
    centred_turn,
)

DEFAULT = 9.0
"""Condition number of random matrices unless another one is asked for."""
PARTS = ("qk", "vo", "heads", "units", "norms", "biases")


class Sampler:
    """Random parts with matrices of the given condition number."""

    def __init__(self, seed: int, condition: float = DEFAULT) -> None:
        if not 1 <= condition <= 1e6:
            raise InputError(f"condition {condition} given; a number from 1 to 1e6 is required")
        self.rng = np.random.default_rng(seed)
        self.condition = condition

    def scales(self, *shape: int) -> Array:
        """Positive numbers within the square root of the condition of each other, around 1."""
        return np.asarray(self.condition ** self.rng.uniform(-0.25, 0.25, shape))

    def orthogonal(self, count: int, size: int) -> Array:
        q = lapack.qr(self.rng.normal(size=(count, size, size)))[0] if size else np.zeros((count, 0, 0))
        return np.asarray(q)

    def invertible(self, count: int, size: int) -> Array:
        """Matrices U S W with singular values between condition^−½ and condition^½."""
        values = self.condition ** self.rng.uniform(-0.5, 0.5, (count, size))
        if size > 1:
            values[:, 0], values[:, -1] = self.condition**0.5, self.condition**-0.5
        return np.asarray(self.orthogonal(count, size) * values[:, None, :] @ self.orthogonal(count, size))

    def shift(self, size: int | tuple[int, ...] = ()) -> Array:
        """Shifts of biases and of directions that are not seen; small, so that they do not swamp the weights.

        They are smaller still for a smaller condition number than that of `DEFAULT`, and none for 1.
        """
        return np.asarray(self.rng.normal(size=size) * 0.3 * min(1.0, (self.condition - 1) / (DEFAULT - 1)))

    def phases(self, *shape: int) -> Array:
        return np.asarray(np.exp(1j * self.rng.uniform(0, 2 * np.pi, shape)))

    def signs(self, *shape: int) -> Array:
        return np.asarray(self.rng.choice([-1.0, 1.0], shape))


def random_symmetry(
    block: TransformerBlock,
    layer: LayerWeights,
    sampler: Sampler,
    *,
    parts: Collection[str] = PARTS,
    ordered: bool = False,
) -> Symmetry:
    """A random symmetry of the chosen parts; ``ordered`` keeps the order of heads (tables of relative positions)."""
    unknown = set(parts) - set(PARTS)
    if unknown:
        raise InputError(f"part {sorted(unknown)[0][:40]!r} given; parts are {', '.join(PARTS)} and residual")
    found: list[Part] = []
    sublayers: list[tuple[Which, GroupedAttention | None, AttentionWeights | None]] = [
        ("attention", block.attention, layer.attention),
        ("cross", block.cross, layer.cross),
    ]
    if "norms" in parts:
        found += _norm_parts(block, layer, sampler)
    for which, spec, weights in sublayers:
        if spec is None or weights is None:
            continue
        if "qk" in parts:
            found += _query_key_parts(spec, weights, sampler, which)
        if "vo" in parts:
            found.append(GroupedValueOutput(sampler.invertible(weights.groups, spec.value_dim), which))
        if "biases" in parts:
            found.append(_constant_part(block, spec, weights, sampler, which))
        if "heads" in parts and not spec.alibi and not (ordered and which == "attention"):
            found.append(_head_order(weights, sampler, which))
    if "units" in parts:
        found += _unit_parts(block, layer, sampler, "norms" in parts)
    return tuple(found)


def _query_key_parts(spec: GroupedAttention, weights: AttentionWeights, sampler: Sampler, which: Which) -> list[Part]:
    f, plain, groups = weights.turned_key.weight.shape[1], weights.key.weight.shape[1], weights.groups
    if spec.qk_norm is not None:
        assert weights.query_gain is not None and weights.key_gain is not None
        shared = 1 if spec.qk_norm.shares_gains else groups
        if spec.qk_norm.is_centred:
            scales = sampler.scales(groups, f + plain) * sampler.signs(groups, f + plain)
            turns = sampler.rng.random((groups, f)) < 0.5
            moves = [
                Affine(sampler.shift((count, width)), sampler.shift(count) * bias)
                for count, width, bias in (
                    (weights.heads, weights.query.weight.shape[-1], spec.query_bias),
                    (groups, weights.key.weight.shape[-1], spec.key_bias),
                )
            ]
            return [centred_turn(scales, turns, sampler.signs(weights.heads), sampler.signs(groups)), HeadMeans(*moves)]
        return [
            QKNormTurn(
                sampler.signs(groups, f + plain),
                sampler.scales(shared, f + plain),
                sampler.rng.random((shared, f)) < 0.5,
                sampler.signs(*weights.query_gain.shape),
                sampler.signs(*weights.key_gain.shape),
            )
        ]
    found: list[Part] = []
    if weights.key_latent is not None:
        rank = len(weights.key_latent.gain)
        query_rank = None if weights.query_latent is None else len(weights.query_latent.gain)
        found.append(
            LatentTurn(
                None if query_rank is None else sampler.orthogonal(1, query_rank)[0],
                sampler.orthogonal(1, rank)[0],
                None if query_rank is None else sampler.scales(query_rank) * sampler.signs(query_rank),
                sampler.scales(rank) * sampler.signs(rank),
            )
        )
    shape = (weights.turned_groups, f)
    turned = sampler.scales(*shape) * sampler.phases(*shape)
    found.append(GroupedQueryKey(turned, sampler.invertible(groups, plain), which))
    return found


def _head_order(weights: AttentionWeights, sampler: Sampler, which: Which) -> GroupedHeadOrder:
    groups, share = weights.groups, weights.heads // weights.groups
    order = sampler.rng.permutation(groups)
    heads = np.concatenate([g * share + sampler.rng.permutation(share) for g in order])
    return GroupedHeadOrder(heads, order, which)


def _constant_part(
    block: TransformerBlock, spec: GroupedAttention, weights: AttentionWeights, sampler: Sampler, which: Which
) -> ConstantShift:
    key = np.zeros(weights.key.bias.shape)
    value = np.zeros(weights.value.bias.shape)
    output = np.zeros(weights.output.shape[1])
    if spec.key_bias and key_bias_is_invisible(spec):
        key = sampler.shift(size=key.shape)
    if spec.value_bias and spec.output_bias and value_bias_is_constant(spec):
        value = sampler.shift(size=value.shape)
    if isinstance(block.mlp, MLP) and block.mlp.down_bias and spec.output_bias and block.mlp_norms.output is None:
        norm = block.mlp_norms.input
        if block.parallel:
            output = sampler.shift(size=output.shape)
        elif norm is not None and norm.kind == "layer" and block.mlp_norms.stream is None:
            output = output + sampler.shift()
    return ConstantShift(key, value, output, which)


def _norm_parts(block: TransformerBlock, layer: LayerWeights, sampler: Sampler) -> list[Part]:
    found: list[Part] = []
    for name, norm in input_norms(block).items():
        readers: dict[str, Array] = {}

        def note(reader: str, affine: object, seen: dict[str, Array] = readers) -> object:
            seen[reader] = affine.bias  # type: ignore[attr-defined]
            return affine

        map_readers(block, layer, name, note)  # type: ignore[arg-type]
        homes = {reader: has_bias(block, name, reader) for reader in readers}
        width = len(layer.norms[name].bias)
        shift = sampler.shift(size=width) if norm.bias and all(homes.values()) else np.zeros(width)
        scales = sampler.scales(width) * sampler.signs(width) if norm.gain else np.ones(width)
        found.append(NormMove(name, scales, shift))
        if norm.kind == "layer" and isinstance(layer.mlp, MLPWeights):
            for reader, bias in readers.items():
                if bias.size and (homes[reader] or not norm.bias):
                    rows = sampler.shift(size=bias.shape)
                    if np.iscomplexobj(bias):
                        rows = rows + 1j * sampler.shift(size=bias.shape)
                    found.append(MeanShift(name, reader, rows))
    if "attention.output" in layer.norms and "mlp.output" in layer.norms:
        width = layer.attention.output.shape[1]
        found.append(OutputSigns(sampler.signs(width), sampler.signs(width)))
    if "attention.stream" in layer.norms and isinstance(layer.mlp, MLPWeights):
        attention, d = layer.attention, layer.attention.output.shape[1]
        constants = (float(sampler.shift()), float(sampler.shift()))
        output = sampler.shift(size=(attention.heads, attention.output.shape[2]))
        rows = sampler.shift(size=layer.mlp.units)
        found.append(StreamShift(output, sampler.shift(size=layer.mlp.units), constants, sampler.shift(size=d)))
        found.append(MeanShift("attention.stream", "up", rows))
    return found


def _unit_scales(spec: MLP, sampler: Sampler) -> Array:
    if not has_unit_scale(spec):
        return np.ones(spec.width)
    return sampler.scales(spec.width) * (sampler.signs(spec.width) if spec.gated else 1.0)


def _unit_parts(block: TransformerBlock, layer: LayerWeights, sampler: Sampler, move_router: bool) -> list[Part]:
    if isinstance(layer.mlp, MLPWeights):
        assert isinstance(block.mlp, MLP)
        return [Units(sampler.rng.permutation(layer.mlp.units), _unit_scales(block.mlp, sampler))]
    assert isinstance(block.mlp, Experts) and isinstance(layer.mlp, ExpertsWeights)
    spec, width = block.mlp, layer.mlp.router.weight.shape[1]
    found: list[Part] = []
    for e, expert in enumerate(layer.mlp.experts):
        found.append(Units(sampler.rng.permutation(expert.units), _unit_scales(spec.expert, sampler), e))
    if spec.shared is not None and layer.mlp.shared is not None:
        order = sampler.rng.permutation(layer.mlp.shared.units)
        found.append(Units(order, _unit_scales(spec.shared, sampler), -2))
    size = spec.count // spec.expert_groups
    groups = sampler.rng.permutation(spec.expert_groups)
    order = np.concatenate([g * size + sampler.rng.permutation(size) for g in groups])
    free = spec.router == "softmax" and move_router
    weight = sampler.shift(size=width) if free else np.zeros(width)
    bias = float(sampler.shift()) if free and spec.router_bias else 0.0
    found.append(ExpertOrder(order, weight, bias))
    return found
