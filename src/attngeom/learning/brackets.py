"""The Lie algebra of gradient fields at one point mod p: how many directions gradient flow can explore.

For f = ⟨C, φ_w(X)⟩ the fields ∇f span at w the directions that some loss can push w in; brackets [∇f, ∇g] are what
alternating between two losses adds. Every conserved quantity is constant along all of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from attngeom.dimensions.counts import upper_bound
from attngeom.dimensions.lower_bounds import sample_tokens
from attngeom.dimensions.programs import sampled_tokens
from attngeom.dimensions.sliced_network import Samples, draw_named
from attngeom.exact.domains import GF, Array, BalancedField, PrimeField
from attngeom.exact.modular import rank_mod_p
from attngeom.exact.numbers import BLAS_PRIME
from attngeom.exact.residues import Elimination
from attngeom.limits.trials import BRACKET_FUNCTIONS, SPARE_JACOBIAN_ROWS
from attngeom.network.architecture import Architecture
from attngeom.network.programs import INPUT, program_of
from attngeom.network.tangent import hessian_products, passes
from attngeom.network.weights import Weights, named_weights, random_weights
from attngeom.programs.domains import arithmetic_of
from attngeom.programs.operations import Point
from attngeom.programs.passes import pull, run

Pair = tuple[int, int]


@dataclass(frozen=True)
class BracketRank:
    """A proven lower bound for the rank of the Lie algebra at generic weights, with independent fields as witness.

    Weights and samples (inputs, cotangents, formal attention) are those of a named ``point`` mod ``prime``.
    ``gradients`` are samples n, ``brackets`` pairs (m, n) of them: their values at the weights are independent.
    """

    value: int
    prime: int
    seed: int
    point: str
    tokens: int
    samples: int
    gradients: tuple[int, ...]
    brackets: tuple[Pair, ...]


def bracket_rank(architecture: Architecture, target: int, seed: int = 0, p: int = BLAS_PRIME) -> BracketRank:
    """The rank mod p of {∇f} and of first brackets [∇f, ∇g] at one point: at most the generic rank over R.

    Attention that is not polynomial is formal, as in :mod:`attngeom.dimensions.sliced_network`: exponentials of scores
    of all samples are algebraically independent, and gradients and Hessians are polynomial in them, so a nonzero minor
    mod p is one over the field of functions. Fewer tokens than t lose nothing that is true for t: further ones are
    zero, later or not attended to. The search stops at ``target``.

    >>> bracket_rank(Architecture((3, 3), 3), 20).value
    20
    """
    field, tokens = BalancedField(p), sample_tokens(architecture)
    count = min(upper_bound(architecture).value, target) + SPARE_JACOBIAN_ROWS
    # The smaller network knows which layers have inputs of width one, where formal attention is symmetric.
    _, samples, name = draw_named(architecture, p, count, tokens, seed)
    point = named_weights(architecture, field, name)
    gradients = gradient_rows(point, samples)
    rows, labels = [gradients], [(n, n) for n in range(count)]
    elimination = Elimination(gradients.copy(), p, keep_upper=False).run()
    for hub in range(min(BRACKET_FUNCTIONS, count - 1)):
        missing = target - elimination.rank
        if missing <= 0:
            break
        others = np.arange(hub + 1, min(count, hub + 1 + missing + SPARE_JACOBIAN_ROWS))
        rows.append(bracket_rows(point, samples, gradients, hub, others))
        labels += [(hub, int(n)) for n in others]
        elimination = Elimination(np.concatenate(rows), p, keep_upper=False).run()
    chosen = [labels[place] for place in sorted(elimination.order[: elimination.rank])]
    return BracketRank(
        elimination.rank,
        p,
        seed,
        name,
        tokens,
        count,
        tuple(m for m, n in chosen if m == n),
        tuple((m, n) for m, n in chosen if m != n),
    )


def gradient_rows(point: Weights, samples: Samples) -> Array:
    """The rows ∇⟨C_n, φ(X_n)⟩ at the weights, (N, parameters).

    The rule is the true one, temperature included: rescaled keys and queries would have another gradient flow.
    """
    gradients = passes(point, samples.X, samples.attention).pull(samples.C)
    return np.concatenate([_flat(x.product(point.domain)) for x in gradients], axis=-1)


def bracket_rows(point: Weights, samples: Samples, gradients: Array, hub: int, others: Array) -> Array:
    """The rows [∇f_h, ∇f_n] = H_n ∇f_h − H_h ∇f_n for one h and several n."""
    one = samples.select(np.array([hub]))
    rest = samples.select(others)
    forth = hessian_rows(point, rest, gradients[hub : hub + 1])[0]
    back = hessian_rows(point, one, gradients[others])[:, 0]
    return point.domain.reduce(forth - back)


def hessian_rows(point: Weights, samples: Samples, vectors: Array) -> Array:
    """The Hessian of each ⟨C_n, φ(X_n)⟩ times each vector: (vectors, N, parameters)."""
    at = passes(point, samples.X, samples.attention)
    products = hessian_products(at, samples.C, list(_directions(point, vectors)))
    return np.concatenate([_flat(x) for x in products], axis=-1)


def _directions(point: Weights, vectors: Array) -> Iterator[Array]:
    shapes = dict(point.architecture.tensor_shapes())
    for name, place in point.architecture.slots().items():
        yield vectors[:, place].reshape(len(vectors), *shapes[name])


def _flat(stack: Array) -> Array:
    return stack.reshape(*stack.shape[:-2], -1)


def program_bracket_rank(architecture: Architecture, target: int, seed: int = 0, p: int = BLAS_PRIME) -> int | None:
    """The same rank for a program that is polynomial in its weights; None for others.

    Along a line in weight space a gradient is a polynomial in the parameter of the line: its derivative, a Hessian
    times a vector, is a combination of values at as many points as its degree asks for, exactly.

    >>> program_bracket_rank(Architecture((2, 2), 2, kind="retnet"), 8)
    8
    """
    program = program_of(architecture, sampled_tokens(architecture))
    degree = program.degree_in_weights()
    if degree is None:
        return None
    field, rng = GF(p), np.random.default_rng(seed)
    point = random_weights(architecture, field, seed).vector()[None]
    count = target + SPARE_JACOBIAN_ROWS
    X = field.random((count, *program.inputs[INPUT]), rng)
    C = field.random((count, *program.nodes[program.output].shape), rng)

    def gradients_at(weights: Array, chosen: Array) -> Array:
        traces = run(program, Point(arithmetic_of(field), {**program.split(weights), INPUT: X[chosen]}))
        parts = pull(program, traces, C[chosen])
        return np.concatenate([parts[x].reshape(len(chosen), -1).astype(X.dtype) for x in program.parameters], axis=1)

    def hessian_times(vectors: Array, chosen: Array) -> Array:
        total = field.zeros((len(chosen), architecture.num_parameters))
        for step, share in enumerate(_difference_shares(degree - 1, field), start=1):
            ahead, behind = (
                gradients_at(field.reduce(point + field.times(field.convert([n]), vectors)), chosen)
                for n in (step, -step)
            )
            total = field.reduce(total + field.times(share, field.reduce(ahead - behind)))
        return total

    with field.working():
        rows = [gradients_at(point, np.arange(count))]
        rank = rank_mod_p(rows[0], p)
        for hub in range(min(BRACKET_FUNCTIONS, count - 1)):
            missing = target - rank
            if missing <= 0:
                break
            others = np.arange(hub + 1, min(count, hub + 1 + missing + SPARE_JACOBIAN_ROWS))
            forth = hessian_times(rows[0][hub : hub + 1], others)
            back = hessian_times(rows[0][others], np.full(len(others), hub))
            rows.append(field.reduce(forth - back))
            rank = rank_mod_p(np.concatenate(rows), p)
    return rank


def _difference_shares(degree: int, field: PrimeField) -> Array:
    """c_1..c_m with f'(0) = Σ c_k (f(k) − f(−k)) for all polynomials f of a degree.

    Σ_k 2 c_k k^{2j+1} is 1 for j = 0 and 0 for the other odd powers up to the degree.
    """
    m = max(1, (degree + 1) // 2)
    powers = field.convert([[2 * k ** (2 * j + 1) for k in range(1, m + 1)] for j in range(m)])
    return np.asarray(field.matmul(field.inverse(powers), field.eye(m)[:, :1]))
