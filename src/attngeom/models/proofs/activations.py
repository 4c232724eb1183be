"""Activations as formal functions: a free value per argument, with the derivative relation of the true function.

Piecewise functions take the pieces in which the hidden units of a sample are, read off a real point (`regions`).
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from attngeom.exact.arrays import Array
from attngeom.models.proofs.formal import PRIME, Dual, Tape, constant
from attngeom.models.proofs.regions import Pieces

HALF = constant(Fraction(1, 2))
CUBIC = constant(Fraction(44715, 10**6))
# √(2/π) is transcendental, so an arbitrary residue may stand for it.
ROOT_TWO_OVER_PI = 20_260_711
SLOPE = constant(Fraction(1702, 1000))
VALUE_AT_LIMIT = 11_072_026


def activate(name: str, x: Dual, tape: Tape, pieces: Pieces) -> Dual:
    """φ(x) for x of shape (samples, units)."""
    if name == "relu":
        return x * pieces.is_on
    value = x.value
    cubed = value * (value * value % PRIME) % PRIME
    # What the exponential in φ is of; for gelu the normal density exp(−x²/2).
    arguments = {"gelu": value * value, "gelu_tanh": (value + CUBIC * cubed) % PRIME * ROOT_TWO_OVER_PI}
    free = tape.free(arguments.get(name, value) % PRIME)
    if name == "tanh":
        return x.chain(free, 1 - free * free % PRIME)
    if name == "sigmoid":
        return x.chain(free, _bell(free))
    if name == "gelu":
        return x.chain(value * free, (free + value * tape.draw(value.shape[1:])) % PRIME)
    if name == "gelu_tanh":
        inner = (1 + 3 * (CUBIC * (value * value % PRIME) % PRIME)) % PRIME * ROOT_TWO_OVER_PI % PRIME
        rise = value * ((1 - free * free) % PRIME) % PRIME * inner % PRIME
        return x.chain(value * ((1 + free) % PRIME) % PRIME * HALF, (1 + free + rise) % PRIME * HALF % PRIME)
    slope = {"silu": 1, "quick_gelu": SLOPE, "swiglu_oai": SLOPE}[name]
    return x.chain(value * free, (free + value * _bell(free) % PRIME * slope) % PRIME)


def clamped_gate(name: str, gate: Dual, limit: float, tape: Tape, pieces: Pieces) -> Dual:
    """φ(min(gate, limit)): where the limit is reached the number φ(limit), one residue for all samples.

    For relu it is the limit itself, for the others transcendental, by Lindemann–Weierstrass; gelu is refused.
    """
    reached = constant(limit) if name == "relu" else VALUE_AT_LIMIT
    return activate(name, gate, tape, pieces) * (1 - pieces.gate) + Dual(pieces.gate * reached)


def clamped(up: Dual, limit: float, pieces: Pieces) -> Dual:
    """up between −limit and limit."""
    return up * (1 - np.abs(pieces.up)) + Dual(pieces.up * constant(limit) % PRIME)


def _bell(sigma: Array) -> Array:
    """σ(1 − σ)."""
    bell: Array = sigma * ((1 - sigma) % PRIME) % PRIME
    return bell
