"""Membership, local codimension, Euclidean distance degree."""

from fractions import Fraction

import numpy as np
import pytest

from attngeom.equations.ideal import CrossColumn, implicitize
from attngeom.equations.ideal.formulas import dimension
from attngeom.equations.ideal.generators import minimal_generators
from attngeom.equations.ideal.geometry import check_membership, euclidean_distance_degree, local_codimension
from attngeom.errors import InputError
from attngeom.exact import WORD_PRIME


def layer_point(v: list[int], A: list[list[int]]) -> list[Fraction]:
    d, m = len(v), len(A[0])
    return [Fraction(v[k] * A[l][t] + v[l] * A[k][t], 2) for k in range(d) for l in range(k, d) for t in range(m)]


def test_membership_accepts_layers_and_refuses_other_arrays() -> None:
    model = CrossColumn(3, 2)
    vectors = minimal_generators(model, implicitize(model, 4))
    inside = layer_point([1, -2, 3], [[1, 2, 3], [0, 1, 1], [1, 3, 4]])
    result = check_membership(model, vectors, inside)
    assert result.is_member and result.evaluated == 120
    too_much_rank = layer_point([1, -2, 3], [[1, 0, 0], [0, 1, 0], [0, 0, 1]])
    refused = check_membership(model, vectors, too_much_rank)
    assert not refused.is_member and refused.value != 0
    changed = [*inside[:-1], inside[-1] + 1]
    assert not check_membership(model, vectors, changed).is_member
    with pytest.raises(InputError, match="18 coordinates"):
        check_membership(model, vectors, [1, 2, 3])


@pytest.mark.parametrize(("d", "a"), [(2, 1), (2, 2), (3, 1), (3, 2), (3, 3)])
def test_generators_cut_out_the_variety_at_a_generic_point(d: int, a: int) -> None:
    model = CrossColumn(d, a)
    vectors = minimal_generators(model, implicitize(model, 4))
    assert local_codimension(model, vectors, dimension(d, a, d)).cuts_out_locally
    singular = np.zeros(len(model.coordinates), dtype=np.int64)
    assert local_codimension(model, vectors, dimension(d, a, d), singular).rank == 0


def test_cubics_alone_do_not_cut_out_the_variety_of_width_two() -> None:
    model = CrossColumn(2, 2)
    assert not local_codimension(model, [], dimension(2, 2, 2)).cuts_out_locally


def test_euclidean_distance_degrees_do_not_depend_on_the_random_point() -> None:
    for a, metric, expected in [(1, "scaled", 2), (1, "invariant", 2), (2, "scaled", 6), (2, "invariant", 4)]:
        found = {euclidean_distance_degree(a, metric, seed=seed).value for seed in range(5)}
        assert found == {expected}
    with pytest.raises(InputError, match="metric"):
        euclidean_distance_degree(2, "other")
    assert euclidean_distance_degree(1).prime == WORD_PRIME
