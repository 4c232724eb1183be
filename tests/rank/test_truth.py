"""What may be said, and what not: networks in which free values, signs or regions would give a wrong answer."""

import json

import numpy as np
import pytest
from flint import fmpq
from scipy.special import ndtr

import attngeom
from attngeom.errors import InputError, SizeError
from attngeom.programs import Builder, NamedPoint, Program, trace
from attngeom.programs.arithmetic import RealArithmetic
from attngeom.programs.operations import Point
from attngeom.programs.passes import run
from attngeom.rank.analysis import analyze, certify_network
from attngeom.rank.folds import find_folds, fold
from attngeom.rank.hypotheses import prove_rank
from attngeom.rank.laws import describe_law, symmetric_fields
from attngeom.rank.lower import bound_rank
from attngeom.rank.search import find_symmetries, shorten
from attngeom.rank.slices import fix_weights, gains_and_biases
from attngeom.rank.upper import derivations_at
from attngeom.results import Proof
from attngeom.verification import Certificate, verify
from tests.programs.modules import MODULES, layer_norm, softmax

TWO = {"a": (), "b": ()}


def hidden_sum(w):
    """a + b, which is not seen on paper."""
    return (w["a"] ** 2 - w["b"] ** 2) / (w["a"] - w["b"])


@pytest.mark.parametrize(
    ("network", "standing"),
    [
        (lambda w, x: w["a"] * np.sqrt(x * x) + w["b"] * x, "undecided"),
        (lambda w, x: w["a"] * np.sqrt(2 * x * x + 0) + w["b"] * x, "undecided"),
        (lambda w, x: w["a"] * np.sqrt(w["b"] * x * x) + w["b"] * x, "undecided"),
        (lambda w, x: w["a"] * np.sqrt(x * x + 1) + w["b"] * x, "proven"),
        (lambda w, x: w["a"] * np.log(x * x) + w["b"] * np.log(3 * x), "undecided"),
        (lambda w, x: w["a"] * np.log(x * x + 1) + w["b"] * np.log(x * x + 2), "proven"),
        (lambda w, x: w["a"] * np.log(1 + np.exp(w["b"] * x)), "proven"),
        (lambda w, x: w["a"] * np.log(1 + np.exp(x)) + w["b"] * np.log(1 + np.exp(-x)), "undecided"),
        (lambda w, x: w["a"] * np.exp(np.log(x * x + 1)) + w["b"] * (x * x + 1), "proven"),
        (lambda w, x: w["a"] * np.exp(np.log(x * x + 1) / 3) + w["b"] * (x * x + 1), "undecided"),
        (lambda w, x: w["a"] * np.exp(np.log(1 + np.exp(x))) + w["b"] * np.exp(x), "proven"),
        (lambda w, x: w["a"] * np.exp(np.log(1 + np.exp(x)) / 3) + w["b"] * np.exp(x), "undecided"),
        (lambda w, x: np.exp(-w["a"] * np.log(1 + np.exp(w["b"] * x))), "proven"),
        (lambda w, x: np.sin(w["a"] * x) + np.sin(w["b"] * x), "proven"),
        (lambda w, x: np.sin(w["a"] * x) * np.cos(w["b"] * x) + np.sin((w["a"] + w["b"]) * x), "proven"),
        (lambda w, x: np.sin(w["a"] * x) * np.cos(w["b"] * x) + np.sin(hidden_sum(w) * x), "undecided"),
        (lambda w, x: np.sin(w["a"] * x) + w["b"] * np.sin(-w["a"] * x), "proven"),
        (lambda w, x: np.sin(w["a"] * x) + w["b"] * np.sin(w["a"] * x + 1), "undecided"),
        (lambda w, x: np.cos(w["a"] * x) + np.sin(w["b"] - w["a"] * x), "proven"),
        (lambda w, x: np.cos(hidden_sum(w) * x) + np.sin(w["b"] - (w["a"] + w["b"]) * x), "undecided"),
        (lambda w, x: w["a"] * np.sqrt(x * x + 1) + w["b"] * np.sqrt(2 * x * x + 2 - (x * x + 1)), "proven"),
        (lambda w, x: w["a"] * ndtr(x) + w["b"] * ndtr(-x), "proven"),
        (lambda w, x: w["a"] * ndtr(x) + w["b"] * ndtr(-1.0 * x), "undecided"),
        (lambda w, x: w["a"] * ndtr(x) + w["b"] * ndtr(2 * x), "proven"),
        (lambda w, x: w["a"] * np.log(w["b"] * w["b"] + 1) * x, "proven"),
        (lambda w, x: np.log(w["a"] ** 2) * x + np.log(w["a"] ** 4) * w["b"], "undecided"),
        (lambda w, x: ndtr(w["a"]) * x + ndtr(-w["a"]) * w["b"], "proven"),
        (lambda w, x: ndtr(w["a"]) * x + ndtr(-1.0 * w["a"]) * w["b"], "undecided"),
    ],
)
def test_free_values_are_trusted_only_where_nothing_relates_them(network, standing):
    assert prove_rank(bound_rank(trace(network, (), weights=TWO))).standing == standing


