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


def _flags(architecture: Architecture, seen: int) -> int:
    """The dimension of the pairs (M, L): flags, matrices over them, less the flags that share a pair (Lemma B).

    Of M_i with i > ``seen`` the symmetric parts count.
    """
    r, last = _smallest(architecture), architecture.num_layers
    alpha = [min(a, r[i]) for i, a in enumerate(architecture.attention)]
    total = architecture.widths[-1] * r[last - 1]
    for i, rank in enumerate(alpha):
        # A symmetric matrix of rank ρ is a form on a quotient of dimension ρ, which is a point of a Grassmannian.
        rho = min(2 * rank, r[i])
        total += bounded_rank(r[i], r[i], rank) if i < seen else rho * (r[i] - rho) + rho * (rho + 1) // 2
    unread = r[last]
    for i in range(last - 1, 0, -1):
        unread = min(r[i], 2 * alpha[i] + unread)
        total += unread * (r[i - 1] - r[i])
    return total


def _heads(architecture: Architecture) -> int:
    """The dimension of all pairs of products (Kᵀ Q, O V)."""
    total = 0
    for layer in architecture.layers:
        rank = min(layer.d_in, layer.d_out) if layer.value_width is None else layer.value_width
        head = bounded_rank(layer.d_in, layer.d_in, layer.attention) + bounded_rank(layer.d_out, layer.d_in, rank)
        total += layer.heads * head
    return total


def _one_head(architecture: Architecture, kind: str) -> None:
    """A network of one head is a pair (M, L)."""
    require(architecture.kind == kind, f"{kind} attention is required")
    free = all(x.value_width is None or x.value_width >= min(x.d_in, x.d_out) for x in architecture.layers)
    plain = architecture.heads == 1 and free and not architecture.residual
    require(plain, "one head with a free value map and no skip connection are required")


def _network(architecture: Architecture, kind: str) -> int:
    """The pairs (M, L), each of which is a function of its own near generic ones."""
    _one_head(architecture, kind)
    require(architecture.tokens >= 2, "two tokens are required")
    require(kind == "softmax" or not architecture.mask.hides, "no mask is required")
    return _flags(architecture, architecture.num_layers)


def _lightning_network(architecture: Architecture) -> int:
    """The pairs up to one scale for each layer; symmetric parts for one token, and after rank one without a mask."""
    _one_head(architecture, "lightning")
    seen = architecture.num_layers
    for i in range(architecture.num_layers - 1, -1, -1):
        if min(architecture.attention[i], *architecture.widths[: i + 1]) == 1 and not architecture.mask.hides:
            seen = i + 1
    return _flags(architecture, 0 if architecture.tokens == 1 else seen) - architecture.num_layers


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
    require(not architecture.residual and not architecture.mask.hides, "no skip connection and no mask are required")
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
    require(not architecture.residual and not architecture.mask.hides, "no skip connection and no mask are required")
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
