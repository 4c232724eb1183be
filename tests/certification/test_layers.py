"""Maps of several layers: networks of all ranks are never refuted, and every verdict is rechecked."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from attngeom.certification import certify
from attngeom.certification.map_parts import fits_degrees
from attngeom.errors import AttnGeomError, DomainError, FormatError, InputError, SizeError
from attngeom.exact.domains import QQ, Array
from attngeom.layer.polynomial_maps import PolynomialMap, expand_network, map_domain, map_from_json
from attngeom.network import Architecture, Weights, forward, random_weights
from attngeom.verification import verify


def draw(rng: np.random.Generator, rows: int, columns: int) -> Array:
    """A small matrix of any rank, zero among them."""
    rank = int(rng.integers(0, min(rows, columns) + 1)) if rng.random() < 0.5 else min(rows, columns)
    return QQ.convert(rng.integers(-2, 3, (rows, rank)) @ rng.integers(-2, 3, (rank, columns)))


def network(rng: np.random.Generator, layers: int) -> Weights:
    """Widths from 1 on, masks, deficient and zero matrices, now and then a skew M_1 or an aligned head."""
    d, t = [(1, 1), (1, 3), (2, 1), (2, 2), (3, 1), (2, 2)][int(rng.integers(6))]
    if layers > 2:
        d, t = [(1, 1), (2, 1)][int(rng.integers(2))]
    widths = (d, *(int(x) for x in rng.integers(1, 4, layers - 1)), int(rng.integers(1, 4)))
    architecture = Architecture(widths, 2, tokens=t, causal=bool(rng.integers(2)))
    tensors: dict[str, Array] = {}
    for i, layer in enumerate(architecture.layers):
        for name, (rows, columns) in layer.tensor_shapes.items():
            tensors[f"layers.{i}.{name}"] = draw(rng, rows, columns)
    if d == 2 and rng.random() < 0.2:
        tensors["layers.0.K"], tensors["layers.0.Q"] = QQ.convert([[1, 0], [0, 1]]), QQ.convert([[0, 1], [-1, 0]])
    return Weights.from_tensors(architecture, tensors, QQ)


def changed(given: PolynomialMap, rng: np.random.Generator) -> PolynomialMap:
    """One coefficient more, or another one."""
    record = given.to_json()
    entries = [[int(rng.integers(given.d)), int(rng.integers(given.t))] for _ in range(given.degree)]
    output = [int(rng.integers(given.d_out)), int(rng.integers(given.t))]
    kept = [
        term
        for term in record["terms"]
        if not (term["output"] == output and sorted(term["monomial"]) == sorted(entries))
    ]
    value = str(int(rng.integers(1, 9)))
    return map_from_json(
        {**record, "terms": [*kept, {"output": output, "monomial": entries, "value": value}]}, given.degree
    )


@pytest.mark.parametrize("seed", range(36))
def test_networks_are_never_refuted_and_every_verdict_is_rechecked(seed: int) -> None:
    rng = np.random.default_rng([90210, seed])
    layers = 3 if seed % 6 == 5 else 2
    weights = network(rng, layers)
    given, causal = expand_network(weights), weights.architecture.causal
    X = QQ.convert(rng.integers(-3, 4, (given.d, given.t)))
    assert QQ.is_zero(QQ.convert(given.at(X)) - forward(weights, X))
    answer = certify(given, layers=layers, causal=causal)
    assert answer.verdict != "not_realizable"
    if given.t == 1:
        assert answer.verdict == "realizable" or "not rational" in answer.reason
    other = certify(changed(given, rng), layers=layers, causal=causal)
    for found in (answer, other):
        assert (found.certificate is None) == (found.verdict == "undecided")
        if found.certificate is not None:
            verdict = verify(json.loads(json.dumps(found.certificate.to_json())))
            assert verdict.valid, verdict.reason


def test_generic_networks_of_two_layers_are_found() -> None:
    """M_1 and L of rank two: Theorem T4 decides; the skew part of M_2 must come out."""
    for seed, causal in ((1, False), (2, True), (3, False)):
        rng = np.random.default_rng(seed)
        architecture = Architecture((2, 2, 2), 2, tokens=2, causal=causal)
        tensors = {f"layers.{i}.{name}": QQ.convert(rng.integers(1, 9, (2, 2))) for i in (0, 1) for name in "QKV"}
        given = expand_network(Weights.from_tensors(architecture, tensors, QQ))
        assert certify(given, layers=2, causal=causal).verdict == "realizable"
        # The other mask has another function.
        assert certify(given, layers=2, causal=not causal).verdict == "not_realizable"


@pytest.mark.parametrize("seed", range(6))
def test_three_layers_are_peeled(seed: int) -> None:
    """M_1 of rank two without mask: weights come out, and are rechecked; else nothing is claimed."""
    rng = np.random.default_rng([31, seed])
    architecture = Architecture((2, 2, 2, 2 + seed % 2), 2, tokens=2, causal=seed == 5)
    while True:
        tensors = {name: QQ.convert(rng.integers(1, 6, shape)) for name, shape in architecture.tensor_shapes()}
        weights = Weights.from_tensors(architecture, tensors, QQ)
        if all(QQ.rank(m) == 2 for m in (*weights.virtual().M, weights.virtual().L)):
            break
    if seed == 4:
        tensors["layers.0.K"] = QQ.convert([[1, 2], [2, 4]])
        weights = Weights.from_tensors(architecture, tensors, QQ)
    given = expand_network(weights)
    answer = certify(given, layers=3, causal=architecture.causal)
    if seed >= 4:
        assert answer.verdict == "undecided" and "rk M_1 ≥ 2" in answer.reason
        return
    assert answer.verdict == "realizable" and answer.certificate is not None
    verdict = verify(answer.certificate.to_json())
    assert verdict.valid, verdict.reason
    # |X|²⁶ X more is no network, though it rotates with the tokens: never called one.
    x = map_domain(2, given.t).ring.gens()
    norm = sum((y * y for y in x), x[0] * 0)
    more = tuple(
        tuple(f + (norm**13 * x[2 * k + i] if i < 2 else 0) for k, f in enumerate(row))
        for i, row in enumerate(given.outputs)
    )
    assert certify(PolynomialMap(2, given.d_out, given.t, 27, more), layers=3).verdict != "realizable"


def two_layers(seed: int) -> PolynomialMap:
    rng, architecture = np.random.default_rng(seed), Architecture((2, 2, 2), 2, tokens=2)
    tensors = {f"layers.{i}.{name}": QQ.convert(rng.integers(1, 5, (2, 2))) for i in (0, 1) for name in "QKV"}
    return expand_network(Weights.from_tensors(architecture, tensors, QQ))


def refuted(outputs: Any) -> set[str]:
    """What refutes a map of two layers; its certificate is valid."""
    answer = certify(PolynomialMap(2, 2, 2, 9, tuple(map(tuple, outputs))), layers=2)
    assert answer.verdict == "not_realizable" and answer.certificate is not None
    assert verify(answer.certificate.to_json()).valid
    return set(answer.witness)


def sum_of_two(seed: int) -> list[list[Any]]:
    maps = two_layers(seed), two_layers(100 + seed)
    return [[f + g for f, g in zip(*rows)] for rows in zip(*(m.outputs for m in maps))]


def with_the_forms_of_a_network(invariant: str, seed: int = 8) -> list[list[Any]]:
    """An equivariant map that vanishes on one token is added: tr(S)³ S* X is seen by Theorem T3, det(S)² X by T4."""
    ring, given = map_domain(2, 2), two_layers(seed)
    x = ring.ring.gens()
    X = ring.convert([[x[0], x[2]], [x[1], x[3]]])
    S = ring.matmul(X, X.T)
    adjugate = ring.convert([[S[1, 1], -S[0, 1]], [-S[1, 0], S[0, 0]]])
    extra = ring.matmul(adjugate, X) if invariant == "trace" else X
    factor = (S[0, 0] + S[1, 1]) ** 3 if invariant == "trace" else (x[0] * x[3] - x[1] * x[2]) ** 4
    return [[f + factor * g for f, g in zip(*rows)] for rows in zip(given.outputs, extra.tolist())]


def test_sums_of_two_networks_are_refuted_by_their_factors() -> None:
    """They satisfy Theorem T1; T2 refutes."""
    for seed in range(3):
        assert refuted(sum_of_two(seed)) == {"factors"}


@pytest.mark.parametrize(("invariant", "name"), [("trace", "minor"), ("determinant", "linear")])
def test_maps_with_the_forms_of_a_network_are_refuted(invariant: str, name: str) -> None:
    assert refuted(with_the_forms_of_a_network(invariant)) == {name}


FORGERIES: list[tuple[str, Any]] = [
    ("factors", 2),
    ("parity", {"output": [0, 0], "exponents": [9, 0, 0, 0], "value": "1"}),
    ("rotation", {"tokens": [0, 1], "output": [0, 0], "exponents": [9, 0, 0, 0], "value": "1"}),
    ("minor", {"rows": [0, 1], "columns": [0, 1], "exponents": [16, 0], "value": "1"}),
    ("linear", {"first": [["1", "0"], ["0", "1"]], "values": [["1", "0"], ["0", "1"]], "inputs": []}),
    ("masked", {"output": [0, 0], "exponents": [9, 0, 0, 0], "value": "1"}),
    ("nothing", {}),
]


@pytest.mark.parametrize(("name", "data"), FORGERIES)
def test_forged_refutations_of_a_network_are_not_valid(name: str, data: Any) -> None:
    rng = np.random.default_rng(4)
    tensors = {f"layers.{i}.{letter}": QQ.convert(rng.integers(1, 5, (2, 2))) for i in (0, 1) for letter in "QKV"}
    given = expand_network(Weights.from_tensors(Architecture((2, 2, 2), 2, tokens=2), tensors, QQ))
    answer = certify(given, layers=2)
    assert answer.certificate is not None
    from dataclasses import replace

    claim = {**answer.certificate.claim, "verdict": "not_realizable"}
    forged = replace(answer.certificate, claim=claim, witness={name: data})
    assert verify(forged.to_json()).valid is False
    weights = {**answer.certificate.witness, "values": [["1", "0"], ["0", "1"]]}
    assert verify(replace(answer.certificate, witness=weights).to_json()).valid is False


def test_digits_in_base_three() -> None:
    """Products of quadrics in every way of coinciding, against all ways to write them (brute force on linear forms)."""
    from itertools import combinations_with_replacement, product

    letters = range(3)
    quadrics = list(combinations_with_replacement(letters, 2))
    made = set()
    for first, second in product(quadrics, repeat=2):
        made.add(tuple(3 * first.count(x) + second.count(x) for x in letters))
    for powers in product(range(9), repeat=3):
        if sum(powers) == 8:
            assert fits_degrees([(1, e) for e in powers], 2) == (powers in made)


def test_what_is_refused(tmp_path: Path) -> None:
    one = {"output": [0, 0], "monomial": [[0, 0]] * 9, "value": "1"}
    good = {"format": "attngeom/coefficients", "version": 1, "degree": 9, "d": 1, "d_out": 1, "t": 1, "terms": [one]}
    assert certify(map_from_json(good, 9), layers=2).verdict == "realizable"
    layer = random_weights(Architecture((2, 2), 2, tokens=2), QQ, seed=0)
    with pytest.raises(InputError, match="1 layers given; 2 to 4"):
        # The search for M_2 says nothing of one layer.
        certify(expand_network(layer), layers=1)
    bad: list[tuple[dict[str, Any], type[AttnGeomError]]] = [
        ({"degree": 27}, FormatError),
        ({"terms": [one, one]}, FormatError),
        ({"terms": [{**one, "value": 1.5}]}, DomainError),
        ({"terms": [{**one, "monomial": [[0, 0]] * 3}]}, FormatError),
        ({"terms": [{**one, "monomial": [[0, 1]] * 9}]}, FormatError),
        ({"d": 90}, SizeError),
        ({"d": 0}, InputError),
    ]
    for change, error in bad:
        with pytest.raises(error):
            map_from_json({**good, **change}, 9)
    with pytest.raises(InputError, match="layers"):
        certify(map_from_json(good, 9), 2, layers=2)  # type: ignore[call-overload]


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(("layers", "tokens"), [(2, 3), (3, 2)])
def test_networks_of_width_one_are_found_at_every_depth(layers: int, tokens: int, causal: bool) -> None:
    for seed in range(3):
        weights = random_weights(Architecture((1, *(2,) * layers), 1, tokens=tokens, causal=causal), QQ, seed)
        given = expand_network(weights)
        found = certify(given, layers=layers, causal=causal)
        assert found.verdict == "realizable" and verify(found.certificate).valid
        if not given.is_zero:
            other = changed(given, np.random.default_rng(seed))
            assert certify(other, layers=layers, causal=causal).verdict != "realizable"
