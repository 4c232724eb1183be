"""One certificate or more of every row of the table in docs/explanation/trust.md."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

from flint import fmpq

from attngeom.certification import certify
from attngeom.dimensions import dimension
from attngeom.dimensions.certificate import certify_dimension
from attngeom.exact.domains import QQ
from attngeom.layer.coefficients import Coefficients, Term
from attngeom.learning import learning_coefficient
from attngeom.learning.laws import conserved_quantities
from attngeom.network import Architecture, random_weights
from attngeom.rank.analysis import analyze, certify_network
from tests.certification.cases import from_table, table
from tests.certification.test_heads import CASES as HEADS
from tests.certification.test_heads import record_of
from tests.learning.cases import POINTS
from tests.programs.modules import MODULES
from tests.proofs.sources import deep_learning, deep_maps
from tests.verification.test_verify import CERTIFICATES

Record = dict[str, Any]

MINORS = {
    "two layers": Architecture((3, 3, 3), 2),
    "heads": Architecture((4, 4, 4), 2, heads=2),
    "skip": Architecture((3, 3, 3), 2, residual=True),
    "causal": Architecture((2, 3, 2), 2, causal=True),
    "softmax": Architecture((3, 3), 3, kind="softmax"),
    "softmax, causal": Architecture((2, 2, 2), 1, heads=2, value_width=1, kind="softmax", residual=True, causal=True),
    "sigmoid": Architecture((3, 3), 2, heads=2, value_width=2, kind="sigmoid"),
    "smaller network": Architecture((3, 5, 3), 2),
}  # fmt: skip
THEOREMS = {
    "lightning-network": Architecture((30, 20, 30), 8),
    "lightning-network, rank one": Architecture((30, 20, 30), (1, 8)),
    "lightning-network, one token": Architecture((30, 20, 30), 8, tokens=1),
    "softmax-network": Architecture((30, 20, 30), 8, kind="softmax", causal=True),
    "sigmoid-network": Architecture((30, 20, 30), 8, kind="sigmoid"),
    "residual-softmax": Architecture((30, 30, 30), 8, heads=3, kind="softmax", residual=True),
    "softmax-heads": Architecture((30, 24), 8, heads=3, kind="softmax"),
    "softmax-bottleneck": Architecture((40, 24, 40), 8, heads=2, value_width=12, kind="softmax"),
    "lightning-heads": Architecture((40, 40), 10, heads=4),
    "linear-softmax": Architecture((40, 30, 40), 10, kind="softmax", tokens=1),
    "sigmoid-heads": Architecture((40, 40), 10, heads=4, kind="sigmoid"),
}
LAWS = {
    "one layer": Architecture((3, 3), 3),
    "two layers": Architecture((2, 2, 2), 2),
    "wide attention": Architecture((2, 2), 5),
    "softmax": Architecture((2, 2), 2, kind="softmax", temperature="1/2"),
    "sigmoid": Architecture((2, 2), 2, kind="sigmoid"),
    "heads and a skip": Architecture((2, 2, 2), 1, heads=2, value_width=1, residual=True),
}
BY_RANKS = {
    "R": (Architecture((2, 3, 2), 1, tokens=3), 0),
    "bounds": (Architecture((2, 2, 2), 2, heads=2, value_width=1, causal=True), 1),
}
"""Learning coefficients that ranks mod p give, with the seeds of the weights."""
PROGRAMS = (
    "lightning 3,2,2", "softmax 3,2,2", "squared MLP 2-3-2", "LeakyReLU 3-4-2", "RMSNorm, linear 3-2",
    "tied tanh autoencoder", "exponentials",
)  # fmt: skip
"""Traced programs, one for each kind of operation and upper bound that costs little."""


def linear_cases() -> dict[str, Coefficients]:
    """Maps that are refuted by a term outside, by a copy, by a symmetrization."""
    layer = from_table(table(2, 1, {(0, 0, 0, 0): 1}), 3)
    single, cross = layer.single.copy(), layer.cross.copy()
    outside = Term((0, 0), ((0, 0), (0, 0), (0, 1)), fmpq(3))
    cross[0, 1, 0, 0, 0] += 1
    single[0, :, 1] += 1
    return {
        "support": replace(layer, outside=(outside,)),
        "sequence-copy": replace(layer, cross=cross),
        "symmetrization": replace(layer, single=single),
    }


@cache
def examples() -> dict[str, Record]:
    """Certificates by name, made on first use."""
    found: dict[str, Record] = {}
    for name, certificate in CERTIFICATES.items():
        assert certificate is not None
        found[f"layer: {name}"] = certificate.to_json()
    for name, coefficients in linear_cases().items():
        made = certify(coefficients, None).certificate
        assert made is not None and made.witness["violated"]["family"] == name
        found[f"layer: {name}"] = made.to_json()
    for name, (_, _, _, evidence) in HEADS.items():
        if evidence is not None:
            found[f"heads: {name}"] = record_of(name)
    for name, architecture in MINORS.items():
        answer = dimension(architecture, prove=True, method="minor")
        found[f"dimension: {name}"] = certify_dimension(answer).to_json()
    for name, architecture in THEOREMS.items():
        made = certify_dimension(dimension(architecture, prove=True))
        assert made.witness["theorem"] == name.split(",")[0]
        found[f"theorem: {name}"] = made.to_json()
    for name, architecture in LAWS.items():
        made = conserved_quantities(architecture, prove=True).certificate
        assert made is not None
        found[f"laws: {name}"] = made.to_json()
    for number, point in enumerate(POINTS):
        if point.weights.architecture.num_parameters < 60:
            made = learning_coefficient(point.weights).certificate
            if made is not None:
                found[f"learning: {made.witness['theorem']} {number}"] = made.to_json()
    for theorem, (architecture, seed) in BY_RANKS.items():
        made = learning_coefficient(random_weights(architecture, QQ, seed=seed)).certificate
        assert made is not None and made.witness["theorem"] == theorem
        found[f"learning: {theorem}"] = made.to_json()
    for module in MODULES:
        if module.name in PROGRAMS:
            answer = analyze(module.network, *module.inputs, weights=module.weights)
            found[f"network: {module.name}"] = certify_network(answer).to_json()
    for record in deep_maps():
        found.setdefault(f"layers: {next(iter(record['witness']))}", record)
    for record in deep_learning():
        if record["witness"]["theorem"] in ("C", "C2", "C3", "D", "E0", "H3", "S"):
            found.setdefault(f"learning: {record['witness']['theorem']}", record)
    return found
