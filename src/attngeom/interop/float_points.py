"""A point of the same orbit whose entries are floats: rows of K, Q, V, O and scales share their odd factors anew."""

from __future__ import annotations

from fractions import Fraction
from math import gcd, lcm

import numpy as np

from attngeom.errors import InputError
from attngeom.exact.domains import RR, Array
from attngeom.network.weights import Weights


def odd_content(values: Array) -> Fraction:
    """The odd part of the greatest common divisor of rational numbers; 1 if all are 0.

    >>> odd_content(np.array([Fraction(6), Fraction(9, 4)]))
    Fraction(3, 1)
    """
    numbers = [Fraction(int(x.numerator), int(x.denominator)) for x in values.ravel() if x]
    if not numbers:
        return Fraction(1)
    top, bottom = gcd(*(x.numerator for x in numbers)), lcm(*(x.denominator for x in numbers))
    return Fraction(top // (top & -top), bottom // (bottom & -bottom))


def is_dyadic(values: Array) -> bool:
    """Whether all denominators are powers of two."""
    return all(int(x.denominator) & (int(x.denominator) - 1) == 0 for x in values.ravel())


def move_to_floats(weights: Weights) -> Weights:
    """Weights of the same function whose entries are floats: T1, T3 with diagonal matrices, T2 for lightning attention.

    Rows of K, and columns of O, become primitive, and what they lose goes to the rows of Q and V; then a scale goes
    from V to Q. InputError if that does not suffice: another point of the orbit may still have float entries.

    >>> from attngeom.exact import QQ
    >>> from attngeom.network import Architecture
    >>> tensors = {"layers.0.Q": [["1/3", 1]], "layers.0.K": [[3, 6]], "layers.0.V": [[1, 2]]}
    >>> point = Weights.from_tensors(Architecture((2, 1), 1), tensors, QQ)
    >>> [[str(x) for x in row] for row in dict(move_to_floats(point).tensors())["layers.0.Q"].tolist()]
    [['1', '3']]
    """
    domain = weights.domain
    tensors = {name: np.array(_fractions(array), dtype=object) for name, array in weights.tensors()}
    for name in [name for name in tensors if name.endswith(".K")]:
        prefix = name[:-1]
        K, Q, V, O = (tensors.get(prefix + letter) for letter in "KQVO")
        assert K is not None and Q is not None and V is not None
        for row in range(len(K)):
            share = odd_content(K[row])
            K[row], Q[row] = K[row] / share, Q[row] * share
        if O is not None:
            for row in range(len(V)):
                share = odd_content(O[:, row])
                O[:, row], V[row] = O[:, row] / share, V[row] * share
        if weights.architecture.kind == "lightning":
            common = odd_content(Q).denominator
            tensors[f"{prefix}Q"], tensors[f"{prefix}V"] = Q * common, V / common
    if not all(map(is_dyadic, tensors.values())):
        raise InputError(
            "weights that are no float numbers given, and scaling rows does not make them so; rounding would move the "
            "point: multiply the last value map by a common denominator, which keeps λ"
        )
    moved = Weights.from_tensors(weights.architecture, {name: _texts(array) for name, array in tensors.items()}, domain)
    if not moved.to(RR).to(domain).equals(moved):
        raise InputError("weights with more than 53 bits given; rounding would move the point")
    return moved


def _fractions(array: Array) -> list[list[Fraction]]:
    return [[Fraction(str(x)) for x in row] for row in array.tolist()]


def _texts(array: Array) -> list[list[str]]:
    return [[str(x) for x in row] for row in array.tolist()]
