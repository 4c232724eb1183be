"""Inputs that separate two exact softmax networks: enclosed by balls, at sizes at which attention is not saturated."""

from __future__ import annotations

from math import ceil

import numpy as np
from flint import fmpq

from attngeom.comparison.results import Report, Separation, ignore
from attngeom.exact.domains import QQ, Array, Balls, Domain
from attngeom.network import Weights, forward

MAX_WORK = 4 * 10**6
"""Scores that are enclosed by balls in one search, at about a microsecond each."""
FIRST_TRIALS = 4
TRIALS_AT_A_SIZE = 2
MAX_SIZES = 8
PRECISIONS = (256, 1024)


def separate_balls(first: Weights, second: Weights, seed: int, report: Report = ignore) -> Separation | None:
    """An input on which two exact softmax networks certainly differ, enclosed by balls; None if none was found.

    Inputs of size 1 come first, then inputs that make the scores of some layer of size 1: there its softmax is
    neither saturated nor flat.
    """
    rng = np.random.default_rng(seed)
    shape = (first.architecture.widths[0], first.architecture.tokens)
    work = first.architecture.num_layers * first.architecture.heads * shape[1] * (shape[1] + shape[0])
    trials = [(0, PRECISIONS[0])] * FIRST_TRIALS
    for precision in PRECISIONS:
        trials += [(size, precision) for size in _natural_sizes(first, second)] * TRIALS_AT_A_SIZE
    trials = trials[: max(1, MAX_WORK // work)]
    for done, (size, precision) in enumerate(trials):
        report("evaluating", done, len(trials))
        domain = Balls(precision)
        # Small inputs keep the scores moderate: softmax then is far from saturation and its balls stay narrow.
        X = QQ.convert(rng.integers(-9, 10, size=shape)) * (fmpq(2) ** (size - 3))
        outputs = forward(first.to(domain), domain.convert(X)), forward(second.to(domain), domain.convert(X))
        if not domain.equal(*outputs):
            return Separation(X, outputs, domain)
    return None


def _natural_sizes(first: Weights, second: Weights) -> list[int]:
    """The exponents e for which inputs of size 2^e give some layer scores of size about 1."""
    sizes = set()
    for weights in (first, second):
        gain = 0
        for A, V in zip(weights.attention_matrices(), weights.value_matrices()):
            sizes |= {-ceil(exponent(a) / 2) - gain for a in A if not weights.domain.is_zero(a)}
            values = sum(V[1:], V[0])
            gain += 0 if weights.architecture.residual else exponent(values)
    ordered = sorted(sizes)
    return ordered[:: len(ordered) // MAX_SIZES + 1]


def exponent(a: Array) -> int:
    """About log2 of the largest entry of a rational array; 0 for zero."""
    return max((int(x.p).bit_length() - int(x.q).bit_length() for x in a.ravel().tolist() if x), default=0)


def consensus(weights: Weights) -> Array:
    """The matrix of φ on inputs with equal tokens, Π ΣV or Π (1 + ΣV): softmax then averages equal values.

    >>> from attngeom.network import Architecture, random_weights
    >>> w = random_weights(Architecture((2, 2), 1, kind="softmax"), QQ, seed=0)
    >>> QQ.equal(consensus(w), w.layers[0][0].V)
    True
    """
    domain: Domain = weights.domain
    total = domain.eye(weights.architecture.widths[0])
    for V in weights.value_matrices():
        step = domain.reduce(sum(V[1:], V[0]))
        if weights.architecture.residual:
            step = domain.reduce(step + domain.eye(len(step)))
        total = domain.matmul(step, total)
    return total


def separate_consensus(first: Weights, second: Weights) -> Separation | None:
    """An input with equal tokens on which two softmax networks differ, with exact outputs; None if there is none."""
    one, two = (consensus(weights) for weights in (first, second))
    for k in range(one.shape[1]):
        if not QQ.equal(one[:, k], two[:, k]):
            X = QQ.zeros((one.shape[1], first.architecture.tokens))
            X[k] = 1
            outputs = tuple(np.tile(side[:, [k]], first.architecture.tokens) for side in (one, two))
            return Separation(QQ.convert(X), (outputs[0], outputs[1]), QQ)
    return None
