"""Outputs of two float networks at inputs of many sizes, against what errors of the weights explain.

Inputs are random, with all coordinates of one size or of many, at sizes at which the attention of some layer is neither
flat nor saturated. Beside a skip connection what is added to the input is compared, so that small layers are seen.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from attngeom.canonical.evaluation import ScaledOutputs, evaluate_floats
from attngeom.comparison.quiet_inputs import quiet_inputs
from attngeom.comparison.results import Report, ignore
from attngeom.comparison.samples import COPIES, FAR, NEAR, ROUNDING, Layers, copy_of, spread
from attngeom.errors import SizeError
from attngeom.exact.domains import Array
from attngeom.network import Architecture, Weights
from attngeom.network.input_sizes import MAX_TRIED, natural_sizes, telling_sizes
from attngeom.network.tokens import telling_tokens

INPUTS, MORE_INPUTS = 24, 108
MAX_ENTRIES = 4 * 10**6
MAX_TOKENS = 512
"""Tokens of one input; networks that need more are refused."""
VERY_FAR = 10 * FAR
WIDE = 12


@dataclass(frozen=True, eq=False)
class OutputTest:
    """What the outputs show, and the most telling input.

    ``worst`` is the largest ratio of a difference to its noise; far apart are outputs that differ by much more than
    their noise at two inputs. ``difference`` and ``noise`` are relative to the outputs, root mean squares over the
    inputs; ``excess`` is the part of the difference that is not due to rounding, ``is_rounding`` says that there may be
    none; ``largest`` is the largest difference of a row of an output, or what rounding explains of it if that is
    more, relative to that row.
    """

    X: Array
    exponents: Array
    is_far: bool
    worst: float
    difference: float
    noise: float
    excess: float
    largest: float
    is_rounding: bool
    place: int


def draw_inputs(first: Weights, second: Weights, seed: int) -> Array:
    """Inputs (N, d, t) at the sizes at which some layer can be seen."""
    architecture = first.architecture
    is_plain = architecture.is_homogeneous or architecture.num_layers == 1
    count = _affordable(architecture, INPUTS if is_plain else MORE_INPUTS)
    sizes = telling_sizes(first, second, seed, _affordable(architecture, MAX_TRIED))
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((count, architecture.widths[0], telling_tokens(architecture)))
    spread = rng.integers(-WIDE, WIDE + 1, size=(count, architecture.widths[0], 1))
    spread[::2] = 0
    return np.asarray(np.ldexp(X, spread + np.resize(sizes, count)[:, None, None]))


def draw_quiet_inputs(first: Weights, second: Weights, seed: int) -> Array:
    """Inputs at which the large parts of a layer are silent, at the smallest and the largest natural size."""
    architecture = first.architecture
    sizes = np.unique(natural_sizes(first, second)[[0, -1]])
    X = quiet_inputs(first, second, sizes, telling_tokens(architecture), seed)
    return X[: _affordable(architecture, len(X))]


def check_tokens(architecture: Architecture) -> None:
    """Refuse networks whose outputs are seen at long inputs only."""
    if telling_tokens(architecture) > MAX_TOKENS:
        raise SizeError(
            f"{architecture.tokens:,} tokens, {architecture.kind} without mask: floats are compared for at most"
            f" {MAX_TOKENS}, or softmax for a multiple of a number from 3 to 64; give such a number of tokens"
        )


def _affordable(architecture: Architecture, most: int) -> int:
    """The number of inputs whose scores fit into memory, at least one and at most so many."""
    tokens = telling_tokens(architecture)
    return min(max(MAX_ENTRIES // (tokens * (tokens + architecture.widths[0]) * architecture.heads), 1), most)


def _largest_exponents(one: ScaledOutputs, two: ScaledOutputs) -> Array:
    """For each input the exponent of the larger output; zero has none."""
    sides = [np.where(np.any(x.units, axis=(1, 2)), x.exponents, y.exponents) for x, y in ((one, two), (two, one))]
    return np.asarray(np.maximum(*sides))


def judge_outputs(
    architecture: Architecture, one: Layers, two: Layers, X: Array, tolerance: float, report: Report = ignore
) -> OutputTest:
    """Compare the outputs at the inputs X, entry by entry, with the noise of the copies."""
    with np.errstate(all="ignore"):
        sides: list[list[ScaledOutputs]] = [[], []]
        for done in range(2 * (COPIES + 1)):
            report("evaluating", done, 2 * (COPIES + 1))
            k, side = divmod(done, 2)
            sides[side].append(evaluate_floats(copy_of(architecture, (one, two)[side], k), X))
        largest = _largest_exponents(sides[0][0], sides[1][0])
        values = [[outputs.relative_to(largest) for outputs in side] for side in sides]
        difference = np.abs(values[0][0] - values[1][0])
        noise = np.hypot(*(spread(np.stack(side)) for side in values))
        size = np.maximum(*(np.abs(side[0]) for side in values))
        finite = np.isfinite(difference) & np.isfinite(noise)
        ratio = np.where(difference > 0, difference / noise, 0.0)
        ratio = np.where(finite, np.nan_to_num(ratio, posinf=1e300), 0.0)
        worst = np.max(ratio, axis=(1, 2), initial=0.0)
        shown = [np.linalg.norm(np.where(finite, x, 0.0), axis=(1, 2)) for x in (difference, noise, size)]
        relative = [np.where(shown[2] > 0, x / shown[2], 0.0) for x in shown[:2]]
        rounding = noise * (ROUNDING / max(tolerance, ROUNDING))
        rows = [np.max(x, axis=2) for x in (np.maximum(difference, rounding), size)]
        row_gap = float(np.max(np.where(rows[0] > 0, rows[0] / rows[1], 0.0), initial=0.0))
    is_far = bool(np.sum(worst > FAR) >= 2 or np.any(worst > VERY_FAR))
    shows = bool(np.all(finite)) and bool(np.any(size > 0))
    exact = np.where(shown[0] > FAR * shown[1] * (ROUNDING / max(tolerance, ROUNDING)), relative[0], 0.0)
    rms = [float(np.sqrt(np.mean(x**2))) for x in (*relative, exact)]
    place = int(np.argmax(np.where(worst > FAR, relative[0], -1.0)))
    return OutputTest(
        X=X,
        exponents=largest,
        is_far=is_far,
        worst=float(worst.max()) if shows else np.inf,
        difference=rms[0],
        noise=rms[1],
        excess=rms[2],
        largest=row_gap if shows else np.inf,
        is_rounding=shows and bool(np.all(difference <= NEAR * rounding)),
        place=place,
    )
