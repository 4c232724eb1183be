"""True certificates beyond :mod:`tests.proofs.examples`: transcripts, traced programs, deep maps, deep points."""

from __future__ import annotations

from functools import cache, partial
from itertools import product
from typing import Any

import numpy as np

from attngeom.certification import certify
from attngeom.dimensions import dimension
from attngeom.dimensions.certificate import certify_dimension
from attngeom.exact.domains import QQ
from attngeom.layer.polynomial_maps import PolynomialMap, expand_network
from attngeom.learning import learning_coefficient
from attngeom.network import Architecture, Weights, random_weights
from attngeom.rank.analysis import analyze, certify_network
from tests.certification.test_layers import (
    changed,
    network,
    sum_of_two,
    two_layers,
    with_the_forms_of_a_network,
)
from tests.learning.padic import draw_factors
from tests.learning.test_formal import draw
from tests.learning.test_more_theorems import deep, layer
from tests.programs.modules import MODULES
from tests.rank.test_certificate import FREE, gelu, softplus
from tests.rank.test_truth import POST_NORM, post_norm

Record = dict[str, Any]


@cache
def deep_maps() -> list[Record]:
    """Certificates of maps of two or three layers: of networks, and of maps with one coefficient changed."""
    found = []
    for seed in range(60):
        rng = np.random.default_rng([33, seed])
        layers = 3 if seed % 6 == 5 else 2
        weights = network(rng, layers)
        given, causal = expand_network(weights), weights.architecture.causal
        for own in (given, changed(given, rng)):
            answer = certify(own, layers=layers, causal=causal)
            if answer.certificate is not None and own.to_json()["terms"]:
                record = answer.certificate.to_json()
                if len(record["claim"]["coefficients"]["terms"]) <= 200:
                    found.append(record)
    for seed in range(6):
        others = (with_the_forms_of_a_network(x, seed) for x in ("trace", "determinant"))
        for outputs in (two_layers(seed).outputs, sum_of_two(seed), *others):
            answer = certify(PolynomialMap(2, 2, 2, 9, tuple(map(tuple, outputs))), layers=2)
            found += [] if answer.certificate is None else [answer.certificate.to_json()]
    relations = {name for x in found for name in x["witness"]}
    assert relations >= {"attention", "masked", "parity", "rotation", "factors", "minor", "linear"}
    return found


@cache
def deep_learning() -> list[Record]:
    """Certificates of the theorems on learning coefficients of deep networks and of heads."""
    rng, points = np.random.default_rng(34), []
    points += [layer(rng) for _ in range(24)]
    for seed in range(6):
        widths = tuple(int(x) for x in rng.integers(1, 4, 4 if seed % 2 else 3))
        rank = int(rng.integers(1, min(widths) + 1))
        points.append(deep(rng, widths, (rank,) * (len(widths) - 1), blind=True))
        points.append(deep(rng, (3, 2, 2), (2, 1), blind=False))
    for kind, tokens in product(("softmax", "sigmoid"), (2, 3)):
        sizes = {"tokens": tokens, "kind": kind, "heads": 2, "value_width": 1}
        points.append(random_weights(Architecture((3, 3), 2, **sizes), QQ, seed=4))
        skip = Architecture((2, 2, 2), 1, residual=True, **sizes)
        whole = random_weights(skip, QQ, seed=4).tensors()
        tensors = {name: array if not name.endswith(".O") else QQ.zeros(array.shape) for name, array in whole}
        points.append(Weights.from_tensors(skip, tensors, QQ))
    answers = [learning_coefficient(weights) for weights in points]
    made = [answer.certificate.to_json() for answer in answers if answer.certificate is not None]
    assert {x["witness"]["theorem"] for x in made} >= {"C2", "C3", "E0", "H3", "D", "S"}
    return made


@cache
def formal_learning() -> list[Record]:
    """Certificates of softmax and sigmoid networks whose ranks are those of formal attention mod p."""
    found: list[Record] = []
    for seed in range(200):
        answer = learning_coefficient(draw(np.random.default_rng([35, seed]), "softmax" if seed % 2 else "sigmoid"))
        if answer.certificate is not None and "point" in answer.certificate.witness:
            found.append(answer.certificate.to_json())
    kinds = {x["claim"]["architecture"]["kind"] for x in found}
    assert len(found) >= 10 and kinds == {"softmax", "sigmoid"}, len(found)
    return found


@cache
def product_learning() -> list[Record]:
    """Certificates of Theorem P: one token, so that a softmax network is a product of matrices, at any ranks."""
    found: list[Record] = []
    for seed in range(40):
        rng = np.random.default_rng([36, seed])
        factors = draw_factors(rng, int(rng.integers(2, 5)), 4)
        widths = (factors[0].shape[1], *(F.shape[0] for F in factors))
        architecture = Architecture(widths, 1, tokens=1, kind="softmax")
        tensors = dict(random_weights(architecture, QQ, seed=seed).tensors())
        tensors |= {f"layers.{l}.V": QQ.convert(F) for l, F in enumerate(factors)}
        answer = learning_coefficient(Weights.from_tensors(architecture, tensors, QQ))
        if answer.certificate is not None and answer.certificate.witness["theorem"] == "C3":
            found.append(answer.certificate.to_json())
    assert len(found) >= 15, len(found)
    return found


@cache
def transcripts() -> list[Record]:
    """Certificates with transcripts of matrix-free proofs."""
    shapes = [Architecture((3, 3, 3), 2), Architecture((3, 3), 2, heads=2, value_width=2), Architecture((2, 3, 2), 2)]
    made = [certify_dimension(dimension(x, prove=True, method="krylov")).to_json() for x in shapes]
    return [record for record in made if "method" in record["witness"]["lower"]]


@cache
def traced() -> list[Record]:
    """Certificates of small traced programs."""
    small = [m for m in MODULES if m.parameters <= 30 and m.upper is None]
    made = {m.name: analyze(m.network, *m.inputs, weights=m.weights) for m in small}
    made["folds"] = analyze(post_norm, 3, weights=POST_NORM)
    made |= {name: analyze(f, shape, weights=weights) for name, (f, weights, shape, _) in FREE.items()}
    low_rank = {"A": (2, 3), "B": (2, 2), "C": (1, 2)}
    for inner in (gelu, softplus, np.sin, np.cos):
        function = partial(lambda g, w, x: w["C"] @ g(w["B"] @ (w["A"] @ x)), inner)
        made[f"low rank, {inner.__name__}"] = analyze(function, 3, weights=low_rank)
    kept = {name: certify_network(answer).to_json() for name, answer in made.items() if answer.standing == "proven"}
    return [record for name, record in kept.items() for _ in range(1 if name in LONG_PROOFS else 10)]


LONG_PROOFS = (
    "residual softmax, SwiGLU", "Conv1d, tanh", "folds", "softmax with all biases", "SwiGLU 3,3", "two lightning 2,2,2",
    "normalised linear attention",
)  # fmt: skip
"""Programs whose true symmetries take long to prove, each time again: drawn a tenth as often as the others."""
