"""Heads from functions: those of random layers come back, exactly and in floats; what is no sum of heads is refused."""

import numpy as np
import pytest

import attngeom
from attngeom.errors import InputError, SizeError
from attngeom.exact import QQ, RR
from attngeom.exact.domains import QuadraticField
from attngeom.heads import find_heads, heads_unique
from attngeom.heads.float_blocks import block_form
from attngeom.layer.coefficients import quadric_table
from attngeom.network import Architecture, forward, random_weights
from tests.heads.cases import change, conjugate_heads, float_of, from_table, head, layer, layer_table

SIZES = [
    Architecture((4, 4), 2, heads=2),
    Architecture((4, 4), 1, heads=2, value_width=2),
    Architecture((5, 6), 1, heads=3, value_width=2),
    Architecture((6, 6), 2, heads=3, causal=True),
    Architecture((3, 3), 1, heads=2, value_width=1, tokens=2),
    Architecture((3, 2), 2, tokens=2),
]


def miss(weights, found):
    """The largest difference between true head functions and the found ones nearest to them."""
    tables = [RR.convert(quadric_table(block.A, block.V, block.domain)) for block in found.blocks]
    true = [
        RR.convert(quadric_table(A, V, weights.domain))
        for A, V in zip(weights.attention_matrices()[0], weights.value_matrices()[0])
    ]
    return max(min(np.abs(table - other).max() for other in tables) / np.abs(table).max() for table in true)


@pytest.mark.parametrize("architecture", SIZES, ids=str)
@pytest.mark.parametrize("domain", [QQ, RR], ids=["exact", "floats"])
def test_heads_come_back(architecture, domain):
    weights = random_weights(architecture, domain, 1)
    for source in (weights, attngeom.coefficients(weights)):
        found = find_heads(source)
        assert found.outcome == "found" and len(found.blocks) == architecture.heads, found.reason
        assert miss(weights, found) < (1e-9 if domain == RR else 1e-15)
        assert found.unique is (True if domain == QQ else None)
    sizes = [(architecture.attention[0], found.blocks[0].v)] * architecture.heads
    assert find_heads(weights, sizes=sizes).outcome == "found"


def test_wide_layers_are_not_expanded():
    weights = random_weights(Architecture((32, 32), 8, heads=4), RR, 1)
    found = find_heads(weights)
    assert found.outcome == "found" and miss(weights, found) < 1e-8
    narrow = random_weights(Architecture((20, 20), 1, heads=20), RR, 1)
    assert miss(narrow, find_heads(narrow)) < 1e-7


@pytest.mark.parametrize("kind", ["lightning", "softmax"])
def test_black_boxes(kind):
    architecture = Architecture((4, 4), 2, heads=2, kind=kind)
    weights = random_weights(architecture, RR, 2)
    found = find_heads(lambda X: forward(weights, X), architecture=architecture)
    assert found.outcome == "found" and miss(weights, found) < 1e-7
    if kind == "softmax":
        for A, V in zip(weights.attention_matrices()[0], weights.value_matrices()[0]):
            assert min(np.abs(A - b.A).max() + np.abs(V - b.V).max() for b in found.blocks) < 1e-6


def test_softmax_weights_give_heads_with_their_scales():
    weights = layer(kind="softmax")
    found = find_heads(weights)
    for A, V in zip(weights.attention_matrices()[0], weights.value_matrices()[0]):
        assert any(QQ.equal(A, block.A) and QQ.equal(V, block.V) for block in found.blocks)


def test_noise_grows_as_stated():
    weights = layer(d=8, a=2, heads=4).to(RR)
    exact = attngeom.coefficients(weights)
    rng = np.random.default_rng(0)
    noise = 1e-7
    cross = exact.cross[:, :1, :1] * (1 + noise * rng.standard_normal(exact.cross[:, :1, :1].shape))
    noisy = from_float_table(np.swapaxes(cross[:, 0, 0], 1, 2))
    found = find_heads(noisy, 4, noise=noise)
    assert found.outcome == "found" and found.amplification > 0
    assert miss(weights, found) < 100 * max(found.amplification, 1) * noise


def from_float_table(table):
    d_out, d, _ = table.shape
    from attngeom.layer.coefficients import Coefficients, array_shapes, symmetrize

    cross = np.swapaxes(table, 1, 2)
    shapes = array_shapes(d, d_out, 2)
    single = np.broadcast_to(symmetrize(cross, d, RR)[:, None], shapes[0])
    return Coefficients(d, d_out, 2, single, np.broadcast_to(cross[:, None, None], shapes[1]), RR)


def test_heads_that_share_are_found_and_not_unique():
    weights = layer()
    shared = change(weights, {"1.K": head(weights, 0, "K"), "1.V": head(weights, 0, "V")})
    found = find_heads(shared)
    assert found.outcome == "found" and found.unique is False and found.commutant == 4
    total = sum(quadric_table(block.A, block.V, QQ) for block in found.blocks)
    assert QQ.equal(total, layer_table(shared))


def test_what_is_no_sum_of_heads_is_refused():
    table = layer_table(layer()).copy()
    table[0, 0, 0] += 1
    assert find_heads(from_table(table)).outcome == "none"
    assert find_heads(float_of(from_table(table))).outcome == "undecided"
    broken = attngeom.coefficients(layer())
    single = broken.single.copy()
    single[0, 0, 0] += 1
    found = find_heads(type(broken)(4, 4, 3, single, broken.cross, QQ))
    assert found.outcome == "none" and "symmetrization" in found.reason


