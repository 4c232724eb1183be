"""Completeness in all degrees: a proven bound for the degrees of minimal generators, and the finite check below it.

The proofs are in docs/completeness.md. In short: B, the coordinate ring of the pairs (v, A), is resolved by the
Kempf–Weyman complex. R/I ⊂ B has a known cokernel C; C has a submodule N, the sum over l ≥ 2 of section modules of
Ω^l ⊠ Ω^{l-1} on P(V) × P(U), and the Tor of C/N are small. A minimal generator of degree ≥ 5 for the full attention
width therefore comes from Tor_2(N), which is a part of Λ²(R_1) ⊗ N and ends at a degree that local cohomology gives.
That leaves finitely many modules S_λV ⊗ S_μU to look at. Smaller attention widths a add the (a+1)-minors of the
flattening, of which S_{(a+2, 1^a)} ⊗ Λ^{a+1} alone is new, and need no module with more than a rows in μ.
"""

from __future__ import annotations

import time
from collections import Counter
from math import comb

from attngeom.equations.ideal.degrees import Budget, Progress
from attngeom.equations.ideal.formulas import effective_rank, generator_degree_bound
from attngeom.equations.ideal.highest_weights import HighestWeightEngine
from attngeom.equations.ideal.records import Completeness, WeightResult
from attngeom.equations.ideal.tableaux import plethysm
from attngeom.errors import SizeError
from attngeom.exact.multisets import pairs
from attngeom.exact.partitions import Partition, Weight, add_horizontal_strips
from attngeom.exact.primes import WORD_PRIME

LAST_COMMON_DEGREE = 4
"""Up to here generators have other sources than Tor_2(N): these degrees are computed in full, module by module."""

MAX_ROW_SETS = 10**7
"""Minors of one point that a run may need; more would take weeks."""

LAST_DEGREE_OF_RANK_ONE = 3
"""For attention of rank one: quadrics, and the 3-minors of symmetric matrices."""

SECOND_EXTERIOR_POWER: tuple[tuple[Partition, Partition], ...] = (((4,), (1, 1)), ((2, 2), (1, 1)), ((3, 1), (2,)))
"""Λ²(S²V ⊗ U) = ⊕ S_λV ⊗ S_μU."""


