"""Networks whose symmetries are not linear in their weights as written: maxout, normed weights, convex networks,
diagonal state spaces, filters that are made of positions. Dimensions are ranks of float64 Jacobians.
"""

import numpy as np
import pytest

from attngeom.programs import trace
from attngeom.programs.arithmetic import RealArithmetic
from attngeom.programs.association import multiply_weights_first
from attngeom.programs.operations import Point
from attngeom.programs.passes import run, value
from attngeom.rank.analysis import analyze, certify_network
from attngeom.verification import verify
from tests.proofs.mutations import standalone
from tests.rank.test_towers import float_rank


def softplus(x):
    return np.log(1 + np.exp(x))


def maxout(w, x):
    """(BA)x of one piece is seen, and the differences of the others to it: BA instead of A itself."""
    return w["B"] @ (np.einsum("kij,j->ki", w["A"], x) + w["a"]).max(axis=0) + w["b"]


def two_pieces(w, x):
    return np.maximum(x @ w["A"] + w["a"], x @ w["C"] + w["c"]) @ w["B"]


def in_columns(w, x):
    """Pieces beside each other, as a linear map and a view make them."""
    return (x @ w["A"].T + w["a"]).reshape(3, 2).max(axis=1) @ w["B"]


def standardised(w):
    w = w - w.mean(-1, keepdims=True)
    return w / np.sqrt((w * w).mean(-1, keepdims=True) + 1e-5)


def normed_weights(w, x):
    """A scale of both matrices is left, beside a shift of each row, as rows are of any length below a bound."""
    return standardised(w["B"]) @ np.maximum(standardised(w["A"]) @ x + w["a"], 0) + w["b"]


def input_convex(w, x):
    z = np.maximum(w["U"] @ x + w["a"], 0)
    z = np.maximum(softplus(w["W"]) @ z + w["V"] @ x + w["b"], 0)
    return softplus(w["O"]) @ z + w["u"] @ x


def diagonal_state_space(w, x):
    """A kernel 2 Re Σ C exp(l δA) of each channel, complex numbers as pairs: its entries are seen, D in the first."""
    steps = np.exp(w["dt"])[:, None]
    rate, turn = -np.exp(w["A"]) * steps, w["I"] * steps
    kernel = [2 * np.exp(rate * k) * (w["C"] * np.cos(turn * k) - w["S"] * np.sin(turn * k)) for k in range(6)]
    kernel = [row.sum(axis=1) for row in kernel]
    outputs = [sum(kernel[k] * x[:, t - k] for k in range(t + 1)) for t in range(6)]
    return np.stack(outputs, axis=1) + w["D"][:, None] * x


def implicit_filters(w, x):
    """Gates and filters Σ c sin(a t + b) of positions t: four entries of each filter."""
    q, k, v = np.split(x @ w["P"].T, 3, axis=1)
    filters = np.sin(np.arange(4)[:, None] / 4 @ w["F"].T + w["f"]) @ w["G"].T
    z = k * v
    return q * np.stack([sum(filters[k] * z[t - k] for k in range(t + 1)) for t in range(4)]) @ w["O"].T


STATES = {"A": (2, 2), "I": (2, 2), "dt": 2, "C": (2, 2), "S": (2, 2), "D": 2}
CONVEX = {"U": (3, 2), "a": 3, "W": (3, 3), "V": (3, 2), "b": 3, "O": (1, 3), "u": (1, 2)}
NETWORKS = {
    "maxout": (maxout, {"A": (3, 3, 2), "a": (3, 3), "B": (2, 3), "b": 2}, (2,), 27),
    "two pieces": (two_pieces, {"A": (2, 3), "a": 3, "C": (2, 3), "c": 3, "B": (3, 2)}, (2,), 18),
    "pieces in columns": (in_columns, {"A": (6, 2), "a": 6, "B": (3, 2)}, (2,), 18),
    "standardised weights": (normed_weights, {"A": (3, 4), "a": 3, "B": (2, 3), "b": 2}, (4,), 17),
    "input convex": (input_convex, CONVEX, (2,), 26),
    "diagonal state space": (diagonal_state_space, STATES, (2, 6), 12),
    "implicit filters": (implicit_filters, {"P": (6, 2), "F": (3, 1), "f": 3, "G": (2, 3), "O": (2, 2)}, (4, 2), 16),
}


@pytest.mark.parametrize("name", NETWORKS)
def test_they_are_proven_and_rechecked(name):
    network, weights, shape, dimension = NETWORKS[name]
    answer = analyze(network, shape, weights=weights)
    assert float_rank(trace(network, shape, weights=weights), points=24) == dimension
    assert (answer.dimension, answer.standing) == (dimension, "proven"), answer.reason
    certificate = certify_network(answer)
    assert verify(certificate, 100).standing == "certified"
    assert standalone(certificate.to_json())[0] in ("valid", "unknown")


@pytest.mark.parametrize("name", ["maxout", "two pieces", "pieces in columns"])
def test_sums_are_multiplied_term_by_term(name):
    network, weights, shape, _ = NETWORKS[name]
    program = trace(network, shape, weights=weights)
    other = multiply_weights_first(program)
    assert other is not None
    rng = np.random.default_rng(7)
    for _ in range(8):
        tensors = {k: rng.standard_normal(s)[None] for k, s in {**program.parameters, **program.inputs}.items()}
        ours, theirs = (value(own, run(own, Point(RealArithmetic(), tensors))) for own in (program, other))
        np.testing.assert_allclose(ours, theirs, rtol=1e-11, atol=1e-11)
