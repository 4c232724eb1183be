"""The calibration suite: what is written is right, and points where naive answers differ from λ are there."""

from __future__ import annotations

import ast
import inspect
import json
import sys
import types
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from attngeom.cli.app import run
from attngeom.errors import InputError
from attngeom.exact import QQ, RR
from attngeom.interop import read_weights
from attngeom.interop.learning_benchmark import is_dyadic, move_to_floats
from attngeom.interop.learning_suite import POINTS, calibration, hessian, write_suite
from attngeom.interop.learning_suite_script import SCRIPT
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


class Numbers(np.ndarray):
    """Arrays with the few methods of tensors that the script calls."""

    def sum(self, dim: Any = None) -> Any:  # type: ignore[override]
        return np.sum(np.asarray(self), axis=dim).view(Numbers)

    def mean(self, dim: Any = None) -> Any:  # type: ignore[override]
        return np.mean(np.asarray(self), axis=dim)

    def detach(self) -> Numbers:
        return self


SAMPLE_NAMES = {
    "localization", "num_chains", "num_draws", "num_steps_bw_draws", "num_burnin_steps", "batch_size",
    "num_init_loss_batches", "init_seed", "device", "output_path",
}  # fmt: skip
"""Names of sample() of devinterp 2.0.1 that the script gives; where devinterp is installed they are looked up."""


def script_of_the_suite(monkeypatch: pytest.MonkeyPatch, torch: Any = None) -> dict[str, Any]:
    """The names of run.py; without torch its few calls are those of NumPy."""
    if torch is None:
        fake = types.ModuleType("torch")
        data = SimpleNamespace(Dataset=object)
        members = {"manual_seed": np.random.seed, "float64": float, "utils": SimpleNamespace(data=data)}
        members |= {"tensor": lambda x, dtype=None: np.array(x, dtype=dtype).view(Numbers)}
        members |= {"ones": lambda *shape, dtype=None: np.ones(shape).view(Numbers)}
        for name, value in members.items():
            setattr(fake, name, value)
        monkeypatch.setitem(sys.modules, "torch", fake)
    names: dict[str, Any] = {"__name__": "run", "__file__": "run.py"}
    exec(compile(SCRIPT, "run.py", "exec"), names)
    return names


def test_the_adapter_keeps_the_contract_of_devinterp(monkeypatch: pytest.MonkeyPatch) -> None:
    """What devinterp 2 asks of data sets and losses, by a stand-in; burn-in and the initial loss are left out."""
    names = script_of_the_suite(monkeypatch)
    seen: dict[str, Any] = {}

    def llc(model: Any, dataset: Any, observables: Any, *, lr: float, n_beta: float, loss_fn: Any, **more: Any) -> Any:
        assert set(more) <= SAMPLE_NAMES
        assert len(dataset) >= more["batch_size"] and lr > 0 and isinstance(observables, dict)
        rows = np.stack([dataset[k]["input_ids"] for k in range(more["batch_size"])])
        assert rows.shape[1] >= 2
        assert loss_fn(model, rows).shape == (len(rows), rows.shape[1] - 1)
        steps = more["num_draws"] * more["num_steps_bw_draws"] + more["num_burnin_steps"]
        trace = np.ones((more["num_chains"], steps)) * np.arange(more["num_chains"])[:, None] + 2
        trace[:, : more["num_burnin_steps"]] = 1e6
        seen.update(more, lr=lr, n_beta=n_beta)
        trace = trace[: seen.get("rows")]
        return {"loss_trace": SimpleNamespace(values=trace), "llc_mean": 7.0, "init_loss": 2.0}

    package, slt, inner = (types.ModuleType(name) for name in ("devinterp", "devinterp.slt", "devinterp.slt.llc"))
    inner.llc = llc  # type: ignore[attr-defined]
    for module in (package, slt, inner):
        monkeypatch.setitem(sys.modules, module.__name__, module)
    module = SimpleNamespace(Network=lambda: lambda X: 2 * X, sample_inputs=lambda n: np.ones((n, 2, 3)).view(Numbers))
    given = {"inverse_temperature": 100, "step": 0.5, "localization": 1.0}
    args = SimpleNamespace(seed=3, inputs=5, inverse_temperature=None, step=1.0, chains=4, steps=230)
    values, note = names["devinterp"](module, given, args)
    assert np.allclose(values, 100 * np.arange(4)) and "7.000" in note
    assert (seen["num_burnin_steps"], seen["init_seed"], seen["lr"], seen["n_beta"]) == (130, 3, 0.5, 100)
    args.inverse_temperature = 1e4
    names["devinterp"](module, given, args)
    assert (seen["lr"], seen["n_beta"]) == (0.005, 1e4)
    seen["rows"] = 3
    with pytest.raises(SystemExit, match="expected"):
        names["devinterp"](module, given, args)
    args.steps = 40
    with pytest.raises(SystemExit, match="needs 100"):
        names["devinterp"](module, given, args)


