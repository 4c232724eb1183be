"""Whether two float networks differ, by ball arithmetic alone: no code of the package computes anything here.

Every weight stands for all numbers within a relative error of it, zeros for themselves. If the outputs of two networks
lie in disjoint balls at one input, then no weights within these errors are one function: that is proven. If no input of
the list tells them apart nothing is known.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import flint
import numpy as np

PRECISION = 260
CUT = 10**6
"""Beyond this difference of scores a weight of attention is below exp(-10^6)."""

Tensors = dict[str, Any]
"""Q, K, V and perhaps O of one head, as arrays of fractions."""
Network = list[list[Tensors]]
"""For each layer the heads."""


def matrix(values: Any, error: flint.arb) -> flint.arb_mat:
    """The balls around numbers, with a relative error."""
    rows, columns = np.shape(values)
    balls = []
    for value in np.asarray(values, dtype=object).ravel():
        middle = flint.arb(flint.fmpq(value.numerator, value.denominator))
        balls.append(flint.arb(middle.mid(), middle.rad() + abs(middle).upper() * error))
    return flint.arb_mat(rows, columns, balls)


def share(score: flint.arb, others: list[flint.arb]) -> flint.arb:
    """1 / Σ exp(other − score), the weight of softmax; huge differences do not leave the range of exponents."""
    total = flint.arb(0)
    tiny = flint.arb(0, (flint.arb(-CUT)).exp())
    for other in others:
        gap = other - score
        if gap > CUT:
            return tiny
        if gap < -CUT:
            total += tiny
        elif gap < 2 * CUT and gap > -2 * CUT:
            total += gap.exp()
        else:
            return flint.arb(0.5, 0.5)
    return 1 / total


def attend(S: flint.arb_mat, kind: str, causal: bool, temperature: Fraction) -> flint.arb_mat:
    """Attention weights from scores S[j, i] of key j and query i, column by column."""
    t = S.nrows()
    P = flint.arb_mat(t, t)
    scale = flint.arb(flint.fmpq(temperature.denominator, temperature.numerator))
    for i in range(t):
        seen = [j for j in range(t) if j <= i or not causal]
        scores = {j: S[j, i] * scale for j in seen}
        for j in seen:
            if kind == "lightning":
                P[j, i] = S[j, i]
            elif kind == "softmax":
                P[j, i] = share(scores[j], [scores[k] for k in seen])
            else:
                P[j, i] = share(scores[j], [scores[j], flint.arb(0)])
    return P


class Balls:
    """A network whose weights are known up to a relative error, ready to be evaluated."""

    def __init__(self, network: Network, architecture: Any, error: float) -> None:
        self.architecture = architecture
        radius = flint.arb(error)
        self.layers = [[{k: matrix(a, radius) for k, a in head.items()} for head in layer] for layer in network]

    def outputs(self, X: flint.arb_mat) -> flint.arb_mat:
        """The output of the last layer; tokens are columns."""
        kind, causal, temperature = (getattr(self.architecture, name) for name in ("kind", "causal", "temperature"))
        for layer in self.layers:
            total = X if self.architecture.residual else None
            for head in layer:
                P = attend((head["K"] * X).transpose() * (head["Q"] * X), kind, causal, temperature)
                mixed = head["V"] * X * P
                part = head["O"] * mixed if "O" in head else mixed
                total = part if total is None else total + part
            X = total
        return X


def exponent(array: Any) -> int:
    """The power of two of the largest entry."""
    sizes = [abs(x) for x in np.asarray(array, dtype=object).ravel() if x]
    return max((x.numerator.bit_length() - x.denominator.bit_length() for x in sizes), default=0)


def candidates(networks: list[Network], tokens: int, rng: np.random.Generator, number: int) -> Iterator[flint.arb_mat]:
    """Inputs: dense, sparse, unit vectors, multiples of one direction, at sizes at which some head is neither."""
    width = networks[0][0][0]["Q"].shape[1]
    sizes = sorted(
        {-(exponent(head["Q"]) + exponent(head["K"])) // 2 for network in networks for head in network[0]} | {0}
    )
    for index in range(number):
        style = index % 6
        X = rng.normal(size=(width, tokens))
        if style in (1, 2):
            X *= rng.random((width, tokens)) < 0.5
        if style == 3:
            X = np.eye(width)[:, rng.integers(width, size=tokens)] * rng.choice([1.0, -1.0, 2.0, 0.5], tokens)
        if style == 4:
            X[:, rng.integers(tokens)] = np.eye(width)[rng.integers(width)]
        if style == 5:
            X = np.outer(X[:, 0] * (rng.random(width) < 0.6), rng.normal(size=tokens))
        scale = int(rng.choice(sizes)) + int(rng.integers(-3, 8))
        X = np.round(X * 64)
        if style in (2, 4):
            X = X * 2.0 ** rng.integers(-6, 7, size=tokens)
        values = [flint.arb(round(64 * float(x)), 0) * flint.arb(2) ** (scale - 12) for x in X.ravel()]
        yield flint.arb_mat(width, tokens, values)


def first_difference(
    networks: tuple[Network, Network], architecture: Any, error: float, seed: int, number: int = 36
) -> int | None:
    """The number of the first input at which the outputs lie in disjoint balls, or None."""
    precision = flint.ctx.prec
    flint.ctx.prec = PRECISION
    try:
        one, two = (Balls(network, architecture, error) for network in networks)
        rng = np.random.default_rng(seed)
        for index, X in enumerate(candidates(list(networks), architecture.tokens, rng, number)):
            a, b = one.outputs(X), two.outputs(X)
            if any(not x.overlaps(y) for x, y in zip(a.entries(), b.entries())):
                return index
        return None
    finally:
        flint.ctx.prec = precision
