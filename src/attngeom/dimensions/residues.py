"""GF(p) as a domain of balanced floating point residues: products are BLAS calls, and nothing is converted."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from attngeom.exact.domains import GF, Array, Domain
from attngeom.exact.residues import BalancedResidues


@dataclass(frozen=True)
class BalancedField(Domain):
    """GF(p), p < 2^31, with entries in [−p/2, p/2] held in float64, or float32 for p < 2^8.

    >>> BalancedField(7).matmul(np.array([[2.0, 3.0]]), np.array([[2.0], [3.0]])).tolist()
    [[-1.0]]
    """

    p: int
    residues: BalancedResidues = field(init=False, repr=False, compare=False)
    name: ClassVar[str] = "GF"
    is_exact: ClassVar[bool] = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "residues", BalancedResidues(self.p))

    def array(self, data: Any) -> Array:
        return self.residues.from_integers(GF(self.p).array(data))

    def reduce(self, a: Array) -> Array:
        return self.residues.balance(np.array(a, dtype=self.residues.dtype))

    def times(self, a: Array, b: Array) -> Array:
        """The entrywise product."""
        return self.residues.times(a, b)

    def invert(self, a: Array) -> Array:
        """The inverses of nonzero entries, a^(p−2) for all entries at once.

        >>> BalancedField(7).invert(np.array([3.0, -1.0])).tolist()
        [-2.0, -1.0]
        """
        power, out = a, np.ones_like(a)
        for bit in reversed(bin(self.p - 2)[2:]):
            if bit == "1":
                out = self.times(out, power)
            power = self.times(power, power)
        return out

    def matmul(self, a: Array, b: Array) -> Array:
        if self.residues.is_split:
            whole = self.residues.to_integers
            return self.residues.from_integers(GF(self.p).matmul(whole(a), whole(b)))
        k, depth = a.shape[-1], self.residues.depth
        total = self.residues.balance(np.matmul(a[..., :depth], b[..., :depth, :]))
        for start in range(depth, k, depth):
            inner = slice(start, start + depth)
            total += self.residues.balance(np.matmul(a[..., inner], b[..., inner, :]))
        return self.residues.balance(total) if k > depth else total

    def inverse(self, a: Array) -> Array:
        return self.array(GF(self.p).inverse(self.residues.to_integers(a)))

    def random(self, shape: tuple[int, ...], rng: np.random.Generator) -> Array:
        return self.residues.from_residues(GF(self.p).random(shape, rng))

    def is_zero(self, a: Array) -> bool:
        return not np.any(self.reduce(a))
