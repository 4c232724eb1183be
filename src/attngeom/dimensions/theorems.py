"""Theorems that give the dimension at every size, with their hypotheses; proofs are in docs/theorems/dimension.md.

Notation: r_i = min(d_0..d_i), α_i = min(a_i, r_{i-1}), H heads with A of rank at most α and O V of rank at most ν.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import comb
from typing import Any, Literal

from attngeom.dimensions.effective import bounded_rank
from attngeom.network.architecture import Architecture, LayerShape
from attngeom.network.mask import NO_MASK

Status = Literal["theorem", "computed"]


@dataclass(frozen=True)
class DimensionFormula:
    """A value with its source; it is claimed only if ``applies``.

    ``status``: a theorem, or computed (the value is a proven upper bound, equality was found by exact computation in
    all tested cases). ``hypotheses`` says of each whether the architecture satisfies it; ``theorem`` is the name under
    which a certificate cites it.
    """

    value: int
    source: str
    status: Status
    hypotheses: Mapping[str, bool]
    theorem: str | None = None

    @property
    def applies(self) -> bool:
        return all(self.hypotheses.values())

    def to_json(self) -> dict[str, Any]:
        claim = {"value": self.value, "source": self.source, "applies": self.applies, "status": self.status}
        return {**claim, "hypotheses": dict(self.hypotheses)}


def count_virtual(architecture: Architecture, seen: int | None = None) -> int:
    """The dimension δ of the set of virtual weights (M_1..M_l, L) of one head (Lemma B).

    δ = Σ m_i + d_l r_{l-1} + Σ_{0<i<l} τ_i (r_{i-1} − r_i), m_i = 2α_i r_{i-1} − α_i², τ_l = r_l,
    τ_i = min(r_i, 2α_{i+1} + τ_{i+1}). If M_i is seen by its symmetric part for i > ``seen``, then m_i is the dimension
    ρ r_{i-1} − ρ(ρ − 1)/2 of the symmetric matrices of rank at most ρ = min(2α_i, r_{i-1}).

    >>> count_virtual(Architecture((3, 5, 3), 2)), count_virtual(Architecture((3, 5, 3), 2), seen=1)
    (25, 23)
    """
    l = architecture.num_layers
    r, alpha = reached_ranks(architecture)
    seen = l if seen is None else seen
    tau = [0] * l + [r[l]]
    for i in range(l - 1, 0, -1):
        tau[i] = min(r[i], 2 * alpha[i] + tau[i + 1])
    flags = sum(tau[i] * (r[i - 1] - r[i]) for i in range(1, l))
    forms = [bounded_rank(r[i], r[i], alpha[i]) if i < seen else _symmetric(r[i], 2 * alpha[i]) for i in range(l)]
    return architecture.widths[-1] * r[l - 1] + flags + sum(forms)


def _symmetric(d: int, rank: int) -> int:
    """The dimension of the symmetric d×d matrices of bounded rank."""
    rank = min(rank, d)
    return rank * d - comb(rank, 2)


def reached_ranks(architecture: Architecture) -> tuple[list[int], list[int]]:
    """(r_0..r_l, α_1..α_l): how many dimensions reach a layer, and the largest rank of its virtual attention.

    >>> reached_ranks(Architecture((4, 2, 3), 3))
    ([4, 2, 2], [3, 2])
    """
    r = [min(architecture.widths[: i + 1]) for i in range(architecture.num_layers + 1)]
    return r, [min(a, r[i]) for i, a in enumerate(architecture.attention)]


def count_head(layer: LayerShape) -> int:
    """2αd − α² + ν(d + d') − ν²: the dimension of the pairs (A, O V) of one head.

    >>> count_head(Architecture((4, 4), 2, heads=2).layer(0))
    24
    """
    d, d_out = layer.d_in, layer.d_out
    return bounded_rank(d, d, layer.attention) + bounded_rank(d_out, d, layer.value_rank)


def _sum_heads(architecture: Architecture) -> int:
    return sum(layer.heads * count_head(layer) for layer in architecture.layers)


def _plain(architecture: Architecture) -> dict[str, bool]:
    return {
        "no skip connection": not architecture.residual,
        NO_MASK: not architecture.mask.hides,
        "t ≥ 2": architecture.tokens >= 2,
    }


def _single_head(architecture: Architecture) -> dict[str, bool]:
    free = all(layer.value_rank == min(layer.d_in, layer.d_out) for layer in architecture.layers)
    return {
        "one head": architecture.heads == 1,
        "value maps of any rank": free,
        "no skip connection": not architecture.residual,
    }


def free_network(architecture: Architecture) -> DimensionFormula | None:
    """δ of Lemma B for networks with one head, any depth and widths: softmax (Corollary C) and sigmoid (Theorem S).

    For softmax it contains the dimension that [G] Conjecture 3.10 implies; with a mask it is Theorem A'.

    >>> [free_network(Architecture((3, 5, 3), 2, kind=kind)).value for kind in ("softmax", "sigmoid")]
    [25, 25]
    """
    masked = architecture.mask.hides
    sources = {"softmax": "Theorem A', Corollary C" if masked else "Theorem A, Corollary C", "sigmoid": "Theorem S"}
    if architecture.kind not in sources:
        return None
    conditions = {**_single_head(architecture), "t ≥ 2": architecture.tokens >= 2}
    if architecture.kind == "sigmoid":
        conditions[NO_MASK] = not masked
    source, name = sources[architecture.kind], f"{architecture.kind}-network"
    return DimensionFormula(count_virtual(architecture), source, "theorem", conditions, name)


def lightning_network(architecture: Architecture) -> DimensionFormula | None:
    """δ − l for lightning networks with one head, any depth and widths (Theorems F, F1, Fc, Corollary C).

    Without a mask, what follows a layer of rank one (F1), and all of it for one token, is seen by symmetric parts.

    >>> [lightning_network(Architecture((3, 5, 3), a)).value for a in (2, 1)]
    [23, 17]
    """
    if architecture.kind != "lightning":
        return None
    _, alpha = reached_ranks(architecture)
    seen, source = architecture.num_layers, "Theorem F, Corollary C"
    if architecture.tokens == 1:
        seen, source = 0, "Theorem F (one token), Corollary C"
    elif architecture.mask.hides:
        source = "Theorem Fc"
    elif 1 in alpha[:-1]:
        seen, source = alpha.index(1) + 1, "Theorem F1"
    value = count_virtual(architecture, seen) - architecture.num_layers
    return DimensionFormula(value, source, "theorem", _single_head(architecture), "lightning-network")


def free_heads(architecture: Architecture) -> DimensionFormula | None:
    """Σ (2αd − α² + ν(d + d') − ν²) over all heads of a residual network or of one layer, with or without mask.

    Softmax: Theorem E with skip connections, else Theorem D; sigmoid: Theorem S.

    >>> [free_heads(Architecture((4, 4), 2, kind=kind, heads=2)).value for kind in ("softmax", "sigmoid")]
    [48, 48]
    """
    residual = architecture.residual
    known = {
        "softmax": ("Theorem E", "residual-softmax") if residual else ("Theorem D", "softmax-heads"),
        "sigmoid": ("Theorem S", "sigmoid-heads"),
    }
    if architecture.kind not in known or not (residual or architecture.num_layers == 1):
        return None
    source, name = known[architecture.kind]
    conditions = {"no skip connection": not residual} if name == "softmax-heads" else {}
    conditions["t ≥ 2"] = architecture.tokens >= 2
    return DimensionFormula(_sum_heads(architecture), source, "theorem", conditions, name)


def softmax_bottleneck(architecture: Architecture) -> DimensionFormula | None:
    """Σ (2αd − α² + ν(d + d') − ν²) over all heads, minus δ² for each hidden layer of width δ (Theorem S4).

    Softmax networks of at least two layers whose heads fill the hidden width exactly.

    >>> softmax_bottleneck(Architecture((4, 4, 4), 2, kind="softmax", heads=2)).value
    80
    """
    if architecture.kind != "softmax" or architecture.num_layers < 2:
        return None
    *hidden, last = architecture.layers
    delta = last.d_in
    conditions = {
        **_plain(architecture),
        "hidden widths equal some δ ≤ d_0, d_l": architecture.bottleneck is not None,
        "heads × value width = δ before the last layer": all(_reach(x) == delta for x in hidden),
        "heads × attention width ≤ d_{i-1} before the last layer": all(x.heads * x.attention <= x.d_in for x in hidden),
        "heads × value width ≥ δ in the last layer": _reach(last) >= delta,
    }
    value = _sum_heads(architecture) - len(hidden) * delta**2
    return DimensionFormula(value, "Theorem S4", "theorem", conditions, "softmax-bottleneck")


def _reach(layer: LayerShape) -> int:
    """Heads × value width: how many output directions the heads of a layer have; a single value matrix has all."""
    return layer.d_out if layer.value_width is None else layer.heads * layer.value_width


def lightning_heads(architecture: Architecture) -> DimensionFormula | None:
    """Σ (2ad − a² + v(d + d') − v² − 1) over the heads of one lightning layer that are a direct sum (Theorem H).

    >>> lightning_heads(Architecture((4, 4), 2, heads=2)).value
    46
    """
    if not architecture.is_cubic or architecture.heads < 2:
        return None
    layer = architecture.layer(0)
    v = layer.value_width or 0
    conditions = {
        **_plain(architecture),
        "heads × attention width ≤ d": layer.heads * layer.attention <= layer.d_in,
        "heads × value width ≤ d'": layer.heads * v <= layer.d_out,
        "value width ≤ d": v <= layer.d_in,
    }
    value = _sum_heads(architecture) - layer.heads
    return DimensionFormula(value, "Theorem H", "theorem", conditions, "lightning-heads")
