"""Search for symmetries by linear algebra: which fields of the ansatz does the Jacobian annihilate, at every point?

What is found held at random points modulo one prime, and is lifted to rationals; :mod:`attngeom.rank.upper` proves it.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import combinations
from math import gcd, lcm

import numpy as np
from flint import fmpq, nmod_mat

from attngeom.errors import InputError, SingularError, SizeError
from attngeom.exact.arrays import Array
from attngeom.exact.lifting import reconstruct
from attngeom.exact.residues import BalancedResidues, Elimination
from attngeom.limits.memory import ALL_UNKNOWNS, GROUP_UNKNOWNS
from attngeom.limits.sizes import LONG_CONSTANT, SHORT_MULTIPLE
from attngeom.limits.trials import (
    ANNIHILATED_POINTS,
    CONSTANTS_TRIED,
    FEW_POINTS,
    FEW_ROWS,
    FEW_UNKNOWNS,
    FIELD_SWEEPS,
    FRESH_POINTS,
    MANY_ROOTS,
    POINT_TRIES,
    ROWS_PER_POINT,
    SPARE_EQUATIONS,
)
from attngeom.limits.work import FINE_UNKNOWNS, TRIPLE_TENSORS
from attngeom.programs.points import NamedPoint, Progress
from attngeom.programs.program import Program
from attngeom.programs.streams import MixedStreams
from attngeom.rank.fields import Ansatz
from attngeom.rank.lower import RankBound, find_point
from attngeom.rank.stages import degree_for

Field = dict[tuple[int, int | None], fmpq]
"""A field: (weight that moves, weight by which, or None for 1): times what."""


@dataclass(frozen=True, kw_only=True)
class Symmetries:
    """A basis of the fields that were found, in as few terms as possible; ``lost`` could not be lifted to Q."""

    fields: tuple[Field, ...]
    unknowns: int
    lost: int = 0


def find_symmetries(
    bound: RankBound, seed: int = 0, progress: Progress | None = None, ansatz: Ansatz | None = None
) -> Symmetries:
    """All fields of an ansatz that the Jacobian annihilates at random weights and inputs mod p.

    Unless it is given, the ansatz is that of linear maps on axes. The fields that only scale weights come first. They
    are a torus, and the others are looked for in groups that it does not mix (:meth:`Ansatz.split`). One point gives at
    most as many equations as the rank is high, so that several are needed.

    >>> from attngeom.programs import trace
    >>> from attngeom.rank.lower import bound_rank
    >>> program = trace(lambda w, x: w["B"] @ (w["A"] @ x), 3, weights={"A": (2, 3), "B": (3, 2)})
    >>> len(find_symmetries(bound_rank(program)).fields)
    4
    """
    system = _FieldSystem(bound, seed, progress, ansatz or Ansatz.of(bound.point.program))
    torus = system.solve_scalings()
    groups = system.split(torus)
    if ansatz is None and max(map(len, groups)) > FINE_UNKNOWNS:
        system.ansatz = Ansatz.of(bound.point.program, every=False)
        groups = system.split(system.solve_scalings())
    largest = max(map(len, groups))
    if largest > GROUP_UNKNOWNS or system.ansatz.count > ALL_UNKNOWNS:
        raise SizeError(f"a search with {largest:,} unknowns asked for; at most {GROUP_UNKNOWNS:,} fit")
    fields: list[Field] = []
    lost = 0
    for unknowns, basis in system.solve(groups):
        own, missing = _lift(system.ansatz, unknowns, _sparse_basis(system.ansatz, unknowns, basis, bound.prime))
        fields += own
        lost += missing
    # One and the same scale of a matrix is written on each of its axes: their difference is no field.
    return Symmetries(fields=tuple(shorten([x for x in fields if x])), unknowns=system.ansatz.count, lost=lost)


Solution = tuple[Array, Array]
"""Unknowns of a group, and a basis of the fields of the group as rows of their coefficients."""


class _FieldSystem:
    """Equations on the unknowns of an ansatz, from the rows of the Jacobian at one quick point after another."""

    def __init__(self, bound: RankBound, seed: int, progress: Progress | None, ansatz: Ansatz) -> None:
        self.program, self.region, self.rank = bound.point.program, bound.point.region, bound.value
        self.ansatz = ansatz
        self.seed, self.progress, self._number = seed, progress, 0
        self.field = BalancedResidues(bound.prime)
        self._kept: dict[tuple[int, int], Array] = {}

    def rows(self, count: int) -> tuple[Array, dict[str, Array]]:
        """Rows of the Jacobian at the next point, at most as many as its rank, and the weights there."""
        count = max(1, min(count, self.rank)) if self.program.inputs else 1
        if self.program.inputs and not self._has_rare_inputs:
            return self._drawn_rows(count)
        self._number += 1
        point = find_point(self.program, 10**6 * self._number + self.seed, self.region, quick=True)
        if (rows := self._kept.get((self._number, count))) is None:
            rows = np.concatenate([point.all_rows(x) for x in point.draw(-(-count // self.program.outputs))])
            rows = rows[~np.isnan(rows).any(axis=1)]
            self._kept |= {(self._number, count): rows} if self._has_rare_inputs else {}
        return rows, point.weights()

    def _drawn_rows(self, count: int) -> tuple[Array, dict[str, Array]]:
        for _ in range(POINT_TRIES):
            self._number += 1
            point = find_point(self.program, 10**6 * self._number + self.seed, self.region, quick=True)
            try:
                return point.draw_rows(count)[1], point.weights()
            except SingularError:
                continue
        raise InputError(f"the network does not exist at {POINT_TRIES} random points; ask for fewer outputs")

    @cached_property
    def _has_rare_inputs(self) -> bool:
        """Whether so many roots must exist at an input that all outputs there are taken, not one form on them."""
        if degree_for(self.program) > 1:
            return False
        roots = (k for k in self.program.places("root") if self.program.depends_on_input[k])
        return sum(self.program.nodes[k].size for k in roots) >= MANY_ROOTS

    def solve_scalings(self) -> Array:
        """A basis of the fields that scale weights, as coefficients of the scaling unknowns of the ansatz."""
        return self._solve_one(len(self.ansatz.scaling), self.ansatz.scaling_columns, "scales")

    def split(self, torus: Array) -> list[Array]:
        """Groups of unknowns that random elements of the torus do not mix."""
        p = self.field.p
        mixing = MixedStreams("torus").tensor(str(self.seed), (2, len(torus)), p)
        mixed = self.field.multiply(self.field.from_residues(mixing), torus)
        return self.ansatz.split(self.ansatz.rates(mixed))

    def solve(self, groups: Sequence[Array]) -> Iterator[Solution]:
        """The fields of each group."""
        small = [group for group in groups if len(group) <= FEW_UNKNOWNS]
        yield from self._solve_small(small)
        for group in groups:
            if len(group) > FEW_UNKNOWNS:
                columns = partial(self.ansatz.columns, unknowns=group)
                basis = self._solve_one(len(group), columns, "symmetries")
                if len(basis):
                    yield group, basis

    def _solve_one(self, count: int, columns: Callable[[Array, dict[str, Array]], Array], what: str) -> Array:
        """A basis of the solutions of so many unknowns, whose columns are given."""
        # Other unknowns may have the equations of the same points.
        self._number = 0 if self._has_rare_inputs else self._number
        parts, rows = list[Array](), 0
        while rows < count + SPARE_EQUATIONS:
            parts.append(columns(*self.rows(ROWS_PER_POINT)))
            rows += len(parts[-1])
            if self.progress is not None:
                self.progress(f"search for {what}", min(rows, count), count)
        basis, passed = nullspace(np.concatenate(parts), self.field.p), 0
        del parts
        for _ in range(FRESH_POINTS):
            if passed == ANNIHILATED_POINTS or not len(basis):
                break
            left = self.field.multiply(columns(*self.rows(ROWS_PER_POINT)), basis.T)
            passed = passed + 1 if not np.any(left) else 0
            if not passed:
                basis = self.field.multiply(nullspace(left, self.field.p), basis)
        return basis

    def _solve_small(self, groups: Sequence[Array]) -> Iterator[Solution]:
        """The fields of groups of few unknowns, all from the same rows."""
        if not groups:
            return
        parts, rows = list[Array](), 0
        while rows < FEW_UNKNOWNS + SPARE_EQUATIONS or len(parts) < FEW_POINTS:
            parts.append(self.ansatz.columns(*self.rows(FEW_ROWS)))
            rows += len(parts[-1])
        equations = np.concatenate(parts)
        solutions: list[Solution] = []
        for group in groups:
            basis = _small_nullspace(equations[:, group], self.field)
            if len(basis):
                solutions.append((group, basis))
        del equations, parts
        passed = 0
        for _ in range(FRESH_POINTS):
            if passed == ANNIHILATED_POINTS or not solutions:
                break
            fresh, refined = self.ansatz.columns(*self.rows(FEW_ROWS)), list[Solution]()
            passed += 1
            for group, basis in solutions:
                left = self.field.multiply(fresh[:, group], basis.T)
                if np.any(left):
                    passed, basis = 0, self.field.multiply(nullspace(left, self.field.p), basis)
                if len(basis):
                    refined.append((group, basis))
            solutions = refined
        yield from solutions


def _small_nullspace(matrix: Array, field: BalancedResidues) -> Array:
    """The nullspace of a matrix with few columns; most have none, which a few of the rows show."""
    count = matrix.shape[1]
    if count == 1:
        return np.zeros((0, 1)) if np.any(matrix) else np.ones((1, 1))
    # Rows of one point tell less than rows of several.
    first = np.linspace(0, len(matrix) - 1, min(len(matrix), 2 * count + 2)).astype(int)
    residues = field.to_integers(matrix[first])
    if nmod_mat(len(first), count, residues.ravel().tolist(), field.p).rank() == count:
        return np.zeros((0, count))
    return nullspace(matrix.copy(), field.p)


def nullspace(matrix: Array, p: int) -> Array:
    """A basis of {x : matrix x = 0} as rows of balanced residues."""
    count = matrix.shape[1]
    elimination = Elimination(matrix, p).run()
    free, entries = elimination.reduced()
    basis = np.zeros((len(free), count))
    if elimination.rank:
        basis[:, elimination.columns] = -entries.T
    basis[np.arange(len(free)), free] = 1
    return basis


def echelon(matrix: Array, p: int) -> Array:
    """The reduced row echelon form without its zero rows, as balanced residues."""
    elimination = Elimination(matrix.copy(), p).run()
    free, entries = elimination.reduced()
    reduced = np.zeros((elimination.rank, matrix.shape[1]))
    if elimination.rank:
        reduced[:, free] = entries
        reduced[np.arange(elimination.rank), elimination.columns] = 1
    return reduced


def _sparse_basis(ansatz: Ansatz, unknowns: Array, basis: Array, p: int) -> Array:
    """The same space with a basis whose fields move few tensors: first those of one tensor, then of two, and so on."""
    if len(basis) <= 1:
        return basis
    field = BalancedResidues(p)
    owners = ansatz.tensors[unknowns]
    moved = [k for k in np.unique(owners).tolist() if np.any(basis[:, owners == k])]
    # What a combination c of the basis does to one tensor is c·parts[name], of as few columns as its rank.
    parts = {name: echelon(basis[:, owners == name].T, p).T for name in moved}
    chosen = np.zeros((0, len(basis)))
    sizes = [1, 2, 3] if len(moved) <= TRIPLE_TENSORS else [1, 2]
    for size in sizes:
        for names in combinations(moved, size):
            if len(chosen) == len(basis):
                break
            others = [parts[name] for name in moved if name not in names]
            if others:
                inside = nullspace(np.concatenate(others, axis=1).T.copy(), p)
            else:
                inside = np.eye(len(basis))
            if len(inside):
                chosen = _extend(chosen, _combinations(field, inside, basis, p), p)
    rest = np.eye(len(basis))
    chosen = _extend(chosen, rest, p)
    return field.multiply(chosen, basis)


def _combinations(field: BalancedResidues, inside: Array, basis: Array, p: int) -> Array:
    """Combinations whose fields are in echelon form: few coefficients each."""
    fields = field.multiply(inside, basis)
    joined = np.concatenate([fields, inside], axis=1)
    return echelon(joined, p)[:, fields.shape[1] :]


def _extend(chosen: Array, candidates: Array, p: int) -> Array:
    """The chosen rows and those candidates that are independent of them and of earlier ones."""
    stacked = np.concatenate([chosen, candidates])
    columns = Elimination(stacked.T.copy(), p, keep_upper=False).run().columns
    return stacked[columns]


def _lift(ansatz: Ansatz, unknowns: Array, basis: Array) -> tuple[list[Field], int]:
    """The fields with rational coefficients, and how many have none of small numerator and denominator."""
    fields: list[Field] = []
    lost = 0
    lift = _Lift(ansatz.program, ansatz.prime)
    for row in basis:
        coefficients = {k: lift(int(row[k])) for k in np.flatnonzero(row).tolist()}
        lifted = {int(unknowns[k]): times for k, times in coefficients.items() if times is not None}
        if len(lifted) < len(coefficients):
            lost += 1
            continue
        field: Field = {}
        for unknown, times in lifted.items():
            block, place = ansatz.locate(unknown)
            for term in block.terms(place, ansatz.program):
                field[term] = field.get(term, fmpq(0)) + times
        fields.append({term: times for term, times in field.items() if times})
    return fields, lost


class _Lift:
    """Rationals from residues mod p: small ones, or small multiples of a constant of the program or its inverse.

    What comes out is a guess, as every field is until it is proven.
    """

    def __init__(self, program: Program, p: int) -> None:
        self.p = p
        entries = {x for place in program.places("constant") for x in set(program.nodes[place].data["entries"])}
        long = sorted(x for x in entries if max(abs(x.numerator), x.denominator) > LONG_CONSTANT)
        self.factors = [fmpq(x.numerator, x.denominator) for x in long[:CONSTANTS_TRIED]]
        self.factors += [1 / x for x in self.factors]

    def __call__(self, residue: int) -> fmpq | None:
        p = self.p
        plain = reconstruct(residue % p, p)
        if plain is not None and max(abs(int(plain.p)), int(plain.q)) <= LONG_CONSTANT:
            return plain
        for factor in self.factors:
            if int(factor.p) % p and int(factor.q) % p:
                quotient = reconstruct(residue * int(factor.q) * pow(int(factor.p), -1, p) % p, p)
                if quotient is not None and max(abs(int(quotient.p)), int(quotient.q)) <= SHORT_MULTIPLE:
                    return quotient * factor
        return plain


def shorten(fields: list[Field]) -> list[Field]:
    """A basis of the same space with fewer terms: multiples of other fields are subtracted as long as that helps.

    >>> one, two = {(0, 0): fmpq(1), (1, 1): fmpq(1)}, {(1, 1): fmpq(1)}
    >>> shorten([one, two])
    [{(0, 0): 1}, {(1, 1): 1}]
    """
    fields = [dict(field) for field in fields]
    for _ in range(FIELD_SWEEPS):
        users: dict[tuple[int, int | None], set[int]] = defaultdict(set)
        for number, field in enumerate(fields):
            for term in field:
                users[term].add(number)
        improved = False
        for number in sorted(range(len(fields)), key=lambda k: -len(fields[k])):
            others = {k for term in fields[number] for k in users[term]} - {number}
            for other in sorted(others, key=lambda k: len(fields[k])):
                better = _shorter(fields[number], fields[other])
                if better is not None:
                    for term in set(fields[number]) | set(better):
                        (users[term].add if term in better else users[term].discard)(number)
                    fields[number], improved = better, True
        if not improved:
            break
    # One field may have been written in two ways, such as a scale of all of a matrix on each of its axes.
    return list({tuple(field.items()): field for field in map(_primitive, fields)}.values())


def _shorter(field: Field, other: Field) -> Field | None:
    """field − c·other with fewer terms, for the best ratio c; None if there is none."""
    ratios = Counter(field[term] / times for term, times in other.items() if term in field)
    if not ratios:
        return None
    ratio, gone = ratios.most_common(1)[0]
    new = sum(term not in field for term in other)
    if new >= gone:
        return None
    result = dict(field)
    for term, times in other.items():
        left = result.get(term, fmpq(0)) - ratio * times
        if left:
            result[term] = left
        else:
            result.pop(term, None)
    return result or None


def _primitive(field: Field) -> Field:
    """The multiple with coprime integers, the first of them positive."""
    scale = fmpq(lcm(*(int(x.q) for x in field.values())), gcd(*(int(x.p) for x in field.values())))
    first = field[min(field, key=lambda term: (term[0], -1 if term[1] is None else term[1]))]
    return {term: times * (scale if first > 0 else -scale) for term, times in sorted(field.items(), key=_order)}


def _order(item: tuple[tuple[int, int | None], fmpq]) -> tuple[int, int]:
    moved, source = item[0]
    return moved, -1 if source is None else source


def evaluate_fields(fields: Sequence[Field], weights: Array, p: int) -> Array:
    """The fields at a weight vector of residues mod p, one row each."""
    values = np.zeros((len(fields), len(weights)), dtype=np.int64)
    for row, field in zip(values, fields):
        for (moved, source), times in field.items():
            factor = int(times.p) * pow(int(times.q), -1, p) % p
            row[moved] = (row[moved] + factor * (1 if source is None else int(weights[source]))) % p
    return values


def choose_independent(program: Program, fields: Sequence[Field], seed: int) -> list[int]:
    """Places of fields that are independent at random weights: as many as the generic orbit has dimensions.

    The rank mod p at any point bounds the generic one from below.
    """
    if not fields:
        return []
    point = NamedPoint(program, f"attngeom/{seed}")
    residues = BalancedResidues(point.prime)
    weights = residues.to_integers(program.join(point.weights(), 1))[0]
    values = residues.from_residues(evaluate_fields(fields, weights, point.prime))
    return [int(k) for k in Elimination(values.T.copy(), point.prime, keep_upper=False).run().columns]
