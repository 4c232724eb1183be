"""Minors and unranking: closed order, all algorithms agree, the k-th one needs no list."""

from itertools import combinations, combinations_with_replacement, permutations
from math import comb, prod

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attngeom.errors import InputError
from attngeom.exact import (
    BIG_PRIME,
    GF,
    QQ,
    RR,
    WORD_PRIME,
    Balls,
    QuadraticField,
    combination_at,
    combination_rank,
    determinants,
    minor,
    minor_at,
    minors,
    multiset_at,
    multiset_count,
    multiset_rank,
)

DOMAINS = [QQ, RR, GF(2), GF(WORD_PRIME), GF(BIG_PRIME), Balls(100), QuadraticField(3)]
IDS = ["QQ", "RR", "GF(2)", "GF(word)", "GF(big)", "balls", "Q(√3)"]


@pytest.mark.parametrize(("n", "r"), [(0, 0), (5, 0), (5, 2), (6, 3), (4, 4), (1, 1), (7, 1)])
def test_combinations_and_multisets_are_unranked_in_lexicographic_order(n, r):
    subsets = list(combinations(range(n), r))
    assert [combination_at(n, r, k) for k in range(comb(n, r))] == subsets
    assert [combination_rank(n, chosen) for chosen in subsets] == list(range(len(subsets)))
    multisets = list(combinations_with_replacement(range(n), r))
    assert [multiset_at(n, r, k) for k in range(multiset_count(n, r))] == multisets
    assert [multiset_rank(n, chosen) for chosen in multisets] == list(range(len(multisets)))


@given(st.integers(0, 300), st.integers(0, 12), st.data())
def test_ranks_invert_unranking_far_beyond_what_can_be_listed(n, r, data):
    if comb(n, r):
        k = data.draw(st.integers(0, comb(n, r) - 1))
        assert combination_rank(n, combination_at(n, r, k)) == k
    if multiset_count(n, r):
        k = data.draw(st.integers(0, multiset_count(n, r) - 1))
        assert multiset_rank(n, multiset_at(n, r, k)) == k


def test_indices_outside_are_refused():
    for call in (
        lambda: combination_at(4, 2, 6),
        lambda: combination_at(4, 2, -1),
        lambda: combination_at(2, 3, 0),
        lambda: combination_at(-1, 0, 0),
        lambda: multiset_at(0, 1, 0),
        lambda: multiset_at(3, 0, 1),
        lambda: combination_rank(4, (2, 1)),
        lambda: combination_rank(4, (1, 4)),
        lambda: multiset_rank(3, (1, 0)),
        lambda: multiset_rank(3, (-1, 0)),
    ):
        with pytest.raises(InputError):
            call()


def leibniz(a):
    """The determinant of an integer matrix by its definition."""
    n = len(a)
    total = 0
    for order in permutations(range(n)):
        sign = prod(1 if order[i] < order[j] else -1 for i in range(n) for j in range(i + 1, n))
        total += sign * prod(int(a[i, order[i]]) for i in range(n))
    return total


@pytest.mark.parametrize("domain", DOMAINS, ids=IDS)
@pytest.mark.parametrize("n", range(7))
def test_determinants_of_a_stack_are_those_of_the_definition(domain, n):
    integers = np.random.default_rng(n).integers(-2, 3, (3, 2, n, n))
    expected = np.array([[leibniz(a) for a in row] for row in integers], dtype=object)
    values = determinants(domain.array(integers), domain)
    assert values.shape == (3, 2)
    if domain is RR:
        assert np.allclose(values, expected.astype(float))
    else:
        assert domain.equal(values, domain.array(expected))


@settings(max_examples=30)
@given(st.integers(5, 9), st.sampled_from([2, 3, 101, WORD_PRIME, 2**31 - 1]), st.integers(0, 2**32 - 1))
def test_batched_elimination_mod_p_agrees_with_flint(n, p, seed):
    field = GF(p)
    rng = np.random.default_rng(seed)
    stack = field.random((4, n, n), rng) * rng.integers(0, 2, (4, n, n))
    stack[0, :, 0] = 0
    assert determinants(stack, field).tolist() == [int(field.to_flint(a).det()) for a in stack]


@pytest.mark.parametrize("domain", [QQ, GF(101)], ids=["QQ", "GF"])
def test_minors_are_listed_in_order_and_found_by_index(domain):
    a = domain.random((4, 5), np.random.default_rng(0))
    for size in range(6):
        listed = list(minors(a, size, domain))
        places = [(r, c) for r in combinations(range(4), size) for c in combinations(range(5), size)]
        assert [(m.rows, m.columns) for m in listed] == places
        for k, found in enumerate(listed):
            assert found.value == minor(a, found.rows, found.columns, domain)
            if k % 7 == 0:
                assert minor_at(a, size, k, domain) == found


def test_minors_of_size_above_the_rank_vanish_and_some_of_that_size_do_not():
    rng = np.random.default_rng(0)
    a = QQ.matmul(QQ.random((5, 2), rng), QQ.random((2, 5), rng))
    assert all(m.value == 0 for m in minors(a, 3, QQ))
    assert any(m.value != 0 for m in minors(a, 2, QQ))


def test_batches_do_not_change_the_list():
    a = GF(101).random((9, 9), np.random.default_rng(0))
    listed = list(minors(a, 3, GF(101)))
    assert len(listed) == comb(9, 3) ** 2 > 4096
    assert listed[5000] == minor_at(a, 3, 5000, GF(101))


def test_the_order_of_rows_gives_the_sign():
    a = QQ.array([[1, 2], [3, 4]])
    assert minor(a, (1, 0), (0, 1), QQ) == 2
    assert minor(a, (), (), QQ) == 1


def test_wrong_shapes_are_refused():
    with pytest.raises(InputError):
        minor(QQ.zeros((2, 2)), (0,), (0, 1), QQ)
    with pytest.raises(InputError):
        determinants(QQ.zeros((2, 3)), QQ)
    with pytest.raises(InputError):
        minor_at(QQ.zeros((2, 2)), 2, 1, QQ)
    with pytest.raises(InputError):
        next(minors(QQ.zeros((2, 2)), -1, QQ))
