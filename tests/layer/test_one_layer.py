"""Exact splitting of one layer from its table of quadrics."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from attngeom.errors import DomainError, InputError
from attngeom.exact import GF, QQ
from attngeom.exact.domains import QuadraticField
from attngeom.layer.coefficients import quadric_table
from attngeom.layer.splitting import split_layer
from tests.effort import examples

PRIME_FIELD = GF(2147483629)


def low_rank(rows, columns, size, rng, domain=QQ):
    return domain.matmul(domain.random((rows, size), rng), domain.random((size, columns), rng))


def proportional(a, b, domain):
    """Whether two nonzero arrays span the same line."""
    return domain.rank(np.stack([a.ravel(), b.ravel()])) == 1


@examples(60)
@given(
    d=st.integers(1, 5),
    d_out=st.integers(1, 4),
    rank_A=st.integers(0, 5),
    rank_V=st.integers(0, 4),
    seed=st.integers(0, 10**6),
    domain=st.sampled_from([QQ, PRIME_FIELD]),
)
def test_points_reproduce_the_table_and_contain_the_weights(d, d_out, rank_A, rank_V, seed, domain):
    rng = np.random.default_rng(seed)
    A, V = low_rank(d, d, min(d, rank_A), rng, domain), low_rank(d_out, d, min(d, d_out, rank_V), rng, domain)
    split = split_layer(quadric_table(A, V, domain), domain)
    if domain.is_zero(A) or domain.is_zero(V):
        assert split.status == "zero" and split.points == ()
        return
    assert split.status == "rational"
    assert (split.rank_A, split.rank_V) == (domain.rank(A), domain.rank(V))
    for point in split.points:
        assert domain.equal(quadric_table(point.A, point.V, domain), quadric_table(A, V, domain))
        first = next(x for x in point.V.ravel().tolist() if x)
        assert first == 1
    matches = [proportional(p.A, A, domain) and proportional(p.V, V, domain) for p in split.points]
    assert sum(matches) == 1
    assert len(split.points) == 1 or split.rank_A == split.rank_V == 1


def test_two_point_fiber_swaps_key_and_value():
    k, q, h, v = QQ.convert([1, 2, 0]), QQ.convert([3, -1, 1]), QQ.convert([1, 5]), QQ.convert([0, 1, 1])
    A, V = np.outer(k, q), np.outer(h, v)
    split = split_layer(quadric_table(A, V, QQ), QQ)
    assert len(split.points) == 2
    swapped = [p for p in split.points if not proportional(p.V, V, QQ)]
    assert proportional(swapped[0].A, np.outer(v, q), QQ) and proportional(swapped[0].V, np.outer(h, k), QQ)


def test_boundary_point_has_one_point_fiber():
    k, q, h = QQ.convert([1, 2, 0]), QQ.convert([3, -1, 1]), QQ.convert([1, 5])
    split = split_layer(quadric_table(np.outer(k, q), np.outer(h, k), QQ), QQ)
    assert split.status == "rational" and len(split.points) == 1


@pytest.mark.parametrize(("D", "status"), [(7, "real"), (-3, "complex"), (10**30 + 57, "real")])
def test_conjugate_pair_gives_both_points_over_the_quadratic_field(D, status):
    field = QuadraticField(D)
    k = field.convert([field.element(1, 2), field.element(0, 1), field.element(-1, 0)])
    q, h = field.convert([2, 0, 1]), field.convert([0, 3])
    conjugate = np.array([x.conjugate() for x in k], dtype=object)
    A, V = k[:, None] * q, h[:, None] * conjugate
    table = quadric_table(A, V, field)
    rational, irrational = field.parts(table)
    assert QQ.is_zero(irrational)
    split = split_layer(rational, QQ)
    assert split.status == status and len(split.points) == 2 and split.rank_A == split.rank_V == 1
    assert split.domain == field
    for point in split.points:
        assert field.equal(quadric_table(point.A, point.V, field), table)


def test_quadric_of_rank_three_is_reported():
    table = QQ.zeros((2, 3, 6))
    table[1, 2] = QQ.convert([1, 0, 0, 1, 0, 1])
    split = split_layer(table, QQ)
    assert split.status == "none"
    assert "output 1 and target 2 has rank 3" in split.reason


def test_missing_common_factor_is_reported():
    table = QQ.convert([[[0, 1, 0], [1, 0, -1]]])
    split = split_layer(table, QQ)
    assert split.status == "none"
    assert "output 0 and target 1 is not divisible" in split.reason


def test_irreducible_quadric_beside_another_one_is_no_layer():
    split = split_layer(QQ.convert([[[1, 0, 1], [1, 0, 0]]]), QQ)
    assert split.status == "none" and "is not divisible" in split.reason


def test_single_wrong_entry_is_found():
    rng = np.random.default_rng(3)
    table = quadric_table(QQ.random((4, 4), rng), QQ.random((3, 4), rng), QQ)
    for place in [(0, 0, 0), (1, 2, 3), (2, 3, 9)]:
        wrong = table.copy()
        wrong[place] += QQ.convert("1/1000000000")[()]
        assert split_layer(wrong, QQ).status == "none"


def test_inconsistent_product_is_reported():
    e = QQ.eye(2)
    table = quadric_table(e, e, QQ)
    table[1, 1] = table[1, 1] * 2
    split = split_layer(table, QQ)
    assert split.status == "none"
    assert any(f"output {n} and target {m} is not" in split.reason for n, m in [(1, 1), (0, 1), (1, 0)])


def test_irrational_factors_over_a_prime_field_are_refused():
    table = GF(7).convert([[[1, 0, 4], [0, 0, 0]]])
    with pytest.raises(DomainError, match="another prime"):
        split_layer(table, GF(7))


def test_bad_shape_is_refused():
    with pytest.raises(InputError, match="shape"):
        split_layer(QQ.zeros((1, 2, 4)), QQ)
