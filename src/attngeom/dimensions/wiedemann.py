"""A proven lower bound for the rank of a Jacobian that is never formed, by a Krylov sequence mod p.

Let J be the Jacobian of all outputs at N samples against the n free entries of the gauge slice, F a sparse random n×R
matrix that folds the R outputs into n numbers, Δ a random diagonal matrix, and B = F J Δ. For vectors u, v the Hankel
matrix (uᵀ B^{i+j+1} v)_{i,j<L} = (uᵀB^i)_i · B · (B^j v)_j has rank at most rank B ≤ rank J. So a nonsingular one
proves rank J ≥ L over GF(p), hence over Q, whatever the random choices were. Memory: a few copies of the activations,
the weights and the sequence; one product costs one derivative of the forward pass.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from math import ceil

import numpy as np

from attngeom.dimensions.effective import effective_layers
from attngeom.dimensions.jacobian import project, random_samples, swap, trace_network
from attngeom.dimensions.recurrence import linear_complexity
from attngeom.dimensions.residues import BalancedField
from attngeom.dimensions.sliced import SlicedHead, count_columns, random_slice
from attngeom.errors import SizeError
from attngeom.exact.domains import Array
from attngeom.exact.primes import BLAS_PRIME
from attngeom.network.architecture import Architecture

MAX_TOKENS = 256
"""More tokens per sample make products cheaper up to about the width; beyond that they only cost memory."""

MAX_COLUMNS = 300_000
"""Beyond this a proof takes weeks: products cost about D² / t each, and 2D of them are needed."""


@dataclass(frozen=True)
class KrylovBound:
    """A rank lower bound from a Krylov sequence, with everything that is needed to repeat it."""

    lower_bound: int
    columns: int
    samples: int
    tokens: int
    terms: int
    prime: int
    seed: int
    seconds_products: float
    seconds_recurrence: float


def count_samples(architecture: Architecture, columns: int, tokens: int) -> int:
    """Samples with all their outputs so that nothing limits the rank below the number of columns.

    Without skip connection a sample X shows the network only through a t×t matrix Z in L X Z of rank at most every α_i
    (t(t−1) free entries for softmax, about half if causal), so at most t·min(t, α) of its outputs count. One sample
    is added.

    >>> count_samples(Architecture((4, 3, 5), 2, tokens=3), 36, 3)
    7
    """
    counted = tokens * architecture.widths[-1]
    if not architecture.residual:
        ranks = [layer.heads * layer.attention for layer in effective_layers(architecture)]
        visible = tokens * (tokens - 1) if architecture.kind == "softmax" else tokens * min(tokens, *ranks)
        counted = min(counted, max(visible // 2, 1) if architecture.causal else max(visible, 1))
    return 1 + ceil(columns / counted)


class FoldedJacobian:
    """The n×n operator B = F J Δ at random weights and samples; see the module docstring."""

    def __init__(self, architecture: Architecture, p: int, seed: int, more: int = 1) -> None:
        self.field = BalancedField(p)
        self.network = random_slice(architecture, p, seed)
        n = self.network.num_columns
        self.tokens = min(architecture.tokens, MAX_TOKENS)
        self.samples = more * count_samples(architecture, n, self.tokens)
        samples = random_samples(self.network, self.samples, self.tokens, seed + 1)
        self.inputs, self.traces, output = trace_network(self.network, samples)
        rng = np.random.default_rng(seed + 2)
        self.scale = self.field.random((n,), rng)
        layers = ceil(output.size / n) + 1
        self.gather = np.resize(rng.permutation(output.size), layers * n).reshape(layers, n)
        self.fold = self.field.random((layers, n), rng)
        self.formal = samples.attention is not None

    @property
    def size(self) -> int:
        return self.network.num_columns

    def apply(self, vector: Array) -> Array:
        """B times a vector of balanced residues."""
        outputs = self.push_forward(self.field.times(self.scale, vector)).ravel()
        # Fewer than 500 products of balanced residues below 2^23 sum up exactly.
        return self.field.residues.balance(np.einsum("kn,kn->n", self.fold, outputs[self.gather]))

    def push_forward(self, vector: Array) -> Array:
        """J times a vector: the derivative of all outputs along it, by forward propagation."""
        network, field = self.network, self.field
        start, moved = 0, None
        for heads, row, X in zip(network.layers, self.traces, self.inputs):
            total = moved if network.architecture.residual else None
            for head, trace in zip(heads, row):
                directions, start = _directions(head, vector, start)
                dq, dk, dv = (
                    self._derivative(X, moved, matrix, direction)
                    for matrix, direction in zip(head.arrays[:3], directions)
                )
                parts: list[tuple[Array | None, Array | None]] = []
                scores = _sum_products(field, [(dk, swap(trace.q)), (trace.k, None if dq is None else swap(dq))])
                if scores is not None:
                    parts.append((swap(self._attention(trace.attention, scores)), trace.v))
                parts.append((swap(trace.attention), dv))
                mixed = _sum_products(field, parts)
                if len(head.arrays) == 4:
                    mixed = self._derivative(trace.mixed, mixed, head.arrays[3], directions[3])
                if mixed is not None:
                    total = mixed if total is None else field.residues.balance(total + mixed)
            moved = total
        if moved is None:
            raise ArithmeticError("the slice has no free entry, so there is nothing to differentiate")
        return moved

    def _attention(self, attention: Array, scores: Array) -> Array:
        """The derivative of the attention: the scores' own (masked), or P (Ṡ − Σ P Ṡ)."""
        if self.formal:
            product = self.field.times(attention, scores)
            sums = self.field.reduce(product.sum(axis=-2, keepdims=True))
            return self.field.reduce(product - self.field.times(attention, sums))
        return np.triu(scores) if self.network.architecture.causal else scores

    def _derivative(self, X: Array, moved: Array | None, matrix: Array, direction: Array | None) -> Array | None:
        """The derivative of X matrixᵀ."""
        first = None if direction is None else project(self.field, X, direction)
        second = None if moved is None else project(self.field, moved, matrix)
        if first is None or second is None:
            return second if first is None else first
        return self.field.residues.balance(first + second)


