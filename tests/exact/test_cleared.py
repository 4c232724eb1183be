"""Integer matrices over one denominator: the same answers as entry by entry over Q."""

import numpy as np
import pytest
from flint import fmpq
from hypothesis import given
from hypothesis import strategies as st

from attngeom.errors import InputError
from attngeom.exact import BIG_PRIME, GF, QQ, WORD_PRIME
from tests.effort import examples


def fractions(rows, columns, rng):
    """A matrix of fractions with denominators up to 12."""
    numerators, denominators = rng.integers(-20, 21, (rows, columns)), rng.integers(1, 13, (rows, columns))
    return QQ.convert(numerators) / denominators


@examples(40)
@given(st.integers(1, 5), st.integers(1, 5), st.integers(1, 5), st.integers(0, 2**32 - 1))
def test_arithmetic_is_that_of_the_rationals(m, n, k, seed):
    rng = np.random.default_rng(seed)
    a, b, c = fractions(m, n, rng), fractions(n, k, rng), fractions(m, n, rng)
    x, y, z = QQ.clear(a), QQ.clear(b), QQ.clear(c)
    assert QQ.equal((x * y).to_array(), QQ.matmul(a, b))
    assert QQ.equal((x + z).to_array(), a + c)
    assert QQ.equal(x.scaled(fmpq(-3, 7)).to_array(), a * fmpq(-3, 7))
    assert QQ.equal(x.transpose().to_array(), a.T)
    assert x.equals(x.scaled(fmpq(5)).scaled(fmpq(1, 5)))
    assert x.equals(z) == QQ.equal(a, c)
    assert (x * y).reduced().equals(x * y)
    assert (x * y).reduced().denominator == QQ.clear(QQ.matmul(a, b)).denominator


def test_a_factor_of_the_mixed_rows_that_does_not_divide_the_rows_is_not_cancelled():
    # 1·1 + 2·1 = 3.
    third = QQ.convert([["1/3"], ["1/3"]])
    assert QQ.equal(QQ.clear(third).reduced().to_array(), third)
    sixths = QQ.clear(third).scaled(fmpq(1, 2)) * QQ.clear(QQ.convert([[2]]))
    assert sixths.denominator == 6 and sixths.reduced().denominator == 3


@examples(40)
@given(st.integers(1, 4), st.integers(1, 3), st.integers(0, 2**32 - 1))
def test_left_systems_are_solved(n, m, seed):
    rng = np.random.default_rng(seed)
    a, b = fractions(n, n, rng), fractions(m, n, rng)
    found = QQ.clear(a).solve_left(QQ.clear(b))
    assert QQ.clear(a).is_invertible() == (QQ.rank(a) == n)
    if QQ.rank(a) == n:
        assert QQ.equal(QQ.matmul(found.to_array(), a), b)
    else:
        assert found is None


@examples(40)
@given(st.sampled_from([101, WORD_PRIME, BIG_PRIME]), st.integers(0, 5), st.integers(0, 2**32 - 1))
def test_residues_are_those_of_the_entries(p, n, seed):
    field, a = GF(p), fractions(n, 3, np.random.default_rng(seed))
    entry_by_entry = field.convert([[str(x) for x in row] for row in a]).reshape(n, 3)
    assert field.equal(field.convert(a), entry_by_entry)
    assert field.convert(a).dtype == entry_by_entry.dtype


def test_denominators_divisible_by_p_are_refused():
    with pytest.raises(InputError, match="divisible by 7"):
        GF(7).convert(QQ.convert([[1, "1/14"]]))
