"""Where the numbers of a point come from: from SHA-256, for what a certificate names, or from a quick mixer.

Any point gives valid bounds. Points that a certificate names are hashed, so that others can rebuild them with nothing
but the name; points that only a search looks at, whose finds are proven afterwards, are mixed from 64 bits in NumPy.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from math import prod

import numpy as np

from attngeom.errors import SingularError
from attngeom.exact.arrays import Array
from attngeom.exact.points import residues, residues_of_many, stream

INDEX_BITS = 20
"""Of the index of one input in that of a sample."""


class Streams(ABC):
    """Residues mod p that labels determine."""

    @abstractmethod
    def tensor(self, label: str, shape: tuple[int, ...], p: int) -> Array:
        """The tensor with this label."""

    @abstractmethod
    def tensors(self, label: str, indices: Sequence[int], name: str, shape: tuple[int, ...], p: int) -> Array:
        """The tensors with the labels ``{label}{index}{name}``, below each other."""

    @abstractmethod
    def function(self, label: str, arguments: Array, p: int) -> Array:
        """A random function at some integers: the first residue of the stream ``{label}/{argument}``."""


@dataclass(frozen=True)
class HashedStreams(Streams):
    """The streams of :mod:`attngeom.exact.points`.

    >>> HashedStreams("attngeom/0").tensor("X0", (2, 2), 1000003).tolist()
    [[727362, 66565], [442764, 331307]]
    """

    point: str

    def tensor(self, label: str, shape: tuple[int, ...], p: int) -> Array:
        return residues(self.point, label, shape, p)

    def tensors(self, label: str, indices: Sequence[int], name: str, shape: tuple[int, ...], p: int) -> Array:
        return residues_of_many(self.point, [f"{label}{index}{name}" for index in indices], shape, p)

    def function(self, label: str, arguments: Array, p: int) -> Array:
        drawn = [next(stream(self.point, f"{label}/{x}", p)) for x in arguments.tolist()]
        return np.array(drawn, dtype=np.int64)


@dataclass(frozen=True)
class MixedStreams(Streams):
    """One key of 64 bits for each label, and the finalizer of SplitMix64 for each place.

    >>> streams = MixedStreams("attngeom/0")
    >>> bool((streams.tensors("x", [3, 5], "/a", (2,), 101)[1] == streams.tensors("x", [5], "/a", (2,), 101)).all())
    True
    """

    point: str

    def tensor(self, label: str, shape: tuple[int, ...], p: int) -> Array:
        return _mix(self._key(label) + np.arange(prod(shape), dtype=np.uint64), p).reshape(shape)

    def tensors(self, label: str, indices: Sequence[int], name: str, shape: tuple[int, ...], p: int) -> Array:
        size = prod(shape)
        first = np.array([index % 2**64 for index in indices], dtype=np.uint64)[:, None] * np.uint64(size)
        places = first + np.arange(size, dtype=np.uint64)
        return _mix(self._key(label + name) + places, p).reshape(len(indices), *shape)

    def function(self, label: str, arguments: Array, p: int) -> Array:
        return _mix(self._key(label) + (arguments % (2**61 - 1)).astype(np.uint64), p)

    def _key(self, label: str) -> np.uint64:
        return np.uint64(int.from_bytes(sha256(f"{self.point}/{label}".encode()).digest()[:7], "big"))


def _mix(numbers: Array, p: int) -> Array:
    """Residues mod p < 2^32 that look random, of 64-bit integers."""
    with np.errstate(over="ignore"):
        x = numbers * np.uint64(0x9E3779B97F4A7C15)
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        x = x ^ (x >> np.uint64(31))
    return (x % np.uint64(p)).astype(np.int64)


def input_index(r: int, k: int) -> int:
    """Which of the k-th inputs a sample with index r has.

    >>> input_index(7, 0), input_index(7, 1), [input_index(join_indices([5, 3, 9]), k) for k in range(3)]
    (7, 7, [5, 3, 9])
    """
    size: int = 2**INDEX_BITS
    return (r + (r >> INDEX_BITS * k if k else 0)) % size


def join_indices(indices: Sequence[int]) -> int:
    """The index of a sample whose k-th input is the one with the k-th index."""
    size: int = 2**INDEX_BITS
    first = indices[0]
    if max(indices) >= size:
        raise SingularError("no roots at this point; another one is required")
    return sum(int((r - first) % size if k else r) << INDEX_BITS * k for k, r in enumerate(indices))
