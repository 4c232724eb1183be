"""The ledger: what the families explain, what those of the paper miss, and that nothing is left."""

from functools import cache

import pytest

from attngeom.equations import Variety, families, find_family
from attngeom.equations.ideal import IdealSummary, implicitize
from attngeom.equations.ideal.formulas import generator_modules
from attngeom.equations.ideal.ledger import Quotient, ledger, ledger_row, with_families
from tests.effort import thorough
from tests.equations.ideal.family_ideal import FamilyIdeal


@cache
def ideal(model: Variety, n: int) -> IdealSummary:
    """Generators of degree ≤ n, which the ledger compares with the families itself."""
    return implicitize(model, n, families=False, vectors=True)


@pytest.mark.parametrize(("d", "a", "n"), [(2, 1, 3), (2, 2, 5), (3, 1, 4), (3, 2, 4), *thorough((3, 3, 6))])
def test_families_of_the_paper_explain_widths_two_and_three(d: int, a: int, n: int) -> None:
    model = Variety(d, a)
    for row in ledger(model, ideal(model, n)):
        assert row.is_closed and row.from_paper == row.minimal_generators and not row.unexplained


@pytest.mark.parametrize(
    ("a", "missing"), [(4, {(3, 3), (3, 3, 1, 1)}), *thorough((2, {(3, 3, 1, 1)}), (3, {(3, 3), (3, 3, 1, 1)}))]
)
def test_families_of_the_paper_miss_two_modules_at_width_four(a: int, missing: set[tuple[int, ...]]) -> None:
    model = Variety(4, a)
    rows = ledger(model, ideal(model, 4), max_members=10)
    assert all(row.is_closed for row in rows)
    explained = {s for row in rows for e in row.entries if e.number <= 10 for s in e.modules}
    modules = {v.shapes for v in ideal(model, 4).vectors}
    assert {lam for lam, _ in modules - explained} == missing
    for row in rows:
        ours = [e for e in row.entries if e.number in (12, 13)]
        assert {s for e in ours for s in e.modules} >= {s for s in modules - explained if sum(s[1]) == row.degree}


def test_literal_ranks_at_width_three() -> None:
    """Resultants span their module; the Veronese minors as they stand span only a part of it."""
    model = Variety(3, 3)
    quartics = ledger(model, ideal(model, 4))[3]
    ranks = {e.name: e.literal_rank for e in quartics.entries}
    assert ranks["sylvester-resultant"] == 90
    assert 0 < ranks["veronese-catalecticant-2"] < 90
    assert [e.name for e in quartics.entries if not e.modules] == ["veronese-cross-target-2"]


def test_products_have_no_image_among_the_minimal_generators() -> None:
    """Determinantal syzygies at d = 4 are products of cubics, so their images vanish; resultants' do not."""
    model = Variety(4, 4)
    quartics = [v for v in ideal(model, 4).vectors if v.degree == 4]
    quotient = Quotient(model, quartics)
    variety = Variety(4, 4)
    assert quotient.images(find_family(variety, "determinantal-syzygy"), range(20)).nnz == 0
    assert quotient.images(find_family(variety, "sylvester-resultant"), range(3)).nnz > 0


def test_a_module_without_a_family_is_named() -> None:
    """With no member looked at, every module is unexplained and comes with its highest weight vector."""
    model = Variety(3, 3)
    summary = ideal(model, 3)
    row = ledger_row(model, summary.degrees[2], summary.vectors, max_members=0)
    assert not row.is_closed and {v.shapes for v in row.unexplained} == {((2, 2, 2), (3,)), ((3, 3), (1, 1, 1))}
    assert all("y_0_0_" in v.to_text() for v in row.unexplained)


def test_summary_counts_generators_in_families() -> None:
    model = Variety(3, 2)
    summary = implicitize(model, 4)
    degrees = summary.degrees
    assert [d.from_families for d in degrees] == [d.minimal_generators for d in degrees]
    assert degrees[3].to_json()["missing"] == 0
    unexplained = with_families(model, degrees, summary.vectors, max_members=0)[3].to_json()
    assert unexplained["missing"] == 90 and unexplained["unexplained"][0]["shapes"] == [[4, 4], [2, 2]]


def test_families_of_the_paper_generate_a_smaller_ideal_at_width_four() -> None:
    """Closed under GL × GL they reach 200 of 400 cubics and 13905 of 17605 quartics; at width three they reach all."""
    for d, a, expected in [(3, 3, [20, 450]), (4, 4, [200, *thorough(13905)])]:
        known = [f for f in families(Variety(d, a)) if 5 <= f.number <= 10 and f.degree <= 4]
        found = FamilyIdeal(Variety(d, a), known)
        assert [found.dimension(degree) for degree in range(3, 3 + len(expected))] == expected


def test_more_directions_than_the_degree_change_no_module_that_families_reach() -> None:
    """d = 40 is compared with as many directions as the degree: in seconds, and with the numbers of d = 40."""
    degrees = implicitize(Variety(40, 2), 4).degrees
    assert [d.from_families for d in degrees] == [d.minimal_generators for d in degrees]
    assert degrees[3].minimal_generators == sum(m.dimension for m in generator_modules(40, 2, 40)[4]) > 10**12
