"""Domains: one contract, one example table; products mod p are exact up to the largest word prime."""

from fractions import Fraction
from functools import cache
from itertools import permutations
from math import prod
from unittest import mock

import flint
import numpy as np
import pytest
from flint import fmpq
from hypothesis import given
from hypothesis import strategies as st

from attngeom.errors import DomainError, InputError, SingularError
from attngeom.exact import BIG_PRIME, BLAS_PRIME, GF, QQ, RR, WORD_PRIME, Balls, QuadraticField
from attngeom.exact.domains import as_fmpq, matmul_mod
from tests.effort import examples
from tests.exact.domain_examples import (
    EXAMPLES,
    close,
    every_domain,
    every_domain_without_ranks,
    every_exact_domain,
    every_field,
)


def leibniz(a):
    """The determinant of an integer matrix by its definition."""
    n = len(a)
    total = 0
    for order in permutations(range(n)):
        sign = prod(1 if order[i] < order[j] else -1 for i in range(n) for j in range(i + 1, n))
        total += sign * prod(int(a[i, order[i]]) for i in range(n))
    return total


@every_domain
def test_sums_and_products_are_those_of_the_integers(domain):
    rng = np.random.default_rng(0)
    a, b = rng.integers(-50, 50, size=(3, 4)), rng.integers(-50, 50, size=(4, 2))
    assert domain.equal(domain.matmul(domain.convert(a), domain.convert(b)), domain.convert(a @ b))
    assert domain.equal(domain.reduce(domain.convert(a) + domain.convert(a)), domain.convert(2 * a))
    assert domain.equal(domain.times(domain.convert(a), domain.convert(a)), domain.convert(a * a))
    assert domain.is_zero(domain.reduce(domain.convert(a) - domain.convert(a)))
    assert domain.equal(domain.convert(a.tolist()), domain.convert(a))
    assert domain.equal(domain.convert(domain.convert(a)), domain.convert(a))


@every_domain
def test_numbers_are_entries(domain):
    two = domain.convert([2])
    assert domain.equal(domain.convert([domain.zero, domain.one]), domain.convert([0, 1]))
    assert domain.equal(domain.eye(2), domain.convert([[1, 0], [0, 1]]))
    assert domain.is_zero(domain.zeros((2, 0, 3))) and domain.zeros((2, 0, 3)).shape == (2, 0, 3)
    assert domain.equal(domain.times(two, domain.convert([[1], [3]])), domain.convert([[2], [6]]))
    assert domain.convert(5).shape == ()
    characteristic = domain.convert([domain.characteristic])
    assert domain.is_zero(characteristic)
    assert not domain.is_zero(domain.convert([1]))


@every_domain
def test_batches_multiply_like_single_matrices(domain):
    rng = np.random.default_rng(1)
    a, b = domain.random((5, 2, 3), rng), domain.random((3, 4), rng)
    stacked = np.stack([domain.matmul(x, b) for x in a])
    assert close(domain, domain.matmul(a, b), stacked)
    assert domain.matmul(a[:, :, :0], b[:0]).shape == (5, 2, 4)
    assert domain.is_zero(domain.matmul(a[:, :, :0], b[:0]))


@every_field
def test_entries_and_matrices_are_inverted(domain):
    rng = np.random.default_rng(2)
    matrix = domain.random_invertible(4, rng)
    assert close(domain, domain.matmul(matrix, domain.inverse(matrix)), domain.eye(4))
    odd = domain.convert(np.array([[1, -1], [3, 5]]))
    ones = domain.convert(np.ones((2, 2), dtype=np.int64))
    assert close(domain, domain.times(odd, domain.invert(odd)), ones)
    assert close(domain, domain.convert([domain.invert(odd[1, 0])]), domain.invert(odd)[1, :1])
    assert domain.invert(odd[:0]).shape == (0, 2)


@every_domain
def test_zero_and_singular_matrices_have_no_inverse(domain):
    for zero in (domain.zero, domain.convert([1, 0])):
        with pytest.raises(SingularError):
            domain.invert(zero)
    with pytest.raises(SingularError):
        domain.inverse(domain.convert([[1, 1], [1, 1]]))
    with pytest.raises(InputError, match="square"):
        domain.inverse(domain.zeros((2, 3)))


@cache
def matrices(n):
    """Some integer matrices of size n and their determinants."""
    integers = np.random.default_rng(n).integers(-2, 3, (3, 2, n, n))
    return integers, np.array([[leibniz(a) for a in row] for row in integers], dtype=object)


@every_domain
def test_determinants_are_those_of_the_definition(domain):
    for n in range(7):
        integers, expected = matrices(n)
        stack = domain.convert(integers)
        assert domain.det(stack).shape == (3, 2)
        assert close(domain, domain.det(stack), domain.convert(expected)), n
        assert close(domain, domain.convert([domain.det(stack[0, 0])]), domain.convert(expected[0, :1])), n
    for shape in ((2,), (2, 3), (5, 2, 3)):
        with pytest.raises(InputError):
            domain.det(domain.zeros(shape))


@every_domain
def test_shapes_that_do_not_fit_are_refused(domain):
    with pytest.raises(InputError, match="inner sizes"):
        domain.matmul(domain.zeros((2, 3)), domain.zeros((2, 3)))
    with pytest.raises(InputError, match="ragged"):
        domain.convert([[1, 2], [3]])


@every_domain_without_ranks
def test_ranks_are_refused_where_they_cannot_be_decided(domain):
    a = domain.zeros((2, 2))
    for method in (domain.rank, domain.rref, domain.nullspace, lambda a: domain.solve(a, a)):
        with pytest.raises(DomainError):
            method(a)


