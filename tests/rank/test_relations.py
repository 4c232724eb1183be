"""Networks written to mislead: whatever is called proven is the rank of a float64 Jacobian at several points.

The dimensions are such ranks, by central differences and singular values at four weights. What cannot be decided may
be left undecided, but not be wrong. A certificate of what was not proven, written all the same, is not accepted.
"""

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import ndtr

from attngeom.rank.analysis import analyze, certify_network
from attngeom.results import Proof
from attngeom.verification import verify
from tests.effort import thorough
from tests.proofs.mutations import standalone

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


def to_the_power(x, n):
    """x^n by squaring."""
    result = x
    for bit in bin(n)[3:]:
        result = result * result * x if bit == "1" else result * result
    return result


def near_one(x):
    """Powers of it stay small."""
    return 1 + x * x / 2**24


def logarithm_of_a_power(w, x):
    """Zero: log u^p = p log u, but u^p and u are equal mod p, and p log u is 0."""
    return w["a"] * (np.log(to_the_power(near_one(x), P)) - P * np.log(near_one(x)))


def exponential_of_logarithms(w, x):
    """Zero: exp(q log u) = u^q, but q log u is 0 mod the prime q of the next level."""
    return w["a"] * (np.exp(Q * np.log(near_one(x))) - to_the_power(near_one(x), Q))


def shifted_exponential_of_a_logarithm(w, x):
    """Zero: exp(log u + cos 1) = u exp(cos 1), where cos 1 has another value at every point."""
    angle = np.cos(np.ones(()))
    return w["a"] * (np.exp(np.log(near_one(x)) + angle) - near_one(x) * np.exp(angle))


def multiple_angle(w, x):
    """Zero: cos (p + 1) x, by the theorem of addition, but (p + 1) x and x are equal mod p."""
    cos, sin = np.cos(x), np.sin(x)
    a, b = cos, sin
    for bit in bin(P + 1)[3:]:
        a, b = a * a - b * b, 2 * a * b
        a, b = (a * cos - b * sin, a * sin + b * cos) if bit == "1" else (a, b)
    return w["a"] * (np.cos((P + 1) * x) - a)


def sine_of_a_sum(w, x):
    """Zero, by the theorem of addition for weights."""
    a, b = w["a"], w["b"]
    return x * (np.sin(a + b) - np.sin(a) * np.cos(b) - np.cos(a) * np.sin(b))


def square(x):
    """Positive, with roots of its own."""
    return x * x + 1


def number(x, n):
    """The number n, as the tracer sees it: an array that does not depend on x."""
    return n + 0 * x


def quotient_of_logarithms(w, x):
    """Zero: exp(b² log u / b²) = u."""
    b = square(w["b"])
    return x * (np.exp((b * x * x + b * np.log(square(w["a"]))) / b) * np.exp(-x * x) - square(w["a"]))


def sum_of_logarithms(w, x):
    """Zero: the exponential of a sum of logarithms is a product."""
    u, v = square(w["a"]), square(w["b"])
    return x * w["c"] * (np.exp(np.sum(np.log(np.stack([u, v])))) - u * v)


def logarithm_of_a_number_inside(w, x):
    """Zero: exp(a + log 2) = 2 exp(a)."""
    return x * (np.exp(np.sum(np.stack([w["a"], np.log(number(x, 2))]))) - 2 * np.exp(w["a"]))


def cosine_of_a_logarithm(w, x):
    """Zero: log 4 is twice log 2."""
    return x * w["a"] * (np.cos(np.log(number(x, 4))) - 2 * np.cos(np.log(number(x, 2))) ** 2 + 1)


def logarithm_of_a_cosh(w, x):
    """Zero: log cosh a = log(1 + exp(2a)) − a − log 2, where one logarithm is that of a number."""
    a = w["a"]
    whole = np.log((np.exp(a) + np.exp(-a)) / 2) - np.log(1 + np.exp(2 * a)) + a + np.log(number(x, 2))
    return x * w["b"] * whole


def shifted_angle(w, x):
    """A number: sin(a + κ) cos a − cos(a + κ) sin a = sin κ for κ = log 3, the same at all weights."""
    a, b = w["a"], w["a"] + np.log(number(x, 3))
    return x * (np.sin(b) * np.cos(a) - np.cos(b) * np.sin(a))


P, Q = 4068479, 2034239
"""The primes of the first two levels: what holds mod these alone proves nothing."""
ONE = {"a": S}
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
    "logarithm of a power": (logarithm_of_a_power, ONE, (), 0),
    "exponential of logarithms": (exponential_of_logarithms, ONE, (), 0),
    "shifted exponential": (shifted_exponential_of_a_logarithm, ONE, (), 0),
    "multiple angle": (multiple_angle, ONE, (), 0),
    "sine of a sum of weights": (sine_of_a_sum, {"a": S, "b": S}, (), 0),
    "doubled angle of a weight": (
        lambda w, x: w["a"] * x * (np.cos(2 * w["b"]) - np.cos(w["b"]) ** 2 + np.sin(w["b"]) ** 2),
        {"a": S, "b": S},
        (),
        0,
    ),
    "logarithms of weights": (
        lambda w, x: x * w["a"] * (np.log(w["b"] ** 2 * w["c"] ** 2) - np.log(w["b"] ** 2) - np.log(w["c"] ** 2)),
        THREE,
        (),
        0,
    ),
    "exponential of a logarithm": (
        lambda w, x: x * w["b"] * (np.exp(np.log(square(w["a"]))) - square(w["a"])),
        {"a": S, "b": S},
        (),
        0,
    ),
    "logarithms of numbers": (
        lambda w, x: x * w["a"] * (np.log(number(x, 6)) - np.log(number(x, 2)) - np.log(number(x, 3))),
        ONE,
        (),
        0,
    ),
    "integrals of numbers": (
        lambda w, x: x * w["a"] * (ndtr(number(x, 1)) + ndtr(number(x, -1)) - 1),
        ONE,
        (),
        0,
    ),
    "logarithm of one": (lambda w, x: x * w["a"] * np.log(number(x, 1)) + w["b"] * x * x, {"a": S, "b": S}, (), 1),
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


