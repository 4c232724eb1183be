"""The calibration suite: what is written is right, and points where naive answers differ from λ are there."""

from __future__ import annotations

import ast
import json
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from attngeom.cli.app import run
from attngeom.errors import InputError
from attngeom.exact import QQ, RR
from attngeom.interop import read_weights
from attngeom.interop.float_points import is_dyadic, move_to_floats
from attngeom.interop.learning_suite import POINTS, calibration, hessian
from attngeom.learning import learning_coefficient
from attngeom.network import Architecture, Weights, random_weights


def test_the_suite_has_points_that_tell_estimators_apart(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "suite"
    assert run(["lambda", "--suite", str(folder), "--json"]) == 0
    points = json.loads(capfd.readouterr().out)["points"]
    assert points == json.loads((folder / "suite.json").read_text())["points"]
    assert any(Fraction(x["half_hessian_rank"]) < Fraction(x["lambda"]) for x in points)
    assert all(Fraction(x["half_hessian_rank"]) <= Fraction(x["lambda"]) <= x["parameters"] / 2 for x in points)
    assert {x["multiplicity"] for x in points} >= {1, 2}
    ast.parse((folder / "run.py").read_text())
    kinds = set()
    for row in points:
        weights = read_weights(folder / row["folder"] / "weights.safetensors")
        found = learning_coefficient(weights.to(QQ))
        kinds.add(weights.architecture.kind)
        assert found.is_proven and (str(found.value), found.multiplicity) == (row["lambda"], row["multiplicity"])
    assert kinds >= {"lightning", "softmax"}
    assert run(["lambda", "--suite", str(folder)]) == 2
    assert run(["lambda", "--suite", str(tmp_path / "new"), "--table"]) == 2


def test_hessians_are_those_of_exact_derivatives() -> None:
    """Lightning with t = 1, d = 1: φ = V K Q x³, so that the Hessian is E x⁶ times products of partial derivatives."""
    tensors = {"layers.0.Q": [[2]], "layers.0.K": [[3]], "layers.0.V": [[5]]}
    weights = Weights.from_tensors(Architecture((1, 1), 1, tokens=1), tensors, QQ)
    slopes = np.array([15.0, 10.0, 6.0])
    found = hessian(weights)
    assert np.allclose(found / found[0, 0], np.outer(slopes, slopes) / 225, rtol=1e-6)
    assert found[0, 0] == pytest.approx(225 / 7, rel=0.3)
    assert calibration(learning_coefficient(POINTS[0].weights))["half_hessian_rank"] == "3"


@pytest.mark.parametrize("seed", range(6))
def test_points_move_to_floats_along_their_orbit(seed: int) -> None:
    """Integer weights after random rational scales of rows, as in files of the demo, come back to float entries."""
    rng = np.random.default_rng(seed)
    kind = ("lightning", "softmax")[seed % 2]
    factored = {"heads": 2, "value_width": 1} if seed >= 3 else {}
    architecture = Architecture((3, 2), 2, tokens=2, kind=kind, **factored)
    start = random_weights(architecture, QQ, seed=seed)
    tensors = {name: array.copy() for name, array in start.tensors()}
    for name in [name for name in tensors if name.endswith("K")]:
        for row in range(2):
            share = QQ.convert([[f"{rng.integers(1, 9)}/{rng.choice([3, 5, 7])}"]])[0, 0]
            tensors[name][row] = tensors[name][row] * share
            tensors[f"{name[:-1]}Q"][row] = tensors[f"{name[:-1]}Q"][row] / share
    moved = Weights.from_tensors(architecture, tensors, QQ)
    assert not all(is_dyadic(array) for _, array in moved.tensors())
    found = move_to_floats(moved)
    assert found.to(RR).to(QQ).equals(found)
    for (A, B), (V, W) in zip(
        zip(moved.attention_matrices()[0], found.attention_matrices()[0]),
        zip(moved.value_matrices()[0], found.value_matrices()[0]),
    ):
        # The products of entries of A and V are those of the function.
        assert QQ.equal(np.multiply.outer(A, V), np.multiply.outer(B, W))
        assert kind == "lightning" or QQ.equal(A, B)


def test_functions_without_float_weights_are_refused() -> None:
    tensors = {"layers.0.Q": [["1/3"]], "layers.0.K": [[1]], "layers.0.V": [[1]]}
    with pytest.raises(InputError, match="last value map"):
        move_to_floats(Weights.from_tensors(Architecture((1, 1), 1), tensors, QQ))
