"""Same function, in floats: what weights known to a relative accuracy τ can tell (docs/explanation/comparison.md).

Same: what is seen of both networks agrees up to the noise that errors of size τ in the given weights cause, and up to
10,000 τ in every direction. Different: something that the function determines differs by 30 times that noise.

Errors and inputs come from the architecture and the seed, so that an answer moves with the last bits of the weights as
little as they do. Whoever knows them could make a file that fits: before a verdict that rests on them is given, it is
looked at again with errors and inputs from a digest of both networks, by wider bounds.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256

import numpy as np

from attngeom.canonical.answer import from_form
from attngeom.canonical.form import canonical_form
from attngeom.comparison.exact_decision import compare_lightning, compare_transcendental
from attngeom.comparison.float_corrections import least_corrections
from attngeom.comparison.float_layer import agree_after, agree_with_skip, head_samples, judge_layer
from attngeom.comparison.float_matching import FloatMatch, GaugedWeights, errors_of, match_points, relative_distance
from attngeom.comparison.float_outputs import (
    OutputTest,
    check_tokens,
    differ_visibly,
    draw_inputs,
    draw_special_inputs,
    judge_outputs,
)
from attngeom.comparison.float_refinement import refine
from attngeom.comparison.float_terms import common_terms, exchange_factors, factor_rank_one
from attngeom.comparison.float_virtual import judge_virtual
from attngeom.comparison.powers import RescaledPair, rescale_pair, without_unseen
from attngeom.comparison.results import UNTOLD, Comparison, Report, Ruling, Separation, ignore
from attngeom.comparison.samples import Layers, draw_copies
from attngeom.comparison.separation import consensus
from attngeom.digits import error
from attngeom.errors import InputError, RangeError, SingularError
from attngeom.exact.domains import GF, QQ, RR, Array
from attngeom.exact.primes import WORD_PRIME
from attngeom.inspection.hypotheses import check_hypotheses, failed
from attngeom.limits.rounding import (
    NOISE_EXCLUDED,
    NOISE_EXPLAINS,
    OUTPUTS_AMPLIFIED,
    OUTPUTS_SWAMPED,
    SUM_ROUNDING,
    WORST_AMPLIFIED,
    ZERO_SINGULAR_VALUE,
)
from attngeom.limits.work import FLOATS_AS_EXACT
from attngeom.network import Architecture, Symmetry, Weights, forward, identity_symmetry
from attngeom.network.architecture import DRAWN_FROM
from attngeom.network.inputs import telling_tokens, with_all_tokens
from attngeom.results import Failure


def compare_floats(first: Weights, second: Weights, tolerance: float, seed: int, report: Report = ignore) -> Comparison:
    """The verdict on two float networks; swapping them gives the same verdict.

    >>> from attngeom.network import Architecture, random_weights
    >>> w = random_weights(Architecture((2, 2), 1), RR, seed=0)
    >>> compare_floats(w, w, 1e-9, seed=0).same_function
    True
    """
    check_tokens(first.architecture)
    # One order of the pair for every test: a verdict cannot depend on which weights came first.
    vectors = [weights.vector() for weights in (first, second)]
    places = _order(*vectors)
    given = (first, second)
    draws = _Draws.of(first.architecture, vectors, seed)
    with np.errstate(all="ignore"):
        pair = rescale_pair(given[places[0]], given[places[1]])
        judgement = _judge(pair, (given[places[0]], given[places[1]]), tolerance, draws, report)
        symmetry, misfit = None, None
        if isinstance(judgement.aligned, _Aligned):
            try:
                symmetry = judgement.aligned.carrying(pair, places)
                misfit = relative_distance(symmetry.apply(first), second)
            except (SingularError, RangeError):
                # In the coordinates of the given weights the group element leaves the range of floats.
                symmetry = None
        same, outputs = judgement.verdict.same, judgement.outputs
        is_kept = same is not False and misfit is not None and misfit <= WORST_AMPLIFIED * tolerance
        hypotheses: tuple[str, ...] = ()
        if isinstance(judgement.aligned, Failure):
            hypotheses = failed(check_hypotheses(pair.weights[places[1]], tolerance))
        separation = _separation(first, second, pair, outputs) if same is False else None
    return Comparison(
        same_function=same,
        standing="undecided" if same is None else "proven" if judgement.is_exact else "estimate",
        reason=judgement.verdict.reason,
        seed=seed,
        carrier=symmetry if is_kept else None,
        separation=separation,
        failed_hypotheses=hypotheses,
        misfit=misfit,
        difference=outputs.difference,
        noise=outputs.noise,
        tolerance=tolerance,
    )


def _order(first: Array, second: Array) -> tuple[int, int]:
    """The places of the two in the order of their entries."""
    differing = np.flatnonzero(first != second)[:1]
    return (1, 0) if np.any(first[differing] > second[differing]) else (0, 1)


@dataclass(frozen=True)
class _Draws:
    """Two seeds of errors and inputs: one for what is said, and one that nobody knows who makes a file."""

    stated: int
    unforeseen: int

    @classmethod
    def of(cls, architecture: Architecture, vectors: list[Array], seed: int) -> _Draws:
        named = ", ".join(f"{name}={getattr(architecture, name)!r}" for name in DRAWN_FROM)
        digest = sha256(f"Architecture({named}) {seed} stated".encode())
        stated = int.from_bytes(digest.digest()[:16])
        for vector in sorted(sha256((vector + 0.0).tobytes()).digest() for vector in vectors):
            digest.update(vector)
        return cls(stated, int.from_bytes(digest.digest()[:16]))


@dataclass(frozen=True, eq=False)
class _Judgement:
    verdict: Ruling
    outputs: OutputTest
    aligned: _Aligned | Failure | None = None
    is_exact: bool = False


def _judge(
    pair: RescaledPair, given: tuple[Weights, Weights], tolerance: float, draws: _Draws, report: Report
) -> _Judgement:
    """The verdict in the order of the pair; seeds from those of ``draws`` on are used up."""
    first, second = pair.weights
    architecture, seed = first.architecture, draws.stated
    one, two = _draw_both(pair.weights, tolerance, seed)

    def is_far(test: OutputTest) -> bool:
        """Whether the outputs are far apart, and errors that nobody could know do not explain it."""
        if not test.is_far:
            return False
        others = _draw_both(pair.weights, tolerance, draws.unforeseen)
        return judge_outputs(architecture, *others, test.X[[test.place]], tolerance).worst > NOISE_EXPLAINS

    outputs = judge_outputs(architecture, one, two, draw_inputs(first, second, seed + 2), tolerance, report)
    report("aligning", 0, None)
    if _are_exactly_equal(*given, seed, outputs):
        reason = "the weights, taken as exact numbers, give one function"
        return _Judgement(Ruling(True, reason), outputs, _align(pair.weights, tolerance, both=False), is_exact=True)
    verdict = _by_theorem(architecture, one, two, tolerance)
    if verdict.same is False:
        others = _draw_both(pair.weights, tolerance, draws.unforeseen)
        if _by_theorem(architecture, *others, tolerance).same is not True:
            return _Judgement(verdict, outputs)
        verdict = UNTOLD
    # The sum of several heads may agree though a small one does not: the heads themselves are asked.
    summed = verdict if verdict.same and architecture.heads > 1 else None
    verdict = UNTOLD if summed else verdict
    if verdict.same is None and is_far(outputs):
        return _Judgement(_differ(outputs, tolerance), outputs)
    X = draw_special_inputs(first, second, seed + 3)
    special = judge_outputs(architecture, one, two, X, tolerance, report) if len(X) else outputs
    if verdict.same is None and is_far(special):
        return _Judgement(_differ(special, tolerance), special)
    X = np.concatenate([outputs.X, X])
    allowed = _allowed(architecture, tolerance)
    # Outputs that differ by more than that, but are explained by moderate noise everywhere, leave it to the weights.
    is_noise = max(outputs.worst, special.worst) <= NOISE_EXPLAINS and outputs.noise <= OUTPUTS_SWAMPED
    is_noise = is_noise and outputs.excess <= WORST_AMPLIFIED / OUTPUTS_AMPLIFIED * allowed
    is_near = verdict.same is True and outputs.excess <= allowed
    is_corrected = False
    if not is_near and _are_corrected(pair.weights, tolerance):
        verdict = Ruling(
            True, f"corrected by at most {NOISE_EXPLAINS * tolerance:.0e} of an entry, both are one function"
        )
        is_near, is_corrected = True, True
    aligned = _align(pair.weights, tolerance, both=verdict.same is None)
    if verdict.same is None:
        verdict = _by_alignment(aligned, tolerance, seed)
        if verdict.same is None:
            verdict = _by_forms(given, tolerance, seed) or verdict
        is_near = verdict.same is True and outputs.excess <= allowed
    if (is_corrected or (is_noise and not is_near)) and isinstance(aligned, _Aligned) and aligned.match.is_explained:
        verdict, is_near = _carried(aligned), is_near or is_noise
    if is_near and allowed < np.inf and architecture.num_parameters <= FLOATS_AS_EXACT:
        # Errors within the tolerance may explain all outputs; networks that visibly differ are not called the same.
        is_blurred = is_corrected or outputs.noise > OUTPUTS_SWAMPED
        is_near = not (is_blurred and differ_visibly(pair.weights, outputs.X, tolerance))
    if is_near and not _is_contradicted(pair.weights, X, tolerance, draws.unforeseen, report):
        return _Judgement(summed or verdict, outputs, aligned)
    reason = verdict.reason if verdict.same is None else ""
    return _Judgement(Ruling(None, reason or f"{_seen(outputs, tolerance)}: too close to tell"), outputs, aligned)


def _are_corrected(weights: tuple[Weights, Weights], tolerance: float) -> bool:
    """Whether corrections within errors of the weights make two networks one function; several guesses are tried."""
    close = max(100 * tolerance, SUM_ROUNDING)
    weights = without_unseen(weights[0]), without_unseen(weights[1])
    if weights[0].architecture.rule.is_polynomial and not weights[0].architecture.is_factored:
        factored = [factor_rank_one(side, tolerance) for side in weights]
        if factored[0] is not None and factored[1] is not None:
            weights = factored[0], factored[1]
    tried: list[list[object]] = []
    for guess in ((0.0, ZERO_SINGULAR_VALUE), (close, ZERO_SINGULAR_VALUE), (close, 10 * tolerance)):
        try:
            fitted = exchange_factors(weights, *guess)
            layers = common_terms(fitted, *guess)
            if layers is None or (choices := [layer.choice for layer in layers]) in tried:
                continue
            tried.append(choices)
            corrections = least_corrections(fitted, layers, tolerance)
        except (SingularError, RangeError):
            continue
        if corrections is not None and corrections.are_explained:
            return True
    return False


def _is_contradicted(weights: tuple[Weights, Weights], X: Array, tolerance: float, seed: int, report: Report) -> bool:
    """Whether outputs, or what a theorem compares, differ by more than errors of each entry alone explain."""
    architecture, (one, two) = weights[0].architecture, _draw_both(weights, tolerance, seed, share=0.0)
    if _by_theorem(architecture, one, two, tolerance).same is False:
        return True
    return judge_outputs(architecture, one, two, X, tolerance, report).is_far


def _draw_both(pair: tuple[Weights, Weights], tolerance: float, seed: int, share: float = 0.5) -> tuple[Layers, Layers]:
    """Copies of both networks, with independent errors; ``share`` as in :func:`draw_copies`."""
    return draw_copies(pair[0], tolerance, seed, share), draw_copies(pair[1], tolerance, seed + 1, share)


def _differ(outputs: OutputTest, tolerance: float) -> Ruling:
    if outputs.difference > outputs.noise:
        far = f"the outputs differ by {error(outputs.difference)}, more than the {error(outputs.noise)} that"
    else:
        far = f"an output differs by {outputs.worst:.1e} times what"
    return Ruling(False, f"{far} errors of {tolerance:.0e} explain")


def _seen(outputs: OutputTest, tolerance: float) -> str:
    return (
        f"the outputs differ by {error(outputs.difference)}; errors of {tolerance:.0e} explain {error(outputs.noise)}"
    )


def _allowed(architecture: Architecture, tolerance: float) -> float:
    """The largest relative difference of outputs called the same: errors of degree 3^l multiply by 3^l, others add."""
    degree = 3.0**architecture.num_layers if architecture.rule.is_polynomial else 3.0 * architecture.num_layers
    allowed = OUTPUTS_AMPLIFIED * tolerance * degree
    return allowed if allowed < OUTPUTS_SWAMPED else np.inf


def _by_theorem(architecture: Architecture, one: Layers, two: Layers, tolerance: float) -> Ruling:
    if architecture.has_virtual_weights:
        verdict = judge_virtual(architecture, one, two, tolerance)
        # One lightning head of rank one has two points (A, V), which agree in their coefficients alone.
        if verdict.same is not None or not architecture.is_cubic:
            return verdict
    if architecture.num_layers == 1:
        return judge_layer(architecture, head_samples(one[0]), head_samples(two[0]), tolerance)
    if architecture.residual and agree_with_skip(architecture, one, two, tolerance):
        return Ruling(True, "the layers agree one by one")
    return UNTOLD


@dataclass(frozen=True, eq=False)
class _Aligned:
    """A symmetry that carries source to target, and how well; refinement may fail in one of the two directions."""

    match: FloatMatch
    source: GaugedWeights
    target: GaugedWeights

    def turned(self, tolerance: float) -> _Aligned:
        """The inverse, refined where it leads: errors may be of another size there. This one if floats are too few."""
        source, target = self.target.weights, self.source.weights
        errors = errors_of(target, tolerance)
        try:
            symmetry = refine(self.match.symmetry.inverse(), source, target, errors)
            return _Aligned(FloatMatch.of(symmetry, source, target, errors), self.target, self.source)
        except (SingularError, RangeError):
            return self

    def carrying(self, pair: RescaledPair, places: tuple[int, int]) -> Symmetry:
        """The symmetry between the weights as given, from the first to the second; ``places`` says which is which."""
        source, target = (pair.weights[place] for place in places)
        symmetry = self.match.symmetry
        if self.source.weights is not source:
            symmetry = refine(symmetry.inverse(), source, target)
        return pair.gauges[places[1]].inverse().compose(symmetry).compose(pair.gauges[places[0]])


def _align(given: tuple[Weights, Weights], tolerance: float, both: bool) -> _Aligned | Failure:
    """The better of the symmetries found from the first weights to the second and, if asked for, back."""
    # On one orbit the longer weights are worse conditioned: what carries them to the shorter ones magnifies errors.
    lengths = [np.linalg.norm(weights.vector()) for weights in given]
    one, two = map(GaugedWeights, given[::-1] if both and lengths[0] > lengths[1] else given)
    match = match_points(one, two, tolerance)
    if not both or (isinstance(match, FloatMatch) and match.is_explained):
        return match if isinstance(match, Failure) else _Aligned(match, one, two)
    back = match_points(two, one, tolerance)
    if isinstance(match, Failure) and isinstance(back, Failure):
        return match
    pairs = ((match, (one, two)), (back, (two, one)))
    sides_aligned = [_Aligned(side, *points) for side, points in pairs if isinstance(side, FloatMatch)]
    best = min(sides_aligned, key=lambda aligned: aligned.match.misfit)
    return min(best, best.turned(tolerance), key=lambda aligned: aligned.match.misfit)


def _by_alignment(aligned: _Aligned | Failure, tolerance: float, seed: int) -> Ruling:
    """Same, if a symmetry carries every head to its place, in the gauge of least norm.

    Where errors of size τ swamp the outputs of any network of this depth, the weights as given are all there is to
    compare: then it is enough that every tensor is met to 30 τ.
    """
    if isinstance(aligned, Failure):
        return UNTOLD
    if aligned.match.is_met:
        return _carried(aligned)
    match, points = aligned.match, (aligned.source, aligned.target)
    one, two = _draw_both((points[0].weights, points[1].weights), tolerance, seed)
    is_swamped = _allowed(match.symmetry.architecture, tolerance) == np.inf
    if agree_after(match.symmetry, aligned.target.balanced, one, two, tolerance) or (
        is_swamped and match.misfit <= NOISE_EXCLUDED * tolerance
    ):
        return _carried(aligned)
    return Ruling(None, f"aligned weights differ by {error(match.misfit)}: too close to tell")


def _carried(aligned: _Aligned) -> Ruling:
    return Ruling(True, f"a symmetry carries the first weights to the second up to {error(aligned.match.misfit)}")


def _by_forms(given: tuple[Weights, Weights], tolerance: float, seed: int) -> Ruling | None:
    """Same, if the canonical forms are: there heads that agree are one, and what nothing reads or reaches is gone.

    Beside a skip connection rows of the stream have no units that could be chosen, so that small ones may be lost as
    rounding errors: a form counts if it agrees with its own weights layer by layer.
    """
    architecture = given[0].architecture
    if architecture.num_parameters > FLOATS_AS_EXACT:
        return None
    try:
        forms = [canonical_form(weights) for weights in given]
        if not all(form.is_canonical for form in forms):
            return None
        if not architecture.residual and all(any(not layer.terms for layer in form.layers) for form in forms):
            return Ruling(True, "the heads of a layer cancel in both, up to rounding: both functions are zero")
        restored = [from_form(form, start=weights) for form, weights in zip(forms, given)]
    except InputError:
        return None
    one, two = _draw_both((restored[0].weights, restored[1].weights), tolerance, seed)
    if architecture.residual:
        own = _draw_both(given, tolerance, seed)
        if not all(agree_with_skip(architecture, a, b, tolerance) for a, b in zip(own, (one, two))):
            return None
    identity = identity_symmetry(architecture, RR)
    if all(form.is_canonical for form in restored) and agree_after(identity, identity, one, two, tolerance):
        return Ruling(True, "the canonical forms agree")
    return None


def _are_exactly_equal(first: Weights, second: Weights, seed: int, outputs: OutputTest) -> bool:
    """Whether the weights, as fractions with denominators 2^n, are proven or almost surely one function."""
    if first.equals(second) or (_vanishes(first) and _vanishes(second)):
        return True
    architecture = first.architecture
    rule = architecture.rule
    if architecture.num_parameters > FLOATS_AS_EXACT:
        return False
    if not rule.is_polynomial and not rule.is_normalised:
        return not outputs.is_far and compare_transcendental(first.to(QQ), second.to(QQ), seed).same_function is True
    field = GF(WORD_PRIME)
    residues = [weights.to(field) for weights in (first, second)]
    if rule.is_normalised:
        if not field.equal(consensus(residues[0]), consensus(residues[1])):
            return False
        return compare_transcendental(first.to(QQ), second.to(QQ), seed).same_function is True
    X = field.random((architecture.widths[0], telling_tokens(architecture)), np.random.default_rng(seed))
    if not field.equal(forward(residues[0], X), forward(residues[1], X)):
        return False
    return compare_lightning(first.to(QQ), second.to(QQ), seed).same_function is True


def _vanishes(weights: Weights) -> bool:
    """Whether a layer without skip connection is plainly zero: no head of it has values, or scores for lightning."""
    architecture = weights.architecture
    factors = architecture.rule.factors
    return not architecture.residual and any(
        all(any(name in factors and not a.any() for name, a in head.tensors.items()) for head in heads)
        for heads in weights.layers
    )


def _separation(first: Weights, second: Weights, pair: RescaledPair, outputs: OutputTest) -> Separation | None:
    """The most telling input in the given coordinates, scaled to outputs of size 1 where the degree allows it."""
    architecture = first.architecture
    X = np.ldexp(outputs.X[outputs.place], pair.inputs[:, None])
    if architecture.is_homogeneous:
        part, whole = np.modf(-float(outputs.exponents[outputs.place]) / 3**architecture.num_layers)
        X = np.ldexp(X * 2.0**part, int(whole))
    values = forward(first, X), forward(second, X)
    is_shown = all(np.all(np.isfinite(value)) for value in values) and not np.array_equal(*values)
    if not is_shown:
        return None
    one, two = (with_all_tokens(architecture, value) for value in values)
    return Separation(with_all_tokens(architecture, X), (one, two), RR)
