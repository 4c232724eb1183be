"""GPT-2 and its successors before Llama: learned positions, then rotations; sequential or parallel blocks."""

from __future__ import annotations

from dataclasses import replace

from attngeom.errors import InputError
from attngeom.models.configuration import Config, rotary_of
from attngeom.models.families.contract import ModelFamily, Places, biases, plain_attention, plain_mlp, stack_of
from attngeom.models.layout import AttentionLayout, BlockLayout, MLPLayout, split_attention
from attngeom.models.layout.attention import PARTITIONS
from attngeom.models.specification import LogitHead, Norms, TransformerBlock, TransformerSpec

# GPT-2: LayerNorm before each sublayer, biases, learned positions, transposed (Conv1D) projections, tied head.


def specify_gpt2(config: Config) -> TransformerSpec:
    config.refuse("add_cross_attention", False)
    width, heads = config.integer("n_embd", "hidden_size"), config.integer("n_head", "num_attention_heads")
    layers = config.layers("n_layer", "num_hidden_layers")
    scale = None if config.flag("scale_attn_weights", default=True) else 1.0
    attention = plain_attention(heads, width, scale=scale)
    mlp = plain_mlp(
        config.integer("n_inner", default=4 * width), config.activation("activation_function", default="gelu_new")
    )
    norm = config.layer_norm(default=1e-5)
    norms = Norms(input=norm)
    by_depth = config.flag("scale_attn_by_inverse_layer_idx", default=False)
    blocks = [
        TransformerBlock(
            attention=replace(attention, scale=attention.scale / (i + 1)) if by_depth else attention,
            mlp=mlp,
            attention_norms=norms,
            mlp_norms=norms,
        )
        for i in range(layers)
    ]
    positions = config.integer("n_positions", "n_ctx", "max_position_embeddings", default=1024)
    return TransformerSpec(
        family="gpt2",
        width=width,
        stacks=(stack_of(blocks, "decoder", final_norm=norm, positions=positions),),
        vocabulary=config.integer("vocab_size"),
        head=LogitHead(tied=config.flag("tie_word_embeddings", default=True)),
    )


def locate_gpt2(config: Config) -> Places:
    attention = AttentionLayout(packing="stacked", fused="attn.c_attn", output="attn.c_proj", transposed=True)
    mlp = MLPLayout(packing="split", up="mlp.c_fc", down="mlp.c_proj", transposed=True)
    norms = {"attention.input": "ln_1", "mlp.input": "ln_2"}
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


GPT2 = ModelFamily(("gpt2",), specify_gpt2, locate_gpt2)


# GPTBigCode, StarCoder: GPT-2 whose heads share one key and one value, with plain projections.


def specify_gpt_bigcode(config: Config) -> TransformerSpec:
    shared = config.flag("multi_query", default=True)
    spec = specify_gpt2(config.with_default("activation_function", "gelu_pytorch_tanh"))
    if shared:
        kinds = tuple(
            replace(block, attention=replace(block.attention, groups=1))
            for block in spec.stack.kinds
            if block.attention is not None
        )
        spec = replace(spec, stacks=(replace(spec.stack, kinds=kinds),))
    return replace(spec, family="gpt_bigcode")


def locate_gpt_bigcode(config: Config) -> Places:
    shared = config.flag("multi_query", default=True)
    attention = AttentionLayout(
        packing="stacked" if shared else "grouped", fused="attn.c_attn", output="attn.c_proj"
    )  # fmt: skip
    mlp = MLPLayout(packing="split", up="mlp.c_fc", down="mlp.c_proj")
    norms = {"attention.input": "ln_1", "mlp.input": "ln_2"}
    places = locate_gpt2(config)
    return replace(places, blocks={"decoder": BlockLayout("transformer.h.{}.", attention, mlp, norms)})


GPT_BIGCODE = ModelFamily(("gpt_bigcode",), specify_gpt_bigcode, locate_gpt_bigcode)


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


def specify_gpt_neo(config: Config) -> TransformerSpec:
    width, heads = config.integer("hidden_size"), config.integer("num_heads", "num_attention_heads")
    layers = config.layers("num_layers", "num_hidden_layers")
    attention = replace(plain_attention(heads, width, scale=1.0), query_bias=False, key_bias=False, value_bias=False)
    mlp = plain_mlp(
        config.integer("intermediate_size", default=4 * width),
        config.activation("activation_function", default="gelu_new"),
    )
    norm = config.layer_norm(default=1e-5)
    windows = {"global": None, "local": config.integer("window_size", default=256)}
    config.raw("attention_layers")
    blocks = [
        TransformerBlock(
            attention=replace(attention, window=windows[name]),
            mlp=mlp,
            attention_norms=Norms(input=norm),
            mlp_norms=Norms(input=norm),
        )
        for name in _kinds_gpt_neo(config, layers)
    ]
    positions = config.integer("max_position_embeddings", default=2048)
    return TransformerSpec(
        family="gpt_neo",
        width=width,
        stacks=(stack_of(blocks, "decoder", final_norm=norm, positions=positions),),
        vocabulary=config.integer("vocab_size"),
        head=LogitHead(tied=config.flag("tie_word_embeddings", default=True)),
    )


def locate_gpt_neo(config: Config) -> Places:
    attention = split_attention("attn.attention.{}_proj", "attn.attention.out_proj")
    mlp = MLPLayout(packing="split", up="mlp.c_fc", down="mlp.c_proj")
    block = BlockLayout("transformer.h.{}.", attention, mlp, {"attention.input": "ln_1", "mlp.input": "ln_2"})
    places = locate_gpt2(config)
    ignored = (".attn.attention.bias", ".attn.attention.masked_bias")
    return replace(places, blocks={"decoder": block}, ignored=ignored)


