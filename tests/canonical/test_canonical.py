"""Canonical forms: invariant, idempotent, faithful; their free entries number the dimensions of the function space."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from attngeom.canonical.answer import canonicalize
from attngeom.canonical.compact import coordinates, with_coordinates
from attngeom.canonical.form import canonical_form, restore
from attngeom.comparison import compare
from attngeom.comparison.float_matching import relative_distance
from attngeom.dimensions import rank_at
from attngeom.errors import FormatError, InputError
from attngeom.exact import QQ, RR
from attngeom.network import Architecture, Weights, forward, random_symmetry, random_weights, weights_from_matrices
from tests.effort import choose, examples, spread
from tests.network.strategies import architectures

GENERIC = [
    Architecture((3, 2), 2),
    Architecture((3, 3), 1),
    Architecture((2, 3), 4),
    Architecture((4, 3, 3, 5), 2),
    Architecture((3, 2, 4), 2, causal=True),
    Architecture((3, 3, 3), 2, residual=True),
    Architecture((4, 4, 4), 2, heads=2, residual=True),
    Architecture((3, 2, 3), 2, kind="softmax"),
    Architecture((4, 4), 1, heads=2, value_width=1),
    Architecture((4, 4, 4), 1, heads=2, value_width=2),
    Architecture((2, 3, 2), 2),
]


@examples(40)
@given(architecture=architectures(max_width=3, kinds=("lightning",)), seed=st.integers(0, 1000))
def test_exact_form_is_invariant_idempotent_and_has_the_same_function(architecture, seed):
    weights = random_weights(architecture, QQ, seed)
    moved = random_symmetry(architecture, QQ, seed + 1).apply(weights)
    found = canonicalize(weights).weights
    assert found.equals(canonicalize(found).weights)
    X = QQ.random((architecture.widths[0], architecture.tokens), np.random.default_rng(seed))
    assert QQ.equal(forward(found, X), forward(weights, X))
    assert found.equals(canonicalize(moved).weights)


@pytest.mark.parametrize("architecture", GENERIC, ids=str)
def test_number_of_free_entries_is_the_proven_dimension(architecture):
    form = canonical_form(random_weights(architecture, QQ, 5))
    point = random_weights(architecture, QQ, 5)
    rank = rank_at(point)
    assert rank.is_exact
    assert len(coordinates(form)) == rank.rank
    assert len(coordinates(canonical_form(random_weights(architecture, RR, 5)))) == rank.rank


@pytest.mark.parametrize(("architecture", "gauge"), spread(GENERIC, ["balanced", "echelon"]), ids=str)
def test_float_form_is_invariant_to_rounding(architecture, gauge):
    for seed in range(choose(1, 2)):
        weights = random_weights(architecture, RR, seed)
        found = canonicalize(weights, gauge).weights
        moved = random_symmetry(architecture, RR, seed + 100).apply(weights)
        assert relative_distance(found, canonicalize(moved, gauge).weights) < 1e-10
        assert relative_distance(found, canonicalize(found, gauge).weights) < 1e-10
        assert compare(weights, found, tolerance=1e-10).same_function is True


def test_balanced_factors_are_balanced():
    head = canonicalize(random_weights(Architecture((4, 4), 3), RR, 0)).weights.layers[0][0]
    np.testing.assert_allclose(head.K @ head.K.T, head.Q @ head.Q.T, atol=1e-14)
    np.testing.assert_allclose(head.Q @ head.Q.T, np.diag(np.diagonal(head.Q @ head.Q.T)), atol=1e-14)


def test_balanced_factors_of_exact_weights_are_refused():
    with pytest.raises(InputError, match="square roots"):
        canonicalize(random_weights(Architecture((2, 2), 1), QQ, 0), "balanced")


@pytest.mark.parametrize("domain", [QQ, RR], ids=["QQ", "RR"])
@pytest.mark.parametrize("architecture", GENERIC, ids=str)
def test_coordinates_restore_the_form(architecture, domain):
    form = canonical_form(random_weights(architecture, domain, 1))
    vector = coordinates(form)
    back, given = restore(with_coordinates(form, vector))[0], restore(form)[0]
    # Products of floats have other last bits for another layout in memory (5e-17 with OpenBLAS of NumPy 1.26).
    assert back.equals(given) if domain == QQ else np.allclose(back.vector(), given.vector(), rtol=0, atol=1e-15)
    changed = vector.copy()
    changed[0] = changed[0] + 1
    assert not restore(with_coordinates(form, changed))[0].equals(restore(form)[0])
    with pytest.raises(FormatError, match="coordinates"):
        with_coordinates(form, vector[1:])


def test_deep_float_networks_do_not_overflow():
    architecture = Architecture((4,) * 13, 4)
    weights = random_weights(architecture, RR, 0)
    found = canonicalize(Weights.from_vector(architecture, weights.vector() * 5, RR)).weights
    assert np.all(np.isfinite(found.vector()))
    assert 1e-3 < np.abs(found.vector()).max() < 1e3


def test_different_functions_have_different_forms():
    architecture = Architecture((3, 2, 3), 2)
    weights = random_weights(architecture, QQ, 0)
    vector = weights.vector().copy()
    vector[3] += 1
    assert not canonicalize(weights).weights.equals(canonicalize(Weights.from_vector(architecture, vector, QQ)).weights)


def test_zero_heads_are_removed():
    architecture = Architecture((2, 2), 2)
    zero = weights_from_matrices(architecture, [QQ.zeros((2, 2))], [QQ.eye(2)], QQ)
    assert QQ.is_zero(canonicalize(zero).weights.vector())


def test_a_blind_layer_is_told_with_what_is_free_after_it():
    rng = np.random.default_rng(3)
    architecture = Architecture((2, 2, 2, 2), 2, tokens=2, kind="softmax")
    tensors = dict(random_weights(architecture, QQ, 3).tensors())
    tensors["layers.1.Q"], tensors["layers.1.K"] = QQ.convert([[0, 1], [-1, 0]]), QQ.eye(2)
    blind = Weights.from_tensors(architecture, tensors, QQ)
    other = Weights.from_tensors(architecture, {**tensors, "layers.2.Q": QQ.random((2, 2), rng)}, QQ)
    found = canonicalize(blind)
    assert found.to_json()["virtual_fiber"]["free"] == ["M_3"]
    assert "M_3 is free" in str(found)
    assert not found.weights.equals(canonicalize(other).weights)
    seen = canonicalize(random_weights(architecture, QQ, 3))
    assert seen.unseen is None and "virtual_fiber" not in seen.to_json()
