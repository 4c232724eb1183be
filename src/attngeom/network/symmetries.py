"""The symmetries of weight space that leave the function of a network unchanged.

A group element holds, for each layer i and head h: C (GL_a, query-key), λ (scale of A against the values, lightning
only), B (GL_v, between V and O, factored heads only), a permutation of the heads, and between consecutive layers
D_i (GL_{d_i}, networks without skip connection only). It acts by

    K → C K D_{i-1}^{-1},  Q → λ C^{-T} Q D_{i-1}^{-1},
    V → λ^{-1} D_i V D_{i-1}^{-1}                       (one matrix), or
    V → λ^{-1} B V D_{i-1}^{-1},  O → D_i O B^{-1}      (factored),

and then moves head h to place π(h). These are (s1), (s2) and the scales (s3) of [G]: the scales of (M, L) that satisfy
[G] Eq 13 are those of the layers combined with scalar D_i.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from attngeom.errors import InputError
from attngeom.exact.domains import Array, Domain
from attngeom.network.architecture import Architecture
from attngeom.network.weights import Head, Weights

ADDITION_ROUNDS = 6


@dataclass(frozen=True, eq=False)
class HeadSymmetry:
    """C ∈ GL_a, the scale λ as a 1×1 array, and B ∈ GL_v (None when the value map is one matrix)."""

    C: Array
    scale: Array
    B: Array | None = None


@dataclass(frozen=True, eq=False)
class Symmetry:
    """A group element for one architecture; see the module docstring for its action.

    ``between`` holds D_1..D_{l-1}, or is empty for residual networks; ``permutations[i][h]`` is the place of head h.
    """

    architecture: Architecture
    domain: Domain
    heads: tuple[tuple[HeadSymmetry, ...], ...]
    between: tuple[Array, ...]
    permutations: tuple[tuple[int, ...], ...]

    def __post_init__(self) -> None:
        architecture = self.architecture
        for index, layer in enumerate(architecture.layers):
            if sorted(self.permutations[index]) != list(range(layer.heads)):
                raise InputError(f"{self.permutations[index]} given; a permutation of {layer.heads} heads is required")
            for head in self.heads[index]:
                _check_shape("C", head.C, layer.attention)
                _check_shape("scale", head.scale, 1)
                if head.B is not None and layer.value_width is not None:
                    _check_shape("B", head.B, layer.value_width)
                if (head.B is None) != (layer.value_width is None):
                    raise InputError("B given for an unfactored head, or missing for a factored one")
                if architecture.kind == "softmax" and not self.domain.equal(head.scale, self.domain.eye(1)):
                    raise InputError("a scale was given; softmax attention has no scale symmetry")
        expected = [] if architecture.residual else list(architecture.widths[1:-1])
        if [matrix.shape for matrix in self.between] != [(width, width) for width in expected]:
            raise InputError(
                f"{len(self.between)} matrices between layers given; one for each of the widths {expected} is required"
            )

    def apply(self, weights: Weights) -> Weights:
        """g · W, with the same function as W: exactly over exact domains, to rounding over floats."""
        if self.architecture != weights.architecture or self.domain != weights.domain:
            raise InputError("a symmetry of another architecture or domain was given; it must match the weights")
        domain, architecture = weights.domain, weights.architecture
        multiply, invert = domain.matmul, domain.inverse
        layers = []
        for index, heads in enumerate(weights.layers):
            before = self.between[index - 1] if self.between and index > 0 else None
            after = self.between[index] if self.between and index < architecture.num_layers - 1 else None
            back = None if before is None else invert(before)
            moved: list[Head | None] = [None] * len(heads)
            for place, (head, g) in enumerate(zip(heads, self.heads[index])):
                Q = domain.reduce(multiply(invert(g.C).T, head.Q) * g.scale[0, 0])
                K = multiply(g.C, head.K)
                V, O = domain.reduce(head.V * invert(g.scale)[0, 0]), head.O
                if g.B is not None and O is not None:
                    V, O = multiply(g.B, V), multiply(O, invert(g.B))
                if back is not None:
                    Q, K, V = (multiply(matrix, back) for matrix in (Q, K, V))
                if after is not None:
                    V, O = (multiply(after, V), None) if O is None else (V, multiply(after, O))
                moved[self.permutations[index][place]] = Head(Q, K, V, O)
            layers.append(tuple(head for head in moved if head is not None))
        return Weights(architecture, domain, tuple(layers))

    def compose(self, first: Symmetry) -> Symmetry:
        """The element that acts as ``first`` and then as ``self``."""
        multiply = self.domain.matmul
        layers = []
        for index, permutation in enumerate(first.permutations):
            combined = []
            for place, early in enumerate(first.heads[index]):
                late = self.heads[index][permutation[place]]
                B = None if early.B is None or late.B is None else multiply(late.B, early.B)
                combined.append(HeadSymmetry(multiply(late.C, early.C), multiply(late.scale, early.scale), B))
            layers.append(tuple(combined))
        permutations = tuple(
            tuple(late[place] for place in early) for early, late in zip(first.permutations, self.permutations)
        )
        between = tuple(multiply(late, early) for early, late in zip(first.between, self.between))
        return Symmetry(self.architecture, self.domain, tuple(layers), between, permutations)

    def inverse(self) -> Symmetry:
        """The inverse element."""
        invert = self.domain.inverse
        layers, permutations = [], []
        for heads, permutation in zip(self.heads, self.permutations):
            back = tuple(int(place) for place in np.argsort(permutation))
            inverted = [
                HeadSymmetry(invert(head.C), invert(head.scale), None if head.B is None else invert(head.B))
                for head in heads
            ]
            layers.append(tuple(inverted[place] for place in back))
            permutations.append(back)
        between = tuple(invert(matrix) for matrix in self.between)
        return Symmetry(self.architecture, self.domain, tuple(layers), between, tuple(permutations))


def _check_shape(name: str, matrix: Array, size: int) -> None:
    if matrix.shape != (size, size):
        raise InputError(f"{name} of shape {matrix.shape} given; shape {(size, size)} is required")


def identity_symmetry(architecture: Architecture, domain: Domain) -> Symmetry:
    """The neutral element."""
    layers = tuple(
        tuple(
            HeadSymmetry(
                domain.eye(layer.attention),
                domain.eye(1),
                None if layer.value_width is None else domain.eye(layer.value_width),
            )
            for _ in range(layer.heads)
        )
        for layer in architecture.layers
    )
    widths = () if architecture.residual else architecture.widths[1:-1]
    permutations = tuple(tuple(range(layer.heads)) for layer in architecture.layers)
    return Symmetry(architecture, domain, layers, tuple(domain.eye(width) for width in widths), permutations)


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
    >>> from attngeom.exact.matrices import determinant
    >>> abs(determinant(random_unimodular_symmetry(Architecture((2, 3, 2), 1), QQ, seed=0).between[0], QQ))
    1
    """
    return _draw_symmetry(
        architecture, domain, seed, lambda size, rng: domain.array(_random_unimodular_matrix(size, rng))
    )


