"""Named points: residues mod p that a name and a label determine, by SHA-256 alone.

The tensor with label L of the point with name N is filled row by row from the texts ``N/L/0``, ``N/L/1``, …: each is
hashed, the 32 bytes are four big-endian words of 64 bits, a word w ≥ ⌊2^64 / p⌋ p is skipped, any other gives w mod p.
Every tensor has a stream of its own. Any point gives valid bounds, so a name cannot be aimed at a false one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from hashlib import sha256
from struct import unpack
from typing import Any

import numpy as np

from attngeom.errors import FormatError
from attngeom.limits.sizes import POINT_NAME

_NAME = re.compile(r"[!-~]+")


def name_point(seed: int) -> str:
    """The name of the point that belongs to a seed.

    >>> name_point(0)
    'attngeom/0'
    """
    return f"attngeom/{seed}"


def check_name(name: Any) -> str:
    """The name of a point: printable ASCII without spaces; FormatError otherwise."""
    if type(name) is not str or len(name) > POINT_NAME or not _NAME.fullmatch(name):
        raise FormatError(
            f"point {str(name)[:40]!r} found; a name of at most {POINT_NAME} printable ASCII characters is required"
        )
    return name


def stream(name: str, label: str, p: int) -> Iterator[int]:
    """The residues of one tensor, without end.

    >>> from itertools import islice
    >>> list(islice(stream("attngeom/0", "0.0.Q", 1000003), 4))
    [410790, 16830, 101466, 688165]
    """
    bound, number, prefix = 2**64 // p * p, 0, f"{name}/{label}/"
    while True:
        yield from (word % p for word in unpack(">4Q", sha256(f"{prefix}{number}".encode()).digest()) if word < bound)
        number += 1


def residues(name: str, label: str, shape: tuple[int, ...], p: int) -> np.ndarray[Any, Any]:
    """The tensor with this label, residues 0 … p − 1.

    >>> residues("attngeom/0", "X0", (2, 2), 1000003).tolist()
    [[727362, 66565], [442764, 331307]]
    """
    size = int(np.prod(shape, dtype=np.int64))
    bound, prefix = 2**64 // p * p, f"{name}/{label}/"
    drawn, number = np.zeros(0, dtype=np.uint64), 0
    while len(drawn) < size:
        stop = number + (size - len(drawn) + 3) // 4
        text = b"".join([sha256(f"{prefix}{i}".encode()).digest() for i in range(number, stop)])
        words = np.frombuffer(text, dtype=">u8").astype(np.uint64)
        # p = 2 divides 2^64, and no word is skipped.
        drawn = np.concatenate([drawn, words[words < np.uint64(bound)] if bound < 2**64 else words])
        number = stop
    return (drawn[:size] % np.uint64(p)).astype(np.int64).reshape(shape)


def residues_of_many(name: str, labels: Sequence[str], shape: tuple[int, ...], p: int) -> np.ndarray[Any, Any]:
    """The tensors of one shape with these labels, below each other: :func:`residues` of each, at once.

    >>> residues_of_many("attngeom/0", ["X0", "X1"], (2,), 1000003)[0].tolist()
    [727362, 66565]
    """
    size = int(np.prod(shape, dtype=np.int64))
    hashes = range(-(-size // 4))
    text = b"".join([sha256(f"{name}/{label}/{i}".encode()).digest() for label in labels for i in hashes])
    words = np.frombuffer(text, dtype=">u8").astype(np.uint64)
    if (words >= np.uint64(2**64 // p * p - 1)).any():
        # A word that may have to be skipped, as one in 2^40 has.
        return np.stack([residues(name, label, shape, p) for label in labels])
    drawn = words.reshape(len(labels), 4 * len(hashes))[:, :size]
    return (drawn % np.uint64(p)).astype(np.int64).reshape(len(labels), *shape)
