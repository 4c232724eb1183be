"""Lifting: remainders and fractions come back, and a lift that fails its check is never returned."""

from itertools import chain, islice
from math import gcd, isqrt, prod

import numpy as np
import pytest
from flint import fmpq
from hypothesis import given
from hypothesis import strategies as st

from attngeom.errors import InputError
from attngeom.exact import BLAS_PRIME, QQ, WORD_PRIME
from attngeom.exact.lifting import crt, lift_nullspace, reconstruct, reconstruct_array
from attngeom.exact.numbers import primes_from
from tests.effort import examples

PRIMES = [WORD_PRIME, BLAS_PRIME, 2147483587, 1000003, 101]


@given(st.integers(1, 5), st.lists(st.integers(-(10**30), 10**30), min_size=1, max_size=5))
def test_remainders_determine_integers_below_half_the_modulus(count, values):
    primes = PRIMES[:count]
    half = prod(primes) // 2
    x = np.array([(v + half) % (2 * half + 1) - half for v in values], dtype=object)
    assert crt([x % p for p in primes], primes).tolist() == x.tolist()


def test_two_word_primes_stay_in_machine_integers():
    primes = [WORD_PRIME, 2147483587]
    x = np.array([prod(primes) // 2, -(prod(primes) // 2), 0, -1])
    lifted = crt([x % p for p in primes], primes)
    assert lifted.dtype == np.int64
    assert np.array_equal(lifted, x)


@pytest.mark.parametrize(("residues", "primes"), [([], []), ([np.zeros(1)], [3, 5]), ([np.zeros(1)] * 2, [3, 3])])
def test_remainders_need_one_array_for_each_distinct_prime(residues, primes):
    with pytest.raises(InputError):
        crt(residues, primes)


@given(
    st.sampled_from([101, BLAS_PRIME, WORD_PRIME, WORD_PRIME * BLAS_PRIME, WORD_PRIME * 2147483587 * 101]), st.data()
)
def test_small_fractions_are_reconstructed(modulus, data):
    bound = isqrt((modulus - 1) // 2)
    n, d = data.draw(st.integers(-bound, bound)), data.draw(st.integers(1, bound))
    if gcd(d, modulus) == 1:
        assert reconstruct(n * pow(d, -1, modulus), modulus) == fmpq(n, d)


def test_every_residue_has_at_most_one_reconstruction():
    modulus, bound = 101, 7
    small = {}
    for n in range(-bound, bound + 1):
        for d in range(1, bound + 1):
            if gcd(n, d) == 1:
                assert small.setdefault(n * pow(d, -1, modulus) % modulus, fmpq(n, d)) == fmpq(n, d)
    for x in range(modulus):
        assert reconstruct(x, modulus) == small.get(x)


def test_an_array_is_reconstructed_completely_or_not_at_all():
    assert reconstruct_array(np.array([[51, 34], [0, 100]]), 101).tolist() == [[fmpq(1, 2), fmpq(1, 3)], [0, -1]]
    assert reconstruct_array(np.array([51, 8]), 101) is None
    assert reconstruct_array(np.zeros((0, 3), dtype=np.int64), 101).shape == (0, 3)
    with pytest.raises(InputError):
        reconstruct(0, 1)


@examples(40)
@given(st.integers(1, 5), st.integers(1, 6), st.integers(1, 10**6), st.integers(0, 2**32 - 1))
def test_nullspaces_are_lifted_from_primes(rows, columns, size, seed):
    a = np.random.default_rng(seed).integers(-size, size + 1, (rows, columns))
    expected = QQ.nullspace(QQ.convert(a))
    by_prime = lift_nullspace(lambda p: a % p)
    assert QQ.equal(by_prime, expected)
    proven = lift_nullspace(lambda p: a % p, check=lambda basis: QQ.is_zero(QQ.matmul(QQ.convert(a), basis.T)))
    assert QQ.equal(proven, expected)


@pytest.mark.parametrize("order", [[3, 5], [5, 3]])
def test_primes_that_lower_the_rank_or_move_the_pivots_are_dropped(order):
    # Mod 3 the rank drops; mod 5 the first pivot moves to the right.
    a = np.array([[5, 1, 0, 0], [0, 0, 3, 1], [0, 0, 0, 3]])
    primes = chain(order, primes_from(BLAS_PRIME))
    lift = lift_nullspace(lambda p: a % p, primes)
    assert QQ.equal(lift, QQ.nullspace(QQ.convert(a)))


def test_rows_may_change_with_the_prime():
    def equations(p):
        factors = np.random.default_rng(p).integers(0, p, (4, 1))
        return factors * np.array([[1, -2, 3]]) % p

    assert lift_nullspace(equations).tolist() == [[2, 1, 0], [-3, 0, 1]]


def test_lifting_gives_up_without_a_common_nullspace():
    def equations(p):
        return np.random.default_rng(p).integers(0, p, (1, 2))

    few = list(islice(primes_from(WORD_PRIME), 5))
    assert lift_nullspace(equations, few) is None
    assert lift_nullspace(lambda p: np.array([[1, 1]]), few, lambda basis: False) is None
    assert lift_nullspace(lambda p: np.array([[1, 1]]), primes=[7]) is None
