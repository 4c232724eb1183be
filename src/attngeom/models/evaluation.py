"""The function of a transformer in float64: norms, attention of every kind, MLPs, experts, embeddings, logits.

Written for checking and for small models: all tokens at once, no cache, no batches. Tokens are rows (t, d), as in the
checkpoints' own code.

An oracle of its own beside `programs`: those describe what a block makes of one token over any field, with weights that
act, and would be slow and larger for whole inputs. The two share no code, and tests hold them against each other and
both against outputs of transformers. No search, proof or count rests on this pass: `witness` alone evaluates it, where
two models or layers are asked whether they compute the same.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import scipy  # its parts are loaded when they are first named

from attngeom.errors import InputError
from attngeom.exact.arrays import Array
from attngeom.limits.memory import SCORES_HELD
from attngeom.models.affine import multiply
from attngeom.models.layer import (
    AttentionWeights,
    ExpertsWeights,
    LatentWeights,
    LayerWeights,
    MLPWeights,
    NormWeights,
)
from attngeom.models.layout import norm_specs
from attngeom.models.model import Model
from attngeom.models.recurrences import activate, apply_recurrence, normalise
from attngeom.models.specification import MLP, Experts, GroupedAttention, Norm, Stack, TransformerBlock


def apply_norm(x: Array, norm: Norm | None, weights: NormWeights | None) -> Array:
    if norm is None or weights is None:
        return x
    return normalise(x, norm) * weights.gain + weights.bias


def apply_mlp(x: Array, spec: MLP, weights: MLPWeights) -> Array:
    up = weights.up(x.T)
    if spec.activation == "swiglu_oai":
        assert weights.gate is not None and spec.limit is not None
        gate = np.minimum(weights.gate(x.T), spec.limit)
        hidden = (np.clip(up, -spec.limit, spec.limit) + 1) * gate * scipy.special.expit(1.702 * gate)
    elif weights.gate is not None:
        hidden = activate(weights.gate(x.T), spec.activation) * up
    else:
        hidden = activate(up, spec.activation)
    return np.asarray(multiply(weights.down, hidden).T + weights.down_bias)


def route(scores: Array, spec: Experts, correction: Array | None) -> Array:
    """Weight of every expert for one token, zero for those that are not chosen."""
    if spec.router == "sparsemixer":
        return _drawn(scores, spec)
    chance = scipy.special.expit(scores) if spec.router == "sigmoid" else np.exp(scores - scores.max())
    if spec.router == "softmax":
        chance = chance / chance.sum()
    choice = chance if correction is None else chance + correction
    if spec.expert_groups > 1:
        shares = choice.reshape(spec.expert_groups, -1)
        best = np.sort(shares, axis=1)[:, -2:].sum(axis=1) if spec.router == "sigmoid" else shares.max(axis=1)
        kept = np.argsort(-best, kind="stable")[: spec.active_groups]
        masked = np.full(shares.shape, -np.inf)
        masked[kept] = shares[kept]
        choice = masked.reshape(-1)
    chosen = np.argsort(-choice, kind="stable")[: spec.active]
    weights = np.zeros_like(chance)
    weights[chosen] = chance[chosen]
    if spec.normalised:
        weights /= weights.sum()
    return np.asarray(weights * spec.factor)


def _drawn(scores: Array, spec: Experts) -> Array:
    """The weights of two experts that are drawn one after the other."""
    weights, left = np.zeros_like(scores), scores
    for _ in range(spec.active):
        best = int(left.argmax())
        near = left[best] - scores <= spec.nearness * np.maximum(np.abs(scores), left[best])
        weights[best] = spec.factor / np.exp(left - left[best])[near].sum()
        left = np.where(np.arange(len(scores)) == best, -np.inf, left)
    return weights


def apply_experts(x: Array, spec: Experts, weights: ExpertsWeights) -> Array:
    scores = weights.router(x.T).T
    routed = np.stack([route(row, spec, weights.correction) for row in scores])
    shares = [routed[:, e : e + 1] for e in range(spec.count)]
    if spec.scales_inputs:
        y = sum(apply_mlp(share * x, spec.expert, expert) for share, expert in zip(shares, weights.experts))
    else:
        y = sum(share * apply_mlp(x, spec.expert, expert) for share, expert in zip(shares, weights.experts))
    if spec.shared is not None and weights.shared is not None:
        shared = apply_mlp(x, spec.shared, weights.shared)
        gate = weights.shared_gate
        y = y + (shared if gate is None else scipy.special.expit(gate(x.T)).T * shared)
    return np.asarray(y)


def relative_buckets(queries: int, keys: int, stack: Stack, spec: GroupedAttention) -> Array:
    """The rows of the table of a stack."""
    assert stack.relative is not None
    return stack.relative.index(queries, keys, spec.sees_later)


def _latent(x: Array, latent: LatentWeights | None, norm: Norm | None) -> Array:
    if latent is None:
        return x
    y = latent.down(x.T).T
    return y * latent.gain if norm is None else normalise(y, norm) * latent.gain


def _qk_normalised(
    rotated: Array, plain: Array, spec: GroupedAttention, gain: Array, shift: Array | None
) -> tuple[Array, Array]:
    """Heads (H, f, t) complex and (H, a₀, t), normalised per head or over all heads, times the gains, and shifted."""
    assert spec.qk_norm is not None
    f, t = rotated.shape[1:]
    values = np.concatenate([rotated.real, rotated.imag, plain], axis=1)
    if spec.qk_norm.is_joint:
        flat = normalise(values.reshape(-1, t).T, spec.qk_norm.norm).T
        values = flat.reshape(values.shape)
    else:
        values = normalise(values.transpose(0, 2, 1), spec.qk_norm.norm).transpose(0, 2, 1)
    values = values * gain[:, :, None]
    values = values if shift is None else values + shift[:, :, None]
    return values[:, :f] + 1j * values[:, f : 2 * f], values[:, 2 * f :]


def scores_of(
    x: Array, source: Array, spec: GroupedAttention, weights: AttentionWeights, distances: Array | None = None
) -> Array:
    """Scaled and capped scores (H, queries, keys) before masks and tables of positions; ``distances`` has states."""
    heads, latent = weights.heads, spec.latent
    query_in = _latent(x, weights.query_latent, latent.query_norm if latent else None).T
    key_in = _latent(source, weights.key_latent, latent.key_norm if latent else None).T
    rotated_q, plain_q = weights.rotated_query(query_in), weights.query(query_in)
    rotated_k, plain_k = weights.rotated_key(source.T), weights.key(key_in)
    if weights.query_gain is not None and weights.key_gain is not None:
        rotated_q, plain_q = _qk_normalised(rotated_q, plain_q, spec, weights.query_gain, weights.query_shift)
        rotated_k, plain_k = _qk_normalised(rotated_k, plain_k, spec, weights.key_gain, weights.key_shift)
    plain_k = np.repeat(plain_k, heads // len(plain_k), axis=0)
    scores = plain_q.transpose(0, 2, 1) @ plain_k
    if spec.disentangled is not None:
        assert distances is not None
        index = spec.disentangled.index(len(x), len(source))
        if spec.disentangled.keys:
            to_positions = plain_q.transpose(0, 2, 1) @ weights.key(distances.T)
            scores = scores + np.take_along_axis(to_positions, index[None], axis=2)
        if spec.disentangled.queries:
            to_contents = plain_k.transpose(0, 2, 1) @ weights.query(distances.T)
            scores = scores + np.take_along_axis(to_contents, index.T[None], axis=2).transpose(0, 2, 1)
    if spec.rotary is not None:
        angles = np.exp(1j * np.outer(spec.rotary.frequencies, np.arange(max(len(x), len(source)))))
        rotated_q = rotated_q * angles[:, : len(x)]
        rotated_k = np.repeat(rotated_k * angles[:, : len(source)], heads // len(rotated_k), axis=0)
        scores = scores + spec.rotary.amplitude**2 * (rotated_q.transpose(0, 2, 1) @ rotated_k.conj()).real
    scores = scores * spec.scale * spec.temperatures(len(x))[:, None]
    if spec.softcap is not None:
        scores = spec.softcap * np.tanh(scores / spec.softcap)
    return np.asarray(scores)


def apply_attention(
    x: Array, source: Array, spec: GroupedAttention, weights: AttentionWeights, table: Array | None = None,
    distances: Array | None = None,
) -> Array:  # fmt: skip
    """Attention from x to source (the same rows for self-attention); ``table`` (H, i, j) is added to the scores."""
    heads = weights.heads
    if heads * len(x) * len(source) > SCORES_HELD:
        raise InputError(f"{len(x)} tokens and {heads} heads given; the float64 pass is for short inputs")
    scores = scores_of(x, source, spec, weights, distances)
    if spec.alibi:
        scores = scores + spec.slopes[:, None, None] * np.arange(len(source))
    if table is not None:
        scores = scores + table
    if spec.relative is not None:
        assert weights.relative is not None
        scores = scores + weights.relative[:, spec.relative.index(len(x), len(source), spec.sees_later)]
    scores = np.where(spec.visible(len(x), len(source)), scores, -np.inf)
    sinks = None if weights.sinks is None else weights.sinks[:, None, None]
    top = scores.max(axis=-1, keepdims=True)
    top = top if sinks is None else np.maximum(top, sinks)
    shares = np.exp(scores - top)
    total = shares.sum(axis=-1, keepdims=True)
    shares = shares / (total if sinks is None else total + np.exp(sinks - top))
    latent = spec.latent.key_norm if spec.latent else None
    values = weights.value(_latent(source, weights.key_latent, latent).T)
    values = np.repeat(values, heads // len(values), axis=0)
    mixed = np.einsum("hvj,hij->ihv", values, shares, optimize=True)
    if weights.output_gate is not None:
        mixed = mixed * scipy.special.expit(weights.output_gate(x.T)).transpose(2, 0, 1)
    return np.asarray(np.einsum("hdv,ihv->id", weights.output, mixed, optimize=True) + weights.output_bias)


def apply_layer(
    x: Array, block: TransformerBlock, layer: LayerWeights, memory: Array | None = None, table: Array | None = None,
    distances: Array | None = None,
) -> Array:  # fmt: skip
    """One layer of the residual stream x (t, d); ``memory`` are the encoder's states for cross-attention."""
    norms = layer.norms
    mixed: Array | float = 0.0
    if block.mixer is not None and layer.mixer is not None:
        name = "attention.input" if block.beside else "mixer.input"
        u = apply_norm(x, norm_specs(block).get(name), norms.get(name))
        mixed = apply_recurrence(u, block.mixer, layer.mixer) * block.residual_scale
        if not block.beside:
            x, mixed = apply_norm(x + mixed, block.mixer_norms.stream, norms.get("mixer.stream")), 0.0
    if block.attention is not None and layer.attention is not None:
        u = apply_norm(x, block.attention_norms.input, norms.get("attention.input"))
        branch = apply_attention(u, u, block.attention, layer.attention, table, distances)
        branch = apply_norm(branch * block.residual_scale, block.attention_norms.output, norms.get("attention.output"))
        if block.parallel:
            if not block.shared_norm:
                u = apply_norm(x, block.mlp_norms.input, norms.get("mlp.input"))
            return x + branch + _feed_forward(u, block, layer)
        x = apply_norm(x + branch + mixed, block.attention_norms.stream, norms.get("attention.stream"))
    if block.cross is not None and layer.cross is not None:
        assert memory is not None
        u = apply_norm(x, block.cross_norms.input, norms.get("cross.input"))
        crossed = apply_attention(u, memory, block.cross, layer.cross)
        x = apply_norm(x + crossed, block.cross_norms.stream, norms.get("cross.stream"))
    if block.mlp is None:
        return x
    u = apply_norm(x, block.mlp_norms.input, norms.get("mlp.input"))
    return apply_norm(x + _feed_forward(u, block, layer), block.mlp_norms.stream, norms.get("mlp.stream"))


