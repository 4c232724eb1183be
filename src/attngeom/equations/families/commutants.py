"""Families 17 and 18 of several heads: H heads that fill their flattenings commute with H projections.

For n = H v rows and k = H a targets of the table T the sum of H heads is a representation of the Kronecker quiver, one
n×k matrix T_s for each pair s of context rows, that is a direct sum of H of them, or a limit of such sums
(docs/theorems/heads.md, Theorem K).
"""

from __future__ import annotations

from abc import abstractmethod
from math import comb
from typing import ClassVar

import numpy as np

from attngeom.equations.family import Family, combination_array
from attngeom.equations.variety import Points
from attngeom.errors import SizeError
from attngeom.exact.domains import Array, Domain
from attngeom.exact.domains.polynomials import Polynomial
from attngeom.exact.multisets import combination_at, pairs
from attngeom.limits.work import EXPANDED_MINOR, EXPANDED_SLICES


class HeadFamily(Family):
    """Members for every choice of rows I and targets J of the table, as many as H heads fill: n and k of them."""

    of_sums = True
    most_written: ClassVar[int]

    @property
    def filled(self) -> tuple[int, int]:
        """(n, k), the numbers of rows and targets that H heads fill."""
        return self.variety.heads * self.variety.value_rank, self.variety.heads * self.variety.rank_bound

    @property
    def sizes(self) -> tuple[int, ...]:
        (n, k), variety = self.filled, self.variety
        return (comb(variety.d_out, n), comb(variety.num_targets, k), *self.inner_sizes)

    @property
    @abstractmethod
    def inner_sizes(self) -> tuple[int, ...]:
        """The ranges of the indices of a member for given rows and targets."""

    @abstractmethod
    def inner_label(self, *index: int) -> str:
        """What a member for given rows and targets is."""

    @abstractmethod
    def inner_values(self, T: Array, domain: Domain, *index: Array) -> Array:
        """The values (…, members) at the matrices T (…, D, n, k)."""

    def describe(self, *index: int) -> str:
        i, j, *rest = index
        n, k = self.filled
        rows, targets = combination_at(self.variety.d_out, n, i), combination_at(self.variety.num_targets, k, j)
        return f"rows={rows} targets={targets} {self.inner_label(*rest)}"

    def values(self, points: Points, *index: Array) -> Array:
        y = np.moveaxis(points.first_cross, -3, -2)
        (n, k), (i, j, *rest) = self.filled, index
        out = points.domain.zeros((*points.batch, len(i)))
        for choice in sorted(set(zip(i.tolist(), j.tolist()))):
            rows = combination_array(self.variety.d_out, n, np.array(choice[:1]))[0]
            targets = combination_array(self.variety.num_targets, k, np.array(choice[1:]))[0]
            own = np.flatnonzero((i == choice[0]) & (j == choice[1]))
            T = y[..., rows, :][..., targets]
            out[..., own] = self.inner_values(T, points.domain, *(digit[own] for digit in rest))
        return out

    def polynomial(self, index: int) -> Polynomial:
        if self.degree > self.most_written:
            raise SizeError(
                f"a member of degree {self.degree} given; up to {self.most_written} are written out: evaluate it"
            )
        return super().polynomial(index)


class CommutantRank(HeadFamily):
    """The system X T_s = T_s Y in (X, Y) ∈ gl_n × gl_k has at least H independent solutions: minors vanish.

    Its matrix has a row for each entry of X and Y but the last one of Y, since (1, 1) is always a solution, and a
    column for each entry (s, i, j) of the T_s. Its rank is at most n² + k² − H.

    >>> from attngeom.equations.variety import Variety
    >>> CommutantRank(Variety(2, 1, d_out=2, heads=2, value_width=1)).degree
    7
    """

    number = 17
    title = "commutant-rank"
    source = "minors of the commutant of H heads; not in [I]"
    is_independent = False
    most_written = EXPANDED_MINOR

    @property
    def degree(self) -> int:
        n, k = self.filled
        return n * n + k * k - self.variety.heads + 1

    @property
    def inner_sizes(self) -> tuple[int, ...]:
        n, k = self.filled
        return comb(n * n + k * k - 1, self.degree), comb(self.variety.num_pairs * n * k, self.degree)

    def inner_label(self, *index: int) -> str:
        i, j = index
        n, k = self.filled
        rows = combination_at(n * n + k * k - 1, self.degree, i)
        return f"unknowns={rows} equations={combination_at(self.variety.num_pairs * n * k, self.degree, j)}"

    def inner_values(self, T: Array, domain: Domain, *index: Array) -> Array:
        n, k = self.filled
        I = combination_array(n * n + k * k - 1, self.degree, index[0])
        J = combination_array(self.variety.num_pairs * n * k, self.degree, index[1])
        matrix = commutant_matrix(T, domain)
        return np.asarray(domain.det(matrix[..., I[:, :, None], J[:, None, :]]))


