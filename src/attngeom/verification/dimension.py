"""Recheck a claim about a dimension: a minor of the Jacobian that is nonzero mod p, and an upper bound that equals it.

Nothing here comes from the search, which propagates back: see :mod:`attngeom.verification.jets`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from attngeom.errors import FormatError
from attngeom.exact.domains import GF
from attngeom.exact.modular import rank_mod_p
from attngeom.limits.recheck import MINOR_SAMPLES, RECHECKED_DIMENSION, RECHECKED_PARAMETERS
from attngeom.network.architecture import Architecture
from attngeom.network.weights import Weights
from attngeom.results import Proof
from attngeom.verification.budget import afford
from attngeom.verification.jets import JetPoint, afford_jets, tensors_of
from attngeom.verification.points import afford_samples, place_key, read_place
from attngeom.verification.reading import (
    in_words,
    read_choice,
    read_integer,
    read_list,
    read_object,
    read_places,
    require,
    show,
)
from attngeom.verification.symmetries import symmetry_upper_bound
from attngeom.verification.theorems import check_theorem
from attngeom.verification.upper_bound import count_upper_bound

KINDS = ("lightning", "softmax", "sigmoid")


@dataclass(frozen=True)
class DimensionClaim:
    """The functions of an architecture form a set of this dimension."""

    architecture: Architecture
    dimension: int

    @classmethod
    def from_json(cls, record: Any) -> DimensionClaim:
        """Read the claim strictly."""
        claim = read_object(record, ("kind", "architecture", "dimension"), "claim")
        architecture = Architecture.from_json(claim["architecture"])
        return cls(architecture, read_integer(claim["dimension"], 0, 10**18, "dimension"))

    def __str__(self) -> str:
        """The claim in words, with every field of the architecture by name, also those with their usual values."""
        words = in_words(self.architecture)
        return f"the functions of attention networks with {words} form a set of dimension {self.dimension}"

    def check(self, witness: Mapping[str, Any]) -> Proof:
        """Why the claim is true: a theorem says so, or one bound gives at least the dimension, another at most.

        The first is a minor, or a transcript, which leaves a probability of error that its reason states.
        """
        architecture, value = self.architecture, self.dimension
        if "theorem" in witness:
            return check_theorem(architecture, value, witness)
        afford(architecture.num_parameters, RECHECKED_PARAMETERS, "parameters")
        if architecture.kind not in KINDS:
            raise FormatError(f"kind {architecture.kind} found; minors of {' and '.join(KINDS)} are rechecked")
        parts = read_object(witness, ("lower", "upper"), "witness")
        has_transcript = isinstance(parts["lower"], Mapping) and "method" in parts["lower"]
        if not has_transcript:
            afford(value, RECHECKED_DIMENSION, "rows and columns of a minor")
        bound, method = upper_bound(architecture, parts["upper"])
        require(bound == value, f"the upper bound is {bound}, not {value}")
        upper = Proof("certified", f"{method} give at most {value}")
        if has_transcript:
            # It takes its point from this module.
            from attngeom.verification.transcripts import check_transcript

            lower = check_transcript(architecture, value, parts["lower"])
            return Proof.from_parts(f"{lower.reason}; {upper.reason}", lower, upper)
        lower = _check_minor(architecture, value, parts["lower"])
        return Proof.from_parts(f"{lower.reason}, and {upper.reason}", lower, upper)


def _check_minor(architecture: Architecture, value: int, record: Any) -> Proof:
    """Why the Jacobian has at least this rank: a minor of this size is not zero mod p."""
    rows, point = _read_point(architecture, record, value)
    field = point.field
    rank = rank_mod_p(field.to_integers(point.gradients(rows)), field.p)
    require(rank == value, f"the minor of size {value} has rank {rank} mod {field.p}")
    return Proof("certified", f"a {value}×{value} minor is nonzero mod {field.p}")


def upper_bound(architecture: Architecture, record: Any) -> tuple[int, str]:
    """The upper bound that a witness names, recomputed, and what it rests on in words."""
    method = record.get("method") if isinstance(record, Mapping) else None
    if read_choice(method, ("symmetries", "count"), "upper bound by") == "count":
        read_object(record, ("method",), "upper")
        return count_upper_bound(architecture), "the counted parameters"
    return symmetry_upper_bound(architecture, record), "the infinitesimal symmetries"


def _read_point(architecture: Architecture, record: Any, size: int) -> tuple[list[int], JetPoint]:
    """The samples that are rows, and the point at which the columns of the minor are the weights that vary."""
    keys = ("prime", place_key(record), "tokens", "samples", "support", "rows", "columns")
    lower = read_object(record, keys, "lower")
    field = GF(read_integer(lower["prime"], 2, 2**31 - 1, "prime"))
    place = read_place(lower)
    tokens = read_integer(lower["tokens"], 1, architecture.tokens, "tokens")
    samples = read_integer(lower["samples"], size, MINOR_SAMPLES, "samples")
    afford_samples(architecture, samples, tokens)
    afford_jets(architecture, size, size, tokens, "the minor")
    support = read_support(architecture, lower["support"])
    rows = read_places(lower["rows"], size, samples, "rows")
    columns = read_places(lower["columns"], size, architecture.num_parameters, "columns")
    weights = restrict(place.weights(architecture, field), support)
    drawn = place.samples(architecture, support, samples, tokens, field)
    # A temperature divides A, which may be any matrix of its rank: it changes nothing.
    return rows, JetPoint(architecture, tensors_of(weights), field.p, drawn, columns)


def read_support(architecture: Architecture, value: Any) -> list[list[Any]]:
    """Sizes of corner blocks, [d_in, d_out, attention, value width] for each layer; any sizes give a valid point."""
    support = read_list(value, architecture.num_layers, "layers of a support")
    for layer, sizes in zip(architecture.layers, support):
        most = [layer.d_in, layer.d_out, layer.attention, layer.value_width]
        for size, bound in zip(read_list(sizes, 4, "sizes of a layer of a support"), most):
            if size is None and bound is None:
                continue
            if bound is None or type(size) is not int or not 1 <= size <= bound:
                raise FormatError(f"support size {show(size)} found; at most {bound} is possible")
    return support


def corners(architecture: Architecture, support: list[list[Any]]) -> dict[str, tuple[int, int]]:
    """The shapes of the corner blocks of all tensors."""
    shapes: list[tuple[int, int]] = []
    for d_in, d_out, attention, value_width in support:
        values = [(d_out, d_in)] if value_width is None else [(value_width, d_in), (d_out, value_width)]
        shapes += [(attention, d_in), (attention, d_in), *values] * architecture.heads
    return dict(zip((name for name, _ in architecture.tensor_shapes()), shapes))


def restrict(weights: Weights, support: list[list[Any]]) -> Weights:
    """The weights with zeros outside the corner blocks."""
    tensors, blocks = dict(weights.tensors()), corners(weights.architecture, support)
    for name, (rows, columns) in blocks.items():
        block = tensors[name][:rows, :columns]
        tensors[name] = np.zeros_like(tensors[name])
        tensors[name][:rows, :columns] = block
    return Weights.from_tensors(weights.architecture, tensors, weights.domain)