def relu(x):
    return np.maximum(x, 0)


@pytest.mark.parametrize(
    "network",
    [
        # Each is 0, or has one dimension, on the piece where it is not 0; on others its values are not related.
        lambda w, x: relu(x) * (w["a"] * np.log(x * x + 1) + w["b"] * np.log((x * x + 1) ** 2 + relu(-x))),
        lambda w, x: relu(x) * (w["a"] * np.sqrt((x * x + 1) ** 2 + relu(-x)) + w["b"] * (x * x + 1)),
        lambda w, x: relu(x) * (w["a"] * np.sin(2 * x + relu(-x)) + w["b"] * np.sin(x) * np.cos(x)),
        lambda w, x: relu(w["b"]) * (np.log((w["b"] ** 2 + 1) ** 2 + relu(-w["b"])) - 2 * np.log(w["b"] ** 2 + 1)) * x,
        # Inputs choose between two functions of weights, which are related.
        lambda w, x: w["a"] * np.log((w["b"] ** 2 + 1) * np.where(x > 0, 1, w["b"] ** 2 + 1)),
        lambda w, x: w["a"] * (ndtr(w["b"] * np.where(x > 0, 1, -1)) - 0.5),
        lambda w, x: w["a"] * np.log(np.where(x > 0, 2, 4)),
    ],
)
def test_what_is_related_on_one_piece_is_not_free(network, monkeypatch):
    program = trace(network, (), weights=TWO)
    assert prove_rank(bound_rank(program)).standing == "undecided"
    proof = Proof("proven", "taken for granted")
    monkeypatch.setattr("attngeom.rank.analysis.prove_free_rank", lambda lower, progress: (lower, proof))
    answer = analyze(program)
    if answer.lower_bound == answer.upper_bound:
        assert not verify(certify_network(answer).to_json()).is_proven


def test_pieces_on_which_values_are_free():
    answer = analyze(lambda w, x: w["a"] * np.log(x * x + 1 + relu(w["b"] * x)), (), weights=TWO)
    assert answer.is_proven and answer.dimension == 2
    assert verify(certify_network(answer).to_json()).standing == "certified"


def test_too_many_pieces_are_told(monkeypatch):
    monkeypatch.setattr("attngeom.rank.pieces.TESTED_PIECES", 5)
    answer = analyze(lambda w, x: w["a"] * np.log(x * x + 1 + relu(w["b"] * x)), (), weights=TWO)
    assert answer.standing == "probabilistic" and "pieces, too many to test" in answer.reason


def test_powers_of_numbers_keep_the_relations_of_their_primes():
    """6^x = 2^x 3^x, though the floats of log 6 and log 2 + log 3 differ."""
    answer = analyze(lambda w, x: w["a"] * 6.0**x + w["b"] * 2.0**x * 3.0**x, (), weights=TWO)
    assert answer.lower_bound == 1
    answer = analyze(lambda w, x: w["a"] * 6.0**x + w["b"] * 2.0**x, (), weights=TWO)
    assert answer.is_proven and answer.dimension == 2


