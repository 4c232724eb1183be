"""Recheck a claim about one layer from its coefficients and witness alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import isqrt
from typing import Any

import numpy as np
from flint import fmpq

from attngeom.errors import FormatError
from attngeom.exact.domains import QQ, Array, Domain, QuadraticField
from attngeom.layer.coefficients import Coefficients, count_entries
from attngeom.layer.files import Terms, coefficients_from_json
from attngeom.limits.recheck import CLAIMED_COEFFICIENTS, LAYER_POINTS, SQUARE_ROOT_DIGITS
from attngeom.limits.sizes import CLAIM_SIZE
from attngeom.results import Proof
from attngeom.verification.budget import afford, afford_elimination, height
from attngeom.verification.definitions import DEFINITIONS
from attngeom.verification.expansion import expand_row
from attngeom.verification.forms import check_form
from attngeom.verification.maps import accessor_of, random_layer
from attngeom.verification.reading import (
    read_array,
    read_choice,
    read_integer,
    read_object,
    read_rational,
    require,
    show,
)

VERDICTS = ("realizable", "closure_only", "not_realizable")


@dataclass(frozen=True)
class LayerClaim:
    """What one attention layer of bounded width can compute: the verdict about given coefficients, and rank A."""

    verdict: str
    attention: int | None
    rank: int | None
    coefficients: Coefficients

    @classmethod
    def from_json(cls, record: Any) -> LayerClaim:
        """Read the claim strictly; SizeError if it is about too many coefficients."""
        claim = read_object(record, ("kind", "verdict", "attention", "rank", "coefficients"), "claim")
        verdict, attention, rank = read_choice(claim["verdict"], VERDICTS, "verdict"), claim["attention"], claim["rank"]
        if attention is not None:
            read_integer(attention, 1, CLAIM_SIZE, "attention")
        if rank is not None:
            read_integer(rank, 0, CLAIM_SIZE, "rank")
        return cls(verdict, attention, rank, read_coefficients(claim["coefficients"]))

    def __str__(self) -> str:
        c = self.coefficients
        width = "any attention width" if self.attention is None else f"attention width {self.attention}"
        rank = "" if self.rank is None else f", with rank A = {self.rank}"
        size = f"d = {c.d}, d_out = {c.d_out}, t = {c.t}"
        return f"coefficients with {size} are {self.verdict} by one layer of {width}{rank}"

    def check(self, witness: Mapping[str, Any]) -> Proof:
        """Why the claim is true; Unproven, FormatError or SizeError if the witness does not show it."""
        if "form" in witness:
            return check_form(self.coefficients, self.verdict, self.attention, self.rank, witness)
        if self.verdict == "not_realizable":
            require(self.rank is None, "a refutation claims no rank")
            violated = read_object(witness, ("violated",), "witness")["violated"]
            return check_violated(self.coefficients, self.attention, violated)
        real = self.verdict == "realizable"
        return check_weights(self.coefficients, self.attention, self.rank, witness, real)


def read_coefficients(record: Any) -> Coefficients:
    """The exact coefficients of a claim, within the budget."""
    read_object(record, ("format", "version", "d", "d_out", "t", "terms"), "coefficients")
    sizes = [read_integer(record[key], 1, 10**18, key) for key in ("d", "d_out", "t")]
    afford(count_entries(*sizes), CLAIMED_COEFFICIENTS, "coefficients in memory")
    coefficients = coefficients_from_json(record, "claim")
    if coefficients.domain != QQ:
        raise FormatError("float coefficients found; certificates are about exact ones")
    terms = record["terms"]
    values = terms.values if isinstance(terms, Terms) else (term["value"] for term in terms)
    if any((x if isinstance(x, fmpq) else read_rational(x)) == 0 for x in values):
        raise FormatError("a coefficient 0 found; only nonzero terms are listed")
    return coefficients


def check_violated(coefficients: Coefficients, attention: int | None, violated: Any) -> Proof:
    """An equation of all layers has a nonzero value here: each definition accepts only data for which it is one.

    That it vanishes at random layers is checked besides, as a test of the definition.
    """
    violated = read_object(violated, ("family", "degree", "data", "value"), "violated")
    family, data = read_choice(violated["family"], DEFINITIONS, "family"), violated["data"]
    definition = DEFINITIONS[family]
    if not isinstance(data, Mapping):
        raise FormatError("the data of the invariant must be an object")
    require(coefficients.t >= 2 or not definition.cross, "this invariant needs two tokens")
    degree = definition.degree(data)
    require(violated["degree"] == degree and type(violated["degree"]) is int, f"the degree is {degree}")
    if family == "attention-rank":
        require(attention is not None and degree == attention + 1, "the minor must have size attention + 1")
    value = definition.evaluate(data, accessor_of(coefficients))
    require(read_rational(violated["value"]) == value, f"the value is {str(value)[:80]}")
    require(value != 0, "the value is zero, so nothing is refuted")
    width = coefficients.d if attention is None else min(attention, coefficients.d)
    for seed in range(LAYER_POINTS):
        layer = random_layer(coefficients.d, coefficients.d_out, coefficients.t, width, seed)
        require(definition.evaluate(data, layer) == 0, "the invariant does not vanish on attention layers")
    return Proof(
        "certified",
        f"the equation {family} of degree {degree} holds for all layers and has the exact value {str(value)[:80]}",
    )


def check_weights(coefficients: Coefficients, attention: int | None, claimed: Any, witness: Any, real: bool) -> Proof:
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
            compare_row(coefficients, row, *expand_row(A, V[row], domain))
        size = exact_rank(A, domain)
        require(type(claimed) is int and size == claimed, f"A has rank {size}, not {show(claimed)}")
        require(attention is None or size <= attention, f"A has rank {size}, above the attention width {attention}")
        if not real:
            _check_no_real_weights(A, V, domain, coefficients.t)
    require(len(points) == 1 or points[0] != points[1], "the points must differ")
    if real:
        return Proof("certified", f"the weights over {witness['field']} expand to all coefficients, rank A = {claimed}")
    return Proof(
        "certified",
        "the complex weights expand to all coefficients, and the fiber {(k qᵀ, h vᵀ), (v qᵀ, h kᵀ)} has no real point",
    )


def read_field(name: Any, real: bool) -> Domain:
    """Q, or Q(√D) with D not a square: real for weights, imaginary for the proof that there are no real ones."""
    if name == "Q":
        require(real, "rational weights do not show that only complex weights exist")
        return QQ
    if not (
        isinstance(name, str) and name.startswith("Q(sqrt(") and name.endswith("))") and len(name) <= SQUARE_ROOT_DIGITS
    ):
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
