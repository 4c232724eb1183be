"""Engine H: highest weight vectors of the cross-column ideal under GL(V) × GL(U), for all attention widths at once.

R_n = ⊕ S_μ(S²V) ⊗ S_μU. The highest weight vectors of weight (λ, μ) are the combinations of tableaux of shape μ and
weight λ that all raising operators kill. A Borel subgroup has a dense orbit on the variety, so such a vector
vanishes on the variety exactly if it vanishes at one point of that orbit.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from attngeom.equations.ideal.limits import check
from attngeom.equations.ideal.monomials import (
    borel_point,
    encode_monomials,
    is_excluded,
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
from attngeom.exact.arrays import Array
from attngeom.exact.domains import GF, matmul_mod
from attngeom.exact.modular import Pivots, echelon_mod_p, rank_mod_p
from attngeom.exact.multisets import pairs
from attngeom.exact.partitions import Partition, Weight, is_partition, pad, partitions, remove_horizontal_strips, strip
from attngeom.exact.primes import WORD_PRIME
from attngeom.limits.trials import FIRST_WEIGHT_POINTS, SPARE_WEIGHT_POINTS


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
