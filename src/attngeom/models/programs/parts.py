"""What all sublayers of a program are made of: vectors that maps read, norms, linear maps, numbers."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from attngeom.models.specification import Norm, TransformerBlock
from attngeom.programs import Builder


@dataclass(frozen=True)
class SeenVector:
    """What maps read: a vector as a node, its last axis of length ``width``; ``constant``: every reader has a bias."""

    node: int
    width: int
    constant: bool = False


@dataclass(frozen=True)
class SublayerOutput:
    """What a map writes, (places, rows): a linear map of ``columns`` (places, k), and of 1 if it has a bias.

    None for sums of several such maps.
    """

    node: int
    columns: int | None = None
    bias: bool = False


@dataclass(frozen=True)
class TokenPlaces:
    """Where the other tokens of a sequence stand: lists of distances, of buckets of a table, or anywhere (None).

    ``frequencies``: of all rotations; one free point of a circle stands for each class of commensurable ones. ``own``
    is the bucket of the token itself, () for the first one everywhere.
    """

    distances: tuple[tuple[int, ...], ...] | None
    buckets: tuple[tuple[int, ...], ...]
    others: int
    table: int = 0
    frequencies: tuple[float, ...] = ()
    own: tuple[int, ...] = ()

    @property
    def count(self) -> int:
        return max(1, len(self.distances or ()), len(self.buckets))


class Parts:
    """Appends the parts of one block to a builder; names of weights are those of the stored ones, with a prefix."""

    def __init__(
        self,
        block: TransformerBlock,
        width: int,
        acting: bool,
        places: TokenPlaces,
        builder: Builder | None = None,
        prefix: str = "",
    ) -> None:
        self.block, self.width, self.acting, self.places = block, width, acting, places
        self.b = Builder() if builder is None else builder
        self.prefix = prefix

    def number(self, x: float | Fraction) -> int:
        return self.b.constant(np.array(Fraction(x), dtype=object))

    def at_places(self, x: SeenVector) -> SeenVector:
        """What is read of a token, once for every place of the others."""
        shape = self.b.shape(x.node)
        return replace(x, node=self.b.broadcast(x.node, (self.places.count, *shape))) if len(shape) == 1 else x

    def rows_for(self, follower: Norm | None) -> int:
        """How many rows are written: the mean is not seen by a LayerNorm that follows."""
        return self.width - 1 if self.acting and follower is not None and follower.kind == "layer" else self.width

    def full(self, x: int) -> int:
        """Vectors with a last row of 0 if one was left out."""
        if self.b.shape(x)[-1] == self.width:
            return x
        numbers = self.b.numbers([x])[0]
        return self.b.move([x], np.pad(numbers, [(0, 0)] * (numbers.ndim - 1) + [(0, 1)]))

    # Norms

    def normalised(self, norm: Norm, x: int, axes: int = 1) -> int:
        """n(x) over the last axis, or over the last ``axes``."""
        b, shape = self.b, self.b.shape(x)
        last = range(len(shape) - axes, len(shape))
        if norm.kind == "layer":
            x = b.subtract(x, b.mean(x, last, keepdims=True))
        letters = "abcdef"[: len(shape)]
        out = letters[: len(shape) - axes]
        square = b.contract(f"{letters},{letters}->{out}", x, x)
        mean = b.multiply(square, self.number(Fraction(1, math.prod(shape[k] for k in last))))
        scale = b.inverse(b.root(b.add(mean, self.number(norm.eps))))
        return b.contract(f"{letters},{out}->{letters}", x, scale)

    def norm(self, name: str, norm: Norm | None, x: SeenVector, size: int | None) -> SeenVector:
        """What readers see of g∘n(x) + β."""
        if norm is None:
            return x
        size = size or self.width
        if not self.acting:
            return self.scaled_norm(name, norm, x.node)
        return self._seen(norm, self.normalised(norm, x.node), size)

    def _seen(self, norm: Norm, n: int, size: int) -> SeenVector:
        if norm.kind == "layer" and size > 1:
            n = self.b.move([n], self.b.numbers([n])[0][..., : size - 1])
        return SeenVector(n, size - (norm.kind == "layer"), norm.bias)

    def scaled_norm(self, name: str, norm: Norm, x: int) -> SeenVector:
        """g∘n(x) + β with its weights."""
        y, size = self.normalised(norm, x), self.b.shape(x)[-1]
        if norm.gain:
            y = self.b.multiply(y, self.b.parameter(f"{name}.gain", (size,)))
        if norm.bias:
            y = self.b.add(y, self.b.parameter(f"{name}.bias", (size,)))
        return SeenVector(y, size)

    def output_norm(self, name: str, norm: Norm, y: SublayerOutput) -> int:
        """g∘n(y) + β behind a map y = Wz.

        g∘n(Wz) is (diag g W)z divided by the root of zᵀSz/d + eps, S = WᵀW. Where W has so few columns that S is any
        form, beside whatever diag g W, then S acts in the place of g; with a bias in z it takes up eps.
        """
        b = self.b
        k = 0 if y.columns is None else b.shape(y.columns)[-1] + y.bias
        if not self.acting or norm.kind != "rms" or not norm.gain or not 0 < k * (k + 1) <= 2 * self.width:
            return self.scaled_norm(name, norm, y.node).node
        assert y.columns is not None
        z = y.columns
        if y.bias:
            ones = b.constant(np.ones((b.shape(z)[0], 1), dtype=np.int64))
            z = b.move([z, ones], np.concatenate(b.numbers([z, ones]), axis=1))
        upper = np.triu(np.ones((k, k), dtype=np.int64))
        table = np.where(upper, (np.cumsum(upper) * upper.ravel()).reshape(k, k), 0)
        form = b.parameter(f"{name}.form", (k * (k + 1) // 2,))
        square = b.contract("pk,pk->p", b.contract("pj,jk->pk", z, b.move([form], np.maximum(table, table.T))), z)
        if not y.bias:
            square = b.add(square, self.number(norm.eps))
        return b.contract("pd,p->pd", y.node, b.inverse(b.root(square)))

    def stream_norm(self, name: str, norm: Norm, x: int) -> tuple[SeenVector, int]:
        """The stream behind a norm of the sum: what maps read of it, and the stream itself."""
        whole = self.scaled_norm(name, norm, x)
        return (self._seen(norm, self.normalised(norm, x), self.width) if self.acting else whole), whole.node

    # Linear maps

    def linear(self, name: str, x: SeenVector, rows: tuple[int, ...], bias: bool) -> int:
        """W x + b with W of shape (*rows, width) at the last axis of x; leading axes of x stay in front."""
        b = self.b
        out, lead = "abc"[: len(rows)], "pq"[: len(b.shape(x.node)) - 1]
        if x.width:
            y = b.contract(f"{out}l,{lead}l->{lead}{out}", b.parameter(name, (*rows, x.width)), x.node)
        else:
            y = b.constant(np.zeros((*b.shape(x.node)[:-1], *rows), dtype=np.int64))
        if bias or (self.acting and x.constant):
            y = b.add(y, b.parameter(f"{name}_bias", rows))
        return y
