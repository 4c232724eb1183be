"""Float weights rescaled by powers of two: exact, leaves relative errors as they are, and keeps products in range."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from attngeom.exact.domains import RR, Array
from attngeom.exact.numbers import near_exponents
from attngeom.limits.rounding import ELEMENT_EXPONENTS, FLOAT_EXPONENTS
from attngeom.limits.trials import OUTPUT_POWER_SWEEPS, POWER_SWEEPS
from attngeom.network import Symmetry, Weights
from attngeom.network.symmetry import Between, QueryKey, Scale, ValueOutput, linear_factors, tensors_of, weights_of
from attngeom.network.symmetry.factor import Place, Slot

ORDER = (QueryKey, ValueOutput, Scale, Between)
"""Factors are balanced in this order: the heads first, then the layers against each other."""


def exponents(a: Array) -> Array:
    """The exponent of the power of two near each entry, −∞ for zeros."""
    return np.ascontiguousarray(np.where(a != 0, near_exponents(a), -np.inf))


def _largest(parts: Iterable[Array]) -> Array:
    """The largest of several exponents, nan where there is none."""
    largest = np.fmax.reduce(np.stack([*parts]))
    return np.asarray(np.where(np.isfinite(largest), largest, np.nan))


def _middle(outer: Array, inner: Array | float = np.nan) -> Array:
    """The s that makes outer + s and inner − s about equal; with one of them absent, the other becomes 0."""
    s = np.where(np.isnan(outer), inner, np.where(np.isnan(inner), -outer, (inner - outer) / 2))
    return np.asarray(
        np.clip(np.rint(np.where(np.isnan(s), 0.0, s)), -ELEMENT_EXPONENTS, ELEMENT_EXPONENTS).astype(np.int64)
    )


class _Balance:
    """A diagonal group element of powers of two, found from the exponents of the weights alone: nothing is rounded.

    ``sizes`` are the exponents of the entries as moved so far, ``elements`` those of the group element. Units of input
    and output are no part of the group: they act like changes of basis before the first layer and after the last.
    """

    def __init__(self, weights: Weights) -> None:
        self.given, architecture = weights, weights.architecture
        self.sizes = {place: exponents(a) for place, a in tensors_of(weights).items()}
        factors = sorted(linear_factors(architecture), key=lambda factor: ORDER.index(type(factor)))
        self.elements = {factor: np.zeros(factor.size, dtype=np.int64) for factor in factors}
        self.sides = {factor: (factor.carried(self.sizes), factor.dual(self.sizes)) for factor in factors}
        self.live = self._find_live()
        self.inputs = Between(-1, architecture.widths[0]).dual(self.sizes)
        self.outputs = Between(architecture.num_layers - 1, architecture.widths[-1]).carried(self.sizes)

    def _find_live(self) -> dict[Place, Array]:
        """The entries that the function can see: not those that meet nothing but zeros before or behind them."""
        live = {place: np.isfinite(e) for place, e in self.sizes.items()}
        needed = self.given.architecture.rule.factors
        pairs = [sides for factor, sides in self.sides.items() if not isinstance(factor, Scale)]
        count = -1
        while count != (count := sum(int(mask.sum()) for mask in live.values())):
            for sides in pairs:
                ends = [np.any([slot.see(live[slot.place]).any(axis=1) for slot in side], axis=0) for side in sides]
                for slot in (*sides[0], *sides[1]):
                    slot.see(live[slot.place])[~(ends[0] & ends[1])] = False
            for layer, head in {place[:2] for place in live}:
                own = {place: mask for place, mask in live.items() if place[:2] == (layer, head)}
                if not all(mask.any() for (*_, letter), mask in own.items() if letter in needed):
                    for mask in own.values():
                        mask[:] = False
        return live

    def sweep(self) -> bool:
        """Balance what each factor carries against what is dual to it; whether anything moved."""
        moved = False
        for factor, total in self.elements.items():
            carried, dual = self.sides[factor]
            s = _middle(self.size(carried), self.size(dual))
            if s.any():
                self.move(carried, s)
                self.move(dual, -s)
                total += s
                moved = True
        return moved

    def size(self, slots: Sequence[Slot]) -> Array:
        """The largest exponent of each row of what the slots see, nan for zeros: of live entries, if there are any."""
        seen = _largest(self.largest_live(slots))
        every = _largest(np.max(slot.see(self.sizes[slot.place]), axis=1, initial=-np.inf) for slot in slots)
        return np.asarray(np.where(np.isnan(seen), every, seen))

    def largest_live(self, slots: Iterable[Slot]) -> list[Array]:
        """The largest exponent of a live entry of each row of what each slot sees, −∞ where there is none."""
        sizes = [(slot.see(self.sizes[slot.place]), slot.see(self.live[slot.place])) for slot in slots]
        return [np.max(e, axis=1, initial=-np.inf, where=live) for e, live in sizes]

    def move(self, slots: Iterable[Slot], s: Array) -> None:
        """Multiply the rows of what the slots see by 2^s."""
        for slot in slots:
            seen = slot.see(self.sizes[slot.place])
            seen += s[:, None]

    def weights(self) -> Weights:
        """The given weights, moved at once to their new sizes."""
        tensors = tensors_of(self.given)
        for place, a in tensors.items():
            shifts = np.nan_to_num(self.sizes[place] - exponents(a))
            tensors[place] = np.ldexp(a, np.clip(shifts, -FLOAT_EXPONENTS, FLOAT_EXPONENTS).astype(np.int64))
        return weights_of(self.given.architecture, tensors, RR)

    def gauge(self) -> Symmetry:
        """The diagonal group element that the sweeps have applied."""
        return Symmetry(
            self.given.architecture, RR, {factor: np.diag(np.ldexp(1.0, e)) for factor, e in self.elements.items()}
        )


def without_unseen(weights: Weights) -> Weights:
    """The same function with zeros for entries that meet nothing but zeros, and for scores of one normalised token.

    >>> from attngeom.network import Architecture
    >>> w = Weights.from_vector(Architecture((2, 1), 1), np.array([1.0, 2.0, 3.0, 0.0, 0.0, 0.0]), RR)
    >>> without_unseen(w).vector().tolist()
    [0.0, 0.0, 0.0, 0.0, 0.0, 0.0]
    """
    architecture, tensors = weights.architecture, tensors_of(weights)
    if architecture.view == "nothing":
        tensors = {place: np.zeros_like(a) if place[2] in "QK" else a for place, a in tensors.items()}
        weights = weights_of(architecture, tensors, RR)
    live = _Balance(weights).live
    return weights_of(architecture, {place: np.where(live[place], a, 0.0) for place, a in tensors.items()}, RR)


@dataclass(frozen=True, eq=False)
class RescaledPair:
    """Two networks on inputs 2^inputs · X, with outputs in other units, both in gauges of moderate size.

    The functions are equal if and only if those of the given weights are. ``gauges`` are the group elements that were
    applied; the scaling of inputs and outputs, common to both, commutes with all of them.
    """

    weights: tuple[Weights, Weights]
    gauges: tuple[Symmetry, Symmetry]
    inputs: Array


def rescale_pair(first: Weights, second: Weights) -> RescaledPair:
    """Both networks with inputs, outputs and hidden units measured in powers of two that suit them.

    >>> from attngeom.network import Architecture
    >>> w = Weights.from_vector(Architecture((1, 1), 1), np.array([2.0**300, 2.0**-300, 1.0]), RR)
    >>> rescale_pair(w, w).weights[0].vector().tolist()
    [1.0, 1.0, 1.0]
    """
    architecture = first.architecture
    sides = [_Balance(weights) for weights in (first, second)]
    for side in sides:
        for _ in range(POWER_SWEEPS):
            if not side.sweep():
                break
    inputs = np.zeros(architecture.widths[0], dtype=np.int64)
    if not architecture.residual:
        scores = [e for side in sides for e in side.largest_live(x for x in side.inputs if x.place[2] in "QK")]
        inputs = _middle(_largest(scores))
        for side in sides:
            side.move(side.inputs, inputs)
        for _ in range(OUTPUT_POWER_SWEEPS):
            units = _middle(_largest(e for side in sides for e in side.largest_live(side.outputs)))
            moved = bool(units.any())
            for side in sides:
                side.move(side.outputs, units)
                moved |= side.sweep()
            if not moved:
                break
    one, two = sides
    return RescaledPair((one.weights(), two.weights()), (one.gauge(), two.gauge()), inputs)
