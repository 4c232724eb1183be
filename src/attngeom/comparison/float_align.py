"""Same function, in floats: the difference of the outputs against what noise in the weights explains."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from attngeom.comparison.float_matching import FloatMatch, explained_misfit, match_floats
from attngeom.comparison.results import Comparison, NoMatch, Separation
from attngeom.errors import InputError
from attngeom.exact.domains import RR, Array
from attngeom.inspection.hypotheses import check_hypotheses, failed
from attngeom.network import Weights, random_symmetry
from attngeom.network.forward import forward_layer

SAMPLES = 16
NOISE_TRIALS = 6
MISFIT_TRIALS = 4
CLEARLY_LARGER = 30.0
LINEAR_REGIME = 0.1


@dataclass(frozen=True, eq=False)
class ScaledOutputs:
    """Outputs (N, d_l, t) as unit arrays times exp(logs), so that degree 3^l neither overflows nor underflows."""

    units: Array
    logs: Array


def scaled_outputs(weights: Weights, X: Array) -> ScaledOutputs:
    """The outputs at inputs X (N, d, t); lightning layers without skip, of degree 3, are scaled one by one."""
    architecture = weights.architecture
    degree = 3 if architecture.rule.is_polynomial and not architecture.residual else 1
    logs = np.zeros(len(X))
    Y = X
    for index in range(architecture.num_layers):
        Y = forward_layer(weights, index, Y)
        if degree == 3 or index == architecture.num_layers - 1:
            sizes = np.linalg.norm(Y, axis=(1, 2))
            safe = np.where(sizes > 0, sizes, 1.0)
            Y = Y / safe[:, None, None]
            logs = degree * logs + np.log(safe)
    return ScaledOutputs(Y, logs)


def relative_differences(first: ScaledOutputs, second: ScaledOutputs) -> Array:
    """‖Y − Y'‖ / max(‖Y‖, ‖Y'‖) for each input."""
    shift = np.clip(first.logs - second.logs, -600, 600)
    scale = np.exp(-np.abs(shift))
    left = first.units * np.where(shift < 0, scale, 1.0)[:, None, None]
    right = second.units * np.where(shift < 0, 1.0, scale)[:, None, None]
    return np.linalg.norm(left - right, axis=(1, 2))


def _inputs(first: Weights, second: Weights, rng: np.random.Generator) -> Array:
    """Random inputs, small enough that the outputs of residual networks stay finite."""
    architecture = first.architecture
    X = rng.standard_normal((SAMPLES, architecture.widths[0], architecture.tokens))
    with np.errstate(all="ignore"):
        for _ in range(60):
            if all(np.all(np.isfinite(scaled_outputs(w, X).logs)) for w in (first, second)):
                return X
            X = X / 4
    raise InputError("weights with outputs beyond the range of floats given; rescale them or use exact weights")


def perturb(weights: Weights, size: float, rng: np.random.Generator) -> Weights:
    """The weights with independent relative errors of the given standard deviation."""
    vector = weights.vector()
    return Weights.from_vector(weights.architecture, vector * (1 + size * rng.standard_normal(vector.shape)), RR)


def compare_floats(first: Weights, second: Weights, tolerance: float, seed: int) -> Comparison:
    """Whether outputs differ by more than relative errors of size ``tolerance`` in all weights explain.

    The explained noise is measured by perturbing the second weights. True: the difference is not larger than that
    noise, or a symmetry carries one to the other within ``tolerance``. False: it is at least 30 times larger. In
    between, or if the noise swamps the function, the misfit of the aligned weights is judged in the same way.

    >>> from attngeom.network import Architecture, random_weights
    >>> w = random_weights(Architecture((2, 2), 1), RR, seed=0)
    >>> compare_floats(w, w, 1e-9, seed=0).same_function
    True
    """
    rng = np.random.default_rng(seed)
    X = _inputs(first, second, rng)
    one, two = scaled_outputs(first, X), scaled_outputs(second, X)
    errors = relative_differences(one, two)
    difference = _rms(errors)
    trials = [
        _rms(relative_differences(scaled_outputs(perturb(second, tolerance, rng), X), two)) for _ in range(NOISE_TRIALS)
    ]
    noise = float(np.median(trials))
    match = match_floats(first, second)
    separation = _separation(X, one, two, int(np.argmax(errors)), first)
    verdict, reason = _decide(difference, noise, match, second, tolerance, seed)
    is_matched = isinstance(match, FloatMatch)
    return Comparison(
        same_function=verdict,
        standing="undecided" if verdict is None else "estimate",
        reason=reason,
        seed=seed,
        symmetry=match.symmetry if isinstance(match, FloatMatch) and verdict is not False else None,
        separation=separation if verdict is False else None,
        failed_hypotheses=() if is_matched else failed(check_hypotheses(second, tolerance)),
        misfit=match.residual if isinstance(match, FloatMatch) else None,
        difference=difference,
        noise=noise,
        tolerance=tolerance,
    )


def _rms(errors: Array) -> float:
    return float(np.sqrt(np.mean(errors**2)))


def _decide(
    difference: float, noise: float, match: FloatMatch | NoMatch, second: Weights, tolerance: float, seed: int
) -> tuple[bool | None, str]:
    seen = f"the outputs differ by {difference:.1e}; errors of {tolerance:.0e} in the weights explain {noise:.1e}"
    if isinstance(match, FloatMatch) and match.residual <= tolerance:
        return True, f"a symmetry carries the first weights to the second up to {match.residual:.1e}"
    if noise <= LINEAR_REGIME:
        if difference <= noise:
            return True, seen
        if difference >= CLEARLY_LARGER * noise:
            return False, seen
        seen += ": too close to tell"
    else:
        seen += ": the function is too sensitive to tell"
    return (None, seen) if isinstance(match, NoMatch) else _judge_misfit(match, second, tolerance, seed) or (None, seen)


def _judge_misfit(match: FloatMatch, second: Weights, tolerance: float, seed: int) -> tuple[bool | None, str] | None:
    """The verdict on the misfit of aligned weights, or None if errors of size ``tolerance`` swamp it."""
    rng = np.random.default_rng(seed)
    changed = [perturb(second, tolerance, rng) for _ in range(MISFIT_TRIALS)]
    explained = _rms(np.array([explained_misfit(second, weights, match.gauge) for weights in changed]))
    if not explained <= LINEAR_REGIME:
        return None
    seen = f"aligned weights differ by {match.misfit:.1e}; errors of {tolerance:.0e} explain {explained:.1e}"
    # In ill conditioned gauges errors explain a large misfit: the given weights must be met closely as well.
    if match.misfit <= explained and match.residual <= CLEARLY_LARGER * tolerance:
        return True, seen
    if match.misfit >= CLEARLY_LARGER * explained:
        # This speaks against equality only if an equal pair in other gauges would have been recognised.
        control = match_floats(second.act(random_symmetry(second.architecture, RR, seed)), changed[0])
        if isinstance(control, FloatMatch) and match.misfit >= CLEARLY_LARGER * control.misfit:
            return False, seen
    return None, f"{seen}: too close to tell"


def _separation(X: Array, first: ScaledOutputs, second: ScaledOutputs, place: int, weights: Weights) -> Separation:
    """The input with the largest difference, scaled so that the outputs are of size 1 where the degree allows it."""
    architecture = weights.architecture
    point, log, other = X[place], second.logs[place], first.logs[place]
    shift = 0.0
    if architecture.rule.is_polynomial and not architecture.residual:
        shift = max(log, other)
        point = point * np.exp(-shift / 3**architecture.num_layers)
    outputs = (
        first.units[place] * np.exp(max(other - shift, -700)),
        second.units[place] * np.exp(max(log - shift, -700)),
    )
    return Separation(point, outputs, RR)
