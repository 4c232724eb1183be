"""[I] Example 19 in all degrees: for d = 3, t = 1 the maximal minors of the Lie flattening generate the ideal.

The proof is in docs/reference/papers.md (I-example-19): R/I ⊂ B, and C = B/(R/I) is presented by relations in degrees 2
and 3. This script finds the presentation by linear algebra mod p and asks Macaulay2 for two Hilbert series, of C and of
R/J. It ends with exit code 1 if they do not add up to that of B.

    python benchmarks/one_token_ideal.py [--quick]

There is one size, so that ``--quick`` changes nothing.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
from itertools import combinations_with_replacement

import numpy as np

from attngeom.exact import GF, rank_mod_p
from attngeom.exact.domains import Array
from contract import emit, require

P = 32003
SAMPLES = 900
PAIRS = list(combinations_with_replacement(range(3), 2))
TRIPLES = list(combinations_with_replacement(range(3), 3))
OF_B = {0: 1, 1: 8, 2: -9, 3: -10, 4: 10}
"""The numerator of the Hilbert series of B over (1 − T)^10, by Bott's theorem."""

FLATTENING = """
S = R[x_0..x_2]
F = sum flatten flatten apply(3, i -> apply(3, j -> apply(3, k -> Y#(sort {i, j, k})*x_i*x_j*x_k)))
act = (i, j) -> x_i*diff(x_j, F)
ops = apply(select(flatten apply(3, i -> apply(3, j -> (i, j))), p -> p#0 != p#1), act)
ops = ops | {act(0, 0) - act(1, 1), act(1, 1) - act(2, 2)}
monomials3 = flatten entries basis(3, S, Variables => {x_0, x_1, x_2})
J = minors(8, matrix apply(monomials3, m -> apply(ops, f -> sub(coefficient(m, f), R))))
"""


def products(y: Array, degree: int) -> tuple[Array, list[tuple[int, ...]]]:
    """The monomials of one degree in the coordinates y at all samples, and their names."""
    names = list(combinations_with_replacement(range(y.shape[1]), degree))
    columns = []
    for name in names:
        value = np.ones(len(y), dtype=np.int64)
        for place in name:
            value = value * y[:, place] % P
        columns.append(value)
    return np.stack(columns, axis=1), names


def presentation() -> list[list[dict[tuple[int, ...], int]]]:
    """The relations of C: the coefficients (polynomials in y) of each at the generators of degrees 1 (eight) and 2."""
    rng = np.random.default_rng(0)
    v, q = rng.integers(0, P, (SAMPLES, 3)), rng.integers(0, P, (SAMPLES, 6))
    Q = np.zeros((SAMPLES, 3, 3), dtype=np.int64)
    for s, (i, j) in enumerate(PAIRS):
        Q[:, i, j] = Q[:, j, i] = q[:, s]
    y = np.stack([(v[:, a] * Q[:, b, c] + v[:, b] * Q[:, a, c] + v[:, c] * Q[:, a, b]) % P for a, b, c in TRIPLES], 1)
    bilinear = (v[:, :, None] * q[:, None, :] % P).reshape(SAMPLES, -1)
    first, span = [], y
    for column in bilinear.T:
        larger = np.concatenate([span, column[:, None]], axis=1)
        if rank_mod_p(larger, P) == larger.shape[1]:
            span, first = larger, [*first, column]
    generators = [(0, np.ones(SAMPLES, dtype=np.int64)), *((1, column) for column in first)]
    require(len(first) == 8, "eight generators of degree 1")
    table, _ = multiples(y, generators, 2)
    rank = rank_mod_p(table, P)
    squares = (bilinear[:, :, None] * bilinear[:, None, :] % P).reshape(SAMPLES, -1).T
    last = next(c for c in squares if rank_mod_p(np.concatenate([table, c[:, None]], axis=1), P) > rank)
    generators.append((2, last))
    found = []
    for degree, expected in ((2, 10), (3, 110)):
        table, labels = multiples(y, generators, degree)
        kernel = GF(P).nullspace(table)
        require(len(kernel) == expected, f"{expected} relations of degree {degree}")
        for row in kernel:
            relation: list[dict[tuple[int, ...], int]] = [{} for _ in range(9)]
            for c, (place, name) in zip(row, labels):
                if place and c:
                    relation[place - 1][name] = int(c)
            found.append(relation)
    return found


def multiples(
    y: Array, generators: list[tuple[int, Array]], degree: int
) -> tuple[Array, list[tuple[int, tuple[int, ...]]]]:
    """All monomials in y times generators, of one total degree, at all samples."""
    columns, labels = [], []
    for place, (own, generator) in enumerate(generators):
        if own <= degree:
            values, names = products(y, degree - own)
            columns.append(values * generator[:, None] % P)
            labels += [(place, name) for name in names]
    return np.concatenate(columns, axis=1), labels


def script(relations: list[list[dict[tuple[int, ...], int]]]) -> str:
    """The Macaulay2 program: the numerators of the Hilbert series of C and of R/J."""
    rows = []
    for place in range(9):
        entries = []
        for relation in relations:
            terms = ["*".join([str(c), *(f"y_{i}" for i in name)]) for name, c in relation[place].items()]
            entries.append("+".join(terms) or "0")
        rows.append("{" + ",".join(entries) + "}")
    names = ", ".join(f"{{{a},{b},{c}}} => y_{i}" for i, (a, b, c) in enumerate(TRIPLES))
    return (
        f"R = ZZ/{P}[y_0..y_9]\nY = hashTable {{{names}}}\n{FLATTENING}\n"
        f"C = coker map(R^{{8:-1,-2}},,matrix{{{','.join(rows)}}})\n"
        "print toString numerator hilbertSeries C\nprint toString numerator hilbertSeries(R^1/J)\n"
    )


def read_numerator(line: str) -> dict[int, int]:
    """{degree: coefficient} of a polynomial in T as Macaulay2 prints it."""
    found = {}
    for sign, number, power, exponent in re.findall(r"([+-]?)(\d*)\*?(T?)\^?(\d*)", line):
        if number or power:
            found[int(exponent or 1) if power else 0] = int(number or 1) * (-1 if sign == "-" else 1)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="the same: there is one size")
    parser.parse_args()
    if shutil.which("M2") is None:
        print("Macaulay2: not installed")
        return 0
    program = script(presentation())
    used = os.times()
    emit("the proof of Example 19", "presentation of C, mod p, with the start", used.user + used.system)
    run = subprocess.run(["M2", "--script", "/dev/stdin"], input=program, capture_output=True, text=True, check=True)
    used = os.times()
    emit("the proof of Example 19", "Hilbert series by Macaulay2", used.children_user + used.children_system)
    of_C, of_quotient = map(read_numerator, run.stdout.split())
    keys = OF_B.keys() | of_C.keys()
    expected = {n: c for n in sorted(keys) if (c := OF_B.get(n, 0) - of_C.get(n, 0))}
    require(expected == of_quotient, "the Hilbert series of B − C is that of R/J")
    emit("the proof of Example 19", "series that differ", int(expected != of_quotient), unit="differences")
    print("C:  ", dict(sorted(of_C.items())))
    print("R/J:", dict(sorted(of_quotient.items())))
    print("B − C = R/J:", expected == of_quotient)
    return 0 if expected == of_quotient else 1


if __name__ == "__main__":
    sys.exit(main())
