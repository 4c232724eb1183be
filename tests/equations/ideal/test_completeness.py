"""Theorems 5 and 6: docs/theorems/completeness.md against computation, and the finite check."""

import json
import shutil
from dataclasses import replace
from itertools import product
from math import comb
from pathlib import Path

import pytest

from attngeom import dimension
from attngeom.equations import Variety
from attngeom.equations.ideal import Limits, Run, check_complete, complete, completeness, implicitize, koszul
from attngeom.equations.ideal.completeness import (
    candidates,
    check_theorem,
    complete_variety,
    generator_bound,
    is_multiple,
    last_degree,
    modules_to_check,
)
from attngeom.equations.ideal.degrees import digest
from attngeom.equations.ideal.formulas import generator_shapes
from attngeom.equations.ideal.limits import OverBudget
from attngeom.equations.ideal.tableaux import multiplicity, plethysm
from attngeom.errors import FormatError, InputError, SizeError
from attngeom.exact.numbers import WORD_PRIME
from attngeom.exact.partitions import strip
from attngeom.network import Architecture
from tests.effort import choose, thorough

# ---------------------------------------------------------------- Theorem 5 and the finite check


def test_the_bound_is_2d_and_does_not_grow_with_d_for_one_attention_width():
    assert [generator_bound(d, d, d) for d in range(3, 12)] == [2 * d for d in range(3, 12)]
    assert [generator_bound(2, a, m) for a, m in ((2, 2), (2, 5))] == [4, 4]
    assert generator_bound(9, 9, 1) == generator_bound(9, 1, 9) == 3
    assert [generator_bound(d, 5, d) for d in (20, 50, 1000)] == [12] * 3
    with pytest.raises(InputError, match="positive"):
        generator_bound(0, 1, 1)


def test_more_directions_than_rows_change_no_candidate():
    assert all(last_degree(d, m, l) == 2 * l + 3 for l in range(2, 9) for d, m in ((l + 3, l + 2), (40, 50)))
    more = choose(6, 7)
    assert candidates(more, more, 5) == candidates(5, 5, 5) != candidates(4, 4, 5)
    assert candidates(more, 3, 7) == candidates(5, 3, 7) != candidates(4, 3, 7)


@pytest.mark.parametrize("l", [2, 3, 4])
def test_modules_with_three_more_rows_do_not_occur(l):
    """The multiplicities that docs/theorems/completeness.md needs for ℓ(λ) ≤ ℓ(μ) + 2 in Theorem 5."""
    assert (l + 1, *(1,) * (l - 1)) not in plethysm(strip((2, *(1,) * (l - 2))), l + 1)
    cubic = plethysm((3, *(1,) * (l - 2)), l + 1)
    assert (l + 2, *(1,) * l) not in cubic and (l + 1, 2, *(1,) * (l - 1)) not in cubic
    if l >= 3:
        square = plethysm((2, 2, *(1,) * (l - 3)), l + 1)
        for kappa in ((l + 2, *(1,) * l), (l + 1, 2, *(1,) * (l - 1)), (l + 3, *(1,) * (l - 1))):
            assert kappa not in square


def test_candidates_are_modules_of_the_polynomial_ring_of_the_right_degree():
    for degree in (5, 6, 7):
        found = candidates(4, 4, degree)
        assert found and len(set(found)) == len(found)
        assert all(sum(lam) == 2 * degree and sum(mu) == degree for lam, mu in found)


def shorter(lam, mu):
    """(λ; μ) without the coordinate of its first row, and without that of its first column, where they are shapes."""
    found = [(strip((lam[0] - 2, *lam[1:])), strip((mu[0] - 1, *mu[1:])))]
    found += [(strip((lam[0] - 1, *lam[1:-1])), mu[:-1])] if lam[-1] == mu[-1] == 1 else []
    return [w for w in found if all(list(shape) == sorted(shape, reverse=True) for shape in w)]


def test_multiplication_by_a_coordinate_is_injective_and_finds_the_ideal(log):
    """Lemma 5: multiplicities grow in R and in R/I; where they are equal in R, they are equal in R/I."""
    kinds = set()
    for (degree, (lam, mu)), result in log.results.items():
        for kind, smaller in enumerate(shorter(lam, mu)) if degree > 1 else ():
            before = log.results.get((degree - 1, smaller))
            total, rank = (0, 0) if before is None else (before.total, before.rank)
            assert result.total >= total and result.rank >= rank
            if result.total == total:
                assert is_multiple(lam, mu) and result.rank == rank
                assert result.generated == result.ideal_dimension
                kinds.add(kind)
    assert kinds == {0, 1}


