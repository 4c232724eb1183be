"""Given weights of heads as integers: A = KᵀQ and V = O W over Q or Q(√D), cleared of denominators, factored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from math import lcm
from typing import Any

from attngeom.exact.domains import QQ, Array, Domain, QuadraticField
from attngeom.proofs.coq_text import Matrix, matrix
from attngeom.proofs.cubic_maps import CubicMap


def write_heads(c: CubicMap, heads: Sequence[Mapping[str, Any]], a: int, v: int) -> tuple[str, int]:
    """The definitions head0, head1, … with integer factors, and e: the value maps are to be divided by it."""
    factored, scales = [], []
    for head in heads:
        name = head["field"]
        domain: Domain = QQ if name == "Q" else QuadraticField(int(name[7:-2]))
        A, V = domain.convert(head["A"]), domain.convert(head["V"])
        K, Q = _factor(A, a, domain)
        O, W = (V, domain.eye(c.d)) if v == c.d else _factor(V, v, domain, left=True)
        cleared = [_clear(x, domain) for x in (K, Q, O, W)]
        scale = 1
        for _, factor in cleared:
            scale *= factor
        factored.append((0 if name == "Q" else int(name[7:-2]), [parts for parts, _ in cleared]))
        scales.append(scale)
    e = lcm(1, *scales)
    texts = []
    for number, ((D, (keys, queries, outs, values)), scale) in enumerate(zip(factored, scales)):
        outs = [[[x * (e // scale) for x in row] for row in part] for part in outs]
        att, value = _times([_transposed(part) for part in keys], queries, D), _times(outs, values, D)
        parts = " ".join(matrix(part) for pair in (keys, queries, att, outs, values, value) for part in pair)
        texts.append(f"Definition head{number} : head := Head ({D})%Z {parts}.\n")
    # den · Σ phi(integers) = e den · F: the terms are den · F.
    return "".join(texts), e


def _transposed(part: Matrix) -> list[list[int]]:
    return [list(column) for column in zip(*part)]


def _times(left: list[Any], right: list[Any], D: int) -> list[list[list[int]]]:
    """(L_0 + s L_1)(R_0 + s R_1) with s² = D."""

    def product(x: Matrix, y: Matrix) -> list[list[int]]:
        columns = list(zip(*y))
        return [[sum(p * q for p, q in zip(row, column)) for column in columns] for row in x]

    straight = [product(left[0], right[0]), product(left[1], right[1])]
    mixed = [product(left[0], right[1]), product(left[1], right[0])]
    first = [[x + D * y for x, y in zip(*pair)] for pair in zip(*straight)]
    return [first, [[x + y for x, y in zip(*pair)] for pair in zip(*mixed)]]


def _factor(M: Array, size: int, domain: Domain, left: bool = False) -> tuple[Array, Array]:
    """K, Q of ``size`` rows with M = KᵀQ, or O, W with M = O W; the rank is at most the size."""
    echelon = domain.rref(M)
    pivots = list(echelon.pivots)
    first = domain.zeros((M.shape[0], size))
    second = domain.zeros((size, M.shape[1]))
    for place, column in enumerate(pivots):
        first[:, place] = M[:, column]
        second[place] = echelon.matrix[place]
    return (first, second) if left else (first.T, second)


def _clear(M: Array, domain: Domain) -> tuple[list[list[list[int]]], int]:
    """Integer parts of 1 and √D times a common denominator, and that."""
    parts = [[[Fraction(int(x.p), int(x.q)) for x in row] for row in part] for part in domain.parts(M)]
    scale = lcm(1, *(x.denominator for part in parts for row in part for x in row))
    cleared = [[[int(x * scale) for x in row] for row in part] for part in parts]
    zero = [[0] * len(row) for row in cleared[0]]
    return (cleared if len(cleared) == 2 else [cleared[0], zero]), scale
