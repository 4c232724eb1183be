"""Completeness in all degrees: Theorem 6 of docs/theorems/completeness.md, and a finite check beside it.

:func:`complete` states Theorem 6 for given sizes. :func:`check_complete` looks at the modules S_λV ⊗ S_μU that Theorem
5 leaves open: those that Tor_2(N) can have and Lemma 5 does not decide, one by one, here or in several processes.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import cache, lru_cache, partial

from attngeom.equations.ideal.degrees import OnWeight, Run
from attngeom.equations.ideal.formulas import (
    cone_dimension,
    determinantal_degree,
    effective_rank,
    generator_modules,
    variety_degree,
)
from attngeom.equations.ideal.koszul import check_last_degrees, last_syzygy_degree
from attngeom.equations.ideal.limits import Limits, OverBudget, check
from attngeom.equations.ideal.records import CompletenessCheck, CompletenessResult, WeightResult, make_module
from attngeom.equations.ideal.tableaux import multiplicity
from attngeom.equations.ideal.weight_spaces import HighestWeightEngine
from attngeom.equations.variety import Variety
from attngeom.errors import InputError, SizeError
from attngeom.exact.partitions import Partition, Weight, add_horizontal_strips, is_partition, strip
from attngeom.limits.work import COMPLETENESS_RANK
from attngeom.processes import run_apart

Module = tuple[int, Weight]

UNIVERSAL_DEGREE = 6
"""Theorem 6: no generator has a larger degree, beside the (α+1)-minors; up to here all modules are run."""

LAST_COMMON_DEGREE = 4
"""Up to here generators have other sources than Tor_2(N): these degrees are computed in full, module by module."""


LAST_DEGREE_OF_RANK_ONE = 3
"""For attention of rank one (Theorem 3): quadrics, and the 3-minors of symmetric matrices."""

SECOND_EXTERIOR_POWER: tuple[tuple[Partition, Partition], ...] = (((4,), (1, 1)), ((2, 2), (1, 1)), ((3, 1), (2,)))
"""Λ²(S²V ⊗ U) = ⊕ S_λV ⊗ S_μU."""


def last_degree(d: int, targets: int, l: int) -> int:
    """The largest degree n in which Tor_2 of the l-th layer of N, ⊕_n Γ(Ω^l(2n) ⊠ Ω^{l-1}(n)), can be nonzero.

    Its regularity, plus two; its modules have at most l+3 and l+2 rows, so larger d and targets change nothing.

    >>> last_degree(4, 4, 3), last_degree(100, 100, 3)
    (8, 9)
    """
    d, targets = min(d, l + 3), min(targets, l + 2)
    top = d + targets - 1 + min((l - d) // 2, l - 1 - targets)
    return 2 + max(2 * l, top)


def generator_bound(d: int, a: int, targets: int) -> int:
    """The bound of Theorem 5 for the degrees of minimal generators: max(4, 2d) for a = targets = d ≥ 2.

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
    weights: set[Weight] = set()
    n = degree - 2
    for l in _layers(d, rank):
        if l > n or degree > last_degree(d, rank, l):
            continue
        hook, small_hook = (2 * n - l, *(1,) * l), (n - l + 1, *(1,) * (l - 1))
        for left, right in SECOND_EXTERIOR_POWER:
            weights |= {
                (lam, mu)
                for lam in _product(hook, left)
                for mu in _product(small_hook, right)
                if len(lam) <= d and len(mu) <= rank and multiplicity(lam, mu)
            }
    return sorted(weights, reverse=True)


def all_candidates(d: int, rank: int) -> dict[int, list[Weight]]:
    """The degrees from 5 on, and their highest weights, in which Theorem 5 leaves a generator possible."""
    last = max((last_degree(d, rank, l) for l in _layers(d, rank)), default=0)
    return {degree: candidates(d, rank, degree) for degree in range(LAST_COMMON_DEGREE + 1, last + 1)}


