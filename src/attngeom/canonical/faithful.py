"""Whether new weights compute the function of the old ones: what every writer of moved weights asks before it writes.

The check does not know how the new weights were found. Exact weights are evaluated modulo random primes, or in balls of
high precision where attention is not polynomial. Floats are evaluated with more precision and range than they have, at
inputs of every size at which some layer matters, and compared output row by output row.
"""

from __future__ import annotations

import secrets
from itertools import product

import numpy as np

from attngeom.canonical.evaluation import evaluate
from attngeom.errors import InputError, SingularError
from attngeom.exact.domains import GF, QQ, RR, Array, Balls
from attngeom.exact.numbers import primes_from
from attngeom.limits.memory import SAMPLE_TOKENS
from attngeom.limits.rounding import (
    COLUMNS_APART,
    FAITHFUL_BITS,
    FAITHFUL_OUTPUTS,
    FAITHFUL_SCALE,
    PERTURBATION,
    ROW_NEGLIGIBLE,
    ROW_SWAMPED,
)
from attngeom.limits.trials import FAITHFUL_INPUTS, FAITHFUL_PRIMES, TRIED_SIZES
from attngeom.network import Weights, forward
from attngeom.network.inputs import natural_sizes
from attngeom.network.programs import is_rational

SEED = 0


def check_same_function(before: Weights, after: Weights) -> float:
    """The largest relative difference of the outputs: 0 for exact weights; InputError if the function has changed."""
    architecture = before.architecture
    try:
        if before.domain.is_exact:
            difference = _exact_difference(before, after)
        else:
            difference = _float_difference(before, after) if architecture.is_plain else _largest_change(before, after)
    except SingularError:
        raise InputError(
            "weights that divide by zero at random inputs given; nothing is written, weights with outputs are required"
        ) from None
    tolerance = max(
        FAITHFUL_OUTPUTS, FAITHFUL_SCALE * 3.0**architecture.num_layers if architecture.is_homogeneous else 0.0
    )
    if not difference <= tolerance:
        raise InputError(
            f"weights whose outputs would change by {difference:.0e} given; nothing is written,"
            " give weights of more even sizes, or move exact ones"
        )
    return difference


def _exact_difference(before: Weights, after: Weights) -> float:
    """0 if the outputs at random inputs agree, else 1.

    Different lightning networks agree by chance with probability below 2^-50 for each prime, which no file can know.
    """
    architecture = before.architecture
    shape = (architecture.widths[0], max(2, min(architecture.tokens, 3)))
    rng = np.random.default_rng(secrets.randbits(64))
    if not is_rational(architecture):
        balls = Balls(FAITHFUL_BITS)
        for trial in range(FAITHFUL_INPUTS):
            X = balls.convert(QQ.convert(rng.integers(-99, 100, size=shape)) / 64)
            try:
                return float(not balls.equal(*(forward(weights.to(balls), X) for weights in (before, after))))
            except SingularError:
                # A sum or a norm that vanishes at this input; at all of them the function is not defined.
                if trial == FAITHFUL_INPUTS - 1:
                    raise
    for _ in range(FAITHFUL_PRIMES):
        finite = before.domain.characteristic > 0
        field = before.domain if finite else GF(next(primes_from(secrets.randbits(60) | 2**60)))
        X = field.random(shape, rng)
        if not field.equal(*(forward(weights if finite else weights.to(field), X) for weights in (before, after))):
            return 1.0
    return 0.0


def _largest_change(before: Weights, after: Weights) -> float:
    """The largest ‖Y − Y'‖ / ‖Y‖ at random inputs of three sizes, for kinds beyond the papers."""
    architecture = before.architecture
    shape = (FAITHFUL_INPUTS, architecture.widths[0], min(architecture.tokens, SAMPLE_TOKENS))
    units, worst = np.random.default_rng(SEED).standard_normal(shape), 0.0
    for size in (1.0, 0.125, 8.0):
        X = size * units
        with np.errstate(all="ignore"):
            Y, moved = (forward(weights, X) for weights in (before, after))
        if not np.all(np.isfinite(Y) & np.isfinite(moved)):
            # Exponentials beyond the range of floats, whose quotients are within it; one input is enough.
            balls = Balls(FAITHFUL_BITS)
            enclosed = [forward(weights.to(balls), balls.convert(X[0])) for weights in (before, after)]
            Y, moved = (np.array([float(x.mid()) for x in array.ravel()]) for array in enclosed)
        change = float(np.linalg.norm(moved - Y) / max(float(np.linalg.norm(Y)), 1e-300))
        worst = max(worst, change if np.isfinite(change) else np.inf)
    return worst


def _float_difference(before: Weights, after: Weights) -> float:
    """The largest ‖Y − Y'‖ / max(‖Y‖, ‖Y'‖) of an output row; inf if there is nothing to compare.

    Rows that are nothing but rounding errors beside other rows may move as far as errors of the weights move them.
    """
    architecture = before.architecture
    rng = np.random.default_rng(SEED)
    changes = PERTURBATION * rng.standard_normal((2, architecture.num_parameters))
    noisy = [Weights.from_vector(architecture, before.vector() * (1 + change), RR) for change in changes]
    dense = rng.standard_normal((FAITHFUL_INPUTS, architecture.widths[0], max(2, min(architecture.tokens, 3))))
    worst, is_seen = 0.0, False
    with np.errstate(all="ignore"):
        inputs = [dense * support[:, None] for support in _supports(before)]
        for units, power in product(inputs, _powers(before)):
            old, new, *trials = (evaluate(weights, units, power) for weights in (before, after, *noisy))
            if not all(outputs.is_finite for outputs in (old, new, *trials)):
                continue
            is_seen = True
            top = np.maximum(old.exponents, new.exponents)
            Y = old.relative_to(top)
            gaps, sizes = _rows(new.relative_to(top) - Y), np.maximum(_rows(Y), _rows(new.relative_to(top)))
            errors = np.max([_rows(trial.relative_to(top) - Y) for trial in trials], axis=0)
            noise = (errors >= ROW_SWAMPED * sizes) & (sizes <= ROW_NEGLIGIBLE * np.max(sizes, axis=1, keepdims=True))
            allowed = np.where(noise, errors / ROW_SWAMPED, 0)
            relative = np.where(gaps <= allowed, 0, gaps / np.where(sizes > 0, sizes, 1))
            worst = max(worst, float(np.max(relative, initial=0.0)))
    return worst if is_seen else np.inf


def _supports(weights: Weights) -> list[Array]:
    """Sets of input coordinates, as 0 and 1: all of them, then without those that the first layer reads far more of.

    Beside a large column errors of a small one are not seen; inputs without the large one show them.
    """
    columns = np.max([np.abs(array).max(axis=0) for h in weights.layers[0] for array in (h.Q, h.K, h.V)], axis=0)
    supports = [np.ones(len(columns))]
    for size in sorted(set(columns.tolist()), reverse=True):
        rest = np.max(columns[columns < size], initial=0.0)
        if 0 < rest < size / COLUMNS_APART and len(supports) <= TRIED_SIZES:
            supports.append((columns < size).astype(float))
    return supports


def _rows(Y: Array) -> Array:
    return np.asarray(np.sqrt(np.sum(Y * Y, axis=-1)))


def _powers(weights: Weights) -> list[int]:
    """Powers of two for inputs below and above the sizes at which layers turn from negligible to saturated."""
    if weights.architecture.is_homogeneous:
        return [0]
    chosen = sorted({0, *(int(size) + step for size in natural_sizes(weights, weights) for step in (-2, 2))})
    return chosen[:: -(-len(chosen) // TRIED_SIZES)]
