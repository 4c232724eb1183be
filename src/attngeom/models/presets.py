"""Configurations of published models: the keys of their config.json that fix sizes and function.

They let `attngeom model inspect` and the tests answer for published sizes without a checkpoint.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from attngeom.errors import InputError
from attngeom.models.families import specify
from attngeom.models.specification import TransformerSpec


def _decoder(model_type: str, sizes: tuple[int, ...], vocabulary: int, **more: Any) -> Mapping[str, Any]:
    """A config with (layers, width, MLP width, heads, key-value heads)."""
    layers, width, hidden, heads, groups = sizes
    values = {
        "model_type": model_type,
        "num_hidden_layers": layers,
        "hidden_size": width,
        "intermediate_size": hidden,
        "num_attention_heads": heads,
        "num_key_value_heads": groups,
        "vocab_size": vocabulary,
        **more,
    }
    return MappingProxyType(values)


def _gpt2(layers: int, width: int, heads: int) -> Mapping[str, Any]:
    sizes = {"n_layer": layers, "n_embd": width, "n_head": heads, "n_positions": 1024, "vocab_size": 50257}
    return MappingProxyType({"model_type": "gpt2", "layer_norm_epsilon": 1e-5, **sizes})


PUBLISHED: Mapping[str, Mapping[str, Any]] = MappingProxyType(
    {
        "gpt2": _gpt2(12, 768, 12),
        "gpt2-xl": _gpt2(48, 1600, 25),
        "llama-2-7b": _decoder("llama", (32, 4096, 11008, 32, 32), 32000, rms_norm_eps=1e-5, rope_theta=10000.0),
        "llama-3-8b": _decoder("llama", (32, 4096, 14336, 32, 8), 128256, rms_norm_eps=1e-5, rope_theta=500000.0),
        "mistral-7b": _decoder(
            "mistral", (32, 4096, 14336, 32, 8), 32000, rms_norm_eps=1e-5, rope_theta=10000.0, sliding_window=4096
        ),
        "qwen2.5-7b": _decoder("qwen2", (28, 3584, 18944, 28, 4), 152064, rms_norm_eps=1e-6, rope_theta=1000000.0),
        "mixtral-8x7b": _decoder(
            "mixtral",
            (32, 4096, 14336, 32, 8),
            32000,
            rms_norm_eps=1e-5,
            rope_theta=1000000.0,
            num_local_experts=8,
            num_experts_per_tok=2,
        ),
        "phi-4": _decoder(
            "phi3",
            (40, 5120, 17920, 40, 10),
            100352,
            rms_norm_eps=1e-5,
            rope_theta=250000.0,
            tie_word_embeddings=False,
        ),
        "gpt-oss-20b": _decoder(
            "gpt_oss",
            (24, 2880, 2880, 64, 8),
            201088,
            rms_norm_eps=1e-5,
            rope_theta=150000.0,
            head_dim=64,
            num_local_experts=32,
            num_experts_per_tok=4,
            sliding_window=128,
            attention_bias=True,
        ),
        "qwen3-8b": _decoder(
            "qwen3", (36, 4096, 12288, 32, 8), 151936, rms_norm_eps=1e-6, rope_theta=1000000.0, head_dim=128
        ),
        "gemma-2-9b": _decoder(
            "gemma2",
            (42, 3584, 14336, 16, 8),
            256000,
            rms_norm_eps=1e-6,
            rope_theta=10000.0,
            head_dim=256,
            query_pre_attn_scalar=256,
            attn_logit_softcapping=50.0,
            final_logit_softcapping=30.0,
            sliding_window=4096,
            tie_word_embeddings=True,
        ),
        "deepseek-v3": _decoder(
            "deepseek_v3",
            (61, 7168, 18432, 128, 128),
            129280,
            rms_norm_eps=1e-6,
            rope_theta=10000.0,
            q_lora_rank=1536,
            kv_lora_rank=512,
            qk_nope_head_dim=128,
            qk_rope_head_dim=64,
            v_head_dim=128,
            moe_intermediate_size=2048,
            n_routed_experts=256,
            n_shared_experts=1,
            num_experts_per_tok=8,
            first_k_dense_replace=3,
            n_group=8,
            topk_group=4,
            norm_topk_prob=True,
            routed_scaling_factor=2.5,
            scoring_func="sigmoid",
            tie_word_embeddings=False,
            rope_scaling={
                "type": "yarn",
                "factor": 40,
                "beta_fast": 32,
                "beta_slow": 1,
                "mscale": 1.0,
                "mscale_all_dim": 1.0,
                "original_max_position_embeddings": 4096,
            },
        ),
    }
)


def published(name: str) -> TransformerSpec:
    """The description of a published model.

    >>> published("llama-3-8b").parameters
    8030261248
    """
    if name not in PUBLISHED:
        raise InputError(f"published model {name[:40]!r} given; known are {', '.join(PUBLISHED)}")
    return specify(PUBLISHED[name])
