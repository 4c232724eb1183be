"""Theorem B (any network): two ranks at a point, of the differential in Θ and of the symmetries on Θ, that add up.

The proofs, also of Theorem R and of the two bounds for λ that are left otherwise, are in docs/theorems/learning.md.
Lightning attention is evaluated mod p. So are softmax and sigmoid, with formal attention weights in place of those of
the scores, where the scores at these weights are independent (Lemma 1); elsewhere balls enclose the differential.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from attngeom.dimensions.counts import upper_bound
from attngeom.errors import DomainError, SizeError
from attngeom.exact.arrays import swap
from attngeom.exact.domains import GF, QQ, RR, Array, Balls, Domain, PrimeField
from attngeom.exact.numbers import BLAS_PRIME, modulo_some_prime
from attngeom.exact.points import name_point, residues
from attngeom.exact.precise import Rank, certify_rank, measured_rank
from attngeom.learning.blocks import HeadBlocks
from attngeom.learning.enlarged import Enlarged, enlarge, plain
from attngeom.learning.pairs import HALF, Pair, PairFinding
from attngeom.limits.memory import CERTIFIED_BALLS, CERTIFIED_JACOBIAN
from attngeom.limits.rounding import RANK_BITS
from attngeom.limits.trials import FEW_INPUT_SCALES, LEAST_TOKENS, POINT_TOKENS, SPARE_SAMPLES
from attngeom.network.architecture import Architecture
from attngeom.network.weights import Weights


@dataclass(frozen=True)
class Ranks:
    """Lower bounds for ranks at a point; numbers of floats are measured, and ``is_clear`` says whether with a gap."""

    jacobian: int
    action: int
    prime: int | None = None
    rows: int = 0
    tokens: int = 0
    is_clear: bool = True


def by_ranks(
    weights: Weights, blocks: tuple[tuple[HeadBlocks, ...], ...], seed: int, inputs: Array | None
) -> PairFinding:
    """What the ranks at the point say: Theorem B, Theorem R, bounds that meet, or bounds.

    >>> from attngeom.learning.blocks import head_blocks
    >>> from attngeom.network import Architecture, random_weights
    >>> w = random_weights(Architecture((3, 3, 3), 3), QQ, seed=0)
    >>> str(by_ranks(w, head_blocks(w), 0, None).pair)
    '(25/2, 1)'
    """
    theta = enlarge(weights, blocks)
    try:
        ranks = _ranks(theta, theta.dimension, theta.dimension, seed, inputs)
    except SizeError as error:
        return PairFinding("none", f"not proven: {error}", lower=Fraction(0), upper=theta.pair.value)
    pair = theta.pair.less(ranks.action)
    numbers = f"rank {ranks.jacobian} + {ranks.action} of {theta.dimension}"
    witness = {"prime": ranks.prime, "point": name_point(seed), "samples": ranks.rows, "tokens": ranks.tokens}
    if ranks.jacobian + ranks.action >= theta.dimension:
        reason = f"{numbers}: the function determines the products up to symmetries, to first order"
        return PairFinding("B", reason, pair, is_clear=ranks.is_clear, witness=witness)
    return _by_bounds(weights, pair, ranks, numbers, witness, seed, inputs)


def _by_bounds(
    weights: Weights,
    pair: Pair,
    ranks: Ranks,
    numbers: str,
    witness: dict[str, int | str | None],
    seed: int,
    inputs: Array | None,
) -> PairFinding:
    """½ rank dφ ≤ λ ≤ Σ λ(block) − ½ rank of the symmetries; and λ = ½ rank dφ where this is the largest rank."""
    most, rows = upper_bound(weights.architecture).value, weights.architecture.num_parameters
    try:
        own = _ranks(plain(weights), rows, rows, seed, inputs)
    except SizeError as error:
        return PairFinding("none", f"not proven: {numbers}; {error}", lower=Fraction(0), upper=pair.value)
    clear = ranks.is_clear and own.is_clear
    witness = {**witness, "samples": own.rows}
    if own.jacobian >= most:
        reason = f"the rank of the differential is {most}, the largest that this architecture has"
        return PairFinding("R", reason, Pair.coordinates(most), is_clear=own.is_clear, witness=witness)
    lower = HALF * own.jacobian
    if lower == pair.value:
        reason = f"the bounds ½ rank dφ and Σ λ(block) − ½ rank of the symmetries are both {lower}"
        return PairFinding("bounds", reason, Pair(lower), is_clear=clear, witness=witness)
    reason = f"not proven: {numbers}; the differential in the weights has rank {own.jacobian} of at most {most}"
    return PairFinding("none", reason, lower=lower, upper=pair.value, is_clear=clear, witness=witness)


def _ranks(theta: Enlarged, rows: int, wanted: int, seed: int, inputs: Array | None) -> Ranks:
    """Both ranks, by arithmetic that fits the weights: mod p, balls, an extension of Q, or floats."""
    weights = theta.weights
    domain, rule = weights.domain, weights.architecture.rule
    samples = (
        rows + SPARE_SAMPLES if inputs is None else len(inputs) * inputs.shape[-1] * weights.architecture.widths[-1]
    )
    if domain.rounds:
        _check_size(theta, samples, CERTIFIED_JACOBIAN)
        return _in_floats(theta, 2 * samples, seed, inputs)
    if not rule.is_polynomial:
        formal = _formally(theta, samples, wanted, seed) if inputs is None and domain.is_rational else None
        if formal is not None and formal.jacobian + formal.action >= wanted:
            return formal
        try:
            _check_size(theta, 2 * samples, CERTIFIED_BALLS)
        except SizeError:
            if formal is None:
                raise
            return formal
        enclosed = _in_balls(theta, 2 * samples, seed, inputs)
        return enclosed if formal is None or enclosed.jacobian > formal.jacobian else formal
    if domain.is_rational:
        _check_size(theta, samples, CERTIFIED_JACOBIAN)
        return _mod_p(theta, samples, seed, inputs)
    _check_size(theta, samples, CERTIFIED_BALLS)
    X, C = _draw(theta, samples, domain, seed, inputs)
    return Ranks(domain.rank(theta.jacobian(X, C)), domain.rank(theta.action()), None, samples, X.shape[1])


def _check_size(theta: Enlarged, rows: int, most: int) -> None:
    """The Jacobian has a row for each sample, the symmetries have one for each generator."""
    layers = theta.weights.architecture.layers
    generators = sum(width**2 for width in theta.weights.architecture.widths[1:-1]) + len(layers)
    moved = sum(layer.heads * layer.d_in * (layer.d_in + layer.d_out) for layer in layers)
    entries = max(rows * theta.num_columns, generators * moved)
    if entries > most:
        raise SizeError(f"a Jacobian of {entries:,} entries is needed; at most {most:,} are computed")


def _formally(theta: Enlarged, rows: int, wanted: int, seed: int) -> Ranks | None:
    """Ranks mod p with formal attention, at inputs of three or two different tokens; None if scores are dependent."""
    best = None
    for tokens in range(min(theta.weights.architecture.tokens, LEAST_TOKENS), 1, -1):
        columns = count_scores(theta.weights.architecture, tokens)
        _check_size(theta, max(rows, columns), CERTIFIED_JACOBIAN)
        ranks = _at_formal_point(theta, max(rows, columns + SPARE_SAMPLES), tokens, seed)
        if ranks is not None and (best is None or ranks.jacobian > best.jacobian):
            best = ranks
        if best is not None and best.jacobian + best.action >= wanted:
            break
    return best


def count_scores(architecture: Architecture, tokens: int) -> int:
    """The functions of Lemma 1: 1, the entries of X, and the scores (softmax: their differences) of all heads."""
    seen = int(architecture.mask.visible(tokens).sum()) - (tokens if architecture.rule.is_normalised else 0)
    return 1 + architecture.widths[0] * tokens + architecture.num_layers * architecture.heads * seen


def _at_formal_point(theta: Enlarged, rows: int, tokens: int, seed: int) -> Ranks | None:
    """The ranks at a named point, if 1, the inputs and the scores are linearly independent there: Lemma 1."""
    architecture, name = theta.weights.architecture, name_point(seed)
    rule, visible = architecture.rule, architecture.mask.visible(tokens)

    def at(p: int) -> Enlarged:
        GF(p).convert([rule.temperature, 1 / rule.temperature])
        return Enlarged(theta.weights.to(GF(p)), theta.forms)

    p, reduced = modulo_some_prime(at, BLAS_PRIME)
    field = GF(p)
    X, C = _named(theta, rows, field, seed, tokens)
    formal = []
    for index, heads in enumerate(theta.weights.layers):
        drawn = [
            np.stack([residues(name, f"P{r}.{index}.{h}", (tokens, tokens), p) for r in range(rows)])
            for h in range(len(heads))
        ]
        formal.append([rule.formal_weights(E, None, field) for E in drawn])
    functions = [np.ones((rows, 1), dtype=X.dtype), X.reshape(rows, -1)]
    for layer in reduced.passes(X, formal).layers:
        for trace in layer.traces:
            S = field.matmul(trace.k, swap(trace.q))
            if rule.is_normalised:
                S = S - np.diagonal(S, axis1=-2, axis2=-1)[..., None, :]
                shown = visible & ~np.eye(tokens, dtype=bool)
            else:
                shown = visible
            functions.append(field.reduce(S[..., shown]))
    scores = np.concatenate(functions, axis=1)
    if field.rank(scores) < scores.shape[1]:
        return None
    jacobian = reduced.jacobian(X, C, formal)
    return Ranks(field.rank(jacobian), field.rank(reduced.action()), p, rows, tokens)


def _mod_p(theta: Enlarged, rows: int, seed: int, inputs: Array | None) -> Ranks:
    """Ranks modulo a prime that divides no denominator: lower bounds for the ranks over Q."""

    def at(p: int) -> tuple[Enlarged, tuple[Array, Array]]:
        reduced, field = Enlarged(theta.weights.to(GF(p)), theta.forms), GF(p)
        return reduced, _draw(theta, rows, field, seed, inputs) if inputs is not None else _named(
            theta, rows, field, seed, count_tokens(theta.weights.architecture)
        )

    p, (reduced, (X, C)) = modulo_some_prime(at, BLAS_PRIME)
    return Ranks(GF(p).rank(reduced.jacobian(X, C)), GF(p).rank(reduced.action()), p, len(X), X.shape[1])


def _in_balls(theta: Enlarged, rows: int, seed: int, inputs: Array | None) -> Ranks:
    """The rank of the true differential, certified by ball arithmetic; that of the symmetries is exact."""
    balls = Balls(RANK_BITS)
    if not theta.weights.domain.is_rational:
        raise DomainError(
            f"weights over {theta.weights.domain.name} given; softmax and sigmoid need rational ones here"
        )
    # Drawn inputs are floats, which are exact; given ones are rational, and rounded they would be other inputs.
    X, C = _draw(theta, rows, RR if inputs is None else balls, seed, inputs)
    enclosed = Enlarged(theta.weights.to(balls), theta.forms)
    jacobian = enclosed.jacobian(balls.convert(X), balls.convert(C))
    action = QQ.rank(theta.action())
    return Ranks(certify_rank(jacobian, RANK_BITS).rank, action, None, len(X), X.shape[1])


def _in_floats(theta: Enlarged, rows: int, seed: int, inputs: Array | None) -> Ranks:
    """Numerical ranks; clear if both show a gap."""
    X, C = _draw(theta, rows, RR, seed, inputs)
    with np.errstate(all="ignore"):
        jacobian = theta.jacobian(X, C)
    if not np.all(np.isfinite(jacobian)):
        raise SizeError("derivatives of these weights are beyond the range of floats")
    ranks = [_scaled_rank(matrix) for matrix in (jacobian, theta.action())]
    clear = all(rank.is_clear for rank in ranks)
    return Ranks(ranks[0].value, ranks[1].value, None, len(X), X.shape[1], clear)


def _scaled_rank(matrix: Array) -> Rank:
    """The rank with rows of norm one."""
    norms = np.linalg.norm(matrix, axis=1, keepdims=True)
    kept = norms[:, 0] > 0
    if not np.any(kept):
        return Rank(0, False, (), None)
    return measured_rank(matrix[kept] / norms[kept], RR)


def _named(theta: Enlarged, rows: int, field: PrimeField, seed: int, tokens: int) -> tuple[Array, Array]:
    """Inputs X and cotangents C of a named point, with tokens in rows."""
    architecture, name = theta.weights.architecture, name_point(seed)
    ends = architecture.widths[0], architecture.widths[-1]
    X, C = (
        np.stack([residues(name, f"{label}{r}", (width, tokens), field.p).T for r in range(rows)])
        for label, width in zip("XC", ends)
    )
    return X, C


def count_tokens(architecture: Architecture) -> int:
    """Tokens of a sample: further ones may be zero or hidden, unless attention is normalised over all of them."""
    return min(architecture.tokens, POINT_TOKENS) if architecture.rule.drops_tokens else architecture.tokens


def _draw(theta: Enlarged, rows: int, domain: Domain, seed: int, inputs: Array | None) -> tuple[Array, Array]:
    """Inputs X and cotangents C with tokens in rows: random ones from the seed, or every output at given inputs."""
    architecture = theta.weights.architecture
    d_out = architecture.widths[-1]
    if inputs is not None:
        N, _, t = inputs.shape
        X = np.repeat(np.swapaxes(domain.convert(inputs), 1, 2), t * d_out, axis=0)
        return X, np.tile(domain.eye(t * d_out).reshape(t * d_out, t, d_out), (N, 1, 1))
    rng = np.random.default_rng(seed)
    tokens = count_tokens(architecture)
    X = domain.random((rows, tokens, architecture.widths[0]), rng)
    C = domain.random((rows, tokens, d_out), rng)
    if domain.rounds:
        X = X * np.resize(FEW_INPUT_SCALES, rows)[:, None, None]
    return X, C
