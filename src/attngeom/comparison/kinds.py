"""Comparison for kinds of attention beyond the papers: by the invariants of heads, or an input that separates."""

from __future__ import annotations

import numpy as np

from attngeom.comparison.kind_matching import match_layers
from attngeom.comparison.results import Comparison, Report, Separation
from attngeom.comparison.samples import error_sizes, spread
from attngeom.errors import DomainError, SingularError
from attngeom.exact.domains import QQ, RR, Array, Balls
from attngeom.limits.memory import SAMPLE_TOKENS
from attngeom.limits.rounding import NOISE_EXCLUDED, NOISE_EXPLAINS, SEPARATING_BITS, SUM_ROUNDING
from attngeom.limits.trials import NOISE_COPIES, SEPARATING_INPUTS, SEPARATING_SHRINK
from attngeom.network import Weights, forward
from attngeom.network.programs import is_rational

SAME = "heads with the same invariants, on which the function depends at every number of tokens"
NOT_TOLD = "no symmetry of single layers carries one to the other, and no input that was tried separates them"


def compare_kinds(first: Weights, second: Weights, tolerance: float, seed: int, report: Report) -> Comparison:
    """Whether two networks of a kind beyond the papers, or with options, are one function.

    Same: layer by layer, heads have the same invariants in some order. Different: an input with different outputs,
    exactly, in balls, or for floats beyond what weights known to ``tolerance`` explain. Else it cannot be told.
    """
    if first.domain.rounds:
        return _compare_floats(first, second, tolerance, seed, report)
    if first.domain != QQ:
        raise DomainError(f"weights over {first.domain.name} given; rational or float weights are required")
    report("invariants", 0, None)
    if match_layers([first], [second], QQ.equal):
        return Comparison.proven(True, SAME, seed=seed)
    separation = _separate(first, second, seed)
    if separation is not None:
        return Comparison.proven(False, "an input with different outputs", separation=separation, seed=seed)
    return Comparison(same_function=None, standing="undecided", reason=NOT_TOLD, seed=seed)


def _separate(first: Weights, second: Weights, seed: int) -> Separation | None:
    """An input at which exact outputs differ, or balls do not overlap."""
    architecture = first.architecture
    rng = np.random.default_rng(seed)
    shape = (architecture.widths[0], min(architecture.tokens, SAMPLE_TOKENS))
    rational = is_rational(architecture)
    for number in range(SEPARATING_INPUTS):
        X = QQ.convert(rng.integers(-9, 10, size=shape)) / SEPARATING_SHRINK ** (number % 4)
        for domain in [QQ] if rational else [Balls(bits) for bits in SEPARATING_BITS]:
            try:
                outputs = [forward(weights.to(domain), domain.convert(X)) for weights in (first, second)]
            except (SingularError, DomainError):
                continue
            if not domain.equal(*outputs):
                return Separation(X, (outputs[0], outputs[1]), domain)
    return None


def _compare_floats(first: Weights, second: Weights, tolerance: float, seed: int, report: Report) -> Comparison:
    """Floats: differences of invariants within four times their noise, or of outputs beyond thirty times theirs."""
    report("invariants", 0, None)
    copies = [_copies(weights, tolerance, seed) for weights in (first, second)]
    if match_layers(copies[0], copies[1], _is_within_noise):
        reason = f"{SAME}, to the accuracy {tolerance:g}"
        return Comparison(same_function=True, standing="estimate", reason=reason, tolerance=tolerance, seed=seed)
    rng = np.random.default_rng(seed)
    architecture = first.architecture
    shape = (SEPARATING_INPUTS, architecture.widths[0], min(architecture.tokens, SAMPLE_TOKENS))
    X = rng.standard_normal(shape)
    with np.errstate(all="ignore"):
        outputs = [np.stack([forward(weights, X) for weights in side]) for side in copies]
    difference = np.abs(outputs[0][0] - outputs[1][0])
    noise = np.hypot(*(spread(side) for side in outputs))
    if np.all(np.isfinite(difference)) and np.any(difference > NOISE_EXCLUDED * noise):
        place = int(np.argmax((difference / np.maximum(noise, 1e-300)).max(axis=(1, 2))))
        separation = Separation(X[place], (outputs[0][0][place], outputs[1][0][place]), RR)
        return Comparison(
            same_function=False,
            standing="estimate",
            reason="an input with outputs farther apart than inaccurate weights explain",
            separation=separation,
            tolerance=tolerance,
            difference=float(difference[place].max()),
            noise=float(noise[place].max()),
            seed=seed,
        )
    return Comparison(same_function=None, standing="undecided", reason=NOT_TOLD, tolerance=tolerance, seed=seed)


def _copies(weights: Weights, tolerance: float, seed: int) -> list[Weights]:
    """The weights, and copies with the errors that a tolerance allows."""
    rng = np.random.default_rng(seed)
    tensors = dict(weights.tensors())
    sizes = {name: error_sizes(array, tolerance) for name, array in tensors.items()}
    copies = [weights]
    for _ in range(NOISE_COPIES):
        noisy = {name: array + sizes[name] * rng.standard_normal(array.shape) for name, array in tensors.items()}
        copies.append(Weights.from_tensors(weights.architecture, noisy, RR))
    return copies


def _is_within_noise(one: Array, two: Array) -> bool:
    """Whether every entry differs by at most four times its noise, and by rounding errors."""
    noise = np.hypot(spread(one), spread(two))
    return bool(np.all(np.abs(one[0] - two[0]) <= NOISE_EXPLAINS * noise + SUM_ROUNDING * np.abs(one[0])))