def _feed_forward(u: Array, block: TransformerBlock, layer: LayerWeights) -> Array:
    if isinstance(block.mlp, Experts):
        assert isinstance(layer.mlp, ExpertsWeights)
        y = apply_experts(u, block.mlp, layer.mlp)
    else:
        assert isinstance(layer.mlp, MLPWeights) and block.mlp is not None
        y = apply_mlp(u, block.mlp, layer.mlp)
    return apply_norm(y * block.residual_scale, block.mlp_norms.output, layer.norms.get("mlp.output"))


def run_stack(model: Model, stack: Stack, x: Array, memory: Array | None = None) -> Array:
    """The final hidden states of a stack from its embedded inputs."""
    start = 0 if stack is model.spec.stacks[0] else len(model.spec.stacks[0])
    relative, table = model.relative(stack), None
    distances = distance_states(stack, model.distances(stack))
    for index in stack.path or range(len(stack)):
        block = stack.block(index)
        if relative is not None and table is None:
            assert block.attention is not None
            buckets = relative_buckets(len(x), len(x), stack, block.attention)
            table = relative[buckets].transpose(2, 0, 1)
        x = apply_layer(x, block, model.layer(start + index), memory, table, distances)
    return apply_norm(x, stack.final_norm, model.final_norm(stack))


