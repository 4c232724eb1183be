"""Softmax networks from values: they come back to rounding, and what cannot be told is said."""

import numpy as np
import pytest

from attngeom.cli.app import run
from attngeom.errors import DomainError
from attngeom.exact import QQ, RR
from attngeom.layer.blackbox import BlackBox
from attngeom.network import Architecture, Weights, forward, random_weights
from attngeom.recovery.query_table import continue_queries, plan_queries
from attngeom.recovery.recover import recover
from attngeom.recovery.recover_softmax import Lines, pass_layers
from attngeom.recovery.results import Recovery
from tests.recovery.boxes import weights_box

CASES = [
    ((3, 3), 2, 2, 1),
    ((3, 3, 3), 2, 2, 1),
    ((2, 3, 2), 1, 3, 1),
    ((3, 2, 2, 2), 2, 2, 1),
    ((3, 3, 3, 3, 3), 2, 2, 1),
    ((3, 3, 3), 2, 2, "3/2"),
]


def virtual_error(one, two):
    one, two = one.virtual(), two.virtual()
    return max(np.abs(a - b).max() / np.abs(a).max() for a, b in zip((*one.M, one.L), (*two.M, two.L)))


@pytest.mark.parametrize(("widths", "attention", "tokens", "temperature"), CASES)
def test_networks_come_back(widths, attention, tokens, temperature):
    architecture = Architecture(widths, attention, tokens=tokens, kind="softmax", temperature=temperature)
    weights = random_weights(architecture, RR, 5)
    found = recover(BlackBox(lambda X: forward(weights, X)), architecture)
    assert found.outcome == "recovered" and found.error_estimate < 1e-11, found.reason
    assert virtual_error(weights, found.weights[0]) < 1e-9


@pytest.mark.parametrize("scale", [1e-3, 1e3])
def test_any_scale_of_scores(scale):
    architecture = Architecture((3, 3, 3), 2, tokens=2, kind="softmax")
    weights = random_weights(architecture, RR, 1)
    tensors = {name: array * (scale if name.endswith("Q") else 1.0) for name, array in weights.tensors()}
    scaled = Weights.from_tensors(architecture, tensors, RR)
    found = recover(BlackBox(lambda X: forward(scaled, X)), architecture)
    assert found.outcome == "recovered" and virtual_error(scaled, found.weights[0]) < 1e-9


def hidden(name):
    architecture = Architecture((2, 2, 2), 2, tokens=2, kind="softmax")
    weights = random_weights(architecture, RR, 0)
    tensors = dict(weights.tensors())
    if name == "zero":
        tensors["layers.1.V"] = tensors["layers.1.V"] * 0
    elif name == "skew":
        tensors["layers.0.Q"], tensors["layers.0.K"] = np.eye(2), np.array([[0.0, 1.0], [-1.0, 0.0]])
    else:
        tensors["layers.0.Q"] = tensors["layers.0.Q"] * 0
    return Weights.from_tensors(architecture, tensors, RR)


@pytest.mark.parametrize("name", ["zero", "skew", "blind"])
def test_hidden_layers_are_not_guessed(name):
    weights = hidden(name)
    found = recover(BlackBox(lambda X: forward(weights, X)), weights.architecture)
    assert found.outcome == "not identifiable" and found.weights == ()


def test_other_functions_are_not_taken_for_networks():
    architecture = Architecture((3, 3, 3), 2, tokens=2, kind="softmax")
    deeper = random_weights(Architecture((3, 3, 3, 3), 3, tokens=2, kind="softmax"), RR, 0)
    found = recover(BlackBox(lambda X: forward(deeper, X)), architecture)
    assert found.outcome == "failed" and found.weights == ()


@pytest.mark.parametrize("options", [{"causal": True}, {"tokens": 1}, {"heads": 2, "value_width": 1}])
def test_architectures_that_are_not_covered(options):
    architecture = Architecture((2, 2), 1, kind="softmax", **options)
    found = recover(BlackBox(lambda X: X), architecture)
    assert found.outcome == "not identifiable" and found.queries == 0


def test_exact_boxes_are_refused():
    architecture = Architecture((2, 2, 2), 1, kind="softmax")
    box = weights_box(random_weights(Architecture((2, 2, 2), 1), QQ, 0), QQ)
    with pytest.raises(DomainError, match="floats"):
        recover(box, architecture)


def test_plans_are_answered_round_by_round():
    architecture = Architecture((2, 2, 2), 1, tokens=2, kind="softmax")
    weights = random_weights(architecture, RR, 3)
    table = plan_queries(architecture)
    for _ in range(30):
        found = continue_queries(table := table.answered(forward(weights, table.rounds[-1].inputs)))
        if isinstance(found, Recovery):
            break
        table = found
    assert found.outcome == "recovered" and virtual_error(weights, found.weights[0]) < 1e-9


def test_command_plans_for_softmax(tmp_path, capsys):
    out = tmp_path / "q.json"
    assert (
        run(["recover", "--plan", "--kind", "softmax", "--widths", "2,2,2", "--attention", "1", "--out", str(out)]) == 0
    )
    assert "round 1" in capsys.readouterr().out


def test_lines_follow_the_network():
    rng = np.random.default_rng(0)
    weights = random_weights(Architecture((3, 3, 3), 2, tokens=4, kind="softmax"), RR, 0)
    v = weights.virtual()
    delta = rng.standard_normal((5, 3))
    lines = Lines(rng.standard_normal((5, 3)), delta, rng.standard_normal(5))
    seen = lines.read(forward(weights, lines.inputs(4)), v.L)
    positions, derivatives = pass_layers(lines, v.M, 4)
    assert np.allclose(positions, seen, rtol=0, atol=1e-13)
    step = 1e-6
    for layer in range(2):
        moved = list(v.M)
        moved[layer] = moved[layer] + step * np.eye(3)[[1, 0, 2]]
        change = (pass_layers(lines, moved, 4)[0] - positions) / step
        u = np.einsum("nk,kl,nl->n", delta, np.eye(3)[[1, 0, 2]], lines.y)
        w = np.einsum("nk,kl,nl->n", delta, np.eye(3)[[1, 0, 2]], delta)
        expected = derivatives[:, :, layer, 0] * u[:, None] + derivatives[:, :, layer, 1] * w[:, None]
        assert np.allclose(change, expected, rtol=1e-3, atol=1e-5)
