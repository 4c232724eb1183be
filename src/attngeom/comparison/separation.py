"""Inputs that separate two exact networks: at random points modulo random primes, or enclosed by balls."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import reduce
from itertools import islice
from math import log2
from operator import add, attrgetter
from typing import Any

import numpy as np
from flint import fmpq, fmpz

from attngeom.comparison.matching import ClearedNetwork
from attngeom.comparison.results import Report, Separation, ignore
from attngeom.errors import InputError
from attngeom.exact.domains import GF, QQ, Array, Balls, Domain, PrimeField
from attngeom.exact.numbers import ClearedMatrix, primes_from
from attngeom.limits.rounding import ENCLOSURE_BITS, ERROR_PROBABILITY
from attngeom.limits.trials import COMPARED_PRIMES, FIRST_SEPARATIONS, SEPARATIONS_AT_A_SIZE, TRIED_SIZES
from attngeom.limits.work import ENCLOSED_SCORES, ENCLOSED_TRIAL, EXACT_OUTPUT_BITS
from attngeom.network import Architecture, Weights, forward
from attngeom.network.inputs import LayerExponents, sizes_of_scores, telling_tokens, thinned, with_all_tokens
from attngeom.results import draw_entropy


@dataclass(frozen=True)
class Agreement:
    """Equal outputs at random inputs mod random primes: equal functions, wrong with at most this probability.

    Primes and inputs come from ``entropy``, drawn afresh in every run: no file can be made to fit them.
    """

    error_probability: float
    primes: tuple[int, ...]
    entropy: int


def random_prime(rng: np.random.Generator) -> int:
    """The largest prime below a random number between 2^60 and 2^61.

    >>> random_prime(np.random.default_rng(0)).bit_length()
    61
    """
    return next(primes_from(int(rng.integers(2**60 + 2**12, 2**61))))


def function_over(network: ClearedNetwork, domain: PrimeField | Balls) -> Callable[[Array], Array]:
    """The function X ↦ φ_W(X) of a lightning network mod p, or of any in balls; entries of weights never leave FLINT.

    InputError if p divides a denominator.

    >>> from attngeom.comparison.matching import clear
    >>> from attngeom.network import random_weights
    >>> w = random_weights(Architecture((2, 2), 1), QQ, seed=0)
    >>> function_over(clear(w), GF(101))(np.eye(2, dtype=int)).tolist()
    [[50, 7], [50, 7]]
    """
    architecture, rule = network.architecture, network.architecture.rule
    layers: list[list[list[Any]]] = [
        [[None if x is None else domain.image(x) for x in head] for head in heads] for heads in network.layers
    ]

    def evaluate(X: Array) -> Array:
        with domain.working():
            value: Any = domain.to_flint(domain.convert(X))
            for heads in layers:
                outputs = [value] if architecture.residual else []
                for *projections, O in heads:
                    q, k, v = (matrix * value for matrix in projections)
                    if rule.is_polynomial and not rule.mask.hides:
                        part = (v * k.transpose()) * q
                    else:
                        queries, keys, values = (domain.from_flint(x.transpose()) for x in (q, k, v))
                        part = domain.to_flint(rule.mix(queries, keys, values, domain).T)
                    outputs.append(part if O is None else O * part)
                value = reduce(add, outputs)
            return domain.from_flint(value)

    return evaluate


def weight_bits(network: ClearedNetwork) -> float:
    """log2 of a bound for the integers in a tensor over its common denominator."""
    bits = 1.0
    for tensor in network.tensors():
        largest = max(abs(x) for x in tensor.matrix.entries())
        size = max(tensor.matrix.nrows(), tensor.matrix.ncols())
        bits = max(bits, largest.bit_length() + tensor.denominator.bit_length() + log2(size))
    return bits


def output_bits(architecture: Architecture, bits: float) -> float:
    """A bound for the bits of a coefficient of the function, from the degree in the weights, Σ 3^i."""
    layers = architecture.num_layers
    factors = 4 if architecture.is_factored else 3
    terms = architecture.tokens * architecture.heads + 1
    return float(factors * (3**layers - 1) / 2 * (bits + log2(terms)))


def separate_exact(
    first: ClearedNetwork, second: ClearedNetwork, entropy: int | None = None, report: Report = ignore
) -> Separation | Agreement:
    """An input that separates two rational lightning networks, or agreement mod p with its error probability.

    A difference is a proof. Agreement: Schwartz–Zippel for the degree 3^l of the difference, and the chance that a
    random prime divides all of its coefficients. ``entropy`` repeats an earlier run.
    """
    entropy = draw_entropy() if entropy is None else entropy
    rng = np.random.default_rng(entropy)
    architecture = first.architecture
    shape = (architecture.widths[0], architecture.tokens)
    primes: list[int] = []
    probability = 1.0
    bits = 0.0
    while probability > ERROR_PROBABILITY and len(primes) < COMPARED_PRIMES:
        report("evaluating modulo primes", len(primes), COMPARED_PRIMES)
        p = random_prime(rng)
        field = GF(p)
        inputs = rng.integers(-9, 10, size=shape), rng.integers(0, p, size=shape)
        try:
            functions = [function_over(network, field) for network in (first, second)]
        except InputError:
            continue
        for X in inputs:
            outputs = functions[0](X), functions[1](X)
            if not field.equal(*outputs):
                return present_separation(first, second, QQ.convert(X), outputs, field)
        primes.append(p)
        bits = bits or output_bits(architecture, max(map(weight_bits, (first, second))))
        # At most 2 bits / 60 such primes divide a coefficient of the difference; prime gaps here are below 2^11, so
        # each of them is drawn with probability below 2^-49.
        probability *= min(1.0, 3**architecture.num_layers / p + 2 * bits / 60 / 2**49)
    return Agreement(probability, tuple(primes), entropy)


def present_separation(
    first: ClearedNetwork, second: ClearedNetwork, X: Array, residues: tuple[Array, Array], field: PrimeField
) -> Separation:
    """The rational outputs if they are of readable size, else their residues."""
    if max(abs(int(x.p)) for x in X.ravel()) > 9:
        return Separation(X, residues, field)
    # The denominators are quick to look at, and almost always decide for large networks.
    for estimate in (attrgetter("denominator_bits"), weight_bits):
        if output_bits(first.architecture, max(map(estimate, (first, second)))) > EXACT_OUTPUT_BITS:
            return Separation(X, residues, field)
    return Separation(X, (forward(first.weights, X), forward(second.weights, X)), QQ)


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
    if not first.architecture.rule.is_normalised:
        return None
    one, two = (consensus(weights) for weights in (first, second))
    for k in range(one.shape[1]):
        if not QQ.equal(one[:, k], two[:, k]):
            X = QQ.zeros((one.shape[1], first.architecture.tokens))
            X[k] = 1
            outputs = tuple(np.tile(side[:, [k]], first.architecture.tokens) for side in (one, two))
            return Separation(QQ.convert(X), (outputs[0], outputs[1]), QQ)
    return None
