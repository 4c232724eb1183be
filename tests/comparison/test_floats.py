"""Float alignment of deep networks: the symmetry of all layers is found together, so errors do not multiply."""

import numpy as np
import pytest

from attngeom.canonical.least_norm import least_norm, rough_gauge
from attngeom.comparison import compare
from attngeom.comparison.float_matching import FloatMatch, GaugedWeights, match_points, relative_distance
from attngeom.comparison.float_refinement import Equations, refine
from attngeom.exact import RR
from attngeom.limits.rounding import MATCH_EXACT
from attngeom.network import Architecture, Symmetry, Weights, random_symmetry, random_weights
from attngeom.network.symmetry import linear_factors, tensors_of
from attngeom.network.symmetry.element import retraction
from attngeom.results import Failure
from tests.effort import choose, thorough

ARCHITECTURES = [
    Architecture((4, 3, 3, 5), 2),
    Architecture((3, 3, 3), 2, residual=True),
    Architecture((4, 4, 4), 2, heads=2),
    Architecture((4, 4, 4), 1, heads=3, value_width=2, residual=True, causal=True),
    Architecture((3, 2, 3), 2, kind="softmax"),
    Architecture((2, 2, 2), 5),
]


def match_floats(first, second):
    return match_points(GaugedWeights(first), GaugedWeights(second), MATCH_EXACT)


def noisy(weights, noise, seed):
    vector = weights.vector()
    factor = 1 + noise * np.random.default_rng(seed).standard_normal(len(vector))
    return Weights.from_vector(weights.architecture, vector * factor, RR)


def equal_pair(architecture, noise, seed):
    first = random_weights(architecture, RR, seed)
    return first, noisy(random_symmetry(architecture, RR, seed + 1000).apply(first), noise, seed)


@pytest.mark.parametrize("layers", [2, 5, *thorough(10)])
def test_misfit_of_equal_pairs_stays_at_the_noise_whatever_the_depth(layers):
    found = match_floats(*equal_pair(Architecture((4,) * (layers + 1), 3), 1e-9, 0))
    assert isinstance(found, FloatMatch)
    assert found.residual < 1e-8


@pytest.mark.parametrize("attention", [3, *thorough(6)])
def test_deep_networks_are_told_apart_although_their_functions_are_too_sensitive(attention):
    first, second = equal_pair(Architecture((6,) * choose(7, 10), attention), 1e-6, 0)
    assert compare(first, second, tolerance=3e-6).same_function is True
    assert compare(first, noisy(second, 0.1, 0), tolerance=3e-6).same_function is False


def test_change_of_the_last_layer_of_a_deep_network_is_seen():
    first, second = equal_pair(Architecture((5,) * 11, 3), 1e-6, 0)
    vector = second.vector()
    vector[-25:] *= 1 + 0.1 * np.random.default_rng(0).standard_normal(25)
    found = compare(first, Weights.from_vector(second.architecture, vector, RR), tolerance=3e-6)
    assert found.same_function is False


@pytest.mark.parametrize("layers", [3, *thorough(6)])
def test_change_that_amplified_errors_would_explain_is_not_called_equal(layers):
    first, second = equal_pair(Architecture((4,) * (layers + 1), 3, heads=2, value_width=4), 1e-7, 12)
    tensors, name = dict(second.tensors()), f"layers.{layers // 2}.heads.0.V"
    tensors[name] = tensors[name] * (1 + 1e-4 * np.random.default_rng(0).standard_normal(tensors[name].shape))
    changed = Weights.from_tensors(second.architecture, tensors, RR)
    assert compare(first, second, tolerance=3e-7).same_function is True
    assert compare(first, changed, tolerance=3e-7).same_function is not True


def test_refinement_goes_on_while_errors_of_the_weights_nearly_explain_what_is_missed():
    first, second = equal_pair(Architecture((16,) * 5, 4), 1e-10, 9)
    found = compare(first, second)
    assert found.same_function is True and "up to 3.8e-10" in found.reason
    assert found.difference > 1e-5, "errors of 1e-10 are magnified: the outputs alone do not decide"
    assert compare(first, noisy(second, 1e-6, 0)).same_function is False


