"""The equations of two lightning layers, t ≥ 2, by values at random weights: dimensions of the ideal by weight space.

    python benchmarks/deep_ideal.py [--hidden 2] [--degree 4] [--primes 1000003,2097143] [--seed 1] [--quick]

d = 2 inputs, one output row; coordinates are the 30 coefficients of P, φ(X) = P(X Xᵀ) X (Theorem T1 of
docs/theorems/depth.md). Monomials of one degree and one weight of the torus are evaluated at 20 more random weights
than there are monomials; the rank mod p is at most the rank over Q, so monomials less rank bound the dimension of the
ideal from above: that is proven. As long as the rank is not the generic one mod p, a further point raises it but for a
probability of at most gn/p (n the degree; P has degree g = 5 in what is drawn, 8 for hidden width 1), so 21 failures
among N points have a probability of at most C(N, 21) (gn/p)^21, which is printed. That p is no bad prime is not known;
two primes are taken.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from functools import reduce
from itertools import combinations_with_replacement, product

import numpy as np
from flint import nmod_mat

from contract import emit, require

Form = dict[tuple[int, int, int], np.ndarray]
"""A polynomial in the entries s_11, s_12, s_22 of X Xᵀ, with a number for each of many weights."""
Matrix = list[list[Form]]
SPARE = 20


class Networks:
    """Random virtual weights (M_1, M_2, L) mod p, hidden width 2 or 1, and the coefficients of P for each."""

    def __init__(self, hidden: int, p: int, seed: int) -> None:
        self.hidden, self.p, self.rng = hidden, p, np.random.default_rng(seed)
        self.exponents = [e for e in product(range(5), repeat=3) if sum(e) == 4]
        # P is 1×2; the torus acts on s_ij by its rows, on column m of P by the row that it replaces.
        self.weights = [2 * e[0] + e[1] + (m == 0) for m in range(2) for e in self.exponents]

    def multiply(self, A: Matrix, B: Matrix) -> Matrix:
        return [[reduce(self._add, [self._times(x, B[k][j]) for k, x in enumerate(row)]) for j in range(len(B[0]))]
                for row in A]  # fmt: skip

    def _times(self, f: Form, g: Form) -> Form:
        total: Form = {}
        for (a, x), (b, y) in product(f.items(), g.items()):
            place = (a[0] + b[0], a[1] + b[1], a[2] + b[2])
            total[place] = (total.get(place, 0) + x * y) % self.p
        return total

    def _add(self, f: Form, g: Form) -> Form:
        return {place: (f.get(place, 0) + g.get(place, 0)) % self.p for place in f | g}

    def points(self, number: int) -> np.ndarray:
        """The 30 coordinates (number, 30) of random networks."""
        p = self.p

        def draw(*shape: int) -> np.ndarray:
            return self.rng.integers(0, p, (*shape, number))

        M_1, M_2, L = draw(2, 2), draw(2, 2), draw(1, 2)
        if self.hidden == 1:
            # Behind one hidden direction v both are multiples of it.
            v, scale = draw(2), draw()
            M_2, L = scale * (v[:, None] * v[None] % p) % p, draw() * v[None] % p
        one = np.ones(number, dtype=np.int64)
        S: Matrix = [[{(1, 0, 0): one}, {(0, 1, 0): one}], [{(0, 1, 0): one}, {(0, 0, 1): one}]]
        first, second, last = ([[{(0, 0, 0): x} for x in row] for row in M] for M in (M_1, M_2, L))
        P_1 = self.multiply(S, first)
        transposed = [list(row) for row in zip(*P_1)]
        P = reduce(self.multiply, [last, P_1, S, transposed, second, P_1])
        zero = np.zeros(number, dtype=np.int64)
        return np.array([P[0][m].get(e, zero) for m in range(2) for e in self.exponents]).T

    def nullity(self, degree: int, weight: int) -> tuple[int, int]:
        """The monomials of a degree and weight, and how many of them the rank of their values leaves."""
        monomials = [m for m in combinations_with_replacement(range(30), degree)
                     if sum(self.weights[k] for k in m) == weight]  # fmt: skip
        if not monomials:
            return 0, 0
        X, places = self.points(len(monomials) + SPARE), np.array(monomials)
        values = np.ones((len(X), len(monomials)), dtype=np.int64)
        for k in range(degree):
            values = values * X[:, places[:, k]] % self.p
        return len(monomials), len(monomials) - nmod_mat(values.tolist(), self.p).rank()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hidden", type=int, choices=(1, 2), default=2)
    parser.add_argument("--degree", type=int, default=4)
    parser.add_argument("--primes", default="1000003,2097143")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--quick", action="store_true", help="hidden width 1 in degree 2")
    arguments = parser.parse_args()
    hidden, degree = (1, 2) if arguments.quick else (arguments.hidden, arguments.degree)
    totals = set()
    for p in (int(x) for x in arguments.primes.split(",")):
        begun, networks = time.process_time(), Networks(hidden, p, arguments.seed)
        # The weights w and 9 · degree − w are exchanged with the two rows of X.
        half = [networks.nullity(degree, w) for w in range(9 * degree // 2 + 1)]
        left, largest = [x for _, x in half], max(x for x, _ in half)
        total = 2 * sum(left) - (left[-1] if 9 * degree % 2 == 0 else 0)
        share = (5 if hidden == 2 else 8) * degree / p
        failures = math.log10(math.comb(largest + SPARE, SPARE + 1)) + (SPARE + 1) * math.log10(share)
        multiplicities = [after - before for before, after in zip([0, *left], left)]
        print(f"widths 2, {hidden}, 1, degree {degree}, mod {p}, seed {arguments.seed}: dimension {total}")
        print(f"  multiplicities of S_({9 * degree} − w, w): {multiplicities}")
        print(f"  rank below the generic one mod p: probability below 10^{failures:.0f} for each weight")
        emit("equations of two layers", f"2, {hidden}, 1, degree {degree}, mod {p}", total, unit="equations")
        emit("CPU time", f"mod {p}", round(time.process_time() - begun, 1), unit="CPU s")
        totals.add(total)
    require(len(totals) == 1, "all primes give the same dimension")
    return 0


if __name__ == "__main__":
    sys.exit(main())
