"""Conservation laws: what is listed is conserved, what is proven complete leaves no room for another law."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest

from attngeom.cli.app import run
from attngeom.dimensions.sliced_network import Samples
from attngeom.errors import InputError, SizeError
from attngeom.exact import GF, QQ, RR
from attngeom.learning.brackets import bracket_rank, bracket_rows, gradient_rows, program_bracket_rank
from attngeom.learning.laws import conserved_quantities, count_independent, differentials, list_laws
from attngeom.network import Architecture, random_weights
from attngeom.network.programs import program_of
from attngeom.network.symmetry import linear_factors, tensors_of
from attngeom.network.tangent import gradient
from attngeom.verification import verify
from attngeom.verification.records import Certificate
from tests.network.modern_cases import CASES, label

TABLE = [
    # architecture, parameters, rank of gradients and brackets, independent laws
    (Architecture((3, 3), 3), 27, 20, 7),
    (Architecture((2, 2), 5), 24, 9, 15),
    (Architecture((2, 2, 2), 2), 24, 13, 11),
    (Architecture((2, 2, 2), 2, residual=True), 24, 16, 8),
    (Architecture((4, 4, 4), 2, heads=2, value_width=2), 128, 90, 38),
    (Architecture((3, 3, 3), 2, causal=True), 42, 28, 14),
    (Architecture((2, 3, 1), 2, causal=True), 29, 15, 14),
    (Architecture((3, 3), 2, 2, kind="softmax"), 21, 18, 3),
    (Architecture((3, 3, 3), 2, kind="softmax"), 42, 30, 12),
    (Architecture((3, 3, 3), 2, kind="softmax", residual=True, causal=True), 42, 36, 6),
    (Architecture((3, 3, 3), 2, kind="softmax", temperature="3/2"), 42, 30, 12),
    (Architecture((4, 4), 2, kind="softmax", heads=2), 64, 52, 12),
    (Architecture((3, 3, 3), 2, kind="sigmoid"), 42, 30, 12),
    (Architecture((1, 1), 1, 2, kind="softmax"), 3, 2, 1),
]


@pytest.mark.parametrize(("architecture", "parameters", "rank", "count"), TABLE, ids=lambda x: str(x)[:60])
def test_laws_are_complete_and_their_certificate_is_rechecked(architecture, parameters, rank, count):
    laws = conserved_quantities(architecture)
    assert architecture.num_parameters == parameters
    assert (laws.count, laws.is_complete, laws.most, parameters - rank) == (count, True, count, count)
    assert laws.certificate is not None
    assert verify(laws.certificate.to_json()).valid


def test_a_network_of_512_parameters_is_proven_by_default():
    laws = conserved_quantities(Architecture((8, 8, 8), 4, heads=2))
    assert (laws.count, laws.is_complete) == (120, True)


@pytest.mark.parametrize("kind", ["lightning", "softmax", "sigmoid"])
def test_moments_are_constant_along_gradients(kind):
    """Over Q for lightning, in floats otherwise."""
    architecture = Architecture(
        (2, 3, 2), 2, 3, kind, heads=2, value_width=1, temperature=1 if kind == "lightning" else 2
    )
    domain = QQ if kind == "lightning" else RR
    weights = random_weights(architecture, domain, seed=3)
    rng = np.random.default_rng(5)
    X, C = (domain.random((4, 2, 3), rng) for _ in range(2))
    slope = domain.matmul(differentials(weights, tuple(list_laws(architecture))), gradient(weights, X, C)[:, None])
    assert np.all(np.abs(RR.convert(slope)) < 1e-12)


def test_differentials_are_half_those_of_the_values():
    architecture = Architecture((2, 2, 2), 3)
    laws = conserved_quantities(architecture)
    weights = random_weights(architecture, RR, seed=0)
    step, direction = 1e-6, np.random.default_rng(1).standard_normal(architecture.num_parameters)
    moved = [type(weights).from_vector(architecture, weights.vector() + s * step * direction, RR) for s in (1, -1)]
    numeric = (laws.vector(moved[0]) - laws.vector(moved[1])) / (2 * step)
    # Row (i, j) is the image of E_ij + E_ji; for i = j that is E_ii here.
    halves = np.concatenate([np.where(np.equal(*np.triu_indices(x.factor.size)), 2.0, 1.0) for x in laws.quantities])
    assert np.allclose(numeric, halves * (differentials(weights, laws.quantities) @ direction), atol=1e-7)


@pytest.mark.parametrize("kind", ["softmax", "sigmoid"])
def test_formal_attention_has_the_rank_of_the_true_one(kind):
    """Gradients and brackets with real exponentials, in floats, span what the formal ones span."""
    architecture = Architecture((2, 2, 2), 1, 2, kind, temperature="1/2")
    laws = conserved_quantities(architecture)
    weights, rng = random_weights(architecture, RR, seed=1), np.random.default_rng(2)
    count = 24
    samples = Samples(2 * rng.standard_normal((count, 2, 2)), rng.standard_normal((count, 2, 2)), None)
    gradients = gradient_rows(weights, samples)
    brackets = [bracket_rows(weights, samples, gradients, h, np.arange(h + 1, count)) for h in range(4)]
    rows = np.concatenate([gradients, *brackets])
    values = np.linalg.svd(rows / np.linalg.norm(rows, axis=1, keepdims=True), compute_uv=False)
    rank = architecture.num_parameters - laws.count
    assert laws.is_complete and values[rank - 1] > 1e4 * max(values[rank:], default=0.0)


@pytest.mark.parametrize(
    ("architecture", "count", "most"),
    [
        (Architecture((3, 3), 2, 1), 4, 5),
        (Architecture((3, 3), 2, 1, kind="softmax"), 3, 12),
        (Architecture((1, 2, 2), 2), 11, 15),
    ],
)
def test_what_is_not_proven_is_said(architecture, count, most):
    """One token shows the symmetric part of A alone, hidden widths that no input reaches stay: there are more laws."""
    laws = conserved_quantities(architecture, prove=True)
    assert (laws.count, laws.most, laws.is_complete, laws.standing) == (count, most, False, "undecided")
    assert laws.certificate is None and f"at most {most}" in laws.reason


def test_one_token_conserves_another_matrix():
    """K Qᵀ − Q Kᵀ for one token: a law that is not among the moments, so that completeness must not be claimed."""
    architecture = Architecture((3, 3), 2, 1)
    weights, rng = random_weights(architecture, QQ, seed=0), np.random.default_rng(0)
    (head,) = weights.layers[0]
    slopes = gradient(weights, QQ.random((1, 3, 1), rng), QQ.random((1, 3, 1), rng))
    dQ, dK = slopes[:6].reshape(2, 3), slopes[6:12].reshape(2, 3)
    change = dK @ head.Q.T + head.K @ dQ.T - dQ @ head.K.T - head.Q @ dK.T
    assert QQ.is_zero(change)


@pytest.mark.parametrize("attention", [1, 2, 5])
@pytest.mark.parametrize(
    "variant", [{}, {"heads": 2, "value_width": 1}, {"value_width": 2}, {"kind": "softmax"}], ids=str
)
def test_independent_laws_are_the_rank_of_their_differentials(attention, variant):
    for sizes in [(1, 1), (2, 3), (3, 2), (2, 2, 2), (2, 3, 2), (3, 2, 1), (1, 2, 1)]:
        architecture = Architecture(sizes, attention, **variant)
        laws, field = tuple(list_laws(architecture)), GF(1000003)
        rank = field.rank(differentials(random_weights(architecture, field, seed=4), laws))
        assert count_independent(architecture, laws, seed=0)[0] == rank, sizes


def test_large_networks_are_listed_and_counted_by_lemma():
    laws = conserved_quantities(Architecture((768,) * 13, 64, kind="softmax", heads=12))
    assert laws.count == laws.listed == 144 * 2 * 64 * 65 // 2 + 11 * 768 * 769 // 2
    assert not laws.is_complete and laws.certificate is None
    with pytest.raises(SizeError, match="4,000"):
        conserved_quantities(Architecture((768,) * 13, 64, kind="softmax", heads=12), prove=True)
    with pytest.raises(SizeError, match="matrices of laws"):
        conserved_quantities(Architecture((4,) * 9000, 1, heads=10, value_width=1))


def test_laws_of_another_architecture_are_refused():
    weights = random_weights(Architecture((2, 2), 1), RR, seed=0)
    with pytest.raises(InputError, match="another architecture"):
        conserved_quantities(Architecture((2, 2), 2)).evaluate(weights)


def test_laws_are_the_moments_of_the_factors():
    architecture = Architecture((2, 3, 2), 2, heads=2, value_width=2)
    weights = random_weights(architecture, QQ, seed=0)
    values = conserved_quantities(architecture).evaluate(weights)
    assert [law.factor for law in values] == list(linear_factors(architecture))
    assert all(QQ.equal(x, law.factor.moment(tensors_of(weights), QQ)) for law, x in values.items())
    assert [law.formula for law in values][-1] == "Σ O Oᵀ − Σ (Q′ᵀ Q′ + K′ᵀ K′ + V′ᵀ V′)"


@pytest.mark.parametrize("temperature", ["8388593", "8388593/2147483629"])
def test_a_temperature_that_vanishes_modulo_the_usual_primes_gets_another_one(temperature):
    laws = conserved_quantities(Architecture((2, 2), 1, 2, kind="softmax", temperature=temperature))
    assert laws.is_complete and verify(laws.certificate).valid


@pytest.mark.parametrize("line", [["laws", "--widths", "2,2"], ["dim", "--widths", "2,2"]], ids=lambda line: line[0])
def test_a_seed_that_no_certificate_holds_is_refused_before_any_work(line, tmp_path, capfd):
    assert run([*line, "--certificate", str(tmp_path / "c.json"), "--seed", str(10**20)]) == 2
    assert "seeds of at most" in capfd.readouterr().err and not list(tmp_path.iterdir())


def test_the_search_stops_at_the_target_and_is_a_lower_bound():
    architecture = Architecture((2, 2, 2), 2)
    for seed in range(3):
        assert bracket_rank(architecture, 13, seed).value == 13
    assert bracket_rank(architecture, 13, 0, p=3).value <= 13


ATTACKS: list[tuple[str, Any]] = [
    ("claim.count", 10),
    ("claim.count", 12),
    ("claim.architecture.residual", True),
    ("claim.architecture.tokens", 1),
    ("claim.architecture.kind", "softmax"),
    ("witness.brackets", []),
    ("witness.brackets", [[0, 1], [0, 1], [0, 2]]),
    ("witness.brackets", [[0, 1], [0, 2], [1, 1]]),
    ("witness.brackets", [[0, 1], [0, 2], [0, 99]]),
    ("witness.brackets", [[0, 1, 2]]),
    ("witness.gradients", [0] * 10),
    ("witness.gradients", "all"),
    ("witness.prime", 2),
    ("witness.prime", 4),
    ("witness.seed", -1),
    ("witness.tokens", 9),
    ("witness.samples", 10**9),
    ("witness.more", 1),
]


@pytest.mark.parametrize(("path", "value"), ATTACKS, ids=str)
def test_altered_certificates_prove_nothing(path, value):
    certificate = conserved_quantities(Architecture((2, 2, 2), 2)).certificate
    assert certificate is not None
    record = copy.deepcopy({"claim": certificate.claim, "witness": certificate.witness})
    *parents, key = path.split(".")
    target = record
    for parent in parents:
        target = target[parent]
    target[key] = value
    assert not verify(Certificate(record["claim"], record["witness"], certificate.provenance).to_json()).valid


@pytest.mark.parametrize(
    "network",
    [
        Architecture((3, 3), 3),
        Architecture((2, 3, 2), 2),
        Architecture((3, 2), 2, heads=2, value_width=1),
        Architecture((2, 2, 2), 1, residual=True),
        Architecture((2, 2), 2, causal=True),
    ],
    ids=str,
)
def test_brackets_of_programs_are_those_of_the_passes(network):
    """Hessians by differences along lines, exact mod p, against those that are propagated."""
    P = network.num_parameters
    assert program_bracket_rank(network, P) == bracket_rank(network, P).value


@pytest.mark.parametrize("case", CASES, ids=label)
def test_laws_of_polynomial_kinds_are_complete(case):
    kind, options = case
    for shape in (
        dict(widths=(3, 2)),
        dict(widths=(2, 2), heads=2, value_width=1),
        dict(widths=(2, 2, 2), residual=True),
    ):
        network = Architecture(attention=2, tokens=3, kind=kind, **shape, **options)
        if program_of(network, 2).degree_in_weights() is None:
            assert program_bracket_rank(network, 5) is None
            continue
        laws = conserved_quantities(network)
        assert laws.is_complete and laws.most == laws.count