def last_degree(d: int, targets: int, l: int) -> int:
    """The largest degree n in which Tor_2 of the l-th layer of N, ⊕_n Γ(Ω^l(2n) ⊠ Ω^{l-1}(n)), can be nonzero.

    Its Castelnuovo–Mumford regularity, plus two. The modules of this Tor_2 have at most l+3 and l+2 rows, so larger d
    and targets change nothing.

    >>> last_degree(4, 4, 3), last_degree(100, 100, 3)
    (8, 9)
    """
    d, targets = min(d, l + 3), min(targets, l + 2)
    top = d + targets - 1 + min((l - d) // 2, l - 1 - targets)
    return 2 + max(2 * l, top)


def generator_bound(d: int, a: int, targets: int) -> int:
    """A proven bound for the degrees of minimal generators: max(4, 2d) for a = targets = d ≥ 2.

    >>> [generator_bound(d, d, d) for d in (1, 2, 3, 4, 5, 10)]
    [3, 4, 6, 8, 10, 20]
    >>> [generator_bound(100, a, 100) for a in (1, 2, 3, 4, 10)]
    [3, 6, 8, 10, 22]
    """
    rank = effective_rank(d, a, targets)
    if rank == 1:
        return LAST_DEGREE_OF_RANK_ONE
    minors = rank + 1 if rank < min(d, targets) else 0
    return max(minors, LAST_COMMON_DEGREE, *(last_degree(d, rank, l) for l in _layers(d, rank)))


def _layers(d: int, rank: int) -> range:
    return range(2, min(d - 1, rank) + 1)


def candidates(d: int, rank: int, degree: int) -> list[Weight]:
    """The highest weights with at most ``rank`` rows in μ that Tor_2(N) can have in one degree, layer by layer.

    >>> len(candidates(4, 4, 8)), candidates(4, 4, 9)
    (40, [])
    """
    found: set[Weight] = set()
    n = degree - 2
    for l in _layers(d, rank):
        if l > n or degree > last_degree(d, rank, l):
            continue
        hook, small_hook = (2 * n - l, *(1,) * l), (n - l + 1, *(1,) * (l - 1))
        for left, right in SECOND_EXTERIOR_POWER:
            found |= {
                (lam, mu)
                for lam in _product(hook, left)
                for mu in _product(small_hook, right)
                if len(lam) <= d and len(mu) <= rank and lam in plethysm(mu, d)
            }
    return sorted(found, reverse=True)


def _product(shape: Partition, factor: Partition) -> list[Partition]:
    """The constituents of S_shape ⊗ S_factor for a factor of at most two rows, by Jacobi–Trudi and Pieri."""
    first, second = (*factor, 0)[:2]
    terms = [((first, second), 1)] + ([((first + 1, second - 1), -1)] if second else [])
    total: Counter[Partition] = Counter()
    for sizes, sign in terms:
        for middle in add_horizontal_strips(shape, sizes[0]):
            for outer in add_horizontal_strips(middle, sizes[1]):
                total[outer] += sign
    return [outer for outer, count in total.items() if count]


def check_reach(d: int, a: int, targets: int) -> int:
    """The context directions that decide completeness for all larger d, if the sizes are within reach.

    >>> check_reach(100, 3, 100)
    5
    """
    rank = effective_rank(d, a, targets)
    rows = min(d, rank + 2)
    if comb(len(pairs(rows)), rank) > MAX_ROW_SETS:
        raise SizeError(
            f"completeness for d = {d}, a = {a}, targets = {targets} given; it is too large, take d ≤ 7 or a ≤ 6"
        )
    return rows


def prove_complete(
    d: int,
    a: int,
    targets: int | None = None,
    seed: int = 0,
    progress: Progress | None = None,
    budget: Budget | None = None,
) -> Completeness:
    """Check every module that could hold a minimal generator of degree 5 or more, beside the (a+1)-minors.

    If none does, the ideal is generated by its equations of degree ≤ 4 and those minors. The modules have at most
    min(a, d, targets) rows in μ and two more in λ, so the cost depends on the attention width, however large d is.

    >>> found = prove_complete(100, 3)
    >>> found.is_complete, found.degree, found.bound
    (True, 4, 8)
    """
    targets = d if targets is None else targets
    start = time.process_time()
    bound, rank = generator_bound(d, a, targets), effective_rank(d, a, targets)
    rows = check_reach(d, a, targets)
    last = max((last_degree(rows, rank, l) for l in _layers(rows, rank)), default=0)
    engine = HighestWeightEngine(rows, rank, WORD_PRIME, seed)
    checked, results, is_finished = [], [], True
    began = time.monotonic()
    for degree in range(LAST_COMMON_DEGREE + 1, last + 1):
        weights = candidates(rows, rank, degree)
        found = _run_all(engine, degree, weights, began, budget or Budget(), progress)
        results += found
        if len(found) < len(weights):
            is_finished = False
            break
        engine.forget(degree - 1)
        checked.append((degree, len(weights)))
    return Completeness(
        d=d,
        a=a,
        targets=targets,
        degree=generator_degree_bound(d, a, targets).value,
        bound=bound,
        checked=tuple(checked),
        new=tuple((r.degree, r.weight, extra) for r in results if (extra := r.ideal_dimension - r.generated)),
        is_proven=is_finished and all(r.is_rank_proven and r.is_generated_proven for r in results),
        prime=WORD_PRIME,
        seed=seed,
        seconds=time.process_time() - start,
    )


def _run_all(
    engine: HighestWeightEngine,
    degree: int,
    weights: list[Weight],
    began: float,
    budget: Budget,
    progress: Progress | None,
) -> list[WeightResult]:
    """The results of the weights for the full attention width; fewer if the budget ended the run."""
    results: list[WeightResult] = []
    for weight in weights:
        if not budget.allows(began, engine, degree, weight):
            break
        results.append(engine.run(degree, weight, engine.targets))
        if progress is not None:
            progress(degree, len(results), len(weights))
    return results
