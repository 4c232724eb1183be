"""Strata of one layer, hypotheses of the theorems, local ranks."""

import numpy as np
import pytest

from attngeom.dimensions import rank_at
from attngeom.exact import QQ, RR
from attngeom.exact.precise import measured_rank
from attngeom.inspection.geometry import inspect, layer_stratum
from attngeom.layer.coefficients import quadric_table
from attngeom.layer.splitting import split_layer
from attngeom.network import Architecture, Weights, random_weights, weights_from_matrices

K, Q, H, U = (QQ.convert(x) for x in ([1, 2, 0], [3, -1, 1], [1, 5], [0, 1, 1]))
RANK_ONE = np.outer(K, Q)
RANK_TWO = RANK_ONE + np.outer(U, U)
RANK_THREE = RANK_TWO + QQ.eye(3) * 7
V_SAME, V_OTHER, V_FULL = np.outer(H, K), np.outer(H, U), QQ.convert([[1, 0, 2], [0, 1, 1]])

STRATA = [
    (RANK_THREE, V_FULL, 3, "generic", "one point"),
    (RANK_TWO, V_FULL, 2, "generic", "one point"),
    (RANK_TWO, V_FULL, 3, "generic", "one point"),
    (RANK_TWO, V_OTHER, 2, "generic", "one point"),
    (RANK_ONE, V_FULL, 2, "singular", "one point"),
    (RANK_ONE, V_FULL, 3, "generic", "one point"),
    (RANK_ONE, V_FULL, 1, "generic", "one point"),
    (RANK_ONE, V_OTHER, 3, "singular", "two points"),
    (RANK_ONE, V_SAME, 3, "boundary", "one point"),
    (QQ.zeros((3, 3)), V_FULL, 3, "zero", "zero function"),
    (RANK_TWO, QQ.zeros((2, 3)), 2, "zero", "zero function"),
]


@pytest.mark.parametrize(("A", "V", "attention", "name", "fiber"), STRATA)
def test_stratum_and_fiber_agree_with_the_exact_splitting(A, V, attention, name, fiber):
    stratum = layer_stratum(A, V, attention, 2, QQ)
    assert (stratum.name, stratum.fiber) == (name, fiber)
    split = split_layer(quadric_table(A, V, QQ), QQ)
    assert len(split.points) == {"one point": 1, "two points": 2, "zero function": 0}[fiber]
    assert (stratum.distance < 1e-12) == stratum.is_singular


@pytest.mark.parametrize(("A", "V", "attention", "name", "fiber"), STRATA)
def test_critical_points_are_where_the_derivative_in_A_and_V_has_a_larger_kernel(A, V, attention, name, fiber):
    rows = [quadric_table(unit.reshape(3, 3), V, QQ).ravel() for unit in QQ.eye(9)]
    rows += [quadric_table(A, unit.reshape(2, 3), QQ).ravel() for unit in QQ.eye(6)]
    stratum = layer_stratum(A, V, attention, 2, QQ)
    assert (QQ.rank(np.stack(rows)) < 14) == stratum.is_critical


def test_low_rank_attention_is_singular_because_its_tangent_vectors_span_too_much():
    # Curves A + s B with rk B = 1 stay in rank ≤ 2 and their directions span all matrices: 14 > 13 dimensions.
    rows = [quadric_table(unit.reshape(3, 3), V_FULL, QQ).ravel() for unit in QQ.eye(9)]
    rows += [quadric_table(RANK_ONE, unit.reshape(2, 3), QQ).ravel() for unit in QQ.eye(6)]
    generic = rank_at(random_weights(Architecture((3, 2), 2, tokens=2), QQ, 0))
    assert generic.is_exact and generic.rank == 13
    assert QQ.rank(np.stack(rows)) == 14
    assert layer_stratum(RANK_ONE, V_FULL, 2, 2, QQ).is_singular


