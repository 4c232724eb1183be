"""A lower bound for a dimension as a theorem on lists: so many columns of the Jacobian are independent at a point.

The file holds the weights, the inputs with cotangents, the columns and the inverse of the minor mod p; Coq computes the
Jacobian from the definition of the network, by dual numbers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from flint import nmod_mat

from attngeom.errors import InputError, SizeError
from attngeom.exact.domains import GF
from attngeom.network.architecture import Architecture, LayerShape
from attngeom.proofs.coq_text import integers, listed, rows
from attngeom.verification.dimension import restrict
from attngeom.verification.jets import JetPoint, tensors_of
from attngeom.verification.points import NamedPlace

MAX_PRIME = 2**30
MAX_PRODUCTS = 6 * 10**8
"""Products of dual numbers for all derivatives; about five minutes of coqc."""
MAX_TOKENS = 8
"""Architectures of at most so many tokens are exported with all of them, the further ones zero."""


def dimension_theorem(claim: Mapping[str, Any], witness: Mapping[str, Any]) -> tuple[str, str]:
    """Definitions with the theorem that the dimension is at least what the claim says."""
    architecture, value = Architecture.from_json(claim["architecture"]), claim["dimension"]
    if "theorem" in witness or "method" in witness["lower"]:
        raise InputError("minors are exported to Coq; make the certificate with attngeom dim --method minor")
    if architecture.kind != "lightning":
        raise InputError(f"{architecture.kind} attention is not exported to Coq; attngeom-check rechecks its minors")
    lower = witness["lower"]
    if "point" not in lower:
        raise InputError("the point comes from a NumPy seed; attngeom verify --upgrade writes a named one")
    p, tokens = lower["prime"], lower["tokens"]
    if p > MAX_PRIME:
        raise InputError(f"prime {p} given; primes up to {MAX_PRIME:,} are exported, another seed has one")
    each = sum(map(_count_products, architecture.layers)) * tokens * max(tokens, 2)
    if value**2 * each > MAX_PRODUCTS:
        raise SizeError(f"{value**2 * each:.1e} products for the Jacobian given; up to {MAX_PRODUCTS:.0e} are exported")
    field, place = GF(p), NamedPlace(lower["point"])
    weights = restrict(place.weights(architecture, field), lower["support"])
    X, C, _ = place.samples(architecture, lower["support"], lower["samples"], tokens, field)
    jets = JetPoint(architecture, tensors_of(weights), p, (X, C, None), lower["columns"])
    minor = jets.field.to_integers(jets.gradients(lower["rows"]))
    inverse = nmod_mat(value, value, [int(x) for x in minor.ravel()], p).inv()
    every = max(tokens, architecture.tokens) if architecture.tokens <= MAX_TOKENS else tokens
    padding = [0] * (every - tokens)
    samples = listed(
        "(" + ", ".join(rows([[*(int(x) for x in row), *padding] for row in part[r].T]) for part in (X, C)) + ")"
        for r in lower["rows"]
    )
    sizes = listed((_size(layer) for layer in architecture.layers), "; ")
    flags = f"{str(architecture.residual).lower()} {str(architecture.causal).lower()}"
    text = (
        f"Definition sh : shape := Shape {flags} {every} {architecture.heads} {sizes}.\n"
        f"Definition w : list Z := {integers(int(x) for x in weights.vector())}.\n"
        f"Definition samples : list (list (list Z) * list (list Z)) := {samples}.\n"
        f"Definition columns : list nat := map Z.to_nat {integers(lower['columns'])}.\n"
        f"Theorem certified : length columns = {value}%nat /\\ independent sh w samples columns.\nProof.\n"
        f"  split; [vm_compute; reflexivity|].\n"
        f"  apply (dimension_at_least {p}%uint63 sh w samples columns {_words(inverse.tolist())}).\n"
        "  vm_compute; reflexivity.\nQed.\n"
    )
    return text, f"the dimension is at least {value}: so many derivatives are independent at a point"


def _count_products(layer: LayerShape) -> int:
    """Of one token with all others, up to a factor of two."""
    inner = layer.d_out if layer.value_width is None else layer.value_width
    return layer.heads * (layer.d_in * (2 * layer.attention + inner) + inner * layer.d_out)


def _size(layer: LayerShape) -> str:
    width = "None" if layer.value_width is None else f"Some {layer.value_width}"
    return f"({layer.attention}, {layer.d_in}, {layer.d_out}, {width})"


def _words(matrix: Iterable[Iterable[Any]]) -> str:
    """A matrix of 63-bit words."""
    return "[" + ";\n  ".join("[" + ";".join(str(int(x)) for x in row) + "]" for row in matrix) + "]%uint63"
