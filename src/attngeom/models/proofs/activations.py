"""Activations as formal functions: a free value per argument, with the derivative relation of the true function.

Piecewise functions take a pattern instead: which pieces the hidden units of a sample are in. Only patterns are drawn
that occur together on an open set of weights and inputs (docs/theorems/models.md, section 5): for ReLU the units that
are on form the beginning or the end of the list; for a clamp at most one bound of the layer is reached.
"""

from __future__ import annotations

from fractions import Fraction
from functools import cache

import numpy as np

from attngeom.exact.arrays import Array
from attngeom.models.proofs.formal import PRIME, Dual, Tape, constant

HALF = constant(Fraction(1, 2))
CUBIC = constant(Fraction(44715, 10**6))
# √(2/π) is transcendental, so an arbitrary residue may stand for it.
ROOT_TWO_OVER_PI = 20_260_711
SLOPE = constant(Fraction(1702, 1000))


def activate(name: str, x: Dual, tape: Tape) -> Dual:
    """φ(x) for x of shape (samples, units)."""
    shape = x.value.shape[1:]
    if name == "relu":
        mask = tape.choose(_initial_patterns(shape[0]))
        return x * mask
    free = tape.free(shape)
    value = x.value
    if name == "tanh":
        return x.chain(free, 1 - free * free % PRIME)
    if name == "sigmoid":
        return x.chain(free, _bell(free))
    if name == "gelu":
        return x.chain(value * free, (free + value * tape.free(shape)) % PRIME)
    if name == "gelu_tanh":
        inner = (1 + 3 * (CUBIC * (value * value % PRIME) % PRIME)) % PRIME * ROOT_TWO_OVER_PI % PRIME
        rise = value * ((1 - free * free) % PRIME) % PRIME * inner % PRIME
        return x.chain(value * ((1 + free) % PRIME) % PRIME * HALF, (1 + free + rise) % PRIME * HALF % PRIME)
    slope = {"silu": 1, "quick_gelu": SLOPE, "swiglu_oai": SLOPE}[name]
    return x.chain(value * free, (free + value * _bell(free) % PRIME * slope) % PRIME)


def clamp(gate: Dual, up: Dual, limit: float, tape: Tape) -> tuple[Dual, Dual]:
    """min(gate, limit) and up between −limit and limit."""
    units = gate.value.shape[1]
    pieces = tape.choose(_clamp_patterns(units))
    bound = constant(limit)
    gate_free, up_free = pieces[:, 0] == 0, pieces[:, 1] == 0
    low = gate * gate_free.astype(np.int64) + Dual(np.where(gate_free, 0, bound))
    middle = up * up_free.astype(np.int64) + Dual(pieces[:, 1] * bound % PRIME)
    return low, middle


def _bell(sigma: Array) -> Array:
    """σ(1 − σ)."""
    bell: Array = sigma * ((1 - sigma) % PRIME) % PRIME
    return bell


@cache
def _initial_patterns(units: int) -> Array:
    """The sets {1..j} and {j+1..m} as rows of 0 and 1."""
    initial = np.tri(units + 1, units, -1, dtype=np.int64)
    return np.concatenate([initial, 1 - initial])


@cache
def _clamp_patterns(units: int) -> Array:
    """No bound, or one: gate above (1), up above (1) or below (−1), for one unit."""
    rows = np.zeros((1 + 3 * units, 2, units), dtype=np.int64)
    for unit in range(units):
        for offset, (place, side) in enumerate(((0, 1), (1, 1), (1, -1))):
            rows[1 + 3 * unit + offset, place, unit] = side
    # Half of the samples without bound: they carry most of the rank.
    return np.concatenate([rows, np.zeros_like(rows)])


@cache
def intervals(count: int, active: int) -> Array:
    """The cyclic intervals of ``active`` out of ``count`` experts as rows of 0 and 1."""
    start = np.arange(count)
    offsets = (start[None, :] - start[:, None]) % count
    return (offsets < active).astype(np.int64)
