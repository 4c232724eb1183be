"""Fold away what no reader can see: gains and biases of norms, mean directions, key and value constants.

`fold` gives a representative whose norms are plain and whose constants lie in one place (lemma L4);
biases may then be nonzero although the file has no place for them. `express` moves them back into places the file has,
and fold(express(fold(L))) = fold(L).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from attngeom.errors import InputError
from attngeom.exact import lapack
from attngeom.exact.arrays import Array
from attngeom.models.affine import Affine
from attngeom.models.layer import AttentionWeights, ExpertsWeights, LayerWeights, MLPWeights, NormWeights
from attngeom.models.readers import (
    Change,
    has_bias,
    key_bias_is_invisible,
    map_cross_memory,
    map_mlp,
    map_readers,
    value_bias_is_constant,
)
from attngeom.models.specification import Experts, GroupedAttention, Norm, TransformerBlock
from attngeom.models.symmetry.normalised import HeadMeans, head_means

INPUTS = ("attention.input", "cross.input", "mlp.input")


def fold(block: TransformerBlock, layer: LayerWeights, memory: tuple[Norm, NormWeights] | None = None) -> LayerWeights:
    """The layer with plain norms and gathered constants; ``memory`` is the encoder's final norm (cross-attention)."""
    for name, norm in input_norms(block).items():
        layer = _fold_norm(block, layer, name, norm)
    if layer.cross is not None and memory is not None:
        layer = layer.with_(cross=map_cross_memory(layer.cross, reader_change(memory[0], memory[1])))
    layer = layer.with_(attention=_fold_attention(block.attention, layer.attention))
    if layer.cross is not None:
        layer = layer.with_(cross=_fold_attention(block.cross, layer.cross))
    if isinstance(block.mlp, Experts) and block.mlp.router == "softmax":
        assert isinstance(layer.mlp, ExpertsWeights)
        router = layer.mlp.router
        centred = Affine(router.weight - router.weight.mean(axis=0), router.bias - router.bias.mean())
        layer = layer.with_(mlp=layer.mlp.with_(router=centred))
    if isinstance(layer.mlp, ExpertsWeights) and layer.mlp.correction is not None:
        assert isinstance(block.mlp, Experts)
        layer = layer.with_(mlp=layer.mlp.with_(correction=_seen_correction(block.mlp, layer.mlp.correction)))
    layer = _fold_outputs(block, layer)
    return _fold_constants(block, _fold_stream(block, layer))


