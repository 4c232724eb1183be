"""Networks written to mislead: whatever is called proven is the rank of a float64 Jacobian at several points.

The dimensions are such ranks, by central differences and singular values at four weights. What cannot be decided may
be left undecided, but not be wrong.
"""

import numpy as np
import pytest

from attngeom.rank.analysis import analyze
from tests.effort import thorough

S = ()


def softplus(z):
    return np.log(1 + np.exp(z))


def denested(w, x):
    u, v = w["a"] ** 2 * x * x + 1, w["b"] ** 2 + 1
    return w["c"] * np.sqrt(u + v + 2 * np.sqrt(u * v)) + w["d"] * np.sqrt(u)


def products_of_roots(w, x):
    u, v = w["a"] ** 2 * x * x + 1, w["b"] ** 2 * x * x + 2
    return w["d"] * np.sqrt(u) * np.sqrt(v) + w["c"] * np.sqrt(u * v)


def cancelled_by_exponentials(w, x):
    return np.exp(w["a"] + np.exp(w["b"] * x)) * np.exp(-np.exp(w["b"] * x)) * x + w["c"] * x


def dependent_exponents(w, x):
    first, second, third = (np.exp(w["a"] * y) for y in (x[0], x[1], x[0] - x[1]))
    return w["b"] * first + w["c"] * second * third + w["d"] * first / second - w["e"] * third


def relu_of_both_signs(w, x):
    h = w["A"] @ x
    return w["B"] @ (np.maximum(h, 0) - np.maximum(-h, 0))


def normed(w, x):
    h = w["A"] @ x
    h = h - h.mean()
    return w["B"] @ (h / np.sqrt((h * h).mean()))


FOUR = {"a": S, "b": S, "c": S, "d": S}
THREE = {"a": S, "b": S, "c": S}
CASES = {
    "doubled exponents": (
        lambda w, x: w["a"] * np.exp(w["b"] * x) ** 2 + w["c"] * np.exp(2 * w["b"] * x) + w["d"] * np.exp(w["b"] * x),
        FOUR,
        (),
        3,
    ),
    "dependent exponents": (dependent_exponents, {**FOUR, "e": S}, (2,), 3),
    "difference of softplus": (
        lambda w, x: softplus(w["a"] * x + w["b"]) - softplus(-w["a"] * x - w["b"]) + w["c"] * x,
        THREE,
        (),
        2,
    ),
    "roots of one square": (lambda w, x: np.sqrt((w["a"] * x + w["b"]) ** 2) + w["c"] * w["a"] * x, THREE, (), 3),
    "products of roots": (products_of_roots, FOUR, (), 3),
    "denested roots": (denested, FOUR, (), 3),
    "doubled angles": (
        lambda w, x: w["b"] * np.sin(2 * w["a"] * x) + w["c"] * np.sin(w["a"] * x) * np.cos(w["a"] * x),
        THREE,
        (),
        2,
    ),
    "both signs": (relu_of_both_signs, {"A": (3, 2), "B": (2, 3)}, (2,), 4),
    "norm without epsilon": (normed, {"A": (3, 2), "B": (2, 3)}, (2,), 6),
    "signs alone": (
        lambda w, x: w["v"] * np.where(w["A"] @ x > 0, 1.0, -1.0) + x[0],
        {"A": (3, 2), "v": (3,)},
        (2,),
        3,
    ),
    **dict(
        thorough(
            ("cancelled by exponentials", (cancelled_by_exponentials, THREE, (), 1)),
            ("gaussians", (lambda w, x: w["c"] * np.exp(-((x - w["a"]) ** 2) / 2 - w["b"] ** 2), THREE, (), 2)),
            ("sum of sigmoids", (lambda w, x: 1 / (1 + np.exp(-w["a"] * x)) + w["b"] * w["c"] * x, THREE, (), 2)),
            ("one root twice", (lambda w, x: w["a"] * np.sqrt(x * x + 1) ** 2 + w["b"] * x * x + w["c"], THREE, (), 2)),
            ("length of weights", (lambda w, x: np.sqrt(w["a"] ** 2 + w["b"] ** 2) * x + w["c"], THREE, (), 2)),
            ("shift and its inverse", (lambda w, x: np.exp(w["a"]) * w["b"] * x * np.exp(-w["a"]), THREE, (), 1)),
            ("trace and determinant", (lambda w, x: np.trace(w["A"] @ w["B"]) * x, {"A": (2, 2), "B": (2, 2)}, (), 1)),
        )
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_what_is_proven_is_right(name):
    network, weights, shape, dimension = CASES[name]
    answer = analyze(network, shape, weights=weights)
    assert answer.upper_bound >= dimension
    if answer.rank_proof.standing == "proven":
        assert answer.lower_bound <= dimension
    if answer.is_proven:
        assert answer.dimension == dimension
