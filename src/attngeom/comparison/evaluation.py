"""Equality of two rational lightning networks by evaluation at random points modulo random primes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from math import log2
from operator import add, attrgetter
from typing import Any

import numpy as np

from attngeom.comparison.matching import ClearedNetwork
from attngeom.comparison.results import Report, Separation, ignore
from attngeom.errors import InputError
from attngeom.exact.domains import GF, QQ, Array, Balls, PrimeField
from attngeom.exact.numbers import primes_from
from attngeom.limits.rounding import ERROR_PROBABILITY
from attngeom.limits.trials import COMPARED_PRIMES
from attngeom.limits.work import EXACT_OUTPUT_BITS
from attngeom.network import Architecture, forward
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
