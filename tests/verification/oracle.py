"""Whether a claim about one layer is true, decided by divisors of polynomials: code that nothing in the package shares.

For t ≥ 2 the table T[n, m] of quadrics must be u_n w_m. Greatest common divisors give u and w up to constants; where
one of them is constant the quadrics of the other must share a linear factor, and a quadric that all are multiples of
has one over R or C by its signature, read off a diagonal form. For t = 1 the cubics must share a quadratic factor.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from itertools import product
from typing import Any

import sympy

Polynomial = Any
Verdict = tuple[str, int | None]
UNKNOWN = ("unknown", None)


def symbols(d: int) -> tuple[Any, ...]:
    return sympy.symbols(f"z0:{d}")


def signature(quadric: Polynomial, z: tuple[Any, ...]) -> tuple[int, int]:
    """Positive and negative squares of a rational quadratic form, by completing squares."""
    quadric = sympy.expand(quadric)
    for x in z:
        square = quadric.coeff(x, 2)
        if square != 0:
            form = sympy.expand(sympy.diff(quadric, x) / (2 * square))
            p, n = signature(quadric - square * form**2, z)
            return (p + 1, n) if square > 0 else (p, n + 1)
    for x, y in product(z, z):
        mixed = quadric.coeff(x, 1).coeff(y, 1)
        if x != y and mixed != 0:
            # xy = ((x + y)² − (x − y)²) / 4 brings squares in.
            s, t = sympy.symbols("s t")
            moved = sympy.expand(quadric.subs({x: s + t, y: s - t}, simultaneous=True))
            return signature(moved, (s, t, *(v for v in z if v not in (x, y))))
    return 0, 0


def degree(f: Polynomial, z: tuple[Any, ...]) -> int:
    return sympy.Poly(f, *z).total_degree()


def coefficients_of(claim: Mapping[str, Any]) -> dict[tuple[Any, ...], Any]:
    """{(output, sorted monomial): value} of a claim."""
    terms = claim["coefficients"]["terms"]
    return {(tuple(x["output"]), tuple(sorted(map(tuple, x["monomial"])))): sympy.Rational(x["value"]) for x in terms}


def decide(claim: Mapping[str, Any]) -> Verdict:
    """The true verdict and the rank of A that the coefficients force ("unknown" where this code cannot tell)."""
    record = claim["coefficients"]
    d, d_out, t = record["d"], record["d_out"], record["t"]
    z, given = symbols(d), coefficients_of(claim)
    if not given:
        return "zero", None
    bound = d if claim["attention"] is None else claim["attention"]
    if t == 1:
        return _decide_cubics(given, z, d_out, bound)
    table = _read_table(given, z, d, d_out, t)
    if table is None:
        return "not_realizable", None
    verdict, rank = _decide_table(table, z)
    if rank is not None and rank > bound:
        return "not_realizable", None
    return verdict, rank


def _read_table(given: dict[tuple[Any, ...], Any], z: Any, d: int, d_out: int, t: int) -> list[list[Any]] | None:
    """The quadrics T[n][m], or None if the terms are not those of φ_nj = Σ_i Σ_m T[n][m](x_i) x_mj for any table."""
    table: list[list[Any]] = [[sympy.Integer(0)] * d for _ in range(d_out)]
    expected: dict[tuple[Any, ...], Any] = {}
    for ((n, column), monomial), value in given.items():
        if column == 0 and sorted(c for _, c in monomial) == [0, 1, 1]:
            (m,) = (row for row, c in monomial if c == 0)
            k, l = (row for row, c in monomial if c == 1)
            table[n][m] += value * z[k] * z[l]
            for j, i in product(range(t), range(t)):
                place = (n, j), tuple(sorted([(k, i), (l, i), (m, j)]))
                expected[place] = expected.get(place, 0) + value
    return table if {place: value for place, value in expected.items() if value != 0} == given else None


def _decide_table(table: list[list[Any]], z: tuple[Any, ...]) -> Verdict:
    rows, columns = range(len(table)), range(len(table[0]))
    for n, s in product(rows, rows):
        for m, r in product(columns, columns):
            if sympy.expand(table[n][m] * table[s][r] - table[n][r] * table[s][m]) != 0:
                return "not_realizable", None
    n0 = next(n for n in rows if any(table[n]))
    m0 = next(m for m in columns if table[n0][m] != 0)
    content = reduce(sympy.gcd, table[n0])
    w = [sympy.cancel(q / content) for q in table[n0]]
    u = [sympy.cancel(table[n][m0] / w[m0]) for n in rows]
    if degree(w[m0], z) == 1:
        return "realizable", sympy.Matrix([[f.coeff(x) for x in z] for f in w]).rank()
    side = u if degree(w[m0], z) == 0 else [table[n0][m] for m in columns]
    shared = reduce(sympy.gcd, side)
    if degree(shared, z) == 0:
        return "not_realizable", None
    if degree(shared, z) == 1:
        forms = [sympy.cancel(q / shared) for q in side]
        span = sympy.Matrix([[sympy.expand(f).coeff(x) for x in z] for f in forms]).rank()
        return "realizable", 1 if side is u else span
    p, n = signature(shared, z)
    if p + n > 2:
        return "not_realizable", None
    return ("closure_only" if (p, n) in ((2, 0), (0, 2)) else "realizable"), 1


def _decide_cubics(given: dict[tuple[Any, ...], Any], z: tuple[Any, ...], d_out: int, bound: int) -> Verdict:
    cubics = [sympy.Integer(0)] * d_out
    for ((n, _), monomial), value in given.items():
        cubics[n] += value * sympy.prod(z[row] for row, _ in monomial)
    shared = reduce(sympy.gcd, cubics)
    if degree(shared, z) < 2:
        return "not_realizable", None
    if degree(shared, z) == 3:
        linear = [f for f, _ in sympy.factor_list(shared)[1] if degree(f, z) == 1]
        if not linear:
            return UNKNOWN
        verdicts = [_by_signature(*signature(sympy.cancel(shared / f), z), bound) for f in linear]
        return min(verdicts, key=["realizable", "closure_only", "not_realizable"].index), None
    return _by_signature(*signature(shared, z), bound), None


def _by_signature(p: int, n: int, bound: int) -> str:
    if max(p, n) <= bound:
        return "realizable"
    return "closure_only" if p + n <= 2 * bound else "not_realizable"


def is_true(claim: Mapping[str, Any]) -> bool | None:
    """Whether a well-formed claim about one layer is true; None where this oracle cannot tell."""
    verdict, rank = decide(claim)
    stated, bound = claim["rank"], claim["attention"]
    if verdict == "zero":
        # A can be any matrix if V = 0.
        largest = claim["coefficients"]["d"] if bound is None else min(bound, claim["coefficients"]["d"])
        return claim["verdict"] == "realizable" and 0 <= stated <= largest
    if verdict == "unknown":
        return None
    if claim["verdict"] == "not_realizable":
        return verdict == "not_realizable" and stated is None
    if verdict != claim["verdict"] or stated is None:
        return False
    return (rank is None or stated == rank) and (bound is None or stated <= bound)
