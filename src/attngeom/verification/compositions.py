"""Upper bounds for parts of a lightning network as polynomial maps, recomputed from the sizes alone.

Written independently of :mod:`attngeom.dimensions`. Without mask and skip connection a part of depth n is a map Φ(G) X,
G = X Xᵀ, with entries of Φ of degree (3^n − 1)/2 in G; on parallel tokens it is a form of degree 3^n.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from math import comb

from attngeom.exact.domains import GF
from attngeom.exact.modular import rank_mod_p
from attngeom.exact.numbers import WORD_PRIME
from attngeom.limits.recheck import LAYER_CUTS, RECHECKED_PARAMETERS
from attngeom.network.architecture import Architecture, LayerShape
from attngeom.verification.budget import afford
from attngeom.verification.jets import JetPoint, tensors_of
from attngeom.verification.points import NamedPlace


@dataclass(frozen=True)
class Piece:
    """One layer in the smaller network: widths, are its tokens parallel, its dimension, what GL takes after it."""

    d: int
    d_out: int
    parallel: bool
    size: int
    shared: int


def bounded_rank(rows: int, columns: int, rank: int) -> int:
    """The dimension of the matrices of rank at most ``rank``.

    >>> bounded_rank(3, 3, 1)
    5
    """
    rank = min(rank, rows, columns)
    return rank * (rows + columns - rank)


def bound_composition(architecture: Architecture, pieces: Sequence[Piece]) -> int:
    """The least of all bounds by cutting the network in two, of the sum over layers, and of all polynomial maps."""
    count = len(pieces)
    afford(count**3, LAYER_CUTS, "cuts of parts of the network")
    bounds: dict[tuple[int, int], int] = {}

    @cache
    def spans(start: int, stop: int) -> bool:
        part = _part(architecture, pieces[start:stop], start)
        return part.num_parameters <= RECHECKED_PARAMETERS and outputs_span(part)

    for length in range(1, count + 1):
        for start in range(count - length + 1):
            stop = start + length
            part = pieces[start:stop]
            added = sum(piece.size for piece in part) - sum(piece.shared for piece in part[:-1])
            best = min(added, _all_maps(architecture, start, part))
            for cut in range(start + 1, stop):
                right = bounds[cut, stop]
                if pieces[start].parallel and (pieces[start].d, pieces[cut].d) == (2, 3):
                    right = min(right, _on_plane_curve(architecture, cut, pieces[cut:stop], cut - start))
                with_group = bounds[start, cut] + right - pieces[cut].d ** 2
                if with_group < best and spans(start, cut):
                    best = with_group
            bounds[start, stop] = best
    return bounds[0, count]


def _all_maps(architecture: Architecture, start: int, part: Sequence[Piece]) -> int:
    """The dimension of all polynomial maps of this shape, with outputs in as many dimensions as the last heads have."""
    layer, last, d = architecture.layer(start + len(part) - 1), part[-1], part[0].d
    degree = 3 ** len(part)
    if part[0].parallel:
        n, k, factor = degree + d - 1, d - 1, 1
    elif architecture.mask.hides:
        return sum(piece.size for piece in part)
    else:
        forms = d * (d + 1) // 2
        n, k, factor = (degree - 1) // 2 + forms - 1, forms - 1, d
    enough = sum(piece.size for piece in part)
    # C(n, k) ≥ 2^min(k, n − k): beyond the sum over layers the exact number does not matter.
    if min(k, n - k) > enough.bit_length():
        return enough
    rows = factor * comb(n, k)
    return _with_outputs(layer, last, rows)


def _with_outputs(layer: LayerShape, last: Piece, rows: int) -> int:
    """The dimension of the output matrices with rows of this length that the heads of the last layer can have."""
    width = layer.d_out if layer.value_width is None else layer.value_width
    return bounded_rank(last.d_out, rows, layer.heads * min(width, last.d, last.d_out))


def _on_plane_curve(architecture: Architecture, start: int, part: Sequence[Piece], depth: int) -> int:
    """Forms in three variables modulo those that vanish on a rational plane curve of degree at most 3^depth."""
    degree, curve = 3 ** len(part), 3**depth
    forms = comb(degree + 2, 2) - comb(max(degree - curve, -1) + 2, 2)
    return _with_outputs(architecture.layer(start + len(part) - 1), part[-1], forms)


def _part(architecture: Architecture, part: Sequence[Piece], start: int) -> Architecture:
    """The network of some pieces, with at most two tokens: one if they are parallel."""
    return Architecture(
        (part[0].d, *(piece.d_out for piece in part)),
        architecture.attention[start : start + len(part)],
        1 if part[0].parallel else min(architecture.tokens, 2),
        heads=architecture.heads,
        value_width=architecture.layer(start).value_width,
    )


def outputs_span(architecture: Architecture) -> bool:
    """Whether the outputs of a network span, at one point mod p: then they do for generic weights."""
    field, width = GF(WORD_PRIME), architecture.widths[-1]
    place = NamedPlace("attngeom/span")
    samples = place.samples(architecture, None, width, architecture.tokens, field)
    jets = JetPoint(architecture, tensors_of(place.weights(architecture, field)), field.p, samples)
    outputs = jets.field.to_integers(jets.outputs())
    return rank_mod_p(outputs.transpose(1, 0, 2).reshape(width, -1), field.p) == width