@pytest.mark.parametrize(
    ("network", "dimension"),
    [
        (lambda w, x: w["a"] * ((x * x + 1) ** w["b"]).mean() ** (1 / w["b"]), 2),
        (lambda w, x: (x[0] ** 2 + 1) ** w["a"] * (x[0] ** 2 + 1) ** w["b"], 1),
        (lambda w, x: w["a"] * np.tan(w["b"] * x[0]), 2),
    ],
)
def test_powers_with_weights_as_exponents(network, dimension):
    answer = analyze(network, (3,), weights=TWO)
    assert answer.is_proven and answer.dimension == dimension
    assert verify(certify_network(answer).to_json()).standing == "certified"


def test_sines_whose_arguments_differ_by_a_number_are_related():
    """sin(ax + 1) is a combination of sin(ax) and cos(ax): three dimensions, where free values show four."""

    def network(w, x):
        angle = w["a"] * x
        return w["b"] * np.sin(angle) + w["c"] * np.cos(angle) + w["d"] * np.sin(angle + 1)

    answer = analyze(network, (), weights=dict.fromkeys("abcd", ()))
    assert not answer.is_proven and answer.standing == "undecided"


def test_a_rank_of_related_values_is_no_bound():
    """exp(log(u)/3)³ = u: one dimension, but the rank of values that are taken to be free is 2."""

    def network(w, x):
        return w["a"] * np.exp(np.log(x * x + 1) / 3) ** 3 + w["b"] * (x * x + 1)

    answer = analyze(network, (), weights=TWO)
    assert answer.standing == "undecided" and not answer.is_proven
    assert "at most 2" in str(answer) and "algebraic" in answer.reason
    with pytest.raises(InputError, match="proves nothing"):
        certify_network(answer)


@pytest.mark.parametrize(
    ("network", "weights", "dimension"),
    [
        # Free values of exponentials would give 3, and 2.
        (lambda w, x: w["p"] * np.exp(w["a"] * x) * np.exp(w["b"] * x) + w["q"] * np.exp((w["a"] + w["b"]) * x), 4, 2),
        (lambda w, x: w["p"] * np.exp(x + w["a"]) + w["q"] * np.exp(x) + 0 * w["b"] * x, 4, 1),
        (lambda w, x: np.exp(w["p"] * np.exp(w["a"] + x)) * np.exp(-w["q"] * np.exp(x)) + w["b"] * x, 4, 2),
        (lambda w, x: np.tanh(w["a"] * x) + w["p"] / (1 + np.exp(w["q"] * x)) + w["b"], 4, 4),
    ],
)
def test_relations_of_exponentials_are_respected(network, weights, dimension):
    answer = analyze(network, (), weights={"a": (), "b": (), "p": (), "q": ()})
    assert (answer.parameters, answer.dimension) == (weights, dimension)


def test_a_false_field_is_not_proven():
    """Every single change of a coefficient of a proven field destroys the proof, unless it is a symmetry itself."""
    module = next(m for m in MODULES if m.name.startswith("softmax 3"))
    program = trace(module.network, *module.inputs, weights=module.weights)
    bound = bound_rank(program)
    proofs, symmetries = derivations_at(bound.point), find_symmetries(bound)
    assert len(symmetries.fields) == 4
    for field in symmetries.fields:
        assert proofs.vanishes(field)
        for term in field:
            assert not proofs.vanishes({**field, term: field[term] + 1})
            assert not proofs.vanishes({key: times for key, times in field.items() if key != term})


def test_a_shift_that_softmax_does_not_see_is_proven_and_others_are_not():
    def network(w, x):
        return softmax(x @ w["q"] @ (x @ w["k"] + w["b"]).T) @ x

    program = trace(network, (2, 2), weights={"q": (2, 2), "k": (2, 2), "b": 2})
    proofs = derivations_at(NamedPoint(program, "attngeom/0"))
    places = program.offsets
    assert proofs.vanishes({(places["b"].start, None): fmpq(1)})
    assert not proofs.vanishes({(places["k"].start, None): fmpq(1)})


