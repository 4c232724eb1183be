"""The Jacobian against finite differences, exact ones included."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from attngeom.exact import GF, RR
from attngeom.network import Architecture, Weights, forward, random_weights
from attngeom.network.symmetry import infinitesimal_action
from attngeom.network.tangent import jacobian
from tests.effort import examples
from tests.network.strategies import architectures

FIELD = GF(2147483629)


@examples(40)
@given(architecture=architectures(kinds=("lightning", "softmax", "sigmoid")), seed=st.integers(0, 100))
def test_jacobian_matches_central_differences(architecture, seed):
    rng = np.random.default_rng(seed)
    weights = random_weights(architecture, RR, seed)
    X = 0.5 * rng.standard_normal((2, architecture.widths[0], architecture.tokens))
    direction = rng.standard_normal(architecture.num_parameters)
    step = 1e-4

    def value(shift):
        return forward(Weights.from_vector(architecture, weights.vector() + shift * step * direction, RR), X).ravel()

    # Of fourth order: unnormalised attention of several layers has large higher derivatives.
    numeric = (8 * (value(1) - value(-1)) - (value(2) - value(-2))) / (12 * step)
    np.testing.assert_allclose(direction @ jacobian(weights, X), numeric, atol=1e-6 * (1 + np.abs(numeric).max()))


@pytest.mark.parametrize(
    "architecture",
    [
        Architecture((3, 2, 3), 2),
        Architecture((2, 2, 2), 2, heads=2, residual=True),
        Architecture((2, 4, 3), 1, causal=True),
    ],
    ids=str,
)
def test_infinitesimal_symmetries_lie_in_the_kernel_mod_p(architecture):
    weights = random_weights(architecture, FIELD, 1)
    X = FIELD.random((4, architecture.widths[0], architecture.tokens), np.random.default_rng(0))
    J = jacobian(weights, X)
    assert J.any()
    assert FIELD.is_zero(FIELD.matmul(infinitesimal_action(weights), J))
