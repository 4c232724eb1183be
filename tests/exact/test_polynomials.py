"""Polynomials: the record and FLINT agree, text forms follow their systems."""

import numpy as np
import pytest
import sympy
from flint import fmpq
from hypothesis import given
from hypothesis import strategies as st

from attngeom.errors import DomainError, InputError
from attngeom.exact import GF, QQ, RR, Polynomial
from attngeom.exact.domains.polynomials import exponent_table
from attngeom.exact.modular import laplace_expansion
from tests.exact.expressions import as_sympy

NAMES = ("x", "y_0", "y_1_12")
coefficients = st.fractions(min_value=-9, max_value=9, max_denominator=7)
terms = st.dictionaries(st.tuples(*[st.integers(0, 3)] * 3), coefficients, max_size=6)
polynomials = terms.map(lambda t: Polynomial.from_terms(NAMES, t))


@given(terms)
def test_terms_are_kept_and_sorted(data):
    f = Polynomial.from_terms(NAMES, data)
    assert dict(f.terms) == {e: fmpq(c.numerator, c.denominator) for e, c in data.items() if c}
    assert Polynomial.from_flint(f.to_flint()) == f
    assert f == Polynomial.from_terms(NAMES, dict(reversed(data.items())))


@given(polynomials)
def test_text_is_read_back_by_sympy(f):
    symbols = {name: sympy.Symbol(name) for name in NAMES}
    assert sympy.expand(sympy.sympify(str(f).replace("^", "**"), locals=symbols) - as_sympy(f)) == 0


def test_zero_and_constants():
    zero = Polynomial.from_terms(NAMES, {(1, 0, 0): 0})
    assert (str(zero), zero.terms) == ("0", ())
    assert zero.to_flint() == 0
    constant = Polynomial.from_terms((), {(): "3/2"})
    assert constant.to_flint() == fmpq(3, 2)


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


@pytest.mark.parametrize("domain", [QQ, GF(101)], ids=["QQ", "GF"])
def test_polynomial_determinants_evaluate_to_determinants(domain):
    ring = domain.polynomials([f"x_{i}" for i in range(9)])
    generic = np.arange(9).reshape(3, 3).tolist()
    f = laplace_expansion([[ring.gen(k) for k in row] for row in generic])
    assert len(f) == 6
    a = domain.random((3, 3), np.random.default_rng(0))
    assert f(*a.ravel().tolist()) == domain.to_flint(a).det()


def test_vandermonde_determinant():
    x, y, z = QQ.polynomials(("x", "y", "z")).gens()
    rows = [[v**k for k in range(3)] for v in (x, y, z)]
    assert laplace_expansion(rows) == (y - x) * (z - x) * (z - y)
    with pytest.raises(InputError):
        laplace_expansion([[x, y]])
    with pytest.raises(InputError):
        laplace_expansion([])


@pytest.mark.parametrize("domain", [QQ, GF(7)], ids=str)
@pytest.mark.parametrize("terms", [{}, {(0, 0): 1}, {(255, 0): 1}, {(255, 256): 1, (300, 0): 2, (0, 0): 1}], ids=str)
def test_exponents_of_any_size_are_listed(domain, terms):
    found = exponent_table(domain.polynomials(("x", "y")).from_dict(terms))
    assert found.shape == (len(terms), 2) and set(map(tuple, found.tolist())) == set(terms)
