"""Rotary embeddings: queries and keys are rotated by angles that grow with the place of the token."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from attngeom.errors import InputError
from attngeom.network.options.option import Option

if TYPE_CHECKING:
    from attngeom.programs.builder import Builder

BASE = 10_000.0


class Rope(Option):
    """k_jᵀ R^{i−j} q_i: rows 2p and 2p + 1 are a plane, rotated by the angle 10000^{−2p/a} for each token.

    Of GL(a) the complex numbers of each plane are left, which commute with its rotations.
    """

    name = "rope"
    help = "Rotary embeddings of queries and keys, base 10000, neighbouring rows paired."

    def check(self, attention: tuple[int, ...], tokens: int) -> None:
        for a in attention:
            if a % 2:
                raise InputError(f"rope given with attention width {a}; planes need an even one")

    def orient(self, b: Builder, y: int) -> int:
        a, t = b.shape(y)
        angles = np.outer(BASE ** (-2.0 * (np.arange(a) // 2) / a), np.arange(t))
        cos, sin = b.circle(angles)
        numbers = b.numbers([y])[0]
        swapped = b.move([y], numbers[np.arange(a) ^ 1])
        signs = b.constant(np.where(np.arange(a) % 2, 1, -1)[:, None])
        return b.add(b.multiply(cos, y), b.multiply(b.multiply(sin, swapped), signs))

    def symmetries(self, names: tuple[str, ...], is_normalised: bool) -> tuple[str, ...]:
        return tuple("plane-scale" if name == "query-key" else name for name in names)
