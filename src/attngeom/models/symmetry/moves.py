"""Moves that are no element of a linear group on rows: of norms, constants, QK-norms and latents (Lemmas 1, 4, 5)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import count

import numpy as np

from attngeom.exact.arrays import Array
from attngeom.models.affine import Affine
from attngeom.models.layer import AttentionWeights, LayerWeights, MLPWeights
from attngeom.models.readers import map_readers, post_norms, with_writer, writer_of
from attngeom.models.specification import TransformerBlock
from attngeom.models.symmetry.factor import Displacement, Part


@dataclass(frozen=True, eq=False)
class NormMove(Part):
    """u' = s ∘ u + shift, readers W' = W / s with bias b − W' shift; ``shift`` needs readers with biases (Lemma 4)."""

    norm: str
    scale: Array
    shift: Array

    def act(self, block: TransformerBlock, layer: LayerWeights) -> LayerWeights:
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
class MeanShift(Displacement):
    """After a LayerNorm rows of a reader may move along 1/gain: W + w (1/γ)ᵀ with bias b − w Σ β/γ (Lemma 4).

    ``reader`` is its number among those of the norm, in the order of `readers_of`.
    """

    norm: str
    reader: int
    rows: Array

    def act(self, block: TransformerBlock, layer: LayerWeights) -> LayerWeights:
        weights, numbers = layer.norms[self.norm], count()

        def change(name: str, reader: Affine) -> Affine:
            if next(numbers) != self.reader:
                return reader
            total = float((weights.bias / weights.gain).sum())
            return Affine(reader.weight + self.rows[..., None] / weights.gain, reader.bias - self.rows * total)

        return map_readers(block, layer, self.norm, change)