GPT_NEO = ModelFamily(("gpt_neo",), specify_gpt_neo, locate_gpt_neo)


# GPT-NeoX, Pythia: q, k, v fused head by head, partly rotated heads, attention and MLP in parallel.


def specify_gpt_neox(config: Config) -> TransformerSpec:
    width, heads = config.integer("hidden_size"), config.integer("num_attention_heads")
    bias = config.flag("attention_bias", default=True)
    attention = plain_attention(heads, width)
    attention = replace(
        attention,
        rotary=config.rotary(attention.head_dim, "half", share=0.25),
        **biases(bias),
    )
    mlp = plain_mlp(config.integer("intermediate_size"), config.activation("hidden_act", default="gelu"))
    norm = config.layer_norm(default=1e-5)
    block = TransformerBlock(
        attention=attention,
        mlp=mlp,
        attention_norms=Norms(input=norm),
        mlp_norms=Norms(input=norm),
        parallel=config.flag("use_parallel_residual", default=True),
    )
    return TransformerSpec(
        family="gpt_neox",
        width=width,
        stacks=(stack_of([block] * config.layers("num_hidden_layers"), "decoder", final_norm=norm),),
        vocabulary=config.integer("vocab_size"),
        head=LogitHead(tied=config.flag("tie_word_embeddings", default=False)),
    )


def locate_gpt_neox(config: Config) -> Places:
    attention = AttentionLayout(packing="grouped", fused="attention.query_key_value", output="attention.dense")
    mlp = MLPLayout(packing="split", up="mlp.dense_h_to_4h", down="mlp.dense_4h_to_h")
    norms = {"attention.input": "input_layernorm", "mlp.input": "post_attention_layernorm"}
    return Places(
        blocks={"decoder": BlockLayout("gpt_neox.layers.{}.", attention, mlp, norms)},
        final_norm={"decoder": "gpt_neox.final_layer_norm"},
        tokens="gpt_neox.embed_in.weight",
        head="embed_out.weight",
        ignored=(".attention.bias", ".attention.masked_bias", ".rotary_emb."),
        base="gpt_neox.",
    )


GPT_NEOX = ModelFamily(("gpt_neox",), specify_gpt_neox, locate_gpt_neox)


# GPT-J: interleaved partial rotary positions, one LayerNorm for parallel attention and MLP, a head with a bias.


def specify_gptj(config: Config) -> TransformerSpec:
    width, heads = config.integer("n_embd", "hidden_size"), config.integer("n_head", "num_attention_heads")
    attention = plain_attention(heads, width)
    dims = config.integer("rotary_dim", default=attention.head_dim)
    attention = replace(
        attention,
        rotary=rotary_of({"rope_theta": 10000.0}, dims, "interleaved", None, config),
        **biases(False),
    )
    mlp = plain_mlp(
        config.integer("n_inner", default=4 * width), config.activation("activation_function", default="gelu_new")
    )
    norm = config.layer_norm(default=1e-5)
    block = TransformerBlock(
        attention=attention, mlp=mlp, attention_norms=Norms(input=norm), parallel=True, shared_norm=True
    )
    return TransformerSpec(
        family="gptj",
        width=width,
        stacks=(stack_of([block] * config.layers("n_layer", "num_hidden_layers"), "decoder", final_norm=norm),),
        vocabulary=config.integer("vocab_size"),
        head=LogitHead(tied=config.flag("tie_word_embeddings", default=False), bias=True),
    )


def locate_gptj(config: Config) -> Places:
    attention = split_attention("attn.{}_proj", "attn.out_proj")
    mlp = MLPLayout(packing="split", up="mlp.fc_in", down="mlp.fc_out")
    return Places(
        blocks={"decoder": BlockLayout("transformer.h.{}.", attention, mlp, {"attention.input": "ln_1"})},
        final_norm={"decoder": "transformer.ln_f"},
        tokens="transformer.wte.weight",
        head="lm_head.weight",
        head_bias="lm_head.bias",
        ignored=(".attn.bias", ".attn.masked_bias", ".attn.embed_positions"),
        base="transformer.",
    )


GPTJ = ModelFamily(("gptj",), specify_gptj, locate_gptj)


# CodeGen: GPT-J with q, v, k fused in four partitions, as they lay on four devices.


def specify_codegen(config: Config) -> TransformerSpec:
    heads = config.integer("n_head", "num_attention_heads")
    if heads % PARTITIONS:
        raise InputError(f"config n_head = {heads} given; CodeGen needs a multiple of {PARTITIONS}")
    return replace(specify_gptj(config.with_default("rotary_dim", 64)), family="codegen")


def locate_codegen(config: Config) -> Places:
    attention = AttentionLayout(packing="partitioned", fused="attn.qkv_proj", output="attn.out_proj")
    mlp = MLPLayout(packing="split", up="mlp.fc_in", down="mlp.fc_out")
    block = BlockLayout("transformer.h.{}.", attention, mlp, {"attention.input": "ln_1"})
    places = locate_gptj(config)
    return replace(places, blocks={"decoder": block}, ignored=(*places.ignored, ".attn.causal_mask"))


CODEGEN = ModelFamily(("codegen",), specify_codegen, locate_codegen)
