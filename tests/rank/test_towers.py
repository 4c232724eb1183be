"""Roots in larger fields: the fields themselves, twice, and networks with many roots, honest ones and misleading ones.

What is called proven is the rank of a float64 Jacobian, at three weights each; relations between roots of different
stages, through exponentials and logarithms, through weights alone, are never called free.
"""

from dataclasses import replace

import numpy as np
import pytest

from attngeom.programs import trace
from attngeom.programs.arithmetic import CHAIN, RealArithmetic
from attngeom.programs.operations import Point
from attngeom.programs.passes import pull, run
from attngeom.programs.tower_points import TowerPoint, drawn_roots
from attngeom.programs.towers import Tower
from attngeom.rank.analysis import analyze, certify_network
from attngeom.rank.hypotheses import prove_free_rank
from attngeom.rank.lower import bound_rank
from attngeom.rank.stages import degree_for, radicands
from attngeom.results import Proof
from attngeom.verification import towers as checked
from attngeom.verification import verify
from tests.effort import choose
from tests.proofs.mutations import standalone


def float_rank(program, points=3, seed=0):
    """The largest numerical rank of the Jacobian at some points, which is seen by a gap of the singular values."""
    best = 0
    for number in range(points):
        rng = np.random.default_rng([seed, number])
        samples = 4 * program.num_parameters + 20
        tensors = {name: rng.normal(size=(1, *shape)) for name, shape in program.parameters.items()}
        tensors |= {name: rng.normal(size=(samples, *shape)) for name, shape in program.inputs.items()}
        traces = run(program, Point(RealArithmetic(), tensors))
        forms = rng.normal(size=(samples, *program.nodes[program.output].shape))
        rows = program.join(pull(program, traces, forms), samples)
        values = np.linalg.svd(rows / np.linalg.norm(rows, axis=1, keepdims=True), compute_uv=False)
        rank = int((values > 1e-9 * values[0]).sum())
        assert rank == len(values) or values[rank] < 1e-2 * values[rank - 1]
        best = max(best, rank)
    return best


@pytest.mark.parametrize("p", CHAIN[: choose(2, 7)])
@pytest.mark.parametrize("degree", [1, 2, 4, 8])
def test_two_descriptions_of_the_fields_agree(p, degree):
    tower, rng = Tower(p), np.random.default_rng(degree)
    x, y = (tower.field.from_residues(rng.integers(0, p, (2, degree, 6))) for _ in range(2))
    products, roots, squares = tower.times(x, y), tower.root(x), tower.is_square(x)
    inverses = tower.times(tower.invert(x), x)
    assert (inverses[:, 0] == 1).all() and not inverses[:, 1:].any()
    for place in np.ndindex(2, 6):
        one, other = (tuple(int(v) % p for v in z[place[0], :, place[1]]) for z in (x, y))
        assert checked.multiply(one, other, p) == tuple(int(v) % p for v in products[place[0], :, place[1]])
        own, found = checked.root(one, p), roots[place[0], :, place[1]]
        assert checked.is_square(one, p) == squares[place] == (own is not None)
        assert np.isnan(found).all() if own is None else own == tuple(int(v) % p for v in found)


@pytest.mark.parametrize("degree", [1, 2, 4, 8])
def test_every_number_has_a_root_in_the_field_of_twice_the_degree(degree):
    p = CHAIN[0]
    tower, rng = Tower(p), np.random.default_rng(degree)
    x = tower.spread(tower.field.from_residues(rng.integers(1, p, (3, degree, 5))), 2 * degree)
    root = tower.root(x)
    np.testing.assert_array_equal(tower.times(root, root), x)
    assert np.isnan(tower.root(np.zeros((1, degree, 1)))).all()


def norm(x):
    return x / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + 0.25)


def normed_attention(w, x):
    """Norms of three tokens, of their queries and keys, and of what is read: nine roots, and three of roots."""
    n = norm(x)
    scores = np.exp(norm(n @ w["Q"]) @ norm(n @ w["K"]).T)
    return norm(scores / scores.sum(-1, keepdims=True) @ (n @ w["V"])) @ w["O"]


def softplus_of_norms(w, x):
    return np.log(1 + np.exp(norm(norm(x) @ w["V"]) @ w["O"]))


