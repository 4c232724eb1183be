"""Layers whose heads are known: random ones, and ones with heads that share, vanish or coincide."""

from __future__ import annotations

import numpy as np

from attngeom.exact import QQ, RR
from attngeom.exact.domains import Array
from attngeom.layer.coefficients import Coefficients, array_shapes, layer_table, symmetrize
from attngeom.network import Architecture, Weights, random_weights


def change(weights: Weights, tensors: dict[str, Array]) -> Weights:
    """The weights with some tensors of the heads replaced; names such as "1.K"."""
    named = dict(weights.tensors()) | {f"layers.0.heads.{key}": value for key, value in tensors.items()}
    return Weights.from_tensors(weights.architecture, named, weights.domain)


def layer(d: int = 4, a: int = 2, heads: int = 2, value: int | None = None, seed: int = 0, **options) -> Weights:
    """A random exact layer of heads."""
    architecture = Architecture((d, d), a, heads=heads, value_width=value, **options)
    return random_weights(architecture, QQ, seed)


def head(weights: Weights, index: int, letter: str) -> Array:
    return getattr(weights.layers[0][index], letter)


def from_table(table: Array, t: int = 2) -> Coefficients:
    """The coefficients of a layer with this table of quadrics (d_out, d, d(d+1)/2) over Q."""
    d_out, d, _ = table.shape
    cross = np.swapaxes(table, 1, 2)
    shapes = array_shapes(d, d_out, t)
    single = np.broadcast_to(symmetrize(cross, d, QQ)[:, None], shapes[0])
    return Coefficients(d, d_out, t, single, np.broadcast_to(cross[:, None, None], shapes[1]), QQ)


def conjugate_heads(D: int, seed: int = 3) -> Coefficients:
    """Two heads that are conjugate over Q(√D): T = T_1 + √D T_2 plus its conjugate is rational."""
    from attngeom.exact.domains import QuadraticField
    from attngeom.layer.coefficients import quadric_table

    field = QuadraticField(D)
    rng = np.random.default_rng(seed)
    matrices = [
        field.combine(QQ.convert(rng.integers(-3, 4, s)), QQ.convert(rng.integers(-3, 4, s)))
        for s in ((4, 2), (2, 4), (4, 2), (2, 4))
    ]
    O, W, Kt, Q = matrices
    V, A = field.matmul(O, W), field.matmul(Kt, Q)
    table = quadric_table(A, V, field)
    rational = field.parts(table)[0]
    return from_table(QQ.convert(rational * 2))


def float_of(coefficients: Coefficients) -> Coefficients:
    c = coefficients
    return Coefficients(c.d, c.d_out, c.t, RR.convert(c.single), RR.convert(c.cross), RR)


__all__ = ["change", "conjugate_heads", "float_of", "from_table", "head", "layer", "layer_table"]
