"""Cubic fields: field axioms, certified signs at the least real root, and no field without an irreducible modulus."""

import pytest
from flint import fmpq, fmpq_poly
from hypothesis import assume, given
from hypothesis import strategies as st

from attngeom.errors import DomainError, InputError
from attngeom.exact import CubicField

# x³ − 2 has one real root; x³ − 3x + 1 has three; the third is one that a certificate used.
MODULI = [(-2, 0, 0, 1), (1, -3, 0, 1), (fmpq(-5, 41), fmpq(-3, 41), fmpq(21, 41), 1)]
FIELDS = [CubicField(modulus) for modulus in MODULI]
fields = st.sampled_from(FIELDS)
rationals = st.fractions(min_value=-50, max_value=50, max_denominator=20)
triples = st.tuples(rationals, rationals, rationals)


@given(fields, triples, triples, triples)
def test_field_axioms(field, a, b, c):
    x, y, z = (field.element(*numbers) for numbers in (a, b, c))
    assert (x + y) * z == x * z + y * z
    assert (x * y) * z == x * (y * z)
    assert x - y == -(y - x)
    assert bool(x * y) == (bool(x) and bool(y))
    if y:
        assert x / y * y == x
        assert 1 / y * y == 1
    theta = field.element(0, 1)
    assert theta * theta * theta == -(field.modulus[0] + field.modulus[1] * theta + field.modulus[2] * theta * theta)


@given(fields, triples, triples)
def test_signs_multiply_and_agree_with_floats(field, a, b):
    x, y = field.element(*a), field.element(*b)
    assert (x * y).sign() == x.sign() * y.sign()
    assert (-x).sign() == -x.sign()
    root = min(
        float(root.real.mid()) for root, _ in fmpq_poly(list(field.modulus)).numer().complex_roots() if root.imag == 0
    )
    value = float(a[0]) + float(a[1]) * root + float(a[2]) * root**2
    assume(abs(value) > 1e-6)
    assert x.sign() == (1 if value > 0 else -1)


def test_signs_of_almost_zero_numbers_are_certified():
    field = CubicField((-2, 0, 0, 1))
    # (∛2 − 1)^n is tiny and positive, and its coefficients are huge.
    small = field.element(-1, 1)
    power = field.element(1)
    for _ in range(2000):
        power = power * small
    assert power.sign() == 1
    assert (power - field.element(fmpq(1, 10**1000))).sign() == -1
    assert field.element(0).sign() == 0


def test_the_least_of_two_close_roots_is_taken():
    # (x − 1)² (x + 2) − tiny: two roots next to 1, the least one next to −2 from above.
    tiny = fmpq(1, 10**40)
    field = CubicField((2 - tiny, -3, 0, 1))
    assert field.element(2, 1).sign() == 1 and field.element("19/10", 1).sign() == -1
    # (x − 1)² (x − 3) + tiny: the least root is next to 1 from below, another one is next to it from above.
    field = CubicField((-3 + tiny, 7, -5, 1))
    assert field.element(-1, 1).sign() == -1


@pytest.mark.parametrize(
    "modulus",
    [(0, 2, -3, 1), (-8, 0, 0, 1), (0, 0, 0, 1), (-2, 0, 0, 2), (-2, 0, 1), (-2, 0, 0, 0, 1), ("1/2", "1/2", 1, 1)],
)
def test_only_irreducible_monic_cubics_give_a_field(modulus):
    with pytest.raises(InputError):
        CubicField(modulus)


def test_different_fields_do_not_mix():
    x, y = (field.element(0, 1) for field in FIELDS[:2])
    with pytest.raises(DomainError):
        x + y
    with pytest.raises(InputError):
        FIELDS[0].convert([y])
    with pytest.raises(ZeroDivisionError):
        1 / FIELDS[0].element(0)


def test_text_and_json():
    x = FIELDS[0].element("1/2", 0, -3)
    assert FIELDS[0].format(x) == ["1/2", "0", "-3"]
    assert str(x) == "1/2 + -3*t^2"