HONEST = {
    "attention": (normed_attention, {"Q": (3, 2), "K": (3, 2), "V": (3, 3), "O": (3, 3)}, (3, 3), 26),
    "softplus": (softplus_of_norms, {"V": (3, 3), "O": (3, 2)}, (6, 3), 12),
    "roots of roots": (
        lambda w, x: norm(norm(norm(x @ w["A"]) @ w["B"] + x) @ w["C"] + x) @ w["c"],
        {"A": (2, 2), "B": (2, 2), "C": (2, 2), "c": (2,)},
        (6, 2),
        13,
    ),
    "roots inside of exponentials": (
        lambda w, x: np.exp(np.sqrt((x @ w["A"]) ** 2 + 1) @ w["a"]) * np.sqrt((x @ w["B"]) ** 2 + 1) @ w["b"],
        {"A": (2, 2), "a": (2, 2), "B": (2, 2), "b": (2,)},
        (3, 2),
        14,
    ),
}


@pytest.mark.parametrize("name", HONEST)
def test_roots_that_no_sample_would_have_are_proven_and_rechecked(name):
    network, weights, shape, dimension = HONEST[name]
    answer = analyze(network, shape, weights=weights)
    assert answer.lower.point.degree > 1 and float_rank(answer.program) == dimension
    assert (answer.dimension, answer.rank_proof.standing) == (dimension, "proven"), answer.reason
    if answer.is_proven:
        certificate = certify_network(answer)
        assert verify(certificate, 100).standing == "certified"
        word, why = standalone(certificate.to_json())
        assert word == "unknown" and "larger than GF(p)" in why


def two_inputs(w, x, y):
    """One root of each input alone, which is drawn, and six of both, one of them inside of three others."""
    a, b = np.sqrt((x @ w["A"][0]) ** 2 + 1), np.sqrt((y @ w["B"][1]) ** 2 + 1)
    z = np.stack([a * w["a"] + b, a - w["b"] * b, a * b]) + (x @ w["A"][1]) * (y @ w["B"][0])
    roots = np.sqrt(z * z + 2), np.sqrt((z + x @ w["A"][0]) ** 2 + 1)
    return sum(w["c"][k] * part for k, part in enumerate([*roots, np.sqrt(roots[0] * roots[1] + 1)]))


def test_roots_of_one_input_alone_are_drawn():
    answer = analyze(two_inputs, 2, 2, weights={"A": (2, 2), "B": (2, 2), "a": (), "b": (), "c": 3})
    assert len(drawn_roots(answer.program)) == 2 and answer.lower.point.degree == 4
    assert (answer.dimension, answer.rank_proof.standing) == (float_rank(answer.program), "proven")
    assert verify(certify_network(answer), 100).standing == "certified"


def test_norms_behind_norms_are_of_the_same_stage():
    """|Wx/√u|² = |Wx|²/u: on paper, so that its root lies in GF(p²), where that of a sum with 1/√u does not."""
    program = trace(lambda w, x: norm(norm(x) @ w["A"]) @ w["B"], (6, 3), weights={"A": (3, 3), "B": (3, 2)})
    assert {root.stage for root in radicands(program)} == {1} and degree_for(program) == 2
    program = trace(lambda w, x: norm(norm(x) @ w["A"] + x) @ w["B"], (6, 3), weights={"A": (3, 3), "B": (3, 2)})
    assert {root.stage for root in radicands(program)} == {1, 2} and degree_for(program) == 4


S = ()
PAIR = {"A": (2, 2), "a": S, "b": S, "c": (3,)}


def units(w, x):
    """Two positive functions of each of three tokens, and their roots: six."""
    u = (x @ w["A"]) ** 2 + 1
    return u[:, 0], u[:, 1], np.sqrt(u[:, 0]), np.sqrt(u[:, 1])


def mislead(third):
    """Of three tokens two roots each and a third function of them, which is not free."""

    def network(w, x):
        u, v, r, s = units(w, x)
        return w["c"][0] * r + w["c"][1] * s + w["c"][2] * third(w, x, u, v, r, s)

    return network


