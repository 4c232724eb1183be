"""The contract of a factor of the symmetry group: how it acts, is drawn, counted, differentiated and fixed.

Almost every factor is a general linear group that multiplies some tensors, seen as matrices T with n rows. They are of
two sorts: g carries T to g T, or to g^{-T} T. The function depends on them through the products SᵀT of a dual S with a
carried T alone, and everything else follows from the two lists.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from attngeom.errors import InputError
from attngeom.exact.domains import Array, Domain

if TYPE_CHECKING:
    from attngeom.groups.balance import Balanced

Place = tuple[int, int | None, str]
"""Layer, head and letter of a tensor; no head for one that all heads share."""
Tensors = dict[Place, Array]
View = Literal["rows", "columns", "entries"]
"""A matrix as it is, transposed, or all its entries as one row."""
Draw = Callable[[int, np.random.Generator], Array]
Orders = dict[int, tuple[int, ...]]
"""For each layer the new place of each head."""


class GroupFactor(ABC):
    """One factor of the symmetry group of a network; elements of linear factors are n×n arrays."""

    name: ClassVar[str]

    @property
    def count(self) -> int:
        """The dimension of the group: 0 for finite ones."""
        return 0

    def tangents(self, tensors: Tensors, domain: Domain) -> Iterator[Tensors]:
        """The changes of the tensors along a basis of the Lie algebra."""
        return iter(())

    @abstractmethod
    def identity(self, domain: Domain) -> Any:
        """The neutral element."""

    @abstractmethod
    def random(self, rng: np.random.Generator, draw: Draw, domain: Domain) -> Any:
        """A random element over a domain; ``draw(n, rng)`` gives an invertible n×n matrix."""

    @abstractmethod
    def check(self, element: Any) -> None:
        """InputError unless the element has the right shape."""

    @abstractmethod
    def act(self, element: Any, tensors: Tensors, domain: Domain) -> Tensors:
        """The tensors moved by the element."""

    @abstractmethod
    def compose(self, late: Any, early: Any, domain: Domain) -> Any:
        """The element that acts as ``early`` and then as ``late``."""

    @abstractmethod
    def inverse(self, element: Any, domain: Domain) -> Any:
        """The inverse element."""

    @abstractmethod
    def transposed_inverse(self, element: Any, domain: Domain) -> Any:
        """The element whose action is the inverse transpose of the action on weight space: how gradients move."""

    def carried_by(self, element: Any, elements: Mapping[GroupFactor, Any], domain: Domain) -> Any:
        """The element once the other factors have acted by ``elements``: the same where they commute with it."""
        return element

    def after(self, orders: Orders) -> GroupFactor:
        """The same factor once the heads have moved to new places."""
        return self


@dataclass(frozen=True)
class Slot:
    """A tensor seen as a matrix with n rows."""

    place: Place
    view: View = "rows"

    def see(self, array: Array) -> Array:
        """The matrix with n rows."""
        if self.view == "rows":
            return array
        return array.T if self.view == "columns" else array.reshape(1, -1)

    def restore(self, matrix: Array, like: Array) -> Array:
        """The tensor of the shape of ``like`` that is seen as ``matrix``."""
        if self.view == "rows":
            return matrix
        return np.ascontiguousarray(matrix.T) if self.view == "columns" else matrix.reshape(like.shape)

    def multiply(self, g: Array, array: Array, domain: Domain) -> Array:
        """The tensor that is seen as g times what is seen now."""
        if self.view == "columns":
            return domain.matmul(array, g.T)
        return self.restore(domain.matmul(g, self.see(array)), array)


class LinearFactor(GroupFactor):
    """GL(n): ``carried`` tensors T become g T and ``dual`` tensors S become g^{-T} S.

    Along E in the Lie algebra Ṫ = E T and Ṡ = −Eᵀ S. The gradient of half the squared norm along the orbit is the
    moment Σ T Tᵀ − Σ S Sᵀ, which gradient flow on a loss of the function conserves.
    """

    size: int
    """n."""
    law: ClassVar[str] = "{0} − {1}"
    """What gradient flow conserves, from the sums of squares of the carried and of the dual tensors."""

    @abstractmethod
    def carried(self, tensors: Tensors) -> Sequence[Slot]:
        """The tensors that are multiplied by g."""

    @abstractmethod
    def dual(self, tensors: Tensors) -> Sequence[Slot]:
        """The tensors that are multiplied by the inverse transpose of g."""

    @property
    def count(self) -> int:
        """The dimension of the group."""
        return self.size**2

    def identity(self, domain: Domain) -> Array:
        return domain.eye(self.size)

    def random(self, rng: np.random.Generator, draw: Draw, domain: Domain) -> Array:
        return draw(self.size, rng)

    def check(self, element: Any) -> None:
        if np.shape(element) != (self.size, self.size):
            raise InputError(
                f"{self.name} matrix of shape {np.shape(element)} given; shape {(self.size, self.size)} is required"
            )

    def act(self, element: Array, tensors: Tensors, domain: Domain) -> Tensors:
        return self._multiply(element, domain.inverse(element).T, tensors, domain)

    def _multiply(self, g: Array, dual: Array, tensors: Tensors, domain: Domain) -> Tensors:
        moved = {x.place: x.multiply(g, tensors[x.place], domain) for x in self.carried(tensors)}
        return moved | {x.place: x.multiply(dual, tensors[x.place], domain) for x in self.dual(tensors)}

    def compose(self, late: Array, early: Array, domain: Domain) -> Array:
        return domain.matmul(late, early)

    def inverse(self, element: Array, domain: Domain) -> Array:
        return domain.inverse(element)

    def transposed_inverse(self, element: Array, domain: Domain) -> Array:
        return np.ascontiguousarray(domain.inverse(element).T)

    def tangent(self, direction: Array, tensors: Tensors, domain: Domain) -> Tensors:
        """The changes E T and −Eᵀ S of the tensors along one E."""
        return self._multiply(direction, domain.reduce(-direction.T), tensors, domain)

    @property
    def num_symmetric(self) -> int:
        """The number of :meth:`symmetric_generators`, counted without making them."""
        return self.size * (self.size + 1) // 2

    def symmetric_generators(self) -> Iterator[Array]:
        """A basis of the symmetric matrices of the Lie algebra, whose moments gradient flow conserves."""
        for i in range(self.size):
            for j in range(i, self.size):
                unit = np.zeros((self.size, self.size), dtype=np.int64)
                unit[i, j] = unit[j, i] = 1
                yield unit

    def tangents(self, tensors: Tensors, domain: Domain) -> Iterator[Tensors]:
        """:meth:`tangent` for each elementary E_ij, row by row: row j of T moves to row i, row i of S to row j."""
        signs = [(x, 1) for x in self.carried(tensors)] + [(x, -1) for x in self.dual(tensors)]
        for i, j in np.ndindex(self.size, self.size):
            changes = {}
            for slot, sign in signs:
                seen = slot.see(tensors[slot.place])
                out = domain.zeros(seen.shape)
                out[i if sign == 1 else j] = domain.reduce(sign * seen[j if sign == 1 else i])
                changes[slot.place] = slot.restore(out, tensors[slot.place])
            yield changes

    def grams(self, tensors: Tensors, domain: Domain) -> tuple[Array, Array]:
        """Σ T Tᵀ over the carried tensors and Σ S Sᵀ over the dual ones."""
        T, S = self.stacks(tensors)
        return domain.matmul(T, T.T), domain.matmul(S, S.T)

    def moment(self, tensors: Tensors, domain: Domain) -> Array:
        """Σ T Tᵀ − Σ S Sᵀ: zero where the norm is least on the orbit, and conserved by gradient flow."""
        carried, dual = self.grams(tensors, domain)
        return domain.reduce(carried - dual)

    def stacks(self, tensors: Tensors) -> tuple[Array, Array]:
        """The carried tensors side by side as one matrix T, and the dual ones as S."""
        T, S = (
            np.concatenate([x.see(tensors[x.place]) for x in slots], axis=1)
            for slots in (self.carried(tensors), self.dual(tensors))
        )
        return T, S

    def fix(self, tensors: Tensors) -> tuple[Balanced, Tensors]:
        """The float tensors of least norm in the closure of the orbit under this factor, and the way there.

        T Tᵀ = S Sᵀ is diagonal and decreasing; the products SᵀT, on which the function depends, stay as they are.
        """
        # Gauges of floats are no part of what a verifier loads.
        from attngeom.groups.balance import balance

        balanced = balance(*self.stacks(tensors))
        moved = {}
        for slots, stack in ((self.carried(tensors), balanced.T), (self.dual(tensors), balanced.S)):
            widths = np.cumsum([x.see(tensors[x.place]).shape[1] for x in slots])[:-1]
            for slot, part in zip(slots, np.split(stack, widths, axis=1)):
                moved[slot.place] = slot.restore(np.ascontiguousarray(part), tensors[slot.place])
        return balanced, moved
