"""The dimension of an architecture: formula, proven bounds, and what is left between them, in one record."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from attngeom.dimensions.counts import UpperBound, upper_bound
from attngeom.dimensions.estimate import estimate_dimension
from attngeom.dimensions.formulas import formula, formulas
from attngeom.dimensions.lower_bounds import REQUESTS, Request, find_lower_bound
from attngeom.dimensions.modern import modern_formula
from attngeom.dimensions.programs import program_bounds
from attngeom.dimensions.theorems import DimensionFormula
from attngeom.errors import InputError
from attngeom.limits.work import DIMENSION_PROVEN_ANYWAY, DIMENSION_WITHOUT_FORMULA, PROGRAM_COMPUTED_ANYWAY
from attngeom.network.architecture import Architecture
from attngeom.network.symmetry import count_generators
from attngeom.rank.lower import LowerBound
from attngeom.results import Result, Standing

if TYPE_CHECKING:
    from attngeom.drawing import Picture


LOSSES = {
    "query-key": "query-key groups GL(a): K → C K, Q → C⁻ᵀ Q",
    "value-output": "value-output groups GL(v): V → B V, O → O B⁻¹",
    "between": "groups GL(d) between layers",
    "scale": "scales (λA, V/λ) of each head",
    "query-key-rotation": "rotations O(a) of queries and keys",
    "second-query-key": "query-key groups GL(a) of the second map",
    "plane-scale": "complex scales of each rotary plane",
    "second-plane-scale": "complex scales of each rotary plane of the second map",
    "channels": "scales of each channel: k_j → c k_j, q_j → q_j/c",
    "query-scale": "sizes of queries",
    "key-scale": "sizes of keys",
    "square-scale": "scales (λQ, V/λ²) of each head",
    "key-bias": "biases of keys, which cancel",
    "value-bias": "biases of values, which the bias of the output takes back",
    "translation": "constants between layers, which biases take back",
    "theorem": "what the theorem says is not seen",
    "searched": "symmetries that were searched and proven",
    "mixing": "mixing of heads",
    "syzygies": "syzygies between heads with one output",
    "unseen": "weights that no input reaches or nothing reads",
    "antisymmetric": "antisymmetric parts of A that the tokens cannot show",
    "saturation": "more than all cubics of a layer",
    "unexplained": "not explained by a known symmetry",
}


@dataclass(frozen=True, kw_only=True, eq=False)
class Dimension(Result):
    """The dimension of the set of functions of an architecture, with the evidence.

    ``dimension`` is None if nothing is known. ``lower`` is the witness that was computed, if one was; ``formula`` may
    fail its hypotheses, and says so. ``standing``: theorem if one covers the architecture and nothing was computed;
    proven if the bounds meet; probabilistic with an error probability; estimate for a formula without a proof; else
    undecided.
    """

    seed: int
    architecture: Architecture
    dimension: int | None
    upper: UpperBound
    formula: DimensionFormula | None
    lower: LowerBound | None = None
    error_probability: float | None = None
    seconds: float

    @property
    def num_parameters(self) -> int:
        return self.architecture.num_parameters

    @property
    def fiber_dimension(self) -> int | None:
        """The dimension of a generic fiber: parameters that the function does not see."""
        return None if self.dimension is None else self.num_parameters - self.dimension

    @property
    def samples(self) -> tuple[int, int] | None:
        """D and D + 1: how many random numbers ⟨C, φ(X)⟩ leave finitely many functions, and how many leave one.

        Theorem N of docs/theorems/training.md; as strong as the dimension, and None where that is undecided.
        """
        if self.dimension is None or self.standing == "undecided":
            return None
        return self.dimension, self.dimension + 1

    @property
    def fiber(self) -> dict[str, int]:
        """The fiber dimension split by symmetry; what no known symmetry explains comes last."""
        value = self.upper.value if self.dimension is None else self.dimension
        known = {name: loss for name, loss in self.upper.parts.items() if loss}
        return {**known, "unexplained": self.upper.value - value}

    @property
    def lower_bound(self) -> int | None:
        if self.standing == "theorem":
            return self.dimension
        return None if self.lower is None else self.lower.value

    @property
    def upper_bound(self) -> int:
        if self.standing == "theorem" and self.dimension is not None:
            return self.dimension
        return self.upper.value

    @property
    def method(self) -> str:
        if self.standing == "theorem":
            return "theorem"
        if self.lower is not None:
            return self.lower.method
        return "count" if self.dimension is None else "formula"

    @property
    def prime(self) -> int | None:
        return None if self.lower is None else self.lower.prime

    @property
    def recheck(self) -> str | None:
        if not self.is_proven:
            return None
        return "attngeom dim … --certificate c.json, then attngeom verify c.json"

    def plot(self) -> Picture:
        """The parameters as one bar: the dimension, and what each symmetry takes away."""
        from attngeom.drawing import draw_parts

        value = self.upper_bound if self.dimension is None else self.dimension
        lost = {name: loss for name, loss in self.fiber.items() if loss}
        title = f"{self.num_parameters:,} parameters of {self.architecture.kind} attention ({self.standing})"
        return draw_parts(title, {"dimension": value, **lost}, "dimension")

    def to_json(self) -> dict[str, Any]:
        return {
            "architecture": self.architecture.to_json(),
            **self.select("num_parameters", "dimension", "fiber_dimension", "fiber"),
            "samples": None if self.samples is None else list(self.samples),
            "formula": None if self.formula is None else self.formula.to_json(),
            **self.select("lower_bound", "upper_bound", "is_proven", "method", "prime", "seed"),
            "seconds": round(self.seconds, 6),
            "error_probability": self.error_probability,
            **self.select("standing", "reason"),
            "status": self.reason,
        }

    def rows(self) -> Mapping[str, Any]:
        value = "unknown" if self.dimension is None else f"{self.dimension:,}"
        rows: dict[str, Any] = {"parameters": f"{self.num_parameters:,}", "dimension": value}
        if self.fiber_dimension is not None:
            rows["fiber dimension"] = f"{self.fiber_dimension:,}"
            rows |= {f"  {name}": f"{loss:,}  {LOSSES[name]}" for name, loss in self.fiber.items() if loss}
        lower = "not computed" if self.lower_bound is None else f"{self.lower_bound:,}"
        # Where both meet and nothing is decided, a hypothesis of the lower one is open.
        is_open = self.standing == "undecided" and self.lower_bound == self.upper_bound
        rows["bounds" if is_open else "proven bounds"] = f"lower {lower}, upper {self.upper_bound:,}"
        rows["standing"] = self.standing
        rows["reason"] = self.reason
        if self.error_probability is not None:
            rows["error probability"] = f"at most {self.error_probability:.1e} that random points hide a larger one"
        if self.formula is not None:
            failed = [text for text, holds in self.formula.hypotheses.items() if not holds]
            claim = f"{self.formula.value:,} ({self.formula.source}, {self.formula.status})"
            rows["formula"] = claim if not failed else f"none applies; {claim} would need: {'; '.join(failed)}"
        how = self.method if self.prime is None else f"{self.method} mod {self.prime}"
        rows["method"] = f"{how}, seed {self.seed}, {self.seconds:.3f} s"
        if self.samples is not None:
            rows["samples"] = (
                f"{self.samples[1]:,} random numbers ⟨C, φ(X)⟩ determine the function, {self.samples[0] - 1:,} never do"
            )
        if self.dimension:
            ratio = self.num_parameters / self.dimension
            rows["sample complexity"] = (
                f"grows linearly with the dimension ([G] §1); counting parameters overestimates it {ratio:.2f} times"
            )
        return rows


def dimension(
    architecture: Architecture,
    *,
    prove: bool = False,
    method: Request = "auto",
    seed: int = 0,
    progress: Callable[[int, int], None] | None = None,
    workers: int = 1,
) -> Dimension:
    """The dimension of the set of functions phi_W: by a theorem at once, by computed bounds, or by a formula.

    Small networks are always computed, and held to the theorem that covers them. Larger ones are answered by theorem
    where there is one; else, if ``prove`` is given, bounds are computed. ``method`` asks for one way; ``workers``
    threads serve the matrix-free one.

    >>> answer = dimension(Architecture((3, 3, 3), 2), prove=True)
    >>> answer.dimension, answer.is_proven
    (23, True)
    """
    if method not in REQUESTS:
        raise InputError(f"method {method!r} given; one of {', '.join(REQUESTS)} is required")
    if not architecture.is_plain:
        return _from_program(architecture, prove, method, seed, progress)
    started = time.perf_counter()
    stated = stated_dimension(architecture, seed=seed)
    upper, theorem = stated.upper, stated.formula if stated.standing == "theorem" else None
    if theorem is not None and theorem.value > upper.value:
        raise ArithmeticError(f"{theorem.source} exceeds the upper bound {upper.value} for {architecture}")
    if method == "theorem" and theorem is None:
        raise InputError("--method theorem given; no theorem covers this architecture, leave it out to compute bounds")
    small = upper.value <= (DIMENSION_WITHOUT_FORMULA if stated.dimension is None else DIMENSION_PROVEN_ANYWAY)
    if method == "theorem" or (method == "auto" and not small and (theorem is not None or not prove)):
        return stated
    lower = find_lower_bound(architecture, upper.value, method, seed, progress, workers)
    if theorem is not None and lower.value > theorem.value:
        raise ArithmeticError(f"rank {lower.value} exceeds {theorem.value} of {theorem.source} for {architecture}")
    value, probability = lower.value, None
    between = f"between {lower.value} and {upper.value}"
    standing: Standing = "undecided"
    reason = f"proven to be {between}; the lower bound is given"
    if lower.value == upper.value:
        standing, reason = "proven", "the bounds meet"
    elif theorem is not None:
        standing, value = "theorem", theorem.value
        reason = f"{theorem.source}; the computed lower bound is {lower.value}"
    elif lower.method in ("minor", "schur") and upper.value <= DIMENSION_WITHOUT_FORMULA:
        estimate = estimate_dimension(architecture, upper.value, seed)
        standing, probability = "probabilistic", estimate.error_probability
        value = max(estimate.value, lower.value)
        reason = f"{between}; {value} is the rank at random points of GF({estimate.prime})"
    claim: dict[str, Any] = {"standing": standing, "reason": reason, "dimension": value}
    seconds = time.perf_counter() - started
    return replace(stated, **claim, lower=lower, error_probability=probability, seconds=seconds)


def _from_program(
    architecture: Architecture,
    prove: bool,
    method: Request,
    seed: int,
    progress: Callable[[int, int], None] | None,
) -> Dimension:
    """The dimension of a kind beyond the papers, or with options: by theorem, and by its program where that is small.

    >>> answer = dimension(Architecture((3, 2), 2, kind="deltanet"))
    >>> answer.dimension, answer.standing, answer.fiber["query-key-rotation"]
    (19, 'proven', 1)
    """
    if method not in ("auto", "theorem", "minor"):
        raise InputError(f"--method {method} given for {architecture.kind} attention; auto, theorem or minor is known")
    theorem = modern_formula(architecture)
    if method == "theorem" and theorem is None:
        raise InputError("--method theorem given; no theorem covers this architecture, leave it out to compute bounds")
    small = architecture.num_parameters <= PROGRAM_COMPUTED_ANYWAY
    claim: dict[str, Any] = {"seed": seed, "architecture": architecture, "formula": theorem}
    if method == "theorem" or (theorem is not None and not prove and not small):
        assert theorem is not None
        lost = _losses_by_theorem(architecture, theorem.value)
        upper = UpperBound(standing="theorem", reason=theorem.source, value=theorem.value, parts=lost)
        reason = f"{theorem.source}: a theorem whose hypotheses hold; not recomputed here"
        return Dimension(standing="theorem", reason=reason, dimension=theorem.value, upper=upper, seconds=0.0, **claim)
    bounds = program_bounds(
        architecture, seed, None if progress is None else lambda _, done, total: progress(done, total)
    )
    lower, upper = bounds.lower, bounds.upper
    if theorem is not None and lower.is_proven and lower.value > theorem.value:
        raise ArithmeticError(f"rank {lower.value} exceeds {theorem.value} of {theorem.source} for {architecture}")
    if lower.is_proven and lower.value > upper.value:
        raise ArithmeticError(f"rank {lower.value} exceeds the upper bound {upper.value} for {architecture}")
    standing: Standing = lower.standing if lower.value == upper.value else "undecided"
    value, reason = lower.value, f"{lower.reason}; at most {upper.value}: {upper.reason}"
    if lower.value < upper.value:
        reason = f"between {lower.value} and {upper.value}, the lower bound is given: {reason}"
    if standing != "proven" and theorem is not None:
        standing, value = "theorem", theorem.value
        reason = f"{theorem.source}; the computed lower bound is {lower.value}"
    return Dimension(
        standing=standing, reason=reason, dimension=value, upper=upper, lower=lower, seconds=bounds.seconds, **claim
    )


def _losses_by_theorem(architecture: Architecture, value: int) -> dict[str, int]:
    """The fiber by symmetry where the groups act freely, so that their dimensions add up; else in one number."""
    lost = architecture.num_parameters - value
    counts = {name: count for name, count in count_generators(architecture).items() if count}
    return counts if sum(counts.values()) == lost else {"theorem": lost}


def stated_dimension(architecture: Architecture, *, seed: int = 0) -> Dimension:
    """What theorems, formulas and counts say of the dimension; nothing is computed, so it is there at every size.

    >>> stated_dimension(Architecture((4096, 4096), 64, heads=64, kind="softmax")).standing
    'theorem'
    """
    started = time.perf_counter()
    known, upper = formula(architecture), upper_bound(architecture)
    words = {
        "theorem": "a theorem whose hypotheses hold; not recomputed here",
        "computed": "a proven upper bound; equality was computed in every tested case, not recomputed here",
    }
    standing: Standing = "undecided"
    reason = "no formula applies; only the upper bound is known, ask for a proof to compute a lower one"
    if known is not None:
        standing = "theorem" if known.status == "theorem" else "estimate"
        reason = f"{known.source}: {words[known.status]}"
    return Dimension(
        standing=standing,
        reason=reason,
        seed=seed,
        architecture=architecture,
        dimension=None if known is None else known.value,
        upper=upper,
        # A formula whose hypotheses fail may have a value all the same; its record says so.
        formula=known or next(reversed(formulas(architecture)), None),
        seconds=time.perf_counter() - started,
    )
