"""Smaller groups than GL that kinds of attention leave: rotations, scales and orders of channels, translations."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self

import numpy as np

from attngeom.errors import InputError
from attngeom.exact.domains import Array, Domain
from attngeom.network.architecture import LayerShape
from attngeom.network.symmetry.factor import (
    Between,
    Draw,
    GroupFactor,
    HeadFactor,
    Orders,
    Place,
    QueryKey,
    Scale,
    SecondQueryKey,
    Tensors,
    ValueOutput,
    Views,
)
from attngeom.network.symmetry.translation import Additive


class Subgroup(HeadFactor):
    """A closed subgroup of GL(n), whose elements are n×n matrices; it acts as :class:`LinearFactor` says."""

    @abstractmethod
    def generators(self) -> Iterator[Array]:
        """A basis of the Lie algebra, as integer matrices."""

    @property
    def count(self) -> int:
        return sum(1 for _ in self.generators())

    @property
    def num_symmetric(self) -> int:
        return sum(1 for _ in self.symmetric_generators())

    def symmetric_generators(self) -> Iterator[Array]:
        return (matrix for matrix in self.generators() if np.array_equal(matrix, matrix.T))

    def tangents(self, tensors: Tensors, domain: Domain) -> Iterator[Tensors]:
        return (self.tangent(domain.convert(matrix), tensors, domain) for matrix in self.generators())

    def moment(self, tensors: Tensors, domain: Domain) -> Array:
        """The part of Σ T Tᵀ − Σ S Sᵀ that is conserved: its components along the symmetric generators."""
        whole = super().moment(tensors, domain)
        total = domain.zeros(whole.shape)
        for matrix in self.symmetric_generators():
            unit = domain.convert(matrix)
            size = domain.convert(np.full(1, int((matrix * matrix).sum())))
            part = domain.reduce(np.asarray(domain.times(unit, whole).sum()).reshape(1))
            total = domain.reduce(total + domain.times(unit, domain.times(part, domain.invert(size))))
        return total

    def stacks(self, tensors: Tensors) -> tuple[Array, Array]:
        if self.dual_as:
            return super().stacks(tensors)
        T = np.concatenate([x.see(tensors[x.place]) for x in self.carried(tensors)], axis=1)
        return T, T[:, :0]


@dataclass(frozen=True)
class QueryKeyRotation(Subgroup):
    """C ∈ O(a): K → C K, Q → C Q, which fixes k·q and k·k, all that the delta rule sees."""

    name: ClassVar[str] = "query-key-rotation"
    carried_as: ClassVar[Views] = QueryKey.carried_as
    dual_as: ClassVar[Views] = QueryKey.dual_as

    @property
    def count(self) -> int:
        return self.size * (self.size - 1) // 2

    @property
    def num_symmetric(self) -> int:
        """None: the Lie algebra of rotations is skew."""
        return 0

    def generators(self) -> Iterator[Array]:
        for i in range(self.size):
            for j in range(i + 1, self.size):
                unit = np.zeros((self.size, self.size), dtype=np.int64)
                unit[i, j], unit[j, i] = 1, -1
                yield unit

    def random(self, rng: np.random.Generator, draw: Draw, domain: Domain) -> Array:
        """(1 − S)(1 + S)^{-1} with a random skew S, times signs."""
        signs = domain.convert(np.diag(rng.choice([-1, 1], size=self.size)))
        while True:
            M = draw(self.size, rng)
            skew, one = domain.reduce(M - M.T), domain.eye(self.size)
            try:
                return domain.matmul(
                    signs, domain.matmul(domain.reduce(one - skew), domain.inverse(domain.reduce(one + skew)))
                )
            except ArithmeticError:
                continue


@dataclass(frozen=True)
class Channels(Subgroup):
    """(R*)^a ⋊ S_a, monomial matrices: row j of K times c_j, row j of Q divided by it, and the channels permuted.

    Gates of the channels are permuted with them.
    """

    name: ClassVar[str] = "channels"
    law: ClassVar[str] = "diagonal of {0} − {1}"
    carried_as: ClassVar[Views] = QueryKey.carried_as
    dual_as: ClassVar[Views] = QueryKey.dual_as
    gates: ClassVar[tuple[str, ...]] = ("G", "bG")

    def generators(self) -> Iterator[Array]:
        for i in range(self.size):
            unit = np.zeros((self.size, self.size), dtype=np.int64)
            unit[i, i] = 1
            yield unit

    def random(self, rng: np.random.Generator, draw: Draw, domain: Domain) -> Array:
        element = domain.zeros((self.size, self.size))
        for i, j in enumerate(rng.permutation(self.size)):
            element[i, j] = self.number(rng, draw, domain)
        return element

    def number(self, rng: np.random.Generator, draw: Draw, domain: Domain) -> Any:
        """A random entry of an element."""
        return draw(1, rng)[0, 0]

    def check(self, element: Any) -> None:
        super().check(element)
        pattern = np.asarray(element != 0, dtype=np.int64)
        if not (np.all(pattern.sum(axis=0) == 1) and np.all(pattern.sum(axis=1) == 1)):
            raise InputError(f"a matrix that is not monomial given; {self.name} have one entry in each row and column")

    def act(self, element: Array, tensors: Tensors, domain: Domain) -> Tensors:
        order = np.argmax(np.asarray(element != 0), axis=1)
        places: list[Place] = [(self.layer, self.head, letter) for letter in self.gates]
        permuted = {place: np.ascontiguousarray(tensors[place][order]) for place in places if place in tensors}
        return super().act(element, tensors, domain) | permuted


@dataclass(frozen=True)
class SignedChannels(Channels):
    """{±1}^a ⋊ S_a, signed permutations of the channels."""

    name: ClassVar[str] = "signed-channels"

    def generators(self) -> Iterator[Array]:
        return iter(())

    def number(self, rng: np.random.Generator, draw: Draw, domain: Domain) -> Any:
        return domain.convert(rng.choice([-1, 1], size=1))[0]


@dataclass(frozen=True)
class ChannelOrder(SignedChannels):
    """S_a, permutations of the channels."""

    name: ClassVar[str] = "channel-order"

    def number(self, rng: np.random.Generator, draw: Draw, domain: Domain) -> Any:
        return domain.one


@dataclass(frozen=True)
class ValueOrder(ChannelOrder):
    """S_v, permutations of value channels that are no linear functions: rows of V and columns of O."""

    name: ClassVar[str] = "value-order"
    carried_as: ClassVar[Views] = ValueOutput.carried_as
    dual_as: ClassVar[Views] = ValueOutput.dual_as
    gates: ClassVar[tuple[str, ...]] = ()

    @classmethod
    def of(cls, layer: int, head: int, shape: LayerShape) -> Self:
        return cls(layer, head, shape.value_width or 0)


@dataclass(frozen=True)
class BetweenOrder(Between):
    """S_d after ``layer``, whose outputs are channels that are no linear functions: permutations, of dimension 0."""

    name: ClassVar[str] = "between-order"

    @property
    def count(self) -> int:
        return 0

    @property
    def num_symmetric(self) -> int:
        return 0

    def symmetric_generators(self) -> Iterator[Array]:
        return iter(())

    def tangents(self, tensors: Tensors, domain: Domain) -> Iterator[Tensors]:
        return iter(())

    def random(self, rng: np.random.Generator, draw: Draw, domain: Domain) -> Array:
        return domain.eye(self.size)[rng.permutation(self.size)]


@dataclass(frozen=True)
class PlaneScale(Subgroup):
    """(C*)^{a/2}: a complex number for each plane of rotary embeddings, which commutes with its rotations."""

    name: ClassVar[str] = "plane-scale"
    law: ClassVar[str] = "traces of the planes of {0} − {1}"
    carried_as: ClassVar[Views] = QueryKey.carried_as
    dual_as: ClassVar[Views] = QueryKey.dual_as

    def generators(self) -> Iterator[Array]:
        for i in range(0, self.size, 2):
            for block in ([[1, 0], [0, 1]], [[0, -1], [1, 0]]):
                unit = np.zeros((self.size, self.size), dtype=np.int64)
                unit[i : i + 2, i : i + 2] = block
                yield unit

    def random(self, rng: np.random.Generator, draw: Draw, domain: Domain) -> Array:
        element = domain.zeros((self.size, self.size))
        for i in range(0, self.size, 2):
            x, y = draw(1, rng)[0, 0], draw(1, rng)[0, 0]
            block = np.array([[x, -y], [y, x]], dtype=element.dtype)
            element[i : i + 2, i : i + 2] = domain.reduce(block)
        return element


@dataclass(frozen=True)
class SecondPlaneScale(PlaneScale):
    """The complex numbers of the planes of the second map of differential attention."""

    name: ClassVar[str] = "second-plane-scale"
    carried_as: ClassVar[Views] = SecondQueryKey.carried_as
    dual_as: ClassVar[Views] = SecondQueryKey.dual_as


@dataclass(frozen=True)
class PositiveScale(Subgroup):
    """λ > 0, a 1×1 array, that multiplies some tensors and nothing else."""

    size: int = field(default=1, init=False)
    dual_as: ClassVar[Views] = ()

    @classmethod
    def of(cls, layer: int, head: int, shape: LayerShape) -> Self:
        return cls(layer, head)

    def generators(self) -> Iterator[Array]:
        yield np.ones((1, 1), dtype=np.int64)

    def random(self, rng: np.random.Generator, draw: Draw, domain: Domain) -> Array:
        number = draw(1, rng)
        return np.asarray(domain.times(number, number))


@dataclass(frozen=True)
class QueryScale(PositiveScale):
    """Q → λ Q, where sizes of queries cancel; the moment is ‖Q‖²."""

    name: ClassVar[str] = "query-scale"
    carried_as: ClassVar[Views] = (("Q", "entries"), ("bQ", "entries"))


@dataclass(frozen=True)
class KeyScale(PositiveScale):
    """K → λ K, where sizes of keys cancel; the moment is ‖K‖²."""

    name: ClassVar[str] = "key-scale"
    carried_as: ClassVar[Views] = (("K", "entries"), ("bK", "entries"))


@dataclass(frozen=True)
class SquareScale(Scale):
    """Q → λ Q, V → V/λ², where scores are squares of queries; the moment is ‖Q‖² − 2‖V‖²."""

    name: ClassVar[str] = "square-scale"
    law: ClassVar[str] = "{0} − 2 {1}"

    def act(self, element: Array, tensors: Tensors, domain: Domain) -> Tensors:
        inverse = domain.inverse(element)
        return self._multiply(element, domain.matmul(inverse, inverse), tensors, domain)

    def tangent(self, direction: Array, tensors: Tensors, domain: Domain) -> Tensors:
        return self._multiply(direction, domain.reduce(-direction - direction), tensors, domain)

    def tangents(self, tensors: Tensors, domain: Domain) -> Iterator[Tensors]:
        yield self.tangent(domain.eye(1), tensors, domain)

    def moment(self, tensors: Tensors, domain: Domain) -> Array:
        carried, dual = self.grams(tensors, domain)
        return domain.reduce(carried - dual - dual)


@dataclass(frozen=True)
class HeadPart(GroupFactor):
    """A factor of one head that is no linear group."""

    layer: int
    head: int
    size: int

    @classmethod
    def of(cls, layer: int, head: int, shape: LayerShape) -> Self:
        return cls(layer, head, shape.attention)

    def after(self, orders: Orders) -> Self:
        return replace(self, head=orders[self.layer][self.head]) if self.layer in orders else self

    def transposed_inverse(self, element: Any, domain: Domain) -> Any:
        return element


@dataclass(frozen=True)
class ScaleSign(HeadPart):
    """{±1}: the sign of Q and V, where their sizes are not scaled together."""

    name: ClassVar[str] = "scale-sign"

    def identity(self, domain: Domain) -> int:
        return 1

    def random(self, rng: np.random.Generator, draw: Draw, domain: Domain) -> int:
        return int(rng.choice([-1, 1]))

    def check(self, element: Any) -> None:
        if element not in (-1, 1):
            raise InputError(f"{str(element)[:40]} given; a sign is required")

    def act(self, element: int, tensors: Tensors, domain: Domain) -> Tensors:
        places: list[Place] = [(self.layer, self.head, letter) for letter in ("Q", "bQ", "V", "bV")]
        return {place: domain.reduce(element * tensors[place]) for place in places if place in tensors}

    def compose(self, late: int, early: int, domain: Domain) -> int:
        return late * early

    def inverse(self, element: int, domain: Domain) -> int:
        return element


@dataclass(frozen=True)
class KeyBias(HeadPart, Additive):
    """R^a: the bias of the keys of normalised attention, which no output sees, moves freely."""

    name: ClassVar[str] = "key-bias"

    def changes(self, element: Array, tensors: Tensors, domain: Domain) -> Tensors:
        return {(self.layer, self.head, "bK"): element}

    def transposed_inverse(self, element: Array, domain: Domain) -> Array:
        return domain.zeros(element.shape)
