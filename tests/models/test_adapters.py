"""LoRA adapters: the same change up to GL(r), the module that is wrong, canonical forms, bad folders."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from flint import fmpz_mat
from safetensors.numpy import load_file, save_file

from attngeom.cli.app import run
from attngeom.errors import InputError
from attngeom.models.adapters import canonical_adapter, compare_adapters, open_adapter, write_adapter
from attngeom.models.residues import P, random_residues
from attngeom.models.samples import LLAMA, random_model

R, ALPHA = 3, 6
MODULES = [f"base_model.model.model.layers.{layer}.self_attn.{name}_proj" for layer in (0, 1) for name in "qv"]
CONFIG = {"peft_type": "LORA", "r": R, "lora_alpha": ALPHA, "bias": "none", "target_modules": ["q_proj", "v_proj"]}


def pairs(seed: int = 0) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    found = {}
    for module in MODULES:
        found[f"{module}.lora_A.weight"] = rng.normal(size=(R, 10))
        found[f"{module}.lora_B.weight"] = rng.normal(size=(8, R))
    return found


def folder(place: Path, tensors: dict[str, np.ndarray], dtype: Any = np.float32, **config: Any) -> Path:
    place.mkdir()
    (place / "adapter_config.json").write_text(json.dumps({**CONFIG, **config}))
    save_file(
        {n: np.ascontiguousarray(t.astype(dtype)) for n, t in tensors.items()}, place / "adapter_model.safetensors"
    )
    return place


def moved(tensors: dict[str, np.ndarray], matrix: np.ndarray, factor: float = 1.0) -> dict[str, np.ndarray]:
    """(B C⁻¹, C A), and A times the factor."""
    found = {}
    for name, tensor in tensors.items():
        is_down = name.endswith("A.weight")
        found[name] = factor * matrix @ tensor if is_down else tensor @ np.linalg.inv(matrix)
    return found


def test_the_group_keeps_the_change(tmp_path: Path) -> None:
    source = open_adapter(folder(tmp_path / "a", pairs()))
    assert source.redundancy == 4 * R**2 and source.parameters == 4 * R * 18
    order = np.diag([2.0, -0.5, 1.0])[[2, 0, 1]]
    exact = compare_adapters(source, open_adapter(folder(tmp_path / "b", moved(pairs(), order), np.float64)))
    # The float32 file has rounded numbers, the float64 file has not: the same within rounding only.
    assert exact.same_change is True and exact.level == "rounding"
    stored = load_file(tmp_path / "a" / "adapter_model.safetensors")
    exact = compare_adapters(source, open_adapter(folder(tmp_path / "c", moved(stored, order))))
    assert exact.same_change is True and exact.level == "exact" and exact.standing == "probabilistic"
    scaled = folder(tmp_path / "d", moved(stored, order, 0.5), lora_alpha=2 * ALPHA)
    assert compare_adapters(source, open_adapter(scaled)).level == "exact"
    matrix = np.random.default_rng(1).normal(size=(R, R))
    rounded = compare_adapters(source, open_adapter(folder(tmp_path / "e", moved(stored, matrix))))
    assert rounded.same_change is True and rounded.level == "rounding" and rounded.standing == "estimate"


def test_the_wrong_module_is_named(tmp_path: Path) -> None:
    tensors = moved(pairs(), np.random.default_rng(2).normal(size=(R, R)))
    tensors[f"{MODULES[2]}.lora_B.weight"][0, 0] += 1e-3
    one, two = folder(tmp_path / "a", pairs()), folder(tmp_path / "b", tensors)
    found = compare_adapters(open_adapter(one), open_adapter(two))
    assert found.same_change is False
    assert [row["module"] for row in found.modules if row["same"] is not True] == [MODULES[2]]
    assert run(["model", "compare", str(one), str(two)]) == 1 and run(["model", "compare", str(one), str(one)]) == 0
    other = folder(tmp_path / "c", pairs(), lora_alpha=ALPHA + 1)
    assert compare_adapters(open_adapter(one), open_adapter(other)).same_change is False


def test_canonical_forms_agree(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    matrix = np.random.default_rng(3).normal(size=(R, R))
    folder(tmp_path / "a", pairs(), np.float64)
    folder(tmp_path / "b", moved(pairs(), matrix), np.float64)
    for name in "ab":
        adapter = open_adapter(tmp_path / name)
        write_adapter(adapter, canonical_adapter(adapter), tmp_path / f"form-{name}")
    one, two = (load_file(tmp_path / f"form-{name}" / "adapter_model.safetensors") for name in "ab")
    assert max(np.abs(one[name] - two[name]).max() for name in one) < 1e-13
    assert compare_adapters(open_adapter(tmp_path / "a"), open_adapter(tmp_path / "form-b")).same_change is True
    assert run(["model", "canonicalize", str(tmp_path / "a"), "--out", str(tmp_path / "cli"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["same_change"] is True
    assert run(["model", "inspect", str(tmp_path / "a"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["redundancy"] == 4 * R**2


@pytest.mark.parametrize(
    ("config", "drop"),
    [
        ({"peft_type": "IA3"}, ""),
        ({"use_dora": True}, ""),
        ({"r": 4}, ""),
        ({"lora_alpha": "x"}, ""),
        ({}, "A"),
        ({}, "B"),
    ],
)
def test_bad_folders_are_refused(config: dict[str, Any], drop: str, tmp_path: Path) -> None:
    tensors = pairs()
    if drop:
        del tensors[f"{MODULES[0]}.lora_{drop}.weight"]
    place = folder(tmp_path / "a", tensors, **config)
    with pytest.raises(InputError) as caught:
        open_adapter(place)
    assert len(str(caught.value).splitlines()) == 1
    assert run(["model", "canonicalize", str(place), "--out", str(tmp_path / "out")]) == 2
    assert not (tmp_path / "out").exists()


def test_a_file_made_to_fit_the_invariants_of_a_seed_is_found(tmp_path: Path) -> None:
    """A change d of one row of A with d · x = 0 mod p, for the x that seed 0 would give, is another change."""
    tensors = {name: np.rint(8 * tensor) for name, tensor in pairs().items()}
    x = [int(r) for r in random_residues(10, f"0/{MODULES[0]}/x")[:3]]
    inverse = pow(x[0], -1, P)
    lattice = fmpz_mat([[P, 0, 0], [-x[1] * inverse % P, 1, 0], [-x[2] * inverse % P, 0, 1]]).lll()
    change = [int(lattice[0, j]) for j in range(3)]
    assert sum(d * r for d, r in zip(change, x)) % P == 0 and 0 < max(map(abs, change)) < 2**40
    forged = {name: tensor.copy() for name, tensor in tensors.items()}
    forged[f"{MODULES[0]}.lora_A.weight"][0, :3] += change
    sides = [open_adapter(folder(tmp_path / n, t, np.float64)) for n, t in (("a", tensors), ("b", forged))]
    found = compare_adapters(sides[0], sides[1])
    assert found.same_change is False and found.level == "rounding"
    equal = [compare_adapters(sides[0], sides[0]) for _ in range(2)]
    assert all(one.level == "exact" for one in equal) and equal[0].entropy != equal[1].entropy


@pytest.mark.parametrize(
    "words", ["lineage model lora", "lineage lora model", "lineage lora lora", "compare model lora"]
)
def test_an_adapter_where_a_model_is_wanted_is_one_line(words: str, tmp_path: Path, monkeypatch, capsys) -> None:
    """Nobody can find a config.json for it: the line says what it is, and what to do."""
    folder(tmp_path / "lora", pairs())
    model = random_model(LLAMA, 1)
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "config.json").write_text(json.dumps(dict(LLAMA)))
    save_file({name: model.tensors.raw(name) for name in model.tensors}, tmp_path / "model" / "model.safetensors")
    monkeypatch.chdir(tmp_path)
    assert run(["model", *words.split()]) == 2
    out, error = capsys.readouterr()
    assert not out and len(error.splitlines()) == 1
    assert "lora is a LoRA adapter" in error and "merge it into its base" in error
