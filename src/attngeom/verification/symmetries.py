"""The fields of four symmetry rules, T1–T4, and the upper bound N − rank that they give, rechecked as identities.

Written from the rules alone (docs/explanation/trust.md), not from :mod:`attngeom.network.symmetry`. A field ξ with
dφ_w(ξ(w)) = 0 for all w bounds the rank of dφ everywhere, and its rank at a point mod p is at most its generic rank.

- T1 query-key, each head: K̇ = EK, Q̇ = −EᵀQ.
- T2 scale, if attention is linear in the scores: Q̇ = Q, V̇ = −V.
- T3 value-output, factored heads: V̇ = EV, Ȯ = −OE.
- T4 between layers, no skip connection: the last maps of layer l are multiplied by E from the left, and Q, K, V of
  layer l + 1 by −E from the right.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from attngeom.exact.domains import GF, Array, PrimeField
from attngeom.exact.modular import rank_mod_p
from attngeom.limits.recheck import GUARD_SAMPLES, SYMMETRY_ENTRIES
from attngeom.network.architecture import Architecture
from attngeom.verification.budget import afford
from attngeom.verification.jets import Heads, JetPoint, tensors_of
from attngeom.verification.points import NamedPlace, place_key, read_place
from attngeom.verification.reading import read_integer, read_object, require


@dataclass(frozen=True)
class Rule:
    """One general linear group: its size, and the tensors (layer, head, place) that E and −E multiply.

    A tensor is multiplied from the left by E or by −Eᵀ, or from the right by −E.
    """

    name: str
    size: int
    left: tuple[tuple[int, int, int], ...] = ()
    dual: tuple[tuple[int, int, int], ...] = ()
    right: tuple[tuple[int, int, int], ...] = ()

    def fields(self, heads: Heads, p: int) -> Array:
        """ξ_E(w) for all unit matrices E = E_ij, (size, size, N)."""
        starts, stop = {}, 0
        for place, tensor in _tensors(heads):
            starts[place] = stop
            stop += tensor.size
        fields = np.zeros((self.size, self.size, stop), dtype=np.int64)
        values = dict(_tensors(heads))

        def put(i: int, j: int, place: tuple[int, int, int], rows: Any, columns: Any, change: Array) -> None:
            size = values[place].shape[1]
            cells = starts[place] + np.arange(values[place].size).reshape(-1, size)[rows, columns]
            fields[i, j, cells] = (fields[i, j, cells] + change) % p

        every = slice(None)
        for i, j in product(range(self.size), repeat=2):
            for place in self.left:
                # Row i of E_ij W is row j of W.
                put(i, j, place, i, every, values[place][j])
            for place in self.dual:
                # Row j of E_ijᵀ W is row i of W.
                put(i, j, place, j, every, -values[place][i])
            for place in self.right:
                # Column j of W E_ij is column i of W.
                put(i, j, place, every, j, -values[place][:, i])
        return fields


@dataclass(frozen=True)
class ScaleRule(Rule):
    """T2: the whole tensor Q, and minus the whole tensor V."""

    def fields(self, heads: Heads, p: int) -> Array:
        parts = []
        for place, tensor in _tensors(heads):
            sign = 1 if place in self.left else -1 if place in self.dual else 0
            parts.append(sign * tensor.ravel().astype(np.int64))
        return (np.concatenate(parts) % p).reshape(1, 1, -1)


def _tensors(heads: Heads) -> Iterator[tuple[tuple[int, int, int], Array]]:
    for layer, own in enumerate(heads):
        for head, tensors in enumerate(own):
            for place, tensor in enumerate(tensors):
                yield (layer, head, place), tensor


def list_rules(architecture: Architecture) -> list[Rule]:
    """T1–T4 for an architecture; places 0, 1, 2, 3 of a head are Q, K, V, O.

    >>> [rule.name for rule in list_rules(Architecture((2, 2, 2), 1, kind="softmax"))]
    ['T1', 'T1', 'T4']
    """
    rules: list[Rule] = []
    for l, layer in enumerate(architecture.layers):
        for h in range(layer.heads):
            rules.append(Rule("T1", layer.attention, left=((l, h, 1),), dual=((l, h, 0),)))
            if architecture.kind == "lightning":
                rules.append(ScaleRule("T2", 1, left=((l, h, 0),), dual=((l, h, 2),)))
            if layer.value_width is not None:
                rules.append(Rule("T3", layer.value_width, left=((l, h, 2),), right=((l, h, 3),)))
    if architecture.residual:
        return rules
    for l, width in enumerate(architecture.widths[1:-1]):
        last = 2 if architecture.layers[l].value_width is None else 3
        outer = tuple((l, h, last) for h in range(architecture.heads))
        inner = tuple((l + 1, h, place) for h in range(architecture.heads) for place in (0, 1, 2))
        rules.append(Rule("T4", width, left=outer, right=inner))
    return rules


def count_fields(architecture: Architecture) -> int:
    """How many fields the rules give.

    >>> count_fields(Architecture((2, 2, 2), 1))
    8
    """
    return sum(rule.size**2 for rule in list_rules(architecture))


def symmetry_upper_bound(architecture: Architecture, record: Any) -> int:
    """N − rank of the fields at the point of a witness, after they were seen to keep the function."""
    record = read_object(record, ("method", "prime", place_key(record)), "upper")
    field = GF(read_integer(record["prime"], 2, 2**31 - 1, "prime"))
    place = read_place(record)
    parameters = architecture.num_parameters
    afford(count_fields(architecture) * parameters, SYMMETRY_ENTRIES, "entries of infinitesimal symmetries")
    heads = tensors_of(place.weights(architecture, field))
    groups: dict[str, list[Array]] = {}
    for rule in list_rules(architecture):
        groups.setdefault(rule.name, []).append(rule.fields(heads, field.p).reshape(-1, parameters))
    fields = {name: np.concatenate(rows) for name, rows in groups.items()}
    check_identities(architecture, heads, fields, field)
    return parameters - rank_mod_p(np.concatenate(list(fields.values())), field.p)


def check_identities(architecture: Architecture, heads: Heads, fields: dict[str, Array], field: PrimeField) -> None:
    """dφ(ξ) = 0 at two samples, for a combination of all fields of each rule; Unproven if it is not.

    The proof is that of the rules; this sees to it that what was written here are these rules.
    """
    drawn = NamedPlace("attngeom/guard").samples(architecture, None, GUARD_SAMPLES, min(architecture.tokens, 2), field)
    jets = JetPoint(architecture, heads, field.p, drawn)
    names = list(fields)
    directions = np.stack([_combine(fields[name], field.p) for name in names])
    moved = jets.field.to_integers(jets.push(directions, range(GUARD_SAMPLES)))
    for name, change in zip(names, moved):
        require(not np.any(change % field.p), f"the rule {name} changes the function; the weights lack this symmetry")


def _combine(rows: Array, p: int) -> Array:
    """Σ 3^i ξ_i mod p."""
    total = np.zeros(rows.shape[1], dtype=np.int64)
    for row in rows:
        total = (3 * total + row) % p
    return total
