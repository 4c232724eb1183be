"""Upper bounds for a dimension by a count of parameters, recomputed.

Written independently of :mod:`attngeom.dimensions`. The set of functions of a layer is parametrized by its heads' pairs
(A_h, V_h) of matrices of bounded rank, so its dimension is at most Σ_h (dim A + dim V), minus the directions along
which the map stays the same; the network is parametrized by its layers modulo linear changes of the hidden spaces.
"""

from __future__ import annotations

from functools import cache
from math import comb

from flint import fmpz_mat

from attngeom.network.architecture import Architecture
from attngeom.verification.compositions import Piece, bound_composition, bounded_rank, outputs_span
from attngeom.verification.spans import count_cubics, reached_widths


def _symmetric_rank(d: int, rank: int) -> int:
    """The dimension of the symmetric d×d matrices of rank at most ``rank``."""
    rank = min(rank, d)
    return rank * d - comb(rank, 2)


def _read_widths(architecture: Architecture, spans: list[int]) -> list[int]:
    """The spans, cut to what the next layer can read of them; the output width stays."""
    widths = list(spans)
    for i in reversed(range(1, architecture.num_layers)):
        layer = architecture.layer(i)
        values = min(layer.d_out if layer.value_width is None else layer.value_width, widths[i], widths[i + 1])
        widths[i] = min(widths[i], layer.heads * (2 * min(layer.attention, widths[i]) + values))
    return [*widths[:-1], architecture.widths[-1]]


def count_upper_bound(architecture: Architecture) -> int:
    """An upper bound for the dimension of the set of functions.

    >>> count_upper_bound(Architecture((6, 5, 4, 3, 6), 2))
    82
    """
    spans = reached_widths(architecture)
    ends = architecture.widths[0], architecture.widths[-1]
    if architecture.rule.is_normalised and architecture.tokens == 1:
        # Attention over one token is 1: the network is linear, or the identity plus a matrix of bounded rank.
        if architecture.residual:
            ranks = [layer.heads * min(layer.value_width or layer.d_out, layer.d_in) for layer in architecture.layers]
            return bounded_rank(*ends, sum(ranks))
        return bounded_rank(*ends, min(spans))
    widths = spans if architecture.residual else _read_widths(architecture, spans)
    parallel = architecture.tokens == 1
    masked = architecture.mask.hides and architecture.tokens > 1
    blind = not masked and not architecture.residual and architecture.rule.is_polynomial
    pairs = architecture.tokens == 2 and not architecture.residual
    soft = architecture.rule.is_normalised
    hidden, lost, was_parallel, pieces = 0, 0, parallel, []
    for i in range(architecture.num_layers):
        d, d_out = widths[i], widths[i + 1]
        attention = min(architecture.attention[i], d)
        if parallel and not was_parallel:
            hidden = 0
        size, shared = _count_layer(architecture, i, d, d_out, parallel, hidden, lost), 0
        hidden = _hidden_forms(architecture, i, d, d_out) if blind and attention == 1 else 0
        if blind:
            hidden = max(hidden, _hidden_on_planes(architecture, i, d, d_out))
        if parallel:
            # Quadrics of cubic forms are forms of degree 6 in the inputs.
            hidden = max(0, comb(d_out + 1, 2) - comb(d + 5, 6)) if blind else 0
            if not architecture.residual:
                hidden = max(hidden, _hidden_from_one(architecture, i, d, d_out))
        if pairs and soft:
            hidden = _hidden_from_pairs(architecture, i, d, d_out)
            if masked:
                hidden = _hidden_from_masked_pairs(architecture, i, d, d_out, min(widths[: i + 2]))
        # Two masked tokens of lightning: the first one is a point of a curve, on which 7 quadrics and 10 cubics live.
        lost = 0
        if pairs and masked and architecture.rule.is_polynomial and d == 2 and d_out >= 4:
            lost = (comb(d_out + 1, 2) - 7) * d_out - comb(d_out + 2, 3) + 10
            lost = comb(7, 2) * 6 - _all_pairs_on_a_plane() if d_out == 6 else lost
        if i < architecture.num_layers - 1 and not architecture.residual and _spans(architecture, i, d, d_out):
            shared = d_out**2
        pieces.append(Piece(d, d_out, parallel, size, shared))
        was_parallel = parallel
        parallel = parallel or (blind and architecture.heads == 1 and attention == 1)
    if architecture.is_homogeneous:
        return bound_composition(architecture, pieces)
    return sum(piece.size - piece.shared for piece in pieces)


