"""Certificates for a proven dimension: a theorem, or a minor or transcript mod p and an upper bound that meets it."""

from __future__ import annotations

from typing import Any

from attngeom.dimensions.answer import Dimension
from attngeom.dimensions.counts import upper_bound
from attngeom.dimensions.effective import effective_layers
from attngeom.dimensions.formulas import formula
from attngeom.dimensions.lower_bounds import Request, find_lower_bound
from attngeom.dimensions.programs import sampled_tokens, without_idle_values
from attngeom.dimensions.symmetry_bound import symmetry_upper_bound
from attngeom.errors import InputError
from attngeom.exact.numbers import WORD_PRIME
from attngeom.exact.points import name_point
from attngeom.limits.recheck import RECHECKED_DIMENSION, SYMMETRY_ENTRIES
from attngeom.limits.work import DIMENSION_PROVEN_ANYWAY
from attngeom.network import Architecture
from attngeom.network.programs import program_of
from attngeom.network.symmetry import count_generators
from attngeom.rank.analysis import analyze, certify_network
from attngeom.rank.lower import LowerBound
from attngeom.verification.reading import describe_claimed
from attngeom.verification.records import Certificate


def certifiable_method(architecture: Architecture) -> Request:
    """How to prove a dimension whose certificate is asked for: by theorem, or by a minor while that is small enough."""
    if not architecture.is_plain:
        return "minor"
    known = formula(architecture)
    if known is not None and known.status == "theorem":
        return "auto"
    return "minor" if upper_bound(architecture).value <= RECHECKED_DIMENSION else "krylov"


def certify_dimension(answer: Dimension) -> Certificate:
    """The certificate of a dimension that was proven, by whatever method; InputError if it was not.

    Witness of a theorem: its name and its hypotheses.

    Witness, lower bound: weights, inputs, cotangents and formal attention with ``tokens`` tokens are those of a named
    ``point`` over GF(prime), see :mod:`attngeom.exact.points`; the weights are set to zero outside the corner blocks
    of the sizes in ``support`` (one [d_in, d_out, attention, value width] for each layer); ``rows`` are samples and
    ``columns`` entries of the weight vector whose minor is not zero. Small proofs by schur or balls are replaced by a
    minor, larger ones and large minors by the transcript of a matrix-free proof, whose point a NumPy seed determines,
    see :class:`attngeom.rank.lower.Transcript`: its recheck needs a few hundredths of the products and
    leaves a probability of error below 2^−120. Upper bound: the infinitesimal symmetries at a named point, or the
    count of parameters of the effective network.

    >>> from attngeom.dimensions import dimension
    >>> from attngeom.network import Architecture
    >>> certify_dimension(dimension(Architecture((2, 2), 1, tokens=2), prove=True)).claim["dimension"]
    6
    """
    if not answer.architecture.is_plain:
        return _certify_program(answer)
    witness = answer.lower
    claim = {"kind": "dimension", "architecture": describe_claimed(answer.architecture), "dimension": answer.dimension}
    if answer.standing == "theorem" and answer.formula is not None and answer.formula.theorem is not None:
        cited = {"theorem": answer.formula.theorem, "hypotheses": list(answer.formula.hypotheses)}
        return Certificate(claim, cited, {"seed": answer.seed, "primes": []})
    if not answer.is_proven or witness is None:
        raise InputError("a dimension without a proof was given; a certificate needs bounds that meet, or a theorem")
    lower = _lower_witness(answer, witness)
    # A transcript is there to be rechecked fast, and so is a count.
    upper = {"method": "count"} if "method" in lower else _upper_witness(answer)
    primes = sorted({bound["prime"] for bound in (lower, upper) if "prime" in bound})
    return Certificate(claim, {"lower": lower, "upper": upper}, {"seed": answer.seed, "primes": primes})


def _certify_program(answer: Dimension) -> Certificate:
    """The certificate of the program of a kind beyond the papers, at its tokens."""
    architecture = without_idle_values(answer.architecture)
    analysis = analyze(program_of(architecture, sampled_tokens(architecture)), seed=answer.seed)
    if analysis.dimension != answer.dimension:
        raise InputError(
            f"no certificate was written: the program shows dimension {analysis.dimension}, not {answer.dimension}"
        )
    return certify_network(analysis)


def _lower_witness(answer: Dimension, bound: LowerBound) -> dict[str, Any]:
    """The minor that was found if it is small enough, else a transcript, for which the proof is repeated if need be."""
    architecture = answer.architecture
    is_minor = bound.method == "minor" and bound.value <= RECHECKED_DIMENSION
    if not is_minor and bound.transcript is None:
        method: Request = "minor" if bound.value <= DIMENSION_PROVEN_ANYWAY else "krylov"
        bound = find_lower_bound(architecture, bound.value, method, answer.seed)
        if bound.value != answer.dimension:
            raise InputError(f"no proof by {method} reaches dimension {answer.dimension}; use another seed")
    support = [[x.d_in, x.d_out, x.attention, x.value_width] for x in effective_layers(architecture)]
    place = "seed" if bound.point is None else "point"
    point = {name: getattr(bound, name) for name in ("prime", place, "tokens", "samples")} | {"support": support}
    if bound.transcript is not None:
        return {"method": "krylov"} | point | bound.transcript.to_json()
    return point | {"rows": list(bound.minor_rows), "columns": list(bound.minor_columns)}


def _upper_witness(answer: Dimension) -> dict[str, Any]:
    """The symmetries if they are few enough and suffice, else the count."""
    architecture = answer.architecture
    size = sum(count_generators(architecture).values()) * architecture.num_parameters
    if size <= SYMMETRY_ENTRIES and symmetry_upper_bound(architecture, answer.seed) == answer.dimension:
        return {"method": "symmetries", "prime": WORD_PRIME, "point": name_point(answer.seed)}
    return {"method": "count"}