def distance_states(stack: Stack, stored: tuple[Array, NormWeights | None] | None) -> Array | None:
    """The states of distances behind their norm."""
    return None if stored is None else apply_norm(stored[0], stack.distance_norm, stored[1])


def embed_tokens(model: Model, stack: Stack, tokens: Array, types: Array | None = None) -> Array:
    x = np.asarray(model.embedding_of(stack)[tokens], dtype=np.float64) * model.spec.embedding_scale
    positions = model.positions(stack)
    if positions is not None:
        start = model.places.first_position
        x = x + positions[start : start + len(tokens)]
    table = model.token_types(stack)
    if table is not None:
        x = x + table[np.zeros(len(tokens), int) if types is None else types]
    x, widening = apply_norm(x, stack.embedding_norm, model.embedding_norm(stack)), model.widening(stack)
    return x if widening is None else widening(x.T).T


def _patches_a_side(stack: Stack, added: int) -> int:
    """How many patches a side the tables of positions are for; 0 where there are none."""
    tables = [block.attention.relative for block in stack.kinds if block.attention is not None]
    return math.isqrt(max([stack.positions, *(table.tokens for table in tables if table is not None), added]) - added)


def embed_patches(model: Model, stack: Stack, image: Array) -> Array:
    """Patches of an image (channels, height, width) with the class token, and others, in front."""
    places = model.places
    kernel, bias = model.load_any(f"{places.patches}.weight"), places.patch_bias
    d, channels, size, _ = kernel.shape
    if image.ndim != 3 or len(image) != channels:
        raise InputError(f"an image of shape {image.shape} given; {channels} channels, height and width are required")
    rows, columns = image.shape[1] // size, image.shape[2] // size
    side = _patches_a_side(stack, len(places.added))
    if side and (rows, columns) != (side, side):
        raise InputError(
            f"an image of {image.shape[1]} × {image.shape[2]} given; {side * size} × {side * size} is required, "
            f"{side} patches a side: resize it"
        )
    whole = image[:, : rows * size, : columns * size]  # the convolution reads no part of a patch
    patches = whole.reshape(channels, rows, size, columns, size).transpose(1, 3, 0, 2, 4)
    x = patches.reshape(rows * columns, -1) @ kernel.reshape(d, -1).T + (model.load_any(bias) if bias else 0)
    positions = model.positions(stack)
    x = np.concatenate([*(model.load_any(token).reshape(1, d) for token in places.added), x])
    x = x if positions is None else x + positions
    return apply_norm(x, stack.embedding_norm, model.embedding_norm(stack))


