"""The examples run and show what their texts say."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"


def load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_conversion_bug() -> None:
    found = load("models_conversion_bug").main()
    assert found["gap"] > 0.1 and found["same"] is False
    assert found["wrong"] == [f"model.layers.1.self_attn.{part}_proj.weight" for part in "qk"]


def test_rotated_model() -> None:
    found = load("models_rotated").main()
    assert found["rotated"] is True and found["forgotten"] is False
    assert found["wrong"] == ["model.layers.1.self_attn.o_proj.weight"]


def test_merge() -> None:
    found = load("models_merge").main()
    copies = max(found["first"], found["second"])
    assert found["plain average"] > copies + 0.5
    assert found["after align"] == pytest.approx(copies, abs=0.05)


def test_key_bias() -> None:
    found = load("models_key_bias").main()
    assert found["gpt2"]["gap"] < 1e-12 and found["gpt2"]["same"] is True and found["gpt2"]["level"] == "exact"
    assert found["qwen2"]["gap"] > 0.01 and found["qwen2"]["same"] is False
