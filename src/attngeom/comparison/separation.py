"""Inputs that separate two exact softmax networks: enclosed by balls, at sizes at which attention is not saturated."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import reduce
from itertools import islice
from operator import add

import numpy as np
from flint import fmpq, fmpz

from attngeom.comparison.evaluation import function_over
from attngeom.comparison.matching import ClearedNetwork
from attngeom.comparison.results import Report, Separation, ignore
from attngeom.exact.domains import QQ, Array, Balls, Domain
from attngeom.exact.numbers import ClearedMatrix
from attngeom.limits.rounding import ENCLOSURE_BITS
from attngeom.limits.trials import FIRST_SEPARATIONS, SEPARATIONS_AT_A_SIZE, TRIED_SIZES
from attngeom.limits.work import ENCLOSED_SCORES, ENCLOSED_TRIAL
from attngeom.network import Weights
from attngeom.network.inputs import LayerExponents, sizes_of_scores, telling_tokens, thinned, with_all_tokens


def separate_balls(
    first: ClearedNetwork, second: ClearedNetwork, seed: int, report: Report = ignore
) -> Separation | None:
    """An input on which two exact softmax networks certainly differ, enclosed by balls; None if none was found.

    Inputs of size 1 come first, then inputs that make the scores of some layer of size 1: there its softmax is
    neither saturated nor flat.
    """
    rng = np.random.default_rng(seed)
    architecture = first.architecture
    shape = (architecture.widths[0], telling_tokens(architecture))
    work = architecture.num_layers * architecture.heads * shape[1] * (shape[1] + shape[0])
    most = FIRST_SEPARATIONS + len(ENCLOSURE_BITS) * TRIED_SIZES * SEPARATIONS_AT_A_SIZE
    limit = max(min(ENCLOSED_SCORES // work, most), 1 if work <= ENCLOSED_TRIAL else 0)
    functions: dict[Balls, list[Callable[[Array], Array]]] = {}
    for done, (size, domain) in enumerate(islice(_trials(first, second), limit)):
        report("evaluating", done, limit)
        if domain not in functions:
            functions[domain] = [function_over(network, domain) for network in (first, second)]
        # Small inputs keep the scores moderate: softmax then is far from saturation and its balls stay narrow.
        X = QQ.convert(rng.integers(-9, 10, size=shape)) * (fmpq(2) ** (size - 3))
        one, two = (function(X) for function in functions[domain])
        if not domain.equal(one, two):
            one, two = (with_all_tokens(architecture, value) for value in (one, two))
            return Separation(with_all_tokens(architecture, X), (one, two), domain)
    return None


def _trials(first: ClearedNetwork, second: ClearedNetwork) -> Iterator[tuple[int, Balls]]:
    """Sizes of inputs, as exponents of 2, and precisions at which they are evaluated."""
    yield from [(0, Balls(ENCLOSURE_BITS[0]))] * FIRST_SEPARATIONS
    natural = sizes_of_scores(first.architecture, [_layer_exponents(network) for network in (first, second)])
    sizes = thinned(natural, TRIED_SIZES).tolist() if natural else []
    for precision in ENCLOSURE_BITS:
        yield from [(size, Balls(precision)) for size in sizes] * SEPARATIONS_AT_A_SIZE


def _layer_exponents(network: ClearedNetwork) -> list[LayerExponents]:
    scores = [[head.K.transpose() * head.Q for head in heads] for heads in network.layers]
    values = [reduce(add, (head.values() for head in heads)) for heads in network.layers]
    return [([_exponent(A) for A in heads if A.matrix], _exponent(V)) for heads, V in zip(scores, values)]


def _exponent(a: ClearedMatrix) -> int:
    """About log2 of the largest entry of a rational matrix; 0 for zero."""
    bits = max(map(fmpz.bit_length, a.matrix.entries()))
    return bits - a.denominator.bit_length() if bits else 0


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