def embed_audio(model: Model, stack: Stack, features: Array) -> Array:
    """Two convolutions of width 3 with GELU, the second of stride 2, and the position table."""
    x = features
    for name, stride in (("conv1", 1), ("conv2", 2)):
        kernel, bias = (model.load_any(f"model.encoder.{name}.{part}") for part in ("weight", "bias"))
        padded = np.pad(x, ((0, 0), (1, 1)))
        windows = np.lib.stride_tricks.sliding_window_view(padded, 3, axis=1)[:, ::stride]
        x = activate(np.einsum("ock,ctk->ot", kernel, windows) + bias[:, None], "gelu")
    positions = model.positions(stack)
    assert positions is not None
    return np.asarray(x.T + positions)


def forward(model: Model, inputs: Mapping[str, Any]) -> Array:
    """Logits (t, vocabulary) for one input, or final hidden states (t, width) where the spec has no head.

    ``inputs`` has ``input_ids`` (t), and where the family needs them ``token_type_ids``, ``decoder_input_ids``,
    ``pixel_values`` (channels, height, width) or ``input_features`` (bins, frames).
    """
    first, last = model.spec.stacks[0], model.spec.stacks[-1]
    if model.places.front == "patches":
        x = embed_patches(model, first, np.asarray(inputs["pixel_values"], dtype=np.float64))
    elif model.places.front == "audio":
        x = embed_audio(model, first, np.asarray(inputs["input_features"], dtype=np.float64))
    else:
        types = inputs.get("token_type_ids")
        x = embed_tokens(model, first, np.asarray(inputs["input_ids"]), None if types is None else np.asarray(types))
    x = run_stack(model, first, x)
    if last is not first:
        memory = x
        x = run_stack(model, last, embed_tokens(model, last, np.asarray(inputs["decoder_input_ids"])), memory)
    head = model.spec.head
    if head is None:
        return x
    logits = x @ np.asarray(model.head(), dtype=np.float64).T
    if head.bias:
        logits = logits + model.head_bias()
    if head.softcap is not None:
        logits = head.softcap * np.tanh(logits / head.softcap)
    return np.asarray(logits * head.scale)
