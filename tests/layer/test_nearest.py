"""The nearest layer: derivatives as matrices and as operators lead to the same one."""

from dataclasses import replace

import numpy as np
import pytest

from attngeom.exact import RR
from attngeom.layer import nearest
from attngeom.layer.coefficients import coefficients, scale_to_one
from attngeom.layer.nearest import nearest_layer
from attngeom.network import Architecture, random_weights


@pytest.mark.parametrize("noise", [0.0, 1e-2])
def test_large_layers_are_fitted_without_matrices(noise, monkeypatch):
    rng = np.random.default_rng(0)
    given = coefficients(random_weights(Architecture((3, 2), 2, tokens=2), RR, seed=0))
    given = replace(given, cross=given.cross + noise * rng.standard_normal(given.cross.shape))
    given = scale_to_one(given)[0]
    dense = nearest_layer(given, 2, starts=1)
    monkeypatch.setattr(nearest, "NEAREST_JACOBIAN", 0)
    assert nearest_layer(given, 2, starts=1).distance == pytest.approx(dense.distance, rel=1e-6, abs=1e-12)
    assert (dense.distance < 1e-12) == (noise == 0)
