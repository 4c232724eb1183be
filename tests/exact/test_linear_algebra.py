"""Linear algebra over Q, GF(p) and quadratic fields: one contract, checked in every field and against each other."""

import numpy as np
import pytest
from flint import fmpq
from hypothesis import given
from hypothesis import strategies as st

from attngeom.errors import InputError
from attngeom.exact import GF, QQ, WORD_PRIME, QuadraticField
from tests.effort import examples
from tests.exact.domain_examples import every_field_with_ranks


@st.composite
def products(draw, domain, largest=6):
    """A matrix that is a product of thin factors, so that small ranks are common."""
    rows, columns, inner = (draw(st.integers(0, largest)) for _ in range(3))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    return domain.matmul(domain.random((rows, inner), rng), domain.random((inner, columns), rng)), inner


@every_field_with_ranks
@examples(40)
@given(st.data())
def test_rank_plus_nullity_is_the_number_of_columns(domain, data):
    a, inner = data.draw(products(domain))
    basis = domain.nullspace(a)
    assert domain.rank(a) <= inner
    assert domain.rank(a) + len(basis) == a.shape[1]
    assert domain.rank(basis) == len(basis)
    assert domain.is_zero(domain.matmul(a, basis.T))
    assert domain.rank(a.T) == domain.rank(a)


@every_field_with_ranks
@examples(40)
@given(st.data())
def test_echelon_form_is_reduced_and_depends_on_the_row_space_only(domain, data):
    a, _ = data.draw(products(domain))
    echelon = domain.rref(a)
    assert echelon.matrix.shape == (echelon.rank, a.shape[1])
    assert echelon.rank == domain.rank(a)
    assert domain.equal(echelon.matrix[:, list(echelon.pivots)], domain.eye(echelon.rank))
    for row, pivot in zip(echelon.matrix, echelon.pivots):
        assert domain.is_zero(row[:pivot])
    change = domain.random_invertible(len(a), np.random.default_rng(0))
    assert domain.equal(domain.rref(domain.matmul(change, a)).matrix, echelon.matrix)


@every_field_with_ranks
@examples(40)
@given(st.data())
def test_solutions_solve(domain, data):
    a, _ = data.draw(products(domain))
    b = domain.matmul(a, domain.random((a.shape[1], 2), np.random.default_rng(1)))
    x = domain.solve(a, b)
    assert domain.equal(domain.matmul(a, x), b)
    assert domain.equal(domain.solve(a, b[:, 0]), x[:, 0])


@every_field_with_ranks
def test_inconsistent_systems_have_no_solution(domain):
    a = domain.convert([[1, 1], [1, 1]])
    assert domain.solve(a, domain.convert([1, 0])) is None
    assert domain.solve(domain.zeros((2, 0)), domain.convert([1, 0])) is None


@every_field_with_ranks
@examples(30)
@given(st.integers(0, 5), st.integers(0, 2**32 - 1))
def test_determinants_multiply_and_detect_singular_matrices(domain, n, seed):
    rng = np.random.default_rng(seed)
    a, b = domain.random((n, n), rng), domain.random((n, n), rng)
    product = domain.convert([domain.det(domain.matmul(a, b))])
    factors = domain.times(domain.convert([domain.det(a)]), domain.convert([domain.det(b)]))
    assert domain.equal(product, factors)
    assert domain.is_zero(domain.convert([domain.det(a)])) == (domain.rank(a) < n)


@every_field_with_ranks
def test_empty_matrices(domain):
    assert domain.rank(domain.zeros((0, 3))) == domain.rank(domain.zeros((3, 0))) == 0
    assert domain.equal(domain.nullspace(domain.zeros((0, 3))), domain.eye(3))
    assert domain.nullspace(domain.zeros((3, 0))).shape == (0, 0)
    assert domain.solve(domain.zeros((0, 3)), domain.zeros((0,))).shape == (3,)
    assert domain.solve(domain.zeros((0, 3)), domain.zeros((0, 2))).shape == (3, 2)
    assert domain.det(domain.zeros((0, 0))) == 1
    assert domain.rref(domain.zeros((2, 3))).matrix.shape == (0, 3)


@examples(60)
@given(st.integers(1, 6), st.integers(1, 6), st.integers(0, 2**32 - 1))
def test_rank_mod_p_is_a_lower_bound_for_the_rational_rank(rows, columns, seed):
    rng = np.random.default_rng(seed)
    a = rng.integers(-3, 4, (rows, columns))
    exact = QQ.rank(QQ.convert(a))
    assert GF(3).rank(GF(3).convert(a)) <= exact
    # Minors of this size are smaller than the prime by Hadamard's bound, so none of them vanishes by accident.
    assert GF(WORD_PRIME).rank(GF(WORD_PRIME).convert(a)) == exact


@examples(40)
@given(st.integers(0, 2**32 - 1))
def test_rational_and_modular_solutions_reduce_to_each_other(seed):
    rng = np.random.default_rng(seed)
    domain = GF(WORD_PRIME)
    a, b = QQ.random((3, 5), rng), QQ.random((3,), rng)
    rational, modular = QQ.solve(a, b), domain.solve(domain.convert(a), domain.convert(b))
    assert (rational is None) == (modular is None)
    if rational is not None:
        assert domain.equal(domain.convert(rational), modular)
    assert domain.equal(domain.convert(QQ.nullspace(a)), domain.nullspace(domain.convert(a)))


def test_square_roots_change_the_rank():
    domain = QuadraticField(2)
    a = domain.convert([[1, "sqrt(2)"], ["sqrt(2)", 2]])
    assert domain.rank(a) == 1
    assert domain.nullspace(a).tolist() == [[domain.element(0, -1), domain.element(1)]]
    assert domain.det(a) == 0


def test_fractions_are_exact():
    third = QQ.convert([["1/3", 1], [1, 3]])
    assert QQ.rank(third) == 1
    assert QQ.solve(QQ.convert([["1/3"]]), QQ.convert(["1/7"])).tolist() == [fmpq(3, 7)]


def test_wrong_shapes_are_refused():
    for method in (QQ.rank, QQ.rref, QQ.nullspace, QQ.det):
        with pytest.raises(InputError):
            method(QQ.zeros((2,)))
    with pytest.raises(InputError, match="square"):
        QQ.det(QQ.zeros((2, 3)))
    with pytest.raises(InputError, match="rows"):
        QQ.solve(QQ.zeros((2, 3)), QQ.zeros((3,)))
