"""Points that have a name: residues read off SHA-256, the same in every language and on every machine.

The residues mod p of the tensor with label L at the point ``name`` come from the texts ``name/L/i``, i = 0, 1, …: each
is hashed by SHA-256 and cut into four big-endian words of 64 bits; a word of at least ⌊2^64/p⌋·p is skipped, every
other one gives word mod p. Nobody can aim such a point: a name is all that a certificate has to hold.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

import numpy as np

from attngeom.exact.arrays import Array


def read_residues(name: str, label: str, count: int, p: int) -> Array:
    """The first ``count`` residues mod p of a labelled tensor of a named point, as int64.

    >>> read_residues("attngeom/0", "0.0.Q", 4, 1000003).tolist()
    [410790, 16830, 101466, 688165]
    """
    words = _words(f"{name}/{label}/{i}" for i in range(-(-count // 4)))
    limit = 2**64 // p * p
    kept = words[words < limit] if limit < 2**64 else words
    i = len(words) // 4
    while len(kept) < count:
        more = _words([f"{name}/{label}/{i}"])
        kept = np.concatenate([kept, more[more < limit]])
        i += 1
    return (kept[:count] % np.uint64(p)).astype(np.int64)


def key_residues(name: str, function: str, arguments: Array, p: int) -> Array:
    """A random function of residues: equal arguments, equal values; one residue mod p for each entry, as int64."""
    known, places = np.unique(arguments, return_inverse=True)
    words = _words(f"{name}/{function}/{x}" for x in known.tolist())[::4]
    return (words % np.uint64(p)).astype(np.int64)[places].reshape(arguments.shape)


def _words(texts: Iterable[str]) -> Array:
    digests = b"".join(hashlib.sha256(text.encode()).digest() for text in texts)
    return np.frombuffer(digests, dtype=">u8").astype(np.uint64)
