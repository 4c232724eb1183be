"""Weights from a canonical form, in the echelon gauge or balanced."""

from __future__ import annotations

from typing import Literal

import numpy as np

from attngeom.canonical.form import CanonicalForm, CanonicalTerm
from attngeom.errors import InputError
from attngeom.exact.domains import RR, Array, Domain
from attngeom.exact.scaling import join_scale, split_scale
from attngeom.network import Head, LayerShape, Weights
from attngeom.network.balance import balanced_factors

Gauge = Literal["echelon", "balanced"]
GAUGES: tuple[Gauge, ...] = ("echelon", "balanced")
SMALLEST = float(np.finfo(np.float64).tiny)


def default_gauge(domain: Domain) -> Gauge:
    """Balanced over floats, echelon over exact domains."""
    return "balanced" if domain.rounds else "echelon"


def restore(form: CanonicalForm, gauge: Gauge = "echelon") -> tuple[Weights, bool]:
    """The weights of a canonical form, with zeros in the coordinates that the network cannot see.

    ``balanced`` (floats only): K Kᵀ = Q Qᵀ and V Vᵀ = Oᵀ O are diagonal and decreasing, and ‖Q‖ = ‖V‖ where the scale
    of A is free: the moments of each head vanish. The second answer is False if equal singular values could not be
    told from different ones, so that the basis of a head hangs on rounding.
    """
    architecture, domain = form.architecture, form.domain
    if gauge == "balanced" and not domain.rounds:
        raise InputError("balanced factors of exact weights were asked for; they need square roots, use echelon")
    log_factor = 0.0
    if form.log_scale is not None:
        log_factor = form.log_scale / np.log(2) * 2 / (3.0**architecture.num_layers - 1)
    is_clear = True
    layers = []
    for layer, shape in zip(form.layers, architecture.layers):
        heads: list[Head] = []
        for term in layer.terms:
            if gauge == "echelon":
                heads += _echelon_heads(term, shape, log_factor, domain)
            else:
                found, clear = _balanced_heads(term, shape, log_factor, architecture.rule.has_scale)
                heads += found
                is_clear = is_clear and clear
        heads += [_zero_head(shape, domain)] * (shape.heads - len(heads))
        layers.append(tuple(heads))
    return Weights(architecture, domain, tuple(layers)), is_clear


def _echelon_heads(term: CanonicalTerm, shape: LayerShape, log_factor: float, domain: Domain) -> list[Head]:
    """The heads of one term: its rows of V and columns of O are dealt out in order."""
    K, O = _times_power(term.K, term.key_exponent), term.O
    if log_factor or term.output_exponent:
        O = _times_power(O, term.output_exponent + log_factor)
    K, Q = (fill_corner(matrix, (shape.attention, shape.d_in), domain) for matrix in (K, term.Q))
    if shape.value_width is None:
        return [Head(Q, K, fill_corner(domain.matmul(O, term.V), (shape.d_out, shape.d_in), domain))]
    return [Head(Q, K, V, O) for V, O in _deal(term.V, O, shape, domain)]


def _balanced_heads(
    term: CanonicalTerm, shape: LayerShape, log_factor: float, has_scale: bool
) -> tuple[list[Head], bool]:
    """The heads of one term with vanishing moments."""
    attention = balanced_factors(term.K.T @ term.Q, len(term.K))
    W = term.O @ term.V
    value_log = term.output_exponent + log_factor
    is_clear = attention.is_clear
    if shape.value_width is None:
        pairs: list[tuple[Array, Array | None]] = [(fill_corner(W, (shape.d_out, shape.d_in), RR), None)]
    else:
        values = balanced_factors(W, len(term.V))
        is_clear = is_clear and values.is_clear
        pairs = list(_deal(values.T, values.S.T, shape, RR))
    K, Q = (fill_corner(matrix, (shape.attention, shape.d_in), RR) for matrix in (attention.S, attention.T))
    heads = []
    for V, O in pairs:
        q, v = term.key_exponent / 2, value_log if O is None else value_log / 2
        if has_scale:
            # ‖K‖ ‖Q‖ ‖V‖ (‖O‖) stays, each factor gets the same share.
            sizes = [_log_norm(Q) + q, _log_norm(V) + v]
            mean = (2 * sizes[0] + sizes[1]) / 3 if O is None else sum(sizes) / 2
            q, v = q + mean - sizes[0], v + mean - sizes[1]
        O = None if O is None else _times_power(O, v)
        heads.append(Head(_times_power(Q, q), _times_power(K, q), _times_power(V, v), O))
    return heads, is_clear


def _log_norm(matrix: Array) -> float:
    unit, exponent = split_scale(matrix)
    return float(np.log2(np.linalg.norm(unit))) + exponent


def _times_power(matrix: Array, power: float) -> Array:
    """matrix · 2^power for a real power."""
    if not power:
        return matrix
    whole = int(np.floor(power))
    moved = join_scale(matrix * 2.0 ** (power - whole), whole)
    if not np.all(np.isfinite(moved)) or (np.any(matrix) and np.max(np.abs(moved)) < SMALLEST):
        raise InputError("weights with entries beyond the range of floats in this gauge; use balanced, or rescale them")
    return moved


def _deal(V: Array, O: Array, shape: LayerShape, domain: Domain) -> list[tuple[Array, Array]]:
    """Rows of V and columns of O for as many heads of the value width as they need."""
    width = int(shape.value_width or 0)
    return [
        (
            fill_corner(V[start : start + width], (width, shape.d_in), domain),
            fill_corner(O[:, start : start + width], (shape.d_out, width), domain),
        )
        for start in range(0, len(V), width)
    ]


def _zero_head(shape: LayerShape, domain: Domain) -> Head:
    return Head(*(domain.zeros(sizes) for sizes in shape.tensor_shapes.values()))


def fill_corner(matrix: Array, shape: tuple[int, int], domain: Domain) -> Array:
    """The matrix in the corner of a larger one that is zero elsewhere."""
    out = domain.zeros(shape)
    out[: matrix.shape[0], : matrix.shape[1]] = matrix
    return out
