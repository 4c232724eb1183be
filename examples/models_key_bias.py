"""Why key biases can be dropped: softmax forgets what is added to all scores of a token.

In GPT-2 a bias b of the keys adds ⟨b, q_i⟩ to every score of token i. The biases are set to zero and nothing changes;
with rotary positions (Qwen2) they are rotated with the position of the key, and dropping them changes the function.

    python examples/models_key_bias.py
"""

from __future__ import annotations

import numpy as np

from attngeom.models import Model, compare, forward, open_model
from attngeom.models.samples import GPT2, LLAMA, random_model

QWEN2 = {**LLAMA, "model_type": "qwen2", "architectures": ["Qwen2ForCausalLM"]}


def without_key_biases(model: Model) -> Model:
    state = {name: np.array(model.tensors.raw(name)) for name in model.tensors}
    for name, tensor in state.items():
        if name.endswith("c_attn.bias"):
            width = len(tensor) // 3
            tensor[width : 2 * width] = 0
        elif name.endswith("k_proj.bias"):
            tensor[:] = 0
    return open_model(state, model.config)


def main() -> dict[str, dict[str, object]]:
    found: dict[str, dict[str, object]] = {}
    tokens = {"input_ids": np.arange(2, 20)}
    for name, config in (("gpt2", GPT2), ("qwen2", QWEN2)):
        model = random_model(config, seed=6)
        bare = without_key_biases(model)
        gap = float(np.abs(forward(model, tokens) - forward(bare, tokens)).max())
        verdict = compare(model, bare)
        print(f"{name}: logits change by {gap:.1e}; same function: {verdict.same_function} ({verdict.level})")
        found[name] = {"gap": gap, "same": verdict.same_function, "level": verdict.level}
    return found


if __name__ == "__main__":
    main()
