"""Symmetries of a layer: elementary parts, each with its action and its inverse; a symmetry is a sequence of parts.

Every part leaves the function of the layer unchanged for every input, by the lemmas of docs/models-theory.md. A part
acts on `LayerWeights` as they are stored, not only on folded ones. `compose` is concatenation, `inverse` reverses.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, Protocol

import numpy as np

from attngeom.models.layer import (
    Affine,
    Array,
    AttentionWeights,
    ExpertsWeights,
    LayerWeights,
    MLPWeights,
    pick_columns,
)
from attngeom.models.readers import map_mlp, map_readers
from attngeom.models.specification import Block

Which = Literal["attention", "cross"]


class Part(Protocol):
    """One factor of the group: how it acts and what undoes it."""

    def act(self, block: Block, layer: LayerWeights) -> LayerWeights: ...

    def inverse(self) -> Part: ...


Symmetry = tuple[Part, ...]


def act(block: Block, layer: LayerWeights, symmetry: Sequence[Part]) -> LayerWeights:
    """The layer moved by the parts, first to last."""
    for part in symmetry:
        layer = part.act(block, layer)
    return layer


def compose(first: Sequence[Part], second: Sequence[Part]) -> Symmetry:
    """First, then second."""
    return (*first, *second)


def inverse(symmetry: Sequence[Part]) -> Symmetry:
    return tuple(part.inverse() for part in reversed(symmetry))


def _on(layer: LayerWeights, which: Which, change: Callable[[AttentionWeights], AttentionWeights]) -> LayerWeights:
    if which == "attention":
        return layer.with_(attention=change(layer.attention))
    assert layer.cross is not None
    return layer.with_(cross=change(layer.cross))


@dataclass(frozen=True, eq=False)
class QueryKey:
    """turned: q → c q, k → k / c̄ per group and frequency (L3); plain: K → C K, Q → C⁻ᵀ Q per group (L2)."""

    turned: Array
    plain: Array
    which: Which = "attention"

    def act(self, block: Block, layer: LayerWeights) -> LayerWeights:
        def change(weights: AttentionWeights) -> AttentionWeights:
            heads = weights.heads
            factors = np.repeat(self.turned, heads // len(self.turned), axis=0)
            back = np.linalg.inv(self.plain).transpose(0, 2, 1)
            return weights.with_(
                turned_query=weights.turned_query.scaled(factors),
                turned_key=weights.turned_key.scaled(1 / self.turned.conj()),
                key=weights.key.then(self.plain),
                query=weights.query.then(np.repeat(back, heads // len(back), axis=0)),
            )

        return _on(layer, self.which, change)

    def inverse(self) -> QueryKey:
        return QueryKey(1 / self.turned, np.linalg.inv(self.plain), self.which)


@dataclass(frozen=True, eq=False)
class ValueOutput:
    """V → B V, O → O B⁻¹ per group (L2)."""

    matrices: Array
    which: Which = "attention"

    def act(self, block: Block, layer: LayerWeights) -> LayerWeights:
        def change(weights: AttentionWeights) -> AttentionWeights:
            back = np.repeat(np.linalg.inv(self.matrices), weights.heads // len(self.matrices), axis=0)
            return weights.with_(value=weights.value.then(self.matrices), output=weights.output @ back)

        return _on(layer, self.which, change)

    def inverse(self) -> ValueOutput:
        return ValueOutput(np.linalg.inv(self.matrices), self.which)


@dataclass(frozen=True, eq=False)
class HeadOrder:
    """Query head i of the new layer is head heads[i] of the old one; groups likewise, and heads follow their group."""

    heads: Array
    groups: Array
    which: Which = "attention"

    def act(self, block: Block, layer: LayerWeights) -> LayerWeights:
        return _on(layer, self.which, self.pick)

    def pick(self, weights: AttentionWeights) -> AttentionWeights:
        """The heads of one attention in the new order."""
        shared = weights.turned_groups != weights.groups
        changes: dict[str, object] = {
            "turned_query": weights.turned_query.pick(self.heads),
            "query": weights.query.pick(self.heads),
            "turned_key": weights.turned_key if shared else weights.turned_key.pick(self.groups),
            "key": weights.key.pick(self.groups),
            "value": weights.value.pick(self.groups),
            "output": weights.output[self.heads],
        }
        for name, order in (("query_gain", self.heads), ("key_gain", self.groups), ("sinks", self.heads)):
            gains = getattr(weights, name)
            if gains is not None and len(gains) > 1:
                changes[name] = gains[order]
        return weights.with_(**changes)

    def inverse(self) -> HeadOrder:
        return HeadOrder(np.argsort(self.heads), np.argsort(self.groups), self.which)


@dataclass(frozen=True, eq=False)
class QKNormTurn:
    """Under a QK-norm: signs of pairs and of plain rows per group, scales between the gains, quarter turns, flips.

    ``signs`` (G, f + a₀) multiply rows of K and Q; ``scales`` (1 or G, f + a₀) multiply query gains and divide key
    gains, one number per pair; ``turns`` (1 or G, f) mark pairs (x, y) → (−y, x) whose gains are swapped; ``flips`` for
    query and key gains change the sign of a gain with its row.
    """

    signs: Array
    scales: Array
    turns: Array
    query_flips: Array
    key_flips: Array

    def act(self, block: Block, layer: LayerWeights) -> LayerWeights:
        return layer.with_(attention=self.turn(layer.attention))

    def turn(self, weights: AttentionWeights) -> AttentionWeights:
        """The action on one attention."""
        n = weights.heads // weights.groups
        assert weights.query_gain is not None and weights.key_gain is not None
        f = weights.turned_key.weight.shape[1]

        def spread(values: Array, like: Array, share: int) -> Array:
            return np.repeat(values, share, axis=0) if len(values) > 1 and len(like) > len(values) else values

        changes: dict[str, object] = {}
        for side, share, gain in (("query", n, weights.query_gain), ("key", 1, weights.key_gain)):
            turned: Affine = getattr(weights, f"turned_{side}")
            plain: Affine = getattr(weights, side)
            signs = np.repeat(self.signs, share, axis=0)
            turns = spread(self.turns, gain, share)
            scales = spread(self.scales, gain, share)
            factors = np.where(turns, 1j, 1.0 + 0j)
            rows = turned.scaled(np.broadcast_to(factors, turned.bias.shape) * signs[:, :f])
            swapped = np.concatenate([gain[:, f : 2 * f], gain[:, :f]], axis=1)
            pairs = np.where(np.concatenate([turns, turns], axis=1), swapped, gain[:, : 2 * f])
            both = np.concatenate([scales[:, :f], scales[:, :f], scales[:, f:]], axis=1)
            gains = np.concatenate([pairs, gain[:, 2 * f :]], axis=1)
            flips = self.query_flips if side == "query" else self.key_flips
            gains = gains * flips * (both if side == "query" else 1 / both)
            weight = rows.weight.real * flips[:, :f, None] + 1j * rows.weight.imag * flips[:, f : 2 * f, None]
            bias = rows.bias.real * flips[:, :f] + 1j * rows.bias.imag * flips[:, f : 2 * f]
            changes[f"turned_{side}"] = Affine(weight, bias)
            changes[side] = plain.scaled(signs[:, f:] * flips[:, 2 * f :])
            changes[f"{side}_gain"] = gains
        return weights.with_(**changes)

    def inverse(self) -> Part:
        return _Undo(self)


@dataclass(frozen=True, eq=False)
class _Undo:
    """The inverse of a QKNormTurn: flips, scales and signs undone, then three more quarter turns."""

    part: QKNormTurn

    def act(self, block: Block, layer: LayerWeights) -> LayerWeights:
        part = self.part
        still = np.zeros_like(part.turns)
        ones = np.ones_like(part.signs)
        plain = np.ones_like(part.query_flips), np.ones_like(part.key_flips)
        layer = QKNormTurn(part.signs, 1 / part.scales, still, part.query_flips, part.key_flips).act(block, layer)
        for _ in range(3):
            layer = QKNormTurn(ones, np.ones_like(part.scales), part.turns, *plain).act(block, layer)
        return layer

    def inverse(self) -> QKNormTurn:
        return self.part


@dataclass(frozen=True, eq=False)
class LatentTurn:
    """Latents of MLA: down → R down with readers X → X D Rᵀ D⁻¹ (L5), then gains D → D s with readers X → X / s."""

    query: Array | None
    key: Array
    query_scale: Array | None
    key_scale: Array

    def act(self, block: Block, layer: LayerWeights) -> LayerWeights:
        weights = layer.attention
        assert weights.key_latent is not None
        changes: dict[str, object] = {}
        sides = [("key_latent", ("key", "value"), self.key, self.key_scale)]
        if weights.query_latent is not None and self.query is not None and self.query_scale is not None:
            sides.append(("query_latent", ("query", "turned_query"), self.query, self.query_scale))
        for name, readers, rotation, scale in sides:
            latent = getattr(weights, name)
            through = (latent.gain[:, None] * rotation.T) / latent.gain / scale
            changes[name] = replace(latent, down=latent.down.then(rotation), gain=latent.gain * scale)
            for reader in readers:
                affine: Affine = getattr(weights, reader)
                changes[reader] = Affine(affine.weight @ through, affine.bias)
        return layer.with_(attention=weights.with_(**changes))

    def inverse(self) -> Part:
        return _UndoLatent(self)


@dataclass(frozen=True, eq=False)
class _UndoLatent:
    part: LatentTurn

    def act(self, block: Block, layer: LayerWeights) -> LayerWeights:
        part = self.part
        still = LatentTurn(
            None if part.query is None else np.eye(len(part.query)),
            np.eye(len(part.key)),
            None if part.query_scale is None else 1 / part.query_scale,
            1 / part.key_scale,
        )
        back = LatentTurn(
            None if part.query is None else part.query.T,
            part.key.T,
            None if part.query_scale is None else np.ones_like(part.query_scale),
            np.ones_like(part.key_scale),
        )
        return back.act(block, still.act(block, layer))

    def inverse(self) -> LatentTurn:
        return self.part


@dataclass(frozen=True, eq=False)
class NormMove:
    """u' = s ∘ u + shift, readers W' = W / s with bias b − W' shift; ``shift`` needs readers with biases (L4)."""

    norm: str
    scale: Array
    shift: Array

    def act(self, block: Block, layer: LayerWeights) -> LayerWeights:
        weights = layer.norms[self.norm]

        def change(name: str, reader: Affine) -> Affine:
            weight = reader.weight / self.scale
            return Affine(weight, reader.bias - weight @ self.shift)

        moved = weights.changed(weights.gain * self.scale, weights.bias * self.scale + self.shift)
        layer = map_readers(block, layer, self.norm, change)
        return layer.with_(norms={**layer.norms, self.norm: moved})

    def inverse(self) -> NormMove:
        return NormMove(self.norm, 1 / self.scale, -self.shift / self.scale)


