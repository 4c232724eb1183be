"""Domains: one contract, one example table; products mod p are exact up to the largest word prime."""

from fractions import Fraction
from unittest import mock

import flint
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attngeom.errors import DomainError, InputError, SingularError
from attngeom.exact import BIG_PRIME, BLAS_PRIME, GF, QQ, RR, WORD_PRIME, Balls
from attngeom.exact.domains import as_fmpq, matmul_mod

DOMAINS = [QQ, RR, GF(2), GF(101), GF(BLAS_PRIME), GF(WORD_PRIME), GF(BIG_PRIME), Balls(100)]
IDS = [f"{domain.name}{getattr(domain, 'p', '')}" for domain in DOMAINS]


@pytest.mark.parametrize("domain", DOMAINS, ids=IDS)
def test_products_and_sums_are_those_of_the_integers(domain):
    rng = np.random.default_rng(0)
    a, b = rng.integers(-50, 50, size=(3, 4)), rng.integers(-50, 50, size=(4, 2))
    assert domain.equal(domain.matmul(domain.array(a), domain.array(b)), domain.array(a @ b))
    assert domain.equal(domain.reduce(domain.array(a) + domain.array(a)), domain.array(2 * a))
    assert domain.equal(domain.reduce(domain.array(a) * domain.array(a)), domain.array(a * a))
    assert domain.is_zero(domain.reduce(domain.array(a) - domain.array(a)))


@pytest.mark.parametrize("domain", DOMAINS, ids=IDS)
def test_batches_multiply_like_single_matrices(domain):
    rng = np.random.default_rng(1)
    a, b = domain.random((5, 2, 3), rng), domain.random((3, 4), rng)
    stacked = np.stack([domain.matmul(x, b) for x in a])
    assert domain.equal(domain.matmul(a, b), stacked)


@pytest.mark.parametrize("domain", DOMAINS[:-1], ids=IDS[:-1])
def test_inverses_invert(domain):
    matrix = domain.random_invertible(4, np.random.default_rng(2))
    product = domain.matmul(matrix, domain.inverse(matrix))
    assert np.allclose(product, np.eye(4)) if domain == RR else domain.equal(product, domain.eye(4))


@pytest.mark.parametrize("domain", DOMAINS, ids=IDS)
def test_singular_and_rectangular_matrices_have_no_inverse(domain):
    with pytest.raises(SingularError):
        domain.inverse(domain.array([[1, 1], [1, 1]]))
    with pytest.raises(InputError, match="square"):
        domain.inverse(domain.zeros((2, 3)))


@pytest.mark.parametrize("domain", DOMAINS, ids=IDS)
def test_shapes_that_do_not_fit_are_refused(domain):
    with pytest.raises(InputError, match="inner sizes"):
        domain.matmul(domain.zeros((2, 3)), domain.zeros((2, 3)))


@settings(max_examples=60)
@given(
    st.sampled_from([2, 3, 101, BLAS_PRIME, WORD_PRIME]),
    st.integers(0, 3),
    st.integers(1, 600),
    st.integers(0, 3),
    st.integers(0, 10**6),
)
def test_products_mod_p_equal_python_integers(p, rows, inner, columns, seed):
    rng = np.random.default_rng(seed)
    # Residues next to 0, p/2 and p stress the balanced representation.
    edges = np.array([0, 1, p // 2, (p + 1) // 2 % p, p - 1, int(rng.integers(0, p))])
    a, b = rng.choice(edges, size=(rows, inner)), rng.choice(edges, size=(inner, columns))
    expected = (a.astype(object) @ b.astype(object)) % p if rows and columns else np.zeros((rows, columns))
    assert np.array_equal(matmul_mod(a, b, p), expected.astype(np.int64))
    # The same in BLAS, however small.
    with mock.patch("attngeom.exact.products.SMALL", -1):
        assert np.array_equal(matmul_mod(a, b, p), expected.astype(np.int64))


def test_products_mod_large_primes_are_refused_in_floats():
    with pytest.raises(DomainError):
        matmul_mod(np.ones((1, 1), dtype=np.int64), np.ones((1, 1), dtype=np.int64), BIG_PRIME)


@given(st.fractions())
def test_rationals_are_read_from_every_form(x):
    expected = flint.fmpq(x.numerator, x.denominator)
    assert as_fmpq(x) == as_fmpq(str(x)) == as_fmpq(expected) == expected
    assert as_fmpq(float(3)) == as_fmpq(np.int64(3)) == as_fmpq("3.0") == as_fmpq("30e-1") == 3


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_floats_are_taken_exactly(x):
    value = as_fmpq(x)
    assert Fraction(int(value.p), int(value.q)) == Fraction(x)


@pytest.mark.parametrize(
    "bad", [None, True, [], "", "x", "1/0", "1/-2", "1 /2", "0x1", "1e99999", "9" * 200_000, float("nan"), 1j, b"1"],
    ids=lambda x: repr(x)[:12],
)  # fmt: skip
def test_what_is_not_rational_is_refused_in_one_line(bad):
    with pytest.raises(InputError) as caught:
        as_fmpq(bad)
    assert "\n" not in str(caught.value) and len(str(caught.value)) < 200


@pytest.mark.parametrize("p", [0, 1, -7, 4, 91, 2**63 + 29, 7.0, True, "7"])
def test_moduli_that_are_not_primes_are_refused(p):
    with pytest.raises(InputError, match="prime"):
        GF(p)


def test_denominators_divisible_by_p_are_refused():
    with pytest.raises(InputError, match="invertible mod 7"):
        GF(7).array(["1/14"])


def test_balls_enclose_and_restore_the_precision():
    before = flint.ctx.prec
    third = Balls(300).array(["1/3"])[0]
    assert flint.ctx.prec == before
    assert third.rad() < 1e-80
    assert not Balls(64).equal(Balls(64).array([1]), Balls(64).array([2]))
    with pytest.raises(InputError):
        Balls(1)


@pytest.mark.parametrize("prime", [BLAS_PRIME, WORD_PRIME, BIG_PRIME])
def test_named_primes_are_prime(prime):
    assert flint.fmpz(prime).is_prime()


@pytest.mark.parametrize("prime, bound", [(BLAS_PRIME, 2**23), (WORD_PRIME, 2**31 - 1)])
def test_named_primes_are_the_largest_below_their_bounds(prime, bound):
    assert not any(flint.fmpz(n).is_prime() for n in range(prime + 1, bound))
