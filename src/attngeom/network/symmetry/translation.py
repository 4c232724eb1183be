"""Translations of biases: a constant that is added to outputs at one place, and taken back by biases at another."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from attngeom.errors import InputError
from attngeom.exact.domains import Array, Domain
from attngeom.network.architecture import Architecture
from attngeom.network.symmetry.factor import READING, Between, Draw, GroupFactor, Orders, Place, Tensors, ValueOutput

BIASES = {"u": "c"}
"""Biases that are not called after what they are added to."""


def has_translations(architecture: Architecture) -> bool:
    """Whether constants between layers can be moved: outputs have one, and all that reads them has a bias.

    >>> has_translations(Architecture((2, 2, 2), 1, kind="softmax", bias=True))
    True
    >>> has_translations(Architecture((2, 2, 2), 1, bias=True))
    False
    """
    kind = architecture.mechanism
    if architecture.num_layers == 1 or not architecture.options.get("bias"):
        return False
    letters = architecture.layer(0).tensor_shapes
    reads = [letter for letter in READING if letter in letters]
    constant = architecture.is_factored or kind.adds_value_bias
    return constant and all(BIASES.get(letter, f"b{letter}") in letters for letter in reads)


class Additive(GroupFactor):
    """R^n, columns that are added: what an element adds to the tensors is linear in it."""

    size: int

    @abstractmethod
    def changes(self, element: Array, tensors: Tensors, domain: Domain) -> Tensors:
        """What is added to the tensors."""

    @property
    def count(self) -> int:
        return self.size

    def tangents(self, tensors: Tensors, domain: Domain) -> Iterator[Tensors]:
        for unit in domain.eye(self.size):
            yield self.changes(unit[:, None], tensors, domain)

    def identity(self, domain: Domain) -> Array:
        return domain.zeros((self.size, 1))

    def random(self, rng: np.random.Generator, draw: Draw, domain: Domain) -> Array:
        return np.concatenate([draw(1, rng) for _ in range(self.size)])

    def check(self, element: Any) -> None:
        if np.shape(element) != (self.size, 1):
            raise InputError(f"a translation of shape {np.shape(element)} given; {(self.size, 1)} is required")

    def act(self, element: Array, tensors: Tensors, domain: Domain) -> Tensors:
        return {
            place: domain.reduce(tensors[place] + change)
            for place, change in self.changes(element, tensors, domain).items()
        }

    def compose(self, late: Array, early: Array, domain: Domain) -> Array:
        return domain.reduce(late + early)

    def inverse(self, element: Array, domain: Domain) -> Array:
        return domain.reduce(-element)

    def transposed_inverse(self, element: Array, domain: Domain) -> Array:
        raise InputError("gradients under translations were asked for; no translation moves them so")


@dataclass(frozen=True)
class ValueBias(Additive):
    """c ∈ R^v of a factored head whose weights sum to 1: b_V → b_V + c, b_O → b_O − O c."""

    layer: int
    head: int
    size: int
    name: ClassVar[str] = "value-bias"

    def changes(self, element: Array, tensors: Tensors, domain: Domain) -> Tensors:
        moved = domain.matmul(tensors[self.layer, self.head, "O"], element)
        return {(self.layer, self.head, "bV"): element, (self.layer, None, "bO"): domain.reduce(-moved)}

    def carried_by(self, element: Array, elements: Mapping[GroupFactor, Any], domain: Domain) -> Array:
        basis = elements.get(ValueOutput(self.layer, self.head, self.size))
        return element if basis is None else domain.matmul(basis, element)

    def after(self, orders: Orders) -> ValueBias:
        return replace(self, head=orders[self.layer][self.head]) if self.layer in orders else self


@dataclass(frozen=True)
class Translation(Additive):
    """s ∈ R^d after ``layer``: its outputs become z + s, and every W of the next layer that reads them gets b_W − W s.

    A skip connection carries s along (``is_carried``), so that the next layer subtracts it from its own outputs. Biases
    of keys that cancel stay as they are.
    """

    layer: int
    size: int
    is_carried: bool
    sees_key_bias: bool = True
    name: ClassVar[str] = "translation"

    def changes(self, element: Array, tensors: Tensors, domain: Domain) -> Tensors:
        places: Tensors = dict.fromkeys(self._constants(self.layer, tensors), element)
        for layer, head, letter in tensors:
            if layer == self.layer + 1 and letter in READING and (letter != "K" or self.sees_key_bias):
                moved = domain.matmul(tensors[layer, head, letter], element)
                places[layer, head, BIASES.get(letter, f"b{letter}")] = domain.reduce(-moved)
        if self.is_carried:
            for place in self._constants(self.layer + 1, tensors):
                before = places.get(place)
                places[place] = domain.reduce(-element if before is None else before - element)
        return places

    @staticmethod
    def _constants(layer: int, tensors: Tensors) -> tuple[Place, ...]:
        """The constant of the outputs of a layer: its own bias, or the bias of the values of its one head."""
        shared: Place = (layer, None, "bO")
        return (shared,) if shared in tensors else ((layer, 0, "bV"),)

    def carried_by(self, element: Array, elements: Mapping[GroupFactor, Any], domain: Domain) -> Array:
        basis = elements.get(Between(self.layer, self.size))
        return element if basis is None else domain.matmul(basis, element)