@pytest.mark.parametrize(("A", "V", "attention", "name", "fiber"), STRATA)
def test_float_strata_show_their_gaps(A, V, attention, name, fiber):
    stratum = layer_stratum(RR.convert(A), RR.convert(V), attention, 2, RR)
    assert stratum.name == name and stratum.fiber == fiber
    assert len(stratum.rank_A.singular_values) == 3


def test_float_rank_without_gap_is_not_decided():
    A = np.diag([1.0, 1e-14, 3e-17])
    stratum = layer_stratum(A, np.eye(3)[:2], 2, 2, RR)
    assert stratum.is_singular is None and stratum.name == "undecided"
    assert not measured_rank(A, RR).is_clear


def test_distance_is_reached_by_a_singular_point():
    rng = np.random.default_rng(0)
    A, V = rng.standard_normal((3, 3)), rng.standard_normal((2, 3))
    A, V = A / np.linalg.norm(A), V / np.linalg.norm(V)
    distance = layer_stratum(A, V, 2, 2, RR).distance
    left, values, right = np.linalg.svd(A)
    nearest = left @ np.diag([values[0], 0, 0]) @ right
    truncated = left @ np.diag([values[0], values[1], 0]) @ right
    assert layer_stratum(nearest, V, 2, 2, RR).is_singular
    assert distance == pytest.approx(values[1])
    assert layer_stratum(truncated, V, 2, 2, RR).distance == pytest.approx(
        np.linalg.svd(truncated / np.linalg.norm(truncated), compute_uv=False)[1]
    )


def test_deep_hypotheses_name_what_fails():
    architecture = Architecture((3, 3, 3), 3, tokens=2)
    weights = random_weights(architecture, QQ, 0)
    A = [heads[0] for heads in weights.attention_matrices()]
    V = [heads[0] for heads in weights.value_matrices()]
    skew = QQ.convert([[0, 1, 2], [-1, 0, 3], [-2, -3, 0]])
    found = inspect(weights_from_matrices(architecture, [A[0], skew], [V[0], V[1]], QQ))
    failing = {hypothesis.statement for hypothesis in found.hypotheses if not hypothesis.holds}
    assert failing == {"M_2 not skew-symmetric", "rk A_2 = a_2 ≤ d_1"}
    assert [rank.value for rank in found.ranks.M] == [3, 2]


def test_inspection_shows_the_rank_at_the_point():
    architecture = Architecture((3, 2), 3, tokens=2)
    boundary = weights_from_matrices(architecture, [RANK_ONE], [V_SAME], QQ)
    local = inspect(boundary).to_json()["local"]
    assert local["proven"] and local["defect"] > 0 and local["jacobian_rank"] == rank_at(boundary).rank


@pytest.mark.parametrize(
    ("d", "key", "value", "name", "fiber", "distance"),
    [
        (2, [3, 5], [7, 11], "generic", "two points", 1.0),
        (2, [3, 5], [6, 10], "boundary", "one point", 1.0),
        (3, [1, 0, 0], [0, 1, 0], "generic", "two points", 1.0),
        (3, [1, 2, 3], [-1, -2, -3], "boundary", "one point", 0.0),
        (3, [1, 2, 3], [0, 0, 0], "zero", "zero function", 0.0),
    ],
)
@pytest.mark.parametrize("domain", [QQ, RR])
def test_products_of_two_forms(d, key, value, name, fiber, distance, domain):
    A = domain.matmul(domain.convert([[x] for x in key]), domain.convert([[1] * d]))
    stratum = layer_stratum(A, domain.convert([value]), 1, 2, domain)
    assert (stratum.name, stratum.fiber) == (name, fiber)
    assert stratum.distance == pytest.approx(distance, abs=1e-7)
    # At a smooth point the differential of (A, V) ↦ φ has the dimension of the function space as its rank.
    architecture = Architecture((d, 1), 1, tokens=2)
    weights = Weights.from_tensors(
        architecture, {"layers.0.Q": [[1] * d], "layers.0.K": [key], "layers.0.V": [value]}, QQ
    )
    assert (rank_at(weights).defect == 0) == (name == "generic")
