"""Upper bounds for the dimension by counting parameters of an explicit smaller parametrization.

Every number here is proven in docs/theorems/dimension.md, Lemma U; nothing is random except the check of one open
condition (the outputs of a layer span) at one point mod p, which proves it for generic weights.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import comb
from typing import Any

from attngeom.dimensions.compositions import count_composition, outputs_span
from attngeom.dimensions.effective import EffectiveLayer, bounded_rank, cubic_dimension, effective_layers
from attngeom.network import Architecture
from attngeom.results import Result

PARTS = ("query-key", "value-output", "between", "scale", "mixing", "syzygies", "unseen", "antisymmetric", "saturation")
"""Where parameters get lost; see :class:`UpperBound`."""


@dataclass(frozen=True, kw_only=True, eq=False)
class UpperBound(Result):
    """A proven upper bound for the dimension: ``value`` = parameters − the sum of ``parts``.

    Parts: fibers of (Q, K) ↦ A and (V, O) ↦ OV; GL between layers; scales (λA, V/λ) of each head; GL_H mixing of
    heads; Koszul syzygies of heads with one output; weights on hidden directions that are not reached or not read;
    antisymmetric parts of A that parallel tokens cannot see; what exceeds the space of all cubics.
    """

    value: int
    parts: dict[str, int]

    def to_json(self) -> dict[str, Any]:
        return {**self.select("value", "standing", "reason"), "parts": dict(self.parts)}

    def rows(self) -> Mapping[str, Any]:
        return {"upper bound": self.value, **{name: loss for name, loss in self.parts.items() if loss}}


def attention_count(layer: EffectiveLayer) -> int:
    """The dimension of the matrices A of rank α, or of their symmetric parts, or of their visible parts (at most).

    >>> attention_count(EffectiveLayer(3, 3, 1, 1, None, False, True))
    5
    """
    d, rho = layer.d_in, layer.attention_rank
    if layer.symmetric:
        return min(rho * d - comb(rho, 2), _all_attention(layer))
    return min(bounded_rank(d, d, rho), _all_attention(layer))


def attention_codimension(layer: EffectiveLayer) -> int:
    """The codimension of the possible A (or symmetric or visible parts) among all of them."""
    return _all_attention(layer) - attention_count(layer)


def _all_attention(layer: EffectiveLayer) -> int:
    """The dimension of all d×d matrices, or of all symmetric or visible parts."""
    return (comb(layer.d_in + 1, 2) if layer.symmetric else layer.d_in**2) - layer.unseen


def value_codimension(layer: EffectiveLayer) -> int:
    """The codimension of the possible value maps among all matrices."""
    return (layer.d_in - layer.value_rank) * (layer.d_out - layer.value_rank)


def head_mixing(layer: EffectiveLayer) -> int:
    """A lower bound for the fiber of Σ_h V_h ⊗ A_h beyond scales: H (H − 1 − c_A − c_V), if positive.

    It needs value maps, or attention matrices, that are linearly independent.

    >>> head_mixing(EffectiveLayer(2, 2, 2, 2, 2, False, True))
    2
    """
    H = layer.heads
    return max(0, H * (H - 1 - attention_codimension(layer) - value_codimension(layer)))


def koszul_syzygies(layer: EffectiveLayer) -> int:
    """A lower bound for the fiber beyond :func:`head_mixing` when d_out = 1, or d_out = 2 for one token, and H ≤ d_in.

    Skew syzygies of the value forms, or 2-minors of pairs of quadrics, less the conditions that keep the rank of A.

    >>> koszul_syzygies(EffectiveLayer(5, 1, 3, 2, 1, False, True))
    1
    >>> koszul_syzygies(EffectiveLayer(5, 2, 3, 3, 1, True, True))
    1
    """
    H, d = layer.heads, layer.d_in
    # Two heads after the first layer: a product of two linear forms does not vanish on its outputs, which span.
    if layer.symmetric and layer.unseen and not (layer.follows_first and H == 2 and layer.d_out == 1):
        return 0
    if layer.symmetric and layer.d_out == 2 and d >= H:
        lost = H * attention_codimension(layer)
        counts = [H * (H - 1 - value_codimension(layer)) + comb(H, 3) - lost, comb(H, 3) - lost]
        return max(0, max(counts) - head_mixing(layer))
    if layer.d_out != 1 or d < H or (layer.unseen and H > 3):
        return 0
    moves = d * comb(H, 2) - (comb(H, 3) if layer.symmetric else 0)
    counts = [H * (H - 1) + moves - H * attention_codimension(layer)]
    if not layer.symmetric:
        gap = d - layer.attention
        counts.append(moves - H * min(H - 1, gap) * gap)
    return max(0, max(counts) - head_mixing(layer))


def cubic_count(layer: EffectiveLayer) -> int:
    """The dimension of all cubics of a layer whose outputs span at most H ν and whose inputs enter by H(2α + ν) forms.

    >>> cubic_count(EffectiveLayer(2, 4, 2, 3, 1, False, True))
    21
    """
    q = min(layer.d_in, layer.heads * (2 * layer.attention + layer.value_rank))
    cubics = cubic_dimension(q, 1 if layer.symmetric else 2) - (layer.unseen_cubics if q == layer.d_in else 0)
    maps = bounded_rank(layer.d_out, cubics, layer.heads * layer.value_rank)
    return min(q * (layer.d_in - q) + maps, *_flattenings(layer))


def _flattenings(layer: EffectiveLayer) -> tuple[int, int]:
    """Matrices of rank ≤ H ν α and ≤ H α that contain Σ_h V_h ⊗ A_h ∈ R^d_out ⊗ S²R^d ⊗ R^d (quadratic in one token).

    >>> _flattenings(EffectiveLayer(3, 2, 1, 5, 1, False, True))
    (35, 36)
    """
    d, d_out, H = layer.d_in, layer.d_out, layer.heads
    squares = comb(d + 1, 2)
    forms = bounded_rank(squares, d * d_out, H * layer.value_rank * layer.attention)
    return forms, bounded_rank(d, d_out * squares, H * layer.attention)


def count_layer(layer: EffectiveLayer, architecture: Architecture) -> dict[str, int]:
    """The losses of one layer, from its parameters to the dimension of its set of functions."""
    H, d, a, v = layer.heads, layer.d_in, layer.attention, layer.value_width
    losses = {"query-key": H * a * a, "value-output": 0 if v is None else H * v * v}
    losses["antisymmetric"] = H * (2 * a * d - a * a - attention_count(layer))
    if not architecture.rule.has_scale:
        return losses
    losses |= {"scale": H, "mixing": 0, "syzygies": 0}
    if _heads_are_independent(layer):
        losses |= {"mixing": head_mixing(layer), "syzygies": koszul_syzygies(layer)}
    remaining = H * (attention_count(layer) + bounded_rank(layer.d_out, d, layer.value_rank))
    remaining -= losses["scale"] + losses["mixing"] + losses["syzygies"]
    losses["saturation"] = max(0, remaining - cubic_count(layer))
    return losses


def _heads_are_independent(layer: EffectiveLayer) -> bool:
    """Whether the value maps or the attention matrices of generic heads are linearly independent.

    They are if one can choose so many linearly independent matrices of the given rank: matrices of any rank ≥ 1 span.
    """
    return layer.heads <= max(layer.d_in * layer.d_out, _all_attention(layer))


def layer_spans(layer: EffectiveLayer, is_homogeneous: bool, tokens: int) -> bool:
    """Whether the outputs of a generic layer span R^d_out: True is a proof (at one point mod p), False is not."""
    if layer.value_width is None:
        return layer.d_out <= layer.d_in
    H, d, v = layer.heads, layer.d_in, layer.value_width
    # H ≤ d: at A_h = e_h q_hᵀ a relation Σ w_h(z) z_h q_h = 0 forces w_h = 0 if the q_h are independent, and for one
    # token Σ w_h(z) z_h² = 0 does, because squares of variables have no linear syzygies. So all O_h V_h are reached.
    if not is_homogeneous or d >= H:
        return layer.d_out <= H * v
    return outputs_span(Architecture((d, layer.d_out), layer.attention, min(tokens, 2), heads=H, value_width=v))


def upper_bound(architecture: Architecture) -> UpperBound:
    """A proven upper bound for the dimension of the set of functions, with its split.

    The function depends on the layer maps T_i (cubics Σ_h V_h ⊗ A_h; for softmax the pairs (A_h, V_h)), which form
    sets of the dimensions counted in :func:`count_layer`; without skip connection GL(s_i) acts on T_i and T_{i+1} with
    orbits of dimension s_i², because the outputs of T_i span. Softmax on one token is linear.

    >>> upper_bound(Architecture((4, 3, 5), 2)).value, upper_bound(Architecture((3, 5, 3), 2)).value
    (36, 23)
    """
    total = architecture.num_parameters
    layers = effective_layers(architecture)
    parts = dict.fromkeys(PARTS, 0)
    if architecture.view == "nothing":
        value = _count_linear(architecture, layers)
        parts["unseen"] = total - value
        reason = f"{architecture.kind} over one token is 1, so the network is a linear map"
        return UpperBound(standing="proven", reason=reason, value=value, parts=parts)
    parts["unseen"] = total - sum(layer.num_parameters for layer in layers)
    spanning = True
    sizes, shared = [], []
    for layer in layers:
        losses = count_layer(layer, architecture)
        for name, loss in losses.items():
            parts[name] += loss
        sizes.append(layer.num_parameters - sum(losses.values()))
        shared.append(0)
        if not layer.is_last and not architecture.residual:
            if layer_spans(layer, architecture.is_homogeneous, architecture.tokens):
                parts["between"] += layer.d_out**2
                shared[-1] = layer.d_out**2
            else:
                spanning = False
    if architecture.is_homogeneous:
        whole = count_composition(architecture, layers, sizes, shared)
        parts["saturation"] += total - sum(parts.values()) - whole
    reason = "parameter count of the layer maps modulo the linear groups between layers"
    if not spanning:
        reason += " (some layer's outputs could not be shown to span; its group is not subtracted)"
    return UpperBound(standing="proven", reason=reason, value=total - sum(parts.values()), parts=parts)


def _count_linear(architecture: Architecture, layers: tuple[EffectiveLayer, ...]) -> int:
    """Matrices of the rank that the value maps allow; with skip connections the identity plus such a matrix."""
    d_0, d_l = architecture.widths[0], architecture.widths[-1]
    if architecture.residual:
        rank = sum(layer.heads * layer.value_rank for layer in layers)
    else:
        rank = min(min(layer.d_in, layer.d_out, layer.heads * layer.value_rank) for layer in layers)
    return bounded_rank(d_l, d_0, rank)
