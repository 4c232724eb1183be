"""Random elements of groups from a seed, with matrices of a given condition number."""

from __future__ import annotations

import numpy as np

from attngeom.errors import InputError
from attngeom.exact import lapack
from attngeom.exact.arrays import Array
from attngeom.limits.rounding import RANDOM_CONDITION


class Sampler:
    """Random scales, phases, signs, matrices and shifts; tests draw elements without rounding from a subclass.

    >>> Sampler(0).invertible(2, 3).shape
    (2, 3, 3)
    """

    def __init__(self, seed: int, condition: float = RANDOM_CONDITION) -> None:
        if not 1 <= condition <= 1e6:
            raise InputError(f"condition {condition} given; a number from 1 to 1e6 is required")
        self.rng = np.random.default_rng(seed)
        self.condition = condition

    def scales(self, *shape: int) -> Array:
        """Positive numbers within the square root of the condition of each other, around 1."""
        return np.asarray(self.condition ** self.rng.uniform(-0.25, 0.25, shape))

    def orthogonal(self, count: int, size: int) -> Array:
        """Orthogonal matrices."""
        q = lapack.qr(self.rng.normal(size=(count, size, size)))[0] if size else np.zeros((count, 0, 0))
        return np.asarray(q)

    def invertible(self, count: int, size: int) -> Array:
        """Matrices U S W with singular values between condition^−½ and condition^½."""
        values = self.condition ** self.rng.uniform(-0.5, 0.5, (count, size))
        if size > 1:
            values[:, 0], values[:, -1] = self.condition**0.5, self.condition**-0.5
        return np.asarray(self.orthogonal(count, size) * values[:, None, :] @ self.orthogonal(count, size))

    def shift(self, size: int | tuple[int, ...] = ()) -> Array:
        """Shifts of biases and of directions that are not seen; small, so that they do not swamp the weights.

        They are smaller still for a smaller condition number than that of `RANDOM_CONDITION`, and none for 1.
        """
        return np.asarray(self.rng.normal(size=size) * 0.3 * min(1.0, (self.condition - 1) / (RANDOM_CONDITION - 1)))

    def phases(self, *shape: int) -> Array:
        """Complex numbers of modulus one."""
        return np.asarray(np.exp(1j * self.rng.uniform(0, 2 * np.pi, shape)))

    def signs(self, *shape: int) -> Array:
        """Signs ±1."""
        return np.asarray(self.rng.choice([-1.0, 1.0], shape))

    def coins(self, *shape: int) -> Array:
        """True or False."""
        return np.asarray(self.rng.random(shape) < 0.5)

    def order(self, size: int) -> Array:
        """An order of ``size`` things."""
        return np.asarray(self.rng.permutation(size))

    def block_order(self, groups: int, size: int) -> Array:
        """An order of ``groups`` blocks of ``size`` things that keeps the blocks together."""
        return np.concatenate([place * size + self.order(size) for place in self.order(groups)])
