"""Check a rotated model: was the residual stream of a Llama turned rightly, as quantisation tools do?

A random orthogonal matrix is folded into embedding, head and every layer, gains of the norms included. At layer scope
the two models differ everywhere; at model scope they are the same function. A third model, in which one tensor was
forgotten, is told apart, and the tensor is named.

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
    at_layers = compare(model, rotated, level="rounding")
    at_model = compare(model, rotated, level="rounding", scope="model")
    broken = compare(model, forgotten, level="rounding", scope="model")
    wrong = [tensor for layer in broken.layers for tensor, _ in layer.wrong]
    print(f"layer scope: {at_layers.same_function}; model scope: {at_model.same_function} ({at_model.reason})")
    print(f"one tensor not rotated: {broken.same_function}, wrong: {', '.join(wrong)}")
    return {"layers": at_layers.same_function, "model": at_model.same_function, "wrong": wrong}


if __name__ == "__main__":
    main()
