"""One table of rules drives the tests of the contract: every kind, with and without mask and temperature."""

from fractions import Fraction

import numpy as np
import pytest

from attngeom.dimensions import dimension, upper_bound
from attngeom.dimensions.lower_bounds import balls_lower_bound, minor_lower_bound
from attngeom.errors import DomainError, InputError
from attngeom.exact import GF, QQ, RR, Balls
from attngeom.exact.arrays import swap
from attngeom.exact.domains import BalancedField
from attngeom.network import Architecture, Weights, forward, random_weights
from attngeom.network.attention import RULES, Lightning, Sigmoid, Softmax
from attngeom.network.mask import Mask
from tests.network.definition import forward_definition

TRANSCENDENTAL = [kind for kind in RULES.values() if not kind.is_polynomial]
RULES = [
    *(kind(Mask(causal)) for kind in RULES.values() for causal in (False, True)),
    *(kind(Mask(causal), temperature=Fraction(3, 2)) for kind in TRANSCENDENTAL for causal in (False, True)),
]


@pytest.mark.parametrize("rule", RULES, ids=str)
def test_push_is_the_derivative_of_the_weights_pull_its_transpose_and_bend_the_derivative_of_that(rule):
    rng = np.random.default_rng(0)
    S, dS, C = (rng.standard_normal((3, 4, 4)) for _ in range(3))
    P, step = rule.weights(S, RR), 1e-6
    numeric = (rule.weights(S + step * dS, RR) - rule.weights(S - step * dS, RR)) / (2 * step)
    pushed = rule.push(P, dS, RR)
    assert np.allclose(pushed, numeric, atol=1e-8)
    assert np.allclose((pushed * C).sum(), (rule.pull(P, C, RR) * dS).sum())
    moved = [rule.pull(rule.weights(S + sign * step * dS, RR), C, RR) for sign in (1, -1)]
    assert np.allclose(rule.second_derivative(P, pushed, C, RR), (moved[0] - moved[1]) / (2 * step), atol=1e-8)


@pytest.mark.parametrize("rule", RULES, ids=str)
def test_weights_obey_the_mask_and_are_normalised_where_they_say_so(rule):
    P = rule.weights(np.random.default_rng(1).standard_normal((5, 4, 4)), RR)
    assert not rule.mask.hides or not np.any(np.tril(P, -1))
    assert np.allclose(P.sum(axis=-2), 1) == rule.is_normalised


@pytest.mark.parametrize("rule", RULES, ids=str)
def test_balls_enclose_the_weights(rule):
    S = np.random.default_rng(2).standard_normal((3, 3))
    balls = Balls(128)
    with balls.working():
        enclosed = rule.weights(balls.convert(S), balls)
    assert np.allclose([float(x.mid()) for x in enclosed.ravel()], rule.weights(S, RR).ravel())


@pytest.mark.parametrize("rule", RULES, ids=str)
def test_mixing_uses_the_weights(rule):
    rng = np.random.default_rng(3)
    q, k, v = (rng.standard_normal((2, 9, width)) for width in (2, 2, 3))
    P = rule.weights(np.matmul(k, swap(q)), RR)
    assert np.allclose(rule.mix(q, k, v, RR), swap(P) @ v)


@pytest.mark.parametrize("kind", TRANSCENDENTAL, ids=lambda kind: kind.name)
@pytest.mark.parametrize("field", [GF(10007), BalancedField(10007)], ids=["residues", "balanced"])
def test_formal_weights_are_drawn_as_the_rule_demands(kind, field):
    for causal in (False, True):
        rule = kind(Mask(causal))
        for copies in (None, 1, 3):
            P = rule.draw((4, 3, 3), copies, field, np.random.default_rng(4))
            assert P.shape == (4, 3, 3) and field.equal(P, field.reduce(P))
            assert not causal or not np.any(np.tril(P, -1))
            if kind.is_normalised:
                assert field.is_zero(field.reduce(P.sum(axis=-2) - 1))
            elif copies is not None and not causal:
                assert field.equal(P, swap(P))
    assert kind(temperature=Fraction(2)).formal == kind()


def test_polynomial_kinds_have_no_formal_weights():
    with pytest.raises(DomainError, match="lightning"):
        Lightning().draw((2, 2), None, GF(7), np.random.default_rng(0))


