"""The rank of the differential at given weights of any kind of attention, from its program: bounds, or an estimate."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from attngeom.errors import InputError, SingularError, SizeError
from attngeom.exact.domains import GF, RR, Array, Balls
from attngeom.exact.modular import rank_mod_p
from attngeom.exact.numbers import WORD_PRIME, modulo_some_prime
from attngeom.exact.precise import Rank, certify_rank, measured_rank
from attngeom.limits.memory import LOCAL_BALLS, LOCAL_JACOBIAN, NODES_AT_ONCE
from attngeom.limits.rounding import LARGE_DENOMINATOR
from attngeom.limits.trials import INPUT_SCALES, POINT_TOKENS, SPARE_JACOBIAN_ROWS
from attngeom.network.architecture import Architecture
from attngeom.network.programs import INPUT, is_rational, program_of
from attngeom.network.symmetry import infinitesimal_action
from attngeom.network.weights import Weights
from attngeom.programs.domains import arithmetic_of
from attngeom.programs.operations import Point
from attngeom.programs.passes import Traces, pull, run

NO_FUNCTION = "weights given whose denominators vanish at every input that was tried; they have no function"


class LowerRank(NamedTuple):
    """A proven lower bound for the rank at a point, and the prime where it is a rank mod p."""

    value: int
    prime: int | None


def orbit_rank_at(weights: Weights) -> int:
    """The rank mod p of the infinitesimal symmetries at rational weights: at most the dimension of the orbit there.

    >>> from attngeom.exact import QQ
    >>> from attngeom.network import random_weights
    >>> orbit_rank_at(random_weights(Architecture((3, 2), 2, kind="deltanet"), QQ, seed=0))
    2
    """
    p, rows = modulo_some_prime(lambda p: infinitesimal_action(weights.to(GF(p))), WORD_PRIME)
    return rank_mod_p(rows, p) if len(rows) else 0


def rows_at(weights: Weights, X: Array, C: Array) -> Array:
    """The gradients of ⟨C_n, φ_W(X_n)⟩ in the weights, one row each, over the domain of the weights."""
    domain, program = weights.domain, program_of(weights.architecture, X.shape[-1])
    tensors = {name: array[None] for name, array in weights.tensors()}
    step = max(1, NODES_AT_ONCE // sum(node.size for node in program.nodes))
    parts = []
    with domain.working():
        for start in range(0, len(X), step):
            inputs = X[start : start + step]
            traces = run(program, Point(arithmetic_of(domain), {**tensors, INPUT: inputs}))
            rows = pull(program, traces, C[start : start + step])
            flat = [np.asarray(rows[name]).reshape(len(inputs), -1) for name in tensors]
            if domain.rounds:
                # The square of a large denominator is beyond the range of floats, and its slope is lost.
                flat[0] = np.where(_largest(traces, len(inputs))[:, None] < LARGE_DENOMINATOR, flat[0], np.nan)
            parts.append(np.concatenate(flat if domain.rounds else [domain.convert(part) for part in flat], axis=1))
    return np.concatenate(parts)


def _largest(traces: Traces, samples: int) -> Array:
    """For each sample the largest number that a node has."""
    sizes = [np.abs(trace.result).reshape(len(trace.result), -1).max(axis=1, initial=0.0) for trace in traces if trace]
    return np.asarray(np.max([np.broadcast_to(size, samples) for size in sizes], axis=0))


def tokens_at(architecture: Architecture) -> int:
    """How many tokens samples have: with a mask fewer tokens are a part of the function, else all are taken."""
    if architecture.mask.hides and not architecture.options.get("memory"):
        return min(architecture.tokens, max(POINT_TOKENS, architecture.heads + 1))
    return architecture.tokens


def lower_rank_at(weights: Weights, rows: int, seed: int) -> LowerRank:
    """A proven lower bound for the rank at rational weights: mod p for rational functions, in balls for others.

    >>> from attngeom.exact import QQ
    >>> from attngeom.network import random_weights
    >>> lower_rank_at(random_weights(Architecture((3, 2), 2, kind="retnet"), QQ, seed=0), 16, seed=0).value
    13
    """
    architecture = weights.architecture
    if is_rational(architecture):
        p, J = modulo_some_prime(lambda p: _mod_p(weights.to(GF(p)), rows + SPARE_JACOBIAN_ROWS, seed), WORD_PRIME)
        if not len(J):
            raise InputError(NO_FUNCTION)
        return LowerRank(rank_mod_p(J, p), p)
    entries = 2 * rows * sum(node.size for node in program_of(architecture, tokens_at(architecture)).nodes)
    if entries > LOCAL_BALLS:
        raise SizeError(f"{entries:,} balls are needed; at most {LOCAL_BALLS:,} are supported: give floats")
    best = 0
    balls = Balls()
    size = max(float(np.abs(RR.convert(array)).max(initial=0.0)) for _, array in weights.tensors()) or 1.0
    for unit in (1.0, 1 / size):
        # Large weights saturate gates of later layers at inputs of size one.
        X, C = draw(architecture, 2 * rows, seed)
        J = _existing_rows(weights.to(balls), balls.convert(X * unit), balls.convert(C))
        if not len(J):
            raise InputError(NO_FUNCTION)
        finite = np.array([all(bool(x.is_finite()) for x in row) for row in J], dtype=bool)
        if finite.any():
            best = max(best, certify_rank(_balanced(J[finite], balls), balls.precision).rank)
        if best >= rows:
            break
    return LowerRank(best, None)


def _balanced(J: Array, balls: Balls) -> Array:
    """Rows, then columns, divided by powers of two that are near their norms: the rank is that of J."""
    with balls.working():
        for axis in (1, 0):
            # Balls around zero may be zero: they are not blown up.
            middle = np.vectorize(lambda x: 0.0 if x.contains(0) else float(x.mid()), otypes=[float])(J)
            norms = np.sqrt(np.square(middle / (np.abs(middle).max() or 1.0)).sum(axis=axis, keepdims=True))
            exponents = np.where(norms > 0, np.round(np.log2(np.where(norms > 0, norms, 1.0))), 0.0)
            J = J * balls.convert(np.exp2(-exponents))
    return J


def _mod_p(weights: Weights, rows: int, seed: int) -> Array:
    """Rows of the Jacobian mod p at random samples."""
    architecture, rng = weights.architecture, np.random.default_rng(seed)
    widths, tokens = (architecture.widths[0], architecture.widths[-1]), tokens_at(architecture)
    X, C = (np.asarray(weights.domain.random((rows, width, tokens), rng)) for width in widths)
    return _existing_rows(weights, X, C)


def _existing_rows(weights: Weights, X: Array, C: Array) -> Array:
    """Rows of the Jacobian; samples at which a denominator vanishes are left out."""
    try:
        return rows_at(weights, X, C)
    except SingularError:
        parts = []
    for n in range(len(X)):
        try:
            parts.append(rows_at(weights, X[n : n + 1], C[n : n + 1]))
        except SingularError:
            continue
    return np.concatenate(parts) if parts else weights.domain.zeros((0, weights.architecture.num_parameters))


def draw(architecture: Architecture, rows: int, seed: int) -> tuple[Array, Array]:
    """Normal inputs of several sizes, and normal cotangents."""
    rng = np.random.default_rng(seed + 1)
    tokens = tokens_at(architecture)
    X, C = (rng.standard_normal((rows, width, tokens)) for width in (architecture.widths[0], architecture.widths[-1]))
    return X * np.resize(INPUT_SCALES, rows)[:, None, None], C


def measured_rank_at(weights: Weights, rows: int, seed: int) -> Rank:
    """The numerical rank of float weights: rows of unit norm, tensors varied relative to their own norms."""
    count = weights.architecture.num_parameters
    units = np.concatenate([np.full(tensor.size, np.linalg.norm(tensor) or 1.0) for _, tensor in weights.tensors()])
    if rows * count > LOCAL_JACOBIAN:
        raise SizeError(f"a matrix of {rows * count:,} entries is needed; at most {LOCAL_JACOBIAN:,} are supported")
    with np.errstate(all="ignore"):
        J = rows_at(weights, *draw(weights.architecture, rows, seed)) * units
        sizes = np.linalg.norm(J, axis=1)
    kept = np.isfinite(sizes) & (sizes > 0)
    if 2 * np.count_nonzero(np.isfinite(sizes)) < rows:
        raise InputError("weights whose derivatives are beyond the range of floats given; rescale them")
    return measured_rank(J[kept] / sizes[kept][:, None], RR)
