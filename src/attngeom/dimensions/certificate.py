"""Certificates for a proven dimension: a theorem, or a minor that is nonzero mod p and an upper bound that meets it."""

from __future__ import annotations

from typing import Any

from attngeom.dimensions.answer import Dimension
from attngeom.dimensions.effective import effective_layers
from attngeom.dimensions.symmetry_bound import symmetry_upper_bound
from attngeom.errors import InputError
from attngeom.exact.primes import WORD_PRIME
from attngeom.network.symmetry import count_generators
from attngeom.verification.records import Certificate

MAX_SYMMETRY_ENTRIES = 2 * 10**7
MAX_DIMENSION = 4000
"""Rechecking costs the cube of the dimension, in slower code; larger claims are refused."""


def certify_dimension(answer: Dimension) -> Certificate:
    """The certificate of a dimension that was proven by a minor or by a theorem; InputError if it was not.

    Witness of a theorem: its name and its hypotheses.

    Witness, lower bound: weights are drawn from ``seed`` over GF(prime) and set to zero outside the corner blocks of
    the sizes in ``support`` (one [d_in, d_out, attention, value width] for each layer); inputs, cotangents and formal
    attention are drawn from ``seed`` + 1, with ``tokens`` tokens; ``rows`` are samples and ``columns`` entries of
    the weight vector whose minor is not zero. Upper bound: the infinitesimal symmetries at weights drawn from a
    seed, or the count of parameters of the effective network.

    >>> from attngeom.dimensions import dimension
    >>> from attngeom.network import Architecture
    >>> certify_dimension(dimension(Architecture((2, 2), 1, tokens=2), prove=True)).claim["dimension"]
    6
    """
    witness = answer.lower
    claim = {"kind": "dimension", "architecture": answer.architecture.to_json(), "dimension": answer.dimension}
    if answer.standing == "theorem" and answer.formula is not None and answer.formula.theorem is not None:
        cited = {"theorem": answer.formula.theorem, "hypotheses": [x.text for x in answer.formula.hypotheses]}
        return Certificate(claim, cited, {"seed": answer.seed, "primes": []})
    if not answer.is_proven or witness is None or witness.method != "minor":
        raise InputError("a dimension without a proof by a minor was given; prove it with --method minor first")
    if witness.value > MAX_DIMENSION:
        raise InputError(f"dimension {witness.value} given; certificates hold minors of size at most {MAX_DIMENSION}")
    support = [
        [layer.d_in, layer.d_out, layer.attention, layer.value_width] for layer in effective_layers(answer.architecture)
    ]
    lower: dict[str, Any] = {
        "prime": witness.prime,
        "seed": witness.seed,
        "tokens": witness.tokens,
        "samples": witness.samples,
        "support": support,
        "rows": list(witness.minor_rows),
        "columns": list(witness.minor_columns),
    }
    upper = _upper_witness(answer)
    primes = sorted({bound["prime"] for bound in (lower, upper) if "prime" in bound})
    return Certificate(claim, {"lower": lower, "upper": upper}, {"seed": answer.seed, "primes": primes})


def _upper_witness(answer: Dimension) -> dict[str, Any]:
    """The symmetries if they are few enough and suffice, else the count."""
    architecture = answer.architecture
    size = sum(count_generators(architecture).values()) * architecture.num_parameters
    if size <= MAX_SYMMETRY_ENTRIES and symmetry_upper_bound(architecture, answer.seed) == answer.dimension:
        return {"method": "symmetries", "prime": WORD_PRIME, "seed": answer.seed}
    return {"method": "count"}
