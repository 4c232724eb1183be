"""Claims about one token as theorems: plane sections without a linear factor, a shared quadric, forms of rank two.

With A = k qᵀ every row is a product of three real linear forms, so that on no line its discriminant is negative. A
cubic with a linear factor has a stabilizer in sl_3 on every plane, so that the eight derivatives along sl_3 are
dependent; Coq has proved both for all d and d'.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction
from itertools import pairwise
from random import Random
from typing import Any

from flint import fmpz, fmpz_mat

from attngeom.errors import InputError, SizeError
from attngeom.proofs.coq_text import DIFFERS, IS_NEGATIVE, IS_TRUE, listed, rows, theorem, vector
from attngeom.proofs.coq_weights import write_heads
from attngeom.proofs.cubic_maps import CubicMap, integer_inverse, search, small_vectors, unit


def form_theorem(c: CubicMap, claim: Mapping[str, Any], form: Mapping[str, Any]) -> tuple[str, str]:
    """The theorem of a claim whose rows are linear forms times one quadratic form, as far as it needs no signature."""
    verdict, a, rank = claim["verdict"], claim["attention"], claim["rank"]
    sizes, factored = f"{c.d} {c.d_out} 1", f"factoredR {c.d} 1 A"
    no_product = f"apply (cubicR {c.d} {c.d_out} den ts"
    if verdict == "not_realizable" and a == 1:
        statement = f"forall A V : mat R, {factored} -> ~ computesR {sizes} den ts A V"
        proof = f"{no_product} {' '.join(map(vector, _negative_line(c)))}). {IS_NEGATIVE}."
        return c.text() + theorem(statement, proof), "no real A = k qᵀ and V have these coefficients"
    rational = form["modulus"] is None
    if rational and verdict == "realizable" and rank == _rank(form["B"]):
        text, e = write_heads(c, [{"field": "Q", "A": form["B"], "V": form["V"]}], rank, c.d)
        statement = f"exists A V : mat R, factoredR {c.d} {rank} A /\\ computesR {sizes} den ts A V"
        proof = f"apply (layer_exists {sizes} {rank} den ({e})%Z head0 ts). {IS_TRUE}."
        return c.text() + text + theorem(statement, proof), f"real A of rank at most {rank} and V with them exist"
    if rational and verdict == "closure_only" and a == 1:
        text, e = write_heads(c, [{**_conjugate_factors(form["B"]), "V": form["V"]}], 1, c.d)
        statement = (
            f"(exists A V : mat C, factoredC {c.d} 1 A /\\ computesC {sizes} den ts A V) /\\\n"
            f"  forall A V : mat R, {factored} -> ~ computesR {sizes} den ts A V"
        )
        proof = (
            f"split.\n  - apply (complex_layer_exists {sizes} 1 den ({e})%Z head0 ts). {IS_TRUE}.\n"
            f"  - {no_product} {' '.join(map(vector, _negative_line(c)))}). {IS_NEGATIVE}."
        )
        return c.text() + text + theorem(statement, proof), "complex A = k qᵀ with them exist, no real one does"
    raise InputError("the claim rests on a signature, which is not exported; attngeom-check rechecks it")


def _rank(B: list[list[str]]) -> int:
    scaled = [[Fraction(x) for x in row] for row in B]
    common = 1
    for row in scaled:
        for x in row:
            common = common * x.denominator
    return int(fmpz_mat([[int(x * common) for x in row] for row in scaled]).rank())


def _conjugate_factors(B: list[list[str]]) -> dict[str, Any]:
    """A = k qᵀ over Q(√D), D < 0, with xᵀAx = xᵀBx for a form of rank two with equal signs."""
    form = [[Fraction(x) for x in row] for row in B]
    size = range(len(form))
    k = next(k for k in size if form[k][k])
    b, first = form[k][k], form[k]
    rest = [[form[i][j] - first[i] * first[j] / b for j in size] for i in size]
    l = next(l for l in size if rest[l][l])
    c, second = rest[l][l], rest[l]
    # xᵀBx = ((first·x)² − s² (second·x)²)/b with s² = −b/c = D f².
    square = -b / c
    D, factor = -1, Fraction(1, square.denominator)
    for prime, power in fmpz(-square.numerator * square.denominator).factor():
        factor *= int(prime) ** (power // 2)
        D *= int(prime) ** (power % 2)

    def entry(i: int, j: int) -> str:
        real = (first[i] * first[j] - square * second[i] * second[j]) / b
        root = factor * (second[i] * first[j] - first[i] * second[j]) / b
        return str(real) if not root else f"{real if real else ''}{'+' if real and root > 0 else ''}{root}*sqrt({D})"

    return {"field": f"Q(sqrt({D}))", "A": [[entry(i, j) for j in size] for i in size]}


def _negative_line(c: CubicMap) -> list[list[int]]:
    """A row and a line on which its discriminant is negative: it has no three real factors."""

    def candidates() -> Iterator[list[list[int]]]:
        rng = Random(0)
        for p, r in zip(small_vectors(c.d, rng), small_vectors(c.d, rng)):
            yield from ([unit(n, c.d_out), p, r] for n in range(c.d_out))

    return search(candidates(), lambda found: _discriminant(c, *found) < 0)


def _discriminant(c: CubicMap, w: list[int], p: list[int], r: list[int]) -> int:
    """16 times the discriminant of the binary cubic, from four values, as in Attn.v."""
    c0, c3 = c.one(w, p), c.one(w, r)
    s, m = c.one(w, [x + y for x, y in zip(p, r)]), c.one(w, [x - y for x, y in zip(p, r)])
    c1, c2 = s - m - 2 * c3, s + m - 2 * c0
    return c1**2 * c2**2 - 8 * c0 * c2**3 - 8 * c1**3 * c3 - 432 * c0**2 * c3**2 + 72 * c0 * c1 * c2 * c3


def plane_proof(c: CubicMap, data: Mapping[str, Any]) -> str:
    """No row has a linear factor on this plane: eight points at which the derivatives along sl_3 are independent."""
    w, plane = data["combination"], data["plane"]

    def value(x: list[int]) -> int:
        return c.one(w, [sum(a * p[k] for a, p in zip(x, plane)) for k in range(c.d)])

    def row(x: list[int]) -> list[int]:
        g = []
        for u in range(3):
            e = unit(u, 3)
            plus, minus = ([a + sign * b for a, b in zip(x, e)] for sign in (1, -1))
            g.append(value(plus) - value(minus) - 2 * value(e))
        mixed = [x[v] * g[u] for u in range(3) for v in range(3) if u != v]
        return [*mixed, *(x[u] * g[u] - x[v] * g[v] for u, v in pairwise(range(3)))]

    points, N, det = independent_rows(row, small_vectors(3, Random(0)), 8)
    triples = listed(f"({', '.join(f'({x})%Z' for x in point)})" for point in points)
    given = " ".join(map(vector, [w, *plane]))
    return f"apply (planeR {c.d} {c.d_out} den ts {given}\n    {triples} ({det})%Z {rows(N)}). {IS_TRUE}."


def independent_rows(row: Any, points: Iterator[list[int]], size: int) -> tuple[list[list[int]], Any, int]:
    """So many points at which rows are independent, with N and e such that N times the rows is e."""
    table: list[list[int]] = []
    chosen: list[list[int]] = []
    for point in points:
        new = row(point)
        if fmpz_mat([*table, new]).rank() == len(table) + 1:
            table.append(new)
            chosen.append(point)
        if len(table) == size:
            inverse = integer_inverse(table)
            assert inverse is not None
            return chosen, *inverse
    raise SizeError("no integer points show the rank; give smaller coefficients")


def shared_proof(c: CubicMap, data: Mapping[str, Any]) -> str:
    """Two combinations of rows share no quadric: 2d points at which the quartics z_k F, z_k G are independent."""
    w, x = data["combinations"]

    def row(z: list[int]) -> list[int]:
        first, second = c.one(w, z), c.one(x, z)
        return [k * first for k in z] + [-k * second for k in z]

    points, N, det = independent_rows(row, small_vectors(c.d, Random(0)), 2 * c.d)
    start = search(iter(points), lambda z: c.one(w, z) != 0)
    return (
        f"apply (sharedR {c.d} {c.d_out} den ts {vector(w)} {vector(x)}\n    {listed(map(vector, points))}\n"
        f"    {vector(start)} ({det})%Z {rows(N)}); [{IS_TRUE} | {DIFFERS}]."
    )
