"""GPT-2 and its successors before Llama: learned positions, then rotations; sequential or parallel blocks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from attngeom.errors import InputError
from attngeom.models.configuration import Config, rotary_of
from attngeom.models.families.contract import (
    ModelFamily,
    Places,
    biases,
    block_of,
    head_of,
    model_of,
    parallel_block,
    plain_attention,
    plain_mlp,
    stack_of,
)
from attngeom.models.layout import AttentionLayout, BlockLayout, MLPLayout, split_attention
from attngeom.models.layout.attention import PARTITIONS
from attngeom.models.specification import QKNorm, TransformerSpec

# GPT-2: LayerNorm before each sublayer, biases, learned positions, transposed (Conv1D) projections, tied head.


def describe_gpt2(config: Config) -> TransformerSpec:
    config.refuse("add_cross_attention", False)
    width, heads = config.integer("n_embd", "hidden_size"), config.integer("n_head", "num_attention_heads")
    layers = config.layers("n_layer", "num_hidden_layers")
    scale = None if config.flag("scale_attn_weights", default=True) else 1.0
    attention = plain_attention(heads, width, scale=scale)
    mlp = plain_mlp(
        config.integer("n_inner", default=4 * width), config.activation("activation_function", default="gelu_new")
    )
    norm = config.layer_norm(default=1e-5)
    by_depth = config.flag("scale_attn_by_inverse_layer_idx", default=False)
    scales = [attention.scale / (i + 1) if by_depth else attention.scale for i in range(layers)]
    blocks = [block_of(replace(attention, scale=scale), mlp, norm) for scale in scales]
    positions = config.integer("n_positions", "n_ctx", "max_position_embeddings", default=1024)
    stack = stack_of(blocks, final_norm=norm, positions=positions)
    return model_of(config, width, stack, head=head_of(config, tied=True))


PLAIN = MLPLayout(packing="split", up="mlp.c_fc", down="mlp.c_proj")
NORMS = {"attention.input": "ln_1", "mlp.input": "ln_2"}
STACKED = AttentionLayout(packing="stacked", fused="attn.c_attn", output="attn.c_proj")


def places_of(attention: AttentionLayout, mlp: MLPLayout = PLAIN, norms: Mapping[str, str] = NORMS) -> Places:
    """The names of GPT-2, those of the layers as given."""
    return Places(
        blocks={"decoder": BlockLayout("transformer.h.{}.", attention, mlp, norms)},
        final_norm={"decoder": "transformer.ln_f"},
        tokens="transformer.wte.weight",
        head="lm_head.weight",
        positions={"decoder": "transformer.wpe.weight"},
        others=("multiple_choice_head.",),
        ignored=(".attn.bias", ".attn.masked_bias"),
        base="transformer.",
    )


GPT2_PLACES = places_of(replace(STACKED, transposed=True), replace(PLAIN, transposed=True))
GPT2 = ModelFamily("gpt2", describe_gpt2, GPT2_PLACES)


# GPTBigCode, StarCoder: GPT-2 whose heads share one key and one value, with plain projections.


def describe_gpt_bigcode(config: Config) -> TransformerSpec:
    shared = config.flag("multi_query", default=True)
    spec = describe_gpt2(config)
    if not shared:
        return spec
    kinds = tuple(
        replace(block, attention=replace(block.attention, groups=1))
        for block in spec.stack.kinds
        if block.attention is not None
    )
    return replace(spec, stacks=(replace(spec.stack, kinds=kinds),))


def places_gpt_bigcode(config: Config) -> Places:
    shared = config.flag("multi_query", default=True)
    return places_of(STACKED if shared else replace(STACKED, packing="grouped"))


GPT_BIGCODE = ModelFamily(
    "gpt_bigcode", describe_gpt_bigcode, places_gpt_bigcode, {"activation_function": "gelu_pytorch_tanh"}
)


# GPT-Neo: GPT-2 with scores that are not scaled and a window in the layers that are called local.


def _kinds_gpt_neo(config: Config, layers: int) -> list[str]:
    """``attention_types`` lists patterns with the number of their repetitions."""
    given = config.raw("attention_types")
    given = [[["global", "local"], layers // 2]] if given is None else given
    try:
        names = [name for pattern, count in given for _ in range(min(count, layers + 1)) for name in pattern]
    except (TypeError, ValueError):
        names = []
    if len(names) != layers or not all(name in ("global", "local") for name in names):
        raise InputError(f"config attention_types = {str(given)[:40]} given; patterns of {layers} layers are required")
    return names


def describe_gpt_neo(config: Config) -> TransformerSpec:
    width, heads = config.integer("hidden_size"), config.integer("num_heads", "num_attention_heads")
    layers = config.layers("num_layers", "num_hidden_layers")
    attention = replace(plain_attention(heads, width, scale=1.0), query_bias=False, key_bias=False, value_bias=False)
    hidden = config.integer("intermediate_size", default=4 * width)
    mlp = plain_mlp(hidden, config.activation("activation_function", default="gelu_new"))
    norm = config.layer_norm(default=1e-5)
    windows = {"global": None, "local": config.integer("window_size", default=256)}
    config.raw("attention_layers")
    kinds = _kinds_gpt_neo(config, layers)
    blocks = [block_of(replace(attention, window=windows[name]), mlp, norm) for name in kinds]
    positions = config.integer("max_position_embeddings", default=2048)
    stack = stack_of(blocks, final_norm=norm, positions=positions)
    return model_of(config, width, stack, head=head_of(config, tied=True))


NEO_PLACES = replace(
    places_of(split_attention("attn.attention.{}_proj", "attn.attention.out_proj")),
    ignored=(".attn.attention.bias", ".attn.attention.masked_bias"),
)
GPT_NEO = ModelFamily("gpt_neo", describe_gpt_neo, NEO_PLACES)


# GPT-NeoX, Pythia: q, k, v fused head by head, partly rotated heads, attention and MLP in parallel.


def describe_gpt_neox(config: Config) -> TransformerSpec:
    width, heads = config.integer("hidden_size"), config.integer("num_attention_heads")
    bias = config.flag("attention_bias", default=True)
    attention = plain_attention(heads, width)
    attention = replace(attention, rotary=config.rotary(attention.head_dim, "half", share=0.25), **biases(bias))
    mlp = plain_mlp(config.integer("intermediate_size"), config.activation("hidden_act", default="gelu"))
    norm = config.layer_norm(default=1e-5)
    block = block_of(attention, mlp, norm, parallel=config.flag("use_parallel_residual", default=True))
    stack = stack_of([block] * config.layers("num_hidden_layers"), final_norm=norm)
    return model_of(config, width, stack, head=head_of(config, tied=False))


NEOX_BLOCK = BlockLayout(
    "gpt_neox.layers.{}.",
    AttentionLayout(packing="grouped", fused="attention.query_key_value", output="attention.dense"),
    MLPLayout(packing="split", up="mlp.dense_h_to_4h", down="mlp.dense_4h_to_h"),
    {"attention.input": "input_layernorm", "mlp.input": "post_attention_layernorm"},
)
NEOX_PLACES = Places(
    blocks={"decoder": NEOX_BLOCK},
    final_norm={"decoder": "gpt_neox.final_layer_norm"},
    tokens="gpt_neox.embed_in.weight",
    head="embed_out.weight",
    ignored=(".attention.bias", ".attention.masked_bias", ".rotary_emb."),
    base="gpt_neox.",
)
GPT_NEOX = ModelFamily("gpt_neox", describe_gpt_neox, NEOX_PLACES)


# Persimmon: NeoX one after the other, LayerNorms with biases on queries and keys of each head, squares of ReLU.


def describe_persimmon(config: Config) -> TransformerSpec:
    width, heads = config.integer("hidden_size"), config.integer("num_attention_heads")
    norm = config.layer_norm(default=1e-5)
    normed = config.flag("qk_layernorm", default=True)
    attention = plain_attention(heads, width)
    config.refuse("head_dim", attention.head_dim)
    attention = replace(
        attention,
        rotary=config.rotary(attention.head_dim, "half", share=0.5),
        qk_norm=QKNorm(scope="per_head", norm=norm) if normed else None,
    )
    mlp = plain_mlp(config.integer("intermediate_size"), config.activation("hidden_act", default="relu2"))
    stack = stack_of([block_of(attention, mlp, norm)] * config.layers("num_hidden_layers"), final_norm=norm)
    return model_of(config, width, stack, head=head_of(config, tied=False))


def places_persimmon(config: Config) -> Places:
    normed = config.flag("qk_layernorm", default=True)
    attention = AttentionLayout(packing="grouped", fused="self_attn.query_key_value", output="self_attn.dense")
    if normed:
        attention = replace(attention, query_norm="self_attn.q_layernorm", key_norm="self_attn.k_layernorm")
    norms = {"attention.input": "input_layernorm", "mlp.input": "post_attention_layernorm"}
    return Places(
        blocks={"decoder": BlockLayout("model.layers.{}.", attention, NEOX_BLOCK.mlp, norms)},
        final_norm={"decoder": "model.final_layernorm"},
        tokens="model.embed_tokens.weight",
        head="lm_head.weight",
        ignored=(".rotary_emb.",),
        base="model.",
    )


PERSIMMON = ModelFamily("persimmon", describe_persimmon, places_persimmon)


# GPT-J: interleaved partial rotary positions, one LayerNorm for parallel attention and MLP, a head with a bias.


def describe_gptj(config: Config) -> TransformerSpec:
    width, heads = config.integer("n_embd", "hidden_size"), config.integer("n_head", "num_attention_heads")
    attention = plain_attention(heads, width)
    dims = config.integer("rotary_dim", default=attention.head_dim)
    rotation = rotary_of({"rope_theta": 10000.0}, dims, "interleaved", None, config)
    hidden = config.integer("n_inner", default=4 * width)
    mlp = plain_mlp(hidden, config.activation("activation_function", default="gelu_new"))
    norm = config.layer_norm(default=1e-5)
    block = parallel_block(replace(attention, rotary=rotation, **biases(False)), mlp, norm)
    stack = stack_of([block] * config.layers("n_layer", "num_hidden_layers"), final_norm=norm)
    return model_of(config, width, stack, head=head_of(config, tied=False, bias=True))


FULLY = MLPLayout(packing="split", up="mlp.fc_in", down="mlp.fc_out")
GPTJ_PLACES = replace(
    places_of(split_attention("attn.{}_proj", "attn.out_proj"), FULLY, {"attention.input": "ln_1"}),
    head_bias="lm_head.bias",
    positions={},
    others=(),
    ignored=(".attn.bias", ".attn.masked_bias", ".attn.embed_positions"),
)
GPTJ = ModelFamily("gptj", describe_gptj, GPTJ_PLACES)


# CodeGen: GPT-J with q, v, k fused in four partitions, as they lay on four devices.


def describe_codegen(config: Config) -> TransformerSpec:
    heads = config.integer("n_head", "num_attention_heads")
    if heads % PARTITIONS:
        raise InputError(f"config n_head = {heads} given; CodeGen needs a multiple of {PARTITIONS}")
    return describe_gptj(config)


PARTITIONED = AttentionLayout(packing="partitioned", fused="attn.qkv_proj", output="attn.out_proj")
CODEGEN_PLACES = replace(
    GPTJ_PLACES,
    blocks={"decoder": BlockLayout("transformer.h.{}.", PARTITIONED, FULLY, {"attention.input": "ln_1"})},
    ignored=(*GPTJ_PLACES.ignored, ".attn.causal_mask"),
)
CODEGEN = ModelFamily("codegen", describe_codegen, CODEGEN_PLACES, {"rotary_dim": 64})
