"""Outputs of float weights of any size: in balls for small networks, in extended precision for large ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from attngeom.exact.domains import RR, Array, Balls
from attngeom.network import Head, Weights, forward
from attngeom.network.forward import forward_layer

Extended = np.longdouble
BALL_BITS, MAX_BALL_BITS = 10**5, 3 * 10**7
"""The number of weights times the bits of precision up to which balls are used: always, and for extreme weights."""
EXTREME = 500
"""Bits beyond which extended precision may lose a path beside a larger one."""


@dataclass(frozen=True, eq=False)
class ScaledOutputs:
    """Outputs units · 2^logs for inputs (N, d, t); a skip connection is taken off, so that what layers add is seen."""

    units: Array
    logs: Array

    @property
    def is_finite(self) -> bool:
        return bool(np.all(np.isfinite(self.units)))

    def relative_to(self, logs: Array) -> Array:
        """The outputs divided by 2^logs."""
        return np.asarray(self.units * np.exp2((self.logs - logs).astype(Extended))[:, None, None])


def needed_bits(weights: Weights) -> int:
    """Bits that keep the smallest path through a layer beside the largest one."""
    vector = np.abs(weights.vector())
    exponents = np.frexp(vector[vector > 0])[1]
    return 128 + 4 * (int(np.ptp(exponents)) if len(exponents) else 0)


def evaluate(weights: Weights, units: Array, power: int) -> ScaledOutputs:
    """The outputs at the inputs units · 2^power."""
    bits = needed_bits(weights)
    if bits * weights.architecture.num_parameters <= (MAX_BALL_BITS if bits > EXTREME else BALL_BITS):
        return _evaluate_balls(weights, units, power, Balls(bits))
    return _evaluate_extended(weights, units, power)


def _evaluate_extended(weights: Weights, units: Array, power: int) -> ScaledOutputs:
    """Lightning layers without skip connection are homogeneous of degree 3: their outputs are scaled one by one."""
    architecture = weights.architecture
    layers = tuple(
        tuple(Head(*(array.astype(Extended) for array in head.tensors.values())) for head in heads)
        for heads in weights.layers
    )
    extended = Weights(architecture, RR, layers)
    is_homogeneous = architecture.rule.is_polynomial and not architecture.residual
    X = np.ldexp(units.astype(Extended), power)
    logs, Y = np.zeros(len(X)), X
    for index in range(architecture.num_layers):
        Y = forward_layer(extended, index, Y)
        if is_homogeneous:
            Y, exponents = _split(Y)
            logs = 3 * logs + exponents
    Y, exponents = _split(Y - X if architecture.residual else Y)
    return ScaledOutputs(Y, logs + exponents)


def _split(Y: Array) -> tuple[Array, Array]:
    """Y as units times powers of two, one for each input."""
    exponents = np.frexp(np.max(np.abs(Y), axis=(1, 2)))[1]
    return np.ldexp(Y, -exponents[:, None, None]), exponents


def _evaluate_balls(weights: Weights, units: Array, power: int, balls: Balls) -> ScaledOutputs:
    """Balls do not overflow; their midpoints are rounded at the end."""
    moved = weights.to(balls)
    found, logs = [], []
    with balls.working():
        scale = balls.convert([2])[0] ** power
        for unit in units:
            X = balls.convert(unit) * scale
            Y = forward(moved, X)
            Y = Y - X if weights.architecture.residual else Y
            entries = [_round(y) for y in Y.ravel()]
            top = max((exponent for mantissa, exponent in entries if mantissa), default=0)
            found.append(np.array([np.ldexp(m, max(e - top, -16000)) for m, e in entries]).reshape(Y.shape))
            logs.append(float(top))
    return ScaledOutputs(np.array(found), np.array(logs))


def _round(y: Any) -> tuple[Any, int]:
    """The midpoint as mantissa and exponent; not a number if the ball is not finite."""
    if not y.is_finite():
        return Extended("nan"), 0
    mantissa, exponent = (int(x) for x in y.mid().man_exp())
    shift = max(mantissa.bit_length() - 64, 0)
    return Extended(mantissa >> shift if mantissa > 0 else -((-mantissa) >> shift)), exponent + shift
