"""Polynomials in named variables as a domain: networks with symbolic weights are networks over it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from flint import nmod

from attngeom.errors import DomainError, InputError
from attngeom.exact.arrays import Array, check_product, check_square
from attngeom.exact.domains.domain import Domain
from attngeom.exact.domains.rationals import QQ


@dataclass(frozen=True)
class PolynomialDomain(Domain):
    """The ring of polynomials in ``variables`` over Q or GF(p); equality of arrays is an identity of polynomials.

    Matrices with constant entries have inverses; ranks and solutions are refused, for this is no field.

    >>> R = PolynomialDomain(("x", "y"))
    >>> R.det(R.convert([[R.variable("x"), 1], [2, R.variable("y")]]))
    x*y - 2
    """

    variables: tuple[str, ...]
    base: Domain = QQ
    first: int = 1
    ring: Any = field(init=False, repr=False, compare=False)
    name: ClassVar[str] = "polynomials"
    is_exact: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if len(set(self.variables)) != len(self.variables):
            raise InputError("repeated variable given; distinct names are required")
        object.__setattr__(self, "ring", self.base.polynomials(self.variables))

    @classmethod
    def of(cls, first: int = 1, base: Domain = QQ, /, **shapes: tuple[int, int]) -> PolynomialDomain:
        """The ring whose variables are the entries of generic matrices of these shapes, counted from ``first``.

        >>> PolynomialDomain.of(0, K=(1, 2)).variables
        ('K_0_0', 'K_0_1')
        """
        return cls(
            tuple(name for letter, shape in shapes.items() for name in _names(letter, *shape, first)), base, first
        )

    @property
    def label(self) -> str:
        return f"{self.base.label}[{', '.join(self.variables)}]"

    @property
    def characteristic(self) -> int:
        return self.base.characteristic

    def variable(self, name: str) -> Any:
        """The polynomial that is this variable."""
        if name not in self.variables:
            raise InputError(f"variable {name[:40]!r} given; one of the {len(self.variables)} of the ring is required")
        return self.ring.gen(self.ring.variable_to_index(name))

    def matrix(self, letter: str, rows: int, columns: int) -> Array:
        """The generic matrix with entries letter_i_j.

        >>> PolynomialDomain.of(K=(1, 2)).matrix("K", 1, 2).tolist()
        [[K_1_1, K_1_2]]
        """
        return self._fill([self.variable(name) for name in _names(letter, rows, columns, self.first)], rows, columns)

    def _fill(self, entries: list[Any], *shape: int) -> Array:
        # From an iterator: NumPy would take a polynomial in a list for a sequence of terms.
        return np.fromiter(entries, dtype=object, count=len(entries)).reshape(shape)

    def _entry(self, x: Any) -> Any:
        if hasattr(x, "context"):
            if x.context() is not self.ring and x.context() != self.ring:
                raise InputError("polynomial of another ring given; polynomials of one ring are required")
            return x
        return self.ring.constant(self.base.convert([x])[0])

    def convert(self, data: Any) -> Array:
        if isinstance(data, np.ndarray):
            entries, shape = data.ravel().tolist(), data.shape
        else:
            entries, shape = _flatten(data)
        plain = iter(self.base.convert([x for x in entries if not hasattr(x, "context")]).tolist())
        polynomials = [self._entry(x) if hasattr(x, "context") else self.ring.constant(next(plain)) for x in entries]
        return self._fill(polynomials, *shape)

    def constants(self, a: Array) -> Array:
        """The array over the base of an array of constants; DomainError if an entry is not constant."""
        if not all(x.is_constant() for x in a.ravel().tolist()):
            raise DomainError("polynomials of positive degree given; a field is required, give them values first")
        values = [x.leading_coefficient() if x else 0 for x in a.ravel().tolist()]
        return self.base.convert([int(c) if isinstance(c, nmod) else c for c in values]).reshape(a.shape)

    def times(self, a: Any, b: Any) -> Any:
        a, b = (x if isinstance(x, np.ndarray) else self._fill([self._entry(x)]) for x in (a, b))
        return a * b

    def invert(self, a: Any) -> Any:
        array = a if isinstance(a, np.ndarray) else self._fill([self._entry(a)])
        return self.convert(self.base.invert(self.constants(array)))[()]

    def matmul(self, a: Array, b: Array) -> Array:
        check_product(a, b)
        product = np.matmul(a, b)
        return product if a.shape[-1] else self.zeros(product.shape)

    def inverse(self, a: Array) -> Array:
        check_square(a)
        return self.convert(self.base.inverse(self.constants(a)))

    def random(self, shape: tuple[int, ...], rng: np.random.Generator) -> Array:
        """Random constants."""
        return self.convert(self.base.random(shape, rng))


def _names(letter: str, rows: int, columns: int, first: int) -> list[str]:
    return [f"{letter}_{i + first}_{j + first}" for i in range(rows) for j in range(columns)]


def _flatten(data: Any) -> tuple[list[Any], tuple[int, ...]]:
    """The entries of nested lists and their shape."""
    if not isinstance(data, (list, tuple)):
        return [data], ()
    parts = [_flatten(part) for part in data]
    if len({shape for _, shape in parts}) > 1:
        raise InputError("ragged array given; rows of equal length are required")
    return [entry for entries, _ in parts for entry in entries], (len(parts), *(parts[0][1] if parts else ()))
