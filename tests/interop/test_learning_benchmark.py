"""The folder for estimators: weights and record read back, and its module computes the network of this package."""

from __future__ import annotations

import json
import sys
import types
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file

from attngeom.errors import InputError
from attngeom.exact import QQ, RR
from attngeom.interop import read_weights
from attngeom.interop.learning_benchmark import MODULE, write_benchmark
from attngeom.learning import learning_coefficient
from attngeom.network import Architecture, Weights, forward, random_weights
from tests.learning.cases import aligned


class Stand(np.ndarray):  # type: ignore[type-arg]
    """NumPy with the few methods of torch that the module uses."""

    def masked_fill(self, hidden: Any, value: float) -> Any:
        return np.where(hidden, value, self).view(Stand)

    def bool(self) -> Any:
        return self.astype(bool)


def numpy_torch() -> types.ModuleType:
    """A module named torch made of NumPy: the arithmetic of the file is tested, not torch."""
    torch: Any = types.ModuleType("torch")

    def softmax(S: Any, dim: int) -> Any:
        powers = np.exp(S - S.max(axis=dim, keepdims=True))
        return (powers / powers.sum(axis=dim, keepdims=True)).view(Stand)

    class Module:
        def register_parameter(self, name: str, value: Any) -> None:
            setattr(self, name, value.view(Stand))

        def __call__(self, X: Any) -> Any:
            return self.forward(X.view(Stand))  # type: ignore[attr-defined]

    torch.nn = types.SimpleNamespace(Module=Module, Parameter=lambda tensor: tensor)
    torch.einsum = lambda rule, *arrays: np.einsum(rule, *arrays).view(Stand)
    torch.tril = lambda a, k: np.tril(a, k).view(Stand)
    torch.ones = lambda shape: np.ones(shape)
    torch.softmax, torch.inf = softmax, np.inf
    torch.sigmoid = lambda S: 1 / (1 + np.exp(-S))
    return torch


@pytest.mark.parametrize(
    "architecture",
    [
        Architecture((2, 2), 1, tokens=2, causal=True),
        Architecture((2, 2, 2), 1, tokens=3, residual=True),
        Architecture((2, 2), 1, tokens=3, kind="softmax", heads=2, temperature="1/2"),
        Architecture((2, 2), 1, tokens=3, kind="softmax", causal=True),
        Architecture((2, 3), 2, tokens=2, kind="sigmoid", value_width=1),
    ],
)
def test_the_module_computes_the_network(
    architecture: Architecture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    weights = random_weights(architecture, QQ, seed=1)
    found = learning_coefficient(weights)
    paths = write_benchmark(found, tmp_path / "b")
    record = json.loads(paths[1].read_text())
    assert (record["lambda"], record["multiplicity"]) == (str(found.value), found.multiplicity)
    assert read_weights(paths[0]).equals(weights.to(RR))
    loader: Any = types.ModuleType("safetensors.torch")
    loader.load_file = load_file
    monkeypatch.setitem(sys.modules, "torch", numpy_torch())
    monkeypatch.setitem(sys.modules, "safetensors.torch", loader)
    scope: dict[str, Any] = {"__file__": str(paths[2]), "__name__": "network"}
    exec(compile(paths[2].read_text(), "network.py", "exec"), scope)
    X = np.random.default_rng(0).standard_normal((4, architecture.widths[0], architecture.tokens))
    assert np.allclose(scope["Network"]()(X), forward(weights.to(RR), X), rtol=1e-9)


def test_the_module_is_short() -> None:
    assert len(MODULE.splitlines()) < 50


def test_what_is_not_proven_or_would_be_rounded_is_refused(tmp_path: Path) -> None:
    point = aligned(2, 2, 1, (1, 1))
    thirds = {name: array / 3 for name, array in point.tensors()}
    with pytest.raises(InputError, match="rounding"):
        write_benchmark(learning_coefficient(Weights.from_tensors(point.architecture, thirds, QQ)), tmp_path / "b")
    with pytest.raises(InputError, match="not proven"):
        write_benchmark(learning_coefficient(point.to(RR)), tmp_path / "b")
    assert not (tmp_path / "b").exists()
