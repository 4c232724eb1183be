"""The rank of the differential at given weights, and how far it falls short of the generic dimension."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations_with_replacement, islice, permutations

import numpy as np

from attngeom.dimensions.answer import dimension
from attngeom.dimensions.bounds import SPARE_ROWS, check_balls_size, entry_degree, sample_tokens
from attngeom.dimensions.counting import upper_bound
from attngeom.dimensions.jacobian import Samples, jacobian, random_samples
from attngeom.dimensions.sliced import full_blocks
from attngeom.errors import DomainError, InputError, SizeError
from attngeom.exact.balls import certify_rank
from attngeom.exact.domains import GF, QQ, RR, Array, BalancedField, Balls
from attngeom.exact.elimination import Elimination
from attngeom.exact.matrices import rank
from attngeom.exact.modular import rank_mod_p
from attngeom.exact.primes import BLAS_PRIME, WORD_PRIME, primes_from
from attngeom.network.symmetry import count_generators, infinitesimal_action
from attngeom.network.weights import Head, Weights

MAX_EXACT_ENTRIES = 2 * 10**5
MAX_ENTRIES = 5 * 10**8


@dataclass(frozen=True)
class PointRank:
    """The rank of the differential of W ↦ phi_W at one point: between the proven bounds, exact if they meet.

    ``generic`` is the dimension of the architecture (None if unknown) and ``defect`` = generic − rank: positive at
    critical points of the parametrization. If the bounds do not meet, ``rank`` is the lower bound and
    ``error_probability`` bounds the chance that random samples missed more (None if no such bound is known).
    """

    rank: int
    lower_bound: int
    upper_bound: int
    is_exact: bool
    generic: int | None
    defect: int | None
    method: str
    prime: int | None
    seed: int
    error_probability: float | None


def rank_at(weights: Weights, seed: int = 0) -> PointRank:
    """The rank of the differential at rational or float weights (floats are taken as the rationals that they are).

    Lightning: lower bound mod p, upper bound from the symmetry vectors at the point; for one layer that is not too
    large the Jacobian of all coefficients is ranked over Q, which is exact. Softmax: certified by ball arithmetic.

    >>> from attngeom.network import Architecture, random_weights
    >>> rank_at(random_weights(Architecture((2, 2), 2, tokens=2), QQ, seed=0)).rank
    7
    """
    if weights.domain not in (QQ, RR):
        raise DomainError(f"weights over {weights.domain.name} given; rational or float weights are required")
    architecture = weights.architecture
    size = architecture.num_parameters * max(
        upper_bound(architecture).value + SPARE_ROWS, sum(count_generators(architecture).values())
    )
    if size > MAX_ENTRIES:
        raise SizeError(f"a matrix of {size:,} entries is needed; at most {MAX_ENTRIES:,} are supported")
    most = min(upper_bound(architecture).value, _symmetry_bound(weights))
    answer = dimension(architecture, seed=seed)
    if not architecture.rule.is_polynomial:
        return _record(_rank_by_balls(weights, most, seed), most, answer.dimension, "balls", None, seed, None)
    p, lower = _rank_mod_p(weights, most + SPARE_ROWS, seed)
    rows = architecture.widths[1] * architecture.widths[0] ** 3
    if lower < most and architecture.num_layers == 1 and rows * architecture.num_parameters <= MAX_EXACT_ENTRIES:
        exact = rank(coefficient_jacobian(weights.to(QQ)), QQ)
        return _record(exact, exact, answer.dimension, "coefficients over Q", None, seed, None)
    error = None if lower == most else min(1.0, most * entry_degree(architecture) / p)
    return _record(lower, most, answer.dimension, "minor", p, seed, error)


def _record(
    lower: int, upper: int, generic: int | None, method: str, prime: int | None, seed: int, error: float | None
) -> PointRank:
    defect = None if generic is None else generic - lower
    return PointRank(lower, lower, upper, lower == upper, generic, defect, method, prime, seed, error)


def _symmetry_bound(weights: Weights) -> int:
    """Parameters minus the rank mod p of the symmetry vectors at the point: they lie in the kernel."""
    for p in islice(primes_from(WORD_PRIME), 8):
        try:
            vectors = infinitesimal_action(weights.to(GF(p))).rows
        except InputError:
            continue
        return weights.architecture.num_parameters - rank_mod_p(vectors, p)
    raise InputError("weights with denominators divisible by many primes given; simplify them")


def _rank_mod_p(weights: Weights, rows: int, seed: int) -> tuple[int, int]:
    """A prime that divides no denominator, and the rank of the full Jacobian modulo it."""
    for p in islice(primes_from(BLAS_PRIME), 8):
        field = BalancedField(p)
        try:
            network = full_blocks(weights.to(field))
        except InputError:
            continue
        samples = random_samples(network, rows, sample_tokens(weights.architecture), seed + 1)
        return p, Elimination(jacobian(network, samples), p, keep_upper=False).run().rank
    raise InputError("weights with denominators divisible by many primes given; simplify them")


def _rank_by_balls(weights: Weights, rows: int, seed: int, precision: int = 128) -> int:
    """A certified lower bound with true exponentials, at normal inputs."""
    balls = Balls(precision)
    architecture = weights.architecture
    tokens = sample_tokens(architecture) if architecture.causal else architecture.tokens
    check_balls_size(2 * rows, tokens, architecture)
    points = random_samples(full_blocks(weights.to(RR)), 2 * rows, tokens, seed + 1)
    samples = Samples(balls.array(points.X), balls.array(points.C), None)
    return certify_rank(jacobian(full_blocks(weights.to(balls)), samples), precision).lower_bound


def coefficient_jacobian(weights: Weights) -> Array:
    """The differential of all coefficients of one lightning layer, over the domain of the weights: columns are weights.

    Rows are the coefficients of x_2^{(k,l)} x_1^{(m)} (which determine the layer if t ≥ 2), or for one token of
    x^{(k,l,m)}, of every output row; summed over the orderings, which does not change the rank.
    """
    architecture, domain = weights.architecture, weights.domain
    columns = []
    for position, heads in enumerate(weights.layers[0]):
        A, V = heads.attention_matrix(domain), heads.value_matrix(domain)
        for letter, tensor in heads.tensors.items():
            for index in np.ndindex(*tensor.shape):
                unit = domain.zeros(tensor.shape)
                unit[index] = domain.eye(1)[0, 0]
                dA, dV = _head_tangent(weights, position, letter, unit)
                change = domain.zeros((V.shape[0], *([A.shape[0]] * 3)))
                if dA is not None:
                    change = change + V[:, :, None, None] * dA[None, None]
                if dV is not None:
                    change = change + dV[:, :, None, None] * A[None, None]
                columns.append(_symmetrise(domain.reduce(change), architecture.tokens == 1))
    return domain.reduce(np.stack(columns, axis=1))


def _head_tangent(weights: Weights, position: int, letter: str, unit: Array) -> tuple[Array | None, Array | None]:
    """The derivatives of A = Kᵀ Q and of the value map along one tensor of a head."""
    head: Head = weights.layers[0][position]
    multiply = weights.domain.matmul
    if letter == "Q":
        return multiply(head.K.T, unit), None
    if letter == "K":
        return multiply(unit.T, head.Q), None
    if head.O is None:
        return None, unit
    return None, multiply(head.O, unit) if letter == "V" else multiply(unit, head.V)


def _symmetrise(tensor: Array, all_three: bool) -> Array:
    """Sums over orderings of (k, l), or of (k, l, m), as a vector."""
    d = tensor.shape[1]
    if all_three:
        entries = [
            sum(tensor[:, a, b, c] for a, b, c in set(permutations(triple)))
            for triple in combinations_with_replacement(range(d), 3)
        ]
    else:
        entries = [
            sum(tensor[:, a, b, m] for a, b in set(permutations(pair)))
            for pair in combinations_with_replacement(range(d), 2)
            for m in range(d)
        ]
    return np.concatenate(entries)
