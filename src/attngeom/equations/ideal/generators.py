"""Explicit integer generators: highest weight vectors lifted to Z and verified, whole modules by lowering operators."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import permutations, product
from math import gcd

import numpy as np
from flint import fmpq_mat

from attngeom.equations.ideal.coordinates import coordinates
from attngeom.equations.ideal.limits import check
from attngeom.equations.ideal.monomials import (
    evaluate_monomials,
    monomial_table,
    operator,
    raising_operators,
    shift,
    simple_steps,
)
from attngeom.equations.ideal.records import DegreeSummary
from attngeom.equations.ideal.weight_spaces import WeightEngine
from attngeom.equations.variety import Variety
from attngeom.exact.domains import GF, QQ, Array
from attngeom.exact.lifting import lift_nullspace
from attngeom.exact.modular import echelon_mod_p, rref_mod_p
from attngeom.exact.numbers import WORD_PRIME
from attngeom.exact.partitions import Partition, Weight, dominant, dominant_weights, pad, predicted_dimension, strip
from attngeom.limits.memory import ORBIT_ENTRIES
from attngeom.limits.trials import SPARE_WEIGHT_POINTS


@dataclass(frozen=True)
class HighestWeightVector:
    """A highest weight vector of the ideal with coprime integer coefficients, in scaled coordinates.

    ``factors`` number the coordinates of ``model``, the smallest one with the rows of the shapes; larger models have
    the same coordinates under other numbers.
    ``is_verified``: it was checked exactly that all raising operators kill it and, by symbolic substitution, that
    it vanishes on the variety; then its whole module vanishes there.
    """

    variety: Variety
    degree: int
    shapes: tuple[Partition, ...]
    factors: tuple[tuple[int, ...], ...]
    coefficients: tuple[int, ...]
    is_verified: bool

    @property
    def terms(self) -> dict[tuple[int, ...], int]:
        return dict(zip(self.factors, self.coefficients))

    def to_text(self) -> str:
        """The polynomial in readable form, 0-based indices."""
        names = coordinates(self.variety).names
        return write_terms(self.coefficients, ["*".join(names[i] for i in factors) for factors in self.factors])


def write_terms(coefficients: Iterable[int], words: Iterable[str]) -> str:
    """A sum of nonzero integers times words.

    >>> write_terms([-1, 2], ["x*y", "z"])
    '- x*y + 2*z'
    """
    signed = (
        ("-" if c < 0 else "+", "" if abs(c) == 1 else f"{abs(c)}*", word) for c, word in zip(coefficients, words)
    )
    return " ".join(f"{sign} {factor}{word}" for sign, factor, word in signed).removeprefix("+ ")


@dataclass(frozen=True)
class ModuleSpace:
    """The part of a module in one dominant weight: integer polynomials as rows over the monomials ``factors``."""

    weight: Weight
    factors: Array
    coefficients: Array


def highest_weight_vectors(
    variety: Variety, degree: int, shapes: Weight, expected: int, seed: int = 0
) -> list[HighestWeightVector]:
    """``expected`` highest weight vectors of the ideal, independent modulo R_1 · I_{n-1}, over Z.

    They span the nullspace of evaluations and raising operators, known mod any prime and lifted to Q. Only indices
    below the numbers of rows of the shapes occur, so the variety is restricted to them.

    >>> highest_weight_vectors(Variety(9, 1), 2, ((3, 1), (1, 1)), 1)[0].to_text()
    'y_0_0_0*y_0_1_1 - y_0_0_1*y_0_1_0'
    """
    shapes = tuple(strip(part) for part in shapes)
    variety = variety.restrict([max(1, len(shape)) for shape in shapes])
    weight = tuple(pad(shape, size) for shape, size in zip(shapes, variety.groups))
    engine = WeightEngine(variety, seed=seed)
    space = engine.table.space(degree, weight)
    raising = raising_operators(engine.table, degree, weight)
    stacked = np.concatenate([np.zeros((0, len(space)), dtype=np.int64), *(E.T.toarray() for E in raising)])
    count = engine.kernel(degree, weight).rank + SPARE_WEIGHT_POINTS

    def equations(p: int) -> Array:
        points = coordinates(variety).sample(count, p, np.random.default_rng([engine.seed, p]))
        return np.concatenate([stacked % p, evaluate_monomials(space.factors, points, p)])

    basis = lift_nullspace(equations)
    if basis is None:
        raise ArithmeticError(f"no rational highest weight vectors of weight {weight} in degree {degree} were found")
    vectors = []
    for row in _independent_modulo(engine, degree, weight, basis, expected):
        integers = _primitive(row)
        terms = {tuple(f): c for f, c in zip(space.factors.tolist(), integers) if c}
        raised = stacked @ np.array(integers, dtype=object) if len(stacked) else np.zeros(0)
        is_verified = not np.any(raised) and vanishes_on(variety, terms)
        vectors.append(HighestWeightVector(variety, degree, shapes, tuple(terms), tuple(terms.values()), is_verified))
    return vectors


def vanishes_on(variety: Variety, terms: Mapping[tuple[int, ...], int]) -> bool:
    """Whether a homogeneous polynomial vanishes on the variety: substitution of generic weights, a proof either way.

    ``terms`` maps sorted numbers of coordinates, with repetition, to coefficients.

    >>> vanishes_on(Variety(2, 1), {(0, 3): 1, (1, 2): -1})
    True
    """
    known = coordinates(variety)
    monomials = {tuple(factors.count(i) for i in range(len(known.names))): c for factors, c in terms.items()}
    return bool(QQ.polynomials(known.names).from_dict(monomials).compose(*known.generic()).is_zero())


def _primitive(row: Array) -> list[int]:
    """The coprime integer multiple of a rational vector whose first nonzero entry is positive."""
    integers = [int(x) for x in fmpq_mat([row.tolist()]).numer_denom()[0].entries()]
    content = gcd(*integers)
    sign = -1 if next(x for x in integers if x) < 0 else 1
    return [sign * x // content for x in integers]


def _independent_modulo(engine: WeightEngine, degree: int, weight: Weight, candidates: Array, expected: int) -> Array:
    """The first candidates that are independent modulo R_1 · I_{n-1}; all of them if that is what is expected."""
    if len(candidates) == expected:
        return candidates
    free = engine.kernel(degree, weight).free
    blocks = []
    for columns, values in engine.products(degree, weight):
        blocks.append(np.zeros((len(values), len(free)), dtype=np.int64))
        blocks[-1][:, columns] = values
    rows = np.concatenate([*blocks, GF(engine.prime).convert(candidates)[:, free]])
    before = len(rows) - len(candidates)
    first = echelon_mod_p(np.ascontiguousarray(rows.T), engine.prime).columns
    return candidates[[k - before for k in first if k >= before][:expected]]


def generator_vectors(variety: Variety, degrees: Iterable[DegreeSummary], seed: int = 0) -> list[HighestWeightVector]:
    """One highest weight vector for each module of minimal generators of a run, verified over Z.

    >>> from attngeom.equations.ideal import Run
    >>> variety = Variety(3, 3)
    >>> [v.shapes for v in generator_vectors(variety, Run(variety, 3).degrees())]
    [((2, 2, 2), (3,)), ((3, 3), (1, 1, 1))]
    """
    vectors = []
    for degree in degrees:
        for module in degree.modules:
            check()
            vectors += highest_weight_vectors(variety, degree.degree, module.shapes, module.multiplicity, seed)
    return vectors


def prove_dimensions(
    summaries: Iterable[DegreeSummary], vectors: Sequence[HighestWeightVector]
) -> tuple[DegreeSummary, ...]:
    """The degrees with dimensions marked as proven, as far as the verified generators prove them.

    The evaluation rank bounds dim I_n from above. From below: if dim I_{n-1} is proven, its basis mod p is the
    reduction of one over Q, so dim R_1 · I_{n-1} is at least its value mod p; the verified modules add the rest.

    >>> from attngeom.equations.ideal import Run
    >>> variety = Variety(2, 2, d_out=2)
    >>> degrees = Run(variety, 2).degrees()
    >>> prove_dimensions(degrees, generator_vectors(variety, degrees))[-1].is_dimension_proven
    True
    """
    degrees = []
    is_proven = True
    for degree in summaries:
        own = [v for v in vectors if v.degree == degree.degree]
        wanted = sum(module.multiplicity for module in degree.modules)
        is_proven = is_proven and len(own) == wanted and all(v.is_verified for v in own)
        if is_proven:
            is_first = degree.ideal_dimension == degree.minimal_generators or not degree.modules
            generated = degree.is_generation_proven or is_first
            degree = replace(degree, is_dimension_proven=True, is_generation_proven=generated, error_bound=0.0)
        degrees.append(degree)
    return tuple(degrees)


class ModuleExpansion:
    """The module of one highest weight vector: bases of dominant weight spaces, all other weights by permutation.

    M[w] = Σ_s F_s M[w + α_s] over the simple lowering operators F_s, for every weight w below the highest one.
    """

    def __init__(self, variety: Variety, vector: HighestWeightVector) -> None:
        self.variety, self.vector = variety, vector
        self.table = monomial_table(variety)
        self.top: Weight = tuple(pad(s, size) for s, size in zip(vector.shapes, variety.groups))
        space = self.table.space(vector.degree, self.top)
        row = np.zeros((1, len(space)), dtype=np.int64)
        position = coordinates(variety).position
        numbers = np.array([position[c] for c in coordinates(vector.variety).all])
        factors = np.sort(numbers[np.array(vector.factors)], axis=1)
        places = np.searchsorted(space.keys, self.table.encode(factors))
        row[0, places] = vector.coefficients
        self._bases: dict[Weight, Array] = {self.top: row}

    def basis(self, weight: Weight) -> Array:
        """Integer polynomials that span the module in one dominant weight, as rows."""
        if weight not in self._bases:
            wanted = self._expected(weight)
            empty = np.zeros((0, len(self.table.space(self.vector.degree, weight))), dtype=np.int64)
            self._bases[weight] = _choose_rows(
                np.concatenate([empty, *(self._lowered(weight) if wanted else [])]), wanted
            )
        return self._bases[weight]

    def _expected(self, weight: Weight) -> int:
        return predicted_dimension({self.vector.shapes: 1}, weight)

    def _lowered(self, weight: Weight) -> list[Array]:
        degree = self.vector.degree
        rows = []
        for group, s in simple_steps(self.variety.groups):
            above = shift(weight, group, s + 1, s)
            if above is not None and self._expected(dominant(above)):
                rows.append(self.basis(dominant(above)) @ operator(self.table, degree, above, group, s, s + 1))
        return rows

    def spaces(self) -> Iterator[ModuleSpace]:
        """All weights of the module: dominant ones and their permutations, each with its polynomials."""
        degree = self.vector.degree
        for top in dominant_weights(tuple(sum(shape) for shape in self.vector.shapes), self.variety.groups):
            if not self._expected(top):
                continue
            basis, factors = self.basis(top), self.table.space(degree, top).factors
            orbit = list(product(*(sorted(set(permutations(part)), reverse=True) for part in top)))
            step = 1 + ORBIT_ENTRIES // factors.size
            for start in range(0, len(orbit), step):
                weights = orbit[start : start + step]
                moved = np.sort(self.table.relabelings(weights)[:, factors], axis=-1)
                for weight, permuted in zip(weights, moved):
                    yield ModuleSpace(weight, permuted, basis)


def _choose_rows(matrix: Array, wanted: int) -> Array:
    """``wanted`` independent rows, divided by their contents, those of few terms first."""
    contents = np.gcd.reduce(matrix, axis=1, initial=0)
    matrix = matrix[contents > 0] // contents[contents > 0][:, None]
    order = np.lexsort((np.abs(matrix).max(axis=1, initial=0), np.count_nonzero(matrix, axis=1)))
    matrix = matrix[order]
    pivots = list(rref_mod_p(np.ascontiguousarray(matrix.T), WORD_PRIME).pivots)
    if len(pivots) != wanted:
        raise ArithmeticError(f"{len(pivots)} independent polynomials in a weight space of dimension {wanted}")
    return np.asarray(matrix[pivots])


def module_spaces(
    variety: Variety, vectors: Sequence[HighestWeightVector], whole: bool
) -> Iterator[tuple[int, ModuleSpace]]:
    """(number of the module, polynomials of one weight): the whole modules, or only their highest weight vectors."""
    table = monomial_table(variety)
    for number, vector in enumerate(vectors):
        expansion = ModuleExpansion(variety, vector)
        if whole:
            for space in expansion.spaces():
                check()
                yield number, space
        else:
            factors = table.factors_of(vector.degree, expansion.top)
            yield number, ModuleSpace(expansion.top, factors, expansion.basis(expansion.top))
