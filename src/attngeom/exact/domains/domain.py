"""The contract of coefficient domains: what code above may ask, whatever the numbers are.

Arrays over a domain are NumPy arrays: object dtype with ``fmpq``, ``arb``, ``Quadratic`` or polynomial entries,
float64 over the reals, int64 residues in [0, p) over GF(p) with p < 2^31, Python integers for larger p, balanced
floats over :class:`BalancedField`. ``+`` and ``-`` of arrays are NumPy's, followed by :meth:`Domain.reduce`; products
are :meth:`Domain.times` and :meth:`Domain.matmul`, and everything else is a method as well. Code written against this
interface runs unchanged over every domain.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar

import numpy as np

from attngeom.errors import DomainError, InputError, SingularError
from attngeom.exact.arrays import Array, check_matrix
from attngeom.exact.modular import Echelon, laplace_expansion


class Domain(ABC):
    """A commutative ring with the array operations that networks need. See the module docstring.

    Ranks, echelon forms, nullspaces and solutions are exact: domains that cannot tell zero from nonzero (floats,
    balls) or cannot divide (polynomials) refuse them with a DomainError.
    """

    name: ClassVar[str]
    is_exact: ClassVar[bool]
    """Whether entries are numbers, so that zero can be told from nonzero: not so for floats and balls."""
    rounds: ClassVar[bool] = False
    """Whether results are rounded without a bound for the error, so that they are estimates: floats."""
    encloses: ClassVar[bool] = False
    """Whether entries are sets that contain the true number: balls."""
    is_rational: ClassVar[bool] = False
    """Whether entries are rational numbers, which have residues modulo almost every prime."""

    @property
    def label(self) -> str:
        """The domain as mathematicians write it."""
        return self.name

    @property
    def written(self) -> str:
        """The domain as files write it, in ASCII."""
        return self.label

    @property
    def degree(self) -> int:
        """The degree over the field below, the number of :meth:`parts`: 1, unless this is an extension."""
        return 1

    @property
    def is_real(self) -> bool:
        """Whether the elements are real numbers."""
        return self.characteristic == 0

    @property
    def characteristic(self) -> int:
        """The least n > 0 with n·1 = 0, or 0."""
        return 0

    @property
    def zero(self) -> Any:
        return self.zeros((1,))[0]

    @property
    def one(self) -> Any:
        return self.eye(1)[0, 0]

    @abstractmethod
    def convert(self, data: Any) -> Array:
        """Coerce nested lists or an array over any other, exactly where entries are exact."""

    def zeros(self, shape: tuple[int, ...]) -> Array:
        zero = self.convert(np.zeros(1, dtype=np.int64))
        array = np.empty(shape, dtype=zero.dtype)
        # Numbers are not changed in place: one zero stands at all places, which large arrays need.
        array.fill(zero[0])
        return array

    def eye(self, n: int) -> Array:
        return self.convert(np.eye(n, dtype=np.int64))

    def random(self, shape: tuple[int, ...], rng: np.random.Generator) -> Array:
        """Random entries: uniform over GF(p), normal floats, integers in [-9, 9] otherwise."""
        return self.convert(rng.integers(-9, 10, size=shape))

    def random_invertible(self, n: int, rng: np.random.Generator) -> Array:
        """A random invertible n×n matrix, by rejection."""
        while True:
            candidate = self.random((n, n), rng)
            try:
                self.inverse(candidate)
            except SingularError:
                continue
            return candidate

    def reduce(self, a: Array) -> Array:
        """Canonical representatives of sums of a few entries (and, but for balanced residues, of products)."""
        return a

    def times(self, a: Any, b: Any) -> Any:
        """The product entry by entry, broadcast; of two numbers, a number."""
        return self.reduce(a * b)

    @abstractmethod
    def invert(self, a: Any) -> Any:
        """1/a entry by entry; SingularError if an entry has no inverse (or none can be certified)."""

    @abstractmethod
    def matmul(self, a: Array, b: Array) -> Array:
        """Matrix product over the last two axes, broadcast over the leading ones."""

    def add(self, a: Array, b: Array) -> Array:
        """a + b entry by entry, broadcast."""
        return self.reduce(a + b)

    def add_products(self, a: Array, b: Array, c: Array, d: Array) -> Array:
        """The sum a b + c d of two matrix products, each as in :meth:`matmul`."""
        return self.add(self.matmul(a, b), self.matmul(c, d))

    @abstractmethod
    def inverse(self, a: Array) -> Array:
        """The inverse of one square matrix; SingularError if there is none (or none can be certified)."""

    def is_zero(self, a: Array) -> bool:
        """Whether every entry is zero. Over balls: certainly zero."""
        return not any(map(bool, a.ravel().tolist()))

    def equal(self, a: Array, b: Array) -> bool:
        """Whether a and b have the same shape and the same entries."""
        return a.shape == b.shape and self.is_zero(self.reduce(a - b))

    def pivot(self, a: Array) -> int:
        """The place in a.ravel() of an entry to divide by, the first nonzero one; SingularError if there is none."""
        place = next((place for place, x in enumerate(a.ravel().tolist()) if x), None)
        if place is None:
            raise no_inverse()
        return place

    def parts(self, a: Array) -> tuple[Array, ...]:
        """The coefficients of the entries over the field below: the entries, unless this is an extension."""
        return (a,)

    def sort_key(self, x: Any) -> Any:
        """What puts numbers in an order, the same in every run; for numbers that Python compares, themselves."""
        return x

    def sqrt(self, x: Any) -> Any | None:
        """A square root of a number, None if the domain has none."""
        raise DomainError(f"square root over {self.name} was asked for; Q, GF(p) or floats are required")

    def exp(self, a: Array) -> Array:
        """The exponentials of the entries, where they are numbers of the domain."""
        raise DomainError(f"an exponential over {self.name} was asked for; softmax and sigmoid need floats or balls")

    def rref(self, a: Array) -> Echelon:
        """The reduced row echelon form, without its zero rows: equal row spaces give equal matrices."""
        raise DomainError(f"domain {self.name} given; exact linear algebra needs QQ, GF(p) or a quadratic field")

    def rank(self, a: Array) -> int:
        """The rank of a matrix, exactly."""
        return self.rref(a).rank

    def nullspace(self, a: Array) -> Array:
        """A basis of {x : a x = 0} as rows, with an identity matrix in the non-pivot columns."""
        return self.kernel(self.rref(a))

    def kernel(self, echelon: Echelon) -> Array:
        """The nullspace of a matrix with this echelon form."""
        free = echelon.free
        basis = self.zeros((len(free), echelon.matrix.shape[1]))
        basis[:, list(echelon.pivots)] = self.reduce(-echelon.matrix[:, free].T)
        basis[:, free] = self.eye(len(free))
        return basis

    def solve(self, a: Array, b: Array) -> Array | None:
        """A solution x of a x = b with zeros in the non-pivot variables, or None if there is none.

        a is m×n; b has m rows and is a vector or a matrix. The solution is unique if and only if rank(a) = n.
        """
        check_matrix(a)
        if b.ndim not in (1, 2) or b.shape[0] != a.shape[0]:
            raise InputError(f"right side of shape {b.shape} given; {a.shape[0]} rows are required")
        n = a.shape[1]
        right = b.reshape(b.shape[0], b.shape[1] if b.ndim == 2 else 1)
        echelon = self.rref(np.concatenate([a, right], axis=1))
        if echelon.pivots and echelon.pivots[-1] >= n:
            return None
        x = self.zeros((n, right.shape[1]))
        x[list(echelon.pivots)] = echelon.matrix[:, n:]
        return x.reshape((n, *b.shape[1:]))

    def det(self, a: Array) -> Any:
        """The determinants over the last two axes; of one matrix, a number. 1 for the 0×0 matrix."""
        n = a.shape[-1]
        if a.ndim < 2 or n != a.shape[-2]:
            raise InputError(f"array of shape {a.shape} given; square matrices are required")
        if n == 0:
            return self.convert(np.ones(a.shape[:-2], dtype=np.int64))[()]
        with self.working():
            if n > 4:
                return self._large_dets(a)
            # The entries of one matrix, or for each place the array of entries of all of them.
            rows = a.tolist() if a.ndim == 2 else [[a[..., i, j] for j in range(n)] for i in range(n)]
            return laplace_expansion(rows, self.reduce)

    def _large_dets(self, a: Array) -> Any:
        """The determinants of n×n matrices, n > 4: one by one."""
        out = np.empty(a.shape[:-2], dtype=object)
        for index in np.ndindex(*a.shape[:-2]):
            out[index] = self._large_det(a[index])
        return out[()]

    def _large_det(self, a: Array) -> Any:
        """The determinant of one n×n matrix, n > 4."""
        return laplace_expansion(a.tolist(), self.reduce)

    def polynomials(self, variables: Sequence[str]) -> Any:
        """FLINT's polynomial ring over this domain in these variables, graded reverse lexicographic."""
        raise DomainError(f"domain {self.name} given; polynomial rings are over QQ or GF(p)")

    def format(self, entry: Any) -> str | float:
        """The entry as a JSON value: exact numbers as strings, floats as numbers."""
        return str(entry)

    @contextmanager
    def working(self) -> Iterator[None]:
        """Set up whatever global state the arithmetic needs (the precision of balls)."""
        yield


def singular(a: Array) -> SingularError:
    """The error for a matrix without an inverse."""
    return SingularError(f"singular {a.shape[0]}×{a.shape[1]} matrix; an invertible one is required")


def no_inverse() -> SingularError:
    """The error for an entry without an inverse."""
    return SingularError("inverse of an entry that may be zero asked for; invertible entries are required")
