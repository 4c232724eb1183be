"""The coordinates of deep lightning networks of one head: forms of degree 3^l for one token, P(S) for t ≥ d tokens.

With S = X Xᵀ every network without skip and mask is φ(X) = P(S) X, P_0 = 1, P_i = V_i P_{i−1} S P_{i−1}ᵀ A_i P_{i−1}.
For t ≥ d the entries of S are independent, so the coefficients of P, a matrix of forms of degree (3^l − 1)/2 in them,
are coordinates, and the number of tokens does not matter. For one token they are those of the forms φ(x). All are
scaled: entries of the symmetric tensors whose coefficients these are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import combinations_with_replacement, pairwise
from math import factorial, prod
from typing import Any

import numpy as np

from attngeom.equations.family import without_unused
from attngeom.equations.ideal.coordinates import Coordinate, Coordinates, Label
from attngeom.equations.variety import Variety
from attngeom.errors import SizeError
from attngeom.exact.arrays import Array
from attngeom.exact.domains import GF, Domain, PolynomialDomain
from attngeom.exact.domains.polynomials import Polynomial
from attngeom.exact.multisets import pairs
from attngeom.layer.coefficients import divide
from attngeom.limits.memory import DEEP_COORDINATES

Multiset = tuple[int, ...]
Forms = dict[Multiset, Array]
"""A matrix of forms: for each monomial, a sorted tuple of the numbers of its variables, matrices (…, rows, columns)."""


class DeepCoordinates(Coordinates):
    """The coordinates of a network with hidden widths, by output row.

    >>> deep = DeepCoordinates(Variety(2, 2, tokens=1, hidden=(2,)))
    >>> len(deep.all), deep.names[0], len(DeepCoordinates(Variety(2, 2, hidden=(2,))).all)
    (10, 's_0_0_0_0_0_0_0_0_0', 30)
    """

    def __init__(self, variety: Variety) -> None:
        if variety.num_coordinates > DEEP_COORDINATES:
            raise SizeError(
                f"{variety.num_coordinates:,} coordinates of a deep network; {DEEP_COORDINATES:,} are listed"
            )
        super().__init__(variety)

    @property
    def _single(self) -> bool:
        return self.variety.tokens == 1

    @cached_property
    def _monomials(self) -> list[tuple[Multiset, Multiset]]:
        """The monomials of one row: numbers of their variables and, for several tokens, the column they multiply."""
        d, degree = self.variety.d, self.variety.degree
        if self._single:
            return [(R, ()) for R in combinations_with_replacement(range(d), degree)]
        inner = combinations_with_replacement(range(len(pairs(d))), (degree - 1) // 2)
        return [(S, (m,)) for S in inner for m in range(d)]

    def _list(self) -> tuple[tuple[Coordinate, ...], tuple[str, ...]]:
        listed, names = [], []
        last = len(self.groups) - 1
        for r in range(self.variety.d_out):
            row: Label = () if self.variety.d_out == 1 else ((r,),)
            for S, m in self._monomials:
                flat = S if self._single else tuple(i for s in S for i in pairs(self.variety.d)[s])
                label = (*row, flat, m) if m else (*row, flat)
                listed.append(Coordinate(label, (*range(len(row)), *([last] * (len(label) - len(row))))))
                numbers = [*(row[0] if row else ()), *flat, *m]
                names.append("_".join(map(str, ("s" if self._single else "p", *numbers))))
        return tuple(listed), tuple(names)

    def _rename(self, label: Label, images: Sequence[Sequence[int]], owners: tuple[int, ...]) -> Label:
        """The label with the indices of each group renamed, in order again."""
        moved = [tuple(images[g][i] for i in part) for part, g in zip(label, owners)]
        return tuple(self._sort(part, place) for place, part in enumerate(moved))

    def _sort(self, part: Multiset, place: int) -> Multiset:
        """A part in order: that of a monomial in S consists of pairs."""
        if self._single or place != int(self.variety.d_out > 1):
            return tuple(sorted(part))
        ordered = sorted(tuple(sorted(part[i : i + 2])) for i in range(0, len(part), 2))
        return tuple(i for pair in ordered for i in pair)

    def permute(self, images: Sequence[Array]) -> Array:
        rows = []
        for renaming in zip(*(image.tolist() for image in images)):
            moved = (Coordinate(self._rename(c.label, renaming, c.owners), c.owners) for c in self.all)
            rows.append([self.position[c] for c in moved])
        return np.array(rows, dtype=np.int64)

    def replace_index(self, group: int, old: int, new: int) -> list[list[tuple[int, int]]]:
        images: list[list[tuple[int, int]]] = []
        for c in self.all:
            image: dict[int, int] = {}
            for place, (part, owner) in enumerate(zip(c.label, c.owners)):
                for i in (i for i, x in enumerate(part) if owner == group and x == old):
                    moved = self._sort((*part[:i], new, *part[i + 1 :]), place)
                    target = self.position[Coordinate((*c.label[:place], moved, *c.label[place + 1 :]), c.owners)]
                    image[target] = image.get(target, 0) + 1
            images.append([(factor, target) for target, factor in image.items()])
        return images

    def sample(self, count: int, p: int, rng: np.random.Generator) -> Array:
        field = GF(p)

        def draw(name: str, rows: int, columns: int) -> Array:
            return field.random((count, rows, columns), rng)

        return self._values(draw, field)

    def generic(self) -> list[Any]:
        ring, matrix = self._ring
        return list(self._values(lambda name, rows, columns: matrix[name][None], ring)[0])

    def parametrization(self) -> tuple[tuple[str, ...], list[Polynomial]]:
        return self._ring[0].variables, [without_unused(f) for f in self.generic()]

    @cached_property
    def _ring(self) -> tuple[PolynomialDomain, dict[str, Array]]:
        shapes = {name: shape for name, *shape in self._weights()}
        ring = PolynomialDomain.of(0, **{name: (rows, columns) for name, (rows, columns) in shapes.items()})
        return ring, {name: ring.matrix(name, rows, columns) for name, (rows, columns) in shapes.items()}

    def _weights(self) -> Iterator[tuple[str, int, int]]:
        """Names and sizes of free matrices that parametrize the variety.

        Where all hidden widths are at least d, changes of basis make V_i = 1 for i < l: M_1, …, M_l and L are left.
        """
        variety = self.variety
        widths = (variety.d, *variety.hidden, variety.d_out)
        is_wide = all(width >= variety.d for width in variety.hidden)
        for i, (before, after) in enumerate(pairwise(widths), start=1):
            size = variety.d if is_wide else before
            if variety.a < size:
                yield from ((f"{letter}{i}", variety.a, size) for letter in "KQ")
            else:
                yield f"A{i}", size, size
            if not is_wide or i == variety.layers:
                yield f"V{i}", after, size

    def _values(self, draw: Any, domain: Domain) -> Array:
        """The coordinates (count, number) of networks with the given matrices."""
        given = {name: draw(name, rows, columns) for name, rows, columns in self._weights()}
        d = self.variety.d
        variables = range(d) if self._single else range(len(pairs(d)))
        P: Forms = {(): domain.eye(d)[None]}
        if self._single:
            P = {(k,): _unit(d, 1, k, 0, domain)[None] for k in variables}
        S: Forms = {(s,): _symmetric_unit(d, k, l, domain)[None] for s, (k, l) in enumerate(pairs(d))}
        for i in range(1, self.variety.layers + 1):
            A = given[f"A{i}"] if f"A{i}" in given else domain.matmul(_swap(given[f"K{i}"]), given[f"Q{i}"])
            left = P if self._single else multiply(P, S, domain)
            product = multiply(multiply(left, _transpose(P), domain), {(): A}, domain)
            P = multiply(product, P, domain)
            if f"V{i}" in given:
                P = multiply({(): given[f"V{i}"]}, P, domain)
        return self._in_scale(P, domain)

    def _in_scale(self, P: Forms, domain: Domain) -> Array:
        """The entries of the symmetric tensors: coefficients divided by the number of orders of their labels."""
        count, columns, orders = max(len(matrix) for matrix in P.values()), [], []
        for r in range(self.variety.d_out):
            for S, m in self._monomials:
                number = factorial(len(S)) // prod(factorial(S.count(s)) for s in set(S))
                if not self._single:
                    number *= 2 ** sum(k != l for k, l in (pairs(self.variety.d)[s] for s in S))
                value = P[S][:, r, m[0] if m else 0] if S in P else domain.zeros((count,))
                columns.append(np.broadcast_to(value, (count,)))
                orders.append(number)
        return divide(np.stack(columns, axis=1), np.array(orders), domain)


def multiply(first: Forms, second: Forms, domain: Domain) -> Forms:
    """The product of two matrices of forms.

    >>> from attngeom.exact import QQ
    >>> one = {(0,): QQ.convert([[[2]]]), (1,): QQ.convert([[[1]]])}
    >>> {monomial: str(value[0, 0, 0]) for monomial, value in multiply(one, one, QQ).items()}
    {(0, 0): '4', (0, 1): '4', (1, 1): '1'}
    """
    product: Forms = {}
    for one, left in first.items():
        for two, right in second.items():
            key, term = tuple(sorted(one + two)), domain.matmul(*_alike(left, right))
            product[key] = term if key not in product else domain.reduce(product[key] + term)
    return product


def _alike(left: Array, right: Array) -> tuple[Array, Array]:
    count = max(len(left), len(right))
    return np.broadcast_to(left, (count, *left.shape[1:])), np.broadcast_to(right, (count, *right.shape[1:]))


def _transpose(P: Forms) -> Forms:
    return {key: _swap(value) for key, value in P.items()}


def _swap(matrix: Array) -> Array:
    return np.swapaxes(matrix, -1, -2)


def _unit(rows: int, columns: int, i: int, j: int, domain: Domain) -> Array:
    matrix = np.zeros((rows, columns), dtype=np.int64)
    matrix[i, j] = 1
    return domain.convert(matrix)


def _symmetric_unit(d: int, k: int, l: int, domain: Domain) -> Array:
    matrix = np.zeros((d, d), dtype=np.int64)
    matrix[k, l] = matrix[l, k] = 1
    return domain.convert(matrix)