@dataclass(frozen=True, eq=False)
class MeanShift:
    """After a LayerNorm rows of a reader may move along 1/gain: W + w (1/γ)ᵀ with bias b − w Σ β/γ (L4)."""

    norm: str
    reader: str
    rows: Array

    def act(self, block: Block, layer: LayerWeights) -> LayerWeights:
        weights = layer.norms[self.norm]

        def change(name: str, reader: Affine) -> Affine:
            if name != self.reader:
                return reader
            total = float((weights.bias / weights.gain).sum())
            return Affine(reader.weight + self.rows[..., None] / weights.gain, reader.bias - self.rows * total)

        if self.norm == "attention.stream":
            return layer.with_(mlp=map_mlp(layer.mlp, change))
        return map_readers(block, layer, self.norm, change)

    def inverse(self) -> MeanShift:
        return MeanShift(self.norm, self.reader, -self.rows)


@dataclass(frozen=True, eq=False)
class ConstantShift:
    """Key constants that softmax forgets, value constants that the output bias takes up, outputs that only add up.

    ``key`` (G, a₀) is added to plain key biases, ``value`` (G, v) to value biases with −Σ O_h value in the output bias,
    ``output`` (d) moves from the bias of the MLP to that of attention (parallel blocks; before a LayerNorm: c·1).
    """

    key: Array
    value: Array
    output: Array
    which: Which = "attention"

    def act(self, block: Block, layer: LayerWeights) -> LayerWeights:
        def change(weights: AttentionWeights) -> AttentionWeights:
            spread = np.repeat(self.value, weights.heads // weights.groups, axis=0)
            lost = np.einsum("hdv,hv->d", weights.output, spread)
            return weights.with_(
                key=Affine(weights.key.weight, weights.key.bias + self.key),
                value=Affine(weights.value.weight, weights.value.bias + self.value),
                output_bias=weights.output_bias - lost + self.output,
            )

        layer = _on(layer, self.which, change)
        if not np.any(self.output):
            return layer
        assert isinstance(layer.mlp, MLPWeights)
        return layer.with_(mlp=layer.mlp.with_(down_bias=layer.mlp.down_bias - self.output))

    def inverse(self) -> ConstantShift:
        return ConstantShift(-self.key, -self.value, -self.output, self.which)


@dataclass(frozen=True, eq=False)
class StreamShift:
    """Post-LN blocks: writers along 1 (heads, head bias, units, unit bias) and the bias of the inner norm."""

    output: Array
    down: Array
    constants: tuple[float, float]
    inner: Array

    def act(self, block: Block, layer: LayerWeights) -> LayerWeights:
        assert isinstance(layer.mlp, MLPWeights)
        attention, mlp, norm = layer.attention, layer.mlp, layer.norms["attention.stream"]
        attention = attention.with_(
            output=attention.output + self.output[:, None, :], output_bias=attention.output_bias + self.constants[0]
        )
        mlp = mlp.with_(
            up=Affine(mlp.up.weight, mlp.up.bias - mlp.up.weight @ self.inner),
            down=mlp.down + self.down,
            down_bias=mlp.down_bias + self.constants[1] - self.inner,
        )
        norms = {**layer.norms, "attention.stream": norm.changed(norm.gain, norm.bias + self.inner)}
        return layer.with_(attention=attention, mlp=mlp, norms=norms)

    def inverse(self) -> StreamShift:
        return StreamShift(-self.output, -self.down, (-self.constants[0], -self.constants[1]), -self.inner)


@dataclass(frozen=True, eq=False)
class OutputSigns:
    """Norms on outputs: the sign of a gain moves into the row that writes it."""

    attention: Array
    mlp: Array

    def act(self, block: Block, layer: LayerWeights) -> LayerWeights:
        assert isinstance(layer.mlp, MLPWeights)
        norms = dict(layer.norms)
        for name, signs in (("attention.output", self.attention), ("mlp.output", self.mlp)):
            norms[name] = norms[name].changed(norms[name].gain * signs, norms[name].bias)
        attention = layer.attention.with_(
            output=layer.attention.output * self.attention[None, :, None],
            output_bias=layer.attention.output_bias * self.attention,
        )
        mlp = layer.mlp.with_(down=layer.mlp.down * self.mlp[:, None], down_bias=layer.mlp.down_bias * self.mlp)
        return layer.with_(attention=attention, mlp=mlp, norms=norms)

    def inverse(self) -> OutputSigns:
        return self


@dataclass(frozen=True, eq=False)
class Units:
    """Hidden unit i of the new MLP is unit order[i] of the old one, up times scale, down divided by it (L6).

    Without a gate the bias and weight of up are scaled together (ReLU). ``expert`` is the number of an expert, −1 for
    the MLP of a dense layer, −2 for the shared expert.
    """

    order: Array
    scales: Array
    expert: int = -1

    def act(self, block: Block, layer: LayerWeights) -> LayerWeights:
        def change(mlp: MLPWeights) -> MLPWeights:
            scales = self.scales.astype(mlp.up.weight.dtype)
            return mlp.with_(
                gate=None if mlp.gate is None else mlp.gate.pick(self.order),
                up=mlp.up.pick(self.order).scaled(scales),
                down=pick_columns(mlp.down, self.order) / scales,
            )

        if isinstance(layer.mlp, MLPWeights):
            return layer.with_(mlp=change(layer.mlp))
        if self.expert == -2:
            assert layer.mlp.shared is not None
            return layer.with_(mlp=layer.mlp.with_(shared=change(layer.mlp.shared)))
        experts = [change(e) if i == self.expert else e for i, e in enumerate(layer.mlp.experts)]
        return layer.with_(mlp=layer.mlp.with_(experts=tuple(experts)))

    def inverse(self) -> Units:
        back = np.argsort(self.order)
        return Units(back, 1 / self.scales[back], self.expert)


@dataclass(frozen=True, eq=False)
class ExpertOrder:
    """Expert i of the new layer is expert order[i] of the old one; a softmax router moves by a common affine map."""

    order: Array
    weight: Array
    bias: float

    def act(self, block: Block, layer: LayerWeights) -> LayerWeights:
        assert isinstance(layer.mlp, ExpertsWeights)
        mlp, router = layer.mlp, layer.mlp.router.pick(self.order)
        return layer.with_(
            mlp=mlp.with_(
                router=Affine(router.weight + self.weight, router.bias + self.bias),
                correction=None if mlp.correction is None else mlp.correction[self.order],
                experts=tuple(mlp.experts[i] for i in self.order),
            )
        )

    def inverse(self) -> ExpertOrder:
        return ExpertOrder(np.argsort(self.order), -self.weight, -self.bias)
