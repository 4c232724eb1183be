"""Comparison for kinds of attention beyond the papers: by the invariants of heads, or an input that separates."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from attngeom.comparison.results import Comparison, Report, Separation
from attngeom.comparison.samples import error_sizes, spread
from attngeom.errors import DomainError, InputError, SingularError
from attngeom.exact.domains import QQ, RR, Array, Balls
from attngeom.limits.memory import SAMPLE_TOKENS
from attngeom.limits.rounding import NOISE_EXCLUDED, NOISE_EXPLAINS, SEPARATING_BITS, SUM_ROUNDING
from attngeom.limits.trials import NOISE_COPIES, SEPARATING_INPUTS, SEPARATING_SHRINK
from attngeom.network import Weights, forward
from attngeom.network.invariants import HeadInvariants, exchanged, head_invariants, layer_bias, pivot_of
from attngeom.network.programs import is_rational

Same = Callable[[Array, Array], bool]
"""Whether two arrays (copies, entries) agree: exactly, or within the noise that the copies show."""
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
    if _match([first], [second], QQ.equal):
        return Comparison.proven(True, SAME, seed=seed)
    separation = _separate(first, second, seed)
    if separation is not None:
        return Comparison.proven(False, "an input with different outputs", separation=separation, seed=seed)
    return Comparison(same_function=None, standing="undecided", reason=NOT_TOLD, seed=seed)


def _match(first: list[Weights], second: list[Weights], same: Same) -> bool:
    """Whether the layers have the same invariants: biases, and heads in some order; each side with its copies."""
    kind = first[0].architecture.mechanism
    for index, heads in enumerate(first[0].layers):
        bias, other = _biases(first, index), _biases(second, index)
        if bias is not None and other is not None and not same(bias, other):
            return False
        remaining = list(range(len(heads)))
        for place, head in enumerate(heads):
            pivot = pivot_of(head, kind, first[0].domain)
            own = next(_variants(first, index, place, pivot), None)
            candidates = list(remaining) if kind.orders_heads else [place]
            equal = next((k for k in candidates if own and _is_equal(own, second, index, k, pivot, same)), None)
            if equal is None:
                return False
            remaining.remove(equal)
    return True


def _biases(side: list[Weights], index: int) -> Array | None:
    biases = [bias.ravel() for copy in side if (bias := layer_bias(copy, index)) is not None]
    return np.stack(biases) if biases else None


def _is_equal(
    own: HeadInvariants, side: list[Weights], index: int, place: int, pivot: tuple[int, int], same: Same
) -> bool:
    return any(
        same(own.whole, other.whole) and _same_rows(own.channels, other.channels, same)
        for other in _variants(side, index, place, pivot)
    )


def _variants(side: list[Weights], index: int, place: int, pivot: tuple[int, int]) -> Iterator[HeadInvariants]:
    """The invariants of a head for all copies, and with its two maps exchanged where it has two."""
    kind, domain = side[0].architecture.mechanism, side[0].domain
    heads = [copy.layers[index][place] for copy in side]
    choices = [heads]
    if "lambda" in heads[0].extra and not domain.is_zero(heads[0].extra["lambda"]):
        choices.append([exchanged(head, domain) for head in heads])
    for choice in choices:
        try:
            invariants = [head_invariants(head, kind, domain, pivot) for head in choice]
        except (InputError, SingularError):
            continue
        yield HeadInvariants(np.stack([x.whole for x in invariants]), np.stack([x.channels for x in invariants]))


def _same_rows(one: Array, two: Array, same: Same) -> bool:
    """Whether two arrays (copies, rows, entries) have the same rows in some order."""
    remaining = list(range(two.shape[1]))
    for row in range(one.shape[1]):
        equal = next((k for k in remaining if same(one[:, row], two[:, k])), None)
        if equal is None:
            return False
        remaining.remove(equal)
    return True


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
    if _match(copies[0], copies[1], _is_within_noise):
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
