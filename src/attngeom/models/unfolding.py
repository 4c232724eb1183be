"""Put a folded layer into the gauge of another stored layer: the same gains, biases and mean directions.

Folding is itself a symmetry, so its inverse is replayed part by part: each part is read off a layer A (folded against
stored) and applied to the folded layer B. What B then needs in places that the file lacks is moved by `settle`.
"""

from __future__ import annotations

import numpy as np

from attngeom.models.affine import Affine
from attngeom.models.folding import express, express_constant, input_norms
from attngeom.models.layer import AttentionWeights, ExpertsWeights, LayerWeights, MLPWeights, NormWeights
from attngeom.models.readers import (
    Change,
    has_bias,
    key_bias_is_invisible,
    map_cross_memory,
    map_readers,
    value_bias_is_constant,
)
from attngeom.models.specification import Norm, TransformerBlock
from attngeom.models.symmetry import (
    ConstantShift,
    ExpertOrder,
    HeadMeans,
    LatentTurn,
    MeanShift,
    NormMove,
    OutputSigns,
    Part,
    QKNormTurn,
    StreamShift,
    Which,
    head_means,
)

Memory = tuple[Norm, NormWeights]


def unfold_like(
    block: TransformerBlock,
    folded: LayerWeights,
    stored: LayerWeights,
    pattern: LayerWeights,
    memory: Memory | None = None,
) -> LayerWeights:
    """The folded layer with the gains, means and constants of ``stored``, whose folded form is ``pattern``.

    ``memory`` is the encoder's final norm of the pattern, which its cross-attention reads through.
    """
    if not _is_invertible(block, stored, memory):
        return express(block, folded)
    replay = _Replay(block, _constants_to_values(block, folded), stored, _constants_to_values(block, pattern))
    for name, norm in input_norms(block).items():
        weights = stored.norms[name]
        replay.take(NormMove(name, weights.gain, weights.bias))
        if norm.kind == "layer":
            replay.take_means(name)
    if memory is not None and folded.cross is not None:
        replay.take_memory(memory[1], memory[0].kind == "layer")
    replay.take_gains()
    replay.take_router()
    replay.take_constants("attention")
    if folded.cross is not None:
        replay.take_constants("cross")
    replay.take_stream()
    settled = settle(block, replay.layer)
    return express(block, folded) if settled is None else settled


def _is_invertible(block: TransformerBlock, stored: LayerWeights, memory: Memory | None) -> bool:
    """Whether no gain that readers look through is zero."""
    names = [*input_norms(block), *(name for name in stored.norms if name.endswith("stream"))]
    gains = [stored.norms[name].gain for name in names]
    gains += [latent.gain for latent in (stored.attention.key_latent, stored.attention.query_latent) if latent]
    gains += [memory[1].gain] if memory is not None else []
    return all(bool(np.all(gain != 0)) for gain in gains)


def _constants_to_values(block: TransformerBlock, layer: LayerWeights) -> LayerWeights:
    """Constants of the output that the file has no bias for, as value biases, which norms can take up."""
    assert block.attention is not None
    if block.attention.output_bias:
        return layer
    if block.parallel and isinstance(layer.mlp, MLPWeights) and not has_bias(block, "mlp.input", "down"):
        moved = layer.attention.with_(output_bias=layer.attention.output_bias + layer.mlp.down_bias)
        layer = layer.with_(attention=moved, mlp=layer.mlp.with_(down_bias=np.zeros_like(layer.mlp.down_bias)))
    return layer.with_(attention=express_constant(block.attention, layer.attention))


