"""Reference checkpoints made with transformers, and models derived from them in memory."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import load_file

from attngeom.exact.arrays import Array
from attngeom.groups import Sampler
from attngeom.models import Model, ModelComparison, open_model
from attngeom.models.evaluation import forward
from attngeom.models.layer import LayerWeights, parts_of

DATA = Path(__file__).parent / "data"
FAMILIES = sorted(path.name for path in DATA.iterdir() if (path / "config.json").is_file())
ROTATABLE = (
    "llama",
    "mistral",
    "mixtral",
    "qwen2",
    "qwen3",
    "qwen3_moe",
    "phi3",
    "gpt_oss",
    "deepseek_v2",
    "deepseek_v3",
    "deepseek_biased",
    "gpt_neox",
    "gptj",
)


@cache
def reference(family: str) -> Model:
    return open_model(DATA / family)


@cache
def inputs(family: str) -> dict[str, np.ndarray]:
    tensors = load_file(DATA / family / "reference.safetensors")
    return {name: tensor[0] for name, tensor in tensors.items() if name not in ("logits", "hidden")}


@cache
def expected(family: str) -> np.ndarray:
    tensors = load_file(DATA / family / "reference.safetensors")
    return (tensors["hidden"] if "hidden" in tensors else tensors["logits"])[0]


def outputs(family: str, model: Model) -> np.ndarray:
    return forward(model, inputs(family))


def relative(y: np.ndarray, z: np.ndarray) -> float:
    return float(np.abs(y - z).max() / np.abs(z).max())


def state_of(model: Model) -> dict[str, np.ndarray]:
    """All tensors in float64."""
    return {name: model.tensors.raw(name).astype(np.float64) for name in model.tensors}


def in_type(model: Model, dtype: Any) -> Model:
    return open_model({name: tensor.astype(dtype) for name, tensor in state_of(model).items()}, model.config)


def changed(model: Model, name: str, change: Callable[[np.ndarray], np.ndarray]) -> Model:
    """The model with one tensor changed."""
    state = state_of(model)
    state[name] = np.ascontiguousarray(change(state[name].copy()))
    return open_model(state, model.config)


def wrong(found: ModelComparison) -> set[str]:
    return {mismatch.part for layer in found.layers for _, mismatch in layer.wrong}


def scaled(model, **factors: float):
    state = state_of(model)
    for name in state:
        for part, factor in factors.items():
            if part.replace("__", ".") in name:
                state[name] = state[name] * factor
    return open_model(state, model.config)


class ExactSampler(Sampler):
    """Symmetries without rounding: orders, signs, powers of two, quarter turns; no shifts."""

    def scales(self, *shape: int) -> np.ndarray:
        return 2.0 ** self.rng.integers(-2, 3, shape)

    def phases(self, *shape: int) -> np.ndarray:
        return np.array([1, 1j, -1, -1j])[self.rng.integers(0, 4, shape)]

    def orthogonal(self, count: int, size: int) -> np.ndarray:
        found = np.zeros((count, size, size))
        for matrix in found:
            matrix[np.arange(size), self.rng.permutation(size)] = self.signs(size)
        return found

    def invertible(self, count: int, size: int) -> np.ndarray:
        return self.orthogonal(count, size) * self.scales(count, 1, size)

    def shift(self, size: int | tuple[int, ...] = ()) -> np.ndarray:
        return np.zeros(size)


def distance(one: LayerWeights, other: LayerWeights) -> float:
    """Largest relative difference of two layers over all arrays, measured array by array in the largest norm.

    >>> distance_of(np.ones(2), np.array([1.0, 1.5]))
    0.3333333333333333
    """
    left, right = parts_of(one), parts_of(other)
    if left.keys() != right.keys():
        return float("inf")
    return max((distance_of(left[name], right[name]) for name in left), default=0.0)


def distance_of(a: Array, b: Array) -> float:
    """max |a − b| / max(|a|, |b|), 0 for two zero arrays, infinite for different shapes."""
    if a.shape != b.shape:
        return float("inf")
    if not a.size:
        return 0.0
    size = max(float(np.abs(a).max()), float(np.abs(b).max()))
    return float(np.abs(a - b).max()) / size if size else 0.0
