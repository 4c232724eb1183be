"""Lower bounds for dimensions: the record of a proven one, and the rank of a program mod p at a named point."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from attngeom.errors import InputError, SingularError, SizeError
from attngeom.exact.arrays import Array
from attngeom.exact.modular import choose_minor
from attngeom.limits.memory import JACOBIAN_WEIGHTS
from attngeom.limits.trials import (
    MANY_REGIONS,
    POINT_TRIES,
    REGIONS,
    ROOT_TRIES,
    SPARE_WEIGHT_SAMPLES,
    VARIED_INPUTS,
    VARIED_REGIONS,
)
from attngeom.limits.work import MANY_REGIONS_UP_TO
from attngeom.programs.points import Keep, NamedPoint, Progress, Sample
from attngeom.programs.program import Program
from attngeom.rank.krylov import KrylovRank
from attngeom.rank.stages import name_point
from attngeom.results import Result


@dataclass(frozen=True, eq=False)
class Transcript:
    """What a matrix-free proof computed, for a recheck that repeats a few hundredths of it.

    ``free`` lists, for each tensor, the column from which its corner block is free and how many first entries are not;
    ``pivots`` the tokens that clear the last linear map.
    """

    free: tuple[tuple[int, int], ...]
    pivots: tuple[int, ...]
    krylov: KrylovRank

    def to_json(self) -> dict[str, Any]:
        record = {"free": [list(pair) for pair in self.free], "pivots": list(self.pivots)}
        sizes = {name: getattr(self.krylov, name) for name in ("left", "right", "step")}
        arrays = {"blocks": self.krylov.blocks, "sequence": self.krylov.sequence}
        return record | sizes | {name: base64.b64encode(x.tobytes()).decode() for name, x in arrays.items()}


Method = Literal["minor", "schur", "krylov", "balls"]


@dataclass(frozen=True, kw_only=True, eq=False)
class LowerBound(Result):
    """A proven lower bound for the dimension: the rank of a Jacobian at one point, which the seed determines.

    ``point`` is the name of that point (:mod:`attngeom.exact.points`) where the method is minor. ``minor_rows``
    (samples) and ``minor_columns`` (weights) hold a nonzero minor of that size; only the methods minor and balls give
    them; ``transcript`` is what krylov gives. ``tokens`` counts distinct tokens of a sample.
    """

    value: int
    method: Method
    prime: int | None
    tokens: int
    samples: int
    point: str | None = None
    minor_rows: tuple[int, ...] = ()
    minor_columns: tuple[int, ...] = ()
    transcript: Transcript | None = None

    def to_json(self) -> dict[str, Any]:
        return self.select("value", "standing", "reason", "method", "prime", "seed", "tokens", "samples")

    def rows(self) -> Mapping[str, Any]:
        how = self.method if self.prime is None else f"{self.method} mod {self.prime}"
        return {"lower bound": self.value, "method": f"{how}, seed {self.seed}", "why": self.reason}


@dataclass(frozen=True, kw_only=True)
class RankBound:
    """The rank mod p of a program at a named point, with the rows (samples, outputs) and columns of a minor.

    It is a :class:`LowerBound` for the dimension where the hypotheses of :mod:`attngeom.rank.hypotheses` hold.

    ``outputs`` has for each row the place of one output, −1 for the random linear form of its sample, or −1 − k for the
    k-th coordinate of it (:mod:`attngeom.programs.towers`).
    """

    value: int
    point: NamedPoint
    samples: tuple[Sample, ...]
    outputs: tuple[int, ...]
    columns: tuple[int, ...]

    @property
    def prime(self) -> int:
        return self.point.prime


def find_point(
    program: Program, seed: int, region: int = 0, name: str = "attngeom", quick: bool = False, functions: str = ""
) -> NamedPoint:
    """A point at which the program exists: roots of weights alone may be missing at the first ones.

    Quick ones are for searches, whose finds are proven afterwards. ``functions``: see :class:`NamedPoint`.
    """
    # A search takes the outputs of a table that there are; others are there at other points.
    has_roots = any(not program.depends_on_input[place] for place in program.places("root"))
    has_roots = has_roots and not (quick and not program.inputs)
    failed = 0
    for attempt in range(ROOT_TRIES if has_roots else POINT_TRIES):
        label = f"{name}/{seed}" if attempt == 0 else f"{name}/{seed}.{attempt}"
        point = name_point(program, label, region, quick, functions)
        # Points without some root of weights alone lose outputs: only if none other is met they are taken. In a larger
        # field such a root would not be a residue, as all functions of weights must be.
        is_last = attempt >= ROOT_TRIES - POINT_TRIES and point.degree == 1
        if has_roots and not is_last and not point.weights_exist():
            continue
        if quick and program.inputs:
            return point  # Rows are drawn there anyway.
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
        try:
            bound = _bound_in_region(find_point(program, seed, region, name), progress, spare, expected)
        except SingularError:
            raise InputError(
                "the roots of this network exist together at too few random points; ask for fewer outputs "
                "(--last-token, output=…), or take fewer tokens or layers"
            ) from None
        if best is None or bound.value > best.value:
            best = bound
        if best.value == count or (expected is not None and best.value >= expected):
            break
    assert best is not None
    return best


def bound_in_varied_regions(lower: RankBound, expected: int, seed: int = 0) -> RankBound:
    """The largest rank where patterns vary most from input to input, until it is the expected one.

    A unit that is on at all inputs hides weights: its bias cannot be told from what it is added to.

    >>> from attngeom.programs import trace
    >>> program = trace(lambda w, x: np.maximum(w["a"] * x + w["b"], 0), (), weights={"a": (), "b": ()})
    >>> bound_in_varied_regions(bound_rank(program), 2).value
    2
    """
    program = lower.point.program
    if not (lower.point.pattern_places and program.inputs):
        return lower
    scores = []
    for region in range(VARIED_REGIONS):
        point = NamedPoint(program, lower.point.name, region)
        patterns, _ = point.patterns([(k,) * (point.levels + 1) for k in range(VARIED_INPUTS)])
        scores.append((-sum(int((x != x[:1]).any(axis=0).sum()) for x in patterns.values()), region))
    best = lower
    tried = MANY_REGIONS if program.num_parameters <= MANY_REGIONS_UP_TO else REGIONS
    for _, region in sorted(scores)[:tried]:
        try:
            bound = bound_rank_in_region(program, seed, region)
        except (InputError, SingularError):
            continue
        best = bound if bound.value > best.value else best
        if best.value >= expected:
            break
    return best


def bound_rank_in_region(program: Program, seed: int, region: int) -> RankBound:
    """The rank in one region alone."""
    return _bound_in_region(find_point(program, seed, region), None, SPARE_WEIGHT_SAMPLES)


def bound_rank_where(lower: RankBound, keep: Keep, progress: Progress | None = None) -> RankBound:
    """The rank at the same point, of samples of which ``keep`` says that they count; SingularError if they are rare."""
    point, count = lower.point, lower.point.program.num_parameters
    return _eliminate(point, *_drawn(point, count + SPARE_WEIGHT_SAMPLES, progress, keep))


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


def _drawn(
    point: NamedPoint, count: int, progress: Progress | None, keep: Keep | None = None
) -> tuple[Array, list[tuple[Sample, int]]]:
    # The coordinates of a gradient may have relations: its conjugates are gradients at one and the same input.
    samples, rows = point.draw_rows(count if point.degree == 1 else 2 * count, progress, keep)
    return rows, [(sample, -1 - k % point.degree) for k, sample in enumerate(samples)]


def _eliminate(point: NamedPoint, rows: Array, places: list[tuple[Sample, int]]) -> RankBound:
    minor = choose_minor(rows, point.prime)
    chosen = [places[k] for k in minor.rows]
    return RankBound(
        value=minor.rank,
        point=point,
        samples=tuple(sample for sample, _ in chosen),
        outputs=tuple(output for _, output in chosen),
        columns=minor.columns,
    )


def count_samples(point: NamedPoint, rank: int) -> int | None:
    """The least number of whole outputs at random samples whose Jacobian has this rank, None if none has.

    >>> from attngeom.programs import trace
    >>> program = trace(lambda w, x: w["B"] @ (w["A"] @ x), 3, weights={"A": (2, 3), "B": (3, 2)})
    >>> count_samples(find_point(program, 0), 8)
    3
    """
    if not point.program.inputs or not rank or point.degree > 1:
        return None
    blocks: list[Array] = []
    least = max(1, -(-rank // point.program.outputs))
    most = min(rank, 4 * least + 8)
    for sample in point.draw(most):
        block = point.all_rows(sample)
        blocks.append(block[~np.isnan(block).any(axis=1)])

    def suffices(count: int) -> bool:
        rows = np.concatenate(blocks[:count])
        return len(rows) >= rank and choose_minor(rows, point.prime).rank == rank

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
