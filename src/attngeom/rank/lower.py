"""A lower bound for the dimension of the functions of a program: the rank of its Jacobian mod p at a named point."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from attngeom.errors import InputError, SingularError, SizeError
from attngeom.exact.arrays import Array
from attngeom.exact.residues import Elimination
from attngeom.limits.memory import JACOBIAN_WEIGHTS
from attngeom.limits.trials import MANY_REGIONS, POINT_TRIES, REGIONS, ROOT_TRIES, SPARE_WEIGHT_SAMPLES
from attngeom.limits.work import MANY_REGIONS_UP_TO
from attngeom.programs.points import NamedPoint, Progress, Sample
from attngeom.programs.program import Program


@dataclass(frozen=True, kw_only=True)
class RankBound:
    """The rank mod p of the Jacobian at a named point, with the rows (samples, outputs) and columns of a minor.

    ``outputs`` has for each row −1 for the random linear form of its sample, or the place of one output.
    """

    value: int
    point: NamedPoint
    samples: tuple[Sample, ...]
    outputs: tuple[int, ...]
    columns: tuple[int, ...]

    @property
    def prime(self) -> int:
        return self.point.prime


def find_point(program: Program, seed: int, region: int = 0, name: str = "attngeom", quick: bool = False) -> NamedPoint:
    """A point at which the program exists: roots of weights alone may be missing at the first ones.

    Quick ones are for searches, whose finds are proven afterwards.
    """
    has_roots = any(not program.depends_on_input[place] for place in program.places("root"))
    failed = 0
    for attempt in range(ROOT_TRIES if has_roots else POINT_TRIES):
        label = f"{name}/{seed}" if attempt == 0 else f"{name}/{seed}.{attempt}"
        point = NamedPoint(program, label, region, quick)
        # Points without some root of weights alone lose outputs: only if none other is met they are taken.
        if has_roots and attempt < ROOT_TRIES - POINT_TRIES and not point.weights_exist():
            continue
        try:
            point.draw_rows(1) if program.inputs else point.draw(1)
            return point
        except SingularError:
            failed += 1
            if failed == POINT_TRIES:
                break
    raise InputError(
        f"the network does not exist at {POINT_TRIES} random points (roots that never exist, or division by 0); "
        "ask for fewer outputs: --last-token"
    )


def bound_rank(
    program: Program,
    seed: int = 0,
    progress: Progress | None = None,
    spare: int = SPARE_WEIGHT_SAMPLES,
    expected: int | None = None,
) -> RankBound:
    """The largest rank over the regions that were tried: one row of the Jacobian for each of N + ``spare`` samples.

    Without inputs all outputs are rows. ``expected`` says where to stop: other regions are tried as long as the rank is
    below it, and all samples are drawn only where fewer do not end exactly there.

    >>> from attngeom.programs import trace
    >>> bound_rank(trace(lambda w, x: w["B"] @ (w["A"] @ x), 3, weights={"A": (2, 3), "B": (3, 2)})).value
    8
    """
    count = program.num_parameters
    if count > JACOBIAN_WEIGHTS:
        raise SizeError(
            f"a network of {count:,} weights given; ranks are computed up to {JACOBIAN_WEIGHTS:,}: shrink the widths"
        )
    tried = MANY_REGIONS if count <= MANY_REGIONS_UP_TO else REGIONS
    regions = tried if any(program.places("pattern")) and program.inputs else 1
    best: RankBound | None = None
    for region in range(regions):
        # Where more than the best of the first weights is asked for, other regions come with other weights.
        name = "attngeom" if expected is None or not region else f"attngeom/{region}"
        bound = _bound_in_region(find_point(program, seed, region, name), progress, spare, expected)
        if best is None or bound.value > best.value:
            best = bound
        if best.value == count or (expected is not None and best.value >= expected):
            break
    assert best is not None
    return best


def _bound_in_region(
    point: NamedPoint, progress: Progress | None, spare: int, expected: int | None = None
) -> RankBound:
    program, count = point.program, point.program.num_parameters
    if expected is not None and program.inputs and expected < count:
        few = _eliminate(point, *_drawn(point, expected + spare, progress))
        if few.value == expected:
            return few
    if not program.inputs:
        samples = point.draw(1)
        rows = point.all_rows(samples[0])
        outputs = np.flatnonzero(~np.isnan(rows).any(axis=1))
        rows, places = rows[outputs], [(samples[0], int(k)) for k in outputs]
    else:
        rows, places = _drawn(point, count + spare, progress)
    return _eliminate(point, rows, places)


def _drawn(point: NamedPoint, count: int, progress: Progress | None) -> tuple[Array, list[tuple[Sample, int]]]:
    samples, rows = point.draw_rows(count, progress)
    return rows, [(sample, -1) for sample in samples]


def _eliminate(point: NamedPoint, rows: Array, places: list[tuple[Sample, int]]) -> RankBound:
    elimination = Elimination(rows, point.prime, keep_upper=False).run()
    chosen = [places[k] for k in np.sort(elimination.order[: elimination.rank]).tolist()]
    return RankBound(
        value=elimination.rank,
        point=point,
        samples=tuple(sample for sample, _ in chosen),
        outputs=tuple(output for _, output in chosen),
        columns=tuple(int(k) for k in elimination.columns),
    )


def count_samples(point: NamedPoint, rank: int) -> int | None:
    """The least number of whole outputs at random samples whose Jacobian has this rank, None if none has.

    >>> from attngeom.programs import trace
    >>> program = trace(lambda w, x: w["B"] @ (w["A"] @ x), 3, weights={"A": (2, 3), "B": (3, 2)})
    >>> count_samples(find_point(program, 0), 8)
    3
    """
    if not point.program.inputs or not rank:
        return None
    blocks: list[Array] = []
    least = max(1, -(-rank // point.program.outputs))
    most = min(rank, 4 * least + 8)
    for sample in point.draw(most):
        block = point.all_rows(sample)
        blocks.append(block[~np.isnan(block).any(axis=1)])

    def suffices(count: int) -> bool:
        rows = np.concatenate(blocks[:count])
        return len(rows) >= rank and Elimination(rows, point.prime, keep_upper=False).run().rank == rank

    # The rank grows with the samples: the first numbers are the likely ones, then steps are doubled, then halved.
    low, step = least - 1, 1
    while not suffices(min(low + step, most)):
        if low + step >= most:
            return None
        low, step = low + step, 2 * step
    high = min(low + step, most)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if suffices(middle) else (middle, high)
    return high
