"""Rational networks with integer matrices over one denominator for each tensor."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from attngeom.errors import DomainError
from attngeom.exact.cleared import ClearedMatrix
from attngeom.exact.domains import QQ
from attngeom.network import Architecture, Weights


class ClearedHead(NamedTuple):
    """The matrices of one head."""

    Q: ClearedMatrix
    K: ClearedMatrix
    V: ClearedMatrix
    O: ClearedMatrix | None = None

    def values(self) -> ClearedMatrix:
        """The d_out×d_in value map: V, or O V."""
        return self.V if self.O is None else (self.O * self.V).reduced()


@dataclass(frozen=True, eq=False)
class ClearedNetwork:
    """Rational weights, converted once for all steps of a comparison."""

    weights: Weights
    layers: tuple[tuple[ClearedHead, ...], ...]

    @property
    def architecture(self) -> Architecture:
        return self.weights.architecture

    def tensors(self) -> Iterator[ClearedMatrix]:
        return (tensor for heads in self.layers for head in heads for tensor in head if tensor is not None)


def clear(weights: Weights) -> ClearedNetwork:
    """The tensors of rational weights over one denominator each.

    >>> from attngeom.network import random_weights
    >>> clear(random_weights(Architecture((2, 1), 1), QQ, seed=0)).layers[0][0].K.denominator
    1
    """
    if weights.domain != QQ:
        raise DomainError(f"weights over {weights.domain.name} given; rational weights are required")
    layers = (tuple(ClearedHead(*map(QQ.clear, head.tensors.values())) for head in heads) for heads in weights.layers)
    return ClearedNetwork(weights, tuple(layers))
