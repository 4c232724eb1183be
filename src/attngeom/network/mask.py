"""The mask of attention: which tokens a token sees."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from attngeom.exact.arrays import Array

NO_MASK = "no causal mask"
"""The hypothesis of theorems by which every token sees every other one."""


@dataclass(frozen=True)
class Mask:
    """Token i sees every token j; with a causal mask, which ``hides`` the later ones, j ≤ i alone.

    >>> Mask(True).visible(2).tolist(), Mask(False).visible(2).all()
    ([[True, True], [False, True]], np.True_)
    """

    hides: bool = False

    def visible(self, t: int) -> Array:
        """Which token j (row) token i (column) sees, t×t."""
        return self.keep(np.ones((t, t), dtype=bool))

    def keep(self, S: Array) -> Array:
        """S (..., t, t) with zeros where token j (row) is hidden from token i (column)."""
        return np.triu(S) if self.hides else S

    def seen(self, X: Array, i: int) -> Array:
        """The columns of X that token i sees."""
        return X[..., : i + 1] if self.hides else X

    def others(self, i: int, t: int) -> range:
        """The tokens that token i sees; with a mask without itself."""
        return range(i) if self.hides else range(t)

    def sums(self, X: Array) -> Array:
        """Column i: the sum of the columns of X that token i sees."""
        sums = np.cumsum(X, axis=-1)
        return sums if self.hides else np.broadcast_to(sums[..., -1:], sums.shape)

    def count(self, pairs: int) -> int:
        """How many of the ordered pairs of different tokens see each other."""
        return pairs // 2 if self.hides else pairs

    def __str__(self) -> str:
        return "causal" if self.hides else ""

    @property
    def places(self) -> tuple[int, int]:
        """Two tokens, the first of which sees the second."""
        return (1, 0) if self.hides else (0, 1)


OPEN = Mask()