@pytest.mark.parametrize("kind", TRANSCENDENTAL, ids=lambda kind: kind.name)
def test_exact_domains_have_no_exponentials(kind):
    with pytest.raises(DomainError, match="exponential"):
        kind().weights(QQ.eye(2), QQ)


@pytest.mark.parametrize("kind", TRANSCENDENTAL, ids=lambda kind: kind.name)
def test_extreme_scores_saturate_without_overflow(kind):
    P = kind().weights(np.array([[1e4, -1e4], [-1e4, 1e4]]), RR)
    assert np.array_equal(P, np.eye(2))


@pytest.mark.parametrize("kind", TRANSCENDENTAL, ids=lambda kind: kind.name)
def test_temperature_divides_the_scores(kind):
    hot = Architecture((3, 2, 3), 2, kind=kind.name, heads=2, value_width=1, temperature="5/2")
    weights = random_weights(hot, RR, 0)
    cold = Architecture((3, 2, 3), 2, kind=kind.name, heads=2, value_width=1)
    tensors = {name: x * 0.4 if name.endswith("Q") else x for name, x in weights.tensors()}
    X = np.random.default_rng(5).standard_normal((4, 3, 3))
    expected = forward(Weights.from_tensors(cold, tensors, RR), X)
    assert np.allclose(forward(weights, X), expected)
    assert np.allclose(forward_definition(weights, X), expected)


@pytest.mark.parametrize("kind", TRANSCENDENTAL, ids=lambda kind: kind.name)
def test_temperature_changes_no_dimension(kind):
    for options in ({}, {"residual": True}, {"causal": True}):
        hot = Architecture((3, 3, 3), 2, 2, kind.name, temperature="251/7", **options)
        cold = Architecture((3, 3, 3), 2, 2, kind.name, **options)
        assert dimension(hot, prove=True).dimension == dimension(cold, prove=True).dimension
        assert balls_lower_bound(hot, upper_bound(hot).value).value == upper_bound(hot).value


SIGMOID = [
    Architecture((3, 3, 3), 2, kind="sigmoid"),
    Architecture((3, 2), 2, 3, "sigmoid", causal=True),
    Architecture((1, 2), 1, 3, "sigmoid"),
    Architecture((3, 2), 2, 1, "sigmoid"),
    Architecture((2, 1, 2), 2, 4, "sigmoid"),
    Architecture((2, 2, 2), 2, 2, "sigmoid", heads=2, value_width=1, residual=True),
]


@pytest.mark.parametrize("architecture", SIGMOID, ids=str)
def test_formal_sigmoid_agrees_with_true_exponentials(architecture):
    upper = upper_bound(architecture).value
    assert balls_lower_bound(architecture, upper).value == upper == minor_lower_bound(architecture, upper + 2).value


def test_sigmoid_is_not_softmax():
    X = np.random.default_rng(6).standard_normal((2, 3))
    w = random_weights(Architecture((2, 2), 2, kind="sigmoid"), RR, 0)
    ((head,),) = w.layers
    expected = head.V @ X @ (1 / (1 + np.exp(-X.T @ head.K.T @ head.Q @ X)))
    assert np.allclose(forward(w, X), expected)
    assert not Sigmoid().is_normalised and Softmax().is_normalised and not Sigmoid().has_scale


@pytest.mark.parametrize("value", [0, -1, "0", "x", "1/0", float("inf"), float("nan"), True, None, [1], "1e4000"])
def test_bad_temperatures_are_refused(value):
    with pytest.raises(InputError, match="positive rational"):
        Architecture((2, 2), 1, kind="softmax", temperature=value)


def test_polynomial_attention_has_no_temperature():
    with pytest.raises(InputError, match="divide Q"):
        Architecture((2, 2), 1, temperature=2)
    assert Architecture((2, 2), 1, temperature="1").temperature == 1


def test_files_grow_by_a_temperature_only_where_there_is_one():
    plain = Architecture((2, 2), 1, kind="softmax")
    assert "temperature" not in plain.to_json() and Architecture.from_json(plain.to_json()) == plain
    hot = Architecture((2, 2), 1, kind="softmax", temperature=0.5)
    assert hot.to_json()["temperature"] == "1/2"
    assert Architecture.from_json(hot.to_json()) == hot != plain
