"""Recheck that a list of conservation laws is complete: independent fields at a point mod p, as many as laws leave.

Nothing here comes from the search, which propagates back and differentiates that: :mod:`attngeom.verification.jets`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from attngeom.errors import FormatError
from attngeom.exact.domains import GF, Array
from attngeom.exact.modular import rank_mod_p
from attngeom.limits.recheck import LAW_PARAMETERS, MINOR_SAMPLES, SYMMETRY_ENTRIES
from attngeom.network.architecture import Architecture
from attngeom.network.weights import Weights
from attngeom.results import Proof
from attngeom.verification.budget import afford
from attngeom.verification.dimension import KINDS
from attngeom.verification.jets import JetPoint, afford_jets, tensors_of
from attngeom.verification.points import afford_samples, place_key, read_place
from attngeom.verification.reading import in_words, read_index, read_integer, read_object, require
from attngeom.verification.spans import reached_widths
from attngeom.verification.symmetries import count_fields, list_rules


@dataclass(frozen=True)
class LawsClaim:
    """Gradient flow on losses of the functions of an architecture conserves so many independent quantities."""

    architecture: Architecture
    count: int

    @classmethod
    def from_json(cls, record: Any) -> LawsClaim:
        """Read the claim strictly."""
        claim = read_object(record, ("kind", "architecture", "count"), "claim")
        architecture = Architecture.from_json(claim["architecture"])
        return cls(architecture, read_integer(claim["count"], 0, 10**18, "count"))

    def __str__(self) -> str:
        return (
            f"gradient flow on any loss of attention networks with {in_words(self.architecture)} conserves {self.count}"
            " independent quantities, the moments of the symmetries, and functions of these alone"
        )

    def check(self, witness: Mapping[str, Any]) -> Proof:
        """Why the claim is true: so many moments are independent, and the fields leave room for no other law."""
        architecture = self.architecture
        if architecture.kind not in KINDS:
            raise FormatError(f"kind {architecture.kind} found; laws of {' and '.join(KINDS)} are rechecked")
        afford(architecture.num_parameters, LAW_PARAMETERS, "parameters")
        weights, jets, gradients, brackets = _read_point(architecture, witness)
        moments, p = _symmetric_directions(weights), jets.field.p
        independent = rank_mod_p(moments, p)
        require(independent == self.count, f"{independent} moments are independent mod {p}, not {self.count}")
        rank = architecture.num_parameters - self.count
        size = len(gradients) + len(brackets)
        require(size == rank, f"{size} fields given; {rank} independent ones leave room for {self.count} laws")
        fields = _fields(jets, gradients, brackets)
        products = weights.domain.matmul(moments, fields.T)
        require(not np.any(products), "a moment is not constant along a field; the weights do not have this symmetry")
        require(rank_mod_p(fields, p) == rank, f"the fields are dependent mod {p}")
        return Proof(
            "certified",
            f"{len(gradients)} gradients and {len(brackets)} brackets are independent mod {p},"
            f" and {self.count} moments annihilate them: together {architecture.num_parameters} dimensions",
        )


Pairs = list[tuple[int, int]]


def _read_point(architecture: Architecture, witness: Any) -> tuple[Weights, JetPoint, list[int], Pairs]:
    """Weights mod p, samples, and which gradients and brackets are independent there."""
    keys = ("prime", place_key(witness), "tokens", "samples", "gradients", "brackets")
    record = read_object(witness, keys, "witness")
    field = GF(read_integer(record["prime"], 3, 2**31 - 1, "prime"))
    place = read_place(record)
    tokens = read_integer(record["tokens"], 1, architecture.tokens, "tokens")
    samples = read_integer(record["samples"], 1, MINOR_SAMPLES, "samples")
    lists = record["gradients"], record["brackets"]
    if any(type(x) is not list for x in lists) or any(type(x) is not list or len(x) != 2 for x in lists[1]):
        raise FormatError("gradients must be a list of samples, brackets a list of pairs of samples")
    gradients = [read_index(n, samples) for n in lists[0]]
    brackets = [(read_index(m, samples), read_index(n, samples)) for m, n in lists[1]]
    afford_samples(architecture, samples, tokens)
    parameters = architecture.num_parameters
    afford(count_fields(architecture) * parameters, SYMMETRY_ENTRIES, "entries of infinitesimal symmetries")
    afford_jets(architecture, 2 * parameters, len(gradients) + 4 * len(brackets), tokens, "the fields")
    if any(x % field.p == 0 for x in architecture.temperature.as_integer_ratio()):
        raise FormatError(f"temperature {architecture.temperature} cannot be used mod {field.p}")
    weights = place.weights(architecture, field)
    spans = [[width] for width in reached_widths(architecture)[:-1]]
    drawn = place.samples(architecture, spans, samples, tokens, field)
    every = range(architecture.num_parameters)
    jets = JetPoint(architecture, tensors_of(weights), field.p, drawn, every, architecture.temperature)
    return weights, jets, gradients, brackets


def _symmetric_directions(weights: Weights) -> Array:
    """ξw for symmetric generators ξ: the differentials of the moments, which the symmetries make constant."""
    p, heads, directions = weights.domain.characteristic, tensors_of(weights), []
    for rule in list_rules(weights.architecture):
        block = rule.fields(heads, p)
        directions += [(block[i, j] + block[j, i]) % p for i in range(rule.size) for j in range(i + 1)]
    return np.array(directions)


def _fields(jets: JetPoint, gradients: list[int], brackets: Pairs) -> Array:
    """The chosen gradients, then the brackets [∇f_m, ∇f_n] = H_n ∇f_m − H_m ∇f_n, one row each."""
    used = sorted({*gradients, *(n for pair in brackets for n in pair)})
    at = dict(zip(used, jets.gradients(used)))
    rows = [at[n] for n in gradients]
    for m, n in brackets:
        rows.append(jets.field.reduce(jets.hessian_product(n, at[m]) - jets.hessian_product(m, at[n])))
    return jets.field.to_integers(np.array(rows).reshape(len(rows), len(jets.columns)))
