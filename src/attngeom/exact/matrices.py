"""Exact linear algebra over a field as plain functions of a matrix and its domain."""

from __future__ import annotations

from typing import Any

from attngeom.exact.arrays import Array, check_square
from attngeom.exact.domains import Domain
from attngeom.exact.modular import Echelon


def rank(a: Array, domain: Domain) -> int:
    """The rank of a matrix over its field, exactly."""
    return domain.rank(a)


def rref(a: Array, domain: Domain) -> Echelon:
    """The reduced row echelon form over the field, without its zero rows."""
    return domain.rref(a)


def row_space(a: Array, domain: Domain) -> Array:
    """The canonical basis of the row space, as rows: equal row spaces give equal arrays."""
    return domain.rref(a).matrix


def nullspace(a: Array, domain: Domain) -> Array:
    """A basis of {x : a x = 0} as rows, with an identity matrix in the non-pivot columns."""
    return domain.nullspace(a)


def solve(a: Array, b: Array, domain: Domain) -> Array | None:
    """A solution x of a x = b with zeros in the non-pivot variables, or None if there is none."""
    return domain.solve(a, b)


def determinant(a: Array, domain: Domain) -> Any:
    """The determinant of a square matrix over the field; 1 for the 0×0 matrix."""
    check_square(a)
    return domain.det(a)
