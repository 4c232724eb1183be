"""Elements of the symmetry group of an architecture, and their JSON.

For each layer i and head h: C (query-key), λ (scale), B (value-output); an order of the heads; between consecutive
layers D_i. Together they act by

    K → C K D_{i-1}^{-1},  Q → λ C^{-T} Q D_{i-1}^{-1},
    V → λ^{-1} D_i V D_{i-1}^{-1}                       (one matrix), or
    V → λ^{-1} B V D_{i-1}^{-1},  O → D_i O B^{-1}      (factored),

and then head h moves to place π(h). These are (s1), (s2) and the scales (s3) of [G]: the scales of (M, L) that satisfy
[G] Eq 13 are those of the layers combined with scalar D_i.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

import numpy as np

from attngeom.errors import InputError
from attngeom.exact import lapack
from attngeom.exact.domains import RR, Array, Domain
from attngeom.limits.trials import ADDITION_ROUNDS
from attngeom.network.architecture import Architecture
from attngeom.network.symmetry.factor import (
    Between,
    Draw,
    GroupFactor,
    HeadFactor,
    LinearFactor,
    Orders,
    QueryKey,
    Scale,
    ValueOutput,
)
from attngeom.network.symmetry.group import HeadOrder, factors, linear_factors, tensors_of, weights_of
from attngeom.network.symmetry.smaller import HeadPart
from attngeom.network.symmetry.translation import Translation, ValueBias
from attngeom.network.weights import Weights


@dataclass(frozen=True, eq=False)
class Symmetry:
    """A group element for one architecture: an element for each factor, the neutral one where none is given.

    >>> from attngeom.exact import QQ
    >>> Symmetry(Architecture((2, 3, 2), 1), QQ, {Between(0, 3): QQ.eye(3) * 2}).between[0][0, 0]
    2
    """

    architecture: Architecture
    domain: Domain
    elements: Mapping[GroupFactor, Any]

    def __post_init__(self) -> None:
        known = factors(self.architecture)
        for factor in self.elements.keys() - set(known):
            raise InputError(f"{factor} given; this {self.architecture.kind} network has no such symmetry")
        complete = {factor: self.elements.get(factor) for factor in known}
        for factor, element in complete.items():
            if element is None:
                complete[factor] = factor.identity(self.domain)
            else:
                factor.check(element)
        object.__setattr__(self, "elements", MappingProxyType(complete))

    @property
    def between(self) -> tuple[Array, ...]:
        """D_1..D_{l-1}; none for residual networks."""
        return tuple(element for factor, element in self.elements.items() if isinstance(factor, Between))

    @property
    def orders(self) -> Orders:
        """The new places of the heads of each layer."""
        return {factor.layer: element for factor, element in self.elements.items() if isinstance(factor, HeadOrder)}

    def apply(self, weights: Weights) -> Weights:
        """g · W, with the same function as W: exactly over exact domains, to rounding over floats."""
        if self.architecture != weights.architecture or self.domain != weights.domain:
            raise InputError("a symmetry of another architecture or domain was given; it must match the weights")
        tensors = tensors_of(weights)
        for factor, element in self.elements.items():
            tensors |= factor.act(element, tensors, self.domain)
        return weights_of(self.architecture, tensors, self.domain)

    def compose(self, first: Symmetry) -> Symmetry:
        """The element that acts as ``first`` and then as ``self``."""
        orders = first.orders
        elements = {}
        for factor, early in first.elements.items():
            moved = factor.after(orders)
            carried = moved.carried_by(early, self.elements, self.domain)
            elements[factor] = factor.compose(self.elements[moved], carried, self.domain)
        return replace(self, elements=elements)

    def inverse(self) -> Symmetry:
        """The inverse element."""
        orders, parts = self.orders, self.elements.items()
        inverses = {x.after(orders): x.inverse(element, self.domain) for x, element in parts}
        return replace(self, elements={x: x.carried_by(y, inverses, self.domain) for x, y in inverses.items()})

    def transposed_inverse(self) -> Symmetry:
        """The element that moves gradients of losses of the function: the inverse transpose of the action."""
        parts = self.elements.items()
        return replace(self, elements={x: x.transposed_inverse(element, self.domain) for x, element in parts})


def identity_symmetry(architecture: Architecture, domain: Domain) -> Symmetry:
    """The neutral element."""
    return Symmetry(architecture, domain, {})


def random_symmetry(architecture: Architecture, domain: Domain, seed: int) -> Symmetry:
    """A random group element from a seed.

    >>> from attngeom.exact import QQ
    >>> random_symmetry(Architecture((2, 3, 2), 1), QQ, seed=0).between[0].shape
    (3, 3)
    """
    return _draw_symmetry(architecture, domain, seed, domain.random_invertible)


def random_unimodular_symmetry(architecture: Architecture, domain: Domain, seed: int) -> Symmetry:
    """A random group element of integer matrices with determinant ±1: it carries integer weights to integer weights.

    Each matrix is a signed permutation followed by six rounds of additions ± of one half of the rows to the other, so
    that its entries and those of its inverse are at most 2^6; most are below 5.

    >>> from attngeom.exact import QQ
    >>> abs(QQ.det(random_unimodular_symmetry(Architecture((2, 3, 2), 1), QQ, seed=0).between[0]))
    1
    """
    return _draw_symmetry(
        architecture, domain, seed, lambda size, rng: domain.convert(_random_unimodular_matrix(size, rng))
    )


def _random_unimodular_matrix(size: int, rng: np.random.Generator) -> Array:
    matrix = np.asarray(np.eye(size, dtype=np.int64)[rng.permutation(size)] * rng.choice([-1, 1], size=size))
    for _ in range(ADDITION_ROUNDS):
        places = rng.permutation(size)
        targets, sources = places[: size // 2], places[size // 2 : size // 2 * 2]
        matrix[targets] += rng.choice([-1, 1], size=(len(targets), 1)) * matrix[sources]
    return matrix


def _draw_symmetry(architecture: Architecture, domain: Domain, seed: int, draw: Draw) -> Symmetry:
    rng = np.random.default_rng(seed)
    return Symmetry(
        architecture, domain, {factor: factor.random(rng, draw, domain) for factor in factors(architecture)}
    )


Direction = dict[LinearFactor, Array]
"""An element of the Lie algebra: an n×n matrix for each linear factor of the group."""


def moments(weights: Weights) -> Direction:
    """The moment map: the gradient of half the squared norm along the orbit, a symmetric matrix for each factor.

    It vanishes exactly where the norm is least on a closed orbit (Kempf and Ness); gradient flow on a loss of the
    function conserves it.

    >>> from attngeom.exact import QQ
    >>> w = Weights.from_vector(Architecture((1, 1), 1), QQ.convert([4, 1, 2]), QQ)
    >>> {factor.name: moment.item() for factor, moment in moments(w).items()}
    {'query-key': -15, 'scale': 12}
    """
    tensors = tensors_of(weights)
    return {factor: factor.moment(tensors, weights.domain) for factor in linear_factors(weights.architecture)}


def inner(first: Direction, second: Direction) -> float:
    """The Euclidean inner product of two float directions."""
    return float(sum(np.vdot(matrix, second[factor]) for factor, matrix in first.items()))


def exponential(direction: Direction, rate: float, architecture: Architecture) -> Symmetry:
    """exp(rate · direction) for a direction of symmetric float matrices."""
    elements: dict[GroupFactor, Array] = {}
    for factor, matrix in direction.items():
        values, vectors = lapack.eigh(rate * matrix)
        elements[factor] = (vectors * np.exp(values)) @ vectors.T
    return Symmetry(architecture, RR, elements)


def retraction(direction: Direction, rate: float, architecture: Architecture) -> Symmetry:
    """1 + rate · direction: a group element that agrees with the exponential to first order."""
    return Symmetry(
        architecture, RR, {factor: np.eye(factor.size) + rate * matrix for factor, matrix in direction.items()}
    )


def matrix_to_json(array: Array, domain: Domain) -> list[Any]:
    """Nested lists of JSON values: exact numbers as strings, floats as numbers.

    >>> from attngeom.exact import QQ
    >>> matrix_to_json(QQ.convert([["1/2", 0]]), QQ)
    [['1/2', '0']]
    """
    if array.ndim == 1:
        return [domain.format(entry) for entry in array]
    return [matrix_to_json(part, domain) for part in array]


def symmetry_to_json(symmetry: Symmetry) -> dict[str, Any]:
    """The JSON object of a group element; see :mod:`attngeom.network.symmetry.element` for how it acts."""
    domain = symmetry.domain
    one = domain.format(domain.one)
    layers: list[dict[str, Any]] = [
        {"permutation": [], "heads": [{"C": None, "scale": one, "B": None} for _ in range(layer.heads)]}
        for layer in symmetry.architecture.layers
    ]
    for factor, element in symmetry.elements.items():
        match factor:
            case QueryKey(layer, head):
                layers[layer]["heads"][head]["C"] = matrix_to_json(element, domain)
            case Scale(layer, head):
                layers[layer]["heads"][head]["scale"] = domain.format(element[0, 0])
            case ValueOutput(layer, head):
                layers[layer]["heads"][head]["B"] = matrix_to_json(element, domain)
            case HeadOrder(layer):
                layers[layer]["permutation"] = list(element)
            case HeadFactor(layer, head) | HeadPart(layer, head) | ValueBias(layer, head):
                written = matrix_to_json(element, domain) if isinstance(element, np.ndarray) else element
                layers[layer]["heads"][head][factor.name] = written
            case Translation(layer):
                layers[layer]["translation"] = matrix_to_json(element, domain)
    return {
        "format": "attngeom/symmetry",
        "version": 1,
        "domain": domain.name,
        "architecture": symmetry.architecture.to_json(),
        "layers": layers,
        "between": [matrix_to_json(matrix, domain) for matrix in symmetry.between],
    }
