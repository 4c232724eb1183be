"""The sizes of a network that matter: a smaller network with exactly the same set of functions.

Hidden directions that no input reaches, or that no later weight reads, are dropped: going forward, the outputs of layer
i span at most s_i = min(d_i, H min(v, s_{i-1})) dimensions (s_{i-1} for one matrix V), or the number of cubics; going
backward, layer i+1 reads at most H (2 α_{i+1} + ν_{i+1}) linear forms. Proofs: docs/theorems/dimension.md, Lemma U.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from itertools import combinations_with_replacement, pairwise
from math import comb
from typing import Any

from flint import fmpz_mat, fmpz_mpoly_ctx

from attngeom.network.architecture import Architecture, LayerShape


@dataclass(frozen=True)
class EffectiveLayer(LayerShape):
    """Sizes of one layer of the smaller network.

    ``symmetric`` says that only the symmetric part of A can be seen, because all tokens that enter the layer are
    parallel; ``unseen`` is the dimension of a space of matrices that can be added to A without effect, see
    :func:`unseen_matrices`; ``unseen_cubics`` that of a space of cubics that can be added to an output row.
    ``follows_first`` says that what enters are the outputs of the first layer at one token, an irreducible set.
    """

    symmetric: bool
    is_last: bool
    unseen: int = 0
    unseen_cubics: int = 0
    follows_first: bool = False

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
    elif architecture.view == "nothing":
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
        reads = 0 if architecture.view == "nothing" else 2 * layer.attention
        widths[index] = min(widths[index], layer.heads * (min(reads, 2 * widths[index]) + values))
    widths[-1] = last
    return tuple(widths)


def unseen_matrices(before: EffectiveLayer) -> int:
    """The dimension of the matrices that attention cannot see after several heads of rank one (lightning, no mask).

    Those that alternate on the images of heads of rank one, Σ_h C(v, 2) or, for two that intersect in dimension o,
    2 C(v − o, 2); H² − 1 − min(3, C(H, 2)) after heads on a plane, v = 2 and d_out = 2H; after parallel tokens, what
    exceeds the forms of degree 6, or what one token does not see.

    >>> unseen_matrices(EffectiveLayer(4, 4, 1, 2, 2, False, False))
    2
    >>> unseen_matrices(EffectiveLayer(2, 6, 2, 3, 2, False, False))
    5
    >>> unseen_matrices(EffectiveLayer(2, 4, 1, 2, 2, True, False))
    3
    """
    H = before.heads
    if before.symmetric:
        return max(unseen_by_one_token(before, True), comb(before.d_out + 1, 2) - comb(before.d_in + 5, 6))
    if before.d_in == 2 and before.value_width == 2 and before.d_out == 2 * H > 2:
        return H * H - 1 - min(3, comb(H, 2))
    if before.attention > 1 or before.heads == 1 or before.value_width is None:
        return 0
    overlap = before.heads * before.value_width - before.d_out
    if overlap == 0:
        return before.heads * comb(before.value_width, 2)
    return 2 * comb(before.value_width - overlap, 2) if before.heads == 2 and overlap < before.value_width else 0


def unseen_by_one_token(before: EffectiveLayer, is_polynomial: bool) -> int:
    """The dimension of the symmetric matrices that one token cannot see after several heads, H v = d_out.

    Λ² of a space of dimension 2v − d_in for each pair of heads; for lightning with v = d_in and independent quadrics,
    H ≤ d(d + 1)/2, also the kernel of S²R^H ⊗ R^H → S³R^H, of dimension 2 C(H + 1, 3).

    >>> unseen_by_one_token(EffectiveLayer(3, 6, 2, 2, 3, True, False), True)
    5
    """
    H, d, v = before.heads, before.d_in, before.value_width
    if v is None or H * v != before.d_out:
        return 0
    relations = 2 * comb(H + 1, 3) if is_polynomial and v == d and comb(d + 1, 2) >= H else 0
    return comb(H, 2) * comb(max(0, 2 * v - d), 2) + relations


def unseen_by_masked_pairs(before: EffectiveLayer, first: int) -> int:
    """The dimension of the matrices that masked softmax over two tokens cannot see after several heads.

    The first token is a linear function of the input and fills a space of dimension r = ``first``, the least width so
    far: skew matrices that vanish on it. If H v = d_out: all matrices, less the conditions that (z_2 − z_1)ᵀ A z_2
    vanishes.

    >>> [unseen_by_masked_pairs(EffectiveLayer(2, 4, 1, 2, 2, False, False), r) for r in (2, 1)]
    [2, 4]
    """
    H, v, s, r = before.heads, before.value_width, before.d_out, min(before.d_out, first)
    unseen = comb(s - r, 2)
    if v is not None and H * v == s:
        alternating = comb(max(0, 2 * v - before.d_in), 2)
        conditions = comb(H, 2) * (v * v - alternating) + H * comb(v + 1, 2) + H * v * r - comb(r + 1, 2)
        unseen = max(unseen, s * s - conditions)
    return unseen


def unseen_by_masked_cubics(before: EffectiveLayer) -> int:
    """The dimension of the cubics that masked lightning attention over two tokens cannot see, for each output row.

    After heads on a plane, d_out = s ≥ 4, the first token lies on a twisted cubic: the kernel of I_2 ⊗ R^s → I_3. For
    s = 6 the layer before shows all its cubics, and the number is that of the map from cubics to functions.

    >>> unseen_by_masked_cubics(EffectiveLayer(2, 4, 1, 4, 2, False, False))
    2
    """
    s = before.d_out
    if before.d_in != 2 or s < 4:
        return 0
    if s == cubic_dimension(2, 2):
        return s * comb(s + 1, 2) - rank_of_pairs()
    return s * (comb(s + 1, 2) - 7) - (comb(s + 2, 3) - 10)


@cache
def rank_of_pairs() -> int:
    """The dimension of all functions T(z_1, z_1, z_1), T(z_1, z_1, z_2) + T(z_2, z_2, z_2), T ∈ S²R⁶ ⊗ R⁶, exactly.

    z_1 = x_1² ⊗ x_1 and z_2 = x_1² ⊗ x_2 + x_2² ⊗ x_2 in S²R² ⊗ R² are all cubics of two masked tokens on a plane.

    >>> rank_of_pairs()
    62
    """
    context = fmpz_mpoly_ctx.get(["a", "b", "c", "d"])
    a, b, c, d = context.gens()
    first, second = ([x * x, x * y, y * y] for x, y in ((a, b), (c, d)))
    z_1 = [square * x for square in first for x in (a, b)]
    z_2 = [one * x + two * x for one, two in zip(first, second) for x in (c, d)]
    rows: list[dict[Any, int]] = []
    places: dict[Any, int] = {}
    for i, j in combinations_with_replacement(range(6), 2):
        for k in range(6):
            columns = z_1[i] * z_1[j] * z_1[k], z_1[i] * z_1[j] * z_2[k] + z_2[i] * z_2[j] * z_2[k]
            rows.append({(n, m): int(x) for n, form in enumerate(columns) for m, x in form.to_dict().items()})
            places |= {place: len(places) + n for n, place in enumerate(rows[-1].keys() - places.keys())}
    matrix = fmpz_mat(len(rows), len(places))
    for i, row in enumerate(rows):
        for place, value in row.items():
            matrix[i, places[place]] = value
    return int(matrix.rank())


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
    parallel = architecture.tokens == 1 and architecture.view != "nothing"
    masked = architecture.mask.hides and architecture.tokens > 1
    can_collapse = not (masked or architecture.residual) and rule.is_polynomial
    is_plain, two_tokens = not architecture.residual, architecture.tokens == 2
    layers: list[EffectiveLayer] = []
    for index, (d_in, d_out) in enumerate(pairwise(widths)):
        given = architecture.layer(index)
        alpha = min(given.attention, d_in)
        value_width = None if given.value_width is None else min(given.value_width, d_in, d_out)
        is_last = index == architecture.num_layers - 1
        unseen = unseen_cubics = 0
        if layers and can_collapse and layers[-1].symmetric == parallel:
            unseen = unseen_matrices(layers[-1])
        elif layers and is_plain and rule.is_normalised and two_tokens:
            first = min(widths[: index + 1])
            unseen = unseen_by_masked_pairs(layers[-1], first) if masked else unseen_by_two_tokens(layers[-1])
        elif layers and is_plain and not rule.is_polynomial and parallel:
            unseen = unseen_by_one_token(layers[-1], False)
        elif layers and is_plain and rule.is_polynomial and two_tokens and masked:
            unseen_cubics = unseen_by_masked_cubics(layers[-1])
        shape = (d_in, d_out, alpha, given.heads, value_width)
        follows_first = index == 1 and architecture.tokens == 1
        layers.append(EffectiveLayer(*shape, parallel, is_last, unseen, unseen_cubics, follows_first))
        # V X Xᵀ k qᵀ X has rank one: from here on all tokens are parallel.
        parallel = parallel or (can_collapse and given.heads == 1 and alpha == 1)
    return tuple(layers)
