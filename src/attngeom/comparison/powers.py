"""Float weights rescaled by powers of two: exact, leaves relative errors as they are, and keeps products in range."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from attngeom.exact.domains import RR, Array
from attngeom.network import Head, Symmetry, Weights
from attngeom.network.symmetry import Between, QueryKey, Scale, ValueOutput
from attngeom.network.symmetry.factor import GroupFactor

SWEEPS = 6
RANGE = 900
"""Exponents beyond this are cut: what is then lost lies below the smallest float beside entries of size 1."""


def exponents(a: Array, axis: int | None) -> Array:
    """The exponents e with 2^(e-1) ≤ max |a| < 2^e along an axis, nan where that is zero."""
    largest = np.max(np.abs(a), axis=axis, initial=0.0)
    return np.asarray(np.where(largest > 0, np.frexp(largest)[1], np.nan))


def shift(a: Array, rows: Array | int = 0, columns: Array | int = 0) -> Array:
    """2^rows · a · 2^columns."""
    total = np.asarray(rows, dtype=np.int64).reshape(-1, 1) + np.asarray(columns, dtype=np.int64).reshape(1, -1)
    return np.asarray(np.ldexp(a, np.clip(total, -2 * RANGE, 2 * RANGE)))


def _largest(parts: list[Array]) -> Array:
    """The largest of several exponents, nan where there is none."""
    stacked = np.stack(parts)
    largest = np.max(np.nan_to_num(stacked, nan=-1e9), axis=0)
    return np.asarray(np.where(np.all(np.isnan(stacked), axis=0), np.nan, largest))


def _middle(outer: Array, inner: Array) -> Array:
    """The s that makes outer + s and inner − s about equal; with one of them absent, the other becomes 0."""
    s = np.where(np.isnan(outer), inner, np.where(np.isnan(inner), -outer, (inner - outer) / 2))
    return np.asarray(np.clip(np.rint(np.nan_to_num(s)), -RANGE, RANGE).astype(np.int64))


class _Balance:
    """Weights on their way to entries of moderate size, and the exponents of the diagonal group element so far."""

    def __init__(self, weights: Weights) -> None:
        architecture = weights.architecture
        self.architecture = architecture
        self.layers = [[dict(head.tensors) for head in heads] for heads in weights.layers]
        self.C = [[np.zeros(len(head["Q"]), dtype=np.int64) for head in heads] for heads in self.layers]
        self.B = [[np.zeros(len(head["V"]), dtype=np.int64) for head in heads] for heads in self.layers]
        self.scale = [[0 for _ in heads] for heads in self.layers]
        widths = () if architecture.residual else architecture.widths[1:-1]
        self.between = [np.zeros(width, dtype=np.int64) for width in widths]

    def sweep(self) -> None:
        """Balance rows of K against those of Q, V against O, Q against V where that is a symmetry, then layers."""
        for index, heads in enumerate(self.layers):
            for place, head in enumerate(heads):
                s = _middle(exponents(head["K"], 1), exponents(head["Q"], 1))
                head |= {"K": shift(head["K"], s), "Q": shift(head["Q"], -s)}
                self.C[index][place] += s
                if "O" in head:
                    s = _middle(exponents(head["V"], 1), exponents(head["O"], 0))
                    head |= {"V": shift(head["V"], s), "O": shift(head["O"], 0, -s)}
                    self.B[index][place] += s
                if self.architecture.rule.has_scale:
                    scale = int(_middle(exponents(head["Q"], None), exponents(head["V"], None)))
                    head |= {"Q": shift(head["Q"], scale), "V": shift(head["V"], -scale)}
                    self.scale[index][place] += scale
            if index < len(self.between):
                self._balance_layers(index)

    def _balance_layers(self, index: int) -> None:
        heads, following = self.layers[index], self.layers[index + 1]
        name = "O" if "O" in heads[0] else "V"
        outer = _largest([exponents(head[name], 1) for head in heads])
        inner = _largest([exponents(head[x], 0) for head in following for x in "QKV"])
        s = _middle(outer, inner)
        for head in heads:
            head[name] = shift(head[name], s)
        for head in following:
            head |= {x: shift(head[x], 0, -s) for x in "QKV"}
        self.between[index] += s

    def weights(self) -> Weights:
        layers = tuple(tuple(Head(**head) for head in heads) for heads in self.layers)
        return Weights(self.architecture, RR, layers)

    def gauge(self) -> Symmetry:
        """The diagonal group element that the sweeps have applied."""

        def diagonal(e: Array) -> Array:
            return np.diag(np.ldexp(1.0, e))

        elements: dict[GroupFactor, Array] = {}
        for index, heads in enumerate(self.layers):
            for place, head in enumerate(heads):
                elements[QueryKey(index, place, len(head["Q"]))] = diagonal(self.C[index][place])
                if self.architecture.rule.has_scale:
                    elements[Scale(index, place)] = np.array([[np.ldexp(1.0, self.scale[index][place])]])
                if "O" in head:
                    elements[ValueOutput(index, place, len(head["V"]))] = diagonal(self.B[index][place])
        elements |= {Between(index, len(e)): diagonal(e) for index, e in enumerate(self.between)}
        return Symmetry(self.architecture, RR, elements)


@dataclass(frozen=True, eq=False)
class RescaledPair:
    """Two networks on inputs 2^inputs · X with outputs 2^outputs · Y, both in gauges of moderate size.

    The functions are equal if and only if those of the given weights are. ``gauges`` are the group elements that were
    applied; the scaling of inputs and outputs, common to both, commutes with all of them.
    """

    weights: tuple[Weights, Weights]
    gauges: tuple[Symmetry, Symmetry]
    inputs: Array
    outputs: Array


def rescale_pair(first: Weights, second: Weights) -> RescaledPair:
    """Both networks with inputs, outputs and hidden units measured in powers of two that suit them.

    >>> from attngeom.network import Architecture
    >>> w = Weights.from_vector(Architecture((1, 1), 1), np.array([2.0**300, 2.0**-300, 1.0]), RR)
    >>> rescale_pair(w, w).weights[0].vector().tolist()
    [0.5, 0.5, 0.5]
    """
    architecture = first.architecture
    sides = [_Balance(weights) for weights in (first, second)]
    for side in sides:
        for _ in range(SWEEPS):
            side.sweep()
    d, d_out = architecture.widths[0], architecture.widths[-1]
    inputs, outputs = np.zeros(d, dtype=np.int64), np.zeros(d_out, dtype=np.int64)
    if not architecture.residual:
        columns = [exponents(head[name], 0) for side in sides for head in side.layers[0] for name in "QK"]
        inputs = _middle(_largest(columns), np.full(d, np.nan))
        for side in sides:
            for head in side.layers[0]:
                head |= {name: shift(head[name], 0, inputs) for name in "QKV"}
        rows = [exponents(head.get("O", head["V"]), 1) for side in sides for head in side.layers[-1]]
        outputs = _middle(_largest(rows), np.full(d_out, np.nan))
        for side in sides:
            for head in side.layers[-1]:
                name = "O" if "O" in head else "V"
                head[name] = shift(head[name], outputs)
            side.sweep()
    one, two = sides
    return RescaledPair((one.weights(), two.weights()), (one.gauge(), two.gauge()), inputs, outputs)
