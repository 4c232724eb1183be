"""Moving along the fiber: gradients, teleports, compact files."""

import numpy as np
import pytest

from attngeom.canonical import least_norm as least_norm_module
from attngeom.canonical.compact import is_compact, read_compact, write_compact
from attngeom.canonical.form import canonical_form, restore
from attngeom.canonical.least_norm import least_norm, loss, loss_gradient, maximise_gradient, transported_gradient
from attngeom.errors import FormatError, InputError
from attngeom.exact import QQ, RR
from attngeom.limits.trials import NORM_PATIENCE
from attngeom.network import Architecture, Weights, forward, random_symmetry, random_weights
from attngeom.network.symmetry import infinitesimal_action

NETWORKS = [
    Architecture((4, 3, 3, 4), 2),
    Architecture((4, 4, 4), 2, heads=2),
    Architecture((3, 2, 3), 2, kind="softmax", causal=True),
    Architecture((3, 3, 3), 3, residual=True),
]


def data(architecture, seed=0):
    rng = np.random.default_rng(seed)
    X = 0.5 * rng.standard_normal((6, architecture.widths[0], architecture.tokens))
    return X, rng.standard_normal((6, architecture.widths[-1], architecture.tokens))


@pytest.mark.parametrize("architecture", NETWORKS, ids=str)
def test_gradient_of_a_loss_is_normal_to_the_fiber(architecture):
    weights = random_weights(architecture, RR, 0)
    gradient = loss_gradient(weights, *data(architecture))
    rows = infinitesimal_action(weights)
    assert np.linalg.norm(gradient) > 0.1
    assert np.abs(rows @ gradient).max() < 1e-12 * np.linalg.norm(rows) * np.linalg.norm(gradient)


@pytest.mark.parametrize("architecture", NETWORKS, ids=str)
def test_gradient_matches_a_difference_quotient(architecture):
    weights = random_weights(architecture, RR, 0)
    X, Y = data(architecture)
    direction = np.random.default_rng(1).standard_normal(architecture.num_parameters)
    step = 1e-5
    moved = [Weights.from_vector(architecture, weights.vector() + s * step * direction, RR) for s in (1, -1)]
    numeric = (loss(moved[0], X, Y) - loss(moved[1], X, Y)) / (2 * step)
    assert loss_gradient(weights, X, Y) @ direction == pytest.approx(numeric, rel=1e-6, abs=1e-8)


@pytest.mark.parametrize("architecture", NETWORKS, ids=str)
def test_least_norm_does_not_depend_on_the_start_and_keeps_the_function(architecture):
    weights = random_weights(architecture, RR, 0)
    found = least_norm(random_symmetry(architecture, RR, 1).apply(weights))
    again = least_norm(random_symmetry(architecture, RR, 2).apply(weights))
    norms = [np.linalg.norm(x.weights.vector()) for x in (found, again)]
    assert norms[0] == pytest.approx(norms[1], rel=1e-9)
    assert norms[0] <= np.linalg.norm(weights.vector()) * (1 + 1e-9)
    X, _ = data(architecture)
    np.testing.assert_allclose(forward(found.weights, X), forward(weights, X), rtol=1e-7, atol=1e-9)
    # The minimum is critical: the weights are orthogonal to the fiber.
    assert np.abs(infinitesimal_action(found.weights) @ found.weights.vector()).max() < 1e-4


@pytest.mark.parametrize("architecture", NETWORKS, ids=str)
def test_larger_gradient_within_the_budget_and_the_same_loss(architecture):
    weights = random_weights(architecture, RR, 0)
    X, Y = data(architecture)
    start = loss_gradient(weights, X, Y)
    moved, gradient = maximise_gradient(weights, start, budget=1.1, steps=40)
    assert np.linalg.norm(gradient) > 1.05 * np.linalg.norm(start)
    assert np.linalg.norm(moved.vector()) <= 1.1 * np.linalg.norm(weights.vector()) * (1 + 1e-8)
    assert loss(moved, X, Y) == pytest.approx(loss(weights, X, Y), rel=1e-11)
    assert np.linalg.norm(loss_gradient(moved, X, Y)) == pytest.approx(np.linalg.norm(gradient), rel=1e-9)


def test_transported_gradient_is_the_gradient_there():
    architecture = NETWORKS[1]
    weights = random_weights(architecture, RR, 0)
    X, Y = data(architecture)
    g = random_symmetry(architecture, RR, 3)
    np.testing.assert_allclose(
        transported_gradient(g, loss_gradient(weights, X, Y)), loss_gradient(g.apply(weights), X, Y), rtol=1e-7
    )


def test_bad_teleports_are_refused():
    weights = random_weights(Architecture((2, 2), 1), RR, 0)
    with pytest.raises(InputError, match="nonzero"):
        maximise_gradient(weights, np.zeros(8))
    with pytest.raises(InputError, match="at least 1"):
        maximise_gradient(weights, np.ones(8), budget=0.5)


@pytest.mark.parametrize("architecture", NETWORKS, ids=str)
@pytest.mark.parametrize(("domain", "suffix"), [(QQ, ".json"), (RR, ".safetensors")], ids=["QQ", "RR"])
def test_compact_files_restore_the_canonical_form(architecture, domain, suffix, tmp_path):
    form = canonical_form(random_weights(architecture, domain, 0))
    path = tmp_path / f"compact{suffix}"
    write_compact(form, path)
    assert is_compact(path)
    assert restore(read_compact(path))[0].equals(restore(form)[0])


def test_damaged_compact_files_are_refused(tmp_path):
    path = tmp_path / "compact.json"
    write_compact(canonical_form(random_weights(Architecture((3, 2), 2), QQ, 0)), path)
    text = path.read_text()
    for old, new in [
        ('"query_pivots": [0, 1]', '"query_pivots": [0, 7]'),
        ('"size_in": 3', '"size_in": 9'),
        ('"heads": [', '"hedas": ['),
    ]:
        assert old in text
        path.write_text(text.replace(old, new))
        with pytest.raises(FormatError):
            read_compact(path)
    with pytest.raises(InputError, match=r"\.json"):
        write_compact(canonical_form(random_weights(Architecture((3, 2), 2), QQ, 0)), tmp_path / "x.safetensors")


def test_sweeps_that_rounding_keeps_from_settling_end_early(monkeypatch):
    """Extreme weights can leave an imbalance that no sweep removes, differently in each run of one file."""
    sweeps = 0

    def never(factor, tensors):
        nonlocal sweeps
        sweeps += 1
        return 1e-3

    monkeypatch.setattr(least_norm_module, "_imbalance", never)
    found = least_norm(random_weights(Architecture((2, 2), 1), RR, 0))
    factors = sweeps // (NORM_PATIENCE + 2)
    assert found.imbalance == 1e-3 and sweeps == factors * (NORM_PATIENCE + 2) and factors < 5
