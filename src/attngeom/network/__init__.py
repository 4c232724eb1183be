"""Attention networks: architectures, weights, forward passes and symmetries."""

from attngeom.network.architecture import Architecture, LayerShape, default_attention
from attngeom.network.layer import forward
from attngeom.network.symmetry import Symmetry, identity_symmetry, random_symmetry, random_unimodular_symmetry
from attngeom.network.weights import Head, VirtualWeights, Weights, random_weights, weights_from_matrices

__all__ = [
    "Architecture",
    "Head",
    "LayerShape",
    "Symmetry",
    "VirtualWeights",
    "Weights",
    "default_attention",
    "forward",
    "identity_symmetry",
    "random_symmetry",
    "random_unimodular_symmetry",
    "random_weights",
    "weights_from_matrices",
]


def __dir__() -> list[str]:
    return sorted(__all__)
