"""The learning coefficient at given weights: which theorem applies, the pair (λ, m), and how strong the answer is.

For kinds of attention beyond the papers: Theorem R, and two bounds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import numpy as np

from attngeom import digits
from attngeom.dimensions.point import rank_at
from attngeom.dimensions.program_point import orbit_rank_at
from attngeom.errors import DomainError, InputError, SizeError
from attngeom.exact.domains import QQ, Array, Domain
from attngeom.exact.precise import Rank, measured_rank
from attngeom.layer.quadrics import context_products
from attngeom.learning.blocks import Block, HeadBlocks, head_blocks
from attngeom.learning.certified import by_ranks
from attngeom.learning.deep import deep_softmax, deficient_softmax, without_values
from attngeom.learning.lightning_heads import lightning_heads
from attngeom.learning.losses import LOSSES, Loss, all_sequences, logit_differences
from attngeom.learning.pairs import HALF, Pair, PairFinding
from attngeom.learning.single import single_layer
from attngeom.limits.work import LOCAL_RANK_PARAMETERS
from attngeom.network.architecture import Architecture
from attngeom.network.symmetry.element import matrix_to_json
from attngeom.network.weights import Weights
from attngeom.results import Result, Standing
from attngeom.verification.reading import describe_claimed
from attngeom.verification.records import Certificate

POLES = "; inputs have compact support where no denominator vanishes"


def of_kind(weights: Weights, seed: int) -> PairFinding:
    """½ rank dφ ≤ λ ≤ ½ (weights − dimension of the orbit); and λ = ½ rank dφ where that rank is the largest.

    Both bounds hold for every analytic family (docs/theorems/learning.md): K vanishes on the orbit, and is at least a
    multiple of a sum of rank dφ squares of coordinates.

    >>> from attngeom.network import Architecture, random_weights
    >>> finding = of_kind(random_weights(Architecture((3, 2), 2, kind="gla"), QQ, seed=0), 0)
    >>> finding.theorem, str(finding.pair)
    ('R', '(21/2, 1)')
    """
    architecture, count = weights.architecture, weights.architecture.num_parameters
    upper = HALF * (count - orbit_rank_at(weights.to(QQ)))
    if count > LOCAL_RANK_PARAMETERS:
        reason = f"not proven: {count:,} weights given; ranks at a point are computed up to {LOCAL_RANK_PARAMETERS:,}"
        return PairFinding("none", reason, lower=Fraction(0), upper=upper)
    try:
        point = rank_at(weights, seed)
    except SizeError as error:
        return PairFinding("none", f"not proven: {error}", lower=Fraction(0), upper=upper)
    poles = POLES if _has_poles(architecture) else ""
    clear = point.standing in ("proven", "estimate")
    witness = {"prime": point.prime}
    lower = HALF * point.rank
    if point.defect == 0 and clear:
        reason = f"the rank of the differential is {point.rank}, the largest that this architecture has{poles}"
        return PairFinding("R", reason, Pair.coordinates(point.rank), is_clear=clear, witness=witness)
    if lower == upper and clear:
        reason = f"the bounds ½ rank dφ and ½ (weights − dimension of the orbit) are both {lower}{poles}"
        return PairFinding("bounds", reason, Pair(lower), is_clear=clear, witness=witness)
    largest = "" if point.generic is None else f" of at most {point.generic}"
    reason = f"not proven: the differential has rank {point.rank}{largest}, and symmetries leave {2 * upper}{poles}"
    return PairFinding("none", reason, lower=lower, upper=upper, is_clear=clear, witness=witness)


def _has_poles(architecture: Architecture) -> bool:
    """Whether a denominator or a norm may vanish, as sums of exponentials do not."""
    divides = architecture.kind == "linear" and not architecture.options.get("unnormalised")
    return divides or bool(architecture.options.get("normalised_keys"))


@dataclass(frozen=True, kw_only=True, eq=False)
class LearningCoefficient(Result):
    """(λ, m) of K(w) = ½ E‖φ_w(X) − φ_w0(X)‖² at w0: vol{K ≤ ε near w0} is of order ε^λ (log 1/ε)^(m−1).

    ``pair`` is (λ, m), None where nothing is proven; ``lower`` and ``upper`` then bound λ. The inputs
    have a density on an open set and finite moments. λ is local: other weights of the same function have others.
    ``law`` is what a certificate says of other inputs and of cross-entropy, for which ``weights`` hold the differences
    of the logits of the ``given`` ones.
    """

    weights: Weights
    pair: Pair | None
    lower: Fraction
    upper: Fraction
    stratum: str
    theorem: str
    blocks: tuple[Block, ...]
    measured: tuple[Rank, ...] = ()
    witness: Mapping[str, Any] | None = None
    given: Weights | None = None
    law: Mapping[str, Any] = field(default_factory=dict)

    @property
    def certificate(self) -> Certificate | None:
        """What ``attngeom verify`` rechecks; None for estimates, bounds, and ranks that balls certified."""
        witness, weights = self.witness, self.given or self.weights
        if self.pair is None or witness is None or not self.is_proven or not weights.domain.is_rational:
            return None
        if witness and witness.get("prime") is None:
            return None
        claim = {
            "kind": "learning-coefficient",
            "architecture": describe_claimed(weights.architecture),
            "tensors": {name: matrix_to_json(array, QQ) for name, array in weights.tensors()},
            "lambda": str(self.pair.value),
            "multiplicity": self.pair.multiplicity,
            **self.law,
        }
        # For each head the ranks of K, Q, A, O, W and V, None where V is one matrix.
        ranks = [[*_listed(A), *_listed(V)] for A, V in zip(self.blocks[::2], self.blocks[1::2])]
        primes = [witness["prime"]] if witness else []
        evidence = {"theorem": self.theorem, "ranks": ranks, **witness}
        return Certificate(claim, evidence, {"seed": self.seed, "primes": primes})

    @property
    def value(self) -> Fraction | None:
        """λ."""
        return None if self.pair is None else self.pair.value

    @property
    def multiplicity(self) -> int | None:
        """m."""
        return None if self.pair is None else self.pair.multiplicity

    def to_json(self) -> dict[str, Any]:
        return {
            "lambda": None if self.value is None else str(self.value),
            **self.select("multiplicity", "is_proven", "standing", "theorem", "stratum", "reason"),
            "lower_bound": str(self.lower),
            "upper_bound": str(self.upper),
            "blocks": [block.to_json() for block in self.blocks],
            "ranks": [rank.to_json() for rank in self.measured],
            "architecture": self.weights.architecture.to_json(),
            "seed": self.seed,
        }

    def rows(self) -> Mapping[str, Any]:
        shown: dict[str, Any] = {}
        if self.value is None:
            shown["λ"] = f"not proven; between {self.lower} and {self.upper}"
        else:
            shown["λ"] = f"{self.value} ({self.standing})"
            shown["multiplicity"] = self.multiplicity
        shown["stratum"] = self.stratum
        shown["theorem"] = self.theorem
        shown["reason"] = self.reason
        for block in self.blocks:
            shown[f"block {block.name}"] = f"{block.words}: {block.pair}"
        gaps = [rank.gap for rank in self.measured if rank.gap is not None]
        if gaps:
            shown["smallest gap of a rank"] = digits.gap(min(gaps))
        return shown


def _listed(block: Block) -> list[int | None]:
    return [None, None, block.rank] if block.point is None else [block.point.left, block.point.right, block.rank]


def learning_coefficient(
    weights: Weights, *, inputs: Any = None, vocabulary: Any = None, loss: Loss = "squared", seed: int = 0
) -> LearningCoefficient:
    """(λ, m) at given weights: exact numbers with a proof, an estimate for floats, or bounds.

    ``inputs`` (N, d_0, t) is a sample that stands for the law of the inputs; without it the law has a density.
    ``vocabulary`` (d_0, N) stands for all sequences of its columns. With the ``loss`` cross-entropy the outputs are
    logits of predictions at every token and inputs are bounded (Theorem X); the answer is about the network of their
    differences, which ``weights`` and the certificate then hold.

    >>> from attngeom.exact import QQ
    >>> from attngeom.network import Architecture
    >>> w = Weights.from_vector(Architecture((2, 2), 1), QQ.convert([1, 0, 1, 0, 1, 0, 0, 0]), QQ)
    >>> learning_coefficient(w).value, learning_coefficient(w).theorem
    (Fraction(11, 4), 'A1.3')
    """
    domain = weights.domain
    if not domain.is_real:
        # λ is about volumes of real parameters.
        raise DomainError(f"weights over {domain.label} given; real weights are required, such as rational ones")
    if loss not in LOSSES:
        raise InputError(f"loss {str(loss)[:40]!r} given; one of {', '.join(LOSSES)} is required")
    given, law = weights, {} if loss == "squared" else {"loss": loss}
    if vocabulary is not None:
        if inputs is not None:
            raise InputError("inputs and a vocabulary given; one of them is required")
        inputs = all_sequences(vocabulary, weights)
    if not weights.architecture.is_plain and (inputs is not None or loss != "squared"):
        kind = weights.architecture.kind
        raise InputError(f"{kind} attention given with a vocabulary, inputs or cross-entropy; leave them out")
    if loss == "cross-entropy":
        weights = logit_differences(weights)
    blocks = head_blocks(weights) if weights.architecture.is_plain else ()
    if not blocks:
        finding = of_kind(weights, seed)
    elif inputs is not None:
        sample = _read_inputs(inputs, weights)
        finding = _on_sample(weights, blocks, seed, sample)
        if domain.is_rational:
            law |= _describe_inputs(vocabulary, sample, domain)
    else:
        finding = _by_theorems(weights, blocks) or by_ranks(weights, blocks, seed, None)
    measured = tuple(rank for heads in blocks for head in heads for rank in head.measured if not rank.is_exact)
    clear = finding.is_clear and all(rank.is_clear for rank in measured)
    standing: Standing = "undecided" if finding.pair is None else "theorem" if not finding.witness else "proven"
    reason = finding.reason
    if loss == "cross-entropy":
        reason = f"logits less the last one (Theorem X): {reason}"
    if domain.rounds and finding.pair is not None:
        standing = "estimate" if clear else "undecided"
        reason += "; ranks of floats are measured" if clear else "; but singular values show no clear gap"
    pair = finding.pair if standing != "undecided" else None
    lower, upper = finding.lower or Fraction(0), finding.upper
    if upper is None:
        assert finding.pair is not None
        lower = upper = finding.pair.value
    if domain.rounds:
        # Measured ranks bound nothing.
        lower, upper = Fraction(0), Fraction(weights.architecture.num_parameters, 2)
    return LearningCoefficient(
        standing=standing,
        reason=reason,
        seed=seed if finding.witness else None,
        weights=weights,
        pair=pair,
        lower=lower,
        upper=upper,
        stratum=describe_stratum(blocks, finding) if blocks else "weights of a kind beyond the papers",
        theorem=finding.theorem,
        blocks=tuple(block for heads in blocks for head in heads for block in head),
        measured=measured,
        witness=finding.witness if blocks else None,
        given=given,
        law=law,
    )


def _describe_inputs(vocabulary: Any, sample: Array, domain: Domain) -> dict[str, Any]:
    """The inputs of a claim: the vocabulary, or each of the sample."""
    if vocabulary is not None:
        return {"vocabulary": matrix_to_json(domain.convert(np.asarray(vocabulary)), domain)}
    return {"inputs": [matrix_to_json(X, domain) for X in sample]}


def _by_theorems(weights: Weights, blocks: tuple[tuple[HeadBlocks, ...], ...]) -> PairFinding | None:
    """What theorems say from ranks of single matrices; None if none of them applies."""
    return (
        single_layer(weights, blocks[0])
        or lightning_heads(weights, blocks[0])
        or deep_softmax(weights, blocks)
        or deficient_softmax(weights, blocks)
        or without_values(weights, blocks)
    )


def _on_sample(weights: Weights, blocks: tuple[tuple[HeadBlocks, ...], ...], seed: int, sample: Array) -> PairFinding:
    """A sample on which all tables of one lightning layer differ is as good as a density; else ranks on the sample."""
    architecture = weights.architecture
    if architecture.is_cubic and sample.shape[-1] >= 2:
        rows = context_products(sample, architecture.mask, weights.domain)
        table = rows.reshape(-1, rows.shape[-1])
        if table.shape[0] >= table.shape[1] and measured_rank(table, weights.domain).value == table.shape[1]:
            return _by_theorems(weights, blocks) or by_ranks(weights, blocks, seed, None)
    finding = by_ranks(weights, blocks, seed, sample)
    # At given inputs a recheck needs no point.
    return replace(finding, witness={"prime": finding.witness["prime"]} if finding.witness else {})


def describe_stratum(blocks: tuple[tuple[HeadBlocks, ...], ...], finding: PairFinding) -> str:
    """The ranks of all blocks, and whether a head of rank one is aligned."""
    words = "; ".join(block.words for heads in blocks for head in heads for block in head)
    if finding.theorem == "A1.3":
        return f"{words}; aligned"
    single = len(blocks) == len(blocks[0]) == 1
    if finding.theorem == "A1.2" and single and blocks[0][0].attention.rank == blocks[0][0].value.rank == 1:
        return f"{words}; not aligned"
    return words


def _read_inputs(inputs: Any, weights: Weights) -> Array:
    """A sample over the domain of the weights."""
    sample = weights.domain.convert(np.asarray(inputs))
    d, t = weights.architecture.widths[0], weights.architecture.tokens
    if sample.ndim != 3 or sample.shape[1:] != (d, t) or 0 in sample.shape:
        raise InputError(f"inputs of shape {sample.shape} given; shape (N, {d}, {t}) is required")
    return sample
