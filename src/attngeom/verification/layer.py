"""Recheck a claim about one layer from its coefficients and witness alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from flint import fmpq

from attngeom.errors import FormatError
from attngeom.exact.domains import QQ
from attngeom.layer.coefficients import Coefficients, count_entries
from attngeom.layer.files import coefficients_from_json
from attngeom.layer.terms import Terms
from attngeom.verification.budget import MAX_COEFFICIENTS, afford
from attngeom.verification.definitions import DEFINITIONS
from attngeom.verification.forms import check_form
from attngeom.verification.maps import accessor_of, random_layer
from attngeom.verification.reading import read_choice, read_integer, read_object, read_rational, require
from attngeom.verification.weights import check_weights

VERDICTS = ("realizable", "closure_only", "not_realizable")
MAX_ATTENTION = 10**9
POINTS = 3


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
            read_integer(attention, 1, MAX_ATTENTION, "attention")
        if rank is not None:
            read_integer(rank, 0, MAX_ATTENTION, "rank")
        return cls(verdict, attention, rank, read_coefficients(claim["coefficients"]))

    def __str__(self) -> str:
        c = self.coefficients
        width = "any attention width" if self.attention is None else f"attention width {self.attention}"
        rank = "" if self.rank is None else f", with rank A = {self.rank}"
        size = f"d = {c.d}, d_out = {c.d_out}, t = {c.t}"
        return f"coefficients with {size} are {self.verdict} by one layer of {width}{rank}"

    def check(self, witness: Mapping[str, Any]) -> str:
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
    afford(count_entries(*sizes), MAX_COEFFICIENTS, "coefficients in memory")
    found = coefficients_from_json(record, "claim")
    if found.domain != QQ:
        raise FormatError("float coefficients found; certificates are about exact ones")
    terms = record["terms"]
    values = terms.values if isinstance(terms, Terms) else (term["value"] for term in terms)
    if any((x if isinstance(x, fmpq) else read_rational(x)) == 0 for x in values):
        raise FormatError("a coefficient 0 found; only nonzero terms are listed")
    return found


def check_violated(coefficients: Coefficients, attention: int | None, violated: Any) -> str:
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
    for seed in range(POINTS):
        layer = random_layer(coefficients.d, coefficients.d_out, coefficients.t, width, seed)
        require(definition.evaluate(data, layer) == 0, "the invariant does not vanish on attention layers")
    return f"the equation {family} of degree {degree} holds for all layers and has the exact value {str(value)[:80]}"