@dataclass(frozen=True, eq=False)
class ConstantShift(Displacement):
    """Key constants that softmax forgets, value constants that the output bias takes up, outputs that only add up.

    ``key`` (G, a₀) is added to plain key biases, ``value`` (G, v) to value biases with −Σ O_h value in the output bias,
    ``output`` (d) moves from the bias of the MLP to that of attention (parallel blocks; before a LayerNorm: c·1).
    """

    key: Array
    value: Array
    output: Array
    place: str = "attention"

    def act(self, block: TransformerBlock, layer: LayerWeights) -> LayerWeights:
        weights = layer.attentions[self.place]
        spread = np.repeat(self.value, weights.heads // weights.groups, axis=0)
        lost = np.einsum("hdv,hv->d", weights.output, spread)
        moved = weights.with_(
            key=Affine(weights.key.weight, weights.key.bias + self.key),
            value=Affine(weights.value.weight, weights.value.bias + self.value),
            output_bias=weights.output_bias - lost + self.output,
        )
        layer = layer.with_(**{self.place: moved})
        if not np.any(self.output):
            return layer
        assert isinstance(layer.mlp, MLPWeights)
        return layer.with_(mlp=layer.mlp.with_(down_bias=layer.mlp.down_bias - self.output))


@dataclass(frozen=True, eq=False)
class TableShift(Displacement):
    """``rows`` (H, ·) are added to a table of relative positions: one number for a head, any in rows never used."""

    rows: Array
    place: str = "attention"

    def act(self, block: TransformerBlock, layer: LayerWeights) -> LayerWeights:
        weights = layer.attentions[self.place]
        assert weights.relative is not None
        return layer.with_(**{self.place: weights.with_(relative=weights.relative + self.rows)})


@dataclass(frozen=True, eq=False)
class StreamShift(Displacement):
    """Post-LN blocks: what a sublayer writes along 1 (each column, and its bias), and the bias of the norm before it.

    ``inner`` is added to the bias of that norm, and taken from the maps that read it and from what is added to it.
    """

    place: str
    columns: Array
    constant: Array
    inner: Array

    def act(self, block: TransformerBlock, layer: LayerWeights) -> LayerWeights:
        before, writer = post_norms(block)[self.place], writer_of(layer, self.place)
        bias = writer.bias + self.constant - self.inner
        layer = with_writer(layer, self.place, Affine(writer.weight + self.columns, bias))
        if not before:
            return layer

        def change(name: str, reader: Affine) -> Affine:
            return Affine(reader.weight, reader.bias - reader.weight @ self.inner)

        norm = layer.norms[before]
        layer = map_readers(block, layer, before, change)
        return layer.with_(norms={**layer.norms, before: norm.changed(norm.gain, norm.bias + self.inner)})


@dataclass(frozen=True, eq=False)
class OutputSigns(Part):
    """Norms on outputs: the sign of a gain moves into the row that writes it."""

    attention: Array
    mlp: Array

    def act(self, block: TransformerBlock, layer: LayerWeights) -> LayerWeights:
        assert isinstance(layer.mlp, MLPWeights)
        norms = dict(layer.norms)
        for name, signs in (("attention.output", self.attention), ("mlp.output", self.mlp)):
            if name in norms:
                norms[name] = norms[name].changed(norms[name].gain * signs, norms[name].bias)
        attention = layer.attentions["attention"].with_(
            output=layer.attentions["attention"].output * self.attention[None, :, None],
            output_bias=layer.attentions["attention"].output_bias * self.attention,
        )
        mlp = layer.mlp.with_(down=layer.mlp.down * self.mlp[:, None], down_bias=layer.mlp.down_bias * self.mlp)
        return layer.with_(attention=attention, mlp=mlp, norms=norms)

    def inverse(self) -> OutputSigns:
        return self


@dataclass(frozen=True, eq=False)
class Chain(Part):
    """Moves one after the other that undo ``undone``."""

    parts: tuple[Part, ...]
    undone: Part

    def act(self, block: TransformerBlock, layer: LayerWeights) -> LayerWeights:
        for part in self.parts:
            layer = part.act(block, layer)
        return layer

    def inverse(self) -> Part:
        return self.undone


@dataclass(frozen=True, eq=False)
class QKNormTurn(Part):
    """Under a QK-norm: signs of pairs and of plain rows per group, scales between the gains, quarter turns, flips.

    ``signs`` (G, f + a₀) multiply rows of K and Q; ``scales`` (1 or G, f + a₀) multiply query gains and divide key
    gains, one number per pair; ``turns`` (1 or G, f) mark pairs (x, y) → (−y, x) whose gains are swapped; ``flips`` for
    query and key gains change the sign of a gain with its row. Biases of the norm are scaled and turned as its pairs.
    """

    signs: Array
    scales: Array
    turns: Array
    query_flips: Array
    key_flips: Array

    def act(self, block: TransformerBlock, layer: LayerWeights) -> LayerWeights:
        return layer.with_(attention=self.turn(layer.attentions["attention"]))

    def turn(self, weights: AttentionWeights) -> AttentionWeights:
        """The action on one attention."""
        n = weights.heads // weights.groups
        assert weights.query_gain is not None and weights.key_gain is not None
        f = weights.rotated_key.weight.shape[1]

        def spread(values: Array, like: Array, share: int) -> Array:
            return np.repeat(values, share, axis=0) if len(values) > 1 and len(like) > len(values) else values

        changes: dict[str, object] = {}
        for side, share, gain in (("query", n, weights.query_gain), ("key", 1, weights.key_gain)):
            rotated: Affine = getattr(weights, f"rotated_{side}")
            plain: Affine = getattr(weights, side)
            signs = np.repeat(self.signs, share, axis=0)
            turns = spread(self.turns, gain, share)
            scales = spread(self.scales, gain, share)
            factors = np.where(turns, 1j, 1.0 + 0j)
            rows = rotated.scaled(np.broadcast_to(factors, rotated.bias.shape) * signs[:, :f])
            swapped = np.concatenate([gain[:, f : 2 * f], gain[:, :f]], axis=1)
            pairs = np.where(np.concatenate([turns, turns], axis=1), swapped, gain[:, : 2 * f])
            both = np.concatenate([scales[:, :f], scales[:, :f], scales[:, f:]], axis=1)
            gains = np.concatenate([pairs, gain[:, 2 * f :]], axis=1)
            flips = self.query_flips if side == "query" else self.key_flips
            gains = gains * flips * (both if side == "query" else 1 / both)
            weight = rows.weight.real * flips[:, :f, None] + 1j * rows.weight.imag * flips[:, f : 2 * f, None]
            bias = rows.bias.real * flips[:, :f] + 1j * rows.bias.imag * flips[:, f : 2 * f]
            changes[f"rotated_{side}"] = Affine(weight, bias)
            changes[side] = plain.scaled(signs[:, f:] * flips[:, 2 * f :])
            changes[f"{side}_gain"] = gains
            shift = getattr(weights, f"{side}_shift")
            if shift is not None:
                quarter = np.concatenate([-shift[:, f : 2 * f], shift[:, :f]], axis=1)
                pairs = np.where(np.concatenate([turns, turns], axis=1), quarter, shift[:, : 2 * f])
                moved = np.concatenate([pairs, shift[:, 2 * f :]], axis=1)
                changes[f"{side}_shift"] = moved * (both if side == "query" else 1 / both)
        return weights.with_(**changes)

    def inverse(self) -> Part:
        """Flips, scales and signs undone, then three more quarter turns."""
        still, ones = np.zeros_like(self.turns), np.ones_like(self.signs)
        plain = np.ones_like(self.query_flips), np.ones_like(self.key_flips)
        first = QKNormTurn(self.signs, 1 / self.scales, still, self.query_flips, self.key_flips)
        if not np.any(self.turns):
            return first
        return Chain((first, *[QKNormTurn(ones, np.ones_like(self.scales), self.turns, *plain)] * 3), self)


def centred_turn(scales: Array, turns: Array, query_signs: Array, key_signs: Array) -> QKNormTurn:
    """Under a centred QK-norm: rows of marked pairs change places, a sign goes with all rows and gains of a head.

    ``scales`` (G, f + a₀) may be negative; ``turns`` (G, f); signs (H) and (G), or one of each where heads share gains.
    Signs of single rows would change the mean that the norm takes away, so that the sign of a quarter turn stays with
    its gain.
    """
    plain = scales.shape[1] - turns.shape[1]
    flips = np.where(np.concatenate([turns, np.zeros((len(turns), turns.shape[1] + plain), bool)], axis=1), -1.0, 1.0)
    spread = np.repeat(flips, len(query_signs) // len(flips), axis=0)
    return QKNormTurn(
        np.ones_like(scales), scales, turns, spread * query_signs[:, None], flips * key_signs[:, None]
    )  # fmt: skip


def head_means(weights: AttentionWeights, side: str) -> Affine:
    """The mean of the rows of every head of ``query`` or ``key``, batched (heads, ·) and (heads)."""
    rotated: Affine = getattr(weights, f"rotated_{side}")
    plain: Affine = getattr(weights, side)
    size = 2 * rotated.weight.shape[1] + plain.weight.shape[1]

    def mean(pairs: Array, rest: Array) -> Array:
        return np.asarray(((pairs.real + pairs.imag).sum(axis=1) + rest.sum(axis=1)) / size)

    return Affine(mean(rotated.weight, plain.weight), mean(rotated.bias, plain.bias))


@dataclass(frozen=True, eq=False)
class KeyShift(Displacement):
    """``rows`` (1 or G, a₀) are added to the biases of a norm of keys, on coordinates that no position rotates."""

    rows: Array

    def act(self, block: TransformerBlock, layer: LayerWeights) -> LayerWeights:
        weights = layer.attentions["attention"]
        assert weights.key_shift is not None
        pairs = weights.key_shift.shape[1] - self.rows.shape[1]
        still = np.zeros((len(self.rows), pairs))
        shift = weights.key_shift + np.concatenate([still, self.rows], axis=1)
        return layer.with_(attention=weights.with_(key_shift=shift))


@dataclass(frozen=True, eq=False)
class HeadMeans(Part):
    """Under a centred QK-norm: one map, ``query`` (H, ·) or ``key`` (G, ·), is added to all rows of a head."""

    query: Affine
    key: Affine

    def act(self, block: TransformerBlock, layer: LayerWeights) -> LayerWeights:
        weights, changes = layer.attentions["attention"], dict[str, object]()
        for side, move in (("query", self.query), ("key", self.key)):
            for name, factor in ((f"rotated_{side}", 1 + 1j), (side, 1.0)):
                own: Affine = getattr(weights, name)
                weight = own.weight + factor * move.weight[:, None]
                changes[name] = Affine(weight, own.bias + factor * move.bias[:, None])
        return layer.with_(attention=weights.with_(**changes))

    def inverse(self) -> HeadMeans:
        return HeadMeans(*(Affine(-move.weight, -move.bias) for move in (self.query, self.key)))


@dataclass(frozen=True, eq=False)
class LatentTurn(Part):
    """Latents of MLA: down → R down with readers X → X D Rᵀ D⁻¹, then gains D → D s with readers X → X / s."""

    query: Array | None
    key: Array
    query_scale: Array | None
    key_scale: Array

    def act(self, block: TransformerBlock, layer: LayerWeights) -> LayerWeights:
        weights = layer.attentions["attention"]
        assert weights.key_latent is not None
        changes: dict[str, object] = {}
        sides = [("key_latent", ("key", "value"), self.key, self.key_scale)]
        if weights.query_latent is not None and self.query is not None and self.query_scale is not None:
            sides.append(("query_latent", ("query", "rotated_query"), self.query, self.query_scale))
        for name, readers, rotation, scale in sides:
            latent = getattr(weights, name)
            through = (latent.gain[:, None] * rotation.T) / latent.gain / scale
            changes[name] = replace(latent, down=latent.down.then(rotation), gain=latent.gain * scale)
            for reader in readers:
                affine: Affine = getattr(weights, reader)
                changes[reader] = Affine(affine.weight @ through, affine.bias)
        return layer.with_(attention=weights.with_(**changes))

    def inverse(self) -> Part:
        """Gains first, then the rotation."""
        query, scale = self.query, self.query_scale
        gains = LatentTurn(
            None if query is None else np.eye(len(query)), np.eye(len(self.key)),
            None if scale is None else 1 / scale, 1 / self.key_scale,
        )  # fmt: skip
        back = LatentTurn(
            None if query is None else query.T, self.key.T,
            None if scale is None else np.ones_like(scale), np.ones_like(self.key_scale),
        )  # fmt: skip
        return Chain((gains, back), self)
