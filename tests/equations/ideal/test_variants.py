"""Single columns, several rows, several heads, causal and residual layers, by engine W with nothing assumed."""

import pytest

from attngeom.equations import Variety
from attngeom.equations.ideal import GeneratorModule, implicitize
from attngeom.equations.ideal.formulas import hilbert_function
from tests.effort import choose


def shapes(modules: tuple[GeneratorModule, ...]) -> set[tuple[tuple[int, ...], ...]]:
    return {m.shapes for m in modules}


def values(model: Variety, n: int) -> list[int]:
    return [d.hilbert_function for d in implicitize(model, n, check=False).degrees]


def test_single_column_equations_of_width_three() -> None:
    rank_one = implicitize(Variety(3, 1, tokens=1), 5, check=False).degrees
    assert [d.minimal_generators for d in rank_one] == [0, 0, 0, 35, 0]
    assert shapes(rank_one[3].modules) == {((7, 3, 2),)}
    # In every run the octics themselves are found for I-example-19 of the papers.
    full = implicitize(Variety(3, 2, tokens=1), choose(6, 8), check=False).degrees
    assert [d.ideal_dimension for d in full] == choose([0] * 6, [0] * 7 + [35])
    assert shapes(full[-1].modules) == choose(set(), {((10, 9, 5),)})


def test_single_column_equations_of_width_four_and_rank_one() -> None:
    quartics = implicitize(Variety(4, 1, tokens=1), 4, check=False).degrees[3]
    assert quartics.minimal_generators == 1085
    assert shapes(quartics.modules) == {((7, 3, 2),), ((6, 2, 2, 2),), ((5, 4, 2, 1),)}


def test_cross_row_quadrics_are_the_segre_module() -> None:
    for d, a, rows in [(2, 2, 2), (2, 2, 3), (3, 2, 2), (3, 3, 2)]:
        quadrics = implicitize(Variety(d, a, d_out=rows), 2, check=False).degrees[1]
        assert shapes(quadrics.modules) == {((1, 1), (4,), (1, 1))}


def test_cross_row_ideal_of_width_two() -> None:
    degrees = implicitize(Variety(2, 2, d_out=2), 5, check=False).degrees
    assert [d.minimal_generators for d in degrees] == [0, 5, 0, 10, 0]


def test_rows_and_targets_can_be_swapped_when_the_rank_is_full() -> None:
    """ν_r(z) α_m(z) is symmetric in (V, rows) and (A, targets), so the Hilbert functions agree."""
    assert values(Variety(2, 2, targets=3, d_out=2), 4) == values(Variety(2, 2, targets=2, d_out=3), 4)


@pytest.mark.parametrize(("d", "a", "n"), [(2, 1, 3), (2, 2, 3), (3, 2, 1)])
@pytest.mark.parametrize("causal", [False, True])
def test_a_causal_layer_has_the_hilbert_function_of_the_full_one(d: int, a: int, n: int, causal: bool) -> None:
    found = values(Variety(d, a, tokens=2, causal=causal), n)
    assert found == [hilbert_function(d, a, d, k) for k in range(1, n + 1)]


def test_a_residual_stream_adds_one_free_coordinate() -> None:
    plain = [1, *values(Variety(2, 2, d_out=2), 2)]
    residual = values(Variety(2, 2, tokens=2, d_out=2, residual=True), 2)
    assert residual == [sum(plain[: n + 1]) for n in (1, 2)]


def test_two_heads_of_rank_one_satisfy_only_the_rank_condition_first() -> None:
    """Two heads of rank one have a flattening of rank ≤ 2: its 3-minors S_411 ⊗ Λ³ and S_33 ⊗ Λ³."""
    degrees = implicitize(Variety(3, 1, heads=2, value_width=1), 4, check=False).degrees
    assert shapes(degrees[2].modules) == {((4, 1, 1), (1, 1, 1)), ((3, 3), (1, 1, 1))}
    assert degrees[3].minimal_generators == 0


def test_two_full_heads_of_width_three_have_no_equations_of_low_degree() -> None:
    assert all(
        d.ideal_dimension == 0 for d in implicitize(Variety(3, 3, heads=2, value_width=1), 4, check=False).degrees
    )
