"""Minors and unranking: closed order, all algorithms agree, the k-th one needs no list."""

from itertools import combinations, combinations_with_replacement
from math import comb

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attngeom.errors import InputError
from attngeom.exact import (
    GF,
    QQ,
    WORD_PRIME,
    combination_at,
    combination_rank,
    minor,
    minor_at,
    multiset_at,
    multiset_count,
    multiset_rank,
)
from attngeom.exact.minors import minors


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


@settings(max_examples=30)
@given(st.integers(5, 9), st.sampled_from([2, 3, 101, WORD_PRIME, 2**31 - 1]), st.integers(0, 2**32 - 1))
def test_batched_elimination_mod_p_agrees_with_flint(n, p, seed):
    field = GF(p)
    rng = np.random.default_rng(seed)
    stack = field.random((4, n, n), rng) * rng.integers(0, 2, (4, n, n))
    stack[0, :, 0] = 0
    assert field.det(stack).tolist() == [int(field.to_flint(a).det()) for a in stack]


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
    a = QQ.convert([[1, 2], [3, 4]])
    assert minor(a, (1, 0), (0, 1), QQ) == 2
    assert minor(a, (), (), QQ) == 1


def test_wrong_shapes_are_refused():
    with pytest.raises(InputError):
        minor(QQ.zeros((2, 2)), (0,), (0, 1), QQ)
    with pytest.raises(InputError):
        QQ.det(QQ.zeros((2, 3)))
    with pytest.raises(InputError):
        minor_at(QQ.zeros((2, 2)), 2, 1, QQ)
    with pytest.raises(InputError):
        next(minors(QQ.zeros((2, 2)), -1, QQ))
