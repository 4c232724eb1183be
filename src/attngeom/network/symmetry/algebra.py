"""The Lie algebra of the symmetry group at a point of weight space: directions, their images, moments, exponentials."""

from __future__ import annotations

import numpy as np

from attngeom.exact import lapack
from attngeom.exact.domains import RR, Array
from attngeom.network.architecture import Architecture
from attngeom.network.symmetry.element import Symmetry
from attngeom.network.symmetry.factor import GroupFactor, LinearFactor
from attngeom.network.symmetry.group import linear_factors, tensors_of
from attngeom.network.weights import Weights

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
