"""T5, mT5, UMT5: encoder and decoder, RMSNorm, no biases, unscaled scores plus a table of relative positions.

T5 and mT5 have one table for each stack, UMT5 one for each layer.
"""

from __future__ import annotations

from dataclasses import replace

from attngeom.models.configuration import Config
from attngeom.models.families.contract import ModelFamily, Places, block_of, head_of, model_of, stack_of
from attngeom.models.layout import AttentionLayout, BlockLayout, MLPLayout, split_attention
from attngeom.models.specification import (
    MLP,
    GroupedAttention,
    LogitHead,
    Norm,
    Norms,
    RelativeTable,
    Stack,
    TransformerSpec,
)


def _mlp(config: Config) -> MLP:
    words = str(config.raw("feed_forward_proj") or "relu").split("-")
    name = "gelu_new" if words == ["gated", "gelu"] else words[-1]
    activation = config.activation("dense_act_fn", default=name)
    return MLP(width=config.integer("d_ff"), activation=activation, gated=_is_gated(config))


def _is_gated(config: Config) -> bool:
    named = str(config.raw("feed_forward_proj") or "relu").startswith("gated")
    return config.flag("is_gated_act", default=named)


def _stack(
    config: Config, name: str, layers: int, attention: GroupedAttention, mlp: MLP, norm: Norm, every: bool
) -> Stack:
    """``every`` layer has a table of its own, or all of the stack have one."""
    decoder = name == "decoder"
    rows = config.integer("relative_attention_num_buckets", default=32)
    distance = config.integer("relative_attention_max_distance", default=RelativeTable.distance)
    own = replace(attention, relative=RelativeTable(rows=rows, distance=distance)) if every else attention
    block = block_of(own if decoder else own.bidirectional, mlp, norm)
    if decoder:
        block = replace(block, cross=attention.bidirectional, cross_norms=Norms(input=norm))
    return stack_of(
        [block] * layers,
        "decoder" if decoder else "encoder",
        final_norm=norm,
        relative_buckets=0 if every else rows,
        relative_distance=0 if every else distance,
    )


def _t5(config: Config, *, scaled: bool = False, every: bool = False) -> TransformerSpec:
    """``scaled``: states are scaled before a tied head, unless the configuration says otherwise."""
    config.refuse("is_encoder_decoder", True)
    width, heads, a = config.integer("d_model"), config.integer("num_heads"), config.integer("d_kv")
    attention = GroupedAttention(heads=heads, groups=heads, head_dim=a, value_dim=a, scale=1.0)
    norm = Norm(kind="rms", eps=config.number("layer_norm_epsilon", default=1e-6))
    layers = config.layers("num_layers")
    below = config.layers("num_decoder_layers", default=layers)
    head = head_of(config, tied=True)
    scaled = config.flag("scale_decoder_outputs", default=head.tied and scaled)
    mlp = _mlp(config)
    stacks = [
        _stack(config, name, count, attention, mlp, norm, every)
        for name, count in (("encoder", layers), ("decoder", below))
    ]
    return model_of(config, width, *stacks, head=replace(head, scale=width**-0.5 if scaled else 1.0))


def describe_t5(config: Config) -> TransformerSpec:
    return _t5(config, scaled=True)


def describe_mt5(config: Config) -> TransformerSpec:
    """As T5 with gated tanh-gelu by default, and states that are not scaled before a tied head."""
    return _t5(config)


def describe_umt5(config: Config) -> TransformerSpec:
    """As mT5; whatever the configuration says, the head is the token table, and states are scaled before it."""
    spec = _t5(config, every=True)
    return replace(spec, head=LogitHead(tied=True, scale=spec.width**-0.5))


def _block(config: Config, name: str, last: int) -> BlockLayout:
    def attention(module: str) -> AttentionLayout:
        table = {"relative": f"{module}.relative_attention_bias.weight"}
        return replace(split_attention(module + ".{}", f"{module}.o"), extras=table)

    module = f"layer.{last}.DenseReluDense"
    gated = _is_gated(config)
    mlp = MLPLayout(
        packing="split", gate=f"{module}.wi_0", up=f"{module}.{'wi_1' if gated else 'wi'}", down=f"{module}.wo"
    )
    norms = {"attention.input": "layer.0.layer_norm", "mlp.input": f"layer.{last}.layer_norm"}
    cross = None
    if name == "decoder":
        norms["cross.input"] = "layer.1.layer_norm"
        cross = attention("layer.1.EncDecAttention")
    return BlockLayout(f"{name}.block.{{}}.", attention("layer.0.SelfAttention"), mlp, norms, cross)


def places_t5(config: Config) -> Places:
    stacks = {"encoder": 1, "decoder": 2}
    table = "block.0.layer.0.SelfAttention.relative_attention_bias.weight"
    return Places(
        blocks={name: _block(config, name, last) for name, last in stacks.items()},
        final_norm={name: f"{name}.final_layer_norm" for name in stacks},
        tokens="shared.weight",
        head="lm_head.weight",
        relative={name: f"{name}.{table}" for name in stacks},
        copies={f"{name}.embed_tokens.weight": "shared.weight" for name in stacks},
    )


T5 = ModelFamily("t5", describe_t5, places_t5)
MT5 = ModelFamily("mt5", describe_mt5, places_t5, {"feed_forward_proj": "gated-gelu"})
UMT5 = ModelFamily("umt5", describe_umt5, places_t5, {"feed_forward_proj": "gated-gelu"})
