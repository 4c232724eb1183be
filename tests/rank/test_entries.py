"""Networks whose symmetries are no linear maps on axes of tensors as they are given: they are found and proven."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.special import ndtr

from attngeom.programs import trace
from attngeom.rank.analysis import analyze, certify_network
from attngeom.rank.fields import Ansatz
from attngeom.rank.lower import bound_rank
from attngeom.rank.search import choose_independent, find_symmetries
from attngeom.verification import verify
from attngeom.verification.records import Certificate

CHECKER = Path(__file__).parents[2] / "checker" / "attngeom_check.py"


def delta_rule(w, x):
    """Tokens of width 1: the state is a multiple of Kᵀ, so that Q is seen through K·Q alone."""
    state, outputs = np.zeros((1, 2)), []
    for token in x:
        key = w["K"][:, 0] * token[0]
        state = state + np.outer(w["V"][:, 0] * token[0] - state @ key, key)
        outputs.append(state @ (w["Q"][:, 0] * token[0]))
    return np.stack(outputs)


def low_rank_update(w, x):
    """A product of width 1 is added to a row, which can be taken back in each entry."""
    z = x @ (w["W"] + w["B"] @ w["A"]).T
    return w["c"][0] + w["c"][1] * z + w["c"][2] * z * z


def two_readers(w, x):
    """Two matrices behind a vector see no more of it than its direction."""
    hidden = w["P"] @ x
    return np.exp(w["S"] @ hidden) * (w["T"] @ hidden)


def softmax(scores):
    exponentials = np.exp(scores)
    return exponentials / exponentials.sum(-1, keepdims=True)


def factored_embedding(w, x):
    """Queries, keys and values behind a product P E are seen through P, whose kernel is a rational function of it."""
    hidden = x @ w["E"].T @ w["P"].T
    return softmax((hidden @ w["Q"].T) @ (hidden @ w["K"].T).T) @ (hidden @ w["V"].T)


def talking_heads(w, x):
    """Scores qᵀk of full rank are mixed across heads before softmax and after it."""
    query, key, value = ((x @ w[name].T).reshape(-1, 2, 2) for name in "QKV")
    scores = np.einsum("gh,hts->gts", w["before"], np.einsum("thd,shd->hts", query, key))
    mixed = np.einsum("gh,hts->gts", w["after"], softmax(scores))
    return np.einsum("hts,shd->thd", mixed, value).reshape(len(x), -1) @ w["O"].T


HEADS = {"Q": (4, 2), "K": (4, 2), "V": (4, 2), "O": (2, 4), "before": (2, 2), "after": (2, 2)}
CASES = {
    "factored embedding": (factored_embedding, (2, 3), dict(E=(2, 3), P=(3, 2), Q=(2, 3), K=(2, 3), V=(2, 3)), 10),
    "talking heads": (talking_heads, (2, 2), HEADS, 16),
    "delta rule": (delta_rule, (3, 1), {"Q": (2, 1), "K": (2, 1), "V": (1, 1)}, 2),
    "low rank": (low_rank_update, (2, 2), {"A": (1, 2), "B": (1, 1), "W": (1, 2), "c": 3}, 4),
    "two readers": (two_readers, 1, {"P": (3, 1), "S": (2, 3), "T": (2, 3)}, 4),
}


@pytest.mark.parametrize("name", CASES)
def test_fields_between_tensors_are_found_and_proven(name):
    network, shape, weights, dimension = CASES[name]
    answer = analyze(network, shape, weights=weights)
    assert (answer.dimension, answer.upper_bound, answer.standing) == (dimension, dimension, "proven")
    assert answer.unexplained == 0
    program = answer.program
    on_axes = find_symmetries(answer.lower).fields
    assert len(choose_independent(program, on_axes, 0)) < answer.fiber_dimension, "maps on axes would be enough"


@pytest.mark.parametrize("name", CASES)
def test_certificates_are_valid_for_both_checkers(name, tmp_path):
    network, shape, weights, _ = CASES[name]
    certificate = certify_network(analyze(network, shape, weights=weights))
    assert verify(certificate, 100).valid
    path = tmp_path / "network.json"
    path.write_text(json.dumps(certificate.sealed()))
    lone = subprocess.run([sys.executable, "-I", "-S", str(CHECKER), str(path)], capture_output=True, text=True)
    assert lone.returncode == 0, lone.stdout


def test_a_slice_where_the_network_does_not_exist_proves_nothing(tmp_path):
    """w/z with a z that is w, written so that nobody sees it at once: for w = 0 nothing would be left of it."""

    def network(w, x):
        z = w["a"] * (1 - w["a"]) + w["a"] * w["a"] - w["a"] + w["w"]
        return w["a"] * w["w"] / z * x

    program = trace(network, (), weights={"a": (), "w": ()})
    answer = analyze(program)
    assert (answer.dimension, answer.standing) == (1, "proven")
    sealed = certify_network(answer).sealed()
    upper = {"method": "slice", "fields": [[[1, None, "1"]]], "fixed": {"w": 0}, "slice_fields": [[[0, None, "1"]]]}
    forged = json.loads(json.dumps(sealed))
    forged["claim"]["dimension"] = 0
    forged["witness"]["upper"] = upper
    forged["witness"]["lower"] |= {"samples": [], "outputs": [], "columns": []}
    certificate = Certificate(forged["claim"], forged["witness"], {"seed": 0, "primes": [4068479]})
    assert not verify(certificate, 100).valid
    path = tmp_path / "network.json"
    path.write_text(json.dumps(certificate.sealed()))
    lone = subprocess.run([sys.executable, "-I", "-S", str(CHECKER), str(path)], capture_output=True, text=True)
    assert lone.returncode == 1 and "does not exist" in lone.stdout, lone.stdout


def mixing_matrix(count, seed):
    """An integer matrix with an integer inverse, from a few shears: weights are mixed across tensors."""
    rng = np.random.default_rng(seed)
    matrix = np.eye(count, dtype=int)
    for _ in range(count):
        i, j = rng.choice(count, 2, replace=False)
        matrix[i] += int(rng.choice([-1, 1])) * matrix[j]
    return matrix[rng.permutation(count)]


@pytest.mark.parametrize("seed", range(3))
def test_linear_coordinates_do_not_matter(seed):
    """The same functions, with weights that are sums of those of an attention layer: dimension and proof stay."""
    sizes = {"Q": (2, 2), "K": (2, 2), "V": (1, 2)}
    count = sum(a * b for a, b in sizes.values())
    matrix = mixing_matrix(count, seed)

    def attention(w, x):
        flat, start, parts = matrix @ w["all"], 0, {}
        for name, (rows, columns) in sizes.items():
            parts[name] = flat[start : start + rows * columns].reshape(rows, columns)
            start += rows * columns
        scores = np.exp((x @ parts["Q"].T) @ (x @ parts["K"].T).T)
        return scores @ (x @ parts["V"].T)

    answer = analyze(attention, (2, 2), weights={"all": count}, seed=seed)
    assert (answer.dimension, answer.upper_bound, answer.standing) == (count - 4, count - 4, "proven")


def test_all_linear_fields_contain_those_on_axes():
    program = trace(lambda w, x: w["B"] @ np.tanh(w["A"] @ x) + w["b"], 2, weights={"A": (2, 2), "B": (2, 2), "b": 2})
    bound = bound_rank(program)
    every, on_axes = (find_symmetries(bound, ansatz=ansatz).fields for ansatz in (Ansatz.of_entries(program), None))
    assert len(choose_independent(program, every + on_axes, 0)) == len(choose_independent(program, every, 0))


def test_densities_change_too():
    """Two scales before GELU: the change along the first brings in the density of Φ, which the second one changes."""

    def network(w, x):
        hidden = x @ (w["a"] * w["W"]).T @ w["A"].T
        return hidden * ndtr(hidden) @ w["B"].T

    answer = analyze(network, (1, 2), weights={"a": 1, "W": (1, 2), "A": (1, 1), "B": (3, 1)})
    assert (answer.dimension, answer.upper_bound, answer.standing) == (5, 5, "proven")
    assert verify(certify_network(answer), 100).valid


def test_parts_of_fused_tensors_are_tensors_of_their_own():
    """Queries read a norm with gain, keys and values another input: the gain is a gauge of the queries alone."""

    def network(w, x, memory):
        query, rest = w["all"][:2], w["all"][2:]
        key, value = rest[:2], rest[2:]
        centred = x - x.mean(axis=-1, keepdims=True)
        normed = centred / np.sqrt((centred * centred).mean(axis=-1, keepdims=True) + 1) * w["gain"]
        scores = np.exp((normed @ query.T) @ (memory @ key.T).T)
        return x + scores @ (memory @ value.T)

    weights = {"all": (7, 3), "gain": 3}
    answer = analyze(network, (1, 3), (2, 3), weights=weights)
    assert list(answer.program.parameters) == ["all[0:2]", "all[2:4]", "all[4:7]", "gain"]
    assert answer.parameters == 24
    # gl(2) of queries and keys, the gain, and what the centred norm does not see of the queries.
    assert (answer.dimension, answer.upper_bound, answer.standing) == (24 - 4 - 3 - 2, 15, "proven")
    assert verify(certify_network(answer), 100).valid


def test_parts_stay_together_where_they_are_read_together():
    cases = {
        "one row": lambda w, x: np.exp(w["W"][0] @ x) + w["W"][1:] @ x,
        "overlap": lambda w, x: np.exp(w["W"][:3] @ x) + w["W"][1:] @ x,
        "whole": lambda w, x: np.exp(w["W"] @ x).sum() + w["W"][2:] @ x,
        "unread rows": lambda w, x: w["W"][:2] @ x,
        "every second": lambda w, x: (w["W"][::2] @ x) * np.exp(w["W"][1::2] @ x),
    }
    for name, network in cases.items():
        assert trace(network, 2, weights={"W": (4, 2)}).parameters == {"W": (4, 2)}, name