def is_multiple(lam: Partition, mu: Partition) -> bool:
    """Whether one coordinate divides all highest weight vectors of S_λV ⊗ S_μU in R_n: none is a minimal generator.

    Lemma 5: that of the first row, or of the first column, if the multiplicity without it is the same.

    >>> is_multiple((13, 3, 3, 1, 1, 1), (5, 2, 2, 1, 1)), is_multiple((3, 3, 1, 1), (2, 2))
    (True, False)
    """
    shorter = [(strip((lam[0] - 2, *lam[1:])), strip((mu[0] - 1, *mu[1:])))]
    if lam[-1] == mu[-1] == 1:
        shorter.append((strip((lam[0] - 1, *lam[1:-1])), mu[:-1]))
    return any(
        is_partition(rest) and is_partition(shape) and multiplicity(rest, shape) == multiplicity(lam, mu)
        for rest, shape in shorter
    )


def modules_to_check(d: int, rank: int) -> Iterator[tuple[int, Weight]]:
    """The candidates, by degree, that are not decided by their multiplicities alone."""
    for degree, weights in all_candidates(d, rank).items():
        yield from ((degree, weight) for weight in weights if not is_multiple(*weight))


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
    """The context directions that decide the finite check for all larger d, if the sizes are within reach.

    >>> check_reach(100, 3, 100)
    5
    """
    rank = effective_rank(d, a, targets)
    if rank > COMPLETENESS_RANK:
        raise SizeError(
            f"--complete --check for d = {d}, a = {a}, targets = {targets} given; at most a ="
            f" {COMPLETENESS_RANK} is checked:"
            " take smaller sizes, or leave --check out"
        )
    return min(d, rank + 2)


def complete(d: int, a: int, targets: int) -> CompletenessResult:
    """All minimal generators of the cross-column ideal, in all degrees: Theorem 6, for every d, a and targets.

    >>> found = complete(768, 64, 768)
    >>> found.standing, found.degree, [str(module) for degree, module in found.modules if degree == 3]
    ('theorem', 65, ['S_222⊗S_3', 'S_33⊗S_111'])
    """
    return CompletenessResult(
        standing="theorem",
        reason="these modules are all minimal generators, in all degrees",
        theorem="docs/theorems/completeness.md, Theorem 6",
        modules=tuple((degree, m) for degree, modules in generator_modules(d, a, targets).items() for m in modules),
        dimension=cone_dimension(d, a, targets),
        variety_degree=variety_degree(d, a, targets),
    )


PLANE: dict[int, tuple[tuple[int, Weight], ...]] = {
    1: (
        *((2, shapes) for shapes in (((2,), (3, 1), (1, 1)), ((1, 1), (4,), (1, 1)), ((1, 1), (2, 2), (1, 1)))),
        (3, ((1, 1, 1), (3, 3), (3,))),
        (4, ((2, 2), (4, 4), (4,))),
    ),
    2: (
        (2, ((1, 1), (4,), (1, 1))),
        (3, ((1, 1, 1), (3, 3), (3,))),
        *((4, shapes) for shapes in (((4,), (4, 4), (2, 2)), ((2, 2), (4, 4), (4,)))),
    ),
}
"""d = 2 and several output rows: degrees and modules of GL(W) × GL(V) × GL(U), by attention rank."""
PLANE_HEADS: tuple[tuple[int, Weight], ...] = (
    (3, ((2, 1), (3, 3), (2, 1))),
    *((3, ((1, 1, 1), *shapes)) for shapes in (((5, 1), (2, 1)), ((4, 2), (2, 1)), ((3, 3), (3,)))),
)
"""Two heads with d = 2, a = v = 1: the 3-minors of the flattenings."""
ONE_TOKEN: dict[int, tuple[tuple[int, Weight], ...]] = {1: ((4, ((7, 3, 2),)),), 2: ((8, ((10, 9, 5),)),)}
"""d = 3, one token, one output row: by attention rank."""


ONE_TOKEN_DEGREES = {1: 15, 2: 21}
"""Of the cubics in three variables that are three lines, or a line and a conic."""