def _directions(head: SlicedHead, vector: Array, start: int) -> tuple[list[Array | None], int]:
    """The pieces of a vector in the shapes of the tensors; None where a tensor is held fixed."""
    directions: list[Array | None] = []
    for block in head.blocks:
        stop = start + block.num_free
        if stop == start:
            directions.append(None)
            continue
        direction = np.zeros((block.rows, block.columns))
        piece = vector[start:stop]
        if block.fix_corner:
            piece = np.concatenate([[0.0], piece])
        direction[:, block.start :] = piece.reshape(block.rows, -1)
        directions.append(direction)
        start = stop
    return directions, start


def _sum_products(field: BalancedField, pairs: list[tuple[Array | None, Array | None]]) -> Array | None:
    """Σ a b over the pairs without a missing factor."""
    total = None
    for a, b in pairs:
        if a is None or b is None:
            continue
        product = field.matmul(a, b)
        total = product if total is None else field.residues.balance(total + product)
    return total


def krylov_lower_bound(
    architecture: Architecture,
    seed: int = 0,
    p: int = BLAS_PRIME,
    more: int = 1,
    progress: Callable[[int, int], None] | None = None,
) -> KrylovBound:
    """A lower bound for the dimension, proven by a nonsingular Hankel matrix mod p of that size.

    It is the dimension with high probability if the gauge slice has no superfluous column. 2n + 2 derivatives of
    the forward pass, then a recurrence in O(n²). ``more`` multiplies the number of samples.

    >>> krylov_lower_bound(Architecture((2, 2), 2, tokens=2), seed=3).lower_bound
    7
    """
    columns = count_columns(architecture)
    if columns > MAX_COLUMNS:
        raise SizeError(
            f"{columns:,} free weights given; proofs are possible for at most {MAX_COLUMNS:,}, use a formula"
        )
    operator = FoldedJacobian(architecture, p, seed, more)
    n, field = operator.size, operator.field
    rng = np.random.default_rng(seed + 3)
    left, vector = field.random((n,), rng), field.random((n,), rng)
    sequence = np.empty(2 * n + 2)
    started = time.perf_counter()
    for k in range(len(sequence)):
        vector = operator.apply(vector)
        sequence[k] = float(np.rint(_inner(left, vector, field)))
        if progress is not None:
            progress(k + 1, len(sequence))
    middle = time.perf_counter()
    bound = linear_complexity(sequence, p)
    finished = time.perf_counter()
    return KrylovBound(
        bound, n, operator.samples, operator.tokens, len(sequence), p, seed, middle - started, finished - middle
    )


def _inner(a: Array, b: Array, field: BalancedField) -> float:
    """The inner product of two vectors of balanced residues."""
    return float(field.matmul(a[None, :], b[:, None])[0, 0])
