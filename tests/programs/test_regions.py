"""Comparisons that come out one way: clamps that do not act are left out, others stay."""

import numpy as np
import pytest

import attngeom
from attngeom.programs import trace
from attngeom.programs.regions import FIXED_SIGNS

W = {"a": (2, 3), "b": (2, 2)}


def normed(w, x):
    h = w["a"] @ x
    return w["b"] @ (h / np.maximum(np.linalg.norm(h), 1e-12))


def capped(w, x):
    return w["b"] @ np.minimum(np.exp(w["a"] @ x), 1e300)


def rectified(w, x):
    return w["b"] @ np.maximum(w["a"] @ x, 0)


def never(w, x):
    return w["b"] @ np.maximum(w["a"] @ x - 1e9, 0)


def test_normed_vectors_have_the_symmetries_of_a_norm():
    """(A, B) and (cUA, BU⁻¹): 4 of rotations and scales; the clamp is mentioned."""
    answer = attngeom.analyze(normed, 3, weights=W)
    assert (answer.dimension, answer.standing, answer.program.notes) == (8, "proven", (FIXED_SIGNS,))
    assert answer.to_json()["notes"] == [FIXED_SIGNS] and FIXED_SIGNS in answer.rows().values()


@pytest.mark.parametrize(("network", "patterns"), [(normed, 0), (capped, 0), (rectified, 1), (never, 1)])
def test_what_acts_somewhere_or_hides_all_weights_stays(network, patterns):
    program = trace(network, 3, weights=W)
    assert sum(node.operation == "pattern" for node in program.nodes) == patterns
    assert bool(program.notes) == (patterns == 0)
