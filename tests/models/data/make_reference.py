"""Make the reference checkpoints and outputs of this folder with torch and transformers (versions are stored).

Run as ``python make_reference.py [FAMILY …]`` in an environment with torch and transformers. Every family gets a folder
with config.json and float16 weights of a tiny random model, all gains and biases moved away from 1 and 0, and
reference.safetensors with the inputs and the outputs that transformers computes with eager attention. Its modules
compute norms, softmax and rotary angles in float32 whatever the weights are; `in_double` makes that float64, so that
the outputs are good to about 1e-14.
"""

from __future__ import annotations

import contextlib
import json
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers
from safetensors.numpy import save_file

HERE = Path(__file__).parent
TOKENS = 11
COMMON: dict[str, Any] = {"vocab_size": 23, "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0}
LLAMA: dict[str, Any] = {
    **COMMON,
    "hidden_size": 24,
    "intermediate_size": 20,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "max_position_embeddings": 32,
    "tie_word_embeddings": False,
}
LATENT: dict[str, Any] = {
    **COMMON,
    "hidden_size": 20,
    "intermediate_size": 16,
    "moe_intermediate_size": 6,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 4,
    "q_lora_rank": 12,
    "kv_lora_rank": 8,
    "qk_nope_head_dim": 6,
    "qk_rope_head_dim": 4,
    "v_head_dim": 5,
    "n_routed_experts": 4,
    "num_experts_per_tok": 2,
    "n_group": 2,
    "topk_group": 1,
    "n_shared_experts": 1,
    "first_k_dense_replace": 1,
    "max_position_embeddings": 32,
    "tie_word_embeddings": False,
}
ENCODER: dict[str, Any] = {
    **COMMON,
    "pad_token_id": 1,
    "hidden_size": 24,
    "num_hidden_layers": 2,
    "num_attention_heads": 3,
    "intermediate_size": 20,
    "max_position_embeddings": 18,
}
PAIR: dict[str, Any] = {
    **COMMON,
    "d_model": 24,
    "encoder_layers": 1,
    "decoder_layers": 1,
    "encoder_attention_heads": 3,
    "decoder_attention_heads": 3,
    "encoder_ffn_dim": 20,
    "decoder_ffn_dim": 20,
    "max_position_embeddings": 16,
    "decoder_start_token_id": 2,
}
IMAGE: dict[str, Any] = {
    "hidden_size": 24,
    "num_hidden_layers": 2,
    "num_attention_heads": 3,
    "image_size": 12,
    "patch_size": 4,
    "num_labels": 5,
}
IMAGES = (
    "vit", "deit", "dinov2", "dinov2_gated", "beit", "beit_plain", "clip_vision_model", "siglip_vision_model"
)  # fmt: skip
STATES = (
    "bert", *IMAGES, "roberta", "xlm-roberta", "camembert", "data2vec-text", "roberta-prelayernorm", "distilbert",
    "electra", "electra_narrow", "albert", "mpnet", "modernbert", "clip_text_model", "siglip_text_model", "deberta-v2",
)  # fmt: skip
"""Families whose function is the final hidden states."""
PAIRS = ("t5", "mt5", "umt5", "bart", "marian", "mbart", "pegasus", "blenderbot")
FAMILIES: dict[str, tuple[str, dict[str, Any]]] = {
    "gpt2": ("GPT2LMHeadModel", {**COMMON, "n_embd": 24, "n_layer": 2, "n_head": 3, "n_positions": 16}),
    "bert": (
        "BertForMaskedLM",
        {**COMMON, "hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 3, "intermediate_size": 20,
         "max_position_embeddings": 16},
    ),
    "vit": (
        "ViTForImageClassification",
        {"hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 3, "intermediate_size": 20,
         "image_size": 12, "patch_size": 4, "num_channels": 3, "num_labels": 5},
    ),
    "deit": (
        "DeiTForImageClassificationWithTeacher",
        {"hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 3, "intermediate_size": 20,
         "image_size": 12, "patch_size": 4, "num_channels": 3, "num_labels": 5},
    ),
    "dinov2": ("Dinov2ForImageClassification", {**IMAGE, "mlp_ratio": 1}),
    "dinov2_gated": ("Dinov2Model", {**IMAGE, "use_swiglu_ffn": True, "use_mask_token": False, "qkv_bias": False}),
    "clip_vision_model": ("CLIPVisionModelWithProjection", {**IMAGE, "intermediate_size": 20, "projection_dim": 7}),
    "siglip_vision_model": ("SiglipVisionModel", {**IMAGE, "intermediate_size": 20}),
    "beit": (
        "BeitForImageClassification",
        {**IMAGE, "intermediate_size": 20, "use_relative_position_bias": True, "layer_scale_init_value": 0.5},
    ),
    "beit_plain": (
        "BeitForImageClassification",
        {**IMAGE, "intermediate_size": 20, "use_absolute_position_embeddings": True,
         "use_mean_pooling": False, "layer_scale_init_value": 0.0},
    ),
    "opt": (
        "OPTForCausalLM",
        {**COMMON, "hidden_size": 24, "word_embed_proj_dim": 24, "num_hidden_layers": 2, "num_attention_heads": 3,
         "ffn_dim": 20, "max_position_embeddings": 16},
    ),
    "opt_projected": (
        "OPTForCausalLM",
        {**COMMON, "hidden_size": 24, "word_embed_proj_dim": 10, "num_hidden_layers": 2, "num_attention_heads": 3,
         "ffn_dim": 20, "max_position_embeddings": 16, "do_layer_norm_before": False},
    ),
    "gpt_neox": (
        "GPTNeoXForCausalLM",
        {**COMMON, "hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 3, "intermediate_size": 20,
         "max_position_embeddings": 32, "rotary_pct": 0.5},
    ),
    "gptj": (
        "GPTJForCausalLM",
        {**COMMON, "n_embd": 24, "n_layer": 2, "n_head": 3, "n_inner": 20, "n_positions": 32, "rotary_dim": 4},
    ),
    "bloom": ("BloomForCausalLM", {**COMMON, "hidden_size": 24, "n_layer": 2, "n_head": 3}),
    "falcon": (
        "FalconForCausalLM",
        {**COMMON, "hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 3, "alibi": False},
    ),
    "falcon_new": (
        "FalconForCausalLM",
        {**COMMON, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "num_kv_heads": 2,
         "alibi": False, "new_decoder_architecture": True},
    ),
    "falcon_alibi": (
        "FalconForCausalLM",
        {**COMMON, "hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 3, "alibi": True,
         "multi_query": False, "parallel_attn": False, "bias": True},
    ),
    "llama": (
        "LlamaForCausalLM",
        {**LLAMA, "rope_parameters": {"rope_type": "llama3", "rope_theta": 10000.0, "factor": 8.0,
                                      "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                                      "original_max_position_embeddings": 16}},
    ),
    "mistral": ("MistralForCausalLM", {**LLAMA, "sliding_window": 5}),
    "qwen2": ("Qwen2ForCausalLM", LLAMA),
    "qwen3": ("Qwen3ForCausalLM", LLAMA),
    "olmo2": ("Olmo2ForCausalLM", LLAMA),
    "gemma2": (
        "Gemma2ForCausalLM",
        {**LLAMA, "tie_word_embeddings": True, "query_pre_attn_scalar": 7, "sliding_window": 5,
         "attn_logit_softcapping": 3.0, "final_logit_softcapping": 5.0},
    ),
    "phi3": ("Phi3ForCausalLM", {**LLAMA, "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0,
                                                               "partial_rotary_factor": 0.5}}),
    "cohere": ("CohereForCausalLM", {**LLAMA, "tie_word_embeddings": True, "logit_scale": 0.0625}),
    "cohere_qk_norm": (
        "CohereForCausalLM", {**LLAMA, "tie_word_embeddings": True, "logit_scale": 0.0625, "use_qk_norm": True}
    ),
    "gpt_oss": (
        "GptOssForCausalLM",
        {**LLAMA, "intermediate_size": 6, "num_local_experts": 4, "num_experts_per_tok": 2, "sliding_window": 5},
    ),
    "mixtral": (
        "MixtralForCausalLM",
        {**LLAMA, "intermediate_size": 6, "num_local_experts": 4, "num_experts_per_tok": 2, "sliding_window": 5},
    ),
    "qwen3_moe": (
        "Qwen3MoeForCausalLM",
        {**LLAMA, "num_hidden_layers": 3, "moe_intermediate_size": 6, "num_experts": 4, "num_experts_per_tok": 2,
         "mlp_only_layers": [1], "norm_topk_prob": True},
    ),
    "qwen2_moe": (
        "Qwen2MoeForCausalLM",
        {**LLAMA, "head_dim": 6, "num_hidden_layers": 2, "moe_intermediate_size": 6, "num_experts": 4,
         "num_experts_per_tok": 2, "shared_expert_intermediate_size": 10, "mlp_only_layers": [0]},
    ),
    "deepseek_v2": (
        "DeepseekV2ForCausalLM", {**LATENT, "topk_method": "group_limited_greedy", "routed_scaling_factor": 1.5}
    ),
    "deepseek_v3": (
        "DeepseekV3ForCausalLM",
        {**LATENT, "rope_parameters": {"rope_type": "yarn", "rope_theta": 10000.0, "factor": 4.0, "mscale": 1.0,
                                       "mscale_all_dim": 0.7, "beta_fast": 32, "beta_slow": 1,
                                       "original_max_position_embeddings": 16}},
    ),
    "deepseek_biased": ("DeepseekV3ForCausalLM", {**LATENT, "num_hidden_layers": 1, "attention_bias": True}),
    "gpt_bigcode": ("GPTBigCodeForCausalLM", {**COMMON, "n_embd": 24, "n_layer": 2, "n_head": 3, "n_positions": 16}),
    "gpt_bigcode_heads": (
        "GPTBigCodeForCausalLM",
        {**COMMON, "n_embd": 24, "n_layer": 1, "n_head": 3, "n_positions": 16, "multi_query": False},
    ),
    "codegen": (
        "CodeGenForCausalLM",
        {**COMMON, "n_embd": 24, "n_layer": 2, "n_head": 4, "n_positions": 32, "rotary_dim": 4},
    ),
    "mpt": ("MptForCausalLM", {**COMMON, "d_model": 24, "n_heads": 3, "n_layers": 2, "max_seq_len": 32}),
    "ministral": ("MinistralForCausalLM", {**LLAMA, "sliding_window": 5}),
    "gemma": ("GemmaForCausalLM", {**LLAMA, "tie_word_embeddings": True}),
    "gemma3_text": (
        "Gemma3ForCausalLM",
        {**LLAMA, "sliding_window": 5, "query_pre_attn_scalar": 6, "tie_word_embeddings": True,
         "layer_types": ["sliding_attention", "full_attention"], "final_logit_softcapping": 20.0},
    ),
    "olmo": ("OlmoForCausalLM", {k: v for k, v in LLAMA.items() if k != "head_dim"} | {"hidden_size": 32}),
    "olmo3": (
        "Olmo3ForCausalLM",
        {**LLAMA, "hidden_size": 32, "sliding_window": 5, "layer_types": ["sliding_attention", "full_attention"]},
    ),
    "cohere2": (
        "Cohere2ForCausalLM",
        {**LLAMA, "hidden_size": 32, "sliding_window": 5, "layer_types": ["sliding_attention", "full_attention"],
         "tie_word_embeddings": True},
    ),
    "glm": ("GlmForCausalLM", LLAMA),
    "glm4": ("Glm4ForCausalLM", LLAMA),
    "granite": (
        "GraniteForCausalLM",
        {**LLAMA, "embedding_multiplier": 3.0, "residual_multiplier": 0.22, "attention_multiplier": 0.4,
         "logits_scaling": 5.0},
    ),
    "smollm3": ("SmolLM3ForCausalLM", {**LLAMA, "no_rope_layer_interval": 2}),
    "exaone4": (
        "Exaone4ForCausalLM", {**LLAMA, "sliding_window": 5, "layer_types": ["sliding_attention", "full_attention"]},
    ),
    "ernie4_5": ("Ernie4_5ForCausalLM", {**LLAMA, "use_bias": True}),
    "starcoder2": ("Starcoder2ForCausalLM", {**LLAMA, "hidden_size": 32, "sliding_window": 5}),
    "stablelm": ("StableLmForCausalLM", {**LLAMA, "hidden_size": 32, "use_qkv_bias": True}),
    "stablelm_parallel": ("StableLmForCausalLM", {**LLAMA, "hidden_size": 32, "use_parallel_residual": True}),
    "phi": ("PhiForCausalLM", {**LLAMA, "hidden_size": 32}),
    "persimmon": (
        "PersimmonForCausalLM",
        {**COMMON, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 20,
         "max_position_embeddings": 32},
    ),
    "persimmon_plain": (
        "PersimmonForCausalLM",
        {**COMMON, "hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 3, "intermediate_size": 20,
         "max_position_embeddings": 32, "qk_layernorm": False},
    ),
    "olmoe": ("OlmoeForCausalLM", {**LLAMA, "hidden_size": 32, "num_experts": 4, "num_experts_per_tok": 2}),
    "granitemoe": (
        "GraniteMoeForCausalLM",
        {**LLAMA, "embedding_multiplier": 3.0, "residual_multiplier": 0.22, "attention_multiplier": 0.4,
         "logits_scaling": 5.0, "num_local_experts": 4, "num_experts_per_tok": 2},
    ),
    "granitemoeshared": (
        "GraniteMoeSharedForCausalLM",
        {**LLAMA, "embedding_multiplier": 3.0, "residual_multiplier": 0.22, "attention_multiplier": 0.4,
         "logits_scaling": 5.0, "num_local_experts": 4, "num_experts_per_tok": 2, "shared_intermediate_size": 7},
    ),
    "nemotron": ("NemotronForCausalLM", {**LLAMA, "attention_bias": True, "mlp_bias": True}),
    "arcee": ("ArceeForCausalLM", LLAMA),
    "glm4_moe": (
        "Glm4MoeForCausalLM",
        {**LLAMA, "moe_intermediate_size": 6, "n_routed_experts": 4, "num_experts_per_tok": 2, "use_qk_norm": True,
         "attention_bias": True},
    ),
    "dots1": (
        "Dots1ForCausalLM",
        {**LLAMA, "moe_intermediate_size": 6, "n_routed_experts": 3, "num_experts_per_tok": 2, "n_shared_experts": 2,
         "first_k_dense_replace": 1, "sliding_window": 5, "max_window_layers": 1},
    ),
    "seed_oss": ("SeedOssForCausalLM", LLAMA),
    "gpt_neo": (
        "GPTNeoForCausalLM",
        {**COMMON, "hidden_size": 24, "num_layers": 2, "num_heads": 3, "attention_types": [[["global", "local"], 1]],
         "window_size": 5, "max_position_embeddings": 16, "intermediate_size": 20},
    ),
    "roberta": ("RobertaForMaskedLM", ENCODER),
    "xlm-roberta": ("XLMRobertaForMaskedLM", ENCODER),
    "camembert": ("CamembertForMaskedLM", ENCODER),
    "data2vec-text": ("Data2VecTextForMaskedLM", ENCODER),
    "roberta-prelayernorm": ("RobertaPreLayerNormForMaskedLM", ENCODER),
    "distilbert": (
        "DistilBertForMaskedLM",
        {**COMMON, "dim": 24, "n_layers": 2, "n_heads": 3, "hidden_dim": 20, "max_position_embeddings": 16},
    ),
    "electra": ("ElectraForMaskedLM", {**ENCODER, "pad_token_id": 0, "embedding_size": 24}),
    "mpnet": ("MPNetForMaskedLM", ENCODER),
    "modernbert": (
        "ModernBertForMaskedLM",
        {**ENCODER, "num_hidden_layers": 3, "num_attention_heads": 4, "global_attn_every_n_layers": 2,
         "local_attention": 6, "max_position_embeddings": 32},
    ),
    "clip_text_model": ("CLIPTextModel", ENCODER),
    "siglip_text_model": ("SiglipTextModel", ENCODER),
    "mt5": (
        "MT5ForConditionalGeneration",
        {**COMMON, "d_model": 24, "d_kv": 6, "d_ff": 20, "num_layers": 1, "num_heads": 4, "decoder_start_token_id": 0,
         "relative_attention_num_buckets": 8, "relative_attention_max_distance": 16},
    ),
    "mamba2": (
        "Mamba2ForCausalLM",
        {**COMMON, "hidden_size": 12, "num_hidden_layers": 2, "num_heads": 4, "head_dim": 6, "state_size": 5,
         "n_groups": 2, "expand": 2, "conv_kernel": 4, "chunk_size": 8},
    ),
    "bamba": (
        "BambaForCausalLM",
        {**LLAMA, "mamba_n_heads": 4, "mamba_n_groups": 2, "mamba_d_state": 5, "mamba_expand": 1, "mamba_d_conv": 3,
         "attn_layer_indices": [1], "mamba_chunk_size": 8},
    ),
    "granitemoehybrid": (
        "GraniteMoeHybridForCausalLM",
        {**LLAMA, "head_dim": 6, "mamba_n_heads": 4, "mamba_n_groups": 2, "mamba_d_state": 5, "mamba_expand": 1,
         "mamba_d_conv": 3, "mamba_proj_bias": True, "layer_types": ["linear_attention", "full_attention"],
         "mamba_chunk_size": 8, "num_local_experts": 4, "num_experts_per_tok": 2, "shared_intermediate_size": 7,
         "embedding_multiplier": 3.0, "attention_multiplier": 0.4, "residual_multiplier": 0.7, "logits_scaling": 2.0},
    ),
    "nemotron_h": (
        "NemotronHForCausalLM",
        {**COMMON, "hidden_size": 12, "layers_block_type": ["linear_attention", "full_attention", "mlp", "moe"],
         "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 5, "intermediate_size": 9,
         "ssm_state_size": 5, "mamba_num_heads": 4, "mamba_head_dim": 3, "n_groups": 2, "conv_kernel": 3,
         "n_routed_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 5, "time_step_min": 0.1,
         "moe_shared_expert_intermediate_size": 7, "routed_scaling_factor": 1.5, "max_position_embeddings": 32},
    ),
    "qwen3_next": (
        "Qwen3NextForCausalLM",
        {**LLAMA, "hidden_size": 16, "num_hidden_layers": 2, "layer_types": ["linear_attention", "full_attention"],
         "linear_num_key_heads": 2, "linear_num_value_heads": 4, "linear_key_head_dim": 5, "linear_value_head_dim": 6,
         "linear_conv_kernel_dim": 3, "partial_rotary_factor": 0.5, "num_experts": 4, "num_experts_per_tok": 2,
         "moe_intermediate_size": 5, "shared_expert_intermediate_size": 6},
    ),
    "qwen3_5_text": (
        "Qwen3_5ForCausalLM",
        {**LLAMA, "hidden_size": 16, "num_hidden_layers": 2, "layer_types": ["linear_attention", "full_attention"],
         "linear_num_key_heads": 2, "linear_num_value_heads": 4, "linear_key_head_dim": 5, "linear_value_head_dim": 3,
         "linear_conv_kernel_dim": 3, "partial_rotary_factor": 0.5},
    ),
    "umt5": (
        "UMT5ForConditionalGeneration",
        {**COMMON, "d_model": 24, "d_kv": 5, "d_ff": 20, "num_layers": 2, "num_heads": 3, "decoder_start_token_id": 0,
         "num_decoder_layers": 1, "relative_attention_num_buckets": 8, "relative_attention_max_distance": 16},
    ),
    "bart": ("BartForConditionalGeneration", {**PAIR, "encoder_layers": 2, "decoder_layers": 2}),
    "marian": ("MarianMTModel", {**PAIR, "encoder_layers": 2, "scale_embedding": True}),
    "mbart": ("MBartForConditionalGeneration", {**PAIR, "scale_embedding": True}),
    "pegasus": ("PegasusForConditionalGeneration", {**PAIR, "scale_embedding": True}),
    "blenderbot": ("BlenderbotForConditionalGeneration", PAIR),
    "t5": (
        "T5ForConditionalGeneration",
        {**COMMON, "d_model": 24, "d_kv": 6, "d_ff": 20, "num_layers": 2, "num_decoder_layers": 2, "num_heads": 3,
         "relative_attention_num_buckets": 8, "relative_attention_max_distance": 10, "decoder_start_token_id": 0},
    ),
    "whisper": (
        "WhisperForConditionalGeneration",
        {**COMMON, "d_model": 24, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 3,
         "decoder_attention_heads": 3, "encoder_ffn_dim": 20, "decoder_ffn_dim": 20, "num_mel_bins": 6,
         "max_source_positions": 8, "max_target_positions": 16, "decoder_start_token_id": 1,
         "suppress_tokens": None, "begin_suppress_tokens": None},
    ),
    "phimoe": (
        "PhimoeForCausalLM",
        {**{k: v for k, v in LLAMA.items() if k != "head_dim"}, "hidden_size": 32, "intermediate_size": 6,
         "num_local_experts": 4, "num_experts_per_tok": 2, "attention_bias": True, "lm_head_bias": True,
         "router_jitter_noise": 0.2},
    ),
    "llama4_text": (
        "Llama4ForCausalLM",
        {**LLAMA, "intermediate_size": 6, "intermediate_size_mlp": 20, "num_local_experts": 4,
         "num_experts_per_tok": 2, "interleave_moe_layer_step": 2, "no_rope_layers": [1, 0],
         "attention_chunk_size": 4, "floor_scale": 3, "attn_scale": 0.4},
    ),
    "falcon_h1": (
        "FalconH1ForCausalLM",
        {**LLAMA, "hidden_size": 16, "head_dim": 6, "mamba_d_ssm": 16, "mamba_n_heads": 4, "mamba_d_head": 4,
         "mamba_n_groups": 2, "mamba_d_state": 5, "mamba_d_conv": 3, "mamba_chunk_size": 8, "mamba_rms_norm": True,
         "embedding_multiplier": 3.0, "lm_head_multiplier": 0.5, "attention_in_multiplier": 0.5,
         "attention_out_multiplier": 2.0, "ssm_in_multiplier": 2.0, "ssm_out_multiplier": 0.25, "key_multiplier": 4.0,
         "mlp_multipliers": [0.5, 2.0], "ssm_multipliers": [0.5, 0.25, 2.0, 4.0, 0.125]},
    ),
    "falcon_h1_plain": (
        "FalconH1ForCausalLM",
        {**LLAMA, "hidden_size": 16, "num_hidden_layers": 1, "mamba_d_ssm": 12, "mamba_n_heads": 4, "mamba_d_head": 3,
         "mamba_d_state": 5, "mamba_d_conv": 3, "mamba_chunk_size": 8, "mamba_proj_bias": True},
    ),
    "olmo_hybrid": (
        "OlmoHybridForCausalLM",
        {**LLAMA, "hidden_size": 16, "head_dim": 4, "num_key_value_heads": 4,
         "layer_types": ["linear_attention", "full_attention"],
         "linear_num_key_heads": 2, "linear_num_value_heads": 2, "linear_key_head_dim": 5, "linear_value_head_dim": 6,
         "linear_conv_kernel_dim": 3},
    ),
    "minimax": (
        "MiniMaxForCausalLM",
        {**LLAMA, "hidden_size": 16, "head_dim": 6, "num_hidden_layers": 3, "intermediate_size": 5,
         "layer_types": ["linear_attention", "full_attention", "linear_attention"], "block_size": 4,
         "num_local_experts": 4, "num_experts_per_tok": 2, "full_attn_alpha_factor": 1.5, "full_attn_beta_factor": 0.75,
         "linear_attn_alpha_factor": 1.25, "linear_attn_beta_factor": 5.0, "mlp_alpha_factor": 1.75,
         "mlp_beta_factor": 3.5},
    ),
    "recurrent_gemma": (
        "RecurrentGemmaForCausalLM",
        {**COMMON, "hidden_size": 16, "lru_width": 12, "num_hidden_layers": 3, "num_attention_heads": 2,
         "num_key_value_heads": 1, "intermediate_size": 14, "conv1d_width": 3, "attention_window_size": 5,
         "logits_soft_cap": 5.0, "use_cache": False},
    ),
    "electra_narrow": ("ElectraForMaskedLM", {**ENCODER, "pad_token_id": 0, "embedding_size": 10}),
    "albert": (
        "AlbertForMaskedLM",
        {**ENCODER, "pad_token_id": 0, "embedding_size": 10, "num_hidden_layers": 4, "num_hidden_groups": 2},
    ),
    "deberta-v2": (
        "DebertaV2ForMaskedLM",
        {**ENCODER, "pad_token_id": 0, "relative_attention": True, "position_buckets": 4, "max_relative_positions": -1,
         "pos_att_type": ["p2c", "c2p"], "norm_rel_ebd": "layer_norm", "share_att_key": True,
         "position_biased_input": False, "type_vocab_size": 0, "max_position_embeddings": 16},
    ),
}  # fmt: skip
ATTENTION = {"falcon_alibi": "sdpa"}
"""Eager attention otherwise. For Falcon with ALiBi transformers 5.22 adds the slopes twice there, and once in sdpa."""


DECAYS = ("slope_rate", "query_decay", "key_decay", "diagonal_decay")
"""Tables of decays that MiniMax writes into its files."""


def unsaved(model: Any) -> tuple[str, ...]:
    """Weights that are no weights: fixed tables that transformers makes anew."""
    decays = [name for name in model.state_dict() if name.endswith(DECAYS)]
    return (*(getattr(model, "_keys_to_ignore_on_save", None) or ()), *decays)


def perturb(model: Any, generator: torch.Generator) -> None:
    """Random weights of moderate size everywhere: gains near 1, biases near 0, nothing at its initial value."""
    with torch.no_grad():
        seen = set()
        for name, tensor in [*model.named_parameters(), *model.named_buffers()]:
            if not tensor.is_floating_point() or tensor.data_ptr() in seen or "inv_freq" in name:
                continue
            stored = "e_score_correction_bias" in name or "final_logits_bias" in name
            if (name in dict(model.named_buffers()) and not stored) or name in unsaved(model):
                continue
            seen.add(tensor.data_ptr())
            noise = torch.randn(tensor.shape, generator=generator, dtype=torch.float32)
            if tensor.ndim >= 2:
                # 0.35 keeps scores of order one at these widths, so that no head is near uniform.
                tensor.copy_(0.35 * noise)
            elif "norm" in name.lower() or "ln_" in name:
                offset = any(word in type(model).__name__ for word in ("Gemma", "Nemotron"))
                base = 0.0 if name.endswith("bias") or offset else 1.0
                tensor.copy_(base + 0.25 * noise)
            else:
                tensor.copy_(0.3 * noise)


def inputs_of(family: str, generator: torch.Generator) -> dict[str, torch.Tensor]:
    tokens = torch.randint(3, 23, (1, TOKENS), generator=generator)
    if family in IMAGES:
        return {"pixel_values": torch.randn((1, 3, 12, 12), generator=generator, dtype=torch.float64)}
    if family == "whisper":
        mel = torch.randn((1, 6, 16), generator=generator, dtype=torch.float64)
        return {"input_features": mel, "decoder_input_ids": tokens[:, :7]}
    if family in PAIRS:
        return {"input_ids": tokens, "decoder_input_ids": tokens[:, :7].flip(1).contiguous()}
    if family in ("bert", "electra", "electra_narrow", "albert"):
        return {"input_ids": tokens, "token_type_ids": (tokens > 11).long()}
    return {"input_ids": tokens}


@contextlib.contextmanager
def in_double() -> Iterator[None]:
    """Let every name of single precision in torch mean double precision."""
    kept = torch.float32, torch.float, torch.Tensor.float
    scan = transformers.models.recurrent_gemma.modeling_recurrent_gemma.RecurrentGemmaRglru._rnn_scan
    scanned, scan.__defaults__ = scan.__defaults__, (torch.float64,)
    torch.float32 = torch.float = torch.float64
    torch.Tensor.float = torch.Tensor.double
    torch.set_default_dtype(torch.float64)
    try:
        yield
    finally:
        torch.float32, torch.float, torch.Tensor.float = kept
        scan.__defaults__ = scanned
        torch.set_default_dtype(torch.float32)


def make(family: str) -> None:
    class_name, settings = FAMILIES[family]
    folder = HERE / family
    shutil.rmtree(folder, ignore_errors=True)
    cls = getattr(transformers, class_name)
    config = cls.config_class(**settings)
    config._attn_implementation = ATTENTION.get(family, "eager")
    config._experts_implementation = "eager"
    generator = torch.Generator().manual_seed(sum(map(ord, family)))
    torch.manual_seed(0)
    model = cls(config).eval()
    perturb(model, generator)
    model.half().save_pretrained(folder)
    inputs = inputs_of(family, generator)
    with in_double(), torch.no_grad():
        double = cls(config).double().eval()
        state = {name: tensor.to(torch.float64) for name, tensor in model.state_dict().items()}
        fixed = {name: double.state_dict()[name] for name in unsaved(model)}
        double.load_state_dict({**state, **fixed})
        record = {name: tensor.numpy() for name, tensor in inputs.items()}
        if family in STATES:
            record["hidden"] = double.base_model(**inputs).last_hidden_state.numpy()
        else:
            record["logits"] = double(**inputs).logits.numpy()
    record = {name: np.ascontiguousarray(array) for name, array in record.items()}
    versions = {"torch": torch.__version__, "transformers": transformers.__version__, "class": class_name}
    save_file(record, folder / "reference.safetensors", metadata=versions)
    for extra in ("generation_config.json",):
        (folder / extra).unlink(missing_ok=True)
    kept = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(kept, indent=1, sort_keys=True) + "\n")
    size = sum(path.stat().st_size for path in folder.iterdir())
    print(f"{family}: {size:,} bytes, largest output {np.abs(record.get('hidden', record.get('logits'))).max():.3g}")


if __name__ == "__main__":
    for name in sys.argv[1:] or FAMILIES:
        make(name)
