"""Canonical weights for kinds of attention beyond the papers: one representative for each orbit of the symmetries.

Layers are made canonical one after the other. Behind a layer without a skip connection the basis is free: there scales
and the order of heads are those of the scores, and the value maps side by side, which only the basis changes then, get
the echelon form. Constants of outputs that the biases of the next layer can take are zero.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from attngeom.canonical.faithful import check_same_function
from attngeom.canonical.kind_heads import canonical_head, check_roots, described, is_close, sort_key, sorted_places
from attngeom.dimensions.programs import orbit_bound
from attngeom.errors import InputError
from attngeom.exact import lapack
from attngeom.exact.domains import Array, Domain
from attngeom.groups.pivots import choose_pivots
from attngeom.limits.rounding import GAUGE_RANK
from attngeom.network import Head, Weights, random_symmetry
from attngeom.network.invariants import joined, layer_bias, values_of
from attngeom.network.symmetry.factor import READING, Between, GroupFactor
from attngeom.network.symmetry.group import factors, tensors_of, weights_of
from attngeom.network.symmetry.smaller import BetweenOrder
from attngeom.network.symmetry.translation import Translation
from attngeom.results import Result

VALUES = ("V", "bV", "O")
"""The letters of tensors that make outputs of what attention reads."""


@dataclass(frozen=True, kw_only=True, eq=False)
class CanonicalWeights(Result):
    """Canonical weights, and whether all weights of the orbit would give the same ones."""

    weights: Weights
    gauge: str
    num_free: int
    is_canonical: bool
    difference: float

    def to_json(self) -> dict[str, Any]:
        return {
            "num_parameters": self.weights.architecture.num_parameters,
            **self.select("num_free", "gauge", "is_canonical", "standing", "reason"),
        }

    def rows(self) -> Mapping[str, Any]:
        return {
            "canonical form": "",
            "parameters": f"{self.weights.architecture.num_parameters:,}, of which {self.num_free:,} are free",
            "canonical": f"{'yes' if self.is_canonical else 'no'}: {self.reason}",
        }


def canonicalize_kind(weights: Weights, gauge: str | None = None) -> CanonicalWeights:
    """The canonical representative of a network of any kind of attention.

    >>> from attngeom.exact import QQ
    >>> from attngeom.network import Architecture, random_symmetry, random_weights
    >>> w = random_weights(Architecture((3, 2), 2, kind="gla"), QQ, seed=0)
    >>> moved = random_symmetry(w.architecture, QQ, seed=1).apply(w)
    >>> canonicalize_kind(moved).weights.equals(canonicalize_kind(w).weights)
    True
    """
    architecture, domain = weights.architecture, weights.domain
    usual = "balanced" if domain.rounds else "echelon"
    if gauge not in (None, usual):
        raise InputError(f"gauge {gauge} given for {architecture.kind} attention over {domain.name}; {usual} is known")
    check_roots(architecture.mechanism, domain)
    moved, open_choice = _canonical(weights)
    difference = check_same_function(weights, moved)
    open_choice = open_choice or _second_look(moved)
    reason = "one representative for each orbit of the symmetry group" + (", to rounding" if domain.rounds else "")
    return CanonicalWeights(
        standing="estimate" if domain.rounds else "proven",
        reason=open_choice or reason,
        weights=moved,
        gauge=usual,
        num_free=orbit_bound(architecture, 0).value,
        is_canonical=not open_choice,
        difference=difference,
    )


def canonical_description(weights: Weights) -> dict[str, Array]:
    """Tensors that exact weights of one orbit share, and of no other but for what no input reaches.

    InputError where a choice is open.
    """
    moved, open_choice = _canonical(weights)
    tensors = _described(moved)
    if not open_choice:
        again = _described(_canonical(_disguised(moved))[0])
        open_choice = "" if all(is_close(tensors[x], again[x], moved.domain) for x in tensors) else NOT_GENERIC
    if open_choice:
        raise InputError(f"weights without one representative given: {open_choice}; compare them: attngeom compare")
    return tensors


NOT_GENERIC = "the weights are not generic: another point of the orbit has another representative"


def _disguised(weights: Weights) -> Weights:
    """Another point of the orbit, for a second look."""
    return random_symmetry(weights.architecture, weights.domain, seed=0).apply(weights)


def _second_look(weights: Weights) -> str:
    """What is open if a random point of the orbit does not lead back; for floats rounding may be the reason."""
    again, _ = _canonical(_disguised(weights))
    pairs = zip((x for _, x in weights.tensors()), (x for _, x in again.tensors()))
    if all(is_close(one, other, weights.domain) for one, other in pairs):
        return ""
    return "an order or a pivot hangs on rounding errors" if weights.domain.rounds else NOT_GENERIC


def _described(weights: Weights) -> dict[str, Array]:
    architecture = weights.architecture
    hidden = {x.layer for x in factors(architecture) if isinstance(x, Between)}
    tensors = {}
    for index, heads in enumerate(weights.layers):
        for place, head in enumerate(heads):
            for letter, array in described(head, architecture.mechanism, weights.domain, index in hidden).items():
                tensors[architecture.tensor_name(index, place, letter)] = array
        for letter, array in (weights.shared[index] if weights.shared else {}).items():
            tensors[architecture.tensor_name(index, None, letter)] = array
    return tensors


def _canonical(weights: Weights) -> tuple[Weights, str]:
    """Canonical weights, layer by layer; and which choice the symmetries leave open, if one is."""
    domain = weights.domain
    open_choices: list[str] = []
    between = {x.layer: x for x in factors(weights.architecture) if isinstance(x, Between)}
    translations = {x.layer: x for x in factors(weights.architecture) if isinstance(x, Translation)}
    for index in range(weights.architecture.num_layers):
        is_hidden = index in between
        weights = _canonical_layer(weights, index, is_hidden, open_choices)
        num_seen = weights.architecture.widths[index + 1]
        if is_hidden:
            basis, num_seen = _basis(weights, between[index], index not in translations, open_choices)
            weights = _canonical_layer(_moved(weights, between[index], basis), index, is_hidden, [])
        if index in translations:
            bias = layer_bias(weights, index)
            if bias is not None:
                weights = _moved(weights, translations[index], domain.reduce(-bias))
        if num_seen < weights.architecture.widths[index + 1]:
            weights = _without_unseen(weights, index + 1, num_seen)
    return weights, open_choices[0] if open_choices else ""


def _moved(weights: Weights, factor: GroupFactor, element: Array) -> Weights:
    tensors = tensors_of(weights)
    moved = tensors | factor.act(element, tensors, weights.domain)
    return weights_of(weights.architecture, moved, weights.domain)


def _without_unseen(weights: Weights, index: int, num_seen: int) -> Weights:
    """The weights with zeros where a layer reads hidden coordinates that are always zero."""
    tensors = tensors_of(weights)
    for place, array in tensors.items():
        if place[0] == index and place[2] in READING:
            tensors[place] = array.copy()
            tensors[place][:, num_seen:] = weights.domain.zeros((len(array), array.shape[1] - num_seen))
    return weights_of(weights.architecture, tensors, weights.domain)


def _canonical_layer(weights: Weights, index: int, is_hidden: bool, open_choices: list[str]) -> Weights:
    """The weights with canonical heads in one layer, in canonical order."""
    domain, kind = weights.domain, weights.architecture.mechanism
    bias = layer_bias(weights, index)
    heads = [canonical_head(head, kind, domain, is_hidden, open_choices) for head in weights.layers[index]]
    if kind.orders_heads:
        written = VALUES if is_hidden else ()
        told = [described(head, kind, domain, is_hidden) for head in heads]
        keys = [[sort_key(array) for letter, array in x.items() if letter not in written] for x in told]
        order = sorted(range(len(heads)), key=keys.__getitem__)
        heads = [heads[place] for place in order]
        if is_hidden and any(keys[i] == keys[j] for i, j in pairwise(order)):
            open_choices.append("two heads have the same scores, and the basis of what they write is free")
    if bias is not None and kind.adds_value_bias:
        heads = [_with_bias(head, bias, domain) for head in heads]
    layers = (*weights.layers[:index], tuple(heads), *weights.layers[index + 1 :])
    shared = weights.shared
    if shared and bias is not None:
        shared = (*shared[:index], {**shared[index], "bO": bias} if shared[index] else {}, *shared[index + 1 :])
    return Weights(weights.architecture, domain, layers, shared)


def _with_bias(head: Head, bias: Array, domain: Domain) -> Head:
    """The head without b_V where the layer has a bias of its own; else it carries all of it."""
    own = head.tensors
    return Head.of({**own, "bV": bias if head.O is None else domain.zeros(own["bV"].shape)})


def _basis(weights: Weights, factor: Between, sees_constant: bool, open_choices: list[str]) -> tuple[Array, int]:
    """The canonical change of basis behind a layer, and how many of the new coordinates are not always zero."""
    domain, kind, heads = weights.domain, weights.architecture.mechanism, weights.layers[factor.layer]
    if isinstance(factor, BetweenOrder):
        rows = list(joined(heads[0], "V"))
        order = sorted_places(rows, True, "two hidden coordinates are always equal", open_choices)
        return domain.eye(factor.size)[order], factor.size
    columns = [values_of(x, kind, domain) if kind.has_linear_values or x.O is None else x.O for x in heads]
    bias = layer_bias(weights, factor.layer) if sees_constant else None
    return _echelon_basis(np.concatenate([*columns, *([] if bias is None else [bias])], axis=1), domain)


def _echelon_basis(columns: Array, domain: Domain) -> tuple[Array, int]:
    """D with unit vectors in D · columns at pivots: the first ones, of floats ones of large volume; and their number.

    D is determined on the span of the columns alone.
    """
    if domain.rounds:
        left, sizes, right = lapack.svd(columns)
        rank = int(np.sum(sizes > GAUGE_RANK * sizes.max(initial=0.0)))
        chosen = columns[:, choose_pivots(right[:rank])[0]] if rank else columns[:, :0]
        return lapack.inv(np.concatenate([chosen, left[:, rank:]], axis=1)), rank
    echelon = domain.rref(columns)
    chosen = columns[:, list(echelon.pivots)]
    fixed = domain.rref(chosen.T).pivots if echelon.rank else ()
    others = [j for j in range(len(columns)) if j not in fixed]
    return domain.inverse(np.concatenate([chosen, domain.eye(len(columns))[:, others]], axis=1)), echelon.rank
