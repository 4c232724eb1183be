"""Same function, in floats: what weights known to a relative accuracy τ can tell (docs/explanation/comparison.md).

Same: what is seen of both networks agrees up to the noise that errors of size τ in the given weights cause, and up to
10,000 τ in every direction. Different: something that the function determines differs by 30 times that noise.

Errors and inputs come from the architecture and the seed, so that an answer moves with the last bits of the weights as
little as they do. Whoever knows them could make a file that fits: before a verdict that rests on them is given, it is
looked at again with errors and inputs from a digest of both networks, by wider bounds.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256

import numpy as np

from attngeom.canonical.answer import from_form
from attngeom.canonical.form import canonical_form
from attngeom.comparison.exact_decision import compare_exact
from attngeom.comparison.float_corrections import least_corrections
from attngeom.comparison.float_layer import agree_after, agree_with_skip, head_samples, judge_layer
from attngeom.comparison.float_matching import FloatAlignment, align, relative_distance
from attngeom.comparison.float_outputs import (
    OutputTest,
    check_tokens,
    differ_visibly,
    draw_inputs,
    draw_special_inputs,
    judge_outputs,
    show_separation,
)
from attngeom.comparison.float_terms import common_terms, exchange_factors, factor_rank_one
from attngeom.comparison.powers import RescaledPair, rescale_pair, without_unseen
from attngeom.comparison.results import UNTOLD, Comparison, Report, Ruling, ignore
from attngeom.comparison.samples import Layers, draw_copies
from attngeom.comparison.separation import consensus
from attngeom.comparison.virtual import judge_virtual
from attngeom.digits import error
from attngeom.errors import InputError, RangeError, SingularError
from attngeom.exact.domains import GF, QQ, RR, Array
from attngeom.exact.numbers import WORD_PRIME
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
from attngeom.network import Architecture, Weights, forward, identity_symmetry
from attngeom.network.architecture import DRAWN_FROM
from attngeom.network.inputs import telling_tokens
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
        judgement = _Trial(pair, (given[places[0]], given[places[1]]), tolerance, draws, report).judge()
        symmetry, residual = None, None
        if isinstance(judgement.aligned, FloatAlignment):
            try:
                symmetry = judgement.aligned.carrying(pair, places)
                residual = relative_distance(symmetry.apply(first), second)
            except (SingularError, RangeError):
                # In the coordinates of the given weights the group element leaves the range of floats.
                symmetry = None
        same, outputs = judgement.verdict.same, judgement.outputs
        is_kept = same is not False and residual is not None and residual <= WORST_AMPLIFIED * tolerance
        hypotheses: tuple[str, ...] = ()
        if isinstance(judgement.aligned, Failure):
            hypotheses = failed(check_hypotheses(pair.weights[places[1]], tolerance))
        separation = show_separation((first, second), pair.inputs, outputs) if same is False else None
    return Comparison(
        same_function=same,
        standing="undecided" if same is None else "proven" if judgement.is_exact else "estimate",
        reason=judgement.verdict.reason,
        seed=seed,
        carrier=symmetry if is_kept else None,
        separation=separation,
        failed_hypotheses=hypotheses,
        residual=residual,
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
    aligned: FloatAlignment | Failure | None = None
    is_exact: bool = False


@dataclass(frozen=True, eq=False)
class _Trial:
    """Two networks in the order of the pair, with errors and inputs drawn from the seeds of ``draws`` on."""

    pair: RescaledPair
    given: tuple[Weights, Weights]
    tolerance: float
    draws: _Draws
    report: Report

    @property
    def architecture(self) -> Architecture:
        return self.given[0].architecture

    @cached_property
    def copies(self) -> tuple[Layers, Layers]:
        return _draw_both(self.pair.weights, self.tolerance, self.draws.stated)

    @cached_property
    def outputs(self) -> OutputTest:
        """What random inputs show."""
        return self._test(draw_inputs(*self.pair.weights, self.draws.stated + 2))

    @cached_property
    def special(self) -> OutputTest:
        """What inputs made for these networks show; random ones where there are none."""
        X = draw_special_inputs(*self.pair.weights, self.draws.stated + 3)
        return self._test(X) if len(X) else self.outputs

    def _test(self, X: Array) -> OutputTest:
        return judge_outputs(self.architecture, *self.copies, X, self.tolerance, self.report)

    def judge(self) -> _Judgement:
        """Equal as exact numbers; else different, by theorem or outputs; else the same, if nothing contradicts it."""
        outputs = self.outputs
        self.report("aligning", 0, None)
        if _are_exactly_equal(*self.given, self.draws.stated, outputs):
            aligned = align(self.pair.weights, self.tolerance, both=False)
            reason = "the weights, taken as exact numbers, give one function"
            return _Judgement(Ruling(True, reason), outputs, aligned, is_exact=True)
        stated = self._by_theorem()
        if stated.same is False:
            return _Judgement(stated, outputs)
        # The sum of several heads may agree though a small one does not: the heads themselves are asked.
        summed = stated if stated.same and self.architecture.heads > 1 else None
        verdict = UNTOLD if summed else stated
        if verdict.same is None and (far := self._far_outputs()) is not None:
            return _Judgement(_differ(far, self.tolerance), far)
        verdict, aligned, is_near = self._agreement(verdict)
        if is_near and not self._is_contradicted():
            return _Judgement(summed or verdict, outputs, aligned)
        reason = verdict.reason if verdict.same is None else ""
        reason = reason or f"{_seen(outputs, self.tolerance)}: too close to tell"
        return _Judgement(Ruling(None, reason), outputs, aligned)

    def _by_theorem(self) -> Ruling:
        """What a theorem says; that networks differ only if errors that nobody could know do not make them the same."""
        verdict = _by_theorem(self.architecture, *self.copies, self.tolerance)
        if verdict.same is not False:
            return verdict
        others = _draw_both(self.pair.weights, self.tolerance, self.draws.unforeseen)
        return UNTOLD if _by_theorem(self.architecture, *others, self.tolerance).same else verdict

    def _far_outputs(self) -> OutputTest | None:
        """The first outputs that are far apart, if errors that nobody could know do not explain it."""
        if self._is_far(self.outputs):
            return self.outputs
        return self.special if self._is_far(self.special) else None

    def _is_far(self, test: OutputTest) -> bool:
        if not test.is_far:
            return False
        others = _draw_both(self.pair.weights, self.tolerance, self.draws.unforeseen)
        X = test.X[[test.place]]
        return judge_outputs(self.architecture, *others, X, self.tolerance).worst > NOISE_EXPLAINS

    def _agreement(self, verdict: Ruling) -> tuple[Ruling, FloatAlignment | Failure, bool]:
        """What speaks for one function: a theorem, corrections, a symmetry, canonical forms; and whether it is enough.

        Outputs that differ by more than is allowed, but are explained by moderate noise everywhere, leave it to the
        weights.
        """
        weights, outputs, tolerance = self.pair.weights, self.outputs, self.tolerance
        allowed = _allowed(self.architecture, tolerance)
        is_noise = max(outputs.worst, self.special.worst) <= NOISE_EXPLAINS and outputs.noise <= OUTPUTS_SWAMPED
        is_noise = is_noise and outputs.excess <= WORST_AMPLIFIED / OUTPUTS_AMPLIFIED * allowed
        is_near = verdict.same is True and outputs.excess <= allowed
        is_corrected = not is_near and _are_corrected(weights, tolerance)
        if is_corrected:
            most = f"{NOISE_EXPLAINS * tolerance:.0e}"
            verdict, is_near = Ruling(True, f"corrected by at most {most} of an entry, both are one function"), True
        aligned = align(weights, tolerance, both=verdict.same is None)
        if verdict.same is None:
            verdict = _by_alignment(aligned, tolerance, self.draws.stated)
            if verdict.same is None:
                verdict = _by_forms(self.given, tolerance, self.draws.stated) or verdict
            is_near = verdict.same is True and outputs.excess <= allowed
        is_explained = isinstance(aligned, FloatAlignment) and aligned.match.is_explained
        if isinstance(aligned, FloatAlignment) and is_explained and (is_corrected or (is_noise and not is_near)):
            verdict, is_near = _carried(aligned), is_near or is_noise
        if is_near and allowed < np.inf and self.architecture.num_parameters <= FLOATS_AS_EXACT:
            # Errors within the tolerance may explain all outputs; networks that visibly differ are not the same.
            is_blurred = is_corrected or outputs.noise > OUTPUTS_SWAMPED
            is_near = not (is_blurred and differ_visibly(weights, outputs.X, tolerance))
        return verdict, aligned, is_near

    def _is_contradicted(self) -> bool:
        """Whether outputs, or what a theorem compares, differ by more than errors of each entry alone explain."""
        architecture, tolerance = self.architecture, self.tolerance
        copies = _draw_both(self.pair.weights, tolerance, self.draws.unforeseen, share=0.0)
        if _by_theorem(architecture, *copies, tolerance).same is False:
            return True
        X = self.outputs.X if self.special is self.outputs else np.concatenate([self.outputs.X, self.special.X])
        return judge_outputs(architecture, *copies, X, tolerance, self.report).is_far


def _are_corrected(weights: tuple[Weights, Weights], tolerance: float) -> bool:
    """Whether corrections within errors of the weights make two networks one function; several guesses are tried."""
    close = max(100 * tolerance, SUM_ROUNDING)
    weights = without_unseen(weights[0]), without_unseen(weights[1])
    if weights[0].architecture.view == "scaled" and not weights[0].architecture.is_factored:
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
    allowed = OUTPUTS_AMPLIFIED * tolerance * architecture.rule.growth(architecture.num_layers)
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


def _by_alignment(aligned: FloatAlignment | Failure, tolerance: float, seed: int) -> Ruling:
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
        is_swamped and match.residual <= NOISE_EXCLUDED * tolerance
    ):
        return _carried(aligned)
    return Ruling(None, f"aligned weights differ by {error(match.residual)}: too close to tell")


def _carried(aligned: FloatAlignment) -> Ruling:
    return Ruling(True, f"a symmetry carries the first weights to the second up to {error(aligned.match.residual)}")


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
    if first.architecture.num_parameters > FLOATS_AS_EXACT:
        return False
    # Where a kind has no values mod p, the outputs in floats are looked at.
    differ = _differ_mod_p(first, second, seed)
    if outputs.is_far if differ is None else differ:
        return False
    return compare_exact(first.to(QQ), second.to(QQ), seed).same_function is True


def _differ_mod_p(first: Weights, second: Weights, seed: int) -> bool | None:
    """Whether values that a kind of attention has mod p differ; None for kinds that have none."""
    architecture, field = first.architecture, GF(WORD_PRIME)
    if architecture.rule.is_normalised:
        return not field.equal(*(consensus(weights.to(field)) for weights in (first, second)))
    if not architecture.rule.evaluates(field):
        return None
    X = field.random((architecture.widths[0], telling_tokens(architecture)), np.random.default_rng(seed))
    return not field.equal(*(forward(weights.to(field), X) for weights in (first, second)))


def _vanishes(weights: Weights) -> bool:
    """Whether a layer without skip connection is plainly zero: no head of it has values, or scores for lightning."""
    architecture = weights.architecture
    factors = architecture.rule.factors
    return not architecture.residual and any(
        all(any(name in factors and not a.any() for name, a in head.tensors.items()) for head in heads)
        for heads in weights.layers
    )
