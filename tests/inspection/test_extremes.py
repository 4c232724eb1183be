"""Ranks and strata do not depend on the size of the weights, also where products leave the range of floats."""

import pytest

from attngeom.exact import RR
from attngeom.inspection.geometry import inspect
from attngeom.inspection.hypotheses import check_hypotheses
from attngeom.network import Architecture, Weights, random_weights


def scaled(architecture, size):
    return Weights.from_vector(architecture, random_weights(architecture, RR, 0).vector() * size, RR)


@pytest.mark.parametrize("size", [1e-300, 1e-170, 1e170, 1e300])
def test_stratum_and_ranks_of_extreme_weights(size):
    architecture = Architecture((3, 2), 2)
    found, plain = (inspect(scaled(architecture, x)) for x in (size, 1.0))
    assert found.stratum.name == plain.stratum.name == "generic"
    assert found.stratum.distance == pytest.approx(plain.stratum.distance, rel=1e-9)
    assert found.local.rank == plain.local.rank


@pytest.mark.parametrize("kind", ["lightning", "softmax", "sigmoid"])
@pytest.mark.parametrize("size", [1e-150, 1e150])
def test_hypotheses_of_extreme_weights(kind, size):
    architecture = Architecture((2, 2, 2), 2, kind=kind)
    assert check_hypotheses(scaled(architecture, size)) == check_hypotheses(scaled(architecture, 1.0))
