"""Compact folders: every bit comes back, hostile plans are refused, and as much is left out as the layer can spare."""

from __future__ import annotations

import json

import ml_dtypes
import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from attngeom.cli.app import run
from attngeom.errors import FormatError
from attngeom.models import canonicalize, open_model, redundancy, write_model
from attngeom.models.compact import PLAN, pack, unpack
from tests.effort import choose
from tests.models.cases import DATA, FAMILIES, outputs, reference

TYPES = (np.float64, np.float32, np.float16, ml_dtypes.bfloat16)


def tensors(seed: int, count: int):
    rng = np.random.default_rng(seed)
    for number in range(count):
        shape = tuple(rng.integers(1, 9, size=rng.integers(0, 4)))
        tensor = rng.choice([0.0, 1.0, -0.0, 0.5, 2.0, np.nan], size=shape, p=[0.4, 0.3, 0.05, 0.1, 0.1, 0.05])
        if number % 3 == 0 and len(shape) == 2:
            tensor = np.roll(np.eye(*shape), 1, axis=1)
        yield np.asarray(tensor).astype(TYPES[number % 4])


def test_every_bit_comes_back():
    for tensor in tensors(0, 600):
        back = unpack(*pack(tensor), "x")
        assert (back.shape, back.dtype) == (tensor.shape, tensor.dtype)
        assert back.tobytes() == tensor.tobytes()


def test_plans_that_lie_are_refused():
    rng = np.random.default_rng(1)
    refused = 0
    for tensor in tensors(2, 600):
        kept, plan = pack(tensor)
        plan = plan.copy()
        plan[rng.integers(len(plan))] = rng.choice([-(2**62), -2, -1, 0, 1, 2, 5, 2**40])
        try:
            assert unpack(kept, plan, "x").size <= tensor.size + 10**4
        except FormatError as error:
            assert len(str(error)) < 200
            refused += 1
    assert refused > 200


@pytest.mark.parametrize("family", FAMILIES[:: choose(2, 1)])
def test_compact_folders_have_the_function_of_the_model(family, tmp_path):
    model = reference(family)
    write_model(canonicalize(model, "echelon"), tmp_path / "compact", compact=True)
    small = open_model(tmp_path / "compact")
    stored = load_file(tmp_path / "compact" / "compact.safetensors")
    sizes = {name: int(np.prod(header.shape)) for name, header in model.tensors.headers.items()}
    assert any(name.endswith(PLAN) for name in stored)
    dropped = sum(size - stored[name].size for name, size in sizes.items())
    assert (
        0 < dropped <= redundancy(model.spec).layer_scope + sum(size for name, size in sizes.items() if "norm" in name)
    )
    y = outputs(family, model)
    assert np.abs(outputs(family, small) - y).max() < 2e-5 * np.abs(y).max()


def test_redundant_entries_of_a_gpt2_layer_are_left_out(tmp_path):
    """2·H·a² + 13·d entries of one layer: all that it can spare but one (12 heads of width 64: 108,288)."""
    from attngeom.models.samples import random_model

    config = {"model_type": "gpt2", "n_embd": 64, "n_layer": 1, "n_head": 4, "n_positions": 8, "vocab_size": 11}
    model = random_model(config)
    write_model(canonicalize(model, "echelon"), tmp_path / "compact", compact=True)
    stored = load_file(tmp_path / "compact" / "compact.safetensors")
    kept = sum(array.size for name, array in stored.items() if not name.endswith(PLAN))
    assert model.spec.parameters - kept == 2 * 4 * 16**2 + 13 * 64 == redundancy(model.spec).layer_scope - 1
    whole = write_model(canonicalize(open_model(tmp_path / "compact")), tmp_path / "whole")
    assert whole.check.same_function is True


def test_command(tmp_path, capsys):
    out = tmp_path / "compact"
    assert run(["model", "canonicalize", str(DATA / "llama"), "--out", str(out), "--compact", "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert record["compact"] is True and record["gauge"] == "echelon"
    assert run(["model", "compare", str(DATA / "llama"), str(out)]) == 0
    refused = ["model", "canonicalize", str(DATA / "llama"), "--out", str(tmp_path / "x"), "--compact"]
    assert run([*refused, "--gauge", "rotated"]) == 2
    assert not (tmp_path / "x").exists()


def test_damaged_folders_are_refused(tmp_path):
    write_model(canonicalize(reference("gpt2"), "echelon"), tmp_path / "compact", compact=True)
    path = tmp_path / "compact" / "compact.safetensors"
    stored = load_file(path)
    name = next(name for name in stored if name.endswith(PLAN))
    path.unlink()
    save_file({**stored, name: stored[name][:-1]}, path)
    with pytest.raises(FormatError, match="plan"):
        open_model(tmp_path / "compact").tensors.raw(name.removesuffix(PLAN))
