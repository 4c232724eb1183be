"""Bounds: never contradictory, sharp where they should be, and honest where they are not."""

import pytest
from hypothesis import assume, given

from attngeom.dimensions import dimension, symmetry_upper_bound, upper_bound
from attngeom.dimensions.certificate import certify_dimension
from attngeom.dimensions.estimate import entry_degree, estimate_dimension
from attngeom.dimensions.formulas import layers_of_heads
from attngeom.dimensions.lower_bounds import balls_lower_bound, minor_lower_bound
from attngeom.errors import InputError, SizeError
from attngeom.exact import BLAS_PRIME, GF, WORD_PRIME
from attngeom.exact.modular import rank_mod_p
from attngeom.network import Architecture, random_weights
from attngeom.verification import verify
from tests.effort import examples

from .coefficients import coefficient_jacobian
from .strategies import architectures


@examples(200)
@given(architectures())
def test_lower_bound_never_exceeds_upper_bound(architecture):
    upper = upper_bound(architecture)
    assume(upper.value <= 250)
    assert sum(upper.parts.values()) == architecture.num_parameters - upper.value
    assert all(loss >= 0 for loss in upper.parts.values())
    assert minor_lower_bound(architecture, upper.value + 2, seed=7).value <= upper.value


@examples(60)
@given(architectures(max_layers=2))
def test_counting_is_at_least_as_good_as_symmetries(architecture):
    assume(architecture.num_parameters <= 150)
    assert upper_bound(architecture).value <= symmetry_upper_bound(architecture)


ALL_KINDS = [
    Architecture((3, 3, 3), 2),
    Architecture((3, 3, 3), 2, causal=True),
    Architecture((3, 3), 2, 2, residual=True),
    Architecture((4, 4), 2, 2, heads=2),
    Architecture((2, 2, 2), 1, 2, "softmax"),
    Architecture((3, 2), 2, 3, "softmax", causal=True),
    Architecture((1, 2), 1, 3, "softmax"),
    Architecture((2, 1, 2), 2, 4, "softmax"),
    Architecture((2, 2, 2), 2, 2, "softmax", heads=2, value_width=1, residual=True),
]


@pytest.mark.parametrize("architecture", ALL_KINDS, ids=str)
def test_balls_agree_with_the_minor(architecture):
    upper = upper_bound(architecture).value
    assert balls_lower_bound(architecture, upper).value == upper == minor_lower_bound(architecture, upper + 2).value


@pytest.mark.parametrize("prime", [101, BLAS_PRIME, WORD_PRIME])
def test_every_prime_gives_a_lower_bound(prime):
    found = minor_lower_bound(Architecture((3, 3, 3), 2), 27, seed=1, p=prime)
    assert found.value == len(found.minor_rows) == len(found.minor_columns) <= 23


def test_fewer_rows_than_the_dimension_bound_the_rank():
    assert minor_lower_bound(Architecture((3, 3, 3), 2), 10).value == 10


@pytest.mark.parametrize("tokens", [2, 3, 5, 50])
def test_samples_with_few_tokens_suffice_for_many(tokens):
    for kind in ("lightning", "softmax"):
        for causal in (False, True):
            answer = dimension(Architecture((3, 2, 3), 2, tokens, kind, causal=causal), prove=True)
            assert answer.is_proven and answer.dimension == (18 if kind == "lightning" else 20)


@pytest.mark.parametrize(
    "d, d_out, heads, a, v",
    [
        (2, 2, 2, 2, 2),
        (3, 2, 2, 3, 2),
        (2, 1, 2, 2, 1),
        (3, 1, 3, 3, 1),
        (5, 1, 2, 3, 1),
        (2, 4, 3, 2, 1),
        (3, 3, 3, 1, 1),
    ],
)
@pytest.mark.parametrize("tokens", [1, 2])
def test_one_layer_agrees_with_the_rank_of_its_coefficients(d, d_out, heads, a, v, tokens):
    architecture = Architecture((d, d_out), a, tokens, heads=heads, value_width=v)
    answer = dimension(architecture, prove=True)
    matrix = coefficient_jacobian(random_weights(architecture, GF(WORD_PRIME), seed=3))
    assert answer.is_proven and answer.dimension == rank_mod_p(matrix, WORD_PRIME)


def test_five_rank_one_heads_with_two_outputs_are_defective():
    """Widths 3 → 2, five heads of rank one: the 6×6 flattening has rank 5, so the maps form a hypersurface."""
    architecture = Architecture((3, 2), 1, 2, heads=5, value_width=1)
    answer = dimension(architecture, prove=True)
    assert answer.is_proven and answer.dimension == 35
    assert rank_mod_p(coefficient_jacobian(random_weights(architecture, GF(WORD_PRIME), seed=3)), WORD_PRIME) == 35


UNSEEN = [
    # kind, widths, a, t, H, v, causal, dimension; without what later layers do not see the bound is larger
    ("lightning", (2, 4, 1), (1, 2), 2, 4, 2, True, 46),
    ("lightning", (2, 6, 1), (2, 2), 2, 4, 2, True, 62),
    ("lightning", (3, 6, 4), (2, 3), 1, 2, None, False, 70),
    ("softmax", (1, 4, 3), (1, 3), 2, 4, 3, True, 104),
    ("softmax", (1, 4, 4, 2), (2, 3, 3), 2, 2, 2, True, 50),
    ("softmax", (2, 4, 2), (2, 3), 2, 2, 2, True, None),
    ("sigmoid", (2, 2, 4, 1), (3, 3, 3), 1, 2, 2, False, 42),
]