def _seen_correction(spec: Experts, correction: Array) -> Array:
    """The correction of the choice of experts without what the choice does not see."""
    if spec.correction_seen == "nothing":
        return np.zeros_like(correction)
    if spec.correction_seen == "groups":
        means = correction.reshape(spec.expert_groups, -1).mean(axis=1)
        correction = np.repeat(means, spec.count // spec.expert_groups)
    return np.asarray(correction - correction.mean())


def input_norms(block: TransformerBlock) -> dict[str, Norm]:
    """The norms at the inputs of the sublayers that exist."""
    norms = zip(INPUTS, (block.attention_norms.input, block.cross_norms.input, block.mlp_norms.input))
    return {name: norm for name, norm in norms if norm is not None}


def reader_change(norm: Norm, weights: NormWeights) -> Change:
    """A reader of u = gain ∘ n + bias as a reader of n, centred after a LayerNorm."""

    def change(name: str, reader: Affine) -> Affine:
        dtype = reader.weight.real.dtype
        return reader.after_norm(weights.gain.astype(dtype), weights.bias.astype(dtype), centred=norm.kind == "layer")

    return change


def _fold_norm(block: TransformerBlock, layer: LayerWeights, name: str, norm: Norm) -> LayerWeights:
    weights = layer.norms[name]
    layer = map_readers(block, layer, name, reader_change(norm, weights))
    ones = weights.changed(np.ones_like(weights.gain), np.zeros_like(weights.bias))
    return layer.with_(norms={**layer.norms, name: ones})


def _fold_attention(spec: GroupedAttention | None, weights: AttentionWeights) -> AttentionWeights:
    assert spec is not None
    if spec.qk_norm is not None:
        weights = _without_head_means(weights) if spec.qk_norm.is_centred else _positive_gains(weights)
    if weights.query_latent is not None:
        gain = weights.query_latent.gain
        weights = weights.with_(
            query_latent=replace(weights.query_latent, gain=np.ones_like(gain)),
            query=Affine(weights.query.weight * gain, weights.query.bias),
            turned_query=Affine(weights.turned_query.weight * gain, weights.turned_query.bias),
        )
    if weights.key_latent is not None:
        gain = weights.key_latent.gain
        weights = weights.with_(
            key_latent=replace(weights.key_latent, gain=np.ones_like(gain)),
            key=Affine(weights.key.weight * gain, weights.key.bias),
            value=Affine(weights.value.weight * gain, weights.value.bias),
        )
    if key_bias_is_invisible(spec):
        weights = weights.with_(key=Affine.linear(weights.key.weight))
    if value_bias_is_constant(spec):
        weights = weights.with_(
            output_bias=weights.output_bias + value_constant(weights),
            value=Affine.linear(weights.value.weight),
        )
    return weights


def value_constant(weights: AttentionWeights) -> Array:
    """Σ_h O_h b_v of the biases of the values."""
    biases = np.repeat(weights.value.bias, weights.heads // weights.groups, axis=0)
    return np.asarray((weights.output @ biases[..., None]).sum(axis=0)[:, 0])


def _without_head_means(weights: AttentionWeights) -> AttentionWeights:
    """Rows of every head of q and k less their mean, which a LayerNorm of the head takes away."""
    means = [head_means(weights, side) for side in ("query", "key")]
    return HeadMeans(*(Affine(-mean.weight, -mean.bias) for mean in means)).shift(weights)


def _positive_gains(weights: AttentionWeights) -> AttentionWeights:
    """Signs of the gains of a QK-norm moved into the rows."""
    changes: dict[str, object] = {}
    for side in ("query", "key"):
        gain: Array = getattr(weights, f"{side}_gain")
        turned: Affine = getattr(weights, f"turned_{side}")
        plain: Affine = getattr(weights, side)
        signs, f = np.where(gain < 0, -1.0, 1.0), turned.weight.shape[1]
        first, second, rest = signs[:, :f], signs[:, f : 2 * f], signs[:, 2 * f :]
        weight = turned.weight.real * first[..., None] + 1j * turned.weight.imag * second[..., None]
        changes[f"turned_{side}"] = Affine(weight, turned.bias.real * first + 1j * turned.bias.imag * second)
        changes[side] = plain.scaled(rest)
        changes[f"{side}_gain"] = np.abs(gain)
    return weights.with_(**changes)


def _fold_outputs(block: TransformerBlock, layer: LayerWeights) -> LayerWeights:
    """Signs of the gains of norms on the outputs of sublayers moved into the rows that write."""
    norms = dict(layer.norms)
    for name in ("attention.output", "mlp.output"):
        if name not in norms:
            continue
        signs = np.where(norms[name].gain < 0, -1.0, 1.0)
        norms[name] = norms[name].changed(np.abs(norms[name].gain), norms[name].bias)
        if name == "attention.output":
            layer = layer.with_(attention=_signed_output(layer.attention, signs))
        else:
            assert isinstance(layer.mlp, MLPWeights)
            mlp = layer.mlp
            layer = layer.with_(mlp=mlp.with_(down=mlp.down * signs[:, None], down_bias=mlp.down_bias * signs))
    return layer.with_(norms=norms)


def _signed_output(weights: AttentionWeights, signs: Array) -> AttentionWeights:
    return weights.with_(output=weights.output * signs[None, :, None], output_bias=weights.output_bias * signs)


def _fold_stream(block: TransformerBlock, layer: LayerWeights) -> LayerWeights:
    """Post-LN blocks: writers centred, the bias of the inner norm moved into the MLP, readers along 1/gain removed."""
    inner, outer = block.attention_norms.stream, block.mlp_norms.stream
    if inner is None or outer is None:
        return layer
    assert isinstance(layer.mlp, MLPWeights) and layer.mlp.gate is None and block.mlp_norms.input is None
    norm, mlp, attention = layer.norms["attention.stream"], layer.mlp, layer.attention
    gain = norm.gain
    up = mlp.up.after_norm(np.ones_like(gain), norm.bias)
    down_bias = mlp.down_bias + norm.bias
    if inner.kind == "layer" and np.all(gain != 0):
        along = (up.weight * gain).mean(axis=-1)
        up = Affine(up.weight - along[:, None] / gain, up.bias)
    if inner.kind == "layer":
        output = attention.output - attention.output.mean(axis=1, keepdims=True)
        attention = attention.with_(output=output, output_bias=attention.output_bias - attention.output_bias.mean())
    down = mlp.down
    if outer.kind == "layer":
        down, down_bias = down - down.mean(axis=0), down_bias - down_bias.mean()
    norms = {**layer.norms, "attention.stream": norm.changed(gain, np.zeros_like(gain))}
    return layer.with_(attention=attention, mlp=mlp.with_(up=up, down=down, down_bias=down_bias), norms=norms)


def _fold_constants(block: TransformerBlock, layer: LayerWeights) -> LayerWeights:
    """Output constants that only their sum shows: all of them in parallel blocks, means before a LayerNorm."""
    if not isinstance(layer.mlp, MLPWeights) or any(name.endswith(".output") for name in layer.norms):
        return layer
    mlp, attention, cross = layer.mlp, layer.attention, layer.cross
    if block.parallel:
        moved = mlp.with_(down_bias=mlp.down_bias + attention.output_bias)
        return layer.with_(mlp=moved, attention=attention.with_(output_bias=np.zeros_like(attention.output_bias)))
    last = block.mlp_norms.input
    if last is None or last.kind != "layer" or not _has_slots(block):
        return layer
    mean = attention.output_bias.mean()
    attention = attention.with_(output_bias=attention.output_bias - mean)
    if cross is not None:
        mean = mean + cross.output_bias.mean()
        cross = cross.with_(output_bias=cross.output_bias - cross.output_bias.mean())
    mlp = mlp.with_(down_bias=mlp.down_bias + mean)
    return layer.with_(mlp=mlp, attention=attention, cross=cross)


def _has_slots(block: TransformerBlock) -> bool:
    """Whether attention, cross-attention and MLP all have a bias of their output."""
    assert block.attention is not None
    crossed = block.cross is None or block.cross.output_bias
    return block.attention.output_bias and crossed and has_bias(block, "mlp.input", "down")


def express(block: TransformerBlock, layer: LayerWeights) -> LayerWeights:
    """The folded layer with every bias in a place that the file has; raises InputError if there is none."""
    if block.parallel and isinstance(layer.mlp, MLPWeights) and not has_bias(block, "mlp.input", "down"):
        moved = layer.attention.with_(output_bias=layer.attention.output_bias + layer.mlp.down_bias)
        mlp = layer.mlp.with_(down_bias=np.zeros_like(layer.mlp.down_bias))
        layer = layer.with_(attention=moved, mlp=mlp)
    layer = layer.with_(attention=express_constant(block.attention, layer.attention))
    if layer.cross is not None:
        layer = layer.with_(cross=express_constant(block.cross, layer.cross))
    for name, norm in input_norms(block).items():
        layer = _express_norm(block, layer, name, norm)
    return layer


def express_constant(spec: GroupedAttention | None, weights: AttentionWeights) -> AttentionWeights:
    """A constant of the output without a place becomes value biases of least norm."""
    assert spec is not None
    constant = weights.output_bias
    if spec.output_bias or not np.any(constant):
        return weights
    groups, share = weights.groups, weights.heads // weights.groups
    summed = weights.output.reshape(groups, share, *weights.output.shape[1:]).sum(axis=1)
    system = summed.transpose(1, 0, 2).reshape(len(constant), -1)
    biases = lapack.lstsq(system, constant)
    if np.abs(system @ biases - constant).max() > 1e-9 * np.abs(constant).max():
        raise InputError("a constant of the attention output given that value biases cannot express; no place for it")
    value = Affine(weights.value.weight, weights.value.bias + biases.reshape(groups, -1))
    return weights.with_(value=value, output_bias=np.zeros_like(constant))


def _express_norm(block: TransformerBlock, layer: LayerWeights, name: str, norm: Norm) -> LayerWeights:
    """Biases of readers without a place are read from a norm bias of ones: W + b 1ᵀ/d on rows with sum zero."""
    homeless = False

    def look(reader: str, affine: Affine) -> Affine:
        nonlocal homeless
        homeless |= bool(np.any(affine.bias)) and not has_bias(block, name, reader)
        return affine

    map_readers(block, layer, name, look)
    if not homeless:
        return layer
    if not norm.bias or norm.kind != "layer":
        raise InputError(f"a constant read from the norm {name} given; the file has no bias to hold it")

    def move(reader: str, affine: Affine) -> Affine:
        if has_bias(block, name, reader):
            return affine
        return Affine.linear(affine.weight + affine.bias[..., None] / affine.weight.shape[-1])

    layer = map_readers(block, layer, name, move)
    weights = layer.norms[name]
    plain = weights.changed(weights.gain, np.ones_like(weights.bias))
    return layer.with_(norms={**layer.norms, name: plain})


__all__ = ["express", "fold", "input_norms", "map_mlp", "reader_change", "value_constant"]
