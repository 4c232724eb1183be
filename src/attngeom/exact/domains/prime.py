"""The prime fields GF(p), p < 2^63, and GF(p) in balanced floating point residues, whose products are BLAS calls."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from flint import Ordering, fmpq, fmpq_mat, fmpz, nmod, nmod_mat, nmod_mpoly_ctx
from flint.utils.flint_exceptions import DomainError as NoRootError

from attngeom.errors import InputError
from attngeom.exact.arrays import Array, broadcast_product, check_product, check_square, elementwise, from_flint
from attngeom.exact.domains.domain import Domain, no_inverse, singular
from attngeom.exact.modular import Echelon, determinants_mod_p, powers_mod_p, rank_mod_p, rref_mod_p
from attngeom.exact.numbers import ClearedMatrix, as_fmpq, check_prime
from attngeom.exact.residues import BalancedResidues, matmul_mod


class FiniteField(Domain):
    """The field GF(p), p prime, however residues are stored."""

    p: int
    name: ClassVar[str] = "GF"
    is_exact: ClassVar[bool] = True

    @property
    def label(self) -> str:
        return f"GF({self.p})"

    @property
    def characteristic(self) -> int:
        return self.p

    def is_zero(self, a: Array) -> bool:
        return not np.any(self.reduce(a))


@dataclass(frozen=True)
class PrimeField(FiniteField):
    """The field GF(p); entries are residues in [0, p).

    >>> GF(7).inverse(GF(7).convert([[3]])).tolist()
    [[5]]
    """

    p: int

    def __post_init__(self) -> None:
        check_prime(self.p)

    @property
    def fits_word(self) -> bool:
        """Whether residues are stored as int64, so that products of two do not overflow."""
        return self.p < 2**31

    def _residue(self, x: Any) -> int:
        q = as_fmpq(x)
        if int(q.q) % self.p == 0:
            raise InputError(f"entry {q} given; its denominator must be invertible mod {self.p}")
        return int(nmod(int(q.p), self.p) / nmod(int(q.q), self.p))

    def convert(self, data: Any) -> Array:
        if isinstance(data, np.ndarray) and np.issubdtype(data.dtype, np.integer):
            return np.asarray(data.astype(np.int64 if self.fits_word else object) % self.p)
        if isinstance(data, np.ndarray) and data.dtype == np.float64 and self.fits_word and self.p > 2:
            return self._convert_floats(data)
        entries = data.ravel().tolist() if isinstance(data, np.ndarray) else []
        if set(map(type, entries)) == {fmpq}:
            # In FLINT, over one denominator.
            cleared = ClearedMatrix(*fmpq_mat(1, len(entries), entries).numer_denom())
            return self.from_flint(self.image(cleared)).reshape(data.shape)
        residues = elementwise(self._residue, data)
        return residues.astype(np.int64) if self.fits_word else residues

    def _convert_floats(self, data: Array) -> Array:
        """Floats as the fractions m 2^e that they are."""
        if not np.all(np.isfinite(data)):
            raise InputError("NaN or infinite entries given; finite numbers are required")
        mantissas, exponents = np.frexp(data)
        powers = {e: pow(2, e - 53, self.p) for e in np.unique(exponents).tolist()}
        shifts = np.array([powers[e] for e in exponents.ravel().tolist()], dtype=np.int64).reshape(data.shape)
        return self.reduce(self.reduce(np.ldexp(mantissas, 53).astype(np.int64)) * shifts)

    def reduce(self, a: Array) -> Array:
        return a % self.p

    def to_flint(self, a: Array) -> nmod_mat:
        return nmod_mat(a.shape[0], a.shape[1], a.ravel().tolist(), self.p)

    def from_flint(self, matrix: nmod_mat) -> Array:
        residues = from_flint(matrix, int)
        return residues.astype(np.int64) if self.fits_word else residues

    def image(self, a: ClearedMatrix) -> nmod_mat:
        """The residues of a rational matrix, inside FLINT; InputError if p divides its denominator."""
        return a.residues(self.p)

    def invert(self, a: Any) -> Any:
        residues = np.asarray(a) % self.p
        if not np.all(residues):
            raise no_inverse()
        if self.fits_word:
            return powers_mod_p(residues, self.p - 2, self.p)[()]
        return np.frompyfunc(lambda x: pow(int(x), -1, self.p), 1, 1)(residues)

    def matmul(self, a: Array, b: Array) -> Array:
        if self.fits_word:
            return matmul_mod(a, b, self.p)
        return broadcast_product(lambda x, y: self.from_flint(self.to_flint(x) * self.to_flint(y)), a, b)

    def inverse(self, a: Array) -> Array:
        check_square(a)
        try:
            return self.from_flint(self.to_flint(a).inv())
        except ZeroDivisionError:
            raise singular(a) from None

    def rank(self, a: Array) -> int:
        return rank_mod_p(a, self.p)

    def rref(self, a: Array) -> Echelon:
        return rref_mod_p(a, self.p)

    def sqrt(self, x: Any) -> int | None:
        """The least root.

        >>> GF(7).sqrt(2), GF(7).sqrt(3)
        (3, None)
        """
        try:
            root = int(fmpz(int(x)).sqrtmod(self.p))
        except NoRootError:
            return None
        return min(root, self.p - root)

    def _large_dets(self, a: Array) -> Any:
        return determinants_mod_p(a, self.p) if self.fits_word else super()._large_dets(a)

    def _large_det(self, a: Array) -> int:
        return int(self.to_flint(a).det())

    def random(self, shape: tuple[int, ...], rng: np.random.Generator) -> Array:
        return self.convert(rng.integers(0, self.p, size=shape))

    def polynomials(self, variables: Sequence[str]) -> nmod_mpoly_ctx:
        return nmod_mpoly_ctx.get(tuple(variables), modulus=self.p, ordering=Ordering.degrevlex)


def GF(p: int) -> PrimeField:
    """The prime field with p elements.

    >>> GF(5).convert([["1/2", -1]]).tolist()
    [[3, 4]]
    """
    return PrimeField(p)


@dataclass(frozen=True)
class BalancedField(BalancedResidues, FiniteField):
    """GF(p), p < 2^31, with entries in [−p/2, p/2] held in float64, or float32 for p < 2^8.

    >>> BalancedField(7).matmul(np.array([[2.0, 3.0]]), np.array([[2.0], [3.0]])).tolist()
    [[-1.0]]
    """

    def __post_init__(self) -> None:
        check_prime(self.p)
        super().__post_init__()

    @property
    def _integers(self) -> PrimeField:
        """The same field with residues in [0, p)."""
        return GF(self.p)

    def convert(self, data: Any) -> Array:
        return self.from_residues(self._integers.convert(data))

    def reduce(self, a: Array) -> Array:
        return self.balance(np.array(a, dtype=self.dtype))

    def invert(self, a: Any) -> Any:
        return self.from_residues(np.asarray(self._integers.invert(self.to_integers(np.asarray(a)))))[()]

    def matmul(self, a: Array, b: Array) -> Array:
        check_product(a, b)
        return self.multiply(a, b)

    def add(self, a: Array, b: Array) -> Array:
        return self.balance(a + b)

    def add_products(self, a: Array, b: Array, c: Array, d: Array) -> Array:
        if self.is_split or a.shape[-1] + c.shape[-1] > self.depth:
            return super().add_products(a, b, c, d)
        check_product(a, b)
        check_product(c, d)
        # Reduced once: both products together are exact.
        return self.balance(a @ b + c @ d)

    def inverse(self, a: Array) -> Array:
        check_square(a)
        inverse = self.invert_matrix(a)
        if inverse is None:
            raise singular(a)
        return inverse

    def rank(self, a: Array) -> int:
        return self._integers.rank(self.to_integers(a))

    def rref(self, a: Array) -> Echelon:
        echelon = self._integers.rref(self.to_integers(a))
        return Echelon(self.from_residues(echelon.matrix), echelon.pivots)

    def det(self, a: Array) -> Any:
        return self.from_residues(np.asarray(self._integers.det(self.to_integers(a))))[()]

    def random(self, shape: tuple[int, ...], rng: np.random.Generator) -> Array:
        return self.from_residues(self._integers.random(shape, rng))
