"""Architectures and weights refuse whatever is not a network, with one clear line."""

import json

import flint
import numpy as np
import pytest
from hypothesis import given

from attngeom.errors import AttnGeomError, InputError, SizeError
from attngeom.exact import GF, QQ, RR, Balls
from attngeom.network import Architecture, Weights, random_weights, weights_from_matrices

from .strategies import architectures

BAD = [
    (dict(widths=(3,), attention=1), "at least 2"),
    (dict(widths=(), attention=1), "at least 2"),
    (dict(widths=(3, 0), attention=1), "positive"),
    (dict(widths=(3, -2), attention=1), "positive"),
    (dict(widths=(3, 2.5), attention=1), "positive"),
    (dict(widths=(3, True), attention=1), "positive"),
    (dict(widths="33", attention=1), "list"),
    (dict(widths=(3, 3), attention=0), "positive"),
    (dict(widths=(3, 3), attention=(1, 2)), "one for each layer"),
    (dict(widths=(3, 3), attention=1, tokens=0), "positive"),
    (dict(widths=(3, 3), attention=1, tokens=1.0), "positive"),
    (dict(widths=(3, 3), attention=1, kind="quadratic"), "lightning"),
    (dict(widths=(3, 3), attention=1, heads=0), "positive"),
    (dict(widths=(3, 3), attention=1, heads=2), "value_width"),
    (dict(widths=(3, 3), attention=1, value_width=0), "positive"),
    (dict(widths=(3, 2), attention=1, residual=True), "equal widths"),
    (dict(widths=(3, 3), attention=1, causal=1), "true or false"),
]


@pytest.mark.parametrize("arguments, words", BAD)
def test_bad_architectures_are_refused_in_one_line(arguments, words):
    with pytest.raises(InputError, match=words) as caught:
        Architecture(**arguments)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("arguments", [dict(widths=(10**7, 3), attention=1), dict(widths=(3, 3), attention=10**30)])
def test_absurd_sizes_are_refused(arguments):
    with pytest.raises(SizeError):
        Architecture(**arguments)


def test_weights_of_absurd_size_are_refused_before_memory_is_taken():
    with pytest.raises(SizeError, match="parameters"):
        random_weights(Architecture((10**6, 10**6), 10**6), RR, 0)


@given(architectures(kinds=("lightning", "softmax")))
def test_json_round_trip(architecture):
    assert Architecture.from_json(json.loads(json.dumps(architecture.to_json()))) == architecture


@pytest.mark.parametrize(
    "record",
    [
        None,
        [],
        {"widths": [3, 3]},
        {"widths": [3, 3], "attention": [1], "depth": 2},
        {"widths": 3, "attention": 1},
    ],
)
def test_bad_json_is_refused(record):
    with pytest.raises(AttnGeomError):
        Architecture.from_json(record)


@given(architectures())
def test_vector_round_trip_and_parameter_count(architecture):
    weights = random_weights(architecture, GF(101), 4)
    vector = weights.vector()
    assert vector.shape == (architecture.num_parameters,)
    assert Weights.from_vector(architecture, vector, GF(101)).equals(weights)


def test_conversions_are_exact():
    architecture = Architecture((2, 2), 1)
    tensors = {"layers.0.Q": [["1/3", 2]], "layers.0.K": [[0.5, "-7/2"]], "layers.0.V": [[1, 2], [3, 4]]}
    weights = Weights.from_tensors(architecture, tensors, QQ)
    assert int(weights.to(GF(7)).layers[0][0].Q[0, 0]) == 5
    assert weights.to(Balls(64)).layers[0][0].Q[0, 0].overlaps(flint.arb(1) / 3)
    assert weights.to(RR).to(QQ).layers[0][0].K.tolist() == weights.layers[0][0].K.tolist()


@pytest.mark.parametrize(
    "change, words",
    [
        ({"layers.0.Q": None}, "missing"),
        ({"layers.0.Q": [[1.0, 2.0, 3.0]]}, "shape"),
        ({"layers.0.Q": [[1.0], [2.0, 3.0]]}, "ragged"),
        ({"layers.0.Q": [[float("nan"), 1.0]]}, "finite"),
        ({"layers.0.Q": [[float("inf"), 1.0]]}, "finite"),
        ({"layers.0.Q": [["1/0", 1.0]]}, "rational"),
        ({"layers.0.Q": [[None, 1.0]]}, "rational"),
        ({"layers.1.Q": [[1.0, 2.0]]}, "given"),
    ],
)
@pytest.mark.parametrize("domain", [QQ, RR, GF(7), Balls(64)], ids=lambda d: d.name)
def test_bad_tensors_are_refused(change, words, domain):
    tensors = {"layers.0.Q": [[1, 2]], "layers.0.K": [[1, 2]], "layers.0.V": [[1, 2], [3, 4]]}
    tensors = {name: value for name, value in {**tensors, **change}.items() if value is not None}
    with pytest.raises(InputError, match=words):
        Weights.from_tensors(Architecture((2, 2), 1), tensors, domain)


@pytest.mark.parametrize("domain", [QQ, GF(101), RR], ids=lambda d: d.name)
def test_weights_from_matrices_have_those_matrices(domain):
    source = random_weights(Architecture((4, 4), 2), domain, 3)
    (A,), (V,) = source.attention_matrices()[0], source.value_matrices()[0]
    built = weights_from_matrices(Architecture((4, 4), 3), [A], [V], domain)
    difference = domain.reduce(built.attention_matrices()[0][0] - A)
    assert domain.is_zero(difference) if domain.is_exact else np.abs(difference).max() < 1e-12
    with pytest.raises(InputError, match="rank"):
        weights_from_matrices(Architecture((4, 4), 1), [A], [V], domain)
