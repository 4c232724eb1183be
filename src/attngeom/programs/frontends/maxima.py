"""Maxima that a softmax subtracts: they cancel, so that they are looked at only where they do not."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from math import prod
from typing import NamedTuple

import numpy as np

from attngeom.exact.arrays import Array


class Maximum(NamedTuple):
    """The maxima of scores over some axes; places that are −∞ are not asked."""

    scores: int
    gone: tuple[int, ...]
    axes: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Shift:
    """What a maximum did to each entry: the entry is the ``maximum``, or a multiple of it was ``subtracted``, or the
    entry was ``divided`` by its exponential.

    >>> shift = Shift(Maximum(0, (), (1,)), np.array([[0], [1]])).spread((2, 3)).become("divided")
    >>> shift.moved(np.array([[3, 0, 6]])).places, shift.over((1,), False).places, shift.over((0,), False)
    (array([[ 0, -1,  1]]), array([0, 1]), None)
    """

    maximum: Maximum
    places: Array
    """For each entry which of the maxima, −1 for none: there the entry is 0."""
    kind: str = "maximum"
    scale: Fraction = Fraction(1)

    @property
    def what(self) -> tuple[Maximum, str, Fraction]:
        """All but the places."""
        return self.maximum, self.kind, self.scale

    def become(self, kind: str) -> Shift:
        return replace(self, kind=kind)

    def times(self, scale: Fraction) -> Shift:
        return replace(self, scale=self.scale * scale)

    def at(self, places: Array) -> Shift:
        return replace(self, places=places)

    def spread(self, shape: tuple[int, ...]) -> Shift:
        return self.at(np.broadcast_to(self.places, shape))

    def moved(self, numbers: Array) -> Shift:
        """After index work: number n > 0 is the n-th entry, 0 is zero."""
        return self.at(np.append(-1, self.places.ravel())[numbers])

    def over(self, axes: tuple[int, ...], keepdims: bool) -> Shift | None:
        """After a sum; None if entries of different maxima are summed, or what does not share a factor."""
        place = self.places.max(axis=axes, keepdims=True)
        if self.kind != "divided" or not ((self.places == place) | (self.places == -1)).all():
            return None
        return self.at(place if keepdims else place.squeeze(axes))

    def is_of(self, scores: int, shape: tuple[int, ...]) -> bool:
        """Whether these are the maxima of such scores, each where its axes meet them."""
        if self.kind != "maximum" or self.maximum.scores != scores or self.places.ndim > len(shape):
            return False
        kept = [1 if k in self.maximum.axes else n for k, n in enumerate(shape)]
        wanted = np.arange(prod(kept)).reshape(kept)
        try:
            own = np.broadcast_to(self.places, shape)
        except ValueError:
            return False
        return bool((own == wanted).all())

    def cancels(self, other: Shift) -> bool:
        """Whether entries that were divided may be divided by the others as they are."""
        if self.kind != "divided" or self.what != other.what:
            return False
        shape = np.broadcast_shapes(self.places.shape, other.places.shape)
        own, theirs = (np.broadcast_to(x.places, shape) for x in (self, other))
        return bool(((own == theirs) | (own == -1)).all())
