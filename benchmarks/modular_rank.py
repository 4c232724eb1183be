"""Ranks and nullspaces mod p: blocked elimination in float64 BLAS against FLINT, and float64 SVD for reference.

All times are CPU seconds of one core in one run, conversion from and to NumPy arrays included. FLINT and the float64
references are given as multiples of the BLAS time at the same size: the float64 rank (numpy.linalg.matrix_rank) is an
estimate, not a proof, and LAPACK's LU gives no rank at all. The pivots, a nonzero minor as witness, cost nothing
beyond the rank.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from scipy.linalg import lu_factor

from attngeom.exact import BLAS_PRIME, GF, WORD_PRIME
from attngeom.exact.modular import choose_method, rank_mod_p, rref_mod_p
from contract import LIMIT, emit, multiply_rate, require

SIZES = [50, 100, 150, 200, 250, 300, 500, 1000, 2000, 4000, 8000]
QUICK = [300, 500, 1000, 1500]
DEFECT = 5


def measure(call: Callable[[], object]) -> tuple[float, object]:
    """The least CPU time of up to three calls, repeated only while they are short, and the value."""
    best, total = float("inf"), 0.0
    for _ in range(3):
        start = time.process_time()
        value = call()
        elapsed = time.process_time() - start
        best, total = min(best, elapsed), total + elapsed
        if total > 1:
            break
    return best, value


def random_matrix(rows: int, columns: int, p: int, seed: int) -> np.ndarray:
    """A random matrix mod p whose last DEFECT columns are sums of earlier ones."""
    a = np.random.default_rng(seed).integers(0, p, (rows, columns))
    for k in range(DEFECT):
        a[:, columns - 1 - k] = (a[:, k] + a[:, k + 1]) % p
    return a


def compare_ranks(sizes: list[int], p: int, with_floats: bool) -> None:
    print(f"rank of an n×n matrix of rank n − {DEFECT} mod p = {p}")
    print(f"{'n':>6} {'BLAS s':>10} {'FLINT':>8} {'float64 SVD':>12}  chosen")
    for n in sizes:
        a = random_matrix(n, n, p, seed=n)
        blas, rank = measure(lambda a=a: rank_mod_p(a, p, method="blas"))
        flint, other = measure(lambda a=a: rank_mod_p(a, p, method="flint"))
        require(rank == other == n - DEFECT, f"the rank at n = {n} is {n - DEFECT}")
        svd = measure(lambda a=a: np.linalg.matrix_rank(a / p))[0] if with_floats else float("nan")
        # The last columns are left out: with them the matrix is singular.
        lu = measure(lambda a=a: lu_factor(a[:-DEFECT, :-DEFECT] / p))[0]
        row = f"{n:>6} {blas:>10.4f} {flint / blas:>7.2f}× {svd / blas:>11.2f}×  {choose_method(n, n, p)}"
        print(row.replace("nan×", "   –"), flush=True)
        table, case = f"rank of an n×n matrix mod {p}", f"n = {n}"
        emit(table, case, blas, size=n)
        emit(table, case, flint, "FLINT", size=n)
        emit(table, case, lu, "LAPACK LU (no rank)", size=n)
        if with_floats:
            emit(table, case, svd, "float64 SVD (no proof)", size=n)
        emit(table, case, n**3 / 3 / multiply_rate(), LIMIT, size=n)


def compare_nullspaces(sizes: list[int], p: int) -> None:
    print(f"nullspace of an (n+50)×n matrix of rank n − {DEFECT} mod p = {p}")
    print(f"{'n':>6} {'BLAS s':>10} {'FLINT':>8}  chosen")
    for n in sizes:
        a = random_matrix(n + 50, n, p, seed=n)
        blas, basis = measure(lambda a=a: GF(p).kernel(rref_mod_p(a, p, method="blas")))
        flint, other = measure(lambda a=a: GF(p).kernel(rref_mod_p(a, p, method="flint")))
        require(np.array_equal(basis, other) and len(basis) == DEFECT, f"nullspaces at n = {n} agree")
        require(GF(p).is_zero(GF(p).matmul(basis, a.T)), "they are annihilated")
        print(f"{n:>6} {blas:>10.4f} {flint / blas:>7.2f}×  {choose_method(n + 50, n, p)}", flush=True)
        table, case = f"nullspace of an (n+50)×n matrix mod {p}", f"n = {n}"
        emit(table, case, blas, size=n)
        emit(table, case, flint, "FLINT", size=n)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small sizes only, a few seconds")
    sizes = QUICK if parser.parse_args().quick else SIZES
    for p in (BLAS_PRIME, WORD_PRIME):
        compare_ranks(sizes, p, with_floats=p == BLAS_PRIME)
    for p in (BLAS_PRIME, WORD_PRIME):
        compare_nullspaces([n for n in sizes if n <= 4000], p)


if __name__ == "__main__":
    main()
