"""Factors of the symmetry group: what each answers about itself, and those that multiply tensors from one side.

Almost every factor is a general linear group that multiplies some tensors, seen as matrices T with n rows. They are of
two sorts: g carries T to g T, or to g^{-T} T. The function depends on them through the products SᵀT of a dual S with a
carried T alone, and everything else follows from the two lists.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np

from attngeom.errors import InputError
from attngeom.exact.domains import Array, Domain
from attngeom.network.architecture import LayerShape

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


Views = tuple[tuple[str, View], ...]
"""Letters of tensors and how they are seen; letters that a head does not have are passed over."""
READING = ("Q", "K", "V", "G", "w", "u", "Q2", "K2")
"""The letters of the tensors that read the input of a layer."""


@dataclass(frozen=True)
class HeadFactor(LinearFactor):
    """GL(n) of one head, which carries some of its tensors and is dual on others; subclasses say which, and how seen.

    >>> QueryKey(layer=0, head=0, size=3).count, Scale(layer=0, head=0).count
    (9, 1)
    """

    layer: int
    head: int
    size: int
    carried_as: ClassVar[Views]
    dual_as: ClassVar[Views]

    @classmethod
    def of(cls, layer: int, head: int, shape: LayerShape) -> Self:
        """The factor of one head of a layer of that shape."""
        return cls(layer, head, shape.attention)

    def carried(self, tensors: Tensors) -> tuple[Slot, ...]:
        return self.slots(self.carried_as, tensors)

    def dual(self, tensors: Tensors) -> tuple[Slot, ...]:
        return self.slots(self.dual_as, tensors)

    def slots(self, views: Views, tensors: Tensors) -> tuple[Slot, ...]:
        """The tensors of these letters that the head has."""
        slots = (Slot((self.layer, self.head, letter), view) for letter, view in views)
        return tuple(slot for slot in slots if slot.place in tensors)

    def after(self, orders: Orders) -> Self:
        return replace(self, head=orders[self.layer][self.head]) if self.layer in orders else self


@dataclass(frozen=True)
class QueryKey(HeadFactor):
    """C ∈ GL(a): K → C K, Q → C^{-T} Q fixes the scores, (s1) of [G], Lemma 3.1; the moment is K Kᵀ − Q Qᵀ."""

    name: ClassVar[str] = "query-key"
    carried_as: ClassVar[Views] = (("K", "rows"), ("bK", "rows"))
    dual_as: ClassVar[Views] = (("Q", "rows"), ("bQ", "rows"))


@dataclass(frozen=True)
class QueryKeyBesideBias(QueryKey):
    """C ∈ GL(a) of a head that does not see the bias of its keys: K → C K, (Q, b_Q) → C^{-T} (Q, b_Q)."""

    carried_as: ClassVar[Views] = (("K", "rows"),)


@dataclass(frozen=True)
class SecondQueryKey(QueryKey):
    """The query-key group of the second map of differential attention."""

    name: ClassVar[str] = "second-query-key"
    carried_as: ClassVar[Views] = (("K2", "rows"),)
    dual_as: ClassVar[Views] = (("Q2", "rows"),)


@dataclass(frozen=True)
class Scale(HeadFactor):
    """λ ∈ GL(1), a 1×1 array, of a head whose weights are linear in its scores: Q → λ Q, V → V/λ; (s3) of [G], Eq 13.

    The moment is ‖Q‖² − ‖V‖².
    """

    size: int = field(default=1, init=False)
    name: ClassVar[str] = "scale"
    carried_as: ClassVar[Views] = (("Q", "entries"), ("bQ", "entries"), ("m", "entries"))
    dual_as: ClassVar[Views] = (("V", "entries"), ("bV", "entries"))

    @classmethod
    def of(cls, layer: int, head: int, shape: LayerShape) -> Self:
        return cls(layer, head)


@dataclass(frozen=True)
class ValueOutput(HeadFactor):
    """B ∈ GL(v) of a factored head: V → B V, O → O B^{-1} fixes the value map O V; the moment is V Vᵀ − Oᵀ O."""

    name: ClassVar[str] = "value-output"
    carried_as: ClassVar[Views] = (("V", "rows"), ("bV", "rows"))
    dual_as: ClassVar[Views] = (("O", "columns"),)

    @classmethod
    def of(cls, layer: int, head: int, shape: LayerShape) -> Self:
        return cls(layer, head, shape.value_width or 0)


@dataclass(frozen=True)
class Between(LinearFactor):
    """D ∈ GL(d) after ``layer``: its value maps become D V (or D O), the next layer reads Q, K, V times D^{-1}.

    A change of basis that no skip connection hinders, (s2) of [G], Lemma 3.5. The moment is
    Σ V Vᵀ − Σ (Qᵀ Q + Kᵀ K + Vᵀ V), with O for V in factored heads of the first sum.
    """

    layer: int
    size: int
    name: ClassVar[str] = "between"

    def carried(self, tensors: Tensors) -> tuple[Slot, ...]:
        own = [place for place in tensors if place[0] == self.layer]
        letters = ("O", "bO") if any(letter == "O" for _, _, letter in own) else ("V", "bV")
        return tuple(Slot(place) for place in own if place[2] in letters)

    def dual(self, tensors: Tensors) -> tuple[Slot, ...]:
        return tuple(Slot(place, "columns") for place in tensors if place[0] == self.layer + 1 and place[2] in READING)