def test_what_is_decided_by_multiplicities_holds_no_generator(log):
    decided = [result for (_, weight), result in log.results.items() if is_multiple(*weight)]
    assert 100 < len(decided) < len(log.results)
    assert all(result.generated == result.ideal_dimension for result in decided)
    assert not any(is_multiple(*weight) for _, *weight in generator_shapes(9, 9, 9))


def test_multiplicities_on_a_super_space_are_those_of_many_rows(log):
    for (_, (lam, mu)), result in log.results.items():
        assert multiplicity(lam, mu) == plethysm(mu, 6)[lam] == result.total
    assert multiplicity((4, 4), (2, 1, 1)) == multiplicity((3, 2, 1, 1, 1), (4,)) == 0


def test_the_modules_that_are_computed_do_not_grow_with_the_attention_width():
    found = list(modules_to_check(7, 5))
    assert len(found) == 176 and max(degree for degree, _ in found) == 10
    assert max(len(lam) for _, (lam, _) in found) == 6 and max(len(mu) for _, (_, mu) in found) == 5
    assert all(found == list(modules_to_check(a + 2, a)) for a in thorough(6, 9))


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    """All modules of degree ≤ 6, as the stored run for d = m = a = 6 found them."""
    path = Path(__file__).parents[3] / "docs" / "logs" / "completeness-6.json"
    return Run(Variety(6, 6), 6, state=shutil.copy(path, tmp_path_factory.mktemp("log") / "log.json"))


@pytest.fixture
def no_theorem(monkeypatch):
    """Leave out the part of the check that all sizes share; it has a test of its own."""
    monkeypatch.setattr(completeness, "check_theorem", lambda: 0)


@pytest.mark.parametrize(
    ("d", "a", "m"), [(1, 1, 1), (2, 2, 2), (2, 2, 4), (3, 2, 3), (3, 3, 4), (4, 1, 4), *thorough((4, 3, 5), (6, 6, 3))]
)
def test_the_list_is_complete(d, a, m, no_theorem):
    found = check_complete(d, a, m)
    assert found.standing == "theorem" and found.is_checked and not found.check.new
    assert [(degree, *module.shapes) for degree, module in found.modules] == generator_shapes(d, a, m)
    assert [degree for degree, _ in found.check.checked] == list(range(5, found.check.bound + 1))


def test_a_smaller_attention_width_needs_no_module_with_more_rows(no_theorem):
    full, small = check_complete(4, 4).check, check_complete(4, 2).check
    assert small.bound < full.bound and sum(n for _, n in small.checked) < sum(n for _, n in full.checked)
    # The (a+1)-minors may have a larger degree than everything else that is looked at.
    assert generator_bound(12, 11, 12) >= 12


def test_a_module_that_is_missing_is_found(monkeypatch, no_theorem):
    monkeypatch.setattr(completeness, "LAST_COMMON_DEGREE", 3)
    with pytest.raises(ArithmeticError, match=r"\(3, 3, 1, 1\), \(2, 2\)"):
        check_complete(4, choose(2, 4))


def test_the_check_agrees_with_full_runs():
    last = choose(5, 6)
    run = Run(Variety(4, 4), last)
    run.degrees()
    for degree in range(5, last + 1):
        new = {w for (n, w), r in run.results.items() if n == degree and r.ideal_dimension > r.generated}
        assert not new
        assert set(candidates(4, 4, degree)) <= {w for n, w in run.results if n == degree}


def test_results_of_a_run_are_used_and_kept_with_their_pivots(tmp_path, no_theorem):
    state = tmp_path / "log.json"
    run = Run(Variety(3, 2), 5, state=state)
    run.degrees()
    found = check_complete(3, 2, run=run)
    assert found.is_checked
    again = Run(Variety(3, 2), 6, state=state)
    assert set(modules_to_check(3, 2)) <= set(again.results)
    for result in again.results.values():
        assert len(result.pivots.rows) == len(result.pivots.columns) == result.generated


@pytest.mark.parametrize("limits", [Limits(seconds=0), Limits(megabytes=0.001)])
def test_a_budget_ends_the_check_without_a_verdict(limits):
    found = check_complete(4, 4, limits=limits)
    assert not found.is_checked and not found.check.new
    assert len(found.check.checked) < found.check.bound - 4


@pytest.mark.parametrize(("d", "a"), [(21, 21), (100, 21), (1000, 1000)])
def test_sizes_out_of_reach_are_refused_by_the_check_and_answered_by_the_theorem(d, a):
    with pytest.raises(SizeError, match="at most a = 20"):
        check_complete(d, a)
    assert complete(d, a, d).standing == "theorem" and complete(d, a, d).degree == (a + 1 if a < d else 4)