def test_slices_fix_gains_and_biases_of_norms_alone():
    def network(w, x):
        h = layer_norm(x) * w["g"] + w["b"]
        return w["W"] @ h + w["c"] + w["s"] * x[:2]

    weights = {"g": 3, "b": 3, "W": (2, 3), "c": 2, "s": 2}
    program = trace(network, 3, weights=weights)
    assert gains_and_biases(program) == {"g": 1, "b": 0}
    smaller = fix_weights(program, {"g": 1, "b": 0})
    assert smaller.parameters == {"W": (2, 3), "c": (2,), "s": (2,)}
    answer = analyze(network, 3, weights=weights)
    assert answer.is_proven and answer.dimension == bound_rank(smaller).value


def test_relu_regions_say_so():
    answer = analyze(lambda w, x: np.maximum(w["a"] * x, 0) + w["b"], (), weights=TWO)
    assert answer.dimension == 2 and answer.region is not None and "of this region" in answer.reason


def test_a_gap_is_reported_with_both_bounds():
    """A function of s = a³b + a b³ has D = 1; no linear symmetry knows it, and s and s² are two coefficients."""

    def network(w, x):
        number = w["a"] ** 3 * w["b"] + w["a"] * w["b"] ** 3
        return np.tanh(number * x) + np.tanh(number**2 * x * x)

    answer = analyze(network, (), weights=TWO)
    assert (answer.lower_bound, answer.upper_bound, answer.standing) == (1, 2, "undecided")
    assert "between 1 and 2" in answer.reason and answer.unexplained == 1
    assert answer.recheck is None


def test_answers_have_all_keys_and_a_picture():
    answer = attngeom.analyze(lambda w, x: w["B"] @ (w["A"] @ x), 3, weights={"A": (2, 3), "B": (3, 2)})
    record = answer.to_json()
    keys = (
        "parameters dimension lower_bound upper_bound is_proven standing fiber laws identifiable samples region prime"
    )
    assert set(keys.split()) | {"seed"} <= set(record)
    assert record["fiber"] == [{"name": "gl(2)", "count": 4, "tensors": ["A.0", "B.1"]}]
    assert record["laws"]["count"] == 3 and record["samples"] == {"numbers": 8, "outputs": 3}
    assert answer.learning_coefficient == 4 and answer.plot().axes
    assert "gl(2)" in answer._repr_html_() and "proven" in str(answer)


def test_laws_are_conserved_along_gradient_steps():
    """The derivative of every law along the gradient of a random loss vanishes, in floats."""
    module = next(m for m in MODULES if m.name.startswith("residual"))
    program = trace(module.network, *module.inputs, weights=module.weights)
    fields = symmetric_fields(analyze(program).upper.fields)
    assert fields
    point = NamedPoint(program, "attngeom/0")
    row = point.rows(point.draw(1))[0]
    weights = program.join(point.weights(), 1)[0]
    for field in fields:
        total = sum(
            int(row[m]) * int(c.p) * pow(int(c.q), -1, point.prime) * (1 if s is None else int(weights[s]))
            for (m, s), c in field.items()
        )
        assert total % point.prime == 0
        assert describe_law(program, field)


def test_unused_weights_are_found():
    answer = analyze(lambda w, x: w["a"] * x + 0 * w["b"], (), weights=TWO)
    assert [str(part) for part in answer.fiber] == ["1 unused on b"] and answer.identifiable == {"a": 1, "b": 0}


def test_shortening_keeps_the_space():
    fields = [{(0, 0): fmpq(1), (1, 1): fmpq(1), (2, 2): fmpq(1)}, {(1, 1): fmpq(2), (2, 2): fmpq(2)}]
    assert shorten(fields) == [{(0, 0): 1}, {(1, 1): 1, (2, 2): 1}]


def test_large_networks_are_refused_before_the_work():
    with pytest.raises(SizeError, match="shrink the widths"):
        analyze(lambda w, x: w["V"] @ x, 200, weights={"V": (200, 200)})


