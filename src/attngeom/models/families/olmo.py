"""OLMo 1 to 3 and OLMoE: Llama with other norms, of outputs and of queries and keys, and with experts."""

from __future__ import annotations

from dataclasses import replace

from attngeom.models.configuration import Config
from attngeom.models.families.contract import ModelFamily, block_of
from attngeom.models.families.decoders import (
    EXPERTS,
    NORMED_ATTENTION,
    decoder,
    gated_mlp,
    grouped_attention,
    layer_types,
    llama_places,
    rotary,
    rotary_of_type,
    sliding_window,
)
from attngeom.models.specification import (
    Experts,
    GroupedAttention,
    Norm,
    Norms,
    QKNorm,
    Rotary,
    TransformerBlock,
    TransformerSpec,
)

# OLMo: Llama with LayerNorms that have neither gain nor bias.

EPS = 1e-5
"""Of all its norms; no key of the configuration changes it."""


def _attention(config: Config, rotation: Rotary | None) -> GroupedAttention:
    return grouped_attention(config, rotation, bias=config.flag("attention_bias", default=False))


def _normed(config: Config, rotation: Rotary | None, norm: Norm) -> GroupedAttention:
    """One norm over all heads of queries, and one over all of keys."""
    return replace(_attention(config, rotation), qk_norm=QKNorm(scope="all_heads", norm=norm))


def describe_olmo(config: Config) -> TransformerSpec:
    config.refuse("clip_qkv")
    norm = Norm(kind="layer", eps=EPS, gain=False)
    return decoder(config, block_of(_attention(config, rotary(config)), gated_mlp(config), norm), norm)


OLMO = ModelFamily("olmo", describe_olmo, llama_places())


# OLMo-2, OLMo-3: norms of the outputs of the sublayers, not of their inputs, and over all query or key heads.

NORMS = {"attention.output": "post_attention_layernorm", "mlp.output": "post_feedforward_layernorm"}


def block_olmo2(config: Config, rotation: Rotary | None, norm: Norm) -> TransformerBlock:
    """Norms behind attention and MLP, and of all queries and keys."""
    attention, norms = _normed(config, rotation, norm), Norms(output=norm)
    return TransformerBlock(attention=attention, mlp=gated_mlp(config), attention_norms=norms, mlp_norms=norms)


def describe_olmo2(config: Config) -> TransformerSpec:
    norm = config.rms(default=1e-5)
    return decoder(config, block_olmo2(config, rotary(config), norm), norm)


def describe_olmo3(config: Config) -> TransformerSpec:
    """Three of four layers have a window; what stretches the rotation concerns the others."""
    types = layer_types(config, 4)
    turns = {name: rotary_of_type(config, name, theta=5e5) for name in ("full_attention", "sliding_attention")}
    windows = config.windows(sliding_window(config), types)
    norm = config.rms(default=1e-5)
    return decoder(
        config, block_olmo2(config, None, norm), norm, windows=windows,
        rotaries=[turns[name] for name in types],
    )  # fmt: skip


OLMO2 = ModelFamily("olmo2", describe_olmo2, llama_places(NORMED_ATTENTION, norms=NORMS))
OLMO3 = ModelFamily("olmo3", describe_olmo3, llama_places(NORMED_ATTENTION, norms=NORMS))


# OLMoE: norms before the sublayers and over all query or key heads, experts in every layer.


def describe_olmoe(config: Config) -> TransformerSpec:
    config.refuse("clip_qkv")
    norm = config.rms(default=1e-5)
    attention = _normed(config, rotary(config), norm)
    experts = Experts(
        expert=gated_mlp(config),
        count=config.integer("num_experts", "num_local_experts", default=64),
        active=config.integer("num_experts_per_tok", default=8),
        router="softmax",
        normalised=config.flag("norm_topk_prob", default=False),
    )
    return decoder(config, block_of(attention, experts, norm), norm)


OLMOE = ModelFamily("olmoe", describe_olmoe, llama_places(NORMED_ATTENTION, experts=EXPERTS))
