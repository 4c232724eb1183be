"""Networks with known dimensions: every one is proven, by the bounds that it is known to need."""

import pytest

from attngeom.rank.analysis import analyze
from tests.effort import choose
from tests.programs.modules import MODULES


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.name)
@pytest.mark.parametrize("seed", choose((0,), range(5)))
def test_dimensions_are_proven(module, seed):
    answer = analyze(module.network, *module.inputs, weights=module.weights, seed=seed)
    assert answer.parameters == module.parameters
    assert (answer.dimension, answer.upper_bound, answer.standing) == (module.dimension, module.dimension, "proven")
    explained = sum(part.count for part in answer.fiber)
    assert explained + answer.unexplained == module.parameters - module.dimension
    assert answer.unexplained == 0 or answer.upper.method == "coefficients"
    assert len(answer.laws) <= explained
