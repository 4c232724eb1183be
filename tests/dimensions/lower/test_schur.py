"""The last map eliminated by hand: the same rank as the whole Jacobian."""

import pytest
from hypothesis import assume, given

from attngeom.dimensions import dimension, upper_bound
from attngeom.dimensions.lower.bound import sample_tokens
from attngeom.dimensions.lower.minor import minor_lower_bound
from attngeom.dimensions.lower.schur import count_remaining, schur_lower_bound
from attngeom.dimensions.lower.search import choose_method
from attngeom.exact import SMALL_PRIME
from attngeom.network import Architecture
from tests.dimensions.strategies import architectures
from tests.effort import examples


@examples(100)
@given(architectures())
def test_schur_rank_is_the_rank_of_the_whole_jacobian(architecture):
    upper = upper_bound(architecture).value
    assume(upper <= 150)
    tokens = sample_tokens(architecture)
    found = schur_lower_bound(architecture, upper, tokens).value
    # Features that satisfy a linear relation leave nothing to clear.
    assume(found > 0)
    whole = minor_lower_bound(architecture, upper + 2).value
    assert found == whole
    # Points mod a small prime may be degenerate: never more, and the same at one of a few points.
    ranks = [schur_lower_bound(architecture, upper, tokens, seed, SMALL_PRIME).value for seed in range(6)]
    assert max(ranks) == whole


def test_dependent_features_are_noticed():
    """Three heads of width one see the same cubic: the features repeat, and the bound is empty instead of wrong."""
    architecture = Architecture((1, 3), 1, 2, heads=3)
    assert schur_lower_bound(architecture, 3, 2).value == 0


def test_dependent_features_are_proven_by_the_whole_matrix():
    architecture = Architecture((3, 40), 3, 2, heads=12, value_width=30)
    assert choose_method(architecture, upper_bound(architecture).value) == "schur"
    answer = dimension(architecture, prove=True)
    assert answer.is_proven and answer.method == "minor"


@pytest.mark.parametrize("kind", ["lightning", "softmax"])
def test_medium_networks_are_proven_by_the_smaller_matrix(kind):
    architecture = Architecture((14, 14, 14), 7, 4, kind)
    assert choose_method(architecture, upper_bound(architecture).value) == "schur"
    answer = dimension(architecture, method="schur")
    assert answer.standing == "proven" and answer.method == "schur" and answer.dimension == answer.formula.value
    assert count_remaining(architecture, answer.dimension) < answer.dimension**2 / 2


def test_methods_are_chosen_by_size():
    small, large, huge = (Architecture((d, d, d), d // 2, 4) for d in (4, 30, 150))
    chosen = [choose_method(architecture, upper_bound(architecture).value) for architecture in (small, large, huge)]
    assert chosen == ["minor", "schur", "krylov"]