def _listed(variety: Variety) -> tuple[int, int | None, tuple[tuple[int, Weight], ...]] | None:
    """Affine dimension, degree and all modules of the lists beside Theorem 6; None where none is known."""
    d, rows, heads, rank = variety.d, variety.d_out, variety.heads, min(variety.a, 2)
    if variety.hidden or variety.num_targets != d:
        return None
    if not variety.has_cross:
        is_known = (d, rows, heads) == (3, 1, 1) and not variety.residual
        return (6 + rank, ONE_TOKEN_DEGREES[rank], ONE_TOKEN[rank]) if is_known else None
    if d != 2:
        return None
    if heads == 1:
        is_free = variety.value_width is None or variety.value_width >= 2
        degree = variety_degree(d, rank, d, rows)
        return (2 * rows + 1 + rank, degree, PLANE[rank]) if rows > 1 and is_free else None
    is_least = (heads, rank, variety.value_width, variety.residual) == (2, 1, 1, False)
    # Two rows: the 3×4 matrices of rank two.
    degree = {1: 1, 2: determinantal_degree(4, 3, 2)}.get(rows)
    return (min(2 * rows + 6, 6 * rows), degree, PLANE_HEADS) if is_least else None


def complete_variety(variety: Variety) -> CompletenessResult:
    """The same for the coefficients of t ≥ 2 tokens, with or without mask and skip connection: Theorem 7.

    And where docs/theorems/open-problems.md has another list: d = 2 with several output rows, or with two heads of rank
    one, and d = 3 at one token. InputError elsewhere.

    >>> found = complete_variety(Variety(2, 2, tokens=2))
    >>> found.degree, found.linear_relations
    (4, 14)
    >>> [str(module) for _, module in complete_variety(Variety(2, 1, d_out=2, heads=2, value_width=1)).modules]
    ['S_21⊗S_33⊗S_21']
    """
    if variety.d_out == variety.heads == 1 and variety.has_cross and not variety.hidden:
        result = complete(variety.d, variety.a, variety.num_targets)
    else:
        listed = _listed(variety)
        if listed is None:
            raise InputError(
                "--complete given; lists are known for one row and one head at t ≥ 2, for d = 2 with more rows or two"
                " heads of rank one, for d = 3 at t = 1: leave it out"
            )
        rows, d = variety.d_out, variety.d
        groups = (rows, d, d) if variety.has_cross else (d,)
        kept = [(n, shapes) for n, shapes in listed[2] if all(len(part) <= size for part, size in zip(shapes, groups))]
        result = CompletenessResult(
            standing="theorem",
            reason="these modules are all minimal generators, in all degrees",
            theorem="docs/theorems/open-problems.md",
            modules=tuple((n, make_module(shapes, 1, groups)) for n, shapes in kept),
            dimension=listed[0],
            variety_degree=listed[1],
        )
    if variety.tokens is None or not variety.has_cross:
        return result
    cross = variety.d_out * variety.num_pairs * variety.num_targets
    return replace(
        result,
        theorem=result.theorem.replace("6", "7"),
        reason="linear relations and these modules are all minimal generators, in all degrees",
        linear_relations=variety.num_coordinates - int(variety.residual) - cross,
        dimension=result.dimension + int(variety.residual),
    )


@cache
def check_theorem() -> int:
    """Recompute the finite part of Theorem 6 that all sizes share: Tor of M(x), and the bound that follows.

    Returns the number of Tor groups that were found to vanish; ArithmeticError if the bound does not follow.
    """
    count = check_last_degrees()
    if last_syzygy_degree() > UNIVERSAL_DEGREE:
        raise ArithmeticError(f"syzygies up to degree {last_syzygy_degree()}; Theorem 6 needs {UNIVERSAL_DEGREE}")
    return count


