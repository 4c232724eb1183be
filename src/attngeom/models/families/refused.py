"""Model types that people have and that are not read: what their blocks have that no description knows."""

from __future__ import annotations

from collections.abc import Mapping

CONV = "a convolution over tokens before the scores"
STATES = "a recurrent state with a decay of every channel (Mamba-1)"
SCALES = "a vector of scales on what each sublayer writes"
PAIR = "two towers in one file; inspect, compare and the like take its folder, for the rest save one tower alone"
PARTS = "several models in one file; save the text model as a model of its own (its class ends in ForCausalLM)"

MISSING: Mapping[str, str] = {
    "apertus": "an activation with learned constants",
    "bitnet": "norms inside of attention and MLP",
    "clip": PAIR,
    "dbrx": "clamped queries, keys and values",
    "deberta": "scores of contents against positions",
    "dinov2_with_registers": "tokens without a position",
    "dinov3_vit": f"{SCALES}, and rotary positions in two directions",
    "falcon_mamba": STATES,
    "gemma3": PARTS,
    "gemma3n": "several residual streams that are mixed",
    "gemma4": PARTS,
    "hunyuan_v1_dense": "QK-norms behind the rotation",
    "jamba": STATES,
    "kimi_linear": "a delta rule with a decay of every channel",
    "lfm2": CONV,
    "llama4": PARTS,
    "mamba": STATES,
    "mistral3": PARTS,
    "qwen2_vl": PARTS,
    "qwen3_5": PARTS,
    "qwen3_vl": PARTS,
    "siglip": PAIR,
    "zamba2": "attention and an MLP that several layers share",
}
"""What is missing, for each model type."""
