"""The ideal one weight at a time: whole weight spaces of any torus-graded variety, or highest weight vectors alone.

In one weight space the ideal is the nullspace of the matrix of monomials evaluated at random points of the variety.
The rank of that matrix mod p is a lower bound for the Hilbert function over Q, so the nullity is a proven upper bound
for dim I_n; equality is Monte Carlo, with the error bound of :func:`error_bound`.

R_n = ⊕ S_μ(S²V) ⊗ S_μU. The highest weight vectors of weight (λ, μ) are the combinations of tableaux of shape μ and
weight λ that all raising operators kill. A Borel subgroup has a dense orbit on the variety, so such a vector
vanishes on the variety exactly if it vanishes at one point of that orbit.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from attngeom.equations.ideal.coordinates import coordinates
from attngeom.equations.ideal.limits import check
from attngeom.equations.ideal.monomials import (
    borel_point,
    encode_monomials,
    evaluate_monomials,
    is_excluded,
    monomial_table,
    raising_matrix,
    repetition_factorials,
)
from attngeom.equations.ideal.records import WeightResult
from attngeom.equations.ideal.tableaux import (
    MinorTable,
    TableauBasis,
    multiplicity,
    needed_minors,
    pair_weights,
    plethysm,
)
from attngeom.equations.variety import Variety
from attngeom.exact.arrays import Array
from attngeom.exact.domains import GF, matmul_mod
from attngeom.exact.modular import Pivots, echelon_mod_p, rank_mod_p, rref_mod_p
from attngeom.exact.multisets import pairs
from attngeom.exact.numbers import WORD_PRIME
from attngeom.exact.partitions import Partition, Weight, is_partition, pad, partitions, remove_horizontal_strips, strip
from attngeom.limits.trials import FIRST_WEIGHT_POINTS, SPARE_WEIGHT_POINTS


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


@dataclass(frozen=True)
class HighestWeightSpace:
    """All highest weight vectors of one weight (λ, μ) in R_n: rows of ``vectors`` are coefficients of ``tableaux``."""

    tableaux: Array
    vectors: Array

    @property
    def multiplicity(self) -> int:
        return len(self.vectors)


@dataclass(frozen=True)
class Expansion:
    """Highest weight vectors as polynomials in Y: coefficients (vectors × monomials), factors and keys of monomials."""

    coefficients: Array
    factors: Array
    keys: Array


class HighestWeightEngine:
    """Highest weight vectors for C^d and C^targets mod one prime.

    >>> engine = HighestWeightEngine(3, 3)
    >>> engine.ideal((3, 3), (1, 1, 1), a=3).shape[0], engine.ideal((4, 1, 1), (1, 1, 1), a=3).shape[0]
    (1, 0)
    """

    def __init__(self, d: int, targets: int, prime: int = WORD_PRIME, seed: int = 0) -> None:
        self.d, self.targets, self.prime, self.seed = d, targets, prime, seed
        self.basis = TableauBasis(d)
        self._rng = np.random.default_rng([seed, prime])
        self._raising = raising_matrix(d)
        self._first_points = MinorTable(self.basis, *self._random_points(FIRST_WEIGHT_POINTS, targets), prime)
        self._borel_points: dict[int, MinorTable] = {}
        self._spaces: dict[tuple[Partition, Partition], HighestWeightSpace] = {}
        self._expansions: dict[tuple[Partition, Partition], Expansion] = {}
        self._ideals: dict[tuple[Partition, Partition, int], Array] = {}
        self._pairings: dict[tuple[Partition, Partition, Partition, Partition], Array] = {}

    def weights(self, degree: int) -> tuple[Weight, ...]:
        """The highest weights (λ, μ) of R_n."""
        shapes = partitions(degree, min(self.targets, len(pairs(self.d))))
        return tuple((lam, mu) for mu in shapes for lam in plethysm(mu, self.d))

    def space(self, lam: Partition, mu: Partition) -> HighestWeightSpace:
        """The highest weight vectors of weight (λ, μ) in R_n; their number must be the plethysm coefficient."""
        key = (lam, mu)
        if key not in self._spaces:
            tableaux = self.basis.tableaux(mu, lam)
            size = len(tableaux)
            count = size + SPARE_WEIGHT_POINTS
            check(operations=size**3, size=6 * 8 * size**2)
            equations = self._raised_values(mu, tableaux, count)
            vectors = GF(self.prime).nullspace(equations)
            expected = multiplicity(lam, mu)
            if len(vectors) != expected:
                raise ArithmeticError(
                    f"{len(vectors)} highest weight vectors of weight {lam}, {mu} mod {self.prime}; "
                    f"{expected} exist over Q; use another prime"
                )
            self._spaces[key] = HighestWeightSpace(tableaux, vectors)
        return self._spaces[key]

    def _raised_values(self, mu: Partition, tableaux: Array, count: int, chunk: int = 512) -> Array:
        """E(tableau) at random points: one equation for each point. The first points are the same for all weights."""
        values = [self._first_points.evaluate(mu, tableaux)[1][:count]]
        for start in range(FIRST_WEIGHT_POINTS, count, chunk):
            points, moved = self._random_points(min(chunk, count - start), len(mu))
            table = MinorTable(self.basis, points, moved, self.prime, needed_minors(self.basis, mu, tableaux))
            values.append(table.evaluate(mu, tableaux)[1])
        return np.concatenate(values)

    def _random_points(self, count: int, targets: int) -> tuple[Array, Array]:
        """Random points and their images under the sum of the raising operators."""
        points = self._rng.integers(0, self.prime, (count, self.basis.size, targets))
        return points, matmul_mod(self._raising[None], points, self.prime)

    def ideal(self, lam: Partition, mu: Partition, a: int) -> Array:
        """The highest weight vectors that vanish on the variety, as rows of coefficients of those of :meth:`space`."""
        key = (lam, mu, min(a, self.d, self.targets))
        if key not in self._ideals:
            space = self.space(lam, mu)
            if key[2] not in self._borel_points:
                point = borel_point(self.d, self.targets, a)[None]
                self._borel_points[key[2]] = MinorTable(self.basis, point, np.zeros_like(point), self.prime)
            values, _ = self._borel_points[key[2]].evaluate(mu, space.tableaux)
            at_point = matmul_mod(values, np.ascontiguousarray(space.vectors.T), self.prime)
            self._ideals[key] = GF(self.prime).nullspace(at_point)
        return self._ideals[key]

    def expansion(self, lam: Partition, mu: Partition) -> Expansion:
        """The highest weight vectors of weight (λ, μ) as polynomials in Y."""
        key = (lam, mu)
        if key not in self._expansions:
            space = self.space(lam, mu)
            tableau, variables, signs = self.basis.expand(mu, space.tableaux, self.targets)
            codes = self.encode(variables)
            order = np.argsort(codes, kind="stable")
            starts = np.flatnonzero(np.append(True, codes[order][1:] != codes[order][:-1]))
            first = order[starts]
            terms = signs[order] * space.vectors[:, tableau[order]]
            coefficients = np.add.reduceat(terms, starts, axis=1) % self.prime
            self._expansions[key] = Expansion(coefficients, variables[first], codes[first])
        return self._expansions[key]

    def encode(self, variables: Array) -> Array:
        """Codes of monomials in Y given as rows of sorted variable numbers."""
        return encode_monomials(variables, self.basis.size * self.targets)

    def pairing(self, lower: tuple[Partition, Partition], upper: tuple[Partition, Partition]) -> Array:
        """Fischer products ⟨Y_w h', g⟩ of the vectors h' of degree n-1 and g of degree n; w their difference."""
        key = (*lower, *upper)
        if key not in self._pairings:
            variable = self._variable(lower, upper)
            h, g = self.expansion(*lower), self.expansion(*upper)
            extra = np.full((len(h.factors), 1), variable)
            products = np.sort(np.concatenate([h.factors, extra], axis=1), axis=1)
            codes = self.encode(products)
            place = np.minimum(np.searchsorted(g.keys, codes), len(g.keys) - 1)
            seen = np.flatnonzero(g.keys[place] == codes)
            norms = self._norms(products[seen])
            left = h.coefficients[:, seen] * norms % self.prime
            right = np.ascontiguousarray(g.coefficients[:, place[seen]].T)
            self._pairings[key] = matmul_mod(left, right, self.prime)
        return self._pairings[key]

    def _variable(self, lower: tuple[Partition, Partition], upper: tuple[Partition, Partition]) -> int:
        row, target = (
            [i for i in range(size) for _ in range(pad(big, size)[i] - pad(small, size)[i])]
            for small, big, size in zip(lower, upper, (self.d, self.targets))
        )
        return pairs(self.d).index((row[0], row[1])) * self.targets + target[0]

    def _norms(self, variables: Array) -> Array:
        """Fischer norms of monomials: Π multiplicity! · 2^(number of off-diagonal factors)."""
        off_diagonal = np.array([i != j for i, j in pairs(self.d)])[variables // self.targets]
        return np.asarray(2 ** off_diagonal.sum(axis=1) * repetition_factorials(variables) % self.prime)

    def lower_weights(self, lam: Partition, mu: Partition) -> list[tuple[Partition, Partition]]:
        """The highest weights (λ', μ') of degree n-1 from which a product with one coordinate can reach (λ, μ)."""
        rests = np.array(pad(lam, self.d)) - pair_weights(self.d)
        smaller = [strip(tuple(rest)) for rest in rests.tolist() if is_partition(tuple(rest))]
        shapes = reversed(remove_horizontal_strips(mu, 1))
        return [(rest, shape) for shape in shapes for rest in smaller if multiplicity(rest, shape)]

    def is_ideal_proven(self, lam: Partition, mu: Partition, a: int) -> bool:
        """Whether the ideal mod p has the multiplicity that it has over Q, so that it is the reduction of that one.

        A value that is nonzero mod p proves that the module occurs in the coordinate ring; more than once it cannot
        (Pieri). Without such a value :func:`is_excluded` must say that it does not occur: else a highest weight vector
        vanishes at the point by accident, mod this prime only.
        """
        occurs = self.space(lam, mu).multiplicity - len(self.ideal(lam, mu, a))
        return occurs == (0 if is_excluded(lam, mu, min(a, self.d, self.targets)) else 1)

    def products(self, lam: Partition, mu: Partition, a: int) -> tuple[Array, bool]:
        """Rows of Fischer products of R_1 · I_{n-1} with the ideal, and whether all of I_{n-1} was used or not needed.

        It stops when the rows have full rank. Vectors of degree n-1 that are in the ideal by accident are left out.
        """
        ideal = self.ideal(lam, mu, a)
        rows = np.zeros((0, len(ideal)), dtype=np.int64)
        if not len(ideal) or sum(mu) < 2:
            return rows, True
        is_whole = True
        for lower in sorted(self.lower_weights(lam, mu), key=lambda w: len(self.basis.tableaux(w[1], w[0]))):
            if not self.is_ideal_proven(*lower, a):
                is_whole = False
                continue
            below = self.ideal(*lower, a)
            if not len(below):
                continue
            block = matmul_mod(below, self.pairing(lower, (lam, mu)), self.prime)
            rows = np.concatenate([rows, matmul_mod(block, np.ascontiguousarray(ideal.T), self.prime)])
            if rank_mod_p(rows, self.prime) == len(ideal):
                return rows, True
        return rows, is_whole

    def run(self, degree: int, weight: Weight, a: int) -> WeightResult:
        """The multiplicities of S_λ ⊗ S_μ in R_n, in the coordinate ring and in R_1 · I_{n-1}, with what is proven.

        ``pivots`` of the result are the rows and columns of a largest nonzero minor of :meth:`products`.
        The coordinate ring: see :meth:`is_ideal_proven`. A Fischer pairing of full rank mod p with reductions of
        I_{n-1} has full rank over Q, and one without rows is zero: then the number of minimal generators is proven too.
        """
        lam, mu = weight
        total, ideal = self.space(lam, mu).multiplicity, self.ideal(lam, mu, a)
        rows, is_whole = self.products(lam, mu, a)
        pivots = echelon_mod_p(rows, self.prime) if len(rows) else Pivots((), ())
        generated = pivots.rank
        is_rank_proven = self.is_ideal_proven(lam, mu, a)
        is_generated_proven = is_rank_proven and is_whole and (generated == len(ideal) or not len(rows))
        return WeightResult(
            degree, weight, total, total - len(ideal), generated, is_rank_proven, is_generated_proven, pivots
        )

    def forget(self, degree: int) -> None:
        """Drop spaces, expansions and pairings of all degrees up to the given one."""
        self._spaces = {key: v for key, v in self._spaces.items() if sum(key[1]) > degree}
        self._expansions = {key: v for key, v in self._expansions.items() if sum(key[1]) > degree}
        self._ideals = {key: v for key, v in self._ideals.items() if sum(key[1]) > degree}
        self._pairings = {key: v for key, v in self._pairings.items() if sum(key[1]) > degree}
