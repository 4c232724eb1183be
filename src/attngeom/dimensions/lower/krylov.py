"""A proven lower bound for the rank of a Jacobian that is never formed, by a Krylov sequence mod p.

Let J be the Jacobian of all outputs at N samples against the n free entries of the gauge slice, F a sparse random n×R
matrix that folds the R outputs into n numbers, Δ a random diagonal matrix, and B = F J Δ. For vectors u, v the Hankel
matrix (uᵀ B^{i+j+1} v)_{i,j<L} = (uᵀB^i)_i · B · (B^j v)_j has rank at most rank B ≤ rank J. So a nonsingular one
proves rank J ≥ L over GF(p), hence over Q, whatever the random choices were. Memory: a few copies of the activations,
the weights and the sequence; one product costs one derivative of the forward pass.
"""

from __future__ import annotations

from collections.abc import Callable
from math import ceil

import numpy as np

from attngeom.dimensions.effective import effective_layers
from attngeom.dimensions.jacobian import random_samples
from attngeom.dimensions.lower.bound import LowerBound
from attngeom.dimensions.lower.recurrence import linear_complexity
from attngeom.dimensions.slices import count_columns, random_slice
from attngeom.errors import SizeError
from attngeom.exact.domains import Array, BalancedField
from attngeom.exact.primes import BLAS_PRIME
from attngeom.network.architecture import Architecture

MAX_TOKENS = 256
"""More tokens per sample make products cheaper up to about the width; beyond that they only cost memory."""

MAX_COLUMNS = 300_000
"""Beyond this a proof takes weeks: products cost about D² / t each, and 2D of them are needed."""


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
        rule = architecture.rule
        visible = tokens * (min(tokens, *ranks) if rule.is_polynomial else tokens - int(rule.is_normalised))
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
        self.passes = self.network.passes(samples.X, samples.attention)
        outputs = samples.C.size
        rng = np.random.default_rng(seed + 2)
        self.scale = self.field.random((n,), rng)
        layers = ceil(outputs / n) + 1
        self.gather = np.resize(rng.permutation(outputs), layers * n).reshape(layers, n)
        self.fold = self.field.random((layers, n), rng)

    @property
    def size(self) -> int:
        return self.network.num_columns

    def apply(self, vectors: Array) -> Array:
        """B times a vector of balanced residues, or a stack of them (p, n)."""
        moved = self.push_forward(self.field.times(self.scale, vectors))
        outputs = moved.reshape(*vectors.shape[:-1], -1)
        # Fewer than 500 products of balanced residues below 2^23 sum up exactly.
        return self.field.balance(np.einsum("kn,...kn->...n", self.fold, outputs[..., self.gather]))

    def push_forward(self, vectors: Array) -> Array:
        """J times a vector, or a stack of them (p, n): the derivative of all outputs (…, N, t, d_l) along it."""
        moved = self.passes.push(list(self.network.directions(vectors)))
        if moved is None:
            raise ArithmeticError("the slice has no free entry, so there is nothing to differentiate")
        return moved


def krylov_lower_bound(
    architecture: Architecture,
    seed: int = 0,
    p: int = BLAS_PRIME,
    more: int = 1,
    progress: Callable[[int, int], None] | None = None,
) -> LowerBound:
    """A lower bound for the dimension, proven by a nonsingular Hankel matrix mod p of that size.

    It is the dimension with high probability if the gauge slice has no superfluous column. 2n + 2 derivatives of
    the forward pass, then a recurrence in O(n²). ``more`` multiplies the number of samples.

    >>> krylov_lower_bound(Architecture((2, 2), 2, tokens=2), seed=3).value
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
    for k in range(len(sequence)):
        vector = operator.apply(vector)
        sequence[k] = float(np.rint(_inner(left, vector, field)))
        if progress is not None:
            progress(k + 1, len(sequence))
    bound = linear_complexity(sequence, p)
    return LowerBound(
        standing="proven",
        reason=f"a Hankel matrix of size {bound} of a Krylov sequence of the Jacobian is nonsingular mod {p}",
        value=bound,
        method="krylov",
        prime=p,
        seed=seed,
        tokens=operator.tokens,
        samples=operator.samples,
    )


def _inner(a: Array, b: Array, field: BalancedField) -> float:
    """The inner product of two vectors of balanced residues."""
    return float(field.matmul(a[None, :], b[:, None])[0, 0])
