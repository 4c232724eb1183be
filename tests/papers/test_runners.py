"""The runners can fail: their building blocks tell true from false."""

import numpy as np
import pytest

from attngeom.certification import certify
from attngeom.equations import Variety
from attngeom.equations.families.slices import SlicePencil
from attngeom.exact import QQ
from attngeom.layer.splitting import LayerMatrices
from attngeom.network.virtual import forward_recursion
from attngeom.network.weights import VirtualWeights
from attngeom.papers.cross_column import span_dimension, vanishes_identically
from attngeom.papers.deep_fibers import SEARCHES, search_networks, virtual_jacobian
from attngeom.papers.expansion import linear_relations
from attngeom.papers.figures import plane_coordinates, plane_point, slice_coefficients
from attngeom.papers.layer_fibers import are_proportional, exhaust_fibers, fiber_points
from attngeom.papers.single_column import lie_flattening, product_of_forms
from attngeom.papers.softmax import equation_34
from attngeom.papers.tangent_spaces import samples, tangent_lower_bound, tangent_upper_bound
from attngeom.papers.veronese import formal_minors

J = [[0, 1], [-1, 0]]


def test_skew_first_layer_has_a_second_point_in_its_fiber():
    X = QQ.convert([[1, 2, -3], [4, 0, 5]])
    L = QQ.convert([[2, 7]])
    B = QQ.convert([[1, 2], [3, 4]])
    first = forward_recursion(VirtualWeights((QQ.convert(J), B), L, QQ), X)
    second = forward_recursion(VirtualWeights((B, QQ.convert(J)), L / -2, QQ), X)
    assert QQ.equal(first, second)
    assert not QQ.is_zero(first)
    assert not QQ.equal(first, forward_recursion(VirtualWeights((B, QQ.convert(J)), L, QQ), X))


def test_search_finds_other_weights_only_with_a_skew_first_matrix():
    count = search_networks(SEARCHES[0], seed=3)
    assert count.wrong > 0
    assert count.wrong_corrected == 0
    assert count.claimed > count.corrected


def test_fiber_is_larger_when_a_hypothesis_fails():
    from attngeom.exact import GF, WORD_PRIME, rank_mod_p

    field = GF(WORD_PRIME)
    rng = np.random.default_rng(0)
    rank_one = field.matmul(field.random((2, 1), rng), field.random((1, 2), rng))
    jacobian, _ = virtual_jacobian([rank_one, field.random((2, 2), rng)], field.random((1, 2), rng), 3, 0)
    assert len(jacobian) - rank_mod_p(jacobian, WORD_PRIME) > 2


@pytest.mark.parametrize(("d", "d_out", "a"), [(2, 1, 2), (2, 2, 1), (2, 2, 2)])
def test_bounds_on_the_tangent_space_are_consistent(d, d_out, a):
    dimension = 2 * min(a, d) * d - min(a, d) ** 2 + d * d_out - 1
    for kind, point in samples(d, d_out, a, np.random.default_rng(5)):
        lower, upper = tangent_lower_bound(kind, point, a), tangent_upper_bound(point, a)
        assert dimension <= upper
        assert lower <= upper


def test_low_rank_attention_is_singular_between_one_and_d():
    A, V = QQ.convert([[1, 0, 0], [0, 0, 0], [0, 0, 0]]), QQ.convert([[1, 0, 0], [0, 1, 0]])
    assert tangent_lower_bound("generic", LayerMatrices(A, V, QQ), 2) == 14
    assert tangent_lower_bound("generic", LayerMatrices(A, V, QQ), 3) == 14


def test_small_fields_confirm_fibers_of_one_layer():
    assert exhaust_fibers(3, 2, 1) == (True, 729)


def test_two_points_of_a_fiber_are_not_multiples():
    points = fiber_points(QQ.convert([[1, 0], [0, 0]]), QQ.convert([[1, 1]])).points
    assert len(points) == 2
    assert not are_proportional(points[0].A, points[1].A)


def test_slice_pencil_vanishes_on_generic_weights_and_spans_ten_cubics():
    family = SlicePencil(Variety(3, 3))
    assert vanishes_identically(family)
    assert span_dimension(family, seed=0) == 10


def test_linear_relations_do_not_hold_off_the_variety():
    relations = linear_relations(2)
    assert QQ.rank(relations) == 4
    assert not QQ.is_zero(QQ.matmul(relations, QQ.convert([[1]] + [[0]] * 9)))


def test_equation_34_holds_as_printed_for_two_tokens_only():
    assert equation_34(2) == (True, True, True)
    assert equation_34(3) == (False, True, True)


def test_formal_minors_of_both_corollaries():
    assert len(formal_minors(2, 2, "cross-target")) == 3
    assert len(formal_minors(2, 2, "block")) == 6


def test_lie_flattening_of_a_product_of_three_forms_has_rank_six():
    assert QQ.rank(lie_flattening(product_of_forms(QQ.eye(3), QQ), QQ)) == 6


@pytest.mark.parametrize(
    ("point", "verdict"),
    [((1, 2, 4), "realizable"), ((0, 0, 1), "realizable"), ((0, 0, -1), "closure_only"), ((1, 1, 2), "not_realizable")],
)
def test_points_of_the_umbrella(point, verdict):
    assert certify(slice_coefficients(*point)).verdict == verdict


def test_plane_points_share_a_root():
    x, y = plane_point(QQ.convert([2])[0])
    values = plane_coordinates(x, y)
    for column in values.T:
        assert column[0] * 4 + column[1] * 4 + column[2] == 0
