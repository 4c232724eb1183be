"""Weights from a canonical form, in the echelon gauge or balanced."""

from __future__ import annotations

from typing import Literal

import numpy as np

from attngeom.canonical.form import CanonicalForm, CanonicalTerm
from attngeom.errors import InputError
from attngeom.exact.domains import RR, Array, Domain
from attngeom.exact.numbers import join_scale, split_scale
from attngeom.groups.balance import balanced_factors
from attngeom.network import Head, LayerShape, Weights

Gauge = Literal["echelon", "balanced"]
GAUGES: tuple[Gauge, ...] = ("echelon", "balanced")
SMALLEST = float(np.finfo(np.float64).tiny)


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
                balanced, clear = _balanced_heads(term, shape, log_factor, architecture.rule.has_scale)
                heads += balanced
                is_clear = is_clear and clear
        heads += [pad_head(shape, domain)] * (shape.heads - len(heads))
        layers.append(tuple(heads))
    return Weights(architecture, domain, tuple(layers)), is_clear


def _echelon_heads(term: CanonicalTerm, shape: LayerShape, log_factor: float, domain: Domain) -> list[Head]:
    """The heads of one term, as they are."""
    K, O = _times_power(term.K, term.key_exponent), _times_power(term.O, term.output_exponent + log_factor)
    return [pad_head(shape, domain, Q=term.Q, K=K, **values) for values in _deal(term.V, O, shape, domain)]


def _balanced_heads(
    term: CanonicalTerm, shape: LayerShape, log_factor: float, has_scale: bool
) -> tuple[list[Head], bool]:
    """The heads of one term with vanishing moments."""
    attention = balanced_factors(term.K.T @ term.Q, len(term.K))
    V, O, is_clear = term.V, term.O, attention.is_clear
    if shape.value_width is not None:
        factors = balanced_factors(O @ V, len(V))
        V, O, is_clear = factors.T, factors.S.T, is_clear and factors.is_clear
    heads = []
    for values in _deal(V, O, shape, RR):
        count = len(values)
        q, v = term.key_exponent / 2, (term.output_exponent + log_factor) / count
        if has_scale:
            # ‖K‖ ‖Q‖ ‖V‖ (‖O‖) stays, each factor gets the same share.
            sizes = _log_norm(attention.T) + q, _log_norm(values["V"]) + v
            mean = (2 * sizes[0] + count * sizes[1]) / (2 + count)
            q, v = q + mean - sizes[0], v + mean - sizes[1]
        tensors = {name: _times_power(matrix, v) for name, matrix in values.items()}
        Q, K = _times_power(attention.T, q), _times_power(attention.S, q)
        heads.append(pad_head(shape, RR, Q=Q, K=K, **tensors))
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


def _deal(V: Array, O: Array, shape: LayerShape, domain: Domain) -> list[dict[str, Array]]:
    """Rows of V and columns of O for as many heads of the value width as they need, or their product for one matrix."""
    width = shape.value_width
    if width is None:
        return [{"V": domain.matmul(O, V)}]
    return [{"V": V[start : start + width], "O": O[:, start : start + width]} for start in range(0, len(V), width)]


def pad_head(shape: LayerShape, domain: Domain, **tensors: Array) -> Head:
    """A head with these tensors in the corners of its own, and zeros elsewhere."""
    padded = {name: domain.zeros(sizes) for name, sizes in shape.tensor_shapes.items()}
    for name, matrix in tensors.items():
        padded[name][: matrix.shape[0], : matrix.shape[1]] = matrix
    return Head.of(padded)