class _Replay:
    """Two layers that take the same parts: the pattern on its way back to ``stored``, and the layer that follows."""

    def __init__(
        self, block: TransformerBlock, layer: LayerWeights, stored: LayerWeights, pattern: LayerWeights
    ) -> None:
        self.block, self.layer, self.stored, self.pattern = block, layer, stored, pattern

    def take(self, part: Part) -> None:
        self.layer, self.pattern = (part.act(self.block, layer) for layer in (self.layer, self.pattern))

    def take_means(self, name: str) -> None:
        """Mean directions of the readers, those of the stored pattern."""
        gain = self.stored.norms[name].gain
        rows: dict[str, np.ndarray] = {}

        def note(reader: str, affine: Affine) -> Affine:
            rows[reader] = (affine.weight * gain).mean(axis=-1)
            return affine

        map_readers(self.block, self.stored, name, note)
        for reader, values in rows.items():
            free = _takes_means(self.block, name, reader) or not np.any(self.stored.norms[name].bias)
            if values.size and free and not isinstance(self.layer.mlp, ExpertsWeights):
                self.take(MeanShift(name, reader, values))

    def take_memory(self, norm: NormWeights, centred: bool) -> None:
        """Keys and values of cross-attention read the encoder's norm again, with the means of the stored pattern."""
        assert self.stored.cross is not None
        cross = self.stored.cross

        def change(name: str, reader: Affine) -> Affine:
            rows = (getattr(cross, name).weight * norm.gain).mean(axis=-1, keepdims=True) if centred else 0.0
            weight = (reader.weight + rows) / norm.gain
            return Affine(weight, reader.bias - weight @ norm.bias)

        for name in ("layer", "pattern"):
            own: LayerWeights = getattr(self, name)
            assert own.cross is not None
            setattr(self, name, own.with_(cross=map_cross_memory(own.cross, change)))

    def take_gains(self) -> None:
        """Gains of latents, signs of the gains of QK-norms and of norms on outputs."""
        attention = self.stored.attention
        if attention.key_latent is not None:
            query = attention.query_latent
            self.take(
                LatentTurn(
                    None if query is None else np.eye(len(query.gain)),
                    np.eye(len(attention.key_latent.gain)),
                    None if query is None else query.gain,
                    attention.key_latent.gain,
                )
            )
        assert self.block.attention is not None
        qk_norm = self.block.attention.qk_norm
        if qk_norm is not None and qk_norm.is_centred:
            gaps = []
            for side in ("query", "key"):
                want, have = head_means(attention, side), head_means(self.pattern.attention, side)
                gaps.append(Affine(want.weight - have.weight, want.bias - have.bias))
            self.take(HeadMeans(*gaps))
        elif attention.query_gain is not None and attention.key_gain is not None:
            f, plain = attention.turned_key.weight.shape[1], attention.key.weight.shape[1]
            rows = 1 if len(attention.key_gain) == 1 else attention.groups
            signs = [np.where(gain < 0, -1.0, 1.0) for gain in (attention.query_gain, attention.key_gain)]
            ones = np.ones((attention.groups, f + plain))
            self.take(QKNormTurn(ones, np.ones((rows, f + plain)), np.zeros((rows, f), bool), *signs))
        if "attention.output" in self.stored.norms:
            names = ("attention.output", "mlp.output")
            self.take(OutputSigns(*(np.where(self.stored.norms[name].gain < 0, -1.0, 1.0) for name in names)))

    def take_stream(self) -> None:
        """Post-LN blocks: the bias of the inner norm, and what is written along 1."""
        if "attention.stream" not in self.stored.norms or not isinstance(self.stored.mlp, MLPWeights):
            return
        inner = self.stored.norms["attention.stream"]
        attention, mlp = self.stored.attention, self.stored.mlp
        zeros = np.zeros_like(attention.output.mean(axis=1)), np.zeros(mlp.units)
        self.take(StreamShift(*zeros, (0.0, 0.0), inner.bias))
        assert isinstance(self.pattern.mlp, MLPWeights)
        gaps = (
            float((attention.output_bias - self.pattern.attention.output_bias).mean()),
            float((mlp.down_bias - self.pattern.mlp.down_bias).mean()),
        )
        self.take(StreamShift(attention.output.mean(axis=1), mlp.down.mean(axis=0), gaps, np.zeros_like(inner.bias)))
        self.take(MeanShift("attention.stream", "up", (mlp.up.weight * inner.gain).mean(axis=-1)))

    def take_router(self) -> None:
        if isinstance(self.stored.mlp, ExpertsWeights) and isinstance(self.pattern.mlp, ExpertsWeights):
            gap = self.stored.mlp.router.weight - self.pattern.mlp.router.weight
            bias = float((self.stored.mlp.router.bias - self.pattern.mlp.router.bias).mean())
            self.take(ExpertOrder(np.arange(len(gap)), gap.mean(axis=0), bias))
            wanted = self.stored.mlp.correction
            if wanted is not None and isinstance(self.layer.mlp, ExpertsWeights):
                assert self.layer.mlp.correction is not None and self.pattern.mlp.correction is not None
                moved = self.layer.mlp.correction + (wanted - self.pattern.mlp.correction)
                self.layer = self.layer.with_(mlp=self.layer.mlp.with_(correction=moved))

    def take_constants(self, which: Which) -> None:
        """Key and value constants, and the split of the output constants, as in the stored pattern."""
        wanted: AttentionWeights = getattr(self.stored, which)
        spec = self.block.attention if which == "attention" else self.block.cross
        assert spec is not None
        now: AttentionWeights = getattr(self.pattern, which)
        key, value = np.zeros_like(now.key.bias), np.zeros_like(now.value.bias)
        output = np.zeros_like(now.output_bias)
        if key_bias_is_invisible(spec) and spec.key_bias:
            key = wanted.key.bias - now.key.bias
        if value_bias_is_constant(spec) and spec.value_bias and spec.output_bias:
            value = wanted.value.bias - now.value.bias
        self.take(ConstantShift(key, value, output, which))
        # Value constants that have no place of their own go to the output bias in the end.
        now = _settle_attention(self.block, getattr(self.pattern, which), which)
        gap = wanted.output_bias - now.output_bias
        normed = any(name.endswith((".output", ".stream")) for name in self.stored.norms)
        if not spec.output_bias or not has_bias(self.block, "mlp.input", "down") or normed:
            return
        if not isinstance(self.layer.mlp, MLPWeights):
            return
        last = self.block.mlp_norms.input
        if self.block.parallel:
            output = gap
        elif last is not None and last.kind == "layer":
            output = np.full_like(gap, gap.mean())
        self.take(ConstantShift(np.zeros_like(key), np.zeros_like(value), output, which))


