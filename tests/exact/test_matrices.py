"""Linear algebra over Q, GF(p) and quadratic fields: one contract, checked in every field and against each other."""

import numpy as np
import pytest
from flint import fmpq
from hypothesis import given, settings
from hypothesis import strategies as st

from attngeom.errors import DomainError, InputError
from attngeom.exact import (
    BIG_PRIME,
    GF,
    QQ,
    RR,
    WORD_PRIME,
    Balls,
    QuadraticField,
    determinant,
    nullspace,
    rank,
    row_space,
    rref,
    solve,
)

FIELDS = [QQ, GF(2), GF(WORD_PRIME), GF(BIG_PRIME), QuadraticField(5), QuadraticField(-1)]
IDS = ["QQ", "GF(2)", "GF(word)", "GF(big)", "Q(√5)", "Q(i)"]
every_field = pytest.mark.parametrize("field", FIELDS, ids=IDS)


@st.composite
def products(draw, field, largest=6):
    """A matrix that is a product of thin factors, so that small ranks are common."""
    rows, columns, inner = (draw(st.integers(0, largest)) for _ in range(3))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    return field.matmul(field.random((rows, inner), rng), field.random((inner, columns), rng)), inner


@every_field
@settings(max_examples=40)
@given(st.data())
def test_rank_plus_nullity_is_the_number_of_columns(field, data):
    a, inner = data.draw(products(field))
    basis = nullspace(a, field)
    assert rank(a, field) <= inner
    assert rank(a, field) + len(basis) == a.shape[1]
    assert rank(basis, field) == len(basis)
    assert field.is_zero(field.matmul(a, basis.T))
    assert rank(a.T, field) == rank(a, field)


@every_field
@settings(max_examples=40)
@given(st.data())
def test_echelon_form_is_reduced_and_depends_on_the_row_space_only(field, data):
    a, _ = data.draw(products(field))
    echelon = rref(a, field)
    assert echelon.matrix.shape == (echelon.rank, a.shape[1])
    assert echelon.rank == rank(a, field)
    assert field.equal(echelon.matrix[:, list(echelon.pivots)], field.eye(echelon.rank))
    for row, pivot in zip(echelon.matrix, echelon.pivots):
        assert field.is_zero(row[:pivot])
    change = field.random_invertible(len(a), np.random.default_rng(0))
    assert field.equal(row_space(field.matmul(change, a), field), echelon.matrix)


@every_field
@settings(max_examples=40)
@given(st.data())
def test_solutions_solve(field, data):
    a, _ = data.draw(products(field))
    b = field.matmul(a, field.random((a.shape[1], 2), np.random.default_rng(1)))
    x = solve(a, b, field)
    assert field.equal(field.matmul(a, x), b)
    assert field.equal(solve(a, b[:, 0], field), x[:, 0])


@every_field
def test_inconsistent_systems_have_no_solution(field):
    a = field.array([[1, 1], [1, 1]])
    assert solve(a, field.array([1, 0]), field) is None
    assert solve(field.zeros((2, 0)), field.array([1, 0]), field) is None


@every_field
@settings(max_examples=30)
@given(st.integers(0, 5), st.integers(0, 2**32 - 1))
def test_determinants_multiply_and_detect_singular_matrices(field, n, seed):
    rng = np.random.default_rng(seed)
    a, b = field.random((n, n), rng), field.random((n, n), rng)
    product = field.array([determinant(field.matmul(a, b), field)])
    factors = field.array([determinant(a, field)]) * field.array([determinant(b, field)])
    assert field.equal(product, field.reduce(factors))
    assert field.is_zero(field.array([determinant(a, field)])) == (rank(a, field) < n)


@every_field
def test_empty_matrices(field):
    assert rank(field.zeros((0, 3)), field) == rank(field.zeros((3, 0)), field) == 0
    assert field.equal(nullspace(field.zeros((0, 3)), field), field.eye(3))
    assert nullspace(field.zeros((3, 0)), field).shape == (0, 0)
    assert solve(field.zeros((0, 3)), field.zeros((0,)), field).shape == (3,)
    assert solve(field.zeros((0, 3)), field.zeros((0, 2)), field).shape == (3, 2)
    assert determinant(field.zeros((0, 0)), field) == 1
    assert row_space(field.zeros((2, 3)), field).shape == (0, 3)


@settings(max_examples=60)
@given(st.integers(1, 6), st.integers(1, 6), st.integers(0, 2**32 - 1))
def test_rank_mod_p_is_a_lower_bound_for_the_rational_rank(rows, columns, seed):
    rng = np.random.default_rng(seed)
    a = rng.integers(-3, 4, (rows, columns))
    exact = rank(QQ.array(a), QQ)
    assert rank(GF(3).array(a), GF(3)) <= exact
    # Minors of this size are smaller than the prime by Hadamard's bound, so none of them vanishes by accident.
    assert rank(GF(WORD_PRIME).array(a), GF(WORD_PRIME)) == exact


@settings(max_examples=40)
@given(st.integers(0, 2**32 - 1))
def test_rational_and_modular_solutions_reduce_to_each_other(seed):
    rng = np.random.default_rng(seed)
    field = GF(WORD_PRIME)
    a, b = QQ.random((3, 5), rng), QQ.random((3,), rng)
    rational, modular = solve(a, b, QQ), solve(field.array(a), field.array(b), field)
    assert (rational is None) == (modular is None)
    if rational is not None:
        assert field.equal(field.array(rational), modular)
    assert field.equal(field.array(nullspace(a, QQ)), nullspace(field.array(a), field))


def test_square_roots_change_the_rank():
    field = QuadraticField(2)
    a = field.array([[1, "sqrt(2)"], ["sqrt(2)", 2]])
    assert rank(a, field) == 1
    assert nullspace(a, field).tolist() == [[field.element(0, -1), field.element(1)]]
    assert determinant(a, field) == 0


def test_fractions_are_exact():
    third = QQ.array([["1/3", 1], [1, 3]])
    assert rank(third, QQ) == 1
    assert solve(QQ.array([["1/3"]]), QQ.array(["1/7"]), QQ).tolist() == [fmpq(3, 7)]


@pytest.mark.parametrize("domain", [RR, Balls(64)], ids=["RR", "balls"])
def test_inexact_domains_are_refused(domain):
    a = domain.zeros((2, 2))
    for function in (rank, rref, nullspace, determinant):
        with pytest.raises(DomainError):
            function(a, domain)


def test_wrong_shapes_are_refused():
    for function in (rank, rref, nullspace, determinant):
        with pytest.raises(InputError):
            function(QQ.zeros((2,)), QQ)
    with pytest.raises(InputError, match="square"):
        determinant(QQ.zeros((2, 3)), QQ)
    with pytest.raises(InputError, match="rows"):
        solve(QQ.zeros((2, 3)), QQ.zeros((3,)), QQ)