@pytest.mark.parametrize(("kind", "widths", "a", "t", "heads", "v", "causal", "value"), UNSEEN)
def test_what_later_layers_do_not_see_closes_the_bounds(kind, widths, a, t, heads, v, causal, value):
    answer = dimension(Architecture(widths, a, t, kind, heads=heads, value_width=v, causal=causal), method="minor")
    assert answer.standing == "proven" and answer.dimension == (value or answer.dimension)


def test_bounds_that_do_not_meet_are_told():
    architecture = Architecture((2, 2, 5, 1), (2, 2, 3), 2, heads=3, value_width=3, causal=True)
    answer = dimension(architecture, prove=True)
    assert (answer.lower_bound, answer.dimension, answer.upper_bound) == (70, 70, 73)
    assert not answer.is_proven and answer.error_probability < 1e-15
    assert answer.fiber["unexplained"] == 3 and "between 70 and 73" in answer.reason
    assert answer.lower.value == answer.lower_bound


@pytest.mark.parametrize(
    ("kind", "widths", "attention", "heads", "value_width", "tokens", "value"),
    [
        ("lightning", (2, 4, 1), (1, 2), 2, 2, 2, 30),
        ("lightning", (5, 2, 3), (3, 2), 3, 3, 1, 73),
        ("lightning", (5, 2), (3,), 3, 1, 1, 59),
        ("lightning", (2, 4, 3), (2, 3), 2, 3, 2, 52),
        ("lightning", (2, 4, 4), (2, 3), 2, 2, 3, 54),
        ("lightning", (2, 3, 4), (1, 3), 4, 1, 1, 39),
        ("lightning", (2, 4, 4), (1, 3), 2, 2, 1, 36),
        ("lightning", (3, 2, 3, 2), (3, 1, 1), 3, 3, 1, 36),
        ("softmax", (2, 4, 2), (4, 3), 2, 2, 2, 52),
        ("softmax", (2, 4, 2), (4, 3), 2, 2, 3, 54),
    ],
)
def test_hidden_widths_above_the_input(kind, widths, attention, heads, value_width, tokens, value):
    architecture = Architecture(widths, attention, tokens, kind=kind, heads=heads, value_width=value_width)
    answer = dimension(architecture, method="minor")
    assert answer.standing == "proven" and answer.dimension == value
    assert verify(certify_dimension(answer)).valid


@pytest.mark.parametrize(
    "widths, attention, heads, value_width, value",
    [
        ((4, 4, 2), (1, 3), 2, 2, 60),
        ((5, 5, 2), (1, 3), 2, 3, 93),
        ((6, 6, 2), (1, 6), 3, 2, 180),
        ((4, 4, 1), (1, 3), 2, 2, 48),
    ],
)
def test_heads_of_rank_one_hide_alternating_parts_from_the_next_layer(widths, attention, heads, value_width, value):
    """Tokens Σ u_h s_hᵀ with u_h in the image of head h: matrices that alternate on these images are not seen."""
    architecture = Architecture(widths, attention, 3, heads=heads, value_width=value_width)
    answer = dimension(architecture, prove=True)
    assert answer.is_proven and answer.dimension == value
    claim = layers_of_heads(architecture)
    assert not claim.applies and claim.value >= value


def test_fiber_split_names_the_symmetries():
    fiber = dimension(Architecture((3, 3, 3), 2), prove=True).fiber
    assert fiber == {"query-key": 8, "between": 9, "scale": 2, "unexplained": 0}
    fiber = dimension(Architecture((2, 2), 2, 2, heads=2, value_width=2), prove=True).fiber
    assert fiber["mixing"] == 2
    fiber = dimension(Architecture((3, 5, 3), 2), prove=True).fiber
    assert fiber["unseen"] == 20
    fiber = dimension(Architecture((3, 3), 3, tokens=1), prove=True).fiber
    assert fiber["antisymmetric"] == 3


def test_estimate_uses_the_degree_of_the_entries():
    architecture = Architecture((2, 2), 2, 2)
    estimate = estimate_dimension(architecture, 7, trials=2)
    assert (estimate.value, estimate.standing, estimate.to_json()["value"]) == (7, "probabilistic", 7)
    assert estimate.error_probability == pytest.approx((7 * entry_degree(architecture) / WORD_PRIME) ** 2)


def test_bad_requests_are_refused():
    with pytest.raises(InputError, match="one of auto"):
        dimension(Architecture((2, 2), 1), method="magic")
    with pytest.raises(SizeError, match="balls"):
        dimension(Architecture((2, 2), 1, 10**6, "softmax"), method="balls")
    with pytest.raises(SizeError, match="krylov"):
        minor_lower_bound(Architecture((300, 300), 200), 90_000)
    with pytest.raises(SizeError):
        symmetry_upper_bound(Architecture((300, 300, 300), 200))