MISLEADING = {
    "root of a product": lambda w, x, u, v, r, s: np.sqrt(u * v),
    "root of a product that is written out": lambda w, x, u, v, r, s: np.sqrt(
        (x @ w["A"])[:, 0] ** 2 * (x @ w["A"])[:, 1] ** 2 + u + v - 1
    ),
    "root of a square of roots": lambda w, x, u, v, r, s: np.sqrt(u + v + 2 * r * s),
    "product of roots of the second stage": lambda w, x, u, v, r, s: (
        np.sqrt(r + 1) + np.sqrt(s + 1) + np.sqrt(r * s + r + s + 1)
    ),
    "constant times a square": lambda w, x, u, v, r, s: np.sqrt((w["a"] ** 2 + w["b"] ** 2) * u),
    "a number times a square": lambda w, x, u, v, r, s: np.sqrt(3 * u),
    "square of exponentials": lambda w, x, u, v, r, s: np.sqrt(
        np.exp(2 * x[:, 0] * w["a"]) + 2 * np.exp(x[:, 0] * w["a"]) * s + v
    ),
    "logarithm of a square": lambda w, x, u, v, r, s: np.log(u) + w["a"] * np.log(r),
    "logarithms of a product": lambda w, x, u, v, r, s: (
        np.log(r + 1) + np.log(s + 1) + w["a"] * np.log(r * s + r + s + 1)
    ),
    "root of a root twice": lambda w, x, u, v, r, s: np.sqrt(r) + np.sqrt(np.sqrt(u)),
    "shared weights": lambda w, x, u, v, r, s: np.sqrt(((x @ w["A"]) ** 2 * np.ones(2) + 1)[:, 0] * (v**2 + 2 * v + 1)),
    "conjugates": lambda w, x, u, v, r, s: np.sqrt((r + w["a"]) ** 2 * (r - w["a"]) ** 2 * v),
}


@pytest.mark.parametrize("name", MISLEADING)
def test_related_roots_are_not_called_free(name):
    program = trace(mislead(MISLEADING[name]), (3, 2), weights=PAIR)
    truth = float_rank(program)
    answer = analyze(program)
    assert answer.upper_bound >= truth
    assert answer.rank_proof.standing != "proven" or answer.lower_bound <= truth
    assert answer.rank_proof.standing == "undecided", "related functions were called free"
    if answer.lower_bound == answer.upper_bound and answer.lower.point.degree > 1:
        claimed = replace(answer, rank_proof=Proof("proven", "a lie"), standing="proven")
        assert verify(certify_network(claimed), 100).standing != "certified"


def test_signs_are_looked_at_with_the_same_weights():
    """√(c(w) u) with c a sum of squares: its symbol varies from weights to weights, but not from sample to sample."""
    network = mislead(MISLEADING["constant times a square"])
    bound = bound_rank(trace(network, (3, 2), weights=PAIR))
    assert isinstance(bound.point, TowerPoint) and prove_free_rank(bound)[1].standing == "undecided"


def test_roots_of_weights_alone_are_residues():
    """√(a² + b²) is a function of the weights: at a point where it were no residue, conjugates would have others."""
    network = mislead(lambda w, x, u, v, r, s: np.sqrt(w["a"] ** 2 + w["b"] ** 2) * r * s)
    program = trace(network, (3, 2), weights=PAIR)
    answer = analyze(program)
    assert answer.lower.point.degree > 1 and answer.lower.point.weights_exist()
    assert answer.rank_proof.standing == "proven" and answer.lower_bound == float_rank(program)


def forged(record, **changes):
    lower = record["witness"]["lower"]
    return {**record, "witness": {**record["witness"], "lower": {**lower, **changes}}}


def test_forged_fields_are_refused():
    network, weights, shape, _ = HONEST["attention"]
    record = certify_network(analyze(network, shape, weights=weights)).to_json()
    lower = record["witness"]["lower"]
    assert lower["degree"] == 4
    same = [[-1 - k % 2, lower["samples"][0]] for k in range(len(lower["samples"]))]
    for changes in (
        {"degree": 3},
        {"degree": 32},
        {"degree": 1},
        {"degree": 2},
        {"outputs": [0] * len(lower["outputs"])},
        {"outputs": [-5] * len(lower["outputs"])},
        {"outputs": [row for row, _ in same], "samples": [sample for _, sample in same]},
    ):
        assert verify(forged(record, **changes), 100).valid is not True