@pytest.mark.parametrize("architecture", ARCHITECTURES, ids=str)
def test_refinement_reaches_the_symmetry_from_nearby(architecture):
    first = random_weights(architecture, RR, 3)
    g = random_symmetry(architecture, RR, 4)
    second = g.apply(first)
    rng = np.random.default_rng(5)

    def near(matrix):
        return matrix @ (np.eye(len(matrix)) + 1e-3 * rng.standard_normal(matrix.shape))

    nearby = {x: near(g.elements[x]) for x in linear_factors(architecture) if x.name != "scale"}
    start = Symmetry(architecture, RR, {**g.elements, **nearby})
    before, after = (
        np.abs(x.apply(first).vector() - second.vector()).max() for x in (start, refine(start, first, second))
    )
    assert before > 1e-5 and after < 1e-8


@pytest.mark.parametrize("architecture", ARCHITECTURES, ids=str)
def test_derivative_of_the_action_is_that_of_the_group_and_its_transpose_is_adjoint(architecture):
    weights = random_weights(architecture, RR, 0)
    rng = np.random.default_rng(1)
    tensors = tensors_of(weights)
    changes = {place: rng.standard_normal(array.shape) for place, array in tensors.items()}
    equations = Equations(tensors, changes, architecture)
    assert all(np.allclose(equations.missed()[place], change) for place, change in changes.items())
    x = rng.standard_normal(len(equations.diagonal))
    assert equations.push(x) @ equations.error == pytest.approx(x @ equations.pull())
    step = 1e-6
    moved = tensors_of(retraction(equations.direction(x), step, architecture).apply(weights))
    equations.error[:] = equations.push(x)
    for place, change in equations.missed().items():
        assert np.allclose((moved[place] - tensors[place]) / step, change, atol=1e-4)


@pytest.mark.parametrize("architecture", ARCHITECTURES, ids=str)
def test_each_factor_alone_gives_a_diagonal_equation(architecture):
    tensors = tensors_of(random_weights(architecture, RR, 0))
    equations = Equations(tensors, tensors, architecture)
    for k in range(0, len(equations.diagonal), 3):
        if np.isfinite(equations.diagonal[k]):
            image = equations.push(np.eye(len(equations.diagonal))[k])
            assert image @ image == pytest.approx(equations.diagonal[k])


@pytest.mark.parametrize("architecture", ARCHITECTURES, ids=str)
def test_gauge_of_least_norm_does_not_depend_on_the_given_gauge(architecture):
    weights = random_weights(architecture, RR, 1)
    moved = random_symmetry(architecture, RR, 2).apply(weights)
    sizes = []
    for point in (weights, moved):
        balanced = rough_gauge(point).apply(point)
        values = [np.linalg.svd(x, compute_uv=False) for heads in balanced.value_matrices() for x in heads]
        sizes.append(sorted(float(value) for x in values for value in x))
    assert np.allclose(*sizes, rtol=0.01, atol=1e-3)
    assert not np.allclose(np.linalg.norm(moved.vector()), np.linalg.norm(weights.vector()), rtol=0.01)


def test_weights_without_a_gauge_of_least_norm_are_still_matched():
    architecture = Architecture((3, 3, 3), 2)
    tensors = dict(random_weights(architecture, RR, 0).tensors())
    tensors["layers.0.K"] = np.array([[1.0, 2.0, 3.0], [0.0, 0.0, 0.0]])
    first = Weights.from_tensors(architecture, tensors, RR)
    second = random_symmetry(architecture, RR, 1).apply(first)
    assert least_norm(first).symmetry is None and rough_gauge(first) is None
    assert match_floats(first, second).residual < 1e-10
    assert compare(first, second).same_function is True


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_distance_to_weights_beyond_the_range_of_floats_is_infinite(value):
    weights = random_weights(Architecture((2, 2), 1), RR, 0)
    vector = weights.vector()
    vector[3] = value
    broken = Weights.from_vector(weights.architecture, vector, RR)
    assert relative_distance(broken, weights) == np.inf
    assert relative_distance(weights, weights) == 0.0


def test_zero_attention_has_no_match():
    architecture = Architecture((2, 2), 1)
    zero = Weights.from_vector(architecture, np.zeros(architecture.num_parameters), RR)
    assert isinstance(match_floats(zero, zero), Failure)
    assert compare(zero, zero).same_function is True


@pytest.mark.parametrize("size", [1e-170, 1e-120])
def test_heads_are_matched_where_their_attention_matrices_leave_the_range_of_floats(size):
    architecture = Architecture((2, 2), 2, heads=3, value_width=2)
    vector = random_weights(architecture, RR, seed=0).vector()
    first = Weights.from_vector(architecture, vector * size, RR)
    g = random_symmetry(architecture, RR, seed=1)
    found = match_floats(first, g.apply(first))
    assert isinstance(found, FloatMatch) and found.residual < 1e-10
    assert found.symmetry.orders == g.orders
