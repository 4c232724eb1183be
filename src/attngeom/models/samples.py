"""Random models of any family, made on the spot: for examples, benchmarks and tests without downloads."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from attngeom.exact.arrays import Array
from attngeom.models.configuration import Config
from attngeom.models.families import family_of
from attngeom.models.model import Model, open_model
from attngeom.models.reading import Tensors

LLAMA: Mapping[str, Any] = {
    "model_type": "llama", "architectures": ["LlamaForCausalLM"], "vocab_size": 40, "hidden_size": 32,
    "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 8,
    "rms_norm_eps": 1e-6, "rope_theta": 10000.0, "tie_word_embeddings": False, "max_position_embeddings": 64,
    "hidden_act": "silu",
}  # fmt: skip
"""A small Llama: rotary positions, grouped heads, gated MLP, untied head."""

GPT2: Mapping[str, Any] = {
    "model_type": "gpt2", "architectures": ["GPT2LMHeadModel"], "vocab_size": 40, "n_embd": 32, "n_layer": 2,
    "n_head": 4, "n_positions": 64, "activation_function": "gelu_new", "layer_norm_epsilon": 1e-5,
}  # fmt: skip
"""A small GPT-2: LayerNorm, biases everywhere, learned positions, tied head."""


def tensor_shapes(config: Mapping[str, Any]) -> dict[str, tuple[int, ...]]:
    """Names and shapes of all tensors that a config asks for."""
    family = family_of(config)
    empty = Tensors({}, lambda name: np.zeros(0), "none")
    model = Model(family.specify(Config(config)), family.locate(Config(config)), empty, config)
    shapes = dict(model.outer_names())
    for layer in range(model.layers):
        shapes |= model.layer_names(layer)
    return shapes


def random_tensor(rng: np.random.Generator, name: str, shape: tuple[int, ...], dtype: Any = np.float64) -> Array:
    """Matrices with entries of variance 2/width, gains near 1, biases near 0."""
    noise = rng.standard_normal(size=shape, dtype=np.float64 if dtype == np.float64 else np.float32)
    if len(shape) == 1:
        return np.asarray((0.2 * noise + (0.0 if name.endswith("bias") else 1.0)).astype(dtype))
    return np.asarray((noise * (2.0 / shape[-1]) ** 0.5).astype(dtype))


def random_model(config: Mapping[str, Any], seed: int = 0, dtype: Any = np.float64) -> Model:
    """A model in memory with random weights.

    >>> random_model(LLAMA).spec.parameters
    18080
    """
    rng = np.random.default_rng(seed)
    state = {name: random_tensor(rng, name, shape, dtype) for name, shape in tensor_shapes(config).items()}
    return open_model(state, config)
