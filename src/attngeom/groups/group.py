"""Groups that multiply rows: how an element is drawn, acts, is undone, differentiated, fixed and found.

An element g carries rows T to g T; dual rows S become g⁻* S (the inverse conjugate transpose), so that the products
S*T, on which a function depends, stay as they are. Elements and rows are batched over copies of the group.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from attngeom.exact import lapack
from attngeom.exact.arrays import Array
from attngeom.groups.gauges import Gauge, fix_pair
from attngeom.groups.pivots import farthest_columns, first_largest, pivot_signs
from attngeom.groups.sampler import Sampler
from attngeom.limits.rounding import (
    GRAM_DEPENDENT,
    GRAM_WELL,
    MEAN_ROUNDING,
    SINGULAR_CONDITION,
    SMALLEST_DIVISOR,
)


@dataclass(frozen=True)
class Group(ABC):
    """A group of matrices, or of diagonal ones, of one size; T is (copies, n, ·), S too, an element one per copy."""

    size: int

    @property
    @abstractmethod
    def dimension(self) -> int:
        """The dimension of one copy."""

    @property
    def keeps_lengths(self) -> bool:
        """Whether no element changes the length of a row."""
        return False

    @abstractmethod
    def symbol(self, copies: int) -> str:
        """The name of the group, to a power."""

    @abstractmethod
    def fiber(self, carried: int, dual: int) -> int:
        """The dimension of generic fibers of (T, S) ↦ S*T for T with ``carried`` and S with ``dual`` columns.

        That is the dimension of one copy where T and S have rank n; below, what of them the products do not show.
        """

    @abstractmethod
    def random(self, sampler: Sampler, copies: int) -> Array:
        """One random element for each copy."""

    @abstractmethod
    def act(self, element: Array, rows: Array) -> Array:
        """g T; also E T for an element E of the Lie algebra."""

    @abstractmethod
    def act_on_columns(self, element: Array, columns: Array) -> Array:
        """(g Tᵀ)ᵀ for rows that are stored as columns."""

    @abstractmethod
    def inverse(self, element: Array) -> Array:
        """g⁻¹."""

    @abstractmethod
    def tangents(self) -> Array:
        """A basis of the Lie algebra of one copy, elements first."""

    @abstractmethod
    def adjoint(self, element: Array) -> Array:
        """g*."""

    def dual(self, element: Array) -> Array:
        """g⁻*, what multiplies dual rows."""
        return self.adjoint(self.inverse(element))

    @abstractmethod
    def moment(self, carried: Array, dual: Array) -> Array:
        """T T* − S S* as far as the Lie algebra sees it: zero where the norm is least on the orbit."""

    @abstractmethod
    def match(self, goal: Array, rows: Array, duals: tuple[Array, Array] | None = None) -> Array:
        """The elements that bring the rows next to the goal, in least squares.

        ``duals``: dual rows of the goal and of what is moved, which decide where the carried ones leave something open.
        """

    def match_errors(
        self, rows: Array, dual: Array, element: Array, noise: float, grams: tuple[Array, Array] | None = None
    ) -> tuple[Array, Array]:
        """Relative errors of carried and of dual rows that :meth:`match` brought together, for roundoff 1.

        Given are the goal's rows (copies, n, ·) and dual rows (heads, n, ·), the element that was matched, by how much
        more than rounding the carried rows are wrong, and the Gram matrices of both where they are known. A number per
        row moves by less than what is wrong in all entries of its row: what is left is that of both sides.
        """
        rounding = float(np.sqrt(2.0)) * MEAN_ROUNDING
        return np.full(len(rows), rounding), np.full(len(dual), rounding * max(1.0, noise))

    @abstractmethod
    def fix(self, carried: Array, dual: Array, gauge: Gauge, columns: int) -> tuple[Array, Array]:
        """The point of the orbit of one copy in the gauge; dual rows of all heads that share it lie side by side.

        Pivots are chosen among the first ``columns`` of T, where the group has pivots of single rows.
        """

    @abstractmethod
    def invariants(self, carried: Array, dual: Array) -> Array:
        """What of S*T the group keeps: all of it, or coordinate by coordinate."""

    def diagonal(self, factors: Array) -> Array:
        """The elements that multiply each row by a number, factors (copies, n)."""
        return factors

    def condition(self, element: Array) -> float:
        """How far the action may amplify rounding."""
        return 1.0


class Matrices(Group):
    """Groups whose elements are (copies, n, n) arrays."""

    def act(self, element: Array, rows: Array) -> Array:
        return np.asarray(element @ rows)

    def act_on_columns(self, element: Array, columns: Array) -> Array:
        return np.asarray(columns @ np.swapaxes(element, -1, -2))

    def adjoint(self, element: Array) -> Array:
        return np.swapaxes(element, -1, -2)

    def diagonal(self, factors: Array) -> Array:
        return np.asarray(factors[..., None] * np.eye(self.size))

    def invariants(self, carried: Array, dual: Array) -> Array:
        return np.asarray(np.swapaxes(dual, -1, -2) @ carried)


class GeneralLinear(Matrices):
    """GL(n).

    >>> group = GeneralLinear(2)
    >>> group.dimension, len(group.tangents()), group.fiber(5, 3), group.fiber(1, 1)
    (4, 4, 4, 3)
    """

    @property
    def dimension(self) -> int:
        return self.size**2

    def symbol(self, copies: int) -> str:
        return f"GL({self.size})^{copies}"

    def fiber(self, carried: int, dual: int) -> int:
        """n(m + k) − α(m + k − α), α = min(n, m, k): the products are the matrices of rank α."""
        rank = min(self.size, carried, dual)
        return self.size * (carried + dual) - rank * (carried + dual - rank)

    def random(self, sampler: Sampler, copies: int) -> Array:
        return sampler.invertible(copies, self.size)

    def inverse(self, element: Array) -> Array:
        return lapack.inv(element)

    def tangents(self) -> Array:
        return np.eye(self.size**2).reshape(-1, self.size, self.size)

    def moment(self, carried: Array, dual: Array) -> Array:
        return np.asarray(carried @ np.swapaxes(carried, -1, -2) - dual @ np.swapaxes(dual, -1, -2))

    def match(self, goal: Array, rows: Array, duals: tuple[Array, Array] | None = None) -> Array:
        """C with C rows ≈ goal in least squares; the identity where C is singular."""
        gram = rows @ rows.transpose(0, 2, 1)
        matrices = np.empty_like(gram)
        if not matrices.size:
            return matrices
        # A matrix whose inverse has no digits left counts as singular, like one that has no inverse.
        inverse, conditions = lapack.inverses(gram)
        regular = np.asarray(conditions < GRAM_DEPENDENT)
        if regular.any():
            own, wanted = (rows, goal) if regular.all() else (rows[regular], goal[regular])
            inverse = inverse if regular.all() else inverse[regular]
            first = (wanted @ own.transpose(0, 2, 1)) @ inverse
            if conditions[regular].max() > GRAM_WELL:
                # Least squares by the Gram matrix lost digits: one step of refinement.
                first += (wanted - first @ own) @ own.transpose(0, 2, 1) @ inverse
            matrices[regular] = first
            regular[regular] = lapack.inverses(first)[1] < GRAM_DEPENDENT
        for copy in np.flatnonzero(~regular).tolist():
            if duals is None:
                solution = lapack.lstsq(rows[copy].T, goal[copy].T).T
            else:
                solution = _match_both(goal[copy], rows[copy], *(beside(part, copy, len(rows)) for part in duals))
            usable = lapack.matrix_rank(solution) == len(solution)
            matrices[copy] = solution if usable else np.eye(len(solution))
        return matrices

    def fix(self, carried: Array, dual: Array, gauge: Gauge, columns: int) -> tuple[Array, Array]:
        return fix_pair(carried, dual, gauge)

    def condition(self, element: Array) -> float:
        if not element.size:
            return 1.0
        values = lapack.svdvals(element)
        return float((values[:, 0] / np.maximum(values[:, -1], SMALLEST_DIVISOR)).max())

    def match_errors(
        self, rows: Array, dual: Array, element: Array, noise: float, grams: tuple[Array, Array] | None = None
    ) -> tuple[Array, Array]:
        """With C from least squares, independent errors N of the rows give C (1 + X), X = N rows⁺.

        The dual side moves by −X, the carried side keeps the part of N outside its row space. Expected squares are sums
        of squares, so nothing is drawn.
        """
        copies, n, width = rows.shape
        if not n:
            return np.zeros(copies), np.zeros(len(dual))
        gram, outer = grams or (rows @ np.swapaxes(rows, -1, -2), dual @ np.swapaxes(dual, -1, -2))
        mixed, back, share = element**2, self.inverse(element), len(dual) // copies
        pseudo = _inverse(gram) @ rows
        columns = np.stack([np.einsum("gad,gad->gd", pseudo, pseudo), np.ones((copies, width))], axis=-1)
        # Variances of N: own rounding of the goal, and rounding of the source carried through the matrix that aligned
        # it: own + mixed source, of which only the sum and the product with the squares of rows⁺ are needed.
        own, source = (np.multiply(part, part, out=pseudo) @ columns for part in (rows, back @ rows))
        shift, total = np.moveaxis(own + mixed @ source, -1, 0)
        squares = np.diagonal(outer, axis1=1, axis2=2)
        moved = (squares * np.repeat(shift, share, axis=0)).sum(axis=1) * noise**2
        spread = np.repeat(element, share, axis=0)
        across = np.maximum(np.einsum("hac,hac->hc", spread, outer @ spread), 0)
        rounded = squares.sum(axis=1) + (across * np.repeat((back**2).sum(axis=2), share, axis=0)).sum(axis=1)
        left = noise**2 * total.sum(axis=1) * max(1 - n / width, 1 / width)
        kept, seen = root_ratio(left, own[..., 1].sum(axis=1)), root_ratio(moved + rounded, squares.sum(axis=1))
        return MEAN_ROUNDING * kept, MEAN_ROUNDING * seen


def beside(dual: Array, copy: int, copies: int) -> Array:
    """The dual rows of all heads that share one copy, side by side."""
    own = dual.reshape(copies, len(dual) // copies, *dual.shape[1:])[copy]
    return np.concatenate(list(own), axis=-1)


def _match_both(goal: Array, rows: Array, dual_goal: Array, dual: Array) -> Array:
    """C with C rows ≈ goal and Cᵀ dual_goal ≈ dual in least squares; where neither tells, as much of 1 as there is.

    The normal equations A C + C B = R, A and B Gram matrices of dual and carried rows, are diagonal in their
    eigenvectors.
    """
    sizes = [float(np.sum(x * x)) or 1.0 for x in (dual_goal, rows)]
    (a, left), (b, right) = (lapack.eigh(x @ x.T / size) for x, size in zip((dual_goal, rows), sizes))
    sides = dual_goal @ dual.T / sizes[0] + goal @ rows.T / sizes[1]
    known = a[:, None] + b > len(goal) / GRAM_DEPENDENT
    inner = np.where(known, left.T @ sides @ right / np.where(known, a[:, None] + b, 1.0), 0.0)
    blind = ~known.all(axis=1), ~known.all(axis=0)
    inner[np.ix_(*blind)] = np.eye(blind[0].sum(), blind[1].sum())
    return np.asarray(left @ inner @ right.T)


def _inverse(grams: Array) -> Array:
    """Inverses of Gram matrices, pseudoinverses where one has none."""
    inverse, conditions = lapack.inverses(grams)
    return inverse if np.all(conditions < 1e12) else lapack.pinv(grams, rcond=1e-13, hermitian=True)


def root_ratio(gaps: Array, sizes: Array) -> Array:
    """Roots of gaps over sizes; for size 0 it is 1, or 0 without a gap.

    >>> root_ratio(np.array([1.0, 2.0, 0.0]), np.array([4.0, 0.0, 0.0])).tolist()
    [0.5, 1.0, 0.0]
    """
    return np.where(sizes > 0, np.sqrt(gaps / np.where(sizes > 0, sizes, 1.0)), np.where(gaps > 0, 1.0, 0.0))


class Orthogonal(Matrices):
    """O(n), which a norm of n coordinates leaves: dual rows move like carried ones.

    >>> Orthogonal(3).dimension
    3
    """

    @property
    def dimension(self) -> int:
        return self.size * (self.size - 1) // 2

    @property
    def keeps_lengths(self) -> bool:
        return True

    def symbol(self, copies: int) -> str:
        return f"O({self.size})^{copies}"

    def fiber(self, carried: int, dual: int) -> int:
        """The dimension of the orbit of (T, S): what fixes the span of their columns moves nothing."""
        return self.dimension - Orthogonal(max(0, self.size - carried - dual)).dimension

    def random(self, sampler: Sampler, copies: int) -> Array:
        return sampler.orthogonal(copies, self.size)

    def inverse(self, element: Array) -> Array:
        return np.swapaxes(element, -1, -2)

    def tangents(self) -> Array:
        rows, columns = np.triu_indices(self.size, 1)
        above = np.zeros((len(rows), self.size, self.size))
        above[np.arange(len(rows)), rows, columns] = 1.0
        return above - np.swapaxes(above, -1, -2)

    def moment(self, carried: Array, dual: Array) -> Array:
        """None: the norm is constant on the orbit."""
        return np.zeros((*carried.shape[:-2], self.size, self.size))

    def match(self, goal: Array, rows: Array, duals: tuple[Array, Array] | None = None) -> Array:
        """Orthogonal Procrustes."""
        u, _, w = lapack.svd(goal @ np.swapaxes(rows, -1, -2))
        return np.asarray(u @ w)

    def turn(self, carried: Array, gauge: Gauge, columns: int) -> tuple[Array, Array]:
        """R that turns rows along their left singular vectors, signs by the pivots; and the columns of a triangle.

        echelon: R makes a triangle with a positive diagonal at the columns that stick out farthest, if there is one.
        """
        pivots = _triangle_columns(carried[:, :columns]) if gauge == "echelon" else np.zeros(0, dtype=np.int64)
        if not len(pivots):
            u = lapack.svd(carried, full_matrices=carried.shape[1] < carried.shape[0])[0]
            return (u * pivot_signs(u.T @ carried)).T, pivots
        u, triangle = lapack.qr(carried[:, pivots])
        return (u * np.where(np.diag(triangle) < 0, -1.0, 1.0)).T, pivots

    def fix(self, carried: Array, dual: Array, gauge: Gauge, columns: int) -> tuple[Array, Array]:
        matrix, pivots = self.turn(carried, gauge, columns)
        moved = matrix @ carried
        for place, column in enumerate(pivots):
            moved[place + 1 :, column] = 0.0
        return moved, matrix @ dual


def _triangle_columns(matrix: Array) -> Array:
    """Columns of a triangle, as many as there are rows; none if the rows are dependent."""
    none = np.zeros(0, dtype=np.int64)
    order = farthest_columns(matrix)[0] if matrix.shape[1] >= len(matrix) else none
    return order if len(order) and lapack.cond(matrix[:, order]) < SINGULAR_CONDITION else none


class Diagonal(Group):
    """Groups that multiply every row by a number of its own; elements are (copies, n) arrays."""

    def fiber(self, carried: int, dual: int) -> int:
        """Row by row a fiber of GL(1), over the numbers of the group."""
        return self.dimension * GeneralLinear(1).fiber(carried, dual)

    def act(self, element: Array, rows: Array) -> Array:
        return np.asarray(element[..., None] * rows)

    def act_on_columns(self, element: Array, columns: Array) -> Array:
        return np.asarray(columns * element[..., None, :])

    def adjoint(self, element: Array) -> Array:
        return np.asarray(element.conj())

    def inverse(self, element: Array) -> Array:
        return np.asarray(1 / element)

    def tangents(self) -> Array:
        return np.eye(self.size)

    def moment(self, carried: Array, dual: Array) -> Array:
        return np.asarray((np.abs(carried) ** 2).sum(axis=-1) - (np.abs(dual) ** 2).sum(axis=-1))

    def match(self, goal: Array, rows: Array, duals: tuple[Array, Array] | None = None) -> Array:
        """The ratio of each row in least squares; 1 where there is none."""
        inner = (rows.conj() * goal).sum(axis=-1)
        size = (np.abs(rows) ** 2).sum(axis=-1)
        return np.where((size > 0) & (np.abs(inner) > 0), inner / np.where(size > 0, size, 1.0), 1.0)

    def invariants(self, carried: Array, dual: Array) -> Array:
        return np.asarray(dual.conj()[..., :, None] * carried[..., None, :])

    def fix(self, carried: Array, dual: Array, gauge: Gauge, columns: int) -> tuple[Array, Array]:
        """|T_i| = |S_i| and a positive pivot of T_i; echelon: a pivot 1. Rows of zeros stay."""
        left, right = (np.sqrt((np.abs(rows) ** 2).sum(axis=-1)) for rows in (carried, dual))
        places = first_largest(np.abs(carried[..., :columns]))
        pivots = np.take_along_axis(carried, places[..., None], axis=-1)[..., 0]
        alive = np.abs(pivots) > 0
        if gauge == "echelon":
            factors = np.where(alive, 1 / np.where(alive, pivots, 1.0), 1.0)
        else:
            alive &= right > 0
            safe = np.where(alive, pivots, 1.0)
            size = np.where(alive, right, 1.0) / np.where(alive, left, 1.0)
            factors = np.where(alive, np.sqrt(size) * safe.conj() / np.abs(safe), 1.0)
        moved = self.act(factors, carried)
        if gauge == "echelon":
            exact = np.where(alive, 1.0, np.take_along_axis(moved, places[..., None], axis=-1)[..., 0])
            np.put_along_axis(moved, places[..., None], exact[..., None], axis=-1)
        return moved, self.act(self.dual(factors), dual)


class ComplexScales(Diagonal):
    """(C*)ⁿ, what commutes with rotations by n different frequencies."""

    @property
    def dimension(self) -> int:
        return 2 * self.size

    def symbol(self, copies: int) -> str:
        return f"(C*)^{self.size * copies}"

    def random(self, sampler: Sampler, copies: int) -> Array:
        return np.asarray(1 / (sampler.scales(copies, self.size) * sampler.phases(copies, self.size)).conj())

    def tangents(self) -> Array:
        return np.concatenate([np.eye(self.size), 1j * np.eye(self.size)])


class Phases(Diagonal):
    """U(1)ⁿ, what commutes with rotations by n different frequencies and keeps lengths.

    >>> Phases(3).dimension, Phases(3).fiber(2, 0)
    (3, 3)
    """

    @property
    def dimension(self) -> int:
        return self.size

    @property
    def keeps_lengths(self) -> bool:
        return True

    def symbol(self, copies: int) -> str:
        return f"U(1)^{self.size * copies}"

    def fiber(self, carried: int, dual: int) -> int:
        """The dimension of the orbit of (T, S): rows without columns are not moved."""
        return self.dimension * (carried + dual > 0)

    def random(self, sampler: Sampler, copies: int) -> Array:
        return sampler.phases(copies, self.size)

    def tangents(self) -> Array:
        return 1j * np.eye(self.size)

    def moment(self, carried: Array, dual: Array) -> Array:
        """None: the norm is constant on the orbit."""
        return np.zeros(carried.shape[:-1])

    def match(self, goal: Array, rows: Array, duals: tuple[Array, Array] | None = None) -> Array:
        """The turn of each row in least squares; 1 where there is none."""
        inner = (rows.conj() * goal).sum(axis=-1)
        if duals is not None:
            own, other = duals
            inner = inner + (other.conj() * own).sum(axis=-1).reshape(len(inner), -1, self.size).sum(axis=1)
        sizes = np.abs(inner)
        return np.where(sizes > 0, inner / np.where(sizes > 0, sizes, 1.0), 1.0)

    def fix(self, carried: Array, dual: Array, gauge: Gauge, columns: int) -> tuple[Array, Array]:
        """A positive pivot of T_i."""
        places = first_largest(np.abs(carried[..., :columns]))[..., None]
        pivots = np.take_along_axis(carried, places, axis=-1)[..., 0]
        sizes = np.abs(pivots)
        factors = np.where(sizes > 0, pivots.conj() / np.where(sizes > 0, sizes, 1.0), 1.0)
        moved = self.act(factors, carried)
        np.put_along_axis(moved, places, sizes[..., None], axis=-1)
        return moved, self.act(factors, dual)


class RealScales(Diagonal):
    """(R*)ⁿ."""

    @property
    def dimension(self) -> int:
        return self.size

    def symbol(self, copies: int) -> str:
        return f"(R*)^{self.size * copies}"

    def random(self, sampler: Sampler, copies: int) -> Array:
        return np.asarray(sampler.scales(copies, self.size) * sampler.signs(copies, self.size))