def _takes_means(block: TransformerBlock, name: str, reader: str) -> bool:
    """Whether the constant that comes with a mean direction of the reader has a place, or is not seen."""
    spec = block.cross if name.startswith("cross") else block.attention
    if has_bias(block, name, reader) or spec is None:
        return has_bias(block, name, reader)
    if reader == "key":
        return key_bias_is_invisible(spec)
    taken = spec.output_bias or (block.parallel and has_bias(block, "mlp.input", "down"))
    return reader == "value" and value_bias_is_constant(spec) and taken


def settle(block: TransformerBlock, layer: LayerWeights) -> LayerWeights | None:
    """The layer with every bias in a place that the file has, its norms kept; None if some bias has none."""
    layer = layer.with_(attention=_settle_attention(block, layer.attention, "attention"))
    if layer.cross is not None:
        layer = layer.with_(cross=_settle_attention(block, layer.cross, "cross"))
    spec = block.attention
    if spec is not None and not spec.output_bias and block.parallel and has_bias(block, "mlp.input", "down"):
        assert isinstance(layer.mlp, MLPWeights)
        attention = layer.attention
        mlp = layer.mlp.with_(down_bias=layer.mlp.down_bias + attention.output_bias)
        layer = layer.with_(mlp=mlp, attention=attention.with_(output_bias=np.zeros_like(attention.output_bias)))
    for name, norm in input_norms(block).items():
        weights = layer.norms[name]
        total = float((weights.bias / weights.gain).sum())
        if norm.kind == "layer" and total:
            layer = map_readers(block, layer, name, _settler(block, name, weights.gain, total))
    return layer if _is_settled(block, layer) else None


def _settler(block: TransformerBlock, name: str, gain: np.ndarray, total: float) -> Change:
    def change(reader: str, affine: Affine) -> Affine:
        if has_bias(block, name, reader) or not np.any(affine.bias):
            return affine
        rows = affine.bias / total
        return Affine.linear(affine.weight + rows[..., None] / gain)

    return change


def _settle_attention(block: TransformerBlock, weights: AttentionWeights, which: str) -> AttentionWeights:
    spec = block.attention if which == "attention" else block.cross
    assert spec is not None
    if key_bias_is_invisible(spec) and not spec.key_bias:
        weights = weights.with_(key=Affine.linear(weights.key.weight))
    taken = spec.output_bias or (block.parallel and has_bias(block, "mlp.input", "down"))
    if value_bias_is_constant(spec) and not spec.value_bias and taken:
        spread = np.repeat(weights.value.bias, weights.heads // weights.groups, axis=0)
        constant = weights.output_bias + np.einsum("hdv,hv->d", weights.output, spread)
        weights = weights.with_(value=Affine.linear(weights.value.weight), output_bias=constant)
    return weights


def _is_settled(block: TransformerBlock, layer: LayerWeights) -> bool:
    good = True

    for name in input_norms(block):

        def look(reader: str, affine: Affine, name: str = name) -> Affine:
            nonlocal good
            good &= has_bias(block, name, reader) or not np.any(affine.bias)
            return affine

        map_readers(block, layer, name, look)
    for spec, weights in ((block.attention, layer.attention), (block.cross, layer.cross)):
        if spec is not None and weights is not None:
            good &= spec.output_bias or not np.any(weights.output_bias)
    if isinstance(layer.mlp, MLPWeights):
        good &= has_bias(block, "mlp.input", "down") or not np.any(layer.mlp.down_bias)
    return good
