"""The ideal that families of invariants generate, closed under GL(V) × GL(U), by highest weight vectors.

In an isotypic part with multiplicity space I(λ, μ), the translates g·f of a polynomial f span the functionals
h ↦ ⟨g·f, h⟩ (Fischer product); their rank over random g is the multiplicity of S_λ ⊗ S_μ in the module that f
generates.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations

import numpy as np

from attngeom.equations import Family, Variety
from attngeom.equations.ideal.ledger import choose_members
from attngeom.equations.ideal.weight_spaces import HighestWeightEngine
from attngeom.exact.arrays import Array
from attngeom.exact.domains import GF, matmul_mod
from attngeom.exact.modular import rref_mod_p
from attngeom.exact.multisets import pairs
from attngeom.exact.partitions import Partition, module_dimension

MAX_TERMS = 60
MAX_CANDIDATES = 12


def translation_matrix(g: Array, targets: Array, p: int) -> Array:
    """The action of (g, targets) ∈ GL_d × GL_m on the variables Y_{ij,k} mod p: rows are images.

    >>> translation_matrix(np.array([[1, 0], [1, 1]]), np.array([[1]]), 101).tolist()
    [[1, 0, 0], [2, 1, 0], [1, 1, 1]]
    """
    half = pow(2, -1, p)
    rows = []
    for i, j in pairs(len(g)):
        # y_ij ↦ Σ g_ik g_jl y_kl; in Y the two orders of k < l meet in one variable, and Y_ii lacks the factor 2.
        scale = half if i == j else 1
        both = [int(g[i, k]) * int(g[j, l]) + int(g[i, l]) * int(g[j, k]) for k, l in pairs(len(g))]
        rows.append([x * scale % p for x in both])
    return np.kron(np.array(rows, dtype=object), targets.astype(object)) % p


class FamilyIdeal:
    """The GL × GL-stable ideal that the given families generate; a lower bound, since few members of each are used.

    >>> from attngeom.equations import find_family
    >>> FamilyIdeal(Variety(3, 3), [find_family(Variety(3, 3), "slice-pencil")]).dimension(3)
    10
    """

    def __init__(self, model: Variety, families: Sequence[Family], seed: int = 0) -> None:
        self.model, self.families = model, list(families)
        self.engine = HighestWeightEngine(model.d, model.num_targets, seed=seed)
        self.prime = self.engine.prime
        self._rng = np.random.default_rng([seed, 1])
        self._members: dict[str, list[tuple[Array, Array]]] = {}
        self._subspaces: dict[tuple[Partition, Partition], Array] = {}

    def members(self, family: Family) -> list[tuple[Array, Array]]:
        """(coefficients, factors) in the variables Y of a few members, those of few terms first."""
        if family.name not in self._members:
            index = {pair: i for i, pair in enumerate(pairs(self.model.d))}
            half = pow(2, -1, self.prime)
            found = []
            for number in choose_members(family, MAX_CANDIDATES):
                values, factors = [], []
                polynomial = family.polynomial(number)
                labels = [tuple(map(int, name.split("_")[1:])) for name in polynomial.variables]
                for exponents, c in polynomial.terms:
                    word = [label for label, e in zip(labels, exponents) for _ in range(e)]
                    off = sum(k != l for k, l, _ in word)
                    values.append(int(c.p) * pow(int(c.q), -1, self.prime) * pow(half, off, self.prime) % self.prime)
                    factors.append([index[k, l] * self.model.num_targets + m for k, l, m in word])
                found.append((np.array(values, dtype=np.int64), np.array(factors)))
            found.sort(key=lambda member: len(member[0]))
            total = np.cumsum([len(values) for values, _ in found])
            self._members[family.name] = found[: max(1, int(np.searchsorted(total, MAX_TERMS)))]
        return self._members[family.name]

    def subspace(self, lam: Partition, mu: Partition) -> Array:
        """The highest weight vectors of weight (λ, μ) in the ideal, as rows of coefficients of ``engine.space``."""
        key = (lam, mu)
        if key not in self._subspaces:
            ideal = self.engine.ideal(lam, mu, self.model.a)
            rows = np.concatenate([self._products(lam, mu, ideal), self._translates(lam, mu, ideal)])
            gram = matmul_mod(matmul_mod(ideal, self._gram(lam, mu), self.prime), ideal.T.copy(), self.prime)
            reduced = rref_mod_p(rows, self.prime).matrix if rows.size else np.zeros((0, len(ideal)), dtype=np.int64)
            solution = GF(self.prime).solve(gram, reduced.T.copy()) if len(reduced) else reduced.T
            if solution is None:
                raise ArithmeticError(f"the Fischer product degenerates mod {self.prime}; use another prime")
            self._subspaces[key] = matmul_mod(np.ascontiguousarray(solution.T), ideal, self.prime)
        return self._subspaces[key]

    def _gram(self, lam: Partition, mu: Partition) -> Array:
        """Fischer products ⟨h, h'⟩ of the highest weight vectors of one weight."""
        h = self.engine.expansion(lam, mu)
        weighted = h.coefficients * self.engine._norms(h.factors) % self.prime
        return matmul_mod(weighted, np.ascontiguousarray(h.coefficients.T), self.prime)

    def _products(self, lam: Partition, mu: Partition, ideal: Array) -> Array:
        rows = [np.zeros((0, len(ideal)), dtype=np.int64)]
        for lower in self.engine.lower_weights(lam, mu) if sum(mu) > 1 else []:
            below = self.subspace(*lower)
            if len(below) and len(ideal):
                block = matmul_mod(below, self.engine.pairing(lower, (lam, mu)), self.prime)
                rows.append(matmul_mod(block, np.ascontiguousarray(ideal.T), self.prime))
        return np.concatenate(rows)

    def _translates(self, lam: Partition, mu: Partition, ideal: Array) -> Array:
        """⟨g·f, h⟩ for random g, members f of the degree, and the vectors h of the ideal."""
        rows = np.zeros((0, len(ideal)), dtype=np.int64)
        if not len(ideal):
            return rows
        members = [m for f in self.families if f.degree == sum(mu) for m in self.members(f)]
        for coefficients, factors in members:
            for _ in range(2):
                value = self._translate(lam, mu, coefficients, factors)
                rows = np.concatenate([rows, matmul_mod(value[None], np.ascontiguousarray(ideal.T), self.prime)])
        return rows

    def _translate(self, lam: Partition, mu: Partition, coefficients: Array, factors: Array) -> Array:
        p = self.prime
        g = self._rng.integers(0, p, (self.model.d,) * 2)
        targets = self._rng.integers(0, p, (self.model.num_targets,) * 2)
        matrix = translation_matrix(g, targets, p).astype(np.int64)
        h = self.engine.expansion(lam, mu)
        total = np.zeros(len(h.factors), dtype=np.int64)
        for order in permutations(range(factors.shape[1])):
            product = np.broadcast_to(coefficients[:, None], (len(factors), len(h.factors)))
            for i, place in enumerate(order):
                product = product * matrix[factors[:, i][:, None], h.factors[:, place][None]] % p
            total = (total + product.sum(axis=0)) % p
        # The sum over all orders already contains the multiplicities of the Fischer norm.
        off = np.array([i != j for i, j in pairs(self.model.d)])[h.factors // self.model.num_targets].sum(axis=1)
        weighted = total * 2**off % p
        return matmul_mod(h.coefficients, weighted[:, None], p)[:, 0]

    def dimension(self, degree: int) -> int:
        """dim of the ideal in one degree."""
        return sum(len(self.subspace(*w)) * module_dimension(w, self.model.groups) for w in self.engine.weights(degree))
