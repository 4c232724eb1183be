"""Float weights rescaled by powers of two: exact, leaves relative errors as they are, and keeps products in range."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from attngeom.exact.domains import RR, Array
from attngeom.network import Head, Symmetry, Weights
from attngeom.network.symmetry import Between, QueryKey, Scale, ValueOutput
from attngeom.network.symmetry.factor import GroupFactor

SWEEPS, OUTPUT_SWEEPS = 6, 3
RANGE = 900
"""Exponents of a group element beyond this are cut: what is lost lies below the smallest float beside entries of 1."""
LARGEST_SHIFT = 2200
"""From the smallest float to the largest."""


def exponents(a: Array) -> Array:
    """The e with 2^(e-1) ≤ |a_ij| < 2^e for each entry, −∞ for zeros."""
    return np.asarray(np.where(a != 0, np.frexp(a)[1], -np.inf))


def largest(e: Array, axis: int | None) -> Array:
    """The largest exponent along an axis, nan where all entries are zero."""
    found = np.max(e, axis=axis, initial=-np.inf)
    return np.asarray(np.where(np.isinf(found), np.nan, found))


def shift(a: Array, rows: Array | int = 0, columns: Array | int = 0) -> Array:
    """2^rows · a · 2^columns."""
    total = np.asarray(rows, dtype=np.int64).reshape(-1, 1) + np.asarray(columns, dtype=np.int64).reshape(1, -1)
    return np.asarray(np.ldexp(a, np.clip(total, -LARGEST_SHIFT, LARGEST_SHIFT)))


def _largest(parts: list[Array]) -> Array:
    """The largest of several exponents, nan where there is none."""
    stacked = np.stack(parts)
    largest = np.max(np.nan_to_num(stacked, nan=-1e9), axis=0)
    return np.asarray(np.where(np.all(np.isnan(stacked), axis=0), np.nan, largest))


def _units(parts: list[Array]) -> Array:
    """The exponents that bring the largest of several to 0."""
    top = _largest(parts)
    return _middle(top, np.full(len(top), np.nan))


def _middle(outer: Array, inner: Array) -> Array:
    """The s that makes outer + s and inner − s about equal; with one of them absent, the other becomes 0."""
    s = np.where(np.isnan(outer), inner, np.where(np.isnan(inner), -outer, (inner - outer) / 2))
    return np.asarray(np.clip(np.rint(np.nan_to_num(s)), -RANGE, RANGE).astype(np.int64))


class _Balance:
    """A diagonal group element of powers of two, found from the exponents of the weights alone: nothing is rounded.

    ``layers`` holds the exponents of the entries as moved so far. ``inputs`` and ``outputs`` are units of the input and
    output, which are no part of the group.
    """

    def __init__(self, weights: Weights) -> None:
        architecture = weights.architecture
        self.given = weights
        self.architecture = architecture
        self.layers = [
            [{x: exponents(a) for x, a in head.tensors.items()} for head in heads] for heads in weights.layers
        ]
        self.C = [[np.zeros(len(head["Q"]), dtype=np.int64) for head in heads] for heads in self.layers]
        self.B = [[np.zeros(len(head["V"]), dtype=np.int64) for head in heads] for heads in self.layers]
        self.scale = [[0 for _ in heads] for heads in self.layers]
        widths = () if architecture.residual else architecture.widths[1:-1]
        self.between = [np.zeros(width, dtype=np.int64) for width in widths]
        self.inputs = np.zeros(architecture.widths[0], dtype=np.int64)
        self.outputs = np.zeros(architecture.widths[-1], dtype=np.int64)

    def sweep(self) -> None:
        """Balance rows of K against those of Q, V against O, Q against V where that is a symmetry, then layers."""
        for index, heads in enumerate(self.layers):
            for place, head in enumerate(heads):
                s = _middle(largest(head["K"], 1), largest(head["Q"], 1))
                head |= {"K": head["K"] + s[:, None], "Q": head["Q"] - s[:, None]}
                self.C[index][place] += s
                if "O" in head:
                    s = _middle(largest(head["V"], 1), largest(head["O"], 0))
                    head |= {"V": head["V"] + s[:, None], "O": head["O"] - s}
                    self.B[index][place] += s
                if self.architecture.rule.has_scale:
                    scale = int(_middle(largest(head["Q"], None), largest(head["V"], None)))
                    head |= {"Q": head["Q"] + scale, "V": head["V"] - scale}
                    self.scale[index][place] += scale
        for index, total in enumerate(self.between):
            inner = _largest([largest(head[x], 0) for head in self.layers[index + 1] for x in "QKV"])
            s = _middle(_largest(self.rows(index)), inner)
            self.move_rows(index, s)
            self.move_columns(index + 1, -s)
            total += s

    def rows(self, index: int) -> list[Array]:
        """The largest exponents of the output rows of each head; a head that is plainly zero has no size."""
        names = "QKVO" if self.architecture.rule.is_polynomial else "VO"
        found = []
        for head in self.layers[index]:
            is_zero = any(np.all(np.isinf(e)) for name, e in head.items() if name in names)
            found.append(largest(head.get("O", head["V"]), 1) + (np.nan if is_zero else 0.0))
        return found

    def move_rows(self, index: int, s: Array) -> None:
        """Units of the output of a layer."""
        for head in self.layers[index]:
            name = "O" if "O" in head else "V"
            head[name] = head[name] + s[:, None]

    def move_columns(self, index: int, s: Array) -> None:
        """Units of the input of a layer."""
        for head in self.layers[index]:
            head |= {x: head[x] + s for x in "QKV"}

    def weights(self) -> Weights:
        """The given weights moved by the whole group element at once, in the units of input and output."""
        before = [self.inputs, *(-s for s in self.between)]
        after = [*self.between, self.outputs]
        layers = []
        for index, heads in enumerate(self.given.layers):
            # Beside a skip connection nothing is moved between the layers.
            columns = before[index] if index < len(before) else 0
            rows = after[index] if len(after) == len(self.layers) else 0
            moved = []
            for head, C, B, scale in zip(heads, self.C[index], self.B[index], self.scale[index]):
                tensors = {"Q": shift(head.Q, scale - C, columns), "K": shift(head.K, C, columns)}
                if head.O is None:
                    tensors["V"] = shift(head.V, rows - scale, columns)
                else:
                    tensors |= {"V": shift(head.V, B - scale, columns), "O": shift(head.O, rows, -B)}
                moved.append(Head(**tensors))
            layers.append(tuple(moved))
        return Weights(self.architecture, RR, tuple(layers))

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
    if not architecture.residual:
        columns = [largest(head[name], 0) for side in sides for head in side.layers[0] for name in "QK"]
        for side in sides:
            side.inputs = _units(columns)
            side.move_columns(0, side.inputs)
        for _ in range(OUTPUT_SWEEPS):
            units = _units([row for side in sides for row in side.rows(architecture.num_layers - 1)])
            for side in sides:
                side.outputs += units
                side.move_rows(architecture.num_layers - 1, units)
                side.sweep()
    one, two = sides
    return RescaledPair((one.weights(), two.weights()), (one.gauge(), two.gauge()), one.inputs, one.outputs)
