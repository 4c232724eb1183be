"""Parts of normalised vectors inside attention: queries and keys under a QK-norm, latents."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from attngeom.exact.arrays import Array
from attngeom.models.affine import Affine
from attngeom.models.layer import AttentionWeights, LayerWeights
from attngeom.models.specification import TransformerBlock
from attngeom.models.symmetry.part import Part


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

    def act(self, block: TransformerBlock, layer: LayerWeights) -> LayerWeights:
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

    def act(self, block: TransformerBlock, layer: LayerWeights) -> LayerWeights:
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


def centred_turn(scales: Array, turns: Array, query_signs: Array, key_signs: Array) -> QKNormTurn:
    """Under a centred QK-norm: rows of marked pairs change places, a sign goes with all rows and gains of a head.

    ``scales`` (G, f + a₀) may be negative; ``turns`` (G, f); signs (H) and (G). Signs of single rows would change the
    mean that the norm takes away, so that the sign of a quarter turn stays with its gain.
    """
    plain = scales.shape[1] - turns.shape[1]
    flips = np.where(np.concatenate([turns, np.zeros((len(turns), turns.shape[1] + plain), bool)], axis=1), -1.0, 1.0)
    spread = np.repeat(flips, len(query_signs) // len(flips), axis=0)
    return QKNormTurn(
        np.ones_like(scales), scales, turns, spread * query_signs[:, None], flips * key_signs[:, None]
    )  # fmt: skip


def head_means(weights: AttentionWeights, side: str) -> Affine:
    """The mean of the rows of every head of ``query`` or ``key``, batched (heads, ·) and (heads)."""
    turned: Affine = getattr(weights, f"turned_{side}")
    plain: Affine = getattr(weights, side)
    size = 2 * turned.weight.shape[1] + plain.weight.shape[1]

    def mean(pairs: Array, rest: Array) -> Array:
        return np.asarray(((pairs.real + pairs.imag).sum(axis=1) + rest.sum(axis=1)) / size)

    return Affine(mean(turned.weight, plain.weight), mean(turned.bias, plain.bias))


@dataclass(frozen=True, eq=False)
class HeadMeans:
    """Under a centred QK-norm: one map, ``query`` (H, ·) or ``key`` (G, ·), is added to all rows of a head."""

    query: Affine
    key: Affine

    def act(self, block: TransformerBlock, layer: LayerWeights) -> LayerWeights:
        return layer.with_(attention=self.shift(layer.attention))

    def shift(self, weights: AttentionWeights) -> AttentionWeights:
        """The action on one attention."""
        changes: dict[str, object] = {}
        for side, move in (("query", self.query), ("key", self.key)):
            for name, factor in ((f"turned_{side}", 1 + 1j), (side, 1.0)):
                own: Affine = getattr(weights, name)
                weight = own.weight + factor * move.weight[:, None]
                changes[name] = Affine(weight, own.bias + factor * move.bias[:, None])
        return weights.with_(**changes)

    def inverse(self) -> HeadMeans:
        return HeadMeans(*(Affine(-move.weight, -move.bias) for move in (self.query, self.key)))


@dataclass(frozen=True, eq=False)
class LatentTurn:
    """Latents of MLA: down → R down with readers X → X D Rᵀ D⁻¹ (L5), then gains D → D s with readers X → X / s."""

    query: Array | None
    key: Array
    query_scale: Array | None
    key_scale: Array

    def act(self, block: TransformerBlock, layer: LayerWeights) -> LayerWeights:
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

    def act(self, block: TransformerBlock, layer: LayerWeights) -> LayerWeights:
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
