"""Polynomials: the record and FLINT agree, values are exact in every domain, text forms follow their systems."""

import json

import numpy as np
import pytest
import sympy
from flint import fmpq
from hypothesis import given, settings
from hypothesis import strategies as st

from attngeom.errors import DomainError, FormatError, InputError
from attngeom.exact import BIG_PRIME, GF, QQ, RR, WORD_PRIME, Balls, Polynomial, QuadraticField, polynomial_ring
from attngeom.exact.polynomials import monomial_values, polynomial_determinant

NAMES = ("x", "y_0", "y_1_12")
coefficients = st.fractions(min_value=-9, max_value=9, max_denominator=7)
terms = st.dictionaries(st.tuples(*[st.integers(0, 3)] * 3), coefficients, max_size=6)
polynomials = terms.map(lambda t: Polynomial.from_terms(NAMES, t))


@given(terms)
def test_terms_are_kept_and_sorted(data):
    f = Polynomial.from_terms(NAMES, data)
    assert dict(f.terms) == {e: fmpq(c.numerator, c.denominator) for e, c in data.items() if c}
    assert f.degree == max((sum(e) for e, c in data.items() if c), default=-1)
    assert Polynomial.from_flint(f.to_flint()) == f
    assert f == Polynomial.from_terms(NAMES, dict(reversed(data.items())))


@given(polynomials)
def test_json_goes_both_ways(f):
    assert Polynomial.from_json(json.loads(json.dumps(f.to_json()))) == f


@given(polynomials)
def test_text_is_read_back_by_sympy(f):
    symbols = {name: sympy.Symbol(name) for name in NAMES}
    assert sympy.expand(sympy.sympify(str(f).replace("^", "**"), locals=symbols) - f.to_sympy()) == 0


@settings(max_examples=50)
@given(polynomials, st.integers(0, 2**32 - 1))
def test_values_agree_with_flint_over_the_rationals(f, seed):
    points = QQ.random((4, 3), np.random.default_rng(seed))
    assert f.evaluate(points, QQ).tolist() == [f.to_flint()(*point) for point in points]


@pytest.mark.parametrize(
    "domain",
    [RR, GF(101), GF(WORD_PRIME), GF(BIG_PRIME), Balls(100), QuadraticField(2)],
    ids=["RR", "GF(101)", "GF(word)", "GF(big)", "balls", "Q(√2)"],
)
def test_values_in_a_domain_are_the_images_of_rational_values(domain):
    f = Polynomial.from_terms(NAMES, {(2, 1, 0): "1/2", (0, 0, 3): -1, (1, 1, 1): 3, (0, 0, 0): 7})
    points = QQ.random((2, 5, 3), np.random.default_rng(0))
    values, expected = f.evaluate(domain.convert(points), domain), domain.convert(f.evaluate(points, QQ))
    assert values.shape == (2, 5)
    assert np.allclose(values, expected) if domain is RR else domain.equal(values, expected)


def test_many_points_are_evaluated_in_parts():
    f = Polynomial.from_terms(("x",), {(k,): k for k in range(60)})
    points = GF(101).random((20000, 1), np.random.default_rng(0))
    by_value = f.evaluate(GF(101).convert(np.arange(101))[:, None], GF(101))
    assert np.array_equal(f.evaluate(points, GF(101)), by_value[points[:, 0]])


def test_high_powers_take_few_products():
    f = Polynomial.from_terms(("x", "y"), {(65535, 0): 1, (60000, 5535): 1})
    assert f.evaluate(GF(101).convert([[2, 3]]), GF(101)).tolist() == [
        (pow(2, 65535, 101) + pow(2, 60000, 101) * pow(3, 5535, 101)) % 101
    ]


def test_zero_and_constants():
    zero = Polynomial.from_terms(NAMES, {(1, 0, 0): 0})
    assert (str(zero), zero.degree, zero.terms) == ("0", -1, ())
    assert zero.evaluate(QQ.zeros((2, 3)), QQ).tolist() == [0, 0]
    assert zero.to_sympy() == 0
    constant = Polynomial.from_terms((), {(): "3/2"})
    assert constant.evaluate(QQ.zeros((2, 0)), QQ).tolist() == [fmpq(3, 2)] * 2
    assert constant.evaluate(QQ.zeros((0, 0)), QQ).shape == (0,)


def test_reduction_mod_p():
    f = Polynomial.from_terms(("x", "y"), {(1, 0): "1/2", (0, 1): 7})
    assert str(f.to_flint(GF(7))) == "4*x"
    with pytest.raises(InputError):
        Polynomial.from_terms(("x",), {(1,): "1/7"}).to_flint(GF(7))
    with pytest.raises(DomainError):
        f.to_flint(RR)


