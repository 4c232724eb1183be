"""Find a conversion bug: queries and keys of one layer left in interleaved order in a model that turns halves.

Converters between checkpoint formats permute the rows of q and k. If one is forgotten, shapes fit, nothing fails, and
the logits are wrong. `compare` names the layer and the tensors; the fingerprint tells the good conversion from the bad.

    python examples/models_conversion_bug.py
"""

from __future__ import annotations

import numpy as np

from attngeom.models import compare, fingerprint, forward, open_model
from attngeom.models.samples import LLAMA, random_model


def interleave(rows: np.ndarray, heads: int) -> np.ndarray:
    """Rows of every head from half-split to interleaved pairs."""
    width = len(rows) // heads
    order = np.arange(width).reshape(2, -1).T.reshape(-1)
    return rows.reshape(heads, width, -1)[:, order].reshape(rows.shape)


def main() -> dict[str, object]:
    model = random_model(LLAMA, seed=1)
    state = {name: model.tensors.raw(name).copy() for name in model.tensors}
    for part, heads in (("q", 4), ("k", 2)):
        name = f"model.layers.1.self_attn.{part}_proj.weight"
        state[name] = interleave(state[name], heads)
    converted = open_model(state, model.config)
    tokens = {"input_ids": np.arange(3, 19)}
    gap = np.abs(forward(model, tokens) - forward(converted, tokens)).max()
    found = compare(model, converted)
    wrong = [name for layer in found.layers for name, _ in layer.wrong]
    print(f"largest change of a logit: {gap:.2f}")
    print(f"verdict: {found.same_function}, wrong tensors: {', '.join(wrong)}")
    print(f"fingerprints agree: {fingerprint(model).digest == fingerprint(converted).digest}")
    return {"gap": float(gap), "same": found.same_function, "wrong": wrong}


if __name__ == "__main__":
    main()
