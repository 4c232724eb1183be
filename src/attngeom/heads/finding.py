"""Find the heads of a layer from its function: weights, coefficients, or a black box.

Softmax is looked at near zero: φ_j(X) = Σ V_h x̄ + Σ V_h C A_h x_j + O(X⁵), C the covariance of the tokens.
The third-order part is the table of the lightning layer with the same (A_h, V_h), so it gives each head up to
(λ A, V/λ); the first-order part Σ V_h gives the scales, if the V_h found are independent.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from attngeom import digits
from attngeom.errors import DomainError, InputError, check_positive
from attngeom.exact import lapack
from attngeom.exact.domains import QQ, RR, Array
from attngeom.exact.numbers import split_scale
from attngeom.heads.factors import unit_heads
from attngeom.heads.float_heads import Slices, TableSlices, WeightSlices, balanced, find_float_heads
from attngeom.heads.pencil import check_exact_size
from attngeom.heads.results import FoundHead, Heads, HeadsOutcome, Uniqueness
from attngeom.heads.summands import Decomposition, decompose
from attngeom.heads.uniqueness import heads_unique
from attngeom.layer.coefficients import Coefficients, layer_table
from attngeom.layer.interpolation import interpolate
from attngeom.layer.quadrics import polar_points, polarize
from attngeom.layer.splitting import LayerSplitting, apparent_mask, check_copies
from attngeom.limits.rounding import HEADS_RESIDUAL, RECOVERED_ERROR, TAYLOR_STEP
from attngeom.limits.trials import TAYLOR_SIZES
from attngeom.network import Architecture, Weights
from attngeom.network.attention import Lightning, Softmax
from attngeom.results import Failure, Standing


def softmax_table(box: Callable[[Array], Array], architecture: Architecture) -> tuple[Array, Array, float]:
    """The table of quadrics Σ V_h z (A_hᵀ z)ᵀ and the matrix Σ V_h, from values, with their relative accuracy.

    Tokens are y + z, and y for all others: C = c z zᵀ with c = (t − 1)/t². The part of column 1 that is even in y
    cancels against −y; what is left is V_h z (zᵀ A_h y) at order three.
    """
    d, t = architecture.widths[0], architecture.tokens
    tau = float(architecture.temperature)
    unit, points = np.eye(d), polar_points(d)
    # Every pair of a target direction e_m (token y) and a context direction z.
    y = np.repeat(unit, len(points), axis=0)
    z = np.tile(points, (d, 1)).astype(np.float64)
    cubic = _third_order(box, y, z, t) - _third_order(box, -y, z, t)
    # Σ V C A (y + z at token 0, y at token 1): token 1 has x_j = y; odd in y doubles it.
    values = cubic.reshape(d, len(points), -1) / 2 * (t * t / (t - 1)) * tau
    quadrics = polarize(np.transpose(values, (2, 0, 1)), RR)
    equal = np.repeat(unit[:, :, None], t, axis=2)
    total = np.asarray(box(equal), dtype=np.float64)[:, :, 0].T
    return np.ascontiguousarray(quadrics), total, 1e-9


def _third_order(box: Callable[[Array], Array], y: Array, z: Array, t: int) -> Array:
    """The coefficient of ε³ in column 1 of φ(ε X), X with tokens y + z, y, …, y (masked layers: see token 1)."""
    X = np.repeat(y[:, :, None], t, axis=2)
    X[:, :, 0] += z
    nodes = TAYLOR_STEP * np.arange(1, TAYLOR_SIZES + 1)
    values = np.stack([np.asarray(box(X * node), dtype=np.float64)[:, :, 1] for node in nodes])
    opposite = np.stack([np.asarray(box(-X * node), dtype=np.float64)[:, :, 1] for node in nodes])
    odd = (values - opposite) / 2
    powers = np.stack([nodes ** (2 * order + 1) for order in range(TAYLOR_SIZES)], axis=1)
    weights = lapack.inv(powers)[1]
    cubic: Array = np.tensordot(weights, odd, axes=1)
    return cubic


def scale_heads(heads: Heads, total: Array) -> Heads:
    """The heads with the scales c_h for which Σ c_h V_h is the given matrix; undecided if they are not unique."""
    if heads.outcome != "found" or not heads.blocks:
        return heads
    columns = np.stack([head.V.ravel() for head in heads.blocks], axis=1)
    domain = heads.blocks[0].domain
    if len({head.domain for head in heads.blocks}) > 1:
        return replace(heads, outcome="undecided", standing="undecided", blocks=(), reason="heads over several fields")
    if not domain.rounds:
        scales = (
            domain.solve(columns, domain.convert(total.ravel())) if domain.rank(columns) == columns.shape[1] else None
        )
    else:
        values = lapack.svdvals(columns)
        scales = lapack.lstsq(columns, total.ravel()) if values[-1] > 1e-8 * values[0] else None
        if scales is not None:
            miss = float(np.linalg.norm(columns @ scales - total.ravel()) / max(float(np.linalg.norm(total)), 1e-300))
            scales = scales if miss < 1e-5 else None
    if scales is None or any(not s for s in scales.tolist()):
        reason = "Σ V_h does not give the scales of the heads: the V_h found are dependent, or the sum does not fit"
        return replace(heads, outcome="undecided", standing="undecided", blocks=(), unique=None, reason=reason)
    inverses = domain.invert(scales)
    blocks = tuple(replace(head, A=head.A * inverses[h], V=head.V * scales[h]) for h, head in enumerate(heads.blocks))
    return replace(heads, blocks=blocks)


FOUND = (Lightning.name, Softmax.name)
"""Kinds whose heads are found: by their cubic form, or by that of their outputs near zero."""


@dataclass(frozen=True)
class _Request:
    """The number of heads and Σ v, Σ a, where they are known, the accuracy of float input, and the seed."""

    heads: int | None
    totals: tuple[int, int] | None
    noise: float
    seed: int


def find_heads(
    source: Coefficients | Weights | Callable[[Array], Array],
    heads: int | None = None,
    sizes: Sequence[tuple[int, int]] | None = None,
    *,
    architecture: Architecture | None = None,
    noise: float = 0.0,
    seed: int = 0,
) -> Heads:
    """The heads of one layer from its function, for t ≥ 2: φ(X) = Σ_h V_h X Xᵀ A_h X as a direct sum.

    Exact over Q (commutant, idempotents, one-head splitting), in floats by block forms of random slices. ``heads``
    or ``sizes`` = ((a_1, v_1), …) say what is expected. A callable is a black box of floats and needs its
    ``architecture``, of one layer, lightning or softmax. ``noise`` is the relative accuracy of float input.

    >>> from attngeom.network import random_weights
    >>> found = find_heads(random_weights(Architecture((4, 4), 2, heads=2), QQ, seed=0))
    >>> found.outcome, found.unique, [(head.a, head.v) for head in found.blocks]
    ('found', True, [(2, 2), (2, 2)])
    """
    heads, totals = _expected(heads, sizes)
    if not 0 <= noise < 1:
        raise InputError(f"noise = {noise} given; a relative accuracy from 0 to below 1 is required")
    request = _Request(heads, totals, noise, seed)
    if isinstance(source, Weights):
        result = _from_weights(source, request)
    elif isinstance(source, Coefficients):
        result = _from_coefficients(source, request)
    elif callable(source):
        result = _from_box(source, architecture, request)
    else:
        raise InputError(f"{type(source).__name__} given; weights, coefficients or a function are required")
    return _check_expected(result, heads, sizes)


def heads(
    source: Coefficients | Weights, count: int | None = None, *, noise: float = 0.0, seed: int = 0
) -> Heads | Uniqueness:
    """Whether the heads of given weights are unique, or which heads give these coefficients: ``attngeom heads``.

    >>> from attngeom.network import random_weights
    >>> heads(random_weights(Architecture((4, 4), 2, heads=2), QQ, seed=0)).is_positive
    True
    """
    if isinstance(source, Coefficients):
        return find_heads(source, count, noise=noise, seed=seed)
    if count is not None:
        raise InputError("a number of heads given with weights, which have their own heads; leave it out")
    return heads_unique(source)


def _expected(heads: int | None, sizes: Sequence[tuple[int, int]] | None) -> tuple[int | None, tuple[int, int] | None]:
    """The number of heads and Σ v, Σ a, where they are given."""
    if heads is not None:
        check_positive("heads", heads)
    if sizes is None:
        return heads, None
    if not sizes or any(len(pair) != 2 or min(pair) < 1 for pair in sizes):
        raise InputError(f"sizes = {str(sizes)[:60]} given; pairs (a, v) of positive integers are required")
    if heads is not None and heads != len(sizes):
        raise InputError(f"{heads} heads and {len(sizes)} sizes given; one pair (a, v) for each head is required")
    return len(sizes), (sum(v for _, v in sizes), sum(a for a, _ in sizes))


def _check_expected(found: Heads, heads: int | None, sizes: Sequence[tuple[int, int]] | None) -> Heads:
    """The answer, unless other heads were found than expected: then none are given."""
    if found.outcome != "found":
        return found
    shown = sorted((block.a, block.v) for block in found.blocks)
    if heads is not None and len(shown) != heads:
        reason = f"as a direct sum the function has {len(shown)} heads, {heads} were expected"
    elif sizes is not None and shown != sorted(tuple(pair) for pair in sizes):
        reason = f"as a direct sum the function has heads of widths (a, v) = {str(shown)[:80]}, others were expected"
    else:
        return found
    is_decided = bool(found.unique) and found.is_proven
    return Heads(
        standing="proven" if is_decided else "undecided",
        reason=reason,
        seed=found.seed,
        outcome="none" if is_decided else "undecided",
        ranks=found.ranks,
        commutant=found.commutant,
        gap=found.gap,
    )


def _undecided(reason: str, seed: int, ranks: tuple[int, int] | None = None) -> Heads:
    return Heads(standing="undecided", reason=reason, seed=seed, outcome="undecided", ranks=ranks)


def _from_weights(weights: Weights, request: _Request) -> Heads:
    architecture, domain = weights.architecture, weights.domain
    _check_architecture(architecture)
    if domain.rounds:
        if not np.all(np.isfinite(weights.vector())):
            raise InputError("weights with NaN or infinite entries given; finite numbers are required")
        unit, exponents = unit_heads(weights)
        largest = max(exponents)
        scales = [float(np.ldexp(1.0, max(exponent - largest, -1074))) for exponent in exponents]
        heads = _scaled(_in_floats(WeightSlices(unit, scales), request), largest)
    elif domain.is_rational:
        check_exact_size(*architecture.widths)
        heads = _exactly(layer_table(weights), request.seed)
    else:
        raise DomainError(f"weights over {domain.name} given; rational numbers or floats are required")
    if architecture.is_cubic:
        return heads
    values = weights.value_matrices()[0]
    return scale_heads(heads, domain.reduce(sum(values[1:], start=values[0])))


def _check_architecture(architecture: Architecture) -> None:
    if architecture.num_layers != 1 or architecture.rule.name not in FOUND:
        raise InputError(
            f"{architecture.num_layers} layers of {architecture.kind} attention given;"
            " one lightning or softmax layer is required"
        )
    if architecture.tokens < 2:
        raise InputError("one token given; heads are found from pairs of tokens, so t ≥ 2 is required")


def _from_coefficients(coefficients: Coefficients, request: _Request) -> Heads:
    if coefficients.t < 2:
        raise InputError("coefficients of one token given; heads are found from pairs of tokens, so t ≥ 2 is required")
    domain = coefficients.domain
    obstacle = check_copies(coefficients, apparent_mask(coefficients), max(RECOVERED_ERROR, 10 * request.noise))
    if obstacle is not None:
        standing: Standing = "proven" if domain.is_exact else "estimate"
        return Heads(standing=standing, reason=obstacle.reason, seed=request.seed, outcome="none")
    if domain.rounds:
        unit, exponent = split_scale(np.ascontiguousarray(coefficients.table))
        return _scaled(_in_floats(TableSlices(unit), request), exponent)
    if not domain.is_rational:
        raise DomainError(f"coefficients over {domain.name} given; rational numbers or floats are required")
    check_exact_size(coefficients.d, coefficients.d_out)
    return _exactly(coefficients.table, request.seed)


def _from_box(box: Callable[[Array], Array], architecture: Architecture | None, request: _Request) -> Heads:
    if architecture is None:
        raise InputError("a black box without an architecture was given; its widths, tokens and kind are required")
    _check_architecture(architecture)
    if architecture.residual:
        raise InputError("a black box with a skip connection was given; subtract its input from its output")
    if not architecture.is_cubic:
        table, total, accuracy = softmax_table(box, architecture)
        heads = _in_floats(TableSlices(table), replace(request, noise=max(request.noise, accuracy)))
        return scale_heads(heads, total)
    d, d_out = architecture.widths
    tolerance = max(RECOVERED_ERROR, 10 * request.noise)
    values = interpolate(box, d, d_out, architecture.tokens, RR, request.seed, tolerance=tolerance)
    return _from_coefficients(values.coefficients, request)


def _scaled(heads: Heads, exponent: int) -> Heads:
    """The heads of 2^exponent times the function."""
    blocks = tuple(head.scaled(exponent) for head in heads.blocks)
    if not all(np.all(np.isfinite(matrix)) for head in blocks for matrix in (head.A, head.V)):
        return _undecided("the heads were found, but their entries leave the range of floats; scale the weights", 0)
    return replace(heads, blocks=blocks)


def _in_floats(source: Slices, request: _Request) -> Heads:
    """The heads as an estimate: nothing is proven, and nothing is given unless the sum of the heads fits."""
    noise, seed = request.noise, request.seed
    result = find_float_heads(source, request.heads, request.totals, noise, seed)
    if isinstance(result, Failure):
        return _undecided(result.reason, seed)
    ranks = result.ranks[0].value, result.ranks[1].value
    blocks = result.blocks
    tolerance = min(max(RECOVERED_ERROR, 100 * noise * max(blocks.amplification, 1.0)), HEADS_RESIDUAL)
    known: dict[str, Any] = {"seed": seed, "ranks": ranks, "gap": blocks.gap, "residual": result.residual}
    known["amplification"] = blocks.amplification
    heads = [head for head in result.heads if head is not None]
    if len(heads) < len(result.heads) or not result.residual <= tolerance:
        reason = (
            f"the best {len(result.heads)} blocks miss the function by {digits.error(result.residual)}, or are no heads"
        )
        return Heads(standing="undecided", reason=reason, outcome="undecided", **known)
    balanced_heads = tuple(FoundHead(*balanced(*head), RR, a, v) for head, (v, a) in zip(heads, blocks.sizes))
    reason = f"{len(balanced_heads)} heads fit the function to {digits.error(result.residual)}"
    return Heads(standing="estimate", reason=reason, outcome="found", blocks=balanced_heads, **known)


def _exactly(table: Array, seed: int) -> Heads:
    if QQ.is_zero(table):
        reason = "the zero function: its heads can be any that cancel"
        return Heads(standing="proven", reason=reason, seed=seed, outcome="found", unique=False, ranks=(0, 0))
    decomposition = decompose(table, seed)
    if decomposition is None:
        return _undecided("the numbers of the commutant are too long for an exact search; give floats", seed)
    return describe(decomposition, seed)


def describe(found: Decomposition, seed: int) -> Heads:
    """The answer that a decomposition over Q gives."""
    ranks, size = found.pencil.shape, len(found.basis)

    def answer(
        outcome: HeadsOutcome, reason: str, standing: Standing = "proven", blocks: tuple[FoundHead, ...] = ()
    ) -> Heads:
        return Heads(
            standing=standing,
            reason=reason,
            seed=seed,
            outcome=outcome,
            blocks=blocks,
            unique=None if not blocks else size == len(blocks),
            ranks=ranks,
            commutant=size,
        )

    for number, (summand, split) in enumerate(zip(found.summands, found.splittings)):
        name = f"no direct sum of heads: summand {number + 1}"
        if summand.kind == "brick" and split.status == "none":
            return answer("none", f"{name} is indecomposable; {split.reason}")
        if summand.kind == "local":
            return answer("none", f"{name} is indecomposable, but more than scalars commute")
        if any(each.status == "none" for each in found.conjugates(number) or ()):
            return answer("none", f"{name} splits into two that are no heads")
    heads: list[LayerSplitting] = []
    missing = ""
    for number, summand in enumerate(found.summands):
        real = found.real_heads(number)
        if real is not None:
            heads += real
        elif not summand.is_real:
            reason = f"summand {number + 1} splits into complex conjugates only: there are no real heads"
            return answer("conjugate", reason)
        elif summand.kind == "brick":
            return answer("conjugate", "the linear factors of a head are conjugate: there are no real weights")
        elif summand.kind == "field":
            missing = f"summand {number + 1} splits over a real field, and heads are sought over Q and Q(√D) alone"
        else:
            missing = f"summand {number + 1} has a larger commutant and was not split further"
    if missing:
        return answer("undecided", missing, "undecided")
    blocks = tuple(map(FoundHead.of, heads))
    if size == len(blocks):
        reason = "only one scalar for each head commutes: all layers with these rank sums have these heads (Theorem H)"
    else:
        reason = f"the commutant has dimension {size}: the heads are not unique (Theorem H)"
    return answer("found", reason, "theorem" if size == len(blocks) else "proven", blocks)
