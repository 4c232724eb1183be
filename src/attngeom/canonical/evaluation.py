"""Outputs of float weights of any size: as floats times powers of two, or in balls for small networks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from attngeom.exact.arrays import swap
from attngeom.exact.domains import RR, Array, Balls
from attngeom.exact.numbers import join_scale, split_scale
from attngeom.limits.rounding import EXTENDED_EXPONENTS, EXTREME_BITS, UNIT_ROUNDOFF
from attngeom.limits.work import BALL_BITS, EXTREME_BALL_BITS
from attngeom.network import Head, Weights, forward
from attngeom.network.layer import forward_layer

Extended = np.longdouble


@dataclass(frozen=True, eq=False)
class ScaledOutputs:
    """Outputs units · 2^exponents for inputs (N, d, t), one exponent, an int of any size, for each.

    Beside a skip connection only what the layers add to the input is kept, so that small layers are seen.
    """

    units: Array
    exponents: Array

    @property
    def is_finite(self) -> bool:
        return bool(np.all(np.isfinite(self.units)))

    def relative_to(self, exponents: Array) -> Array:
        """The outputs divided by 2^exponents."""
        shifts = np.clip(self.exponents - exponents, -EXTENDED_EXPONENTS, EXTENDED_EXPONENTS).astype(np.int64)
        return np.asarray(np.ldexp(self.units, shifts[:, None, None]))


def needed_bits(weights: Weights) -> int:
    """Bits that keep the smallest path through a layer beside the largest one."""
    vector = np.abs(weights.vector())
    exponents = np.frexp(vector[vector > 0])[1]
    return 128 + 4 * (int(np.ptp(exponents)) if len(exponents) else 0)


def evaluate(weights: Weights, units: Array, power: int) -> ScaledOutputs:
    """The outputs at the inputs units · 2^power."""
    bits = needed_bits(weights)
    if bits * weights.architecture.num_parameters <= (EXTREME_BALL_BITS if bits > EXTREME_BITS else BALL_BITS):
        return _evaluate_balls(weights, units, power, Balls(bits))
    layers = tuple(
        tuple(Head(*(array.astype(Extended) for array in head.tensors.values())) for head in heads)
        for heads in weights.layers
    )
    return evaluate_floats(Weights(weights.architecture, RR, layers), np.ldexp(units.astype(Extended), power))


def evaluate_floats(weights: Weights, X: Array, errors: np.random.Generator | None = None) -> ScaledOutputs:
    """The outputs in the precision of the arrays; with random errors of the size of rounding errors, if asked for.

    Lightning layers without skip connection are homogeneous of degree 3: they and their inputs are scaled one by one,
    so that nothing overflows or vanishes on the way.

    >>> from attngeom.network import Architecture
    >>> w = Weights.from_vector(Architecture((1, 1, 1), 1), np.full(6, 2.0**300), RR)
    >>> evaluate_floats(w, np.ones((1, 1, 1))).exponents.tolist()
    [3601]
    """
    architecture = weights.architecture
    layers, powers = _in_units(weights) if architecture.is_homogeneous else (weights.layers, [])
    plain = Weights(replace(architecture, residual=False) if architecture.residual else architecture, RR, layers)
    exponents = np.zeros(len(X), dtype=object)
    Y, added = X, np.zeros_like(X)
    for index in range(architecture.num_layers):
        step = forward_layer(plain, index, Y)
        if errors is not None:
            # Equal tokens have equal rounding errors, and opposite ones opposite ones, or equal ones of their parts.
            even, odd = errors.standard_normal((2, *step.shape[:2], 1))
            step = step + UNIT_ROUNDOFF * _sizes_of_paths(plain, index, Y) * (even + odd * np.sign(step))
        if architecture.residual:
            added = added + step
            Y = X + added
        elif architecture.is_homogeneous:
            Y, moved = _split(step)
            exponents = 3 * exponents + moved + powers[index]
        else:
            Y = step
    units, moved = _split(added if architecture.residual else Y)
    return ScaledOutputs(units, exponents + moved)


def scores_of(weights: Weights, X: Array) -> Iterator[Array]:
    """The scores (N, t, t) of every head of every layer at inputs X, divided by the temperature."""
    rule = weights.architecture.rule
    for index, heads in enumerate(weights.layers):
        for head in heads:
            yield rule.over_temperature(swap(head.K @ X) @ (head.Q @ X), RR)
        X = forward_layer(weights, index, X)


def _sizes_of_paths(weights: Weights, index: int, Y: Array) -> Array:
    """The sizes of the paths through the heads of a layer, added up: its rounding errors are in proportion to them."""
    rule, total = weights.architecture.rule, np.zeros(1)
    for head in weights.layers[index]:
        part = rule.path_sizes(head.tensors, Y)
        total = total + (part if head.O is None else np.abs(head.O) @ part)
    return total


def _in_units(weights: Weights) -> tuple[tuple[tuple[Head, ...], ...], list[int]]:
    """Lightning layers as powers of two times layers of heads whose tensors have entries of at most 1."""
    layers, powers = [], []
    for heads in weights.layers:
        parts = [{name: split_scale(a) for name, a in head.tensors.items()} for head in heads]
        sizes = [sum(e for _, e in part.values()) for part in parts]
        top = max((size for part, size in zip(parts, sizes) if all(a.any() for a, _ in part.values())), default=0)
        tensors = [{name: a for name, (a, _) in part.items()} for part in parts]
        for part, size in zip(tensors, sizes):
            part["V"] = join_scale(part["V"], min(size - top, 0))
        layers.append(tuple(Head.of(part) for part in tensors))
        powers.append(top)
    return tuple(layers), powers


def _split(Y: Array) -> tuple[Array, Array]:
    """Y as units times powers of two, one for each input."""
    sizes = np.max(np.abs(Y), axis=(1, 2), initial=0.0)
    exponents = np.frexp(np.where(np.isfinite(sizes), sizes, 1.0))[1]
    return np.ldexp(Y, -exponents[:, None, None]), exponents.astype(object)


def _evaluate_balls(weights: Weights, units: Array, power: int, balls: Balls) -> ScaledOutputs:
    """Balls do not overflow; their midpoints are rounded at the end."""
    moved = weights.to(balls)
    outputs, exponents = [], []
    with balls.working():
        scale = balls.convert([2])[0] ** power
        for unit in units:
            X = balls.convert(unit) * scale
            Y = forward(moved, X)
            Y = Y - X if weights.architecture.residual else Y
            entries = [_round(y) for y in Y.ravel()]
            top = max((exponent for mantissa, exponent in entries if mantissa), default=0)
            # Beside outputs below 2^(-2^31) the exponent of a zero would be beyond integers of C.
            values = [np.ldexp(m, max(e - top, -16000)) if m else m for m, e in entries]
            outputs.append(np.array(values).reshape(Y.shape))
            exponents.append(top)
    return ScaledOutputs(np.array(outputs), np.array(exponents, dtype=object))


def _round(y: Any) -> tuple[Any, int]:
    """The midpoint as mantissa and exponent; not a number if the ball is not finite."""
    if not y.is_finite():
        return Extended("nan"), 0
    mantissa, exponent = (int(x) for x in y.mid().man_exp())
    shift = max(mantissa.bit_length() - 64, 0)
    return Extended(mantissa >> shift if mantissa > 0 else -((-mantissa) >> shift)), exponent + shift