@pytest.mark.parametrize(
    ("mean", "spread", "verdict"),
    [
        (2.75, 0.1, "pass"),
        (2.5, 0.1, "FAIL"),
        (3.0, 0.1, "FAIL"),
        (2.75, 1.0, "too noisy to tell lambda from half the rank"),
        (np.nan, 0.1, "FAIL: a chain left the finite numbers"),
    ],
)
def test_verdicts_tell_lambda_from_half_the_rank(
    mean: float, spread: float, verdict: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half the rank, 5/2, must fail where λ = 11/4, and so must a mean that only its own noise covers."""
    judge = script_of_the_suite(monkeypatch)["judge"]
    values = mean + spread * np.resize([-1.0, 1.0], 40)
    point = {"lambda": "11/4", "multiplicity": 1, "half_hessian_rank": "5/2"}
    assert judge(values, point, 1e4, 0.05)[2] == verdict
    double = {"lambda": "1", "multiplicity": 2, "half_hessian_rank": "0"}
    shown = [judge(np.full(40, x), double, 1e4, 0.05)[2] for x in (1.06, 1.0, 1 - 1 / np.log(1e4), 0.7)]
    assert shown == ["FAIL", "pass", "pass", "FAIL"]


def test_the_bias_of_the_step_is_that_of_quadratic_chains(monkeypatch: pytest.MonkeyPatch) -> None:
    """The variance s of w ↦ (1 − c) w + √step noise solves s = (1 − c)² s + step, c = step (β h + pull)/2."""
    step_bias = script_of_the_suite(monkeypatch)["step_bias"]
    rng = np.random.default_rng(0)
    for _ in range(20):
        beta, pull, h = 10 ** rng.uniform(2, 5), rng.uniform(0.1, 2), rng.uniform(0.1, 9, 3)
        step = rng.uniform(0.01, 0.9) * 4 / (beta * h.max() + pull)
        shrink = 1 - step * (beta * h + pull) / 2
        energy = beta * h * step / (1 - shrink**2) / 2
        exact = beta * h / (beta * h + pull) / 2
        assert step_bias(h.tolist(), beta, step, pull) == pytest.approx(float(np.sum(energy - exact)), rel=1e-9)
        assert step_bias([*h.tolist(), 0.0], beta, step, pull) == step_bias(h.tolist(), beta, step, pull)
    assert step_bias([1.0], 1e4, 4e-4, 1.0) == np.inf


def test_curvatures_are_the_eigenvalues_of_the_hessian(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    torch = pytest.importorskip("torch", reason="needs torch")
    write_suite(tmp_path / "suite")
    names = script_of_the_suite(monkeypatch, torch)
    for folder in ("regular", "softmax", "two-layers"):
        module = names["load"](tmp_path / "suite" / folder)
        torch.manual_seed(1)
        network, X = module.Network(), module.sample_inputs(50)
        found = names["curvatures"](network, X)
        columns = []
        for weights in network.parameters():
            for index in np.ndindex(*weights.shape):
                ends = []
                for sign in (1, -2, 1):
                    weights.data[index] += sign * 1e-6
                    ends.append(network(X).detach().numpy().ravel())
                columns.append((ends[0] - ends[1]) / 2e-6)
        J = np.stack(columns, axis=1)
        assert np.allclose(found, np.linalg.eigvalsh(J.T @ J / 50), rtol=1e-6, atol=1e-6)


def test_chains_of_devinterp_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two short chains at a point of the suite: finite values, the same ones from the same seed."""
    torch = pytest.importorskip("torch", reason="needs torch and devinterp 2")
    sampling = pytest.importorskip("devinterp.slt.sampling", reason="needs devinterp 2")
    assert set(inspect.signature(sampling.sample).parameters) >= SAMPLE_NAMES
    write_suite(tmp_path / "suite")
    names = script_of_the_suite(monkeypatch, torch)
    module = names["load"](tmp_path / "suite" / "regular")
    given = json.loads((tmp_path / "suite" / "suite.json").read_text())["points"][0]["suggested"]
    args = SimpleNamespace(seed=3, inputs=16, inverse_temperature=None, step=1.0, chains=2, steps=120)
    first, second = (names["devinterp"](module, given, args)[0] for _ in range(2))
    assert first.shape == (2,) and bool((first > 0).all()) and bool((first == second).all())
    assert abs(names["langevin"](module, given, args)[0].mean().item() - first.mean().item()) < 3


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
