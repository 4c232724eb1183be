"""The sizes of a network that matter: a smaller network with exactly the same set of functions.

Hidden directions that no input reaches, or that no later weight reads, are dropped: going forward, the outputs of layer
i span at most s_i = min(d_i, H min(v, s_{i-1})) dimensions (s_{i-1} for one matrix V), or the number of cubics; going
backward, layer i+1 reads at most H (2 α_{i+1} + ν_{i+1}) linear forms. Proofs: docs/theorems/dimension.md, Lemma U.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from math import comb

from attngeom.network.architecture import Architecture, LayerShape


@dataclass(frozen=True)
class EffectiveLayer(LayerShape):
    """Sizes of one layer of the smaller network.

    ``symmetric`` says that only the symmetric part of A can be seen, because all tokens that enter the layer are
    parallel; ``unseen`` is the dimension of a space of matrices that can be added to A without effect, see
    :func:`unseen_matrices`.
    """

    symmetric: bool
    is_last: bool
    unseen: int = 0

    @property
    def attention_rank(self) -> int:
        """The largest rank of what is visible of A: α, or min(2α, d) for the symmetric part."""
        return min(2 * self.attention, self.d_in) if self.symmetric else self.attention


def bounded_rank(rows: int, columns: int, rank: int) -> int:
    """The dimension of the rows×columns matrices of rank at most ``rank``.

    >>> bounded_rank(3, 3, 1)
    5
    """
    rank = min(rank, rows, columns)
    return rank * (rows + columns - rank)


def cubic_dimension(d_in: int, tokens: int) -> int:
    """The number of cubics that a lightning layer can have in one output row: x_2 linear, x_1 quadratic, or x_1 alone.

    >>> cubic_dimension(2, 2), cubic_dimension(2, 1)
    (6, 4)
    """
    return d_in * comb(d_in + 1, 2) if tokens > 1 else comb(d_in + 2, 3)


def _reach(architecture: Architecture, index: int, d_in: int) -> int:
    """How many dimensions the outputs of a layer without skip connection can span, if its inputs span d_in."""
    layer = architecture.layer(index)
    span = d_in if layer.value_width is None else layer.heads * min(layer.value_width, d_in)
    if architecture.rule.is_polynomial:
        span = min(span, cubic_dimension(d_in, architecture.tokens))
    elif architecture.tokens == 1 and architecture.rule.is_normalised:
        span = min(span, d_in)
    return min(layer.d_out, span)


def effective_widths(architecture: Architecture) -> tuple[int, ...]:
    """The widths s_0..s_l of the smaller network; s_0 and s_l are the given ones.

    >>> effective_widths(Architecture((3, 5, 3), 2))
    (3, 3, 3)
    >>> effective_widths(Architecture((9, 9, 1), 1))
    (9, 3, 1)
    """
    widths = list(architecture.widths)
    if architecture.residual:
        return tuple(widths)
    last = widths[-1]
    for index in range(architecture.num_layers):
        widths[index + 1] = _reach(architecture, index, widths[index])
    for index in range(architecture.num_layers - 1, 0, -1):
        layer = architecture.layer(index)
        values = min(layer.value_width or layer.d_out, widths[index], widths[index + 1])
        reads = 0 if architecture.rule.is_normalised and architecture.tokens == 1 else 2 * layer.attention
        widths[index] = min(widths[index], layer.heads * (min(reads, 2 * widths[index]) + values))
    widths[-1] = last
    return tuple(widths)


def unseen_matrices(before: EffectiveLayer) -> int:
    """The dimension of the matrices that attention cannot see after several heads of rank one (lightning, no mask).

    Those that alternate on the images of heads of rank one, Σ_h C(v, 2) or, for two that intersect in dimension o,
    2 C(v − o, 2); H² − 1 − min(3, C(H, 2)) after heads on a plane, v = 2 and d_out = 2H; after parallel tokens, what
    exceeds the forms of degree 6.

    >>> unseen_matrices(EffectiveLayer(4, 4, 1, 2, 2, False, False))
    2
    >>> unseen_matrices(EffectiveLayer(2, 6, 2, 3, 2, False, False))
    5
    >>> unseen_matrices(EffectiveLayer(2, 4, 1, 2, 2, True, False))
    3
    """
    H = before.heads
    if before.symmetric:
        return max(0, comb(before.d_out + 1, 2) - comb(before.d_in + 5, 6))
    if before.d_in == 2 and before.value_width == 2 and before.d_out == 2 * H > 2:
        return H * H - 1 - min(3, comb(H, 2))
    if before.attention > 1 or before.heads == 1 or before.value_width is None:
        return 0
    overlap = before.heads * before.value_width - before.d_out
    if overlap == 0:
        return before.heads * comb(before.value_width, 2)
    return 2 * comb(before.value_width - overlap, 2) if before.heads == 2 and overlap < before.value_width else 0


def unseen_by_two_tokens(before: EffectiveLayer) -> int:
    """The dimension of the matrices that softmax over two tokens cannot see after several heads (no mask).

    If H v = d_out: Λ² of a space of dimension 2v − d_in for each pair g ≠ h of heads.

    >>> unseen_by_two_tokens(EffectiveLayer(2, 4, 1, 2, 2, False, False))
    2
    """
    if before.value_width is None or before.heads * before.value_width != before.d_out:
        return 0
    return before.heads * (before.heads - 1) * comb(max(0, 2 * before.value_width - before.d_in), 2)


def effective_layers(architecture: Architecture) -> tuple[EffectiveLayer, ...]:
    """The layers of the smaller network, with attention and value widths cut to the ranks that are possible.

    >>> [layer.attention for layer in effective_layers(Architecture((2, 4, 2), 3))]
    [2, 2]
    """
    widths = effective_widths(architecture)
    rule = architecture.rule
    parallel = architecture.tokens == 1 and not rule.is_normalised
    masked = architecture.causal and architecture.tokens > 1
    can_collapse = not (masked or architecture.residual) and rule.is_polynomial
    pairs_only = rule.is_normalised and architecture.tokens == 2 and not (architecture.causal or architecture.residual)
    layers: list[EffectiveLayer] = []
    for index, (d_in, d_out) in enumerate(pairwise(widths)):
        given = architecture.layer(index)
        alpha = min(given.attention, d_in)
        value_width = None if given.value_width is None else min(given.value_width, d_in, d_out)
        is_last = index == architecture.num_layers - 1
        unseen = 0
        if layers and can_collapse and layers[-1].symmetric == parallel:
            unseen = unseen_matrices(layers[-1])
        elif layers and pairs_only:
            unseen = unseen_by_two_tokens(layers[-1])
        layers.append(EffectiveLayer(d_in, d_out, alpha, given.heads, value_width, parallel, is_last, unseen))
        # V X Xᵀ k qᵀ X has rank one: from here on all tokens are parallel.
        parallel = parallel or (can_collapse and given.heads == 1 and alpha == 1)
    return tuple(layers)
