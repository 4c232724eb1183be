"""Sines and cosines of arguments that depend on each other, written in those of a basis: the same functions, and zero
where they are zero. Programs are compared with their networks in float64 whenever they are traced.
"""

import numpy as np
import pytest

from attngeom.programs import trace
from attngeom.programs.angle_sums import add_angles
from attngeom.rank.analysis import analyze
from tests.rank.test_towers import float_rank

S = ()


def functions(program):
    return sum(program.nodes[k].size for k in program.places("formal"))


CASES = {
    "multiples": (lambda w, x: np.sin(np.arange(7) * w["a"] * x) + np.cos(-3 * w["a"] * x), {"a": S}, S, 2),
    "fractions": (lambda w, x: np.sin(w["a"] * x / 2) * np.cos(w["a"] * x / 3), {"a": S}, S, 2),
    "filters": (lambda w, x: np.sin(np.outer(np.arange(5), w["a"]) + w["b"]) @ x, {"a": (2,), "b": (2,)}, (2,), 8),
    "sums": (lambda w, x: np.cos(w["a"] + x) * np.sin(w["a"] - x) + np.cos(2 * x), {"a": S}, S, 4),
    "large multiples": (lambda w, x: np.cos(1000003 * w["a"] * x) + np.sin(w["a"] * x), {"a": S}, S, 2),
    "one inside the other": (lambda w, x: np.sin(w["b"] * np.sin(np.arange(3) * w["a"] * x)), {"a": S, "b": S}, S, 5),
    "phases": (lambda w, x: np.sin(w["a"] * x + w["b"]) + np.cos(w["a"] * x - 2 * w["b"]), {"a": S, "b": S}, S, 4),
    "nothing to do": (lambda w, x: np.sin(w["A"] @ x) + np.cos(w["B"] @ x), {"A": (2, 2), "B": (2, 2)}, (2,), 4),
}


@pytest.mark.parametrize("name", CASES)
def test_values_are_those_of_a_basis(name):
    network, weights, shape, count = CASES[name]
    program = trace(network, shape, weights=weights)
    assert functions(program) == count
    assert functions(add_angles(program)) <= count


MISLEADING = {
    # Dimensions are ranks of floats; free values of all arguments would show more.
    "theorem of addition": (
        lambda w, x: (
            w["a"] * np.sin(x + 2 * w["b"])
            - w["a"] * np.sin(x) * np.cos(2 * w["b"])
            - w["a"] * np.cos(x) * np.sin(2 * w["b"])
            + w["c"] * x
        ),
        {"a": S, "b": S, "c": S},
        S,
    ),
    "double angle": (
        lambda w, x: w["a"] * np.cos(2 * w["c"] * x) + 2 * w["b"] * np.sin(w["c"] * x) ** 2,
        {"a": S, "b": S, "c": S},
        S,
    ),
    "three phases": (
        lambda w, x: sum(w[k] * np.sin(w["d"] * x + n * w["e"]) for k, n in zip("abc", (0, 1, -1))),
        dict.fromkeys("abcde", S),
        S,
    ),
    "shared weights": (
        lambda w, x: (
            w["a"] * np.sin(w["b"] * x[0]) * np.cos(w["b"] * x[1])
            + w["c"] * np.sin(w["b"] * (x[0] + x[1]))
            + w["d"] * np.sin(w["b"] * (x[0] - x[1]))
        ),
        dict.fromkeys("abcd", S),
        (2,),
    ),
}


@pytest.mark.parametrize("name", MISLEADING)
def test_theorems_of_addition_are_kept(name):
    network, weights, shape = MISLEADING[name]
    program = trace(network, shape, weights=weights)
    answer = analyze(program)
    truth = float_rank(program)
    assert answer.rank_proof.standing != "proven" or answer.lower_bound <= truth
    assert answer.upper_bound >= truth
    assert answer.rank_proof.standing == "undecided" or answer.lower_bound == truth
