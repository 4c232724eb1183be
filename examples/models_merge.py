"""Merge two fine-tuned copies: averages of weights need the same gauge.

The first model writes a text (its own samples). A copy with noise, as after fine-tuning, is moved along its fiber: same
function, other weights. The plain average of the two is worse than either; after `align` it is as good as they are.

    python examples/models_merge.py
"""

from __future__ import annotations

import numpy as np

from attngeom.models import Model, align, forward, open_model, teleport
from attngeom.models.samples import LLAMA, random_model

NOISE = 0.02


def sample(model: Model, length: int, rng: np.random.Generator) -> np.ndarray:
    """A text that the model writes."""
    tokens = [int(rng.integers(model.spec.vocabulary))]
    for _ in range(length - 1):
        logits = forward(model, {"input_ids": np.array(tokens)})[-1]
        chances = np.exp(logits - logits.max())
        tokens.append(int(rng.choice(len(chances), p=chances / chances.sum())))
    return np.array(tokens)


def loss(model: Model, texts: list[np.ndarray]) -> float:
    """Mean cross-entropy of the next token."""
    total = 0.0
    for text in texts:
        logits = forward(model, {"input_ids": text[:-1]})
        top = logits.max(axis=1, keepdims=True)
        chances = logits - top - np.log(np.exp(logits - top).sum(axis=1, keepdims=True))
        total -= float(chances[np.arange(len(text) - 1), text[1:]].mean())
    return total / len(texts)


def tensors(model: Model) -> dict[str, np.ndarray]:
    return {name: np.asarray(model.tensors.raw(name), dtype=np.float64) for name in model.tensors}


def average(one: Model, other: Model) -> Model:
    left, right = tensors(one), tensors(other)
    return open_model({name: (left[name] + right[name]) / 2 for name in left}, one.config)


def main() -> dict[str, float]:
    rng = np.random.default_rng(0)
    first = random_model(LLAMA, seed=4)
    noisy = {name: tensor * (1 + NOISE * rng.normal(size=tensor.shape)) for name, tensor in tensors(first).items()}
    second = teleport(open_model(noisy, first.config), seed=5).moved()
    texts = [sample(first, 24, rng) for _ in range(12)]
    losses = {
        "first": loss(first, texts),
        "second": loss(second, texts),
        "plain average": loss(average(first, second), texts),
        "after align": loss(average(first, align(first, second).moved()), texts),
    }
    for name, value in losses.items():
        print(f"{name:15s} {value:.3f}")
    return losses


if __name__ == "__main__":
    main()
