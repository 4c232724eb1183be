"""Any network: its dimension with bounds that meet, its symmetries with their proofs, and what follows from both."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from attngeom.errors import InputError
from attngeom.exact.residues import Elimination
from attngeom.limits.shown import LAW_EXAMPLES
from attngeom.limits.work import COUNTED_SAMPLES, KERNEL_WEIGHTS, SLICED_WEIGHTS
from attngeom.programs import Program, trace
from attngeom.programs.association import multiply_weights_first
from attngeom.programs.points import NamedPoint, Progress
from attngeom.rank.chance import LikelyRank, estimate_rank
from attngeom.rank.cuts import weights_behind
from attngeom.rank.hypotheses import prove_free_rank
from attngeom.rank.laws import describe_law, symmetric_fields
from attngeom.rank.lower import RankBound, bound_in_varied_regions, bound_rank, count_samples
from attngeom.rank.names import FiberPart, split_fiber
from attngeom.rank.search import Field, choose_independent
from attngeom.rank.slices import Fixed, gains_and_biases
from attngeom.rank.upper import Upper, bound_above
from attngeom.results import Proof, Result, Standing
from attngeom.verification.records import Certificate

if TYPE_CHECKING:
    from attngeom.drawing import Picture


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
    error_probability: float | None = None
    """That the dimension is larger, where the bounds do not meet and a bound is known."""

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
            **self.select("is_proven", "standing", "reason", "error_probability"),
            "notes": list(self.program.notes),
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
        is_value = self.lower_bound == self.upper_bound or self.error_probability is not None
        return f"{self.dimension:,}" if is_value else f"at least {self.dimension:,}"

    def rows(self) -> Mapping[str, Any]:
        tensors = len(self.program.parameters)
        rows: dict[str, Any] = {
            self.name: f"{self.parameters:,} weights in {tensors} tensor{'s' if tensors > 1 else ''}",
            "dimension": self._dimension_in_words(),
            "bounds": f"{self.lower_bound:,} ≤ D ≤ {self.upper_bound:,}" if self._rank_counts else "none from below",
            "standing": self.standing,
            "reason": self.reason,
        }
        rows |= {f"note {k + 1}": note for k, note in enumerate(self.program.notes)}
        if self.error_probability is not None:
            rows["error"] = f"probability of at most {self.error_probability:.1e} that random points hide a larger one"
        rows["fiber"] = f"{self.fiber_dimension:,}"
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
    lower, rank_proof = prove_free_rank(lower, progress)
    upper = bound_above(lower, seed, progress)
    if lower.value < upper.value and program.num_parameters <= SLICED_WEIGHTS:
        other = multiply_weights_first(program)
        again = None if other is None else bound_rank(other, seed, progress)
        above = None if again is None else bound_above(again, seed, progress)
        if other is not None and again is not None and above is not None and above.value < upper.value:
            program, upper = other, above
            lower, rank_proof = prove_free_rank(again, progress)
    if lower.value < upper.value and lower.point.pattern_places:
        lower, rank_proof = prove_free_rank(bound_in_varied_regions(lower, upper.value, seed), progress)
    likely = None
    if lower.value < upper.value and rank_proof.standing == "proven":
        likely = estimate_rank(lower, upper.value, seed, progress)
        lower = lower if likely is None else likely.bound
    fiber = _split(program, upper, lower.value, seed)
    symmetric = symmetric_fields(upper.fields)
    independent = choose_independent(program, symmetric, seed)
    standing, reason = _conclude(lower, rank_proof, upper, likely)
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
        error_probability=None if likely is None or standing != "probabilistic" else likely.error,
    )


def _split(program: Program, upper: Upper, dimension: int, seed: int) -> list[FiberPart]:
    """The fiber by algebra: what the slice fixes, and the orbits of what is left."""
    if upper.method == "folds":
        return split_fiber(program, upper.fold_fields, seed)
    parts = split_fiber(program, upper.fields, seed)
    more = program.num_parameters - upper.value - sum(part.count for part in parts)
    if upper.cuts and more:
        return [*parts, FiberPart(name="on derived weights", count=more, tensors=weights_behind(program, upper.cuts))]
    if upper.slice is None:
        return parts
    words: dict[Fixed, str] = {1: "torus", 0: "shift"}
    inner, fixed = upper.slice.program, upper.slice.fixed
    if set(fixed) <= set(gains_and_biases(program)):
        parts = [
            FiberPart(
                name=f"{words[number]}({program.parameters[name][0]})",
                count=program.parameters[name][0],
                tensors=(name,),
            )
            for name, number in fixed.items()
        ]
        return parts + split_fiber(inner, upper.slice_fields, seed)
    moved = {k for field in upper.slice_fields for k, _ in field}
    names = tuple(name for name, span in inner.offsets.items() if moved & set(range(span.start, span.stop)))
    return [*parts, FiberPart(name=f"linear for fixed {' and '.join(fixed)}", count=more, tensors=names)]


def _conclude(
    lower: RankBound, rank_proof: Proof, upper: Upper, likely: LikelyRank | None = None
) -> tuple[Standing, str]:
    """How strong the dimension is."""
    words = {
        "all weights": "no fiber",
        "symmetries": "symmetries proven node by node",
        "coefficients": "coefficients of the outputs",
        "slice": "symmetries proven node by node, on a slice",
        "folds": "symmetries proven node by node, with gains taken into the matrices behind them",
    }
    own = upper if upper.inner is None else upper.inner
    of_derived = "" if upper.inner is None else ", of weights that are derived from these"
    ground = f"{rank_proof.reason}; at most {upper.value}: {words[own.method]}{of_derived}"
    if rank_proof.standing == "undecided":
        return "undecided", f"the rank {lower.value} may be too large: {ground}"
    if lower.value > upper.value:
        if rank_proof.standing != "proven":
            return "undecided", f"values that are not free make the rank too large: {rank_proof.reason}"
        raise ArithmeticError(f"rank {lower.value} exceeds the upper bound {upper.value} by {upper.method}")
    if lower.value == upper.value:
        return rank_proof.standing, ground
    if likely is not None:
        points = f"{lower.value} is the largest rank at {likely.points} random points"
        return "probabilistic", f"between {lower.value} and {upper.value}: {points}; {ground}"
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
        rows = point.rows(list(dict.fromkeys(lower.samples)))
    else:
        rows = point.all_rows(lower.samples[0])[list(lower.outputs)] if lower.samples else np.zeros((0, 1))
    elimination = Elimination(rows, point.prime).run()
    free, entries = elimination.reduced()
    moved = np.zeros(point.program.num_parameters, dtype=bool)
    moved[free] = True
    moved[np.array(elimination.columns, dtype=np.intp)[(entries != 0).any(axis=1)]] = True
    return moved


def certify_network(answer: Analysis) -> Certificate:
    """The certificate of a dimension whose bounds meet; InputError if they do not.

    Witness: ``lower`` names the point, and the samples, outputs (−1 for the random form of a sample) and columns of a
    minor, and the degree of the field of its values if it is not 1; ``upper`` the method, with the fields as [weight
    that moves, weight by which or null, rational].

    >>> from attngeom.rank.analysis import analyze
    >>> answer = analyze(lambda w, x: w["B"] @ (w["A"] @ x), 3, weights={"A": (2, 3), "B": (3, 2)})
    >>> certify_network(answer).claim["dimension"]
    8
    """
    if answer.rank_proof.standing == "undecided":
        raise InputError(f"no certificate was written: {answer.rank_proof.reason}, so that the rank proves nothing")
    if answer.lower_bound != answer.upper_bound or answer.standing == "undecided":
        raise InputError(
            f"no certificate was written: the dimension lies between {answer.lower_bound} and {answer.upper_bound}; "
            "bounds that meet are required"
        )
    point, upper = answer.lower.point, answer.upper
    lower = {
        "point": point.name,
        "region": point.region,
        "samples": [list(sample) for sample in answer.lower.samples],
        "outputs": list(answer.lower.outputs),
        "columns": list(answer.lower.columns),
    }
    if point.degree > 1:
        lower["degree"] = point.degree
    claim = {"kind": "network", "program": answer.program.to_json(), "dimension": answer.dimension}
    provenance = {"seed": answer.seed, "primes": [point.prime]}
    return Certificate(claim, {"lower": lower, "upper": _write_upper(upper)}, provenance)


def _write_upper(upper: Upper) -> dict[str, Any]:
    if upper.inner is not None:
        return {"method": "derived", "nodes": list(upper.cuts), "upper": _write_upper(upper.inner)}
    above: dict[str, Any] = {"method": "weights" if upper.method == "all weights" else upper.method}
    if upper.method in ("symmetries", "slice"):
        above["fields"] = _write(upper.fields)
    if upper.slice is not None:
        above |= {"fixed": dict(upper.slice.fixed), "slice_fields": _write(upper.slice_fields)}
    if upper.method == "folds":
        folds = [[x.matrix, x.axis, x.gain, x.shift, x.bias] for x in upper.folds]
        above |= {"folds": folds, "fields": _write(upper.fold_fields)}
    return above


def _write(fields: Sequence[Field]) -> list[list[list[Any]]]:
    return [[[moved, source, str(times)] for (moved, source), times in field.items()] for field in fields]
