"""Upper bounds for the dimension of the functions of a program: symmetries that were proven, slices, coefficients."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from attngeom.errors import InputError, SingularError, SizeError
from attngeom.exact.arrays import Array
from attngeom.limits.trials import CUTS_TRIED, WITNESS_SAMPLES
from attngeom.limits.work import ENTRY_WEIGHTS, MANY_FIELDS, SLICED_WEIGHTS
from attngeom.programs import Program
from attngeom.programs.passes import Traces
from attngeom.programs.points import NamedPoint, Progress, Sample
from attngeom.rank.cuts import cut, find_cuts
from attngeom.rank.fields import Ansatz
from attngeom.rank.folds import Fold, find_folds, fold
from attngeom.rank.lower import RankBound, bound_rank, bound_rank_in_region
from attngeom.rank.search import Field, Symmetries, choose_independent, find_symmetries
from attngeom.rank.slices import Slice, find_slice, next_slices
from attngeom.rank.suggestions import find_suggested
from attngeom.verification import programs as reading
from attngeom.verification.coefficients import are_polynomials, bound_by_coefficients
from attngeom.verification.derivations import Derivations


@dataclass(frozen=True, kw_only=True)
class Upper:
    """An upper bound for the dimension: by symmetries that were proven, on a slice, in other coordinates, or not.

    Or by coefficients, or of derived weights (``inner``). ``fields`` are always symmetries of the network itself.
    """

    value: int
    method: str
    fields: tuple[Field, ...] = ()
    unproven: int = 0
    slice: Slice | None = None
    slice_fields: tuple[Field, ...] = ()
    folds: tuple[Fold, ...] = ()
    fold_fields: tuple[Field, ...] = ()
    cuts: tuple[int, ...] = ()
    inner: Upper | None = None


def bound_above(
    lower: RankBound,
    seed: int = 0,
    progress: Progress | None = None,
    quick: bool = False,
    wider: Program | None = None,
    derived: bool = True,
) -> Upper:
    """The least upper bound: all weights, coefficients of polynomials, symmetries, symmetries of a slice.

    Work ends when the lower bound is met. ``quick``: the fields that the roles of axes suggest come first; where they
    are enough for the bound, they need not be all. If linear maps on axes are not enough and the weights are few, all
    linear and affine fields are looked for. ``wider`` has the same weights and more inputs: then symmetries are
    proven for its functions, and no other bound is tried. ``derived``: weights that are derived from others count.
    """
    program, point = lower.point.program, lower.point
    best = Upper(value=program.num_parameters, method="all weights")
    if lower.value == best.value:
        return best
    try:
        proofs = derivations_at(point if wider is None else NamedPoint(wider, point.name, point.region))
        for fields, unproven, orbit in _find_orbits(lower, proofs, lower.value, seed, progress, quick):
            value = program.num_parameters - orbit
            best = Upper(value=value, method="symmetries", fields=fields, unproven=unproven)
    except SizeError:
        return best
    if best.value == lower.value:
        return best
    candidates = [best]
    if wider is not None:
        return best
    fields, unproven = best.fields, best.unproven
    filling = bound_by_coefficients(proofs.terms)
    count = [] if filling is None else [Upper(value=filling, method="coefficients", fields=fields, unproven=unproven)]
    # Every checker knows slices, and coefficients of polynomials, but not all know coefficients under functions.
    is_plain = are_polynomials(proofs.terms)
    candidates += count if is_plain else []
    if min(x.value for x in candidates) > lower.value:
        candidates += _bound_on_slice(lower, fields, seed, progress)
    if min(x.value for x in candidates) > lower.value:
        candidates += _bound_in_folds(lower, fields, seed, progress)
    candidates += [] if is_plain else count
    if derived and min(x.value for x in candidates) > lower.value:
        candidates += _bound_of_derived(lower, best, seed, progress)
    if min(x.value for x in candidates) > lower.value and program.num_parameters <= SLICED_WEIGHTS:
        candidates += _bound_on_slices(lower, min(candidates, key=lambda x: x.value), seed)
    return min(candidates, key=lambda x: x.value)


def _find_orbits(
    bound: RankBound,
    proofs: Derivations,
    goal: int,
    seed: int,
    progress: Progress | None = None,
    quick: bool = False,
) -> Iterator[tuple[tuple[Field, ...], int, int]]:
    """Proven fields, how many others were not proven, and the dimension of the orbits, from one search after the other.

    The searches become wider; they end where the orbits leave ``goal`` dimensions.
    """
    program, most = bound.point.program, 0
    searches: list[Callable[[RankBound, int], Symmetries]] = [partial(find_symmetries, progress=progress)]
    if quick:
        searches.insert(0, find_suggested)
    if program.num_parameters <= ENTRY_WEIGHTS:
        searches.append(partial(find_symmetries, progress=progress, ansatz=Ansatz.of_entries(program)))
    for search in searches:
        symmetries = search(bound, seed)
        fields, unproven = _prove(program, proofs, symmetries.fields, seed, progress)
        orbit = len(choose_independent(program, fields, seed))
        # A later search may look for more and find less: fields whose coefficients are not seen to be rational.
        if orbit >= most:
            most = orbit
            yield fields, unproven + symmetries.lost, orbit
        if program.num_parameters - orbit == goal:
            break


class _FreePatterns(NamedPoint):
    """The same weights and inputs, and any numbers in place of patterns: as free as they are in a proof on paper."""

    def patterns(self, samples: Sequence[Sample]) -> tuple[dict[int, Array], Array]:
        """Small numbers, which are residues of every prime, other ones for each sample."""
        known, clear = super().patterns(samples)
        free = {}
        for place, pattern in known.items():
            seeds = samples if len(pattern) == len(samples) else [()] * len(pattern)
            rows = [np.random.default_rng([place, *seed]).integers(2, 1000, pattern.shape[1:]) for seed in seeds]
            free[place] = np.asarray(rows, dtype=np.float64).reshape(pattern.shape)
        return free, np.ones_like(clear)


def derivations_at(point: NamedPoint) -> Derivations:
    """The calculus of changes of a program, with values at a few samples of a point to say where to expand.

    What vanishes for the patterns of one region alone is not expanded: no proof would come of it.
    """
    program = reading.CheckedProgram.from_json(point.program.to_json())
    values: list[Array] = []
    traces: Traces = []
    residues = NamedPoint(point.program, point.name, point.region)
    for own in (_FreePatterns(point.program, point.name, point.region), residues):
        try:
            traces, _ = own.evaluate(own.draw(WITNESS_SAMPLES))
            break
        except SingularError:
            # Where no sample has all roots, numbers that rest on those that are missing are not known.
            traces, _ = own.evaluate([(k,) * (own.levels + 1) for k in range(WITNESS_SAMPLES)])
    for trace_ in traces:
        assert trace_ is not None
        result = np.broadcast_to(trace_.result, (WITNESS_SAMPLES, *trace_.result.shape[1:]))
        values.append(np.where(np.isnan(result), -1, np.mod(np.nan_to_num(result), point.prime)))
    return Derivations(program, values, point.prime)


def _prove(
    program: Program, proofs: Derivations, fields: Sequence[Field], seed: int, progress: Progress | None
) -> tuple[tuple[Field, ...], int]:
    """The fields that are proven, and how many are not; of very many those that add to the orbits, short ones first."""
    proven: list[Field] = []
    waiting, failed = list(fields), 0
    is_long = len(fields) > MANY_FIELDS and program.num_parameters <= ENTRY_WEIGHTS
    waiting.sort(key=len if is_long else lambda field: 0)
    while waiting:
        chosen = choose_independent(program, [*proven, *waiting], seed) if is_long else range(len(waiting))
        tried = [k - len(proven) for k in chosen if k >= len(proven)] if is_long else list(chosen)
        if not tried:
            break
        for field in [waiting[k] for k in tried]:
            if proofs.vanishes(field):
                proven.append(field)
            else:
                failed += 1
            if progress is not None:
                progress("proofs of symmetries", len(proven) + failed, len(fields))
        waiting = [field for k, field in enumerate(waiting) if k not in set(tried)]
    return _without_unused(proven), failed


def _without_unused(fields: Sequence[Field]) -> tuple[Field, ...]:
    """The fields without what they do to weights that the function does not see, and those that translate these.

    If ∂f/∂w = 0 identically, then a field that moves w and others is a symmetry without moving w.
    """
    unused = {moved for field in fields if len(field) == 1 for moved, source in field if source is None}
    alone = [field for field in fields if len(field) == 1 and set(field) <= {(w, None) for w in unused}]
    rest = [{term: times for term, times in field.items() if term[0] not in unused} for field in fields]
    return tuple(alone + [field for field in rest if field])


def _bound_on_slice(lower: RankBound, fields: tuple[Field, ...], seed: int, progress: Progress | None) -> list[Upper]:
    """The bound of the slice where gains are 1 and biases of norms 0, if there is one."""
    program = lower.point.program
    section = find_slice(program, fields, seed)
    return [] if section is None else [_bound_of(section, lower, fields, seed, progress)]


def _bound_of(
    section: Slice, lower: RankBound, fields: tuple[Field, ...], seed: int, progress: Progress | None = None
) -> Upper:
    """The bound by symmetries of a slice, which these fields reach."""
    own, unproven, value = _bound_inside(section.program, lower, seed, progress)
    return Upper(value=value, method="slice", fields=fields, unproven=unproven, slice=section, slice_fields=own)


def _bound_inside(
    program: Program, lower: RankBound, seed: int, progress: Progress | None
) -> tuple[tuple[Field, ...], int, int]:
    """Proven fields of another program with the same functions, how many were not proven, and what they leave."""
    inner = bound_rank_in_region(program, seed, lower.point.region)
    *_, (fields, unproven, orbit) = _find_orbits(inner, derivations_at(inner.point), lower.value, seed, progress)
    return fields, unproven, program.num_parameters - orbit


def _bound_on_slices(lower: RankBound, best: Upper, seed: int) -> list[Upper]:
    """The bound of slices on which one tensor after another is fixed, where this makes it smaller."""
    better: list[Upper] = []
    waiting = True
    while waiting and best.value > lower.value:
        waiting = False
        fixed = {} if best.slice is None else best.slice.fixed
        for section in next_slices(lower.point.program, best.fields, fixed, seed):
            try:
                own = _bound_of(section, lower, best.fields, seed)
            except InputError:
                continue  # The network does not exist there.
            if own.value < best.value:
                best, waiting = own, True
                better.append(own)
                break
    return better


def _bound_in_folds(lower: RankBound, fields: tuple[Field, ...], seed: int, progress: Progress | None) -> list[Upper]:
    """The bound in the coordinates where matrices take up the gains of the norms before them, if there are some."""
    program = lower.point.program
    folds = find_folds(program)
    if not folds:
        return []
    own, unproven, value = _bound_inside(fold(program, folds), lower, seed, progress)
    return [Upper(value=value, method="folds", fields=fields, unproven=unproven, folds=tuple(folds), fold_fields=own)]


def _bound_of_derived(lower: RankBound, best: Upper, seed: int, progress: Progress | None) -> list[Upper]:
    """The bound for the functions of the weights that are derived from others before they meet inputs."""
    bounds: list[tuple[RankBound, tuple[int, ...]]] = []
    for places in find_cuts(lower.point.program):
        other = cut(lower.point.program, places)
        if other is not None:
            bounds.append((bound_rank(other, seed), places))
    better: list[Upper] = []
    for inner, places in sorted(bounds, key=lambda x: (x[0].value, -max(x[1])))[:CUTS_TRIED]:
        if inner.value < best.value:
            upper = bound_above(inner, seed, progress, derived=False)
            better.append(replace(best, value=upper.value, method="derived", cuts=places, inner=upper))
            best = min(best, better[-1], key=lambda x: x.value)
        if best.value == lower.value:
            break
    return better
