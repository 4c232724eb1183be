"""Engine W: the ideal of any torus-graded parametrization, one dominant weight space at a time, with no theory assumed.

In one weight space the ideal is the nullspace of the matrix of monomials evaluated at random points of the variety.
The rank of that matrix mod p is a lower bound for the Hilbert function over Q, so the nullity is a proven upper bound
for dim I_n; equality is Monte Carlo, with the error bound of :func:`error_bound`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from attngeom.equations.ideal.coordinates import coordinates
from attngeom.equations.ideal.limits import check
from attngeom.equations.ideal.monomials import evaluate_monomials, monomial_table
from attngeom.equations.ideal.records import WeightResult
from attngeom.equations.variety import Variety
from attngeom.exact.arrays import Array
from attngeom.exact.domains import GF, matmul_mod
from attngeom.exact.modular import rank_mod_p, rref_mod_p
from attngeom.exact.partitions import Weight
from attngeom.exact.primes import WORD_PRIME
from attngeom.limits.trials import SPARE_WEIGHT_POINTS


@dataclass(frozen=True)
class Kernel:
    """A basis of the ideal in one weight space: rows of ``basis``, with an identity matrix in the columns ``free``."""

    rank: int
    free: Array
    basis: Array


class WeightEngine:
    """Dominant weight spaces of one variety over one prime; kernels are kept until :meth:`forget`.

    >>> engine = WeightEngine(Variety(d=2, a=2))
    >>> engine.kernel(4, ((4, 4), (2, 2))).basis.shape[0]
    1
    """

    def __init__(self, variety: Variety, prime: int = WORD_PRIME, seed: int = 0) -> None:
        self.variety = variety
        self.prime = prime
        self.seed = seed
        self.table = monomial_table(variety)
        self._rng = np.random.default_rng([seed, prime])
        self._points = coordinates(variety).sample(256, prime, self._rng)
        self._kernels: dict[tuple[int, Weight], Kernel] = {}

    def points(self, count: int) -> Array:
        """The first ``count`` of a growing list of random points of the variety."""
        if len(self._points) < count:
            more = max(count - len(self._points), len(self._points))
            points = coordinates(self.variety).sample(more, self.prime, self._rng)
            self._points = np.concatenate([self._points, points])
        return self._points[:count]

    def kernel(self, degree: int, weight: Weight) -> Kernel:
        """The ideal in one dominant weight space, from as few evaluation points as its rank needs."""
        if (degree, weight) not in self._kernels:
            self._kernels[degree, weight] = self._compute_kernel(degree, weight)
        return self._kernels[degree, weight]

    def forget(self, degree: int) -> None:
        """Drop the kernels of all degrees up to the given one."""
        self._kernels = {key: kernel for key, kernel in self._kernels.items() if key[0] > degree}

    def _compute_kernel(self, degree: int, weight: Weight) -> Kernel:
        space = self.table.space(degree, weight)
        size = len(space)
        check(operations=size**3, size=6 * 8 * size**2)
        count = min(size, max(48, size // 4)) + SPARE_WEIGHT_POINTS
        while True:
            values = evaluate_monomials(space.factors, self.points(count), self.prime)
            echelon = rref_mod_p(values, self.prime)
            if echelon.rank == size or echelon.rank + SPARE_WEIGHT_POINTS <= count:
                break
            count = min(2 * count, size + SPARE_WEIGHT_POINTS)
        return Kernel(echelon.rank, echelon.free, GF(self.prime).kernel(echelon))

    def products(self, degree: int, weight: Weight) -> list[tuple[Array, Array]]:
        """R_1 · I_{n-1} in one weight space, in the free columns of I_n: pairs (columns, rows of values).

        An element of I_n is determined by its entries in the free columns, so nothing is lost.
        """
        kernel = self.kernel(degree, weight)
        space = self.table.space(degree, weight)
        slot = np.full(len(space), -1)
        slot[kernel.free] = np.arange(len(kernel.free))
        products = []
        for coordinate, rest in self.table.quotients(weight):
            top, _ = self.table.relabel(rest)
            lower = self.kernel(degree - 1, top)
            if not len(lower.free):
                continue
            keys = self.table.encode(self.table.times(degree - 1, rest, coordinate))
            columns = slot[np.searchsorted(space.keys, keys)]
            seen = columns >= 0
            products.append((columns[seen], lower.basis[:, seen]))
        return products

    def generated_dimension(self, degree: int, weight: Weight, predicted_generators: int = 0) -> int:
        """dim (R_1 · I_{n-1})[weight]; stops early at dim I_n[weight] minus what larger weights already explain.

        The products are first thrown into few random buckets; the rank of the buckets is a lower bound. Products are
        then reduced modulo the span of the buckets, which gives the exact rank.
        """
        size = len(self.kernel(degree, weight).free)
        bound = size - predicted_generators
        if degree == 0 or bound <= 0:
            return 0
        products = self.products(degree, weight)
        buckets = self._throw(products, size)
        rank = rank_mod_p(buckets, self.prime)
        if rank == bound:
            return rank
        outside = GF(self.prime).nullspace(buckets).T
        rest = [matmul_mod(values, outside[columns], self.prime) for columns, values in products]
        return rank + (rank_mod_p(np.concatenate(rest), self.prime) if rest else 0)

    def _throw(self, products: list[tuple[Array, Array]], size: int) -> Array:
        """Random sums of the products: each is used once, in a random row with a random coefficient."""
        rng = np.random.default_rng([self.seed, size])
        buckets = np.zeros((size + SPARE_WEIGHT_POINTS, size), dtype=np.int64)
        for columns, values in products:
            for start in range(0, len(values), len(buckets)):
                part = values[start : start + len(buckets)]
                rows = rng.permutation(len(buckets))[: len(part)]
                scale = rng.integers(1, self.prime, (len(part), 1))
                buckets[np.ix_(rows, columns)] += part * scale % self.prime
        return buckets % self.prime

    def weights(self, degree: int) -> tuple[Weight, ...]:
        """The dominant weights of R_n, largest first."""
        return self.table.dominant_weights(degree)

    def run(self, degree: int, weight: Weight, predicted_generators: int = 0) -> WeightResult:
        """The full result for one dominant weight."""
        kernel = self.kernel(degree, weight)
        generated = self.generated_dimension(degree, weight, predicted_generators)
        size = len(self.table.space(degree, weight))
        is_proven = kernel.rank == size
        return WeightResult(degree, weight, size, kernel.rank, generated, is_proven, is_proven)


def error_bound(variety: Variety, results: list[WeightResult], prime: int) -> float:
    """A bound on the probability that some rank at random points mod p is below the rank of the polynomials mod p.

    Schwartz and Zippel for one nonzero r×r minor of degree r · n · (degree of the parametrization) in each weight
    space. It does not cover the finitely many primes at which the polynomials themselves become dependent; a second
    prime does.
    """
    return min(1.0, sum(r.rank * r.degree * variety.degree_in_parameters for r in results) / prime)
