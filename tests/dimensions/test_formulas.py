"""Formulas: what they say, when they claim to apply, and that the proven value agrees whenever they do."""

import pytest
from hypothesis import assume, given

from attngeom.dimensions import dimension, formula, formulas, upper_bound
from attngeom.dimensions.formulas import deep_lightning, layers_of_heads, one_layer, softmax_layer
from attngeom.dimensions.theorems import free_network, lightning_network
from attngeom.network import Architecture
from tests.effort import examples

from .strategies import architectures


@examples(250)
@given(architectures(widening=False))
def test_proven_dimension_is_the_formula_wherever_one_applies(architecture):
    assume(upper_bound(architecture).value <= 300)
    claims = [candidate for candidate in formulas(architecture) if candidate.applies]
    assume(claims)
    answer = dimension(architecture, prove=True)
    assert answer.is_proven
    assert {claim.value for claim in claims} == {answer.dimension}


@examples(250)
@given(architectures(max_heads=1))
def test_one_head_is_always_proven(architecture):
    assume(upper_bound(architecture).value <= 300)
    assert dimension(architecture, prove=True).is_proven


EXAMPLES = [
    ((4, 3, 5), (2, 2), 1, 32),
    ((4, 3, 5), (2, 2), 2, 36),
    ((4, 3, 5), (2, 2), 3, 36),
    ((3, 5, 3), (2, 2), 3, 23),
    ((3, 6, 6, 4), (3, 3, 3), 3, 36),
    ((6, 5, 4, 3, 6), (2, 2, 2, 2), 3, 82),
    ((1, 1), (1,), 1, 1),
    ((1, 1), (3,), 2, 1),
    ((3, 1, 3), (2, 1), 2, 12),
    ((2, 3), (5,), 2, 9),
    ((3, 3, 3), (1, 3), 3, 18),
    ((3, 3, 3), (1, 3), 1, 18),
    ((9, 9, 1), (1, 1), 3, 41),
]


@pytest.mark.parametrize("widths, attention, tokens, value", EXAMPLES)
def test_lightning_networks_of_any_widths_and_ranks(widths, attention, tokens, value):
    architecture = Architecture(widths, attention, tokens)
    assert lightning_network(architecture).value == value
    answer = dimension(architecture, prove=True)
    assert (answer.dimension, answer.is_proven) == (value, True)


def test_the_papers_formula_agrees_with_theorem_f_on_its_hypotheses():
    for d_0 in range(2, 5):
        for delta in range(2, d_0 + 1):
            for a in (2, 3, 5):
                architecture = Architecture((d_0, delta, delta, d_0 + 1), a, 3)
                claim = deep_lightning(architecture)
                assert claim.applies and claim.value == lightning_network(architecture).value


def test_hypotheses_are_reported_with_the_value():
    claim = one_layer(Architecture((3, 2), 2, tokens=1))
    assert not claim.applies and claim.value == 13
    assert [text for text, holds in claim.hypotheses.items() if not holds] == ["t ≥ 2"]
    assert deep_lightning(Architecture((3, 2), 2)) is None
    assert not deep_lightning(Architecture((3, 4, 3), 2)).applies
    assert formula(Architecture((2, 6, 2), 2, heads=3, value_width=2)) is None


def test_softmax_is_a_theorem_at_every_depth():
    assert softmax_layer(Architecture((3, 3), 2, 2, "softmax")).status == "theorem"
    assert free_network(Architecture((3, 3, 3), 2, 2, "softmax")).status == "theorem"
    assert not free_network(Architecture((3, 3, 3), 2, 1, "softmax")).applies


@pytest.mark.parametrize("d, heads", [(4, 1), (4, 2), (6, 2), (6, 3), (8, 2)])
def test_standard_heads(d, heads):
    claim = layers_of_heads(Architecture((d, d), d // heads, heads=heads, value_width=d // heads))
    assert claim.value == 4 * d * d - 2 * d * d // heads - heads


def test_formula_beyond_saturation_is_not_claimed():
    """More heads than independent value maps: the mixing count would go below the true value 2."""
    architecture = Architecture((1, 2), 1, tokens=2, heads=3, value_width=1)
    assert not layers_of_heads(architecture).applies
    assert dimension(architecture, prove=True).dimension == 2


def test_real_model_sizes_are_answered_by_theorem():
    architecture = Architecture((768,) * 13, 64, 1024, "softmax", heads=12, residual=True)
    answer = dimension(architecture)
    assert answer.method == "theorem" and answer.is_proven and answer.lower_bound == answer.dimension
    assert answer.dimension == 12 * 12 * 2 * (2 * 64 * 768 - 64**2)
    assert answer.dimension == answer.upper_bound
