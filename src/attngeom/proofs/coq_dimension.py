"""Dimensions of lightning networks as theorems on lists: the rank of the derivative in the weights, from both sides.

The file holds the weights, the inputs with cotangents, the columns and the inverse of the minor mod p, and fields of
the rules T1–T4 with the inverse of their minor. Coq computes the Jacobian from the definition of the network, by dual
numbers, and the fields from the rules, which it has proved to keep the function. Where T1–T4 are not all symmetries the
file has the lower bound alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from flint import nmod_mat

from attngeom.errors import InputError, SizeError
from attngeom.exact.arrays import Array
from attngeom.exact.domains import GF
from attngeom.limits.sizes import COQ_PRIME, COQ_TOKENS
from attngeom.limits.work import COQ_DUAL_PRODUCTS
from attngeom.network.architecture import Architecture, LayerShape
from attngeom.network.weights import Weights
from attngeom.proofs.coq_text import IS_TRUE, integers, listed, rows
from attngeom.verification.dimension import restrict
from attngeom.verification.jets import JetPoint, tensors_of
from attngeom.verification.points import NamedPlace
from attngeom.verification.symmetries import Rule, list_rules


@dataclass(frozen=True)
class Minor:
    """A point with the derivatives of a minor that is not zero there, and its inverse mod p."""

    weights: Weights
    inverse: nmod_mat


@dataclass(frozen=True)
class ChosenFields:
    """Independent fields by their names in Coq, entries where they are independent, and the inverse of that minor."""

    names: list[str]
    places: list[int]
    inverse: nmod_mat


def dimension_theorem(claim: Mapping[str, Any], witness: Mapping[str, Any]) -> tuple[str, str]:
    """Definitions with the theorem that the dimension is what the claim says, or at least that, and its words."""
    architecture, value = Architecture.from_json(claim["architecture"]), claim["dimension"]
    if "theorem" in witness or "method" in witness["lower"]:
        raise InputError("minors are exported to Coq; make the certificate with attngeom dim --method minor")
    if architecture.kind != "lightning":
        raise InputError(f"{architecture.kind} attention is not exported to Coq; attngeom-check rechecks its minors")
    lower = witness["lower"]
    if "point" not in lower:
        raise InputError("the point comes from a NumPy seed; attngeom verify --upgrade writes a named one")
    p, tokens = lower["prime"], lower["tokens"]
    if p > COQ_PRIME:
        raise InputError(f"prime {p} given; primes up to {COQ_PRIME:,} are exported, another seed has one")
    each = sum(map(_count_products, architecture.layers)) * tokens * max(tokens, 2)
    fiber = architecture.num_parameters - value
    products = value * (value + fiber) * each + value**3 + fiber**3 + fiber**2 * (value + fiber)
    if products > COQ_DUAL_PRODUCTS:
        raise SizeError(
            f"{products:.1e} products in Coq are needed for this Jacobian; {COQ_DUAL_PRODUCTS:.0e} are exported"
        )
    X, C, _ = NamedPlace(lower["point"]).samples(architecture, lower["support"], lower["samples"], tokens, GF(p))
    minor, chosen = _choose_point(architecture, value, lower, (X, C))
    every = max(tokens, architecture.tokens) if architecture.tokens <= COQ_TOKENS else tokens
    padding = [0] * (every - tokens)
    samples = listed(
        "(" + ", ".join(rows([[*(int(x) for x in row), *padding] for row in part[r].T]) for part in (X, C)) + ")"
        for r in lower["rows"]
    )
    sizes = listed((_size(layer) for layer in architecture.layers), "; ")
    flags = f"{str(architecture.residual).lower()} {str(architecture.mask.hides).lower()}"
    # What is said of fewer tokens bounds the dimension for all from below; that it is no larger then is T1–T4 alone.
    where = "" if every >= architecture.tokens else f" for {every} tokens in place of {architecture.tokens:,}"
    text = (f"(* The theorem speaks{where}. *)\n" if where else "") + (
        f"Definition sh : shape := Shape {flags} {every} {architecture.heads} {sizes}.\n"
        f"Definition w : list Z := {integers(int(x) for x in minor.weights.vector())}.\n"
        f"Definition samples : list (list (list Z) * list (list Z)) := {samples}.\n"
        f"Definition columns : list nat := map Z.to_nat {integers(lower['columns'])}.\n"
    )
    inverse = _words(minor.inverse.tolist())
    if chosen is None:
        text += (
            f"Theorem certified : length columns = {value}%nat /\\ independent sh w samples columns.\nProof.\n"
            "  split; [reflexivity|].\n"
            f"  apply (dimension_at_least {p}%uint63 sh w samples columns {inverse}).\n"
            f"  {IS_TRUE}.\nQed.\n"
        )
        return text, f"the dimension is at least {value}: so many derivatives are independent at a point{where}"
    text += (
        f"Definition fields : list (nat * rule) := {listed(chosen.names)}.\n"
        f"Definition places : list nat := map Z.to_nat {integers(chosen.places)}.\n"
        f"Theorem certified : dimension_is sh {value}.\nProof.\n"
        f"  apply (dimension_equals {p}%uint63 sh {value} w samples columns {inverse}\n"
        f"    fields places {_words(chosen.inverse.tolist())}).\n  {IS_TRUE}.\nQed.\n"
    )
    return text, f"the dimension is {value}: the derivative in the weights has this rank on a dense set{where}"


def _choose_point(
    architecture: Architecture, value: int, lower: Mapping[str, Any], sample: tuple[Array, Array]
) -> tuple[Minor, ChosenFields | None]:
    """The point of the witness, or the one without zeros of the same name, where minor and fields have full rank."""
    p, every = lower["prime"], NamedPlace(lower["point"]).weights(architecture, GF(lower["prime"]))
    first = None
    for weights in (restrict(every, lower["support"]), every):
        heads = tensors_of(weights)
        jets = JetPoint(architecture, heads, p, (*sample, None), lower["columns"])
        table = nmod_mat(
            value, value, [int(x) for x in jets.field.to_integers(jets.gradients(lower["rows"])).ravel()], p
        )
        if table.rank() < value:
            continue
        minor = Minor(weights, table.inv())
        chosen = _choose_fields(architecture, architecture.num_parameters - value, heads, p)
        if chosen is not None:
            return minor, chosen
        first = first or minor
    assert first is not None
    return first, None


def _choose_fields(architecture: Architecture, count: int, heads: Any, p: int) -> ChosenFields | None:
    """So many independent fields of T1–T4 mod p at a point; None if there are fewer."""
    names: list[str] = []
    vectors: list[Array] = []
    for rule in list_rules(architecture):
        for (i, j), row in zip(product(range(rule.size), repeat=2), rule.fields(heads, p).reshape(rule.size**2, -1)):
            names.append(_name(rule, i, j))
            vectors.append(row)
    table = np.stack(vectors)
    kept = _pivots(table.T, p)
    if len(kept) < count:
        return None
    kept = kept[:count]
    places = _pivots(table[kept], p)
    minor = nmod_mat(count, count, [int(x) for x in table[np.ix_(kept, places)].T.ravel()], p)
    return ChosenFields([names[k] for k in kept], places, minor.inv())


def _pivots(table: Array, p: int) -> list[int]:
    """The pivot columns of a matrix mod p."""
    height, width = table.shape
    reduced, rank = nmod_mat(height, width, [int(x) for x in table.ravel()], p).rref()
    columns: list[int] = []
    for row in range(rank):
        start = columns[-1] + 1 if columns else 0
        columns.append(next(k for k in range(start, width) if int(reduced[row, k])))
    return columns


def _name(rule: Rule, i: int, j: int) -> str:
    """A field of a rule as Fields.v names it."""
    layer, head, _ = rule.left[0]
    names = {
        "T1": f"QueryKey {head} {i} {j}",
        "T2": f"Scale {head}",
        "T3": f"ValueOutput {head} {i} {j}",
        "T4": f"Between {i} {j}",
    }
    return f"({layer}, {names[rule.name]})"


def _count_products(layer: LayerShape) -> int:
    """Of one token with all others, up to a factor of two."""
    inner = layer.d_out if layer.value_width is None else layer.value_width
    return layer.heads * (layer.d_in * (2 * layer.attention + inner) + inner * layer.d_out)


def _size(layer: LayerShape) -> str:
    width = "None" if layer.value_width is None else f"Some {layer.value_width}"
    return f"({layer.attention}, {layer.d_in}, {layer.d_out}, {width})"


def _words(matrix: Iterable[Sequence[Any]]) -> str:
    """A matrix of 63-bit words."""
    return "[" + ";\n  ".join("[" + ";".join(str(int(x)) for x in row) + "]" for row in matrix) + "]%uint63"
