"""Check a rotated model: was the residual stream of a Llama rotated rightly, as quantisation tools do?

A random orthogonal matrix is folded into embedding, head and every layer, gains of the norms included. Every tensor
differs, and the function is the same: `compare` finds the turn of the stream. A third model, in which one tensor was
forgotten, is told apart; at model scope the tensor is named.

    python examples/models_rotated.py
"""

from __future__ import annotations

import numpy as np

from attngeom.models import compare, open_model, teleport
from attngeom.models.samples import LLAMA, random_model


def main() -> dict[str, object]:
    model = random_model(LLAMA, seed=2)
    rotated = teleport(model, seed=3, parts=("residual",)).moved()
    name = "model.layers.1.self_attn.o_proj.weight"
    state = {key: np.asarray(rotated.tensors.raw(key)) for key in rotated.tensors}
    forgotten = open_model({**state, name: model.tensors.raw(name)}, model.config)
    found = compare(model, rotated)
    broken = compare(model, forgotten, level="rounding", scope="model")
    wrong = [tensor for layer in broken.layers for tensor, _ in layer.wrong]
    print(f"rotated: {found.same_function} ({found.reason})")
    print(f"one tensor not rotated: {broken.same_function}, wrong: {', '.join(wrong)}")
    return {"rotated": found.same_function, "forgotten": compare(model, forgotten).same_function, "wrong": wrong}


if __name__ == "__main__":
    main()