@pytest.mark.parametrize("D", [2, 3, 5, 6])
@pytest.mark.parametrize("seed", range(3))
def test_heads_that_are_conjugate_over_a_real_field_are_real(D, seed):
    coefficients = conjugate_heads(D, seed)
    answer = find_heads(coefficients)
    assert (answer.outcome, answer.standing, answer.unique) == ("found", "theorem", True)
    assert [(block.a, block.v) for block in answer.blocks] == [(2, 2), (2, 2)]
    field = answer.blocks[0].domain
    total = sum(quadric_table(block.A, block.V, field) for block in answer.blocks)
    rational, irrational = field.parts(total)
    assert QQ.equal(QQ.convert(rational), coefficients.table) and QQ.is_zero(QQ.convert(irrational))


@pytest.mark.parametrize("D", [-1, -3])
def test_heads_that_are_conjugate_over_the_complex_numbers_are_not_real(D):
    answer = find_heads(conjugate_heads(D))
    assert (answer.outcome, answer.standing, answer.blocks) == ("conjugate", "proven", ())
    assert "no real heads" in answer.reason and answer.is_positive is False


def test_two_conjugate_summands_that_are_no_heads():
    """T + T' for a random table T of 2×2 quadrics over Q(√2): indecomposable, and no product."""
    field, rng = QuadraticField(2), np.random.default_rng(5)
    left, core, right = (
        field.combine(QQ.convert(rng.integers(-3, 4, shape)), QQ.convert(rng.integers(-3, 4, shape)))
        for shape in ((4, 2), (2, 2, 10), (2, 4))
    )
    table = np.einsum("nr,rsk,sm->nmk", left, core, right)
    answer = find_heads(from_table(QQ.convert(field.parts(table)[0] * 2)))
    assert (answer.outcome, answer.standing) == ("none", "proven") and "no heads" in answer.reason


def test_three_conjugate_heads_over_a_real_cubic_field_are_undecided():
    """The trace of a head of rank one over Q(θ), θ³ = 3θ + 1 (three real roots): real heads, and not sought."""
    theta = np.array([[0, 0, 1], [1, 0, 3], [0, 1, 0]])
    rng = np.random.default_rng(2)
    powers = np.stack([np.linalg.matrix_power(theta, k) for k in range(3)])
    out, value, key, query = np.einsum("wik,kxy->wixy", rng.integers(-3, 4, (4, 4, 3)), powers)
    places = [(k, l) for k in range(4) for l in range(k, 4)]
    quadrics = np.stack([value[k] @ key[l] + (value[l] @ key[k] if k != l else 0) for k, l in places])
    table = np.einsum("nxy,myz,pzx->nmp", out, query, quadrics)
    answer = find_heads(from_table(QQ.convert(table)))
    assert (answer.outcome, answer.standing) == ("undecided", "undecided") and "over a real field" in answer.reason


def test_wrong_numbers_of_heads():
    found = find_heads(layer(), 3)
    assert found.outcome == "none" and found.standing == "proven" and "has 2 heads" in found.reason
    assert find_heads(layer(), sizes=[(1, 2), (3, 2)]).outcome == "none"
    assert find_heads(layer().to(RR), 3).outcome == "undecided"
    assert find_heads(change(layer(), {f"{h}.O": head(layer(), h, "O") * 0 for h in (0, 1)})).unique is False


BAD = [
    (dict(heads=0), "positive"),
    (dict(heads=2, sizes=[(1, 1)]), "one pair"),
    (dict(sizes=[(0, 1)]), "positive"),
    (dict(noise=-1.0), "noise"),
]


@pytest.mark.parametrize("options, message", BAD)
def test_bad_input(options, message):
    with pytest.raises(InputError, match=message):
        find_heads(layer(), **options)


def test_sources_that_cannot_be_used():
    with pytest.raises(InputError, match="t ≥ 2"):
        find_heads(layer(tokens=1))
    with pytest.raises(InputError, match="architecture"):
        find_heads(lambda X: X)
    with pytest.raises(InputError, match="one lightning or softmax"):
        find_heads(random_weights(Architecture((4, 4, 4), 2, heads=2), QQ, 0))
    with pytest.raises(SizeError, match="coefficients"):
        find_heads(random_weights(Architecture((40, 40), 20, heads=2), QQ, 0))


def test_one_block_is_one_block():
    rng = np.random.default_rng(0)
    assert len(block_form(rng.standard_normal((6, 5, 5)), None, 0).sizes) == 1


@pytest.mark.parametrize("size", [1e-200, 1e160])
def test_tiny_and_huge_floats(size):
    weights = layer().to(RR)
    scaled = change(weights, {f"{h}.{x}": head(weights, h, x) * size for h in (0, 1) for x in "VO"})
    assert heads_unique(scaled).verdict == "unique"
    found = find_heads(scaled)
    assert found.outcome == "found" and len(found.blocks) == 2
    overflow = change(scaled, {f"{h}.{x}": head(weights, h, x) * size for h in (0, 1) for x in "QK"})
    assert find_heads(overflow).outcome in ("found", "undecided")
