"""Floats as residues mod p = 2^61 − 1, exactly: a finite float is m·2^e, and 2 has order 61, so 2^e is a rotation.

Products of large matrices with a few vectors run in float64 BLAS without rounding. Blocks whose entries are integers of
at most 29 bits after a common scale, as those of half precision nearly are, multiply limbs of 13 and 12 bits; the few
entries with smaller parts are done one by one. Residues of other blocks are cut into limbs of 21, 20 and 20 bits. Sums
of 2,048 such products stay below 2^53.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from functools import cached_property

import numpy as np

from attngeom.exact.arrays import Array
from attngeom.exact.numbers import BIG_PRIME
from attngeom.limits.memory import RESIDUE_COLUMNS, RESIDUE_ENTRIES
from attngeom.limits.work import LARGEST_SHIFT, RESTS, SHORT_BITS

P = BIG_PRIME
BITS = 61
LIMBS = ((0, 21), (21, 20), (41, 20))
SHORT_LIMBS = ((0, 13), (13, 12), (25, 12), (37, 12), (49, 12))


def residues(values: Array) -> Array:
    """Residues in [0, p) of floats, as uint64.

    >>> [int(x) for x in residues(np.array([3.0, 0.5, -1.0]))] == [3, (P + 1) // 2, P - 1]
    True
    """
    rotated = _rotations(values)
    return np.where(rotated == P, np.uint64(0), rotated)


def _table(fraction: int, exponents: int, bias: int) -> tuple[Array, Array, Array]:
    """For every sign and exponent of a float type: the leading bit, the rotation, and the mask that negates."""
    places = np.arange(exponents)
    lead = np.where(places > 0, 1 << fraction, 0)
    shift = (np.maximum(places, 1) - bias - fraction) % BITS
    return (
        np.tile(lead, 2).astype(np.uint64),
        np.tile(shift, 2).astype(np.uint64),
        np.repeat(np.array([0, P], dtype=np.uint64), exponents),
    )


_SINGLE, _DOUBLE = _table(23, 2**8, 127), _table(52, 2**11, 1023)


def _rotations(values: Array) -> Array:
    """Residues in [0, p] of floats, p standing for 0 as well: p − r is r with all bits flipped."""
    if values.dtype == np.float32:
        bits = np.ascontiguousarray(values).view(np.uint32)
        place, fraction, (lead, shift, mask) = bits >> np.uint32(23), bits & np.uint32(2**23 - 1), _SINGLE
    else:
        bits = np.ascontiguousarray(values, dtype=np.float64).view(np.uint64)
        # NumPy 1 takes signed indices alone.
        place = (bits >> np.uint64(52)).view(np.int64)
        fraction, (lead, shift, mask) = bits & np.uint64(2**52 - 1), _DOUBLE
    mantissa = lead.take(place)
    mantissa |= fraction
    turn = shift.take(place)
    high = mantissa << turn
    high &= np.uint64(P)
    np.subtract(np.uint64(BITS), turn, out=turn)
    mantissa >>= turn
    high |= mantissa
    high ^= mask.take(place)
    return high


def residue(value: float) -> int:
    """The residue of one float."""
    return int(residues(np.array([value]))[0])


def integers(values: Array) -> Array:
    """Residues of floats as an object array of Python integers, for exact arithmetic entry by entry."""
    return np.asarray(residues(values).astype(object))


def random_residues(count: int, label: str, *, total_zero: bool = False) -> Array:
    """Uniform residues from a label, as Python integers; ``total_zero`` makes their sum 0 mod p."""
    source = random.Random(label)
    values = [source.randrange(P) for _ in range(count)]
    if total_zero and values:
        values[-1] = -sum(values[:-1]) % P
    return np.array(values, dtype=object)


_MAGIC = np.uint64(0x4330000000000000)
"""The bits of the float 2^52: with an integer below 2^52 in its fraction it is the float 2^52 + that integer."""


def _cut(values: Array, limbs: Sequence[tuple[int, int]] = LIMBS) -> list[Array]:
    pieces = []
    for low, width in limbs:
        limb = values >> np.uint64(low)
        limb &= np.uint64(2**width - 1)
        limb |= _MAGIC
        number = limb.view(np.float64)
        number -= 2.0**52
        pieces.append(number)
    return pieces


def _rotate(values: Array, shift: int) -> Array:
    shift %= BITS
    if not shift:
        return values
    return ((values << np.uint64(shift)) & np.uint64(P)) | (values >> np.uint64(BITS - shift))


def _reduce(values: Array) -> Array:
    """Residues of numbers below 2^62."""
    folded = (values & np.uint64(P)) + (values >> np.uint64(BITS))
    return np.where(folded >= P, folded - np.uint64(P), folded)


def apply(matrix: Array, vectors: Sequence[Array]) -> Array:
    """matrix (r, c) of floats times columns of residues, mod p, exactly: object array (r, number of vectors).

    >>> int(apply(np.array([[0.5, 3.0]]), [np.array([4, 5], dtype=object)])[0, 0])
    17
    """
    rows, columns = matrix.shape
    right = np.array([[int(x) for x in vector] for vector in vectors], dtype=np.uint64).T
    right = right.reshape(columns, len(vectors))
    result = np.zeros((rows, len(vectors)), dtype=np.uint64)
    by_columns = matrix.flags.f_contiguous and not matrix.flags.c_contiguous
    width = RESIDUE_COLUMNS // 8 if by_columns else RESIDUE_COLUMNS
    is_short = True
    for start in range(0, columns, width):
        factor = _Factor(right[start : start + width])
        step = max(1, RESIDUE_ENTRIES // len(factor.right))
        for top in range(0, rows, step):
            block = matrix[top : top + step, start : start + width]
            product = factor.times_integers(block) if is_short else None
            # A matrix of longer floats is one everywhere: the first block tells.
            is_short = product is not None
            product = factor.times_residues(block) if product is None else product
            result[top : top + step] = _reduce(result[top : top + step] + product)
    return np.asarray(result.astype(object))


class _Factor:
    """At most `RESIDUE_COLUMNS` rows of a few columns of residues, cut into limbs, that blocks are multiplied with."""

    def __init__(self, right: Array) -> None:
        self.right = right
        self.short = np.concatenate(_cut(right, SHORT_LIMBS), axis=1)

    @cached_property
    def limbs(self) -> Array:
        return np.concatenate(_cut(self.right), axis=1)

    def times_integers(self, block: Array) -> Array | None:
        """Floats (r, c), nearly all integers after a common scale, times the columns, mod p; None for others."""
        largest = max(float(block.max(initial=0.0)), -float(block.min(initial=0.0)))
        shift = SHORT_BITS - int(np.frexp(largest)[1])
        if abs(shift) > LARGEST_SHIFT:
            return None
        scaled = np.multiply(block, 2.0**shift, dtype=np.float64)
        whole = np.rint(scaled)
        parted = scaled != whole
        count = np.count_nonzero(parted)
        if count > block.size // RESTS:
            return None
        total = self._summed(whole @ self.short, SHORT_LIMBS, -shift)
        if not count:
            return total
        places = np.nonzero(parted)
        rest = _rotate(residues(scaled[places] - whole[places]), -shift).tolist()
        for i, j, value in zip(*(axis.tolist() for axis in places), rest):
            total[i] = [(int(own) + value * int(x)) % P for own, x in zip(total[i], self.right[j])]
        return total

    def times_residues(self, block: Array) -> Array:
        """Any floats (r, c) times the columns, mod p."""
        total = np.zeros((len(block), self.right.shape[1]), dtype=np.uint64)
        for (low, _), part in zip(LIMBS, _cut(_rotations(block))):
            total = _reduce(total + self._summed(part @ self.limbs, LIMBS, low))
        return total

    def _summed(self, products: Array, limbs: Sequence[tuple[int, int]], shift: int) -> Array:
        """Σ over limbs of products 2^(place + shift), mod p."""
        count = self.right.shape[1]
        signed = products.astype(np.int64)
        signed[signed < 0] += P
        positive, total = signed.view(np.uint64), np.zeros((len(products), count), dtype=np.uint64)
        for j, (low, _) in enumerate(limbs):
            total = _reduce(total + _rotate(positive[:, j * count : (j + 1) * count], low + shift))
        return total


def dot(left: Array, right: Array) -> int:
    """Σ left right mod p of two object arrays."""
    return int(sum(int(a) * int(b) for a, b in zip(left, right)) % P)