@pytest.mark.parametrize(
    ("method", "text"),
    [
        ("__str__", "-1/2*x*y_1_12^2 + 3*y_0 - 7"),
        ("to_latex", r"-\frac{1}{2} x y_{1,12}^{2} + 3 y_{0} - 7"),
    ],
)
def test_text_in_the_syntax_of_each_system(method, text):
    f = Polynomial.from_terms(NAMES, {(1, 0, 2): "-1/2", (0, 1, 0): 3, (0, 0, 0): -7})
    assert getattr(f, method)() == text


def test_unit_coefficients_are_not_written():
    assert str(Polynomial.from_terms(("x",), {(2,): 1, (1,): -1, (0,): 1})) == "x^2 - x + 1"
    assert Polynomial.from_terms(("x",), {(11,): -1}).to_latex() == "-x^{11}"


@pytest.mark.parametrize(
    ("names", "data"),
    [
        (("x", "x"), {(1, 0): 1}),
        (("1x",), {(1,): 1}),
        (("x y",), {(1,): 1}),
        (("x;quit",), {}),
        (("x",), {(1, 0): 1}),
        (("x",), {(-1,): 1}),
        (("x",), {(2**40,): 1}),
        (("x",), {(1.0,): 1}),
        (("x",), {(True,): 1}),
        (("x",), {(1,): "one"}),
        (("x",), {(1,): float("nan")}),
    ],
)
def test_wrong_names_exponents_and_coefficients_are_refused(names, data):
    with pytest.raises(InputError):
        Polynomial.from_terms(names, data)


@pytest.mark.parametrize(
    "data",
    [
        None,
        [],
        {},
        {"variables": ["x"]},
        {"variables": ["x"], "terms": [[[1]]]},
        {"variables": ["x"], "terms": [[[1], "1"], [["1"], "1"]]},
        {"variables": ["x"], "terms": [[[10**30], "1"]]},
        {"variables": ["x"], "terms": [[[1], None]]},
        {"variables": ["x"], "terms": [[[[1]], "1"]]},
        {"variables": [["x"]], "terms": []},
        {"variables": [1], "terms": []},
        {"variables": ["x", "x"], "terms": []},
        {"variables": 3, "terms": []},
    ],
)
def test_malformed_json_is_refused(data):
    with pytest.raises(FormatError):
        Polynomial.from_json(data)


@settings(max_examples=40)
@given(st.recursive(st.none() | st.integers() | st.text(), lambda x: st.lists(x) | st.dictionaries(st.text(), x)))
def test_arbitrary_json_gives_a_polynomial_or_one_error(data):
    for value in (data, {"variables": ["x"], "terms": data}, {"variables": data, "terms": []}):
        try:
            assert isinstance(Polynomial.from_json(value), Polynomial)
        except FormatError as error:
            assert "\n" not in str(error)


def test_wrong_points_are_refused():
    with pytest.raises(InputError, match="coordinates"):
        Polynomial.from_terms(("x",), {(1,): 1}).evaluate(QQ.zeros((2, 2)), QQ)


def test_monomials_are_columns_and_points_are_rows():
    values = monomial_values([(0, 0), (2, 0), (1, 2)], QQ.convert([[1, 2], [3, 4]]), QQ)
    assert values.tolist() == [[1, 1, 4], [1, 9, 48]]
    assert monomial_values([], QQ.zeros((2, 1)), QQ).shape == (2, 0)


@pytest.mark.parametrize("domain", [QQ, GF(101)], ids=["QQ", "GF"])
def test_polynomial_determinants_evaluate_to_determinants(domain):
    ring = polynomial_ring([f"x_{i}" for i in range(9)], domain)
    generic = np.arange(9).reshape(3, 3).tolist()
    f = polynomial_determinant([[ring.gen(k) for k in row] for row in generic])
    assert len(f) == 6
    a = domain.random((3, 3), np.random.default_rng(0))
    assert f(*a.ravel().tolist()) == domain.to_flint(a).det()


def test_vandermonde_determinant():
    x, y, z = polynomial_ring(("x", "y", "z")).gens()
    rows = [[v**k for k in range(3)] for v in (x, y, z)]
    assert polynomial_determinant(rows) == (y - x) * (z - x) * (z - y)
    with pytest.raises(InputError):
        polynomial_determinant([[x, y]])
    with pytest.raises(InputError):
        polynomial_determinant([])