def _random_unimodular_matrix(size: int, rng: np.random.Generator) -> Array:
    matrix = np.eye(size, dtype=np.int64)[rng.permutation(size)] * rng.choice([-1, 1], size=size)
    for _ in range(ADDITION_ROUNDS):
        places = rng.permutation(size)
        targets, sources = places[: size // 2], places[size // 2 : size // 2 * 2]
        matrix[targets] += rng.choice([-1, 1], size=(len(targets), 1)) * matrix[sources]
    return matrix


def _draw_symmetry(
    architecture: Architecture, domain: Domain, seed: int, draw: Callable[[int, np.random.Generator], Array]
) -> Symmetry:
    """A group element whose invertible matrices are drawn by ``draw(size, rng)``."""
    rng = np.random.default_rng(seed)
    softmax = architecture.kind == "softmax"
    layers = tuple(
        tuple(
            HeadSymmetry(
                draw(layer.attention, rng),
                domain.eye(1) if softmax else draw(1, rng),
                None if layer.value_width is None else draw(layer.value_width, rng),
            )
            for _ in range(layer.heads)
        )
        for layer in architecture.layers
    )
    widths = () if architecture.residual else architecture.widths[1:-1]
    between = tuple(draw(width, rng) for width in widths)
    permutations = tuple(tuple(int(place) for place in rng.permutation(layer.heads)) for layer in architecture.layers)
    return Symmetry(architecture, domain, layers, between, permutations)