def test_what_exists_nowhere_is_refused():
    b = Builder()
    w, x = b.parameter("w", ()), b.input("x", ())
    program = b.build(b.multiply(w, b.inverse(b.subtract(b.multiply(x, x), b.multiply(x, x)))))
    assert isinstance(program, Program)
    with pytest.raises(InputError, match="does not exist"):
        analyze(program)


def test_exponentials_of_missing_roots_are_missing():
    """The value of exp comes from one level down; its derivative needs the root here, so that both must exist."""

    def network(w, x):
        return w["v"] * np.exp(np.sqrt(w["a"] * x * x + 1) * w["b"])

    program = trace(network, (), weights={"v": (), "a": (), "b": ()})
    point = NamedPoint(program, "attngeom/0")
    samples = [(r, r) for r in range(40)]
    traces, _ = point.evaluate(samples)
    root, value = (next(t for t in traces if t.node.operation == kind).result for kind in ("root", "formal"))
    assert np.isnan(root).any() and not np.isnan(value).all()
    assert np.isnan(value[np.isnan(root)]).all()
    assert [analyze(network, (), weights={"v": (), "a": (), "b": ()}, seed=s).dimension for s in range(3)] == [3] * 3


def post_norm(w, x):
    """Two tokens' worth of a post-norm layer: the gain of the first norm is seen by the skip connection too."""
    h = layer_norm(x + w["A"] @ x) * w["g"] + w["s"]
    return layer_norm(h + w["D"] @ np.tanh(w["W"] @ h + w["b"]))


POST_NORM = {"A": (3, 3), "g": 3, "s": 3, "W": (2, 3), "b": 2, "D": (3, 2)}


def test_gains_that_are_no_gauge_are_taken_into_the_matrices_behind_them():
    answer = analyze(post_norm, 3, weights=POST_NORM)
    assert (answer.upper.method, answer.standing) == ("folds", "proven")
    assert [(x.matrix, x.axis, x.gain, x.shift, x.bias) for x in answer.upper.folds] == [("W", 1, "g", "s", "b")]


@pytest.mark.parametrize("axis", [0, 1])
def test_the_other_coordinates_give_the_same_functions(axis):
    """W and b computed from the new coordinates give the outputs of the program before, in floats."""

    def network(w, x):
        h = layer_norm(x) * w["g"] + w["s"]
        product = w["W"] @ h if axis else h @ w["W"]
        return h + (product + w["b"])

    program = trace(network, 3, weights={"g": 3, "s": 3, "W": (3, 3), "b": 3})
    (item,) = find_folds(program)
    assert (item.matrix, item.axis, item.gain, item.shift, item.bias) == ("W", axis, "g", "s", "b")
    other, rng = fold(program, [item]), np.random.default_rng(5)
    new = {name: rng.standard_normal(shape) for name, shape in program.parameters.items()}
    old = dict(new)
    old["W"] = new["W"] / (new["g"] if axis else new["g"][:, None])
    old["b"] = new["b"] - (old["W"] @ new["s"] if axis else new["s"] @ old["W"])
    x = rng.standard_normal(3)

    def output(which, weights):
        tensors = {name: value[None] for name, value in {**weights, "x": x}.items()}
        return run(which, Point(RealArithmetic(), tensors))[which.output].result[0]

    assert np.allclose(output(other, new), network(old, x)) and np.allclose(output(program, old), network(old, x))


def test_a_fold_must_be_a_change_of_coordinates():
    certificate = certify_network(analyze(post_norm, 3, weights=POST_NORM))
    witness = json.loads(json.dumps(certificate.witness))
    folds = witness["upper"]["folds"]

    def is_valid(changed):
        witness["upper"]["folds"] = changed
        return verify(Certificate(certificate.claim, witness, certificate.provenance)).valid

    assert is_valid(folds)
    wrong = (["W", 1, "s", "g", "b"], ["W", 0, "g", "s", "b"], ["W", 1, "g", None, None], ["D", 1, "b", "g", "s"])
    assert not any(is_valid([change]) for change in wrong)
    assert not is_valid(folds * 2) and not is_valid([])
