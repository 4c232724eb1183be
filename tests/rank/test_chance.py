"""Error probabilities of ranks at random points: the degrees are upper bounds, and what cannot be stated is not."""

import numpy as np
import pytest
import sympy

import attngeom
from attngeom.errors import InputError
from attngeom.programs import trace
from attngeom.rank.analysis import certify_network
from attngeom.rank.chance import error_of_one_point, estimate_rank, jacobian_degrees
from attngeom.rank.lower import RankBound, bound_rank

TWO = {"a": (), "b": (), "c": ()}


def hidden(w, x):
    """a and b are seen through a + b³ alone, along a fiber that is no linear field."""
    s = w["a"] + w["b"] ** 3
    return w["c"] * s / (x * s + s**2 + x * x)


RATIONAL = [
    (lambda w, x: w["a"] * x + w["b"] * w["c"], ()),
    (hidden, ()),
    (lambda w, x: 1 / (w["a"] + 1 / (w["b"] * x + 1 / (w["c"] + x))), ()),
    (lambda w, x: (w["a"] * x[0] / (x[1] + w["b"]) + w["c"] / x[0]) ** 2, 2),
    (lambda w, x: x / (w["a"] * x + w["b"] * x[::-1]).sum() * w["c"], 2),
]


@pytest.mark.parametrize(("network", "shape"), RATIONAL)
def test_degrees_bound_those_of_the_fractions(network, shape):
    """The Jacobian of the function itself, as fractions of polynomials."""
    names = sympy.symbols("a b c")
    inputs = sympy.symbols("x:2")[: shape or 1]
    x = np.array(inputs, dtype=object) if shape else inputs[0]
    form = sympy.symbols("f:2")
    outputs = np.atleast_1d(np.array(network(dict(zip("abc", names)), x), dtype=object))
    total = sum(form[k] * y for k, y in enumerate(outputs))
    row = [sympy.fraction(sympy.cancel(sympy.together(sympy.diff(total, name)))) for name in names]
    common = sympy.lcm_list([below for _, below in row])
    variables = (*names, *inputs, *form)

    def degree(polynomial):
        return sympy.Poly(sympy.expand(polynomial), *variables).total_degree() if polynomial != 0 else 0

    above = max(degree(sympy.cancel(top * common / below)) for top, below in row)
    found = jacobian_degrees(trace(network, shape, weights=TWO))
    assert found is not None and found[0] >= above and found[1] >= degree(common)
    assert found[0] <= 8 * above + 8


def test_bounds_that_do_not_meet_leave_a_value_with_its_error():
    answer = attngeom.analyze(hidden, (), weights=TWO)
    assert (answer.dimension, answer.upper_bound, answer.standing) == (2, 3, "probabilistic")
    assert answer.error_probability <= 1e-12 and not answer.is_proven
    degrees = jacobian_degrees(answer.program)
    single = 3 * degrees[0] / answer.lower.prime / (1 - 3 * degrees[1] / answer.lower.prime)
    trials = int(answer.reason.split(" random points")[0].rsplit(" ", 1)[1])
    assert answer.error_probability == pytest.approx(single**trials) and trials >= 2
    assert answer.to_json()["error_probability"] == answer.error_probability and "probability of at most" in str(answer)
    with pytest.raises(InputError, match="between 2 and 3"):
        certify_network(answer)


def test_an_unlucky_first_point_is_made_up_for():
    """A point at which the rank is too small: the value is that of the best of all points."""
    lower = bound_rank(trace(hidden, (), weights=TWO))
    unlucky = RankBound(value=1, point=lower.point, samples=lower.samples[:1], outputs=(-1,), columns=lower.columns[:1])
    likely = estimate_rank(unlucky, 3)
    assert likely is not None and likely.bound.value == 2


@pytest.mark.parametrize(
    "network",
    [
        lambda w, x: np.tanh((w["a"] + w["b"] ** 3) * x) * w["c"],
        lambda w, x: np.sqrt((w["a"] + w["b"] ** 3) * x) * w["c"],
        lambda w, x: np.maximum((w["a"] + w["b"] ** 3) * x, 0) + w["c"],
    ],
)
def test_without_a_degree_nothing_is_stated(network):
    program = trace(network, (), weights=TWO)
    assert jacobian_degrees(program) is None and error_of_one_point(program, 3, 101) is None
    answer = attngeom.analyze(program)
    assert answer.standing in ("undecided", "proven") and answer.error_probability is None


def test_errors_that_are_not_small_are_not_stated():
    lower = bound_rank(trace(hidden, (), weights=TWO))
    assert error_of_one_point(lower.point.program, 10**6, lower.prime) == 1
    assert estimate_rank(lower, 10**6) is None and estimate_rank(lower, 10**5) is None


def test_proven_answers_have_no_error():
    answer = attngeom.analyze(lambda w, x: w["a"] * w["b"] * x, (), weights={"a": (), "b": ()})
    assert answer.is_proven and answer.error_probability is None and "error" not in answer.rows()
