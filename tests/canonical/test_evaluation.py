"""Outputs whose sizes no float holds."""

import numpy as np

from attngeom.canonical.evaluation import evaluate
from attngeom.exact import RR
from attngeom.network import Architecture, Weights


def test_a_zero_beside_an_output_below_every_exponent():
    """σ(−10¹⁰) is about 2^(−1.4·10¹⁰), beyond what an exponent of 32 bits holds; the other output is 0."""
    architecture = Architecture((1, 2), 1, tokens=1, kind="sigmoid")
    tensors = {"layers.0.Q": [[1e10]], "layers.0.K": [[-1.0]], "layers.0.V": [[1.0], [0.0]]}
    weights = Weights.from_tensors(architecture, {name: np.array(a) for name, a in tensors.items()}, RR)
    found = evaluate(weights, np.ones((1, 1, 1)), 0)
    assert found.exponents[0] < -(2**31)
    assert found.units[0, 0, 0] > 0 and found.units[0, 1, 0] == 0