CASES |= {
    "half a logarithm": (
        lambda w, x: x * w["b"] * (np.exp(np.log(square(w["a"])) / 3) ** 3 - square(w["a"])),
        {"a": S, "b": S},
        (),
        0,
    ),
    "quotient of logarithms": (quotient_of_logarithms, {"a": S, "b": S}, (), 0),
    "sum of logarithms": (sum_of_logarithms, THREE, (), 0),
    "logarithm of a number inside": (logarithm_of_a_number_inside, ONE, (), 0),
    "cosine of a logarithm": (cosine_of_a_logarithm, ONE, (), 0),
    "shifted angle": (shifted_angle, ONE, (), 0),
    "logarithm of a cosh": (logarithm_of_a_cosh, {"a": S, "b": S}, (), 0),
}


def agrees(answer, dimension):
    """Whether nothing that is called proven or probabilistic is wrong."""
    is_right = answer.dimension == dimension or answer.standing not in ("proven", "probabilistic")
    bound = answer.rank_proof.standing != "proven" or answer.lower_bound <= dimension
    return is_right and bound and answer.upper_bound >= dimension


@pytest.mark.parametrize("name", CASES)
def test_what_is_proven_is_right(name):
    network, weights, shape, dimension = CASES[name]
    answer = analyze(network, shape, weights=weights)
    assert agrees(answer, dimension)
    if not answer.is_proven and answer.lower_bound == answer.upper_bound:
        claimed = replace(answer, rank_proof=Proof("proven", "a lie"), standing="proven")
        verdict = verify(certify_network(claimed), 100)
        assert verdict.standing != "certified"
        assert verdict.valid is not True or answer.dimension == dimension
        assert standalone(certify_network(claimed).to_json())[0] != "valid"


def test_normal_forms_leave_no_functions():
    """log softmax, exp of it, powers with learned exponents: written without what two functions undo."""
    weights = {"A": (3, 2)}

    def log_softmax(w, x):
        e = np.exp(w["A"] @ x)
        return np.log(e / e.sum())

    cases = [
        (log_softmax, weights, (2,), 4),
        (lambda w, x: np.exp(log_softmax(w, x)), weights, (2,), 4),
        (lambda w, x: np.exp(w["b"] * np.log(square(w["a"]))) * x + w["c"] * x * x, THREE, (), 2),
    ]
    for network, shapes, shape, dimension in cases:
        answer = analyze(network, shape, weights=shapes)
        assert (answer.dimension, answer.standing) == (dimension, "proven"), answer.reason


def free_values_of_weights(w, x):
    """cos a and sin a, log of b² + 1, c: a triple that is a product of a circle, and of lines."""
    return np.stack([np.cos(w["a"]) * x, np.sin(w["a"]) * x, np.log(w["b"] ** 2 + 1) + w["c"] * x * x])


def test_free_values_of_weights_alone_are_proven_and_rechecked():
    answer = analyze(free_values_of_weights, (), weights=THREE)
    assert (answer.dimension, answer.standing) == (3, "proven")
    certificate = certify_network(answer)
    assert verify(certificate, 100).standing == "certified"
    assert standalone(certificate.to_json())[0] == "unknown"


def rooted(x):
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + 1)


def normed_everywhere(w, x):
    """Norms of queries, keys and behind both parts: the last root rests on exponentials of all others, twice."""
    scores = np.exp(rooted(x @ w["k"]) @ rooted(x[-1] @ w["q"]))
    x = x[-1] + rooted((scores / scores.sum())[None] @ x @ w["v"])[0]
    gate = x @ w["g"]
    return x + rooted((gate / (1 + np.exp(-gate))) @ w["d"])


def test_certificates_of_roots_inside_of_exponentials_are_rechecked():
    """What lies below the first level is that of the samples of the minor: 2^7 samples show all signs, not 2^16."""
    answer = analyze(normed_everywhere, (4, 2), weights=dict.fromkeys("qkvgd", (2, 2)))
    assert (answer.parameters, answer.dimension, answer.standing) == (20, 19, "proven")
    verdict = verify(certify_network(answer))
    assert verdict.valid and "signs of roots are free" in verdict.reason


def decaying(w, x):
    """Norms of tokens, queries, keys and of what is read, and a decay exp(−e^a log(1 + e^s)) of the state."""
    n = rooted(x)
    q, k, v, step = rooted(n[1] @ w["q"]), rooted(n @ w["k"]), n @ w["v"], np.log(1 + np.exp(n @ w["s"]))
    state = np.exp(-np.exp(w["a"]) * step[1]) * step[0] * (k[0] @ q) * v[0] + step[1] * (k[1] @ q) * v[1]
    return x[1] + rooted(state * (n[1] @ w["g"]))


def test_logarithms_inside_of_exponentials_behind_roots_are_drawn_prime_by_prime():
    """All roots of three primes exist at one of 2^14 samples, at one of some primes each at one of 2^6."""
    answer = analyze(decaying, (2, 2), weights=dict.fromkeys("qkvg", (2, 2)) | {"s": (2,), "a": ()})
    assert (answer.parameters, answer.dimension, answer.standing) == (19, 16, "proven")
    verdict = verify(certify_network(answer))
    assert verdict.valid and "independent of logarithms" in verdict.reason
