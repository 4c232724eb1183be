"""Conserved quantities as they are written: the text, read as a formula, is the quadratic form of the symmetry."""

import re

import numpy as np
import pytest
from flint import fmpq

import attngeom
from attngeom.atlas.networks import NETWORKS
from attngeom.programs import trace
from attngeom.rank.laws import describe_law, symmetric_fields

NAMES = ["softmax attention", "squared perceptron", "head with biases", "two heads", "dense experts", "low rank map"]


def fused(w, x):
    q, k, v = np.split(x @ w["qkv"].T, 3, axis=1)
    e = np.exp(q @ k.T)
    return (e / e.sum(axis=1, keepdims=True)) @ v @ w["o"].T


def shared(w, x):
    return w["B"] @ (w["A"] @ x + w["A"] @ x[::-1] + w["a"])


CASES = [(name, *NETWORKS[name]) for name in NAMES] + [
    ("fused heads", fused, {"qkv": (6, 3), "o": (3, 2)}, (3, 3)),
    ("shared biases", shared, {"A": (2, 3), "a": 2, "B": (2, 2)}, (3,)),
]


def read(text, tensors):
    """The value of a law as it is written."""
    for mark, name in ((r"\|([^|]*)\|²", "square"), (r"⟨(.*?)⟩", "product"), (r"Σ (\w+(?:\[[^]]*\])?)", "total")):
        text = re.sub(mark, rf"{name}(\1)", text)
    functions = {
        "square": lambda x: float(np.sum(x * x)),
        "product": lambda x, y: float(np.sum(x * y)),
        "total": lambda x: float(np.sum(x)),
    }
    return float(eval(text.replace("−", "-").replace("·", "*"), functions | tensors))


def form(program, field, theta):
    return sum(float(t.p) / float(t.q) * theta[m] * (2.0 if s is None else theta[s]) for (m, s), t in field.items())


@pytest.mark.parametrize(("name", "network", "weights", "shape"), CASES, ids=[case[0] for case in CASES])
def test_laws_are_written_as_they_are(name, network, weights, shape):
    answer = attngeom.analyze(network, shape, weights=weights)
    program, rng = answer.program, np.random.default_rng(5)
    fields = symmetric_fields(answer.upper.fields)
    assert fields and len(set(answer.laws)) == len(answer.laws)
    for field in fields:
        text = describe_law(program, field)
        ratios = []
        for _ in range(3):
            theta = rng.standard_normal(program.num_parameters)
            ratios.append(read(text, program.split(theta)) / form(program, field, theta))
        assert np.allclose(ratios, ratios[0]) and abs(ratios[0]) > 1e-9, text


def test_what_is_no_product_of_lines_is_named_and_not_written():
    program = trace(lambda w, x: w["A"] @ x, 3, weights={"A": (3, 3)})
    assert describe_law(program, {(0, 0): fmpq(1), (4, 4): fmpq(1)}) == "a quadratic form in 2 weights of A"
    assert describe_law(program, {(0, 0): fmpq(1), (1, 1): fmpq(-1)}) == "|A[0, 0]|² − |A[0, 1]|²"


def test_one_field_is_listed_once():
    answer = attngeom.analyze(fused, (3, 3), weights={"qkv": (6, 3), "o": (3, 2)})
    fields = [tuple(field.items()) for field in answer.upper.fields]
    assert len(set(fields)) == len(fields) == answer.fiber_dimension
    assert {str(part) for part in answer.fiber} == {"4 gl(2) on qkv.0", "4 gl(2) on o.1, qkv.0"}