def _hidden_on_planes(architecture: Architecture, i: int, d: int, d_out: int) -> int:
    """Forms (c_gh J)_gh that vanish on all outputs (G A_h x)_h of heads on a plane, one block of size 2 for each head.

    G J G = det(G) J leaves det(G) Σ c_gh A_gᵀ J A_h: one condition for J, and one for the symmetric part of each pair
    of different heads, of which at most three are independent.
    """
    layer = architecture.layer(i)
    H = layer.heads
    if H == 1 or layer.value_width is None or d != 2 or min(layer.value_width, d_out) < 2 or d_out != 2 * H:
        return 0
    return H**2 - (1 + min(H * (H - 1) // 2, 3))


def _hidden_from_one(architecture: Architecture, i: int, d: int, d_out: int) -> int:
    """Quadratic forms that vanish on all tokens (c_h W_h x)_h, one block for each head, c_h a number that depends on x.

    Blocks of different heads that are alternating on the common input directions; and if each block is all of R^d and
    the c_h are quadratic forms, combinations Σ λ_ghk c_k of these in block (g, h), λ without symmetric part.
    """
    layer = architecture.layer(i)
    H = layer.heads
    v = min(layer.value_width or 0, d, d_out)
    if H * v != d_out:
        return 0
    common = max(0, v - (d - v))
    hidden = H * (H - 1) // 2 * (common * (common - 1) // 2)
    if architecture.rule.is_polynomial and v == d and d * (d + 1) >= 2 * H:
        hidden += H * (H * (H + 1) // 2) - H * (H + 1) * (H + 2) // 6
    return hidden


def _hidden_from_masked_pairs(architecture: Architecture, i: int, d: int, d_out: int, least: int) -> int:
    """Bilinear forms with (z_2 − z_1)ᵀ N z_2 = 0, z_1 = Σ V_h x and z_2 − z_1 = Σ c_h V_h δ, for all x ∈ U, δ and c_h.

    U has the ``least`` width as its dimension. By blocks B_gh = W_gᵀ N_gh W_h: the rows Σ_h B_gh vanish on U, and so do
    the symmetric parts of B_gh + B_hg. Both kinds of conditions contain the symmetric part of Σ B_gh on U. In any case:
    skew forms whose kernel contains all z_1.
    """
    layer = architecture.layer(i)
    H, v = layer.heads, min(layer.value_width or 0, d, d_out)
    rest = d_out - least
    hidden = rest * (rest - 1) // 2
    if H * v == d_out:
        rows = H * (v * least)
        common = max(0, 2 * v - d)
        between = H * (H - 1) // 2 * (v**2 - common * (common - 1) // 2)
        within = H * (v * (v + 1) // 2)
        hidden = max(hidden, d_out**2 - (rows + between + within - least * (least + 1) // 2))
    return hidden


@cache
def _all_pairs_on_a_plane() -> int:
    """The dimension of the functions T(z, z, z), T(z, z, w) + T(w, w, w), T ∈ S²R⁶ ⊗ R⁶, z = x²x and w = x²y + y²y.

    By values, exactly: forms in x of degree at most 9 are known from x = (1, n), n ≤ 9, those in y of degrees 1 to 9
    from m · (1, n), 1 ≤ m ≤ 9.
    """
    columns = []
    pairs = [(i, j) for i in range(6) for j in range(i, 6)]
    for x in range(10):
        for y in range(10):
            for size in range(1, 10):
                u, v = (1, x), (size, size * y)
                squares = (u[0] ** 2, u[0] * u[1], u[1] ** 2), (v[0] ** 2, v[0] * v[1], v[1] ** 2)
                z = [s * t for s in squares[0] for t in u]
                w = [s * t + r * t for s, r in zip(*squares) for t in v]
                columns.append([z[i] * z[j] * w[k] + w[i] * w[j] * w[k] for i, j in pairs for k in range(6)])
                if y == 0 and size == 1:
                    columns.append([z[i] * z[j] * z[k] for i, j in pairs for k in range(6)])
    return int(fmpz_mat(columns).rank())


def _hidden_from_pairs(architecture: Architecture, i: int, d: int, d_out: int) -> int:
    """Bilinear forms that softmax over two tokens does not see after heads whose images form a direct sum.

    Between the images of two heads: forms that are alternating on the common input directions of both, 2v − d of them.
    """
    layer = architecture.layer(i)
    if layer.value_width is None:
        return 0
    v = min(layer.value_width, d, d_out)
    common = max(0, 2 * v - d)
    ordered_pairs = layer.heads * (layer.heads - 1)
    return ordered_pairs * (common * (common - 1) // 2) if layer.heads * v == d_out else 0


def _hidden_forms(architecture: Architecture, i: int, d: int, d_out: int) -> int:
    """Bilinear forms that vanish on all pairs of tokens Σ_h u_h s_hᵀ, u_h in the image W_h of head h, of rank one.

    These are the forms that alternate on each W_h and vanish between them: counted if the W_h form a direct sum, and
    for two heads modulo their intersection.
    """
    layer = architecture.layer(i)
    if layer.heads == 1 or layer.value_width is None:
        return 0
    v = min(layer.value_width, d, d_out)
    shared = layer.heads * v - d_out
    if shared == 0:
        return layer.heads * comb(v, 2)
    return 2 * comb(v - shared, 2) if layer.heads == 2 and shared < v else 0


def _count_layer(architecture: Architecture, i: int, d: int, d_out: int, parallel: bool, hidden: int, lost: int) -> int:
    """The dimension of the set of maps of one layer, at most; ``hidden`` forms of A, ``lost`` cubics have no effect."""
    layer = architecture.layer(i)
    H, alpha = layer.heads, min(layer.attention, d)
    nu = min(layer.d_out if layer.value_width is None else layer.value_width, d, d_out)
    values = bounded_rank(d_out, d, nu)
    if not architecture.rule.is_polynomial:
        scores = _symmetric_rank(d, 2 * alpha) if parallel else bounded_rank(d, d, alpha)
        return H * (min(scores, (comb(d + 1, 2) if parallel else d * d) - hidden) + values)
    all_scores = (comb(d + 1, 2) if parallel else d * d) - hidden
    scores = min(_symmetric_rank(d, 2 * alpha) if parallel else bounded_rank(d, d, alpha), all_scores)
    free = H * (scores + values)
    stays = H
    if max(d * d_out, all_scores) >= H:
        lost_A, lost_V = all_scores - scores, d * d_out - values
        stays = max(stays, H * H - H * (lost_A + lost_V))
        # Two generic vectors v_k span no form that alternates on blocks, and a product of two linear forms is not zero
        # on the outputs of a first layer at one token, so nothing is lost modulo hidden forms.
        is_product = H == 2 and d_out == i == architecture.tokens == 1
        if not hidden or is_product or (H <= 3 and not parallel):
            stays = max(stays, _syzygies(H, d, d_out, alpha, lost_A, lost_V, parallel))
    read = min(d, H * (2 * alpha + nu))
    cubics = count_cubics(read, parallel) - (lost if read == d else 0)
    reach = min(d_out, H * nu, cubics)
    squares = d * (d + 1) // 2
    flattened = bounded_rank(squares, d * d_out, H * nu * alpha), bounded_rank(d, d_out * squares, H * alpha)
    return min(free - stays, bounded_rank(d_out, cubics, reach) + read * (d - read), *flattened)


def _syzygies(H: int, d: int, d_out: int, alpha: int, lost_A: int, lost_V: int, parallel: bool) -> int:
    """Tangent directions of (A_h, V_h) that keep Σ V_h ⊗ A_h, d_out = 1: mixing by gl_H and Koszul syzygies.

    A skew H×H matrix of vectors in R^d besides the H² of mixing, with lost_A conditions for each head; or, without
    mixing beyond scales, min(H−1, d−α) (d−α) conditions for each head.
    """
    if d_out == 2 and parallel and d >= H:
        # Pairs of cubics Σ q_h L_h, q_h → q_h + det(L_a, L_b) and cyclically for every three heads.
        triples = H * (H - 1) * (H - 2) // 6
        return max(H * H + triples - H * (lost_A + lost_V), H + triples - H * lost_A)
    if d_out != 1 or d < H:
        return 0
    skew = d * comb(H, 2)
    if parallel:
        return H * H + skew - comb(H, 3) - H * lost_A
    return max(H * H + skew - H * lost_A, H + skew - H * min(H - 1, d - alpha) * (d - alpha))


def _spans(architecture: Architecture, i: int, d: int, d_out: int) -> bool:
    """Whether outputs of a generic layer of these sizes span R^d_out; shown at one point mod p by the forward pass."""
    layer = architecture.layer(i)
    if layer.value_width is None:
        return d_out <= d
    # For H ≤ d rank-one heads A_h = e_h q_hᵀ already reach everything that the O_h V_h allow.
    if not architecture.rule.is_polynomial or layer.heads <= d:
        return d_out <= layer.heads * min(layer.value_width, d)
    tokens = min(architecture.tokens, 2)
    small = Architecture((d, d_out), min(layer.attention, d), tokens, heads=layer.heads, value_width=layer.value_width)
    return outputs_span(small)
