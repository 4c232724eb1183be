"""Theorems on the dimension of the kinds of attention beyond the papers; proofs are in docs/theorems/modern.md.

Notation: δ = 2αd − α² (matrices of rank at most α = min(a, d)), ω = 2αd − α(α − 1)/2 (pairs KᵀQ, KᵀK), p the number of
parameters of a scalar gate, ρ = min(2α, d), ν the rank of the value map of a head, counted by ν(d + d') − ν².
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import comb

from attngeom.dimensions.effective import bounded_rank
from attngeom.dimensions.theorems import DimensionFormula
from attngeom.network.architecture import Architecture, LayerShape

GATES = {"sigmoid": 0, "biased": 1, "mamba": 2}
"""Parameters of a scalar gate beyond the d of u."""
NAMED_BY_GATES = ("scalar_gate", "ssd", "gla", "deltanet", "gated_deltanet", "kda")
"""Kinds whose heads are told apart by their gates, in one layer and in residual stacks (Theorems M4, M5)."""

Count = Callable[[Architecture, LayerShape], int]


def pairs_of_grams(d: int, a: int) -> int:
    """ω, the dimension of the pairs (KᵀQ, KᵀK).

    >>> pairs_of_grams(3, 2), pairs_of_grams(2, 5)
    (11, 7)
    """
    alpha = min(a, d)
    return 2 * alpha * d - comb(alpha, 2)


def _delta(layer: LayerShape) -> int:
    return bounded_rank(layer.d_in, layer.d_in, layer.attention)


def _omega(layer: LayerShape) -> int:
    return pairs_of_grams(layer.d_in, layer.attention)


def _gate(architecture: Architecture, layer: LayerShape) -> int:
    return layer.d_in + GATES[architecture.options.get("gate", "sigmoid")]


def _has_unit_keys(architecture: Architecture) -> bool:
    return bool(architecture.options.get("normalised_keys"))


def _angles(layer: LayerShape) -> int:
    """Gram matrices of 2d vectors in R^a up to the sizes of keys and queries, and from a = 2d on up to that of A."""
    d, a = layer.d_in, layer.attention
    return 2 * d * a - comb(a, 2) - 2 if a < 2 * d else 2 * d * d + d - 3


COUNTS: Mapping[str, Count] = {
    "retnet": lambda x, y: _delta(y) - (x.options.get("decay") != "learned"),
    "scalar_gate": lambda x, y: _delta(y) - 1 + _gate(x, y),
    "ssd": lambda x, y: _delta(y) + y.d_in + 1,
    "gla": lambda x, y: 3 * y.attention * y.d_in - y.attention - 1,
    "deltanet": lambda x, y: _omega(y) - 1 + y.d_in,
    "gated_deltanet": lambda x, y: (_angles(y) if _has_unit_keys(x) else _omega(y) - 1) + y.d_in + _gate(x, y),
    "kda": lambda x, y: 3 * y.attention * y.d_in + y.d_in - (2 if _has_unit_keys(x) else 1),
}
"""The dimension of one head at t ≥ 2 tokens without its value map, for recurrences."""


def _values(layer: LayerShape) -> int:
    return bounded_rank(layer.d_out, layer.d_in, layer.value_rank)


def recurrent(architecture: Architecture) -> DimensionFormula | None:
    """Heads of a recurrent kind at t ≥ 2 tokens: Theorem M for one head, M4 for several, M5 for residual stacks.

    >>> [recurrent(Architecture((3, 2), 2, kind=kind)).value for kind in ("retnet", "gla", "deltanet", "kda")]
    [13, 21, 19, 26]
    """
    kind, heads = architecture.kind, architecture.heads
    if kind not in COUNTS:
        return None
    layers = architecture.layers
    one = architecture.num_layers == 1
    conditions = {
        "t ≥ 2": architecture.tokens >= 2,
        "no biases, no rotary embeddings": not {"bias", "rope"} & set(architecture.options.to_json()),
        "one layer, or skip connections": one or (architecture.residual and kind in NAMED_BY_GATES),
    }
    if _has_unit_keys(architecture):
        fits = all(min(y.attention, y.d_in) >= 2 for y in layers)
        conditions["a gate, and a, d ≥ 2"] = fits and kind != "deltanet"
    if heads > 1 and kind not in NAMED_BY_GATES:
        # Different fixed decays, told apart by heads + 1 tokens.
        conditions["fixed decays and t ≥ heads + 1"] = (
            architecture.options.get("decay") != "learned" and architecture.tokens > heads
        )
    value = sum(heads * (COUNTS[kind](architecture, y) + _values(y)) for y in layers)
    name = "Theorem M" if heads == 1 and one else "Theorem M4" if one else "Theorem M5"
    return DimensionFormula(value, name, "theorem", conditions)


def one_token(architecture: Architecture) -> DimensionFormula | None:
    """ρd − ρ(ρ − 1)/2 + d'd − 1 at one token, and d for β, d + 1 for Δ: decays are not seen, A by its symmetric part.

    >>> one_token(Architecture((3, 2), 1, kind="deltanet", tokens=1)).value
    13
    """
    options = set(architecture.options.to_json())
    is_scored = architecture.kind == "lightning" and options <= {"alibi", "rope", "bias"}
    if architecture.num_layers != 1 or not (architecture.kind in COUNTS or is_scored):
        return None
    layer = architecture.layer(0)
    biased = "bias" in options
    d = layer.d_in + biased
    rho = min(2 * min(layer.attention, d), d)
    extra = {"deltanet": d, "gated_deltanet": d, "kda": d, "ssd": d + 1}.get(architecture.kind, 0)
    conditions = {
        "t = 1": architecture.tokens == 1,
        "one head with one value matrix": not architecture.is_factored,
        "biases in lightning attention only, nothing normalised": (is_scored or not biased)
        and "normalised_keys" not in options,
    }
    value = rho * d - comb(rho, 2) + layer.d_out * d - 1 + extra
    return DimensionFormula(value, "Theorem M (one token)", "theorem", conditions)


def scored(architecture: Architecture) -> DimensionFormula | None:
    """One layer with one head whose scores have options: biases, ALiBi, rotary embeddings, cross-attention.

    >>> [scored(Architecture((3, 2), 2, kind=kind, bias=True)).value for kind in ("lightning", "softmax")]
    [19, 18]
    """
    options = architecture.options.to_json()
    if architecture.num_layers != 1 or len(options) != 1:
        return None
    layer, (option,) = architecture.layer(0), options
    d, d_out, alpha = layer.d_in, layer.d_out, min(layer.attention, layer.d_in)
    counts = {
        ("lightning", "bias"): bounded_rank(d + 1, d + 1, layer.attention) - 1 + d_out,
        ("softmax", "bias"): alpha * (2 * d + 1 - alpha) + d_out,
        ("lightning", "alibi"): _delta(layer),
        ("lightning", "rope"): 2 * layer.attention * d - layer.attention - 1,
        ("lightning", "memory"): _delta(layer) - 1,
    }
    if (architecture.kind, option) not in counts:
        return None
    conditions = {"one head with one value matrix": not architecture.is_factored, "t ≥ 2": architecture.tokens >= 2}
    if option == "rope":
        conditions |= {"t ≥ 3": architecture.tokens >= 3, "a ≤ d": layer.attention <= d}
    value = counts[architecture.kind, option] + d * d_out
    return DimensionFormula(value, f"Theorem M ({option})", "theorem", conditions)


def linear(architecture: Architecture) -> DimensionFormula | None:
    """Linear attention: δ − 1 normalised (α = 1: d − 1), 2ad − a − 1 for squares, 2ad for SiLU; with d'd.

    >>> linear(Architecture((3, 2), 2, kind="linear")).value
    13
    """
    if architecture.kind != "linear" or architecture.num_layers != 1:
        return None
    layer = architecture.layer(0)
    d, a = layer.d_in, layer.attention
    feature, raw = architecture.options.get("feature", "identity"), bool(architecture.options.get("unnormalised"))
    counts = {
        "identity": d - 1 if min(a, d) == 1 else _delta(layer) - 1,
        "square": 2 * a * d - a - 1,
        "silu": 2 * a * d,
    }
    conditions = {
        "one head with one value matrix": not architecture.is_factored,
        "t ≥ 2": architecture.tokens >= 2,
        "no biases": not architecture.options.get("bias"),
        "identity normalised, square and silu not": raw == (feature != "identity"),
    }
    if feature == "square":
        conditions["a ≤ max(d, 2d − 2)"] = a <= max(d, 2 * d - 2)
    if feature == "silu":
        conditions["d ≥ 2"] = d >= 2
    return DimensionFormula(counts[feature] + d * layer.d_out, f"Theorem M ({feature})", "theorem", conditions)


def differential(architecture: Architecture) -> DimensionFormula | None:
    """2δ + 1 + d'd for differential attention.

    >>> differential(Architecture((3, 2), 2, kind="differential")).value
    23
    """
    if architecture.kind != "differential" or architecture.num_layers != 1:
        return None
    layer = architecture.layer(0)
    conditions = {
        "one head with one value matrix": not architecture.is_factored,
        "t ≥ 2": architecture.tokens >= 2,
        "no options": not architecture.options,
    }
    value = 2 * _delta(layer) + 1 + layer.d_in * layer.d_out
    return DimensionFormula(value, "Theorem M (differential)", "theorem", conditions)


FORMULAS: tuple[Callable[[Architecture], DimensionFormula | None], ...] = (
    recurrent,
    scored,
    linear,
    differential,
    one_token,
)


def modern_formula(architecture: Architecture) -> DimensionFormula | None:
    """The theorem that covers an architecture with options or of a kind beyond the papers; None if none does.

    >>> modern_formula(Architecture((2, 2), 2, kind="kda", bias=True)) is None
    True
    """
    known = (formula for make in FORMULAS if (formula := make(architecture)) is not None)
    return next((formula for formula in known if formula.applies), None)