def test_several_processes_give_the_same_answer(tmp_path, no_theorem):
    runs = [Run(Variety(3, 2), 1, state=tmp_path / f"{workers}.json") for workers in (1, 2)]
    one, two = (check_complete(3, 2, run=run, workers=1 + i).check for i, run in enumerate(runs))
    assert replace(one, seconds=0.0) == replace(two, seconds=0.0) and one.is_proven
    assert {key: (r, r.pivots) for key, r in runs[0].results.items()} == {
        key: (r, r.pivots) for key, r in runs[1].results.items()
    }


def test_a_budget_holds_in_all_processes():
    with pytest.raises(OverBudget, match="memory"):
        completeness._compute_apart(Limits(megabytes=0.001), 4, 3, WORD_PRIME, 0, (5, ((4, 3, 2, 1), (3, 2))))


FORGED = {
    "another multiplicity": lambda r: [*r[:2], r[2] + 1, *r[3:]],
    "a generator": lambda r: [*r[:4], r[4] - 1, r[5], r[6], r[7][1:], r[8][1:]],
    "no minor": lambda r: [*r[:7], [], []],
    "a minor outside of the matrix": lambda r: [*r[:8], [r[2] + 7 + i for i in range(r[4])]],
    "flags that are numbers": lambda r: [*r[:5], 1, 1, *r[7:]],
}


@pytest.mark.parametrize("edit", FORGED.values(), ids=FORGED)
def test_a_forged_state_of_the_check_is_refused(edit, tmp_path, state_of_a_check, no_theorem):
    record = json.loads(state_of_a_check)
    place = next(i for i, r in enumerate(record["results"]) if r[4])
    record["results"][place] = edit(record["results"][place])
    with pytest.raises(FormatError, match=r"(contradicts|damaged)"):
        check_complete(3, 2, run=sealed(record, tmp_path))


def test_a_state_that_is_not_a_list_of_modules_is_refused(tmp_path, state_of_a_check):
    record = json.loads(state_of_a_check)
    first = record["results"][0]
    for results in ([first, first], {"0": first}, "results", None, [[first[0], [[2], [1, 4]], *first[2:]], [0]]):
        with pytest.raises(FormatError, match="damaged"):
            sealed({**record, "results": results}, tmp_path)
    # What is no partition is no module, in whatever degree.
    with pytest.raises(FormatError, match="contradicts"):
        sealed({**record, "results": [[1, [[2], [0, 1]], 1, 1, 0, True, True, [], []]]}, tmp_path)


def test_weight_spaces_are_not_taken_for_modules(tmp_path, no_theorem):
    """Weights of full length are highest weights too: (6, 3, 1; 3, 2) for d = 3 with two targets."""
    state = tmp_path / "weights.json"
    for _ in range(2):
        run = Run(Variety(3, 2, targets=2), 5, "weights", state=state)
        run.degrees()
        assert check_complete(3, 2, 2, run=run).is_checked


def test_what_a_state_leaves_unproven_is_computed_again(tmp_path, state_of_a_check, no_theorem):
    record = json.loads(state_of_a_check)
    for result in record["results"][::2]:
        result[5:7] = [False, False]
    run = sealed(record, tmp_path)
    assert check_complete(3, 2, run=run).is_checked
    assert all(r.is_rank_proven and r.is_generated_proven for r in run.results.values())


@pytest.fixture(scope="module")
def state_of_a_check(tmp_path_factory):
    path = tmp_path_factory.mktemp("state") / "state.json"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(completeness, "check_theorem", lambda: 0)
        check_complete(3, 2, run=Run(Variety(3, 2), 1, state=path))
    return path.read_text()


def sealed(record, folder):
    """The run that takes up this state, whose digest is right."""
    path = folder / "forged.json"
    path.write_text(json.dumps({**record, "digest": digest(record)}))
    return Run(Variety(3, 2), 1, state=path)


def test_progress_is_reported(no_theorem):
    calls = []
    check_complete(3, 3, progress=lambda degree, done, total: calls.append((degree, done, total)))
    assert calls[-1][0] == 6 and calls[-1][1] == calls[-1][2]


# ---------------------------------------------------------------- Theorem 6


def test_in_degrees_up_to_six_nothing_is_new_beyond_four():
    """Theorem 6, check 3: d = m = a decides degree n = d for all sizes; here n ≤ 5, n = 6 takes seven seconds."""
    degrees = Run(Variety(5, 5), 5).degrees()
    assert [d.minimal_generators for d in degrees] == [0, 0, 3500, 35000, 0]
    assert all(d.standing == "proven" for d in degrees)


def test_the_stored_log_of_the_universal_run(log):
    """Check 3 as it was run: d = m = a = 6, every module of degree ≤ 6 proven, with the pivots of its rank."""
    known = len(log.results)
    degrees = log.degrees()
    assert len(log.results) == known == 349
    assert [d.minimal_generators for d in degrees] == [0, 0, 19600, 308700, 0, 0]
    assert all(r.is_rank_proven and r.is_generated_proven for r in log.results.values())
    assert all(len(r.pivots.rows) == r.generated for r in log.results.values())


