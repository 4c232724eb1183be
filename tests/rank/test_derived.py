"""Derived weights: what is computed from weights alone is taken as weights, and every checker says what it contains."""

import numpy as np
import pytest

from attngeom.programs import trace
from attngeom.programs.arithmetic import RealArithmetic
from attngeom.programs.association import multiply_weights_first
from attngeom.programs.operations import Point
from attngeom.programs.passes import run, value
from attngeom.rank.analysis import analyze, certify_network
from attngeom.rank.cuts import cut, find_cuts, weights_behind
from attngeom.verification import verify
from tests.proofs.mutations import seal, standalone


def made_kernel(w, x):
    """A kernel that a network makes of positions, and a scale behind it."""
    h = np.tanh(np.outer(np.arange(3) / 2, w["a"]) + w["b"])
    return (h @ w["c"]) @ x * w["o"]


KERNEL = {"a": 2, "b": 2, "c": 2, "o": 2}


@pytest.fixture(scope="module")
def answer():
    return analyze(made_kernel, 3, weights=KERNEL)


def test_a_kernel_that_is_made_has_no_more_dimensions_than_entries(answer):
    assert (answer.dimension, answer.standing, answer.upper.method) == (4, "proven", "derived")
    assert [str(part) for part in answer.fiber] == ["1 scale on c.0, o.0", "3 on derived weights on a, b, c"]
    assert sum(part.count for part in answer.fiber) == answer.fiber_dimension


def test_what_is_linear_in_weights_or_larger_than_them_stays():
    def network(w, x):
        return (w["A"] @ w["B"] + 2 * w["C"]) @ x

    program = trace(network, 4, weights={"A": (4, 1), "B": (1, 4), "C": (4, 4)})
    assert find_cuts(program) == []


def test_both_checkers_recheck_it_and_refuse_what_inputs_reach(answer):
    certificate = certify_network(answer)
    verdict = verify(certificate)
    assert verdict.valid and verdict.standing == "certified" and "derived weights" in verdict.reason
    record = certificate.to_json()
    assert standalone(record)[0] == "valid"
    upper = record["witness"]["upper"]
    reached = [k for k, node in enumerate(record["claim"]["program"]["nodes"]) if node[0] == "input"]
    changes = {
        "an input": upper | {"nodes": reached},
        "the output": upper | {"nodes": [record["claim"]["program"]["output"]]},
        "nothing": upper | {"nodes": []},
        "derived twice": upper | {"upper": upper},
        "fewer weights": upper | {"upper": {"method": "weights"}},
    }
    for name, changed in changes.items():
        forged = seal(record["claim"], record["witness"] | {"upper": changed})
        assert standalone(forged)[0] != "valid", name
        assert not verify(forged).valid, name


def test_the_program_of_derived_weights_has_no_others():
    program = trace(made_kernel, 3, weights=KERNEL)
    places, functions = find_cuts(program)
    assert weights_behind(program, places) == ("a", "b", "c")
    other = cut(program, places)
    assert other is not None and set(other.parameters) == {"o", f"derived {places[0]}"}
    # Or the last functions of one variable, beside weights that are multiplied with them.
    assert {program.nodes[place].operation for place in functions} <= {"formal", "inverse"}
    other = cut(program, functions)
    assert other is not None and set(other.parameters) == {"c", "o", *(f"derived {place}" for place in functions)}


def test_a_tied_embedding_is_free_of_what_was_computed_from_it():
    """Logits of five words in a space of three: matrices of rank 3, which have 3·(5 + 5 − 3) dimensions."""

    def tied(w, words):
        return np.tanh(w["E"][words] @ w["L"] + w["b"]) @ w["E"].T

    answer = analyze(tied, np.arange(5), weights={"E": (5, 3), "L": (3, 3), "b": 3})
    assert (answer.dimension, answer.standing, answer.upper.method) == (21, "proven", "derived")
    certificate = certify_network(answer)
    assert verify(certificate).standing == "certified"
    assert standalone(certificate.to_json())[0] == "valid"


def softmax(s):
    e = np.exp(s)
    return e / e.sum(-1, keepdims=True)


def graph_attention(w, x):
    h = x @ w["W"].T
    scores = (h @ w["a"])[:, None] + (h @ w["b"])[None]
    return softmax(np.where(scores > 0, scores, scores / 4)) @ h


def attention_on_hidden(w, x):
    h = x @ w["W"].T
    return softmax((h @ w["A"]) @ h.T) @ h


def pointers(w, x):
    h = np.tanh(x) @ w["W"].T
    return softmax(w["A"] @ h.T) @ h


READERS = {
    # W, and what is read off h = Wx: a form on two numbers each, a form on pairs of them, two forms.
    "graph attention": (graph_attention, {"W": (3, 2), "a": 3, "b": 3}, 12, 10),
    "attention on a hidden vector": (attention_on_hidden, {"W": (3, 2), "A": (3, 3)}, 15, 10),
    "pointers": (pointers, {"W": (3, 2), "A": (2, 3)}, 12, 10),
}


@pytest.mark.parametrize("name", READERS)
def test_what_is_read_off_a_hidden_vector_is_a_product_of_weights(name):
    network, weights, parameters, dimension = READERS[name]
    answer = analyze(network, (3, 2), weights=weights)
    assert (answer.parameters, answer.dimension, answer.standing) == (parameters, dimension, "proven")
    assert answer.upper.method == "derived"
    certificate = certify_network(answer)
    assert verify(certificate).valid
    assert standalone(certificate.to_json())[0] in ("valid", "unknown")


@pytest.mark.parametrize("name", READERS)
def test_another_order_of_products_is_the_same_function(name):
    network, weights, *_ = READERS[name]
    program = trace(network, (3, 2), weights=weights)
    other = multiply_weights_first(program)
    assert other is not None and other.digest != program.digest
    rng = np.random.default_rng(5)
    for _ in range(4):
        tensors = {k: rng.standard_normal(s)[None] for k, s in {**program.parameters, **program.inputs}.items()}
        point = Point(RealArithmetic(), tensors)
        ours, theirs = (value(own, run(own, point)) for own in (program, other))
        assert np.allclose(ours, theirs, rtol=1e-12, atol=1e-12)


def test_products_that_are_larger_than_their_factors_stay():
    program = trace(lambda w, x: w["B"] @ (w["A"] @ x), 5, weights={"A": (1, 5), "B": (5, 1)})
    assert multiply_weights_first(program) is None
