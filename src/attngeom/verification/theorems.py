"""Recheck a dimension that a theorem gives: its hypotheses and its value, from the architecture alone.

The statements and proofs are in docs/theorems/dimension.md. The values are computed here by counting the pieces of the
parametrization one after another; the code that answers uses closed formulas.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from itertools import accumulate
from typing import Any

from attngeom.network.architecture import Architecture
from attngeom.results import Proof
from attngeom.verification.compositions import bounded_rank
from attngeom.verification.reading import read_choice, read_object, require


def _smallest(architecture: Architecture) -> list[int]:
    """r_i, the smallest of the widths d_0, …, d_i."""
    return list(accumulate(architecture.widths, min))


def _flags(architecture: Architecture) -> int:
    """The dimension of the pairs (M, L): flags, matrices over them, less the flags that share a pair (Lemma B)."""
    r, last = _smallest(architecture), architecture.num_layers
    alpha = [min(a, r[i]) for i, a in enumerate(architecture.attention)]
    total = architecture.widths[-1] * r[last - 1] + sum(bounded_rank(r[i], r[i], alpha[i]) for i in range(last))
    seen = r[last]
    for i in range(last - 1, 0, -1):
        seen = min(r[i], 2 * alpha[i] + seen)
        total += seen * (r[i - 1] - r[i])
    return total


def _heads(architecture: Architecture) -> int:
    """The dimension of all pairs of products (Kᵀ Q, O V)."""
    total = 0
    for layer in architecture.layers:
        rank = min(layer.d_in, layer.d_out) if layer.value_width is None else layer.value_width
        head = bounded_rank(layer.d_in, layer.d_in, layer.attention) + bounded_rank(layer.d_out, layer.d_in, rank)
        total += layer.heads * head
    return total


def _network(architecture: Architecture, kind: str) -> int:
    """The pairs (M, L) of a network of one head."""
    require(architecture.kind == kind, f"{kind} attention is required")
    free = all(x.value_width is None or x.value_width >= min(x.d_in, x.d_out) for x in architecture.layers)
    plain = architecture.heads == 1 and free and not architecture.residual
    require(plain, "one head with a free value map and no skip connection are required")
    require(not architecture.causal and architecture.tokens >= 2, "two tokens and no mask are required")
    return _flags(architecture)


def _lightning_network(architecture: Architecture) -> int:
    flags, r = _network(architecture, "lightning"), _smallest(architecture)
    alpha = [min(a, r[i]) for i, a in enumerate(architecture.attention)]
    require(all(rank >= 2 for rank in alpha[:-1]), "attention of rank 2 or more before the last layer is required")
    require(alpha[-1] * r[-1] >= 2, "rank M_l · rank L ≥ 2 is required")
    return flags - architecture.num_layers


def _residual_softmax(architecture: Architecture) -> int:
    require(architecture.kind == "softmax", "softmax attention is required")
    require(architecture.residual and architecture.tokens >= 2, "a skip connection and two tokens are required")
    return _heads(architecture)


def _softmax_heads(architecture: Architecture) -> int:
    require(architecture.kind == "softmax" and architecture.num_layers == 1, "one layer of softmax is required")
    require(not architecture.residual and architecture.tokens >= 2, "no skip connection and two tokens are required")
    return _heads(architecture)


def _softmax_bottleneck(architecture: Architecture) -> int:
    require(architecture.kind == "softmax" and architecture.num_layers >= 2, "two layers of softmax are required")
    require(not architecture.residual and not architecture.causal, "no skip connection and no mask are required")
    require(architecture.tokens >= 2, "two tokens are required")
    widths, layers = architecture.widths, architecture.layers
    delta = widths[-2]
    require(all(width == delta for width in widths[1:-1]), "equal hidden widths are required")
    require(delta <= widths[0] and delta <= widths[-1], "a hidden width of at most d_0 and d_l is required")
    filled = [layer.d_out if layer.value_width is None else layer.heads * layer.value_width for layer in layers]
    require(filled[:-1] == [delta] * len(filled[:-1]), "heads × value width = hidden width is required")
    require(filled[-1] >= delta, "heads × value width ≥ hidden width is required in the last layer")
    narrow = all(layer.heads * layer.attention <= layer.d_in for layer in layers[:-1])
    require(narrow, "heads × attention width ≤ input width is required before the last layer")
    return _heads(architecture) - sum(width * width for width in widths[1:-1])


def _lightning_heads(architecture: Architecture) -> int:
    require(architecture.kind == "lightning" and architecture.num_layers == 1, "one lightning layer is required")
    require(not architecture.residual and not architecture.causal, "no skip connection and no mask are required")
    (layer,) = architecture.layers
    require(layer.heads >= 2 and layer.value_width is not None, "two or more heads are required")
    require(architecture.tokens >= 2, "two tokens are required")
    require(layer.heads * layer.attention <= layer.d_in, "heads × attention width ≤ d is required")
    require(layer.heads * (layer.value_width or 0) <= layer.d_out, "heads × value width ≤ d' is required")
    require((layer.value_width or 0) <= layer.d_in, "value width ≤ d is required")
    return _heads(architecture) - layer.heads


def _sigmoid_heads(architecture: Architecture) -> int:
    require(architecture.kind == "sigmoid" and architecture.tokens >= 2, "sigmoid over two tokens is required")
    require(architecture.residual or architecture.num_layers == 1, "one layer or a skip connection is required")
    return _heads(architecture)


def _linear_softmax(architecture: Architecture) -> int:
    require(architecture.kind == "softmax" and architecture.tokens == 1, "softmax over one token is required")
    require(not architecture.residual, "no skip connection is allowed")
    rank = min(architecture.widths)
    for layer in architecture.layers:
        if layer.value_width is not None:
            rank = min(rank, layer.heads * layer.value_width)
    return bounded_rank(architecture.widths[-1], architecture.widths[0], rank)


THEOREMS: dict[str, Callable[[Architecture], int]] = {
    "softmax-network": partial(_network, kind="softmax"),
    "lightning-network": _lightning_network,
    "residual-softmax": _residual_softmax,
    "softmax-heads": _softmax_heads,
    "softmax-bottleneck": _softmax_bottleneck,
    "lightning-heads": _lightning_heads,
    "linear-softmax": _linear_softmax,
    "sigmoid-network": partial(_network, kind="sigmoid"),
    "sigmoid-heads": _sigmoid_heads,
}


def check_theorem(architecture: Architecture, dimension: int, witness: Mapping[str, Any]) -> Proof:
    """Why the dimension is what a theorem says: its hypotheses hold, and its value is this one."""
    cited = read_object(witness, ("theorem", "hypotheses"), "witness")
    name, words = read_choice(cited["theorem"], THEOREMS, "theorem"), cited["hypotheses"]
    # The words are for readers; whether the hypotheses hold is decided from the architecture.
    require(
        isinstance(words, list) and all(isinstance(x, str) for x in words), "hypotheses: a list of words is required"
    )
    value = THEOREMS[name](architecture)
    require(value == dimension, f"the theorem {name} gives {value}, not {dimension}")
    return Proof("certified", f"the hypotheses of the theorem {name} hold, and it gives {value}")
