"""Any network: its dimension with bounds that meet, its symmetries with their proofs, and what follows from both."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from attngeom.errors import SingularError, SizeError
from attngeom.exact.arrays import Array
from attngeom.exact.elimination import Elimination
from attngeom.limits.shown import LAW_EXAMPLES
from attngeom.limits.trials import WITNESS_SAMPLES
from attngeom.limits.work import COUNTED_SAMPLES, KERNEL_WEIGHTS
from attngeom.programs import Program, trace
from attngeom.programs.points import NamedPoint, Progress
from attngeom.rank.folds import Fold, find_folds, fold
from attngeom.rank.hypotheses import prove_rank
from attngeom.rank.laws import describe_law, symmetric_fields
from attngeom.rank.lower import RankBound, bound_rank, count_samples
from attngeom.rank.names import FiberPart, split_fiber
from attngeom.rank.search import Field, choose_independent, find_symmetries
from attngeom.rank.slices import Slice, find_slice
from attngeom.rank.suggestions import find_suggested
from attngeom.results import Proof, Result, Standing
from attngeom.verification import programs as reading
from attngeom.verification.coefficients import bound_by_coefficients
from attngeom.verification.derivations import Derivations

if TYPE_CHECKING:
    from attngeom.drawing import Picture


@dataclass(frozen=True, kw_only=True)
class Upper:
    """An upper bound for the dimension: by symmetries that were proven, on a slice, in other coordinates, or not.

    Or by coefficients. ``fields`` are symmetries of the network itself in every case.
    """

    value: int
    method: str
    fields: tuple[Field, ...] = ()
    unproven: int = 0
    slice: Slice | None = None
    slice_fields: tuple[Field, ...] = ()
    folds: tuple[Fold, ...] = ()
    fold_fields: tuple[Field, ...] = ()


@dataclass(frozen=True, kw_only=True, eq=False)
class Analysis(Result):
    """The dimension of the functions of a network near generic weights, its symmetries, and what follows from them.

    ``lower`` is the rank mod p with its evidence, ``upper`` the bound from symmetries that were proven for all weights
    and inputs, or from coefficients. ``dimension`` is the lower bound; it is proven if both meet and the hypotheses of
    the rank hold. ``fiber`` splits the difference to the number of weights by algebra.
    """

    seed: int
    name: str
    program: Program
    lower: RankBound
    rank_proof: Proof
    upper: Upper
    fiber: tuple[FiberPart, ...]
    laws: tuple[str, ...]
    identifiable: Mapping[str, int] | None
    whole_samples: int | None
    seconds: float

    @property
    def parameters(self) -> int:
        return self.program.num_parameters

    @property
    def dimension(self) -> int:
        return self.lower.value

    @property
    def lower_bound(self) -> int:
        return self.lower.value

    @property
    def upper_bound(self) -> int:
        return self.upper.value

    @property
    def fiber_dimension(self) -> int:
        return self.parameters - self.dimension

    @property
    def learning_coefficient(self) -> Fraction:
        """λ = D/2 at generic true weights."""
        return Fraction(self.dimension, 2)

    @property
    def region(self) -> int | None:
        """Which of the real points was the one whose region this is about; None without piecewise operations."""
        return self.lower.point.region if self.lower.point.pattern_places else None

    @property
    def unexplained(self) -> int:
        """Dimensions of the fiber that no symmetry explains."""
        return self.fiber_dimension - sum(part.count for part in self.fiber)

    @property
    def recheck(self) -> str | None:
        return "attngeom net … --certificate c.json, then attngeom verify c.json" if self.is_proven else None

    def plot(self) -> Picture:
        """The weights as one bar: the dimension, and what each symmetry takes away."""
        from attngeom.drawing import draw_parts

        parts = {"dimension": self.dimension}
        for part in self.fiber:
            label = f"{part.name} on {', '.join(part.tensors[:3])}"
            parts[label] = parts.get(label, 0) + part.count
        if self.unexplained:
            parts["not explained by symmetry"] = self.unexplained
        return draw_parts(f"{self.parameters:,} weights of {self.name} ({self.standing})", parts, "dimension")

    def to_json(self) -> dict[str, Any]:
        return {
            "network": self.name,
            **self.select("parameters", "dimension", "fiber_dimension", "lower_bound", "upper_bound"),
            **self.select("is_proven", "standing", "reason"),
            "fiber": [{"name": x.name, "count": x.count, "tensors": list(x.tensors)} for x in self.fiber],
            "unexplained": self.unexplained,
            "laws": {"count": len(self.laws), "examples": list(self.laws[:LAW_EXAMPLES])},
            "identifiable": None if self.identifiable is None else dict(self.identifiable),
            "samples": {"numbers": self.dimension, "outputs": self.whole_samples},
            "learning_coefficient": str(self.learning_coefficient),
            "region": self.region,
            "prime": self.lower.prime,
            "seed": self.seed,
            "program": {"nodes": len(self.program.nodes), "sha256": self.program.digest},
            "seconds": round(self.seconds, 6),
        }

    @property
    def _rank_counts(self) -> bool:
        """Whether the rank is a lower bound, proven or probabilistic."""
        return self.rank_proof.standing != "undecided"

    def _dimension_in_words(self) -> str:
        if not self._rank_counts:
            return f"at most {self.upper_bound:,}"
        return f"{self.dimension:,}" if self.lower_bound == self.upper_bound else f"at least {self.dimension:,}"

    def rows(self) -> Mapping[str, Any]:
        tensors = len(self.program.parameters)
        rows: dict[str, Any] = {
            self.name: f"{self.parameters:,} weights in {tensors} tensor{'s' if tensors > 1 else ''}",
            "dimension": self._dimension_in_words(),
            "bounds": f"{self.lower_bound:,} ≤ D ≤ {self.upper_bound:,}" if self._rank_counts else "none from below",
            "standing": self.standing,
            "reason": self.reason,
            "fiber": f"{self.fiber_dimension:,}",
        }
        rows |= {f"  {k + 1}": str(part) for k, part in enumerate(self.fiber)}
        if self.unexplained:
            rows["  rest"] = f"{self.unexplained} not explained by a symmetry of the searched form"
        if self.identifiable is not None:
            total = sum(self.identifiable.values())
            names = ", ".join(f"{n} of {name}" for name, n in self.identifiable.items() if n)
            rows["identifiable"] = f"{total:,} of {self.parameters:,} weights" + (f" ({names})" if names else "")
        example = f", e.g. {self.laws[0]}" if self.laws else ""
        rows["laws"] = f"{len(self.laws)}{example}"
        whole = "" if self.whole_samples is None else f", or {self.whole_samples:,} whole outputs"
        rows["samples"] = f"{self.dimension:,} numbers{whole} leave finitely many functions"
        rows["learning coefficient"] = f"{self.learning_coefficient} at generic true weights"
        if self.region is not None:
            rows["region"] = f"{self.region}, the best of those that were tried"
        rows["method"] = f"rank mod {self.lower.prime}, seed {self.seed}"
        return rows


def analyze(
    network: Any,
    *inputs: Any,
    weights: Any = None,
    output: Any = None,
    seed: int = 0,
    progress: Progress | None = None,
) -> Analysis:
    """The dimension of the functions of a network, its symmetries with proofs, laws, identifiable weights, samples.

    ``network`` is a module of PyTorch, a function ``f(weights, *inputs)`` of arrays of JAX or NumPy, or a
    :class:`Program`; ``weights`` a nested dictionary of shapes or arrays, ``inputs`` shapes, arrays of floats, or
    arrays of integers, which stay fixed. ``output`` picks a part of the output, a function such as ``lambda y: y[-1]``.

    >>> answer = analyze(lambda w, x: w["B"] @ (w["A"] @ x), 3, weights={"A": (2, 3), "B": (3, 2)})
    >>> answer.dimension, answer.standing, str(answer.fiber[0])
    (8, 'proven', '4 gl(2) on A.0, B.1')
    """
    started = time.perf_counter()
    program = trace(network, *inputs, weights=weights, output=output, seed=seed)
    lower = bound_rank(program, seed, progress)
    rank_proof = prove_rank(lower.point)
    upper = bound_above(lower, seed, progress)
    fiber = _split(program, upper, lower.value, seed)
    symmetric = symmetric_fields(upper.fields)
    independent = choose_independent(program, symmetric, seed)
    standing, reason = _conclude(lower, rank_proof, upper)
    return Analysis(
        standing=standing,
        reason=reason,
        seed=seed,
        name=getattr(network, "__name__", type(network).__name__),
        program=program,
        lower=lower,
        rank_proof=rank_proof,
        upper=upper,
        fiber=tuple(fiber),
        laws=tuple(describe_law(program, symmetric[k]) for k in independent),
        identifiable=_identifiable(lower, upper),
        whole_samples=count_samples(lower.point, lower.value) if lower.value <= COUNTED_SAMPLES else None,
        seconds=time.perf_counter() - started,
    )


def bound_above(
    lower: RankBound,
    seed: int = 0,
    progress: Progress | None = None,
    quick: bool = False,
    wider: Program | None = None,
) -> Upper:
    """The least upper bound: all weights, coefficients of polynomials, symmetries, symmetries of a slice.

    Work ends when the lower bound is met. ``quick``: the fields that the roles of axes suggest come first; where they
    are enough for the bound, they need not be all. ``wider`` has the same weights and more inputs: then symmetries are
    proven for its functions, and no other bound is tried.
    """
    program, point = lower.point.program, lower.point
    best = Upper(value=program.num_parameters, method="all weights")
    if lower.value == best.value:
        return best
    try:
        proofs = derivations_at(point if wider is None else NamedPoint(wider, point.name, point.region))
        searches = (find_suggested, partial(find_symmetries, progress=progress))
        for search in searches if quick else searches[1:]:
            symmetries = search(lower, seed)
            fields, unproven = _prove(proofs, symmetries.fields, progress)
            value = best.value - len(choose_independent(program, fields, seed))
            upper = Upper(value=value, method="symmetries", fields=fields, unproven=unproven + symmetries.lost)
            if value == lower.value:
                return upper
    except SizeError:
        return best
    candidates = [upper]
    if wider is not None:
        return upper
    filling = bound_by_coefficients(proofs.terms) if candidates[0].value > lower.value else None
    if filling is not None:
        candidates.append(Upper(value=filling, method="coefficients", fields=fields, unproven=unproven))
    if min(x.value for x in candidates) > lower.value:
        candidates += _bound_on_slice(lower, fields, seed, progress)
    if min(x.value for x in candidates) > lower.value:
        candidates += _bound_in_folds(lower, fields, seed, progress)
    return min(candidates, key=lambda x: x.value)


def derivations_at(point: NamedPoint) -> Derivations:
    """The calculus of changes of a program, with values at a few samples of a point to say where to expand."""
    program = reading.CheckedProgram.from_json(point.program.to_json())
    values: list[Array] = []
    try:
        traces, _ = point.evaluate(point.draw(WITNESS_SAMPLES))
    except SingularError:
        return Derivations(program, values, point.prime)
    for trace_ in traces:
        assert trace_ is not None
        result = np.broadcast_to(trace_.result, (WITNESS_SAMPLES, *trace_.result.shape[1:]))
        values.append(np.where(np.isnan(result), -1, np.mod(np.nan_to_num(result), point.prime)))
    return Derivations(program, values, point.prime)


def _prove(proofs: Derivations, fields: Sequence[Field], progress: Progress | None) -> tuple[tuple[Field, ...], int]:
    proven = []
    for number, field in enumerate(fields):
        if proofs.vanishes(field):
            proven.append(field)
        if progress is not None:
            progress("proofs of symmetries", number + 1, len(fields))
    return _without_unused(proven), len(fields) - len(proven)


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
    found = find_slice(program, fields, seed)
    if found is None:
        return []
    inner = bound_rank(found.program, seed)
    proofs = derivations_at(inner.point)
    own, unproven = _prove(proofs, find_symmetries(inner, seed, progress).fields, progress)
    orbit = len(choose_independent(found.program, own, seed))
    value = program.num_parameters - found.count - orbit
    return [Upper(value=value, method="slice", fields=fields, unproven=unproven, slice=found, slice_fields=own)]


def _bound_in_folds(lower: RankBound, fields: tuple[Field, ...], seed: int, progress: Progress | None) -> list[Upper]:
    """The bound in the coordinates where matrices take up the gains of the norms before them, if there are some."""
    program = lower.point.program
    folds = find_folds(program)
    if not folds:
        return []
    inner = bound_rank(fold(program, folds), seed)
    own, unproven = _prove(derivations_at(inner.point), find_symmetries(inner, seed, progress).fields, progress)
    value = program.num_parameters - len(choose_independent(inner.point.program, own, seed))
    return [Upper(value=value, method="folds", fields=fields, unproven=unproven, folds=tuple(folds), fold_fields=own)]


def _split(program: Program, upper: Upper, dimension: int, seed: int) -> list[FiberPart]:
    """The fiber by algebra: what the slice fixes, and the orbits of what is left."""
    if upper.method == "folds":
        return split_fiber(program, upper.fold_fields, seed)
    if upper.slice is None:
        return split_fiber(program, upper.fields, seed)
    words = {1: "torus", 0: "shift"}
    parts = [
        FiberPart(
            name=f"{words[number]}({program.parameters[name][0]})", count=program.parameters[name][0], tensors=(name,)
        )
        for name, number in upper.slice.fixed.items()
    ]
    return parts + split_fiber(upper.slice.program, upper.slice_fields, seed)


def _conclude(lower: RankBound, rank_proof: Proof, upper: Upper) -> tuple[Standing, str]:
    """How strong the dimension is."""
    words = {
        "all weights": "no fiber",
        "symmetries": "symmetries proven node by node",
        "coefficients": "coefficients of the outputs",
        "slice": "symmetries proven node by node, on a slice",
        "folds": "symmetries proven node by node, with gains taken into the matrices behind them",
    }
    ground = f"{rank_proof.reason}; at most {upper.value}: {words[upper.method]}"
    if rank_proof.standing == "undecided":
        return "undecided", f"the rank {lower.value} may be too large: {ground}"
    if lower.value > upper.value:
        if rank_proof.standing != "proven":
            return "undecided", f"values that are not free make the rank too large: {rank_proof.reason}"
        raise ArithmeticError(f"rank {lower.value} exceeds the upper bound {upper.value} by {upper.method}")
    if lower.value == upper.value:
        return rank_proof.standing, ground
    rest = f"; {upper.unproven} more fields held at random points, unproven" if upper.unproven else ""
    return "undecided", f"between {lower.value} and {upper.value}: {ground}{rest}"


def _identifiable(lower: RankBound, upper: Upper) -> dict[str, int] | None:
    """For each tensor how many weights are constant on the fiber; None where it was not computed."""
    program, count = lower.point.program, lower.point.program.num_parameters
    moved = np.zeros(count, dtype=bool)
    if lower.value == upper.value and upper.method in ("all weights", "symmetries"):
        moved[[place for field in upper.fields for place, _ in field]] = True
    elif count <= KERNEL_WEIGHTS:
        moved = _kernel_support(lower.point, lower)
    else:
        return None
    return {name: int((~moved[place]).sum()) for name, place in program.offsets.items()}


def _kernel_support(point: NamedPoint, lower: RankBound) -> Any:
    """Which weights some vector of the kernel of the Jacobian moves, mod p."""
    if point.program.inputs:
        rows = point.rows(list(lower.samples))
    else:
        rows = point.all_rows(lower.samples[0])[list(lower.outputs)] if lower.samples else np.zeros((0, 1))
    elimination = Elimination(rows, point.prime).run()
    free, entries = elimination.reduced()
    moved = np.zeros(point.program.num_parameters, dtype=bool)
    moved[free] = True
    moved[np.array(elimination.columns, dtype=np.intp)[(entries != 0).any(axis=1)]] = True
    return moved