TOTAL_BETTI_NUMBERS = {-2: (4, 144, 1596), -1: (10, 129, 735), 0: (1, 105, 895), 1: (3, 27, 430), 2: (6, 71, 351)}


@pytest.mark.parametrize("x", TOTAL_BETTI_NUMBERS)
def test_betti_numbers_of_the_modules_of_theorem_6(x):
    """Check 1: the totals are those of a resolution by Macaulay2; nothing lies above the last degrees."""
    for i, total in enumerate(TOTAL_BETTI_NUMBERS[x]):
        numbers = [koszul.betti_number(x, i, n) for n in range(max(2, -x) + i + 1)]
        assert sum(numbers) == total
        assert max(n for n, number in enumerate(numbers) if number) == koszul.LAST_DEGREES[x][i]


def test_the_pieces_of_theorem_6_give_the_bound():
    """Check 2: the 64 pieces of each layer."""
    ends = {(e, i): koszul.last_degree_of_layer(e, i) for e, i in [(-1, 2), (-2, 1), (0, 1), (-3, 0), (-1, 0), (1, 0)]}
    assert ends == {(-1, 2): 6, (-2, 1): 5, (0, 1): 5, (-3, 0): 4, (-1, 0): 4, (1, 0): 5}


def hilbert_of_layer(e, n):
    """dim F^(e) in degree n on C^{3|1} × C^{3|1}, from its generators: even and odd ones of v, w, u, η."""
    total = 0
    for b, c in product(range(2 * n + 1), range(n + 1)):
        if c - b == e:
            total += super_symmetric(2 * n - b) * super_exterior(b) * super_symmetric(n - c) * super_exterior(c)
    return total


def super_symmetric(n):
    return sum(comb(n - odd + 2, 2) for odd in (0, 1) if n >= odd)


def super_exterior(n):
    return sum(comb(3, odd) for odd in range(min(n, 3) + 1))


@pytest.mark.parametrize("e", range(-4, 4))
def test_the_pieces_add_up_to_the_layer(e):
    for n in range(7):
        total = 0
        exponents = product(range(2), range(4), range(2), range(4))
        for (_, b, _, g), (s, x) in zip(exponents, koszul.pieces(e), strict=True):
            for k in range(n - s + 1):
                size = 2 * k + (n - s - k) + x
                if size >= 0:
                    total += comb(3, b) * comb(3, g) * comb(size + 2, 2) * comb(k + 2, 2)
        assert total == hilbert_of_layer(e, n)


def test_the_finite_part_that_all_sizes_share():
    assert check_theorem() == 38


def test_a_wrong_table_does_not_pass_the_check(monkeypatch):
    monkeypatch.setattr(koszul, "LAST_DEGREES", {**koszul.LAST_DEGREES, 1: (0, 1, 2)})
    monkeypatch.setattr(koszul, "STEPS", ((1, 2),))
    with pytest.raises(ArithmeticError, match=r"Tor_2\(M\(1\)\)"):
        check_theorem.__wrapped__()


LISTED = [
    *(dict(d=2, a=a, d_out=rows) for a in (1, 2) for rows in (2, 3)),
    *(dict(d=2, a=1, d_out=rows, heads=2, value_width=1) for rows in (1, 2, 3)),
    dict(d=3, a=1, tokens=1),
]


@pytest.mark.parametrize("sizes", LISTED, ids=str)
def test_the_other_lists_are_what_the_engine_finds(sizes):
    """Modules degree by degree up to 4, and the dimension by its own proof."""
    variety = Variety(**sizes)
    listed = complete_variety(variety)
    found = implicitize(variety, 4, check=False)
    modules = [(degree.degree, str(module)) for degree in found.degrees for module in degree.modules]
    assert sorted(modules) == sorted((degree, str(module)) for degree, module in listed.modules)
    widths, heads = (variety.d, variety.d_out), sizes.get("heads", 1)
    width = 1 if heads > 1 else None
    layer = Architecture(widths, variety.a, tokens=sizes.get("tokens", 2), heads=heads, value_width=width)
    assert dimension(layer).dimension == listed.dimension


def test_what_has_no_list_is_refused():
    """Deep networks above all, whose equations are others, and heads of other ranks."""
    for sizes in (
        dict(d=2, a=2, hidden=(2,)),
        dict(d=2, a=2, hidden=(2,), tokens=1),
        dict(d=3, a=3, d_out=2),
        dict(d=2, a=2, d_out=2, heads=2, value_width=1),
        dict(d=2, a=1, d_out=2, value_width=1),
        dict(d=4, a=2, tokens=1),
        dict(d=2, a=1, d_out=2, targets=3),
    ):
        with pytest.raises(InputError, match="lists are known"):
            complete_variety(Variety(**sizes))
