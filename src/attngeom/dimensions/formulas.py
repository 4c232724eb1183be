"""Closed formulas for the dimension, each with its source, its status and its hypotheses.

Notation: widths d_0..d_l, attention widths a_i, t tokens, H heads of value width v; α_i = min(a_i, d_{i-1}).
A formula never comes without the list of its hypotheses and whether each holds; ``applies`` is true if all do.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

from attngeom.dimensions.effective import bounded_rank, cubic_dimension
from attngeom.dimensions.theorems import (
    DimensionFormula,
    count_head,
    count_virtual,
    free_heads,
    free_network,
    lightning_heads,
    lightning_network,
    softmax_bottleneck,
)
from attngeom.network.architecture import Architecture, LayerShape
from attngeom.network.mask import NO_MASK

KINDS = ("lightning", "softmax", "sigmoid")
"""The kinds for which dimensions were computed and compared with formulas."""


def _plain(architecture: Architecture) -> dict[str, bool]:
    return {
        "one head with one value matrix": not architecture.is_factored,
        "no skip connection": not architecture.residual,
    }


def one_layer(architecture: Architecture) -> DimensionFormula | None:
    """2αd − α² + d d' − 1 ([G] Cor 3.3).

    >>> one_layer(Architecture((3, 2), 2, tokens=2)).value
    13
    """
    if architecture.num_layers != 1:
        return None
    d, d_out = architecture.widths
    a = architecture.attention[0]
    hypotheses = {
        **_plain(architecture),
        "lightning attention without mask": architecture.is_cubic and not architecture.mask.hides,
        "t ≥ 2": architecture.tokens >= 2,
        "d, d' ≥ 2 or d, a ≥ 2": d >= 2 and (d_out >= 2 or a >= 2),
    }
    value = bounded_rank(d, d, a) + d * d_out - 1
    return DimensionFormula(value, "[G] Cor 3.3", "theorem", hypotheses, "lightning-network")


def deep_lightning(architecture: Architecture) -> DimensionFormula | None:
    """2α_1 d_0 − α_1² + δ(d_0+d_l) − δ² − l + Σ_{i>1} (2α_i δ − α_i²) ([G] Cor 3.8), for at least two layers.

    >>> deep_lightning(Architecture((3, 3, 3), 2)).value
    23
    """
    if architecture.num_layers < 2 or architecture.kind != "lightning":
        return None
    d_0, *hidden, d_l = architecture.widths
    delta = hidden[0]
    hypotheses = {
        **_plain(architecture),
        "t ≥ 3": architecture.tokens >= 3,
        "a_i ≥ 2": min(architecture.attention) >= 2,
        "hidden widths equal some δ ≥ 2": set(hidden) == {delta} and delta >= 2,
        "d_0, d_l ≥ δ": min(d_0, d_l) >= max(hidden),
        NO_MASK: not architecture.mask.hides,
    }
    scores = sum(bounded_rank(d, d, a) for a, d in zip(architecture.attention, architecture.widths))
    value = scores + delta * (d_0 + d_l) - delta**2 - architecture.num_layers
    return DimensionFormula(value, "[G] Cor 3.8", "theorem", hypotheses, "lightning-network")


def softmax_layer(architecture: Architecture) -> DimensionFormula | None:
    """2αd − α² + d d' for one softmax layer with one head ([G] Thm 3.9 and Eq 16).

    >>> softmax_layer(Architecture((3, 2), 2, kind="softmax")).value
    14
    """
    if architecture.kind != "softmax" or architecture.num_layers != 1:
        return None
    d, d_out = architecture.widths
    hypotheses = {**_plain(architecture), "t ≥ 2": architecture.tokens >= 2, NO_MASK: not architecture.mask.hides}
    value = bounded_rank(d, d, architecture.attention[0]) + d * d_out
    return DimensionFormula(value, "[G] Thm 3.9 and Eq 16", "theorem", hypotheses, "softmax-network")


def sigmoid_network(architecture: Architecture) -> DimensionFormula | None:
    """δ of Lemma B for sigmoid networks with one head that Theorem S does not cover: a mask, or one token.

    One token shows symmetric parts alone.

    >>> [sigmoid_network(Architecture((4, 3, 5), 2, kind="sigmoid", tokens=t)).value for t in (1, 2)]
    [34, 38]
    """
    if architecture.kind != "sigmoid":
        return None
    value = count_virtual(architecture, 0 if architecture.tokens == 1 else None)
    return DimensionFormula(value, "ours: sigmoid networks", "computed", _plain(architecture))


def linear_softmax(architecture: Architecture) -> DimensionFormula | None:
    """Softmax over one token is 1, so the network is linear: r (d_0 + d_l − r), r the smallest width or rank.

    >>> linear_softmax(Architecture((3, 2, 3), 1, tokens=1, kind="softmax")).value
    8
    """
    if architecture.view != "nothing" or architecture.residual:
        return None
    ranks = [layer.heads * (layer.value_width or layer.d_in) for layer in architecture.layers]
    value = bounded_rank(architecture.widths[0], architecture.widths[-1], min(*architecture.widths, *ranks))
    return DimensionFormula(value, "linear map of bounded rank", "theorem", {}, "linear-softmax")


def _lightning_count(layer: LayerShape) -> int:
    """H F − H − mix: the parameters of a lightning layer of heads, modulo scales and mixing."""
    H, d, d_out = layer.heads, layer.d_in, layer.d_out
    alpha, nu = min(layer.attention, d), layer.value_rank
    return H * (count_head(layer) - 1 - max(0, H - 1 - (d - alpha) ** 2 - (d - nu) * (d_out - nu)))


def _all_cubics(layer: LayerShape) -> int:
    return layer.d_out * cubic_dimension(layer.d_in, 2)


def _is_unsaturated(layer: LayerShape) -> bool:
    H, d, d_out = layer.heads, layer.d_in, layer.d_out
    is_small = _lightning_count(layer) <= _all_cubics(layer) and max(d * d, d * d_out) >= H
    return H == 1 or (H * min(layer.value_width or d_out, d) >= d_out and is_small)


def layers_of_heads(architecture: Architecture) -> DimensionFormula | None:
    """Σ_i (H F_i − H − mix_i) − Σ_{0<i<l} d_i²: several heads, several layers, with or without skip connection.

    F = 2αd − α² + ν(d+d') − ν² with ν = min(v, d, d'), mix = H (H−1−c_A−c_V)_+, c_A = (d−α)², c_V = (d−ν)(d'−ν);
    at most all cubics d' d² (d+1)/2 for each layer. With a skip connection the last sum is dropped; for softmax and
    sigmoid − H and mix are dropped.

    >>> layers_of_heads(Architecture((4, 4), 2, heads=2)).value
    46
    """
    if architecture.kind not in KINDS:
        return None
    lightning = architecture.kind == "lightning"
    layers = architecture.layers
    total = sum(
        min(_all_cubics(layer), _lightning_count(layer)) if lightning else layer.heads * count_head(layer)
        for layer in layers
    )
    hypotheses = {"t ≥ 2": architecture.tokens >= 2}
    if not architecture.residual:
        total -= sum(width**2 for width in architecture.widths[1:-1])
        narrow, reads = True, True
        for layer, following in pairwise(layers):
            narrow &= layer.d_out <= min(layer.d_in, layer.heads * (layer.value_width or layer.d_in))
            following_values = min(following.value_width or following.d_out, following.d_out)
            reads &= layer.d_out <= following.heads * (2 * following.attention + following_values)
        hypotheses["no hidden width above its input width, or above what the heads can reach"] = narrow
        hypotheses["every hidden direction can be read by the next layer"] = reads
        if lightning and not architecture.mask.hides:
            # Heads of rank one make the next layer blind to antisymmetric parts.
            hypotheses["heads of rank ≥ 2, or several of value width 1, before the last layer"] = all(
                min(layer.attention, layer.d_in) >= 2 or (layer.heads > 1 and layer.value_width == 1)
                for layer in layers[:-1]
            )
    if lightning and architecture.heads > 1:
        hypotheses["output widths ≥ 2 if there are several heads"] = min(architecture.widths[1:]) >= 2
        unsaturated = "no layer beyond saturation: heads × value width ≥ d', count ≤ all cubics, H ≤ max(d², d d')"
        hypotheses[unsaturated] = all(map(_is_unsaturated, layers))
    return DimensionFormula(total, "ours: layers of heads", "computed", hypotheses)


FORMULAS: tuple[Callable[[Architecture], DimensionFormula | None], ...] = (
    one_layer,
    linear_softmax,
    deep_lightning,
    softmax_layer,
    free_network,
    lightning_network,
    free_heads,
    softmax_bottleneck,
    lightning_heads,
    sigmoid_network,
    layers_of_heads,
)


def formulas(architecture: Architecture) -> tuple[DimensionFormula, ...]:
    """All formulas that have a value here, theorems of the papers first, whether they apply or not."""
    return tuple(formula for make in FORMULAS if (formula := make(architecture)) is not None)


def formula(architecture: Architecture) -> DimensionFormula | None:
    """The first formula that applies: a theorem if there is one; None if no formula claims anything.

    >>> formula(Architecture((3, 5, 3), 2)).source
    'Theorem F, Corollary C'
    """
    known = [candidate for candidate in formulas(architecture) if candidate.applies]
    return min(known, key=lambda candidate: candidate.status != "theorem", default=None)