class CommutingSlices(HeadFamily):
    """Σ_σ sgn(σ) T_σ(1) T_0* T_σ(2) T_0* ⋯ T_σ(2r) = 0 for heads of ranks ≤ r, T_0* the adjugate, n = k = H r.

    T_s T_0⁻¹ are block diagonal with H blocks of size r in one basis, and r×r matrices satisfy the standard identity of
    degree 2r (Amitsur and Levitzki); for r = 1 they commute.

    >>> from attngeom.equations.variety import Variety
    >>> CommutingSlices(Variety(2, 1, d_out=2, heads=2, value_width=1)).degree
    3
    """

    number = 18
    title = "commuting-slices"
    source = "standard identities of the slices of H heads; not in [I]"
    is_independent = False
    most_written = EXPANDED_SLICES

    @property
    def block(self) -> int:
        """r, the size of the blocks."""
        return max(self.variety.value_rank, self.variety.rank_bound)

    @property
    def filled(self) -> tuple[int, int]:
        n = self.variety.heads * self.block
        return n, n

    @property
    def degree(self) -> int:
        return (2 * self.block - 1) * self.filled[0] + 1

    @property
    def inner_sizes(self) -> tuple[int, ...]:
        n, number = self.filled[0], 2 * self.block + 1
        return comb(self.variety.num_pairs, number), number, n, n

    def _slices(self, choice: int, base: int) -> tuple[int, list[int]]:
        chosen = list(combination_at(self.variety.num_pairs, 2 * self.block + 1, choice))
        return chosen.pop(base), chosen

    def inner_label(self, *index: int) -> str:
        choice, base, i, j = index
        names = pairs(self.variety.d)
        zero, others = self._slices(choice, base)
        return f"S=({', '.join(str(names[s]) for s in others)}) base={names[zero]} entry={(i, j)}"

    def inner_values(self, T: Array, domain: Domain, *index: Array) -> Array:
        out = domain.zeros((*T.shape[:-3], len(index[0])))
        for choice, base in sorted(set(zip(index[0].tolist(), index[1].tolist()))):
            own = np.flatnonzero((index[0] == choice) & (index[1] == base))
            zero, others = self._slices(choice, base)
            value = standard_polynomial(T[..., others, :, :], adjugate(T[..., zero, :, :], domain), domain)
            out[..., own] = value[..., index[2][own], index[3][own]]
        return out


def commutant_matrix(T: Array, domain: Domain) -> Array:
    """The rows of X T_s − T_s Y for the unit matrices X and all but the last unit matrix Y: (…, n² + k² − 1, D n k)."""
    D, n, k = T.shape[-3:]
    matrix = domain.zeros((*T.shape[:-3], n * n + k * k, D, n, k))
    for i in range(n):
        for j in range(n):
            matrix[..., i * n + j, :, i, :] = T[..., :, j, :]
    for m in range(k):
        for l in range(k):
            matrix[..., n * n + m * k + l, :, :, l] = domain.reduce(-T[..., :, :, m])
    return matrix[..., :-1, :, :, :].reshape(*T.shape[:-3], n * n + k * k - 1, D * n * k)


def adjugate(matrix: Array, domain: Domain) -> Array:
    """The matrix of cofactors, transposed, of square matrices (…, n, n)."""
    n = matrix.shape[-1]
    if n == 1:
        return np.broadcast_to(domain.convert([[1]]), matrix.shape)
    cofactors = domain.zeros(matrix.shape)
    for i in range(n):
        for j in range(n):
            rows, columns = ([x for x in range(n) if x != drop] for drop in (i, j))
            minor = domain.det(matrix[..., rows, :][..., columns])
            cofactors[..., j, i] = minor if (i + j) % 2 == 0 else domain.reduce(-minor)
    return cofactors


def standard_polynomial(factors: Array, between: Array, domain: Domain) -> Array:
    """Σ_σ sgn(σ) F_σ(1) B F_σ(2) B ⋯ F_σ(c) for matrices F (…, c, n, n) and B (…, n, n), by subsets of the factors."""
    count = factors.shape[-3]
    F = [factors[..., i, :, :] for i in range(count)]
    partial: dict[int, Array] = {1 << i: F[i] for i in range(count)}
    for _ in range(count - 1):
        following: dict[int, Array] = {}
        for subset, value in partial.items():
            left = domain.matmul(value, between)
            for i in (i for i in range(count) if not subset >> i & 1):
                # The factor i moves past those of the subset that have larger numbers.
                term = domain.matmul(left, F[i])
                signed = domain.reduce(-term) if (subset >> i).bit_count() % 2 else term
                key = subset | 1 << i
                following[key] = signed if key not in following else domain.reduce(following[key] + signed)
        partial = following
    return partial[(1 << count) - 1]