def check_complete(
    d: int,
    a: int,
    targets: int | None = None,
    *,
    seed: int = 0,
    progress: OnWeight | None = None,
    limits: Limits | None = None,
    run: Run | None = None,
    workers: int = 1,
) -> CompletenessResult:
    """Theorem 6 with a finite check beside it, of every module that could hold a generator of degree 5 or more.

    The modules have at most min(a, d, targets) rows in μ and two more in λ, so the cost depends on the attention width,
    however large d is. Results of ``run``, if it is by highest weights, are used, and new ones are kept there;
    ``workers`` are processes. ArithmeticError if a module holds a generator, which would contradict the theorem.

    >>> found = check_complete(100, 2)
    >>> found.is_checked, found.degree, found.check.bound
    (True, 4, 6)
    """
    targets = d if targets is None else targets
    rank, rows = effective_rank(d, a, targets), check_reach(d, a, targets)
    # Weight spaces are not modules: a run over them keeps its own results.
    keeper = run if run is not None and run.method == "highest" else Run(Variety(d, a, targets=targets), 1, seed=seed)
    limits = limits or Limits()
    start = _cpu_seconds()
    listed: dict[int, list[Weight]] = {}
    waiting: dict[int, int] = {}
    results: list[WeightResult] = []
    is_finished = True
    with limits.hold():
        try:
            listed = all_candidates(rows, rank)
            modules = [(degree, w) for degree, weights in listed.items() for w in weights if not is_multiple(*w)]
            total = {degree: sum(n == degree for n, _ in modules) for degree in listed}
            waiting = dict(total)
            for result in _results(modules, keeper, limits, workers):
                results.append(result)
                waiting[result.degree] -= 1
                if progress is not None:
                    progress(result.degree, total[result.degree] - waiting[result.degree], total[result.degree])
            check_theorem()
        except OverBudget:
            is_finished = False
    keeper.save()
    check = CompletenessCheck(
        bound=generator_bound(d, a, targets),
        checked=tuple((degree, len(listed[degree])) for degree, left in waiting.items() if not left),
        computed=len(results),
        new=tuple(sorted((r.degree, r.weight, extra) for r in results if (extra := r.ideal_dimension - r.generated))),
        is_proven=is_finished and all(r.is_rank_proven and r.is_generated_proven for r in results),
        prime=keeper.prime,
        seconds=_cpu_seconds() - start,
    )
    if check.is_proven and check.new:
        raise ArithmeticError(f"new generators {check.new}; Theorem 6 of docs/theorems/completeness.md excludes them")
    return replace(complete(d, a, targets), check=check, seed=keeper.seed)


def _results(modules: list[Module], run: Run, limits: Limits, workers: int) -> Iterator[WeightResult]:
    """The modules at the full attention width, which agree with those of the run where μ has no more than a rows."""
    known = {module: run.stored(*module) for module in modules}
    yield from (result for result in known.values() if result is not None)
    left = [module for module, result in known.items() if result is None]
    d, targets = (max((len(shapes[i]) for _, shapes in left), default=1) for i in (0, 1))
    if workers > 1:
        share = limits if limits.megabytes is None else replace(limits, megabytes=limits.megabytes / workers)
        compute = partial(_compute_apart, share, d, targets, run.prime, run.seed)
        results: Iterable[WeightResult] = run_apart(compute, left, workers)
    else:
        results = map(partial(_compute, HighestWeightEngine(d, targets, run.prime, run.seed)), left)
    for result in results:
        run.keep(result)
        yield result


def _compute(engine: HighestWeightEngine, module: Module) -> WeightResult:
    """One module; what modules of lower degrees needed is dropped."""
    check()
    degree, weight = module
    engine.forget(degree - 2)
    return engine.run(degree, weight, engine.targets)


def _compute_apart(limits: Limits, d: int, targets: int, prime: int, seed: int, module: Module) -> WeightResult:
    """One module, in a process that keeps its engine for the next one."""
    with limits.hold():
        return _compute(_engine(d, targets, prime, seed), module)


_engine = lru_cache(maxsize=1)(HighestWeightEngine)


def _cpu_seconds() -> float:
    """CPU time of this process and of those that it started and saw end."""
    times = os.times()
    return time.process_time() + times.children_user + times.children_system
