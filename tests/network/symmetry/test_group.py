"""Symmetries leave the function unchanged, form a group, and their derivatives are the tangent vectors."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from attngeom.errors import InputError
from attngeom.exact import GF, QQ, RR, WORD_PRIME
from attngeom.network import (
    Architecture,
    forward,
    identity_symmetry,
    random_symmetry,
    random_unimodular_symmetry,
    random_weights,
)
from attngeom.network.symmetry import HeadOrder, Scale, Symmetry, count_generators, infinitesimal_action
from attngeom.network.symmetry.group import linear_factors, tensors_of
from attngeom.network.weights import Weights
from tests.effort import examples
from tests.network.strategies import architectures

EXACT = [QQ, GF(101), GF(WORD_PRIME)]


@examples(50)
@given(architectures(max_layers=2, max_width=3), st.sampled_from(EXACT), st.integers(0, 10**6))
def test_action_leaves_the_function_unchanged_exactly(architecture, domain, seed):
    weights = random_weights(architecture, domain, seed)
    moved = random_symmetry(architecture, domain, seed + 1).apply(weights)
    X = domain.random((architecture.widths[0], architecture.tokens), np.random.default_rng(seed))
    assert domain.equal(forward(moved, X), forward(weights, X))


@examples(30)
@given(architectures(max_layers=2, max_width=3, kinds=("softmax",)), st.integers(0, 10**6))
def test_softmax_action_leaves_the_function_unchanged_to_rounding(architecture, seed):
    # Signed permutations times powers of two keep floats well conditioned.
    weights = random_weights(architecture, RR, seed)
    g = random_symmetry(architecture, GF(3), seed)

    def to_float(matrix):
        return np.where(matrix == 2, -1.0, matrix.astype(float))

    try:
        elements = {x: e if isinstance(x, HeadOrder) else to_float(e) for x, e in g.elements.items()}
        moved = Symmetry(architecture, RR, elements).apply(weights)
    except ArithmeticError:
        return  # invertible mod 3 need not be invertible over the reals
    X = np.random.default_rng(seed).standard_normal((architecture.widths[0], architecture.tokens))
    assert np.allclose(forward(moved, X), forward(weights, X), atol=1e-8)


@examples(30)
@given(architectures(max_layers=2, max_width=3), st.integers(0, 10**6))
def test_symmetries_form_a_group(architecture, seed):
    field = GF(WORD_PRIME)
    weights = random_weights(architecture, field, seed)
    g, h = (random_symmetry(architecture, field, seed + k) for k in (1, 2))
    assert h.compose(g).apply(weights).equals(h.apply(g.apply(weights)))
    assert g.inverse().apply(g.apply(weights)).equals(weights)
    assert g.inverse().compose(g).apply(weights).equals(weights)
    assert identity_symmetry(architecture, field).apply(weights).equals(weights)


@examples(25)
@given(architectures(max_layers=2, max_width=3, max_tokens=3), st.integers(0, 10**6))
def test_tangent_vectors_kill_the_derivative_of_the_function(architecture, seed):
    """phi_{W + ε u}(X) has no term linear in ε: checked by exact interpolation in ε over GF(p)."""
    field = GF(WORD_PRIME)
    weights = random_weights(architecture, field, seed)
    tangents = infinitesimal_action(weights)
    assert len(tangents) == sum(count_generators(architecture).values())
    rng = np.random.default_rng(seed)
    mixture = field.random((1, len(tangents)), rng)
    direction = field.matmul(mixture, tangents)[0]
    X = field.random((architecture.widths[0], architecture.tokens), rng)
    degree = 4
    for _ in range(architecture.num_layers - 1):
        degree = 3 * degree + 4
    points = np.arange(degree + 1)
    values = np.stack(
        [
            forward(Weights.from_vector(architecture, field.reduce(weights.vector() + e * direction), field), X).ravel()
            for e in points
        ]
    )
    vandermonde = field.convert([[pow(int(e), k, field.p) for k in range(degree + 1)] for e in points])
    linear_term = field.matmul(field.inverse(vandermonde), values)[1]
    assert field.is_zero(linear_term)


@examples(30)
@given(architectures(max_layers=3, max_width=5, kinds=("lightning", "softmax")), st.integers(0, 10**6))
def test_unimodular_elements_and_their_inverses_are_small_integers(architecture, seed):
    g = random_unimodular_symmetry(architecture, QQ, seed)
    for element in (g, g.inverse()):
        matrices = [e for x, e in element.elements.items() if not isinstance(x, HeadOrder)]
        assert all(x.q == 1 and abs(x) <= 64 for matrix in matrices for x in matrix.ravel())
    assert all(x.q == 1 for x in g.apply(random_weights(architecture, QQ, seed)).vector())


def test_scaling_is_refused_for_softmax():
    architecture = Architecture((2, 2), 1, kind="softmax")
    with pytest.raises(InputError, match="softmax"):
        Symmetry(architecture, QQ, {Scale(0, 0): QQ.convert([[2]])})


def test_symmetry_of_another_architecture_is_refused():
    weights = random_weights(Architecture((2, 2), 1), QQ, 0)
    with pytest.raises(InputError, match="another architecture"):
        random_symmetry(Architecture((2, 2), 2), QQ, 0).apply(weights)


def test_residual_networks_have_no_symmetry_between_layers():
    architecture = Architecture((2, 2, 2), 1, residual=True)
    assert identity_symmetry(architecture, QQ).between == ()
    assert count_generators(architecture)["between"] == 0


@pytest.mark.parametrize("kind", ["lightning", "softmax", "gla", "deltanet", "kda"])
def test_symmetric_generators_are_counted_without_making_them(kind):
    for factor in linear_factors(Architecture((3, 3), 2, kind=kind, heads=2, value_width=2)):
        assert factor.num_symmetric == len(list(factor.symmetric_generators()))
        tensors = tensors_of(random_weights(Architecture((3, 3), 2, kind=kind, heads=2, value_width=2), QQ, seed=0))
        assert factor.count == len(list(factor.tangents(tensors, QQ)))