@every_exact_domain
def test_rational_numbers_are_converted_exactly(domain):
    half = domain.convert(["1/2"] if domain.characteristic != 2 else ["1/3"])
    assert domain.equal(half + half if domain.characteristic != 2 else half, domain.convert([1]))


def test_floats_round_quadratic_numbers_and_refuse_complex_ones():
    assert RR.convert(QuadraticField(5).convert([["1/2+1/2*sqrt(5)"]])).tolist() == [[(1 + 5**0.5) / 2]]
    assert RR.convert(QuadraticField(-1).convert([3])).tolist() == [3.0]
    with pytest.raises(DomainError):
        RR.convert(QuadraticField(-1).convert(["sqrt(-1)"]))


@examples(60)
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
    with mock.patch("attngeom.exact.residues.SMALL_PRODUCT", -1):
        assert np.array_equal(matmul_mod(a, b, p), expected.astype(np.int64))


def test_products_mod_large_primes_are_refused_in_floats():
    with pytest.raises(DomainError):
        matmul_mod(np.ones((1, 1), dtype=np.int64), np.ones((1, 1), dtype=np.int64), BIG_PRIME)


@given(st.fractions())
def test_rationals_are_read_from_every_form(x):
    expected = flint.fmpq(x.numerator, x.denominator)
    assert as_fmpq(x) == as_fmpq(str(x)) == as_fmpq(expected) == expected
    assert as_fmpq(float(3)) == as_fmpq(np.int64(3)) == as_fmpq("3.0") == as_fmpq("30e-1") == 3


@pytest.mark.parametrize("text", ["7" * 5000 + ".5", "-0." + "3" * 5000, "+.25e-3", "7" * 4400 + "E9999", "1.e2"])
def test_decimals_of_any_length_are_taken_exactly(text):
    """Python itself reads no more than 4300 digits."""
    digits, _, exponent = text.lower().partition("e")
    whole, _, fraction = digits.partition(".")
    expected = flint.fmpz((whole + fraction).lstrip("+")) * flint.fmpq(10) ** (int(exponent or 0) - len(fraction))
    assert as_fmpq(text) == expected


@given(st.decimals(allow_nan=False, allow_infinity=False))
def test_decimals_are_taken_exactly(x):
    value = as_fmpq(str(x))
    assert Fraction(int(value.p), int(value.q)) == Fraction(x)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_floats_are_taken_exactly(x):
    value = as_fmpq(x)
    assert Fraction(int(value.p), int(value.q)) == Fraction(x)


@pytest.mark.parametrize(
    "bad",
    [
        None,
        True,
        [],
        "",
        "x",
        ".",
        "+.",
        "e1",
        ".e1",
        "1/0",
        "1/-2",
        "1 /2",
        "0x1",
        "1e99999",
        "9" * 200_000,
        float("nan"),
        1j,
        b"1",
    ],
    ids=lambda x: repr(x)[:12],
)
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
        GF(7).convert(["1/14"])


def test_balls_enclose_and_restore_the_precision():
    before = flint.ctx.prec
    third = Balls(300).convert(["1/3"])[0]
    assert flint.ctx.prec == before
    assert third.rad() < 1e-80
    assert not Balls(64).equal(Balls(64).convert([1]), Balls(64).convert([2]))
    with pytest.raises(InputError):
        Balls(1)


@pytest.mark.parametrize("prime", [BLAS_PRIME, WORD_PRIME, BIG_PRIME])
def test_named_primes_are_prime(prime):
    assert flint.fmpz(prime).is_prime()


@pytest.mark.parametrize("prime, bound", [(BLAS_PRIME, 2**23), (WORD_PRIME, 2**31 - 1)])
def test_named_primes_are_the_largest_below_their_bounds(prime, bound):
    assert not any(flint.fmpz(n).is_prime() for n in range(prime + 1, bound))


@every_domain
def test_pivots_are_nonzero_entries(domain):
    a = domain.convert([[0, 0], [-3, 1]])
    place = domain.pivot(a)
    assert place == 2 and not domain.is_zero(a.ravel()[place : place + 1])
    for none in (domain.zeros((2, 2)), domain.zeros((0,))):
        with pytest.raises(SingularError):
            domain.pivot(none)


@every_domain
def test_square_roots_and_exponentials_are_right_or_refused(domain):
    for operation in (lambda: domain.sqrt(domain.convert([4])[0]), lambda: domain.exp(domain.zeros((1, 2)))):
        try:
            found = operation()
        except DomainError:
            assert not domain.rounds
            continue
        if np.ndim(found):
            assert close(domain, found, domain.convert([[1, 1]]))
        else:
            assert close(domain, domain.times(domain.convert([found]), domain.convert([found])), domain.convert([4]))


def test_what_has_no_square_root_has_none():
    assert QQ.sqrt(fmpq(2)) is None and QQ.sqrt(fmpq(-4)) is None and QQ.sqrt(fmpq(4, 9)) == fmpq(2, 3)
    assert GF(7).sqrt(3) is None and GF(7).sqrt(2) == 3 and GF(BIG_PRIME).sqrt(4) == 2
    assert RR.sqrt(-1.0) is None


@every_domain
def test_labels_tell_domains_apart(domain):
    assert domain.label and sum(other.domain.label == domain.label for other in EXAMPLES) <= 2
    assert [domain.is_exact, domain.rounds, domain.encloses].count(True) == 1
