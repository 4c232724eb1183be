"""Canonical form: one representative for each generic fiber.

Layer by layer, in coordinates of the input that are already canonical. The layer is a sum of terms with different
attention matrices A (see :mod:`attngeom.canonical.terms`): A is scaled so that one entry of its key factor is 1, where
its scale is free; Q, V and, before another layer and without skip connection, the stacked outputs are in echelon gauge;
the terms are ordered by A. What the network cannot see (coordinates outside the span of the outputs, factors beyond a
rank) is zero. Over exact domains the scales end up in the last layer. Over floats the scale is the same in every
layer, so that degrees 3^l do not overflow.

Back to weights: in the echelon gauge, or with balanced factors.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from attngeom.canonical.terms import (
    AttentionTerm,
    Maps,
    RowGauge,
    Scaled,
    layer_terms,
    multiply,
    row_gauge,
    visible_rows,
)
from attngeom.errors import DomainError, InputError, SizeError
from attngeom.exact.domains import RR, Array, Domain
from attngeom.exact.numbers import join_scale, split_scale
from attngeom.groups.balance import balanced_factors
from attngeom.limits.memory import CANONICAL_BITS
from attngeom.limits.rounding import FACTOR_KEPT
from attngeom.network import Architecture, Head, LayerShape, Weights


@dataclass(frozen=True, eq=False)
class CanonicalTerm:
    """K (α×r), Q (α×r, identity at ``query_pivots``), V (ν×r, identity at ``value_pivots``), O (ρ×ν).

    ``scale_pivot`` is the place of the entry 1 in K, or None where the scale of A is not free; ``heads`` is the number
    of heads that the term is dealt out to. Over floats the keys are K · 2^key_exponent and the outputs are
    O · 2^output_exponent.
    """

    K: Array
    Q: Array
    V: Array
    O: Array
    query_pivots: tuple[int, ...]
    value_pivots: tuple[int, ...]
    scale_pivot: tuple[int, int] | None
    heads: int
    key_exponent: int = 0
    output_exponent: int = 0

    @property
    def keys(self) -> Scaled:
        return Scaled(self.K, self.key_exponent)

    @property
    def outputs(self) -> Scaled:
        return Scaled(self.O, self.output_exponent)


@dataclass(frozen=True, eq=False)
class CanonicalLayer:
    """Terms in canonical order; ``stack_pivots`` are the identity columns of [O_1 … O_n], None where O is free.

    ``size_in`` and ``size_out`` are the numbers of coordinates that are in use before and after the layer.
    """

    terms: tuple[CanonicalTerm, ...]
    stack_pivots: tuple[int, ...] | None
    size_in: int
    size_out: int


@dataclass(frozen=True, eq=False)
class CanonicalForm:
    """All canonical layers; over floats the last outputs have largest entry ±1 and ``log_scale`` is log of the rest.

    ``log_scale`` is None where the scale is part of the last layer: over exact domains, where A has no free scale, and
    with skip connections. ``is_canonical``: the form is the same on the whole orbit; False if floats are too close to
    a choice (of ranks, pivots or the order of heads) to tell.
    """

    architecture: Architecture
    domain: Domain
    layers: tuple[CanonicalLayer, ...]
    log_scale: float | None
    is_canonical: bool = True


def canonical_form(weights: Weights) -> CanonicalForm:
    """The canonical form of exact or float weights.

    Equal for all weights of one group orbit, in degenerate cases too, and one for each generic fiber: coordinates
    between layers that no input reaches, or that no later layer reads, are left out.

    >>> from attngeom.exact import QQ
    >>> from attngeom.network import random_weights
    >>> canonical_form(random_weights(Architecture((3, 2, 3), 2), QQ, seed=0)).layers[0].stack_pivots
    (0, 1)
    """
    domain, architecture = weights.domain, weights.architecture
    if domain.encloses:
        raise DomainError(f"weights over {domain.name} given; exact or float weights are required")
    _check_size(weights)
    layers = [[Maps.of(head, domain) for head in heads] for heads in weights.layers]
    sizes = [size for shape in architecture.layers for size in (shape.heads, shape.d_in, shape.d_out)]
    form = _reduce(layers, architecture.widths, architecture, domain)
    while _sizes(form) != sizes:
        # Something was left out. Heads may agree or cancel on what remains, and then more can be left out.
        sizes = _sizes(form)
        widths = (architecture.widths[0], *(layer.size_out for layer in form.layers))
        again = _reduce([_maps(layer, domain) for layer in form.layers], widths, architecture, domain)
        log_scale = None if again.log_scale is None else again.log_scale + (form.log_scale or 0.0)
        form = replace(again, log_scale=log_scale, is_canonical=form.is_canonical and again.is_canonical)
    return form


def _sizes(form: CanonicalForm) -> list[int]:
    """Numbers that decrease when something is left out."""
    return [size for layer in form.layers for size in (len(layer.terms), layer.size_in, layer.size_out)]


def _maps(layer: CanonicalLayer, domain: Domain) -> list[Maps]:
    """The terms of a canonical layer as maps between the coordinates in use."""
    return [
        Maps(
            term.keys,
            Scaled(term.Q),
            Scaled(domain.matmul(term.O, term.V), term.output_exponent).split(domain),
            term.heads,
        )
        for term in layer.terms
    ]


def _reduce(
    layers: list[list[Maps]], widths: tuple[int, ...], architecture: Architecture, domain: Domain
) -> CanonicalForm:
    """One pass from the last layer to the first, for what is read, and one back, for what is reached."""
    has_scale = architecture.rule.has_scale
    follows_scale = has_scale and not domain.is_exact and not architecture.residual
    readers, is_clear = _readers(layers, widths, architecture, domain)
    log_scale = 0.0
    embedding = Scaled(domain.eye(widths[0]))
    reduced = []
    for index, maps in enumerate(layers):
        shape = architecture.layer(index)
        size_in = embedding.array.shape[1]
        terms, clear = layer_terms(maps, embedding, has_scale, domain)
        values = [_value_gauge(term, shape.value_width, domain) for term in terms]
        is_clear = is_clear and clear and all(clear for _, clear in values)
        parts = [term for term, _ in values]
        if index == architecture.num_layers - 1 or architecture.residual:
            if follows_scale:
                parts, top = _without_scale(parts)
                log_scale = 3 * log_scale + top
            reduced.append(CanonicalLayer(tuple(parts), None, size_in, shape.d_out))
            embedding = Scaled(domain.eye(shape.d_out))
            continue
        layer, embedding, clear = _hidden_layer(parts, size_in, widths[index + 1], readers[index], domain)
        is_clear = is_clear and clear
        if follows_scale:
            # A hidden layer scales what follows it cubed: keep the basis at size one and count its logarithm.
            largest = float(np.abs(embedding.array).max(initial=0.0)) or 1.0
            log_scale = 3 * log_scale + embedding.exponent * float(np.log(2)) + float(np.log(largest))
            embedding = Scaled(embedding.array / largest, 0, embedding.noise)
        reduced.append(layer)
    is_scaled = follows_scale and bool(reduced[-1].terms)
    return CanonicalForm(architecture, domain, tuple(reduced), log_scale if is_scaled else None, is_clear)


def _readers(
    layers: list[list[Maps]], widths: tuple[int, ...], architecture: Architecture, domain: Domain
) -> tuple[list[RowGauge | None], bool]:
    """For each hidden layer a basis of what later layers read of its output, None if it is all of it."""
    gauges: list[RowGauge | None] = []
    is_clear = True
    for maps, width in [] if architecture.residual else list(zip(layers, widths))[:0:-1]:
        terms, _ = layer_terms(maps, Scaled(domain.eye(width)), architecture.rule.has_scale, domain)
        after = gauges[-1].rows if gauges and gauges[-1] is not None else None
        rows = visible_rows(terms, after, domain) if terms else domain.zeros((0, width))
        gauge = row_gauge(rows, domain)
        is_clear = is_clear and gauge.is_clear
        gauges.append(None if len(gauge.pivots) == width else gauge)
    return gauges[::-1], is_clear


def _check_size(weights: Weights) -> None:
    """Refuse rational weights whose scale, of degree 3^l in the first layer, would not fit in memory."""
    architecture, domain = weights.architecture, weights.domain
    if domain.characteristic or not domain.is_exact or not architecture.rule.has_scale or architecture.residual:
        return
    bits = 3.0**architecture.num_layers * max(len(str(x)) for x in weights.vector())
    if bits * architecture.layers[-1].num_parameters > CANONICAL_BITS:
        raise SizeError(
            f"{architecture.num_layers} exact layers given; their scale of degree 3^l would fill the memory, use floats"
        )


def _value_gauge(term: AttentionTerm, value_width: int | None, domain: Domain) -> tuple[CanonicalTerm, bool]:
    """The term with its value map in echelon gauge; one matrix, without O, is the map from all coordinates."""
    W = term.W.array
    if value_width is None:
        V, O, pivots, clear = domain.eye(W.shape[1]), W, tuple(range(W.shape[1])), True
    else:
        gauge = row_gauge(W, domain, term.heads * value_width, term.W.noise)
        V, O, pivots, clear = gauge.rows, gauge.basis, gauge.pivots, gauge.is_clear
    gauged = CanonicalTerm(
        term.K.array,
        term.Q,
        V,
        O,
        term.query_pivots,
        pivots,
        term.scale_pivot,
        term.heads,
        term.K.exponent,
        term.W.exponent,
    )
    return gauged, clear


def _without_scale(terms: list[CanonicalTerm]) -> tuple[list[CanonicalTerm], float]:
    """The last outputs divided by their largest entry, and its logarithm; nothing to do for the zero function."""
    if not terms:
        return [], 0.0
    top = max(term.output_exponent for term in terms)
    largest = max(float(np.abs(term.outputs.join(top)).max()) for term in terms)
    scaled = [replace(term, O=term.O / largest, output_exponent=term.output_exponent - top) for term in terms]
    return scaled, top * float(np.log(2)) + float(np.log(largest))


def _hidden_layer(
    terms: list[CanonicalTerm], size_in: int, d_out: int, reader: RowGauge | None, domain: Domain
) -> tuple[CanonicalLayer, Scaled, bool]:
    """The layer with what is read of its outputs in echelon gauge, and the basis of the outputs in this gauge."""
    seen = [term.outputs.split(domain) for term in terms]
    if reader is not None:
        seen = [multiply(domain, Scaled(reader.rows), O) for O in seen]
    # Terms that nothing reads are left out; in floats also those that vanish beside much larger ones.
    top = max((O.exponent for O in seen if not O.is_zero), default=0)
    kept = [(term, O.join(top)) for term, O in zip(terms, seen) if not O.is_zero]
    kept = [(term, O) for term, O in kept if np.any(O)]
    width = d_out if reader is None else len(reader.pivots)
    stack = np.concatenate([domain.zeros((width, 0)), *(O for _, O in kept)], axis=1)
    gauge = row_gauge(stack, domain)
    basis = gauge.basis
    if reader is not None:
        # Any outputs that the readers see as the basis will do.
        basis = domain.zeros((d_out, len(gauge.pivots)))
        basis[list(reader.pivots)] = gauge.basis
    parts = np.split(gauge.rows, np.cumsum([O.shape[1] for _, O in kept])[:-1], axis=1) if kept else []
    kept_terms = tuple(replace(term, O=O, output_exponent=0) for (term, _), O in zip(kept, parts))
    # A rank that floats cut must leave every term as it is, small ones too.
    is_clear = gauge.is_clear and (
        domain.is_exact
        or all(
            np.linalg.norm(O - gauge.basis @ part) <= FACTOR_KEPT * np.linalg.norm(O)
            for (_, O), part in zip(kept, parts)
        )
    )
    layer = CanonicalLayer(kept_terms, gauge.pivots, size_in, len(gauge.pivots))
    return layer, Scaled(basis, top).split(domain), is_clear


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
