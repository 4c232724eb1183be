"""Every factor of the group keeps its contract: one table of factors, one list of laws."""

import numpy as np
import pytest

from attngeom.comparison.float_refinement import Equations
from attngeom.errors import InputError
from attngeom.exact import QQ, RR
from attngeom.groups.balance import balance, balanced_factors
from attngeom.groups.pivots import choose_pivots, first_large
from attngeom.network import Architecture, Weights, forward, random_weights
from attngeom.network.symmetry import (
    Between,
    HeadOrder,
    QueryKey,
    Scale,
    ValueOutput,
    factors,
    linear_factors,
    tensors_of,
    weights_of,
)
from attngeom.network.symmetry.element import moments

NETWORK = Architecture((3, 2, 3), 2, heads=2, value_width=2)
LINEAR = [QueryKey(0, 1, 2), Scale(1, 0), ValueOutput(0, 0, 2), Between(0, 2)]
FACTORS = [*LINEAR, HeadOrder(1, 2)]


def change(tensors, factor, element, domain):
    return weights_of(NETWORK, tensors | factor.act(element, tensors, domain), domain)


def test_the_table_holds_every_sort_of_factor():
    assert {type(factor) for factor in factors(NETWORK)} == {type(factor) for factor in FACTORS}
    assert set(FACTORS) <= set(factors(NETWORK))


@pytest.mark.parametrize("factor", FACTORS, ids=lambda factor: factor.name)
def test_a_factor_acts_as_a_group_and_keeps_the_function(factor):
    rng = np.random.default_rng(0)
    weights = random_weights(NETWORK, QQ, 0)
    tensors = tensors_of(weights)
    first, second = (factor.random(rng, QQ.random_invertible, QQ) for _ in range(2))
    X = QQ.random((3, 2), rng)
    moved = change(tensors, factor, first, QQ)
    assert QQ.equal(forward(moved, X), forward(weights, X))
    twice = change(tensors_of(moved), factor, second, QQ)
    assert twice.equals(change(tensors, factor, factor.compose(second, first, QQ), QQ))
    assert change(tensors_of(moved), factor, factor.inverse(first, QQ), QQ).equals(weights)
    assert change(tensors, factor, factor.identity(QQ), QQ).equals(weights)
    factor.check(first)
    with pytest.raises(InputError):
        factor.check((0, 0, 1) if isinstance(factor, HeadOrder) else QQ.eye(5))


@pytest.mark.parametrize("factor", FACTORS, ids=lambda factor: factor.name)
def test_gradients_move_by_the_inverse_transpose(factor):
    rng = np.random.default_rng(1)
    w, g = (random_weights(NETWORK, QQ, seed) for seed in (0, 1))
    element = factor.random(rng, QQ.random_invertible, QQ)
    dual = change(tensors_of(g), factor, factor.transposed_inverse(element, QQ), QQ)
    moved = change(tensors_of(w), factor, element, QQ)
    assert sum(moved.vector() * dual.vector()) == sum(w.vector() * g.vector())


@pytest.mark.parametrize("factor", LINEAR, ids=lambda factor: factor.name)
def test_tangents_are_derivatives_and_moments_their_products_with_the_weights(factor):
    weights = random_weights(NETWORK, QQ, 0)
    tensors = tensors_of(weights)
    moment = factor.moment(tensors, QQ)
    rows = list(factor.tangents(tensors, QQ))
    assert len(rows) == factor.count
    for (i, j), changes in zip(np.ndindex(factor.size, factor.size), rows):
        E = QQ.zeros((factor.size, factor.size))
        E[i, j] = QQ.eye(1)[0, 0]
        direct = factor.tangent(E, tensors, QQ)
        assert all(QQ.equal(changes[place], direct[place]) for place in changes)
        product = sum(np.sum(changes[place] * tensors[place]) for place in changes)
        assert product == moment[i, j]
    floats = tensors_of(weights.to(RR))
    equations = Equations(floats, floats, NETWORK)
    np.testing.assert_allclose(equations.direction(equations.pull())[factor], RR.convert(moment), atol=1e-12)
    assert QQ.equal(moment, moment.T)


@pytest.mark.parametrize("factor", LINEAR, ids=lambda factor: factor.name)
def test_fixing_a_factor_gives_the_least_norm_on_its_orbit(factor):
    weights = random_weights(NETWORK, RR, 0)
    tensors = tensors_of(weights)
    found, changes = factor.fix(tensors)
    fixed = tensors | changes
    np.testing.assert_allclose(factor.moment(fixed, RR), 0, atol=1e-13)
    moved = change(tensors, factor, found.element, RR)
    np.testing.assert_allclose(moved.vector(), weights_of(NETWORK, fixed, RR).vector(), atol=1e-12)
    size = np.linalg.norm(moved.vector())
    rng = np.random.default_rng(0)
    for _ in range(20):
        g = np.eye(factor.size) + 0.1 * rng.standard_normal((factor.size, factor.size))
        assert np.linalg.norm(change(tensors_of(moved), factor, g, RR).vector()) >= size - 1e-12


def test_moments_of_all_factors():
    weights = random_weights(NETWORK, QQ, 0)
    found = moments(weights)
    assert tuple(found) == linear_factors(NETWORK)
    head = weights.layers[0][1]
    expected = QQ.matmul(head.K, head.K.T) - QQ.matmul(head.Q, head.Q.T)
    assert QQ.equal(found[QueryKey(0, 1, 2)], expected)


def test_balance_with_fewer_columns_than_rows():
    rng = np.random.default_rng(0)
    T, S = rng.standard_normal((5, 2)), rng.standard_normal((5, 2))
    found = balance(T, S)
    np.testing.assert_allclose(found.element @ T, found.T, atol=1e-12)
    np.testing.assert_allclose(np.linalg.inv(found.element).T @ S, found.S, atol=1e-12)
    np.testing.assert_allclose(found.T @ found.T.T, found.S @ found.S.T, atol=1e-12)


def test_balance_in_the_closure_has_no_element():
    found = balance(np.array([[1.0], [1.0]]), np.array([[1.0], [-1.0]]))
    assert found.element is None and not found.T.any() and not found.S.any()


@pytest.mark.parametrize("power", [-150, 0, 150])
def test_balanced_factors_of_any_size_with_equal_singular_values(power):
    rng = np.random.default_rng(0)
    turns = [np.linalg.qr(rng.standard_normal((4, 4)))[0] for _ in range(2)]
    M = turns[0] @ np.diag([3.0, 3.0, 3.0, 1.0]) @ turns[1] * 10.0**power
    found = balanced_factors(M, 4)
    assert found.is_clear
    np.testing.assert_allclose((found.S.T / 10.0**power) @ found.T, M / 10.0**power, atol=1e-13)
    # The factors do not depend on the basis that the decomposition happened to choose.
    noisy = balanced_factors(M * (1 + 1e-15 * rng.standard_normal(M.shape)), 4)
    np.testing.assert_allclose(noisy.T, found.T, rtol=1e-10, atol=1e-10 * 10.0 ** (power / 2))


def test_close_calls_are_told():
    assert not balanced_factors(np.diag([1.0, 1.0 - 1e-8]), 2).is_clear
    assert first_large(np.array([0.7310585786300049, 1.0]))[1] is False
    assert choose_pivots(np.array([[0.6, 0.8]])) is not None


def test_weights_and_tensors_are_two_views():
    weights = random_weights(NETWORK, QQ, 3)
    assert isinstance(weights, Weights) and weights_of(NETWORK, tensors_of(weights), QQ).equals(weights)
