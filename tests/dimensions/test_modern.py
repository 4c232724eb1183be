"""Theorems of docs/theorems/modern.md against ranks mod p, at random sizes and at the edges."""

from random import Random

import pytest

from attngeom.dimensions import dimension
from attngeom.dimensions.modern import modern_formula
from attngeom.dimensions.programs import orbit_bound, program_bounds
from attngeom.errors import InputError
from attngeom.network import Architecture
from tests.network.modern_cases import CASES, label

EDGES = [(1, 1, 1, 2), (1, 3, 2, 2), (3, 1, 1, 3), (2, 3, 1, 2), (2, 4, 2, 3), (3, 2, 2, 1), (2, 2, 3, 1)]
"""(d, a, d', t)."""


def sizes(case):
    """Edge cases, and a few random ones of this run's kind."""
    rng = Random(label(case))
    drawn = [(rng.randint(2, 4), rng.randint(1, 4), rng.randint(1, 3), rng.randint(1, 4)) for _ in range(3)]
    for d, a, d_out, t in EDGES + drawn:
        kind, options = case
        try:
            yield Architecture((d, d_out), a, tokens=t, kind=kind, **options)
        except InputError:
            continue


@pytest.mark.parametrize("case", CASES, ids=label)
def test_one_head(case):
    for seed, network in enumerate(sizes(case)):
        bounds, theorem = program_bounds(network, seed), modern_formula(network)
        assert bounds.lower.value <= bounds.upper.value, network
        if theorem is not None:
            assert bounds.lower.value == theorem.value, network


NAMED = ["scalar_gate", "ssd", "gla", "deltanet", "gated_deltanet", "kda"]


@pytest.mark.parametrize("kind", NAMED)
def test_heads_and_residual_stacks(kind):
    networks = [
        Architecture((3, 2), 2, kind=kind, heads=2, value_width=1, tokens=2),
        Architecture((2, 2), 1, kind=kind, heads=3, value_width=2, tokens=3),
        Architecture((2, 2, 2), 2, kind=kind, heads=2, value_width=1, tokens=2, residual=True),
    ]
    for network in networks:
        theorem = modern_formula(network)
        assert theorem is not None
        assert program_bounds(network, 5).lower.value == theorem.value


def test_different_decays_name_the_heads_with_enough_tokens():
    network = Architecture((3, 2), 2, kind="retnet", heads=2, value_width=1, tokens=3)
    assert modern_formula(network).value == program_bounds(network, 1).lower.value
    assert modern_formula(Architecture((3, 2), 2, kind="retnet", heads=2, value_width=1, tokens=2)) is None


@pytest.mark.parametrize(
    "kind, options", [("kda", {"bias": True}), ("retnet", {"rope": True}), ("deltanet", {"normalised_keys": True})]
)
def test_what_the_proofs_do_not_cover_has_no_theorem(kind, options):
    assert modern_formula(Architecture((3, 2), 2, kind=kind, **options)) is None


def test_the_orbit_is_no_larger_than_the_fiber_that_ranks_show():
    for case in CASES:
        kind, options = case
        network = Architecture((3, 3), 2, kind=kind, tokens=3, **options)
        assert orbit_bound(network, 1).value >= program_bounds(network, 2).lower.value


def test_answers():
    proven = dimension(Architecture((3, 2), 2, kind="gla"))
    assert (proven.dimension, proven.standing, proven.fiber_dimension) == (21, "proven", 3)
    assert proven.fiber == {"channels": 2, "scale": 1, "unexplained": 0}
    large = dimension(Architecture((64, 64), 16, kind="kda", heads=4))
    assert (large.standing, large.dimension) == ("theorem", 4 * (3 * 16 * 64 + 64 - 1 + 16 * 128 - 256))
    assert large.fiber == {"scale": 4, "value-output": 4 * 16**2, "unexplained": 0}
    open_case = dimension(Architecture((3, 4, 2), 2, kind="kda", bias=True))
    assert open_case.standing in ("proven", "undecided") and open_case.formula is None
    with pytest.raises(InputError, match="no theorem covers"):
        dimension(Architecture((3, 3), 2, kind="kda", bias=True), method="theorem")
    with pytest.raises(InputError, match="auto, theorem or minor"):
        dimension(Architecture((3, 3), 2, kind="kda"), method="krylov")


def test_more_tokens_are_taken_where_few_do_not_reach_the_bound():
    """Heads with more planes than coordinates: three tokens under a mask show one dimension less than four do."""
    answer = dimension(Architecture((2, 1), 4, tokens=4, kind="sigmoid", alibi="fixed", rope=True, causal=True), seed=0)
    assert (answer.dimension, answer.standing) == (14, "proven")
