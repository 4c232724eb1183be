"""Recheck weights (A, V) of one layer: they expand to the coefficients, and real ones exist or cannot exist."""

from __future__ import annotations

from math import isqrt
from typing import Any

import numpy as np

from attngeom.errors import FormatError
from attngeom.exact.domains import QQ, Array, Domain, QuadraticField
from attngeom.layer.coefficients import Coefficients, expand_matrices
from attngeom.verification.budget import afford_elimination, height
from attngeom.verification.reading import read_array, read_object, require, show

MAX_DIGITS = 1000
"""Of D in a field Q(√D)."""


def check_weights(coefficients: Coefficients, attention: int | None, claimed: Any, witness: Any, real: bool) -> str:
    """Expand every point and compare all coefficients; check rank A, and that weights are real or cannot be real."""
    witness = read_object(witness, ("field", "points"), "witness")
    d, d_out = coefficients.d, coefficients.d_out
    domain = read_field(witness["field"], real)
    points = witness["points"]
    if type(points) is not list or not 1 <= len(points) <= 2:
        raise FormatError("one or two points of the fiber are required")
    require(not coefficients.outside, "a term lies outside the support of attention")
    for point in points:
        point = read_object(point, ("A", "V"), "point")
        A, V = read_array(point["A"], (d, d), domain, "A"), read_array(point["V"], (d_out, d), domain, "V")
        # One output row at a time keeps memory below that of the claim.
        for row in range(d_out):
            compare_row(coefficients, row, *expand_matrices(A, V[row : row + 1], domain))
        size = exact_rank(A, domain)
        require(type(claimed) is int and size == claimed, f"A has rank {size}, not {show(claimed)}")
        require(attention is None or size <= attention, f"A has rank {size}, above the attention width {attention}")
        if not real:
            _check_no_real_weights(A, V, domain, coefficients.t)
    require(len(points) == 1 or points[0] != points[1], "the points must differ")
    if real:
        return f"the weights over {witness['field']} expand to all coefficients, rank A = {claimed}"
    return (
        "the complex weights expand to all coefficients, and the fiber {(k qᵀ, h vᵀ), (v qᵀ, h kᵀ)} has no real point"
    )


def read_field(name: Any, real: bool) -> Domain:
    """Q, or Q(√D) with D not a square: real for weights, imaginary for the proof that there are no real ones."""
    if name == "Q":
        require(real, "rational weights do not show that only complex weights exist")
        return QQ
    if not (isinstance(name, str) and name.startswith("Q(sqrt(") and name.endswith("))") and len(name) <= MAX_DIGITS):
        raise FormatError(f"field {show(name)} found; Q or Q(sqrt(D)) is required")
    digits = name[7:-2]
    D = int(digits) if digits.removeprefix("-").isascii() and digits.removeprefix("-").isdigit() else 0
    if str(D) != digits or D == 0 or (D > 0 and isqrt(D) ** 2 == D):
        raise FormatError(f"field {show(name)} found; D must be an integer that is no square")
    require((D > 0) == real, "the field must be real, or imaginary for closure_only")
    return QuadraticField(D)


def compare_row(coefficients: Coefficients, row: int, single: Array, cross: Array) -> None:
    """Unproven unless these are the coefficients of an output row in all columns."""
    require(bool(np.all(coefficients.single[row] == single)), "single-column coefficients differ")
    require(bool(np.all(coefficients.cross[row] == cross)), "cross-column coefficients differ")


def exact_rank(matrix: Array, domain: Domain) -> int:
    """The exact rank, within the budget."""
    parts, size = domain.parts(matrix), max(matrix.shape)
    entries = [x for part in parts for x in part.ravel()]
    # Denominators are cleared first: at worst the bits of a row add up.
    afford_elimination(len(parts) * size, height(entries) * (1 if all(x.q == 1 for x in entries) else size))
    return int(domain.rank(matrix))


def _check_no_real_weights(A: Array, V: Array, domain: Domain, t: int) -> None:
    """A = k qᵀ, V = h vᵀ with k and v not proportional to real vectors: by [G] Thm 3.2 (t ≥ 2) no real weights."""
    require(t >= 2, "two tokens are required for this argument")
    for vector in (_factors(A)[0], _factors(V)[1]):
        parts = np.stack(domain.parts(vector))
        require(int(QQ.rank(parts)) == 2, "a factor is proportional to a real vector")


def _factors(matrix: Array) -> tuple[Array, Array]:
    """A column and a row of a matrix of rank one; Unproven if it has another rank."""
    places = np.argwhere(matrix != 0)
    require(len(places) > 0, "rank A = rank V = 1 is required")
    i, j = places[0]
    column, row = matrix[:, j], matrix[i]
    require(bool(np.all(matrix * matrix[i, j] == column[:, None] * row[None])), "rank A = rank V = 1 is required")
    return column, row
