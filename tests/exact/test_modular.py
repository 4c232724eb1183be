"""Linear algebra mod p: FLINT and BLAS agree, witnesses are nonzero minors, nullspaces are annihilated."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from attngeom.errors import DomainError, InputError
from attngeom.exact import BIG_PRIME, BLAS_PRIME, GF, WORD_PRIME
from attngeom.exact.modular import choose_method, echelon_mod_p, rank_mod_p, rref_mod_p
from attngeom.exact.residues import BalancedResidues, Elimination, matmul_mod
from tests.effort import choose, examples, thorough

METHODS = ["flint", "blas"]
# Small primes, both sides of the limits of float32, direct, entrywise and split products, the largest word prime.
PRIMES = [2, 3, 101, 251, 257, BLAS_PRIME, 33554393, 67108859, 134217689, 268435399, WORD_PRIME, 2**31 - 1]


def low_rank(rows, columns, rank, p, rng, density=1.0):
    """A random matrix of rank at most ``rank``; a density below 1 then puts zeros anywhere."""
    a = matmul_mod(rng.integers(0, p, (rows, rank)), rng.integers(0, p, (rank, columns)), p)
    return a * (rng.random(a.shape) < density)


@st.composite
def matrices(draw, largest=70):
    p = draw(st.sampled_from(PRIMES))
    rows, columns = draw(st.integers(0, largest)), draw(st.integers(0, largest))
    rank = draw(st.integers(0, min(rows, columns)))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    a = low_rank(rows, columns, rank, p, rng, density=draw(st.sampled_from([1.0, 1.0, 0.3, 0.03])))
    if columns and draw(st.booleans()):
        a[:, rng.integers(0, columns, columns // 3)] = 0
    return a, p


@examples(200)
@given(matrices())
def test_flint_and_blas_give_the_same_echelon_form(case):
    a, p = case
    flint, blas = (rref_mod_p(a, p, method=method) for method in METHODS)
    assert flint.pivots == blas.pivots
    assert np.array_equal(flint.matrix, blas.matrix)
    assert rank_mod_p(a, p, method="flint") == rank_mod_p(a, p, method="blas") == blas.rank == len(blas.matrix)


@pytest.mark.parametrize("method", METHODS)
@examples(100)
@given(matrices())
def test_pivots_are_a_nonzero_minor_of_the_size_of_the_rank(method, case):
    a, p = case
    pivots = echelon_mod_p(a, p, method=method)
    assert pivots.rank == rank_mod_p(a, p, method="flint")
    assert len(set(pivots.rows)) == len(pivots.rows) == pivots.rank
    assert GF(p).det(a[np.ix_(pivots.rows, pivots.columns)]) != 0


@pytest.mark.parametrize("method", METHODS)
@examples(100)
@given(matrices())
def test_nullspace_is_annihilated_and_has_the_complementary_dimension(method, case):
    a, p = case
    basis = GF(p).kernel(rref_mod_p(a, p, method=method))
    assert not np.any(matmul_mod(a, basis.T, p))
    assert len(basis) == rank_mod_p(basis, p) == a.shape[1] - rank_mod_p(a, p)


@examples(60)
@given(matrices(largest=40), st.integers(0, 2**32 - 1))
def test_solutions_solve_and_inconsistent_systems_have_none(case, seed):
    (a, p), field = case, GF(case[1])
    rng = np.random.default_rng(seed)
    b = matmul_mod(a, rng.integers(0, p, (a.shape[1], 2)), p)
    x = field.solve(a, b)
    assert np.array_equal(matmul_mod(a, x, p), b)
    assert np.array_equal(field.solve(a, b[:, 0]), x[:, 0])
    if rank_mod_p(a, p) < len(a):
        # A vector outside the column space, by a linear form that vanishes on it.
        form = field.nullspace(a.T)[0]
        outside = (b[:, 0] + (np.arange(len(a)) == np.flatnonzero(form)[0])) % p
        assert field.solve(a, outside) is None


@pytest.mark.parametrize("p", PRIMES)
def test_extreme_residues_do_not_round(p):
    # Every product is as large as it can be, and all have the same sign.
    size = 1100
    field = BalancedResidues(p)
    x = np.full((2, size), field.bound, dtype=field.dtype)
    c = np.full((2, 3), -field.bound, dtype=field.dtype)
    y = np.full((size, 3), field.bound, dtype=field.dtype)
    held = c.copy()
    field.subtract_product(c, x, y)
    expected = (-field.bound - size * field.bound**2) % p
    assert np.all(field.to_integers(c) == expected)
    assert np.all(np.abs(c) <= field.bound)
    # The same in pieces that are reduced at the end only.
    pending = 0
    for k in range(0, size, 100):
        pending = field.accumulate_product(held, x[:, k : k + 100], y[k : k + 100], pending)
    assert np.all(field.to_integers(field.balance(held)) == expected)
    assert field.times(np.array([float(field.bound)]), np.array([-float(field.bound)])) % p == -(field.bound**2) % p


@pytest.mark.parametrize("p", [BLAS_PRIME, WORD_PRIME])
@pytest.mark.parametrize(
    ("rows", "columns", "rank"),
    [(300, 200, 200), (200, 300, 200), (250, 250, 133), *thorough((700, 500, 500), (500, 700, 500), (600, 600, 333))],
)
def test_large_matrices_have_their_rank_and_nullspace(p, rows, columns, rank):
    a = low_rank(rows, columns, rank, p, np.random.default_rng(rows))
    flint, blas = (GF(p).kernel(rref_mod_p(a, p, method=method)) for method in METHODS)
    assert np.array_equal(flint, blas)
    assert echelon_mod_p(a, p).rank == rank


def test_columns_that_depend_on_earlier_ones_are_never_pivots():
    p, rng = BLAS_PRIME, np.random.default_rng(0)
    independent = rng.integers(0, p, (300, 100))
    a = np.repeat(independent, 3, axis=1)
    assert echelon_mod_p(a, p, method="blas").columns == tuple(range(0, 300, 3))


def test_rows_that_come_late_are_found_by_pivoting():
    p, rng = BLAS_PRIME, np.random.default_rng(0)
    a = np.zeros((400, 60), dtype=np.int64)
    a[340:] = rng.integers(0, p, (60, 60))
    assert echelon_mod_p(a, p, method="blas").rows == tuple(range(340, 400))


@pytest.mark.parametrize("p", [101, BLAS_PRIME, WORD_PRIME])
def test_the_given_matrix_is_kept_in_any_order_of_memory(p):
    a = low_rank(200, 150, 77, p, np.random.default_rng(0))
    kept, expected = a.copy(), echelon_mod_p(a, p, method="blas")
    assert np.array_equal(a, kept)
    assert rank_mod_p(np.asfortranarray(kept), p, method="blas") == expected.rank == 77


@examples(50)
@given(matrices(largest=12))
@example((np.zeros((0, 3), dtype=np.int64), 7))
@example((np.zeros((3, 0), dtype=np.int64), 7))
@example((np.zeros((0, 0), dtype=np.int64), 7))
def test_residues_may_be_given_as_any_integers(case):
    a, p = case
    shifted = a - p * (np.arange(a.size).reshape(a.shape) % 3)
    for method in METHODS:
        assert np.array_equal(rref_mod_p(shifted, p, method=method).matrix, rref_mod_p(a, p, method=method).matrix)
    assert GF(p).nullspace(shifted.astype(object)).tolist() == GF(p).nullspace(a).tolist()


def test_large_moduli_use_python_integers():
    a = np.array([[1, BIG_PRIME - 1, 5], [2, BIG_PRIME - 2, 10]], dtype=object)
    assert rank_mod_p(a, BIG_PRIME) == 1
    assert GF(BIG_PRIME).nullspace(a).tolist() == [[1, 1, 0], [BIG_PRIME - 5, 0, 1]]
    assert choose_method(10**6, 10**6, BIG_PRIME) == "flint"


@pytest.mark.parametrize(
    ("a", "p"),
    [
        (np.zeros(3, dtype=np.int64), 7),
        (np.zeros((2, 2, 2), dtype=np.int64), 7),
        (np.zeros((2, 2)), 7),
        (np.zeros((2, 2), dtype=np.int64), 6),
        (np.zeros((2, 2), dtype=np.int64), 1),
    ],
)
def test_wrong_shapes_types_and_moduli_are_refused(a, p):
    for function in (rank_mod_p, echelon_mod_p, rref_mod_p):
        with pytest.raises(InputError):
            function(a, p)


def test_methods_refuse_what_they_cannot_do():
    with pytest.raises(InputError, match="2\\^31"):
        rank_mod_p(np.eye(2, dtype=np.int64), BIG_PRIME, method="blas")
    with pytest.raises(DomainError):
        BalancedResidues(BIG_PRIME)
    with pytest.raises(InputError, match="square"):
        GF(7).det(np.zeros((2, 3), dtype=np.int64))
    with pytest.raises(InputError, match="rows"):
        GF(7).solve(np.zeros((2, 3), dtype=np.int64), np.zeros(3, dtype=np.int64))


@pytest.mark.parametrize("p", [2, 101, BLAS_PRIME, WORD_PRIME])
@pytest.mark.parametrize("rank", [0, 17, 30])
def test_block_factors_multiply_to_the_permuted_matrix(p, rank):
    a = low_rank(70, 60, rank, p, np.random.default_rng(3))
    elimination = Elimination(BalancedResidues(p).from_integers(a), p).run()
    stored = elimination.field.to_integers(elimination.a)
    found = elimination.rank
    lower = np.zeros((70, found), dtype=np.int64)
    upper = np.zeros((found, 60), dtype=np.int64)
    for start, stop in pairwise(elimination.starts):
        columns = elimination.columns[start:stop]
        lower[start:stop, start:stop] = np.eye(stop - start, dtype=np.int64)
        lower[stop:, start:stop] = stored[stop:, columns]
        upper[start:stop, columns[0] :] = stored[start:stop, columns[0] :]
    assert found == rank_mod_p(a, p, method="flint")
    assert np.array_equal(GF(p).matmul(lower, upper), a[elimination.order])


def test_float32_serves_small_primes():
    # Residues, products that stay unreduced until they would round, and the final answer.
    p, rng = 251, np.random.default_rng(5)
    # Above 1073 columns 125² times as many exceeds what float32 holds exactly.
    n = choose(1100, 2300)
    a = low_rank(n, n - 100, n - 150, p, rng)
    residues = BalancedResidues(p).from_integers(a)
    assert residues.dtype == np.float32
    assert Elimination(residues, p).run().rank == rank_mod_p(a, p, method="flint")
