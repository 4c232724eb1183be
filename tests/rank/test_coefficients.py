"""The bound by coefficients: of outputs, and of what stands under roots, inverses and functions in them."""

import numpy as np
import pytest

from attngeom.programs import trace
from attngeom.rank.analysis import analyze, certify_network
from attngeom.rank.lower import bound_rank
from attngeom.verification import Certificate, verify
from attngeom.verification.atoms import AtomTable
from attngeom.verification.coefficients import bound_by_coefficients
from attngeom.verification.programs import CheckedProgram
from tests.programs.modules import MODULES


def bound(program):
    return bound_by_coefficients(AtomTable(CheckedProgram.from_json(program.to_json())))


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.name)
def test_it_is_never_below_the_dimension(module):
    found = bound(trace(module.network, *module.inputs, weights=module.weights))
    assert found is None or found >= module.dimension


def scaled_roots(w, x):
    """c·√(a·x² + b·x + e): three numbers, as √ is homogeneous."""
    return w["c"] * np.sqrt(w["a"] * x * x + w["b"] * x + w["e"])


def inverse(w, x):
    """(p x + q)/(a x + b): a Möbius map."""
    return (w["p"] * x + w["q"]) / (w["a"] * x + w["b"])


def nested(w, x):
    """1/(a + b/(c x + e)): (c x + e)/(a c x + a e + b)."""
    return 1 / (w["a"] + w["b"] / (w["c"] * x + w["e"]))


def fixed_lead(w, x):
    """q/(1 + a x²): 1 takes the place of a leading coefficient, so that nothing is scaled."""
    return w["q"] / (1 + w["a"] * x * x)


def exponential(w, x):
    return w["p"] * np.exp(w["a"] * w["b"] * x + w["a"] * x)


SMALL = [
    (scaled_roots, "abce", 3), (inverse, "pqab", 3), (nested, "abce", 3), (fixed_lead, "qa", 2), (exponential, "pab", 2)
]  # fmt: skip


@pytest.mark.parametrize(("network", "names", "dimension"), SMALL, ids=lambda x: getattr(x, "__name__", None))
def test_numbers_are_counted_up_to_scales(network, names, dimension):
    program = trace(network, (), weights=dict.fromkeys(names, ()))
    assert bound(program) == dimension == bound_rank(program).value


def rms(w, x):
    y = w["A"] @ x + w["b"]
    return w["C"] @ (w["g"] * y / np.sqrt(np.mean(y * y) + 1e-5)) + w["d"]


def centred(w, x):
    y = w["A"] @ x + w["b"]
    y = y - y.mean()
    return w["C"] @ (w["g"] * y / np.sqrt(np.mean(y * y) + 1e-5) + w["h"]) + w["d"]


NORMS = [
    (rms, 3, {"A": (4, 3), "b": 4, "g": 4, "C": (2, 4), "d": 2}, 19),
    (centred, 2, {"A": (4, 2), "b": 4, "g": 4, "h": 4, "C": (3, 4), "d": 3}, 17),
]
"""The dimensions are ranks in float64; biases before a norm leave a scale that is no linear field."""


@pytest.mark.parametrize(("network", "width", "weights", "dimension"), NORMS, ids=["rms", "centred"])
def test_a_norm_behind_biases(network, width, weights, dimension):
    answer = analyze(network, width, weights=weights)
    assert (answer.dimension, answer.standing, answer.upper.method) == (dimension, "proven", "coefficients")
    certificate = certify_network(answer)
    assert verify(certificate, 100).valid
    claim = certificate.claim | {"dimension": dimension - 1}
    assert not verify(Certificate(claim, certificate.witness, certificate.provenance), 100).valid
