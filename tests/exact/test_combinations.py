"""Unranking of subsets and multisets needs no list; determinants of many matrices at once agree with FLINT."""

from itertools import combinations, combinations_with_replacement
from math import comb

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from attngeom.errors import InputError
from attngeom.exact import GF, WORD_PRIME
from attngeom.exact.multisets import combination_at, combination_rank, multiset_at
from tests.effort import examples


@pytest.mark.parametrize(("n", "r"), [(0, 0), (5, 0), (5, 2), (6, 3), (4, 4), (1, 1), (7, 1)])
def test_combinations_and_multisets_are_unranked_in_lexicographic_order(n, r):
    subsets = list(combinations(range(n), r))
    assert [combination_at(n, r, k) for k in range(comb(n, r))] == subsets
    assert [combination_rank(n, chosen) for chosen in subsets] == list(range(len(subsets)))
    multisets = list(combinations_with_replacement(range(n), r))
    assert [multiset_at(n, r, k) for k in range(len(multisets))] == multisets


@given(st.integers(0, 300), st.integers(0, 12), st.data())
def test_ranks_invert_unranking_far_beyond_what_can_be_listed(n, r, data):
    if comb(n, r):
        k = data.draw(st.integers(0, comb(n, r) - 1))
        assert combination_rank(n, combination_at(n, r, k)) == k


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
    ):
        with pytest.raises(InputError):
            call()


@examples(30)
@given(st.integers(5, 9), st.sampled_from([2, 3, 101, WORD_PRIME, 2**31 - 1]), st.integers(0, 2**32 - 1))
def test_batched_elimination_mod_p_agrees_with_flint(n, p, seed):
    field = GF(p)
    rng = np.random.default_rng(seed)
    stack = field.random((4, n, n), rng) * rng.integers(0, 2, (4, n, n))
    stack[0, :, 0] = 0
    assert field.det(stack).tolist() == [int(field.to_flint(a).det()) for a in stack]
