"""Completeness in all degrees: the theorems of docs/completeness.md against computation, and the finite check."""

from itertools import permutations

import numpy as np
import pytest

from attngeom.equations.ideal import Budget, CrossColumn, Run, completeness, prove_complete
from attngeom.equations.ideal.completeness import candidates, generator_bound, last_degree
from attngeom.equations.ideal.formulas import generator_degree_bound
from attngeom.equations.ideal.tableaux import plethysm
from attngeom.errors import InputError, SizeError
from attngeom.exact.combinations import permutation_sign
from attngeom.exact.partitions import strip

# ---------------------------------------------------------------- Theorem 1: the coordinate ring


def add(*shapes):
    length = max(map(len, shapes))
    return strip(tuple(sum(s[i] if i < len(s) else 0 for s in shapes) for i in range(length)))


def weights_of_theorem_1(degree, rows):
    """All (λ, μ) of one degree in the semigroup of f_j and g_j, without the exceptions."""
    generators = [("f", j, (j + 1, *(1,) * (j - 1)), (1,) * j) for j in range(1, degree + 1)]
    generators += [("g", j, (j, *(1,) * j), (1,) * j) for j in range(1, degree + 1)]
    found = set()

    def extend(start, rest, chosen):
        if rest == 0:
            others = [(name, j) for name, j, _, _ in chosen if (name, j) != ("f", 1)]
            only_g1 = all(x == ("g", 1) for x in others)
            excluded = (only_g1 and len(others) % 2) or (len(others) == 1 and others[0][0] == "g")
            lam, mu = add(*(x[2] for x in chosen)), add(*(x[3] for x in chosen))
            if not excluded and len(lam) <= rows and len(mu) <= rows:
                found.add((lam, mu))
            return
        for place in range(start, len(generators)):
            if generators[place][1] <= rest:
                extend(place, rest - generators[place][1], [*chosen, generators[place]])

    extend(0, degree, [])
    return found


@pytest.mark.parametrize(("d", "degree"), [(2, 7), (3, 6), (4, 5), (5, 4)])
def test_the_coordinate_ring_is_the_semigroup_of_theorem_1(d, degree):
    run = Run(CrossColumn(d, d), degree)
    run.summary()
    occurring = {weight for (n, weight), r in run.results.items() if n == degree and r.rank}
    assert occurring == weights_of_theorem_1(degree, d)
    assert all(r.rank <= 1 for r in run.results.values())


def random_layer(l, seed):
    rng = np.random.default_rng(seed)
    return rng.integers(-4, 5, l + 1), rng.integers(-4, 5, (l, l + 1))


def levi_civita(size):
    eps = np.zeros((size,) * size, dtype=np.int64)
    for p in permutations(range(size)):
        eps[p] = permutation_sign(p)
    return eps


def covariant(l, quadrics, extra):
    """Terms of Σ_j (-1)^j q_j Π Δ(q_i): (sign, labels of the l+1 symmetric factors, labels of the wedge)."""
    terms = []
    for j in range(l):
        labels = [(2 * i, 2 * i + 1) for i in range(l)]
        first = [*labels[j], *(labels[i][0] for i in range(l) if i != j)]
        second = [labels[i][1] for i in range(l) if i != j]
        terms.append(((-1) ** (j + 1), first, second))
    operands = [x for i, q in enumerate(quadrics) for x in (q, [2 * i, 2 * i + 1])]
    return terms, operands + [x for k, q in enumerate(extra) for x in (q, [2 * (l + k), 2 * (l + k) + 1])]


def highest(l, operands, long_wedge, short_wedges, rest):
    """The coordinate (e_1∧…∧e_{l+1}) ⊗ (e_1∧e_2)^k ⊗ e_1^… of a contraction."""
    minor = np.zeros((l + 1, l + 1), dtype=np.int64)
    minor[0, 1], minor[1, 0] = 1, -1
    unit = np.eye(l + 1, dtype=np.int64)[0]
    extra = [levi_civita(l + 1), long_wedge]
    for pair in short_wedges:
        extra += [minor, pair]
    for label in rest:
        extra += [unit, [label]]
    return int(np.einsum(*operands, *extra, [], optimize="greedy"))


def polar(v, a):
    return np.outer(v, a) + np.outer(a, v)


def values(v, A):
    """f_j and g_j of docs/completeness.md, as functions of j."""

    def f(j):
        return int(v[0]) ** j * round(np.linalg.det(A[:j, :j].T))

    def g(j):
        return int(v[0]) ** (j - 1) * round(np.linalg.det(np.column_stack([v[: j + 1], A[:j, : j + 1].T])))

    return f, g


@pytest.mark.parametrize("l", [1, 2, 3])
def test_the_covariants_a_and_b_give_g1_gl_and_twice_g1_gl(l):
    ratios = {"A": set(), "B": set()}
    for seed in range(4):
        v, A = random_layer(l, seed)
        _, g = values(v, A)
        quadrics = [polar(v, a) for a in A]
        one, two = 2 * l, 2 * l + 2
        total = {"A": 0, "B": 0}
        terms, operands = covariant(l, quadrics, [quadrics[0]])
        _, longer = covariant(l, quadrics, [quadrics[0], quadrics[0]])
        for coefficient, first, second in terms:
            for x in first:
                for y in (s for s in first if s != x):
                    wedge = [*second, x, one]
                    rest = [s for s in first if s not in (x, y)]
                    total["A"] += coefficient * highest(l, operands, wedge, [[y, one + 1]], rest)
                    for z in rest:
                        left = [s for s in rest if s != z] + [two + 1]
                        total["B"] += coefficient * highest(l, longer, wedge, [[y, one + 1], [z, two]], left)
        if g(1) * g(l):
            ratios["A"].add(total["A"] / (g(1) * g(l)))
            ratios["B"].add(total["B"] / (g(1) ** 2 * g(l)))
    for name, ratio in ratios.items():
        assert len(ratio) == 1
        assert (ratio.pop() == 0) == (name == "B" and l == 1)


@pytest.mark.parametrize("l", [2, 3])
def test_the_covariant_c_gives_f2_gl(l):
    ratios = set()
    for seed in range(4):
        v, A = random_layer(l, seed)
        f, g = values(v, A)
        quadrics = [polar(v, a) for a in A]
        terms, operands = covariant(l, quadrics, quadrics[:2])
        one, two = [2 * l, 2 * l + 1], [2 * l + 2, 2 * l + 3]
        small = [(-1, [*one, two[0]], two[1]), (1, [*two, one[0]], one[1])]
        total = 0
        for coefficient, first, second in terms:
            for factor, cubic, vector in small:
                for x in first:
                    for s in cubic:
                        for t in (t for t in cubic if t != s):
                            rest = [r for r in first if r != x] + [r for r in cubic if r not in (s, t)]
                            part = highest(l, operands, [*second, x, s], [[vector, t]], rest)
                            total += coefficient * factor * part
        if f(2) * g(l):
            ratios.add(total / (f(2) * g(l)))
    assert len(ratios) == 1 and ratios.pop() != 0


@pytest.mark.parametrize("l", [2, 3, 4, 5])
def test_the_combination_d_gives_fl_g1(l):
    products = []
    for seed in range(4):
        v, A = random_layer(l, seed)
        f, g = values(v, A)
        a = A.T[:, :l]
        rows = {(i, j): v[i] * a[i] if i == j else v[i] * a[j] + v[j] * a[i] for j in range(l) for i in range(j + 1)}

        def minor(*pairs, rows=rows):
            return round(np.linalg.det(np.array([rows[pair] for pair in pairs])))

        ones = [(0, j) for j in range(l)]
        first = int(rows[0, 0][0])
        total = -l * minor(*ones) * int(rows[0, 1][0]) + 4 * minor((0, 0), (1, 1), *ones[2:]) * first
        total += sum(2 * minor(*ones[:j], (1, j), *ones[j + 1 :]) * first for j in range(2, l))
        assert total == -l * f(l) * g(1)
        products.append(f(l) * g(1))
    assert any(products)


# ---------------------------------------------------------------- Theorem 4 and the check


def test_the_bound_is_2d_and_does_not_grow_with_d_for_one_attention_width():
    assert [generator_bound(d, d, d) for d in range(3, 12)] == [2 * d for d in range(3, 12)]
    assert [generator_bound(2, a, m) for a, m in ((2, 2), (2, 5))] == [4, 4]
    assert generator_bound(9, 9, 1) == generator_bound(9, 1, 9) == 3
    assert [generator_bound(d, 5, d) for d in (20, 50, 1000)] == [12] * 3
    with pytest.raises(InputError, match="positive"):
        generator_bound(0, 1, 1)


def test_more_directions_than_rows_change_no_candidate():
    assert all(last_degree(d, m, l) == 2 * l + 3 for l in range(2, 9) for d, m in ((l + 3, l + 2), (40, 50)))
    assert candidates(7, 7, 5) == candidates(5, 5, 5) != candidates(4, 4, 5)
    assert candidates(7, 3, 7) == candidates(5, 3, 7) != candidates(4, 3, 7)


@pytest.mark.parametrize("l", [2, 3, 4])
def test_modules_with_three_more_rows_do_not_occur(l):
    """The three multiplicities that docs/completeness.md needs for ℓ(λ) ≤ ℓ(μ) + 2."""
    assert (l + 1, *(1,) * (l - 1)) not in plethysm(strip((2, *(1,) * (l - 2))), l + 1)
    cubic = plethysm((3, *(1,) * (l - 2)), l + 1)
    assert (l + 2, *(1,) * l) not in cubic and (l + 1, 2, *(1,) * (l - 1)) not in cubic


def test_candidates_are_modules_of_the_polynomial_ring_of_the_right_degree():
    for degree in (5, 6, 7):
        found = candidates(4, 4, degree)
        assert found and len(set(found)) == len(found)
        assert all(sum(lam) == 2 * degree and sum(mu) == degree for lam, mu in found)


@pytest.mark.parametrize(
    ("d", "a", "m"), [(1, 1, 1), (2, 2, 2), (2, 2, 4), (3, 2, 3), (3, 3, 4), (4, 1, 4), (4, 3, 5), (6, 6, 3)]
)
def test_the_list_is_complete(d, a, m):
    found = prove_complete(d, a, m)
    assert found.is_complete and found.is_proven and not found.new
    assert generator_degree_bound(d, a, m).status == "proven" and generator_degree_bound(d, a, m).value == found.degree
    assert [degree for degree, _ in found.checked] == list(range(5, found.bound + 1))


def test_a_smaller_attention_width_needs_no_module_with_more_rows():
    full, small = prove_complete(4, 4), prove_complete(4, 2)
    assert small.bound < full.bound and sum(n for _, n in small.checked) < sum(n for _, n in full.checked)
    # The (a+1)-minors may have a larger degree than everything else that is looked at.
    assert generator_bound(12, 11, 12) >= 12


def test_a_module_that_is_missing_is_found(monkeypatch):
    monkeypatch.setattr(completeness, "LAST_COMMON_DEGREE", 3)
    found = prove_complete(4, 4)
    assert found.new == ((4, ((3, 3, 1, 1), (2, 2)), 1),)
    assert not found.is_complete
    assert found.to_json()["new"] == [{"degree": 4, "lambda": [3, 3, 1, 1], "mu": [2, 2], "multiplicity": 1}]


def test_the_check_agrees_with_full_runs():
    run = Run(CrossColumn(4, 4), 6)
    run.summary()
    for degree in (5, 6):
        new = {w for (n, w), r in run.results.items() if n == degree and r.ideal_dimension > r.generated}
        assert not new
        assert set(candidates(4, 4, degree)) <= {w for n, w in run.results if n == degree}


@pytest.mark.parametrize("budget", [Budget(seconds=0), Budget(megabytes=0.001)])
def test_a_budget_ends_the_check_without_a_verdict(budget):
    found = prove_complete(4, 4, budget=budget)
    assert not found.is_proven and not found.is_complete and not found.new
    assert len(found.checked) < found.bound - 4


@pytest.mark.parametrize(("d", "a"), [(8, 8), (100, 7), (1000, 1000)])
def test_sizes_out_of_reach_are_refused(d, a):
    with pytest.raises(SizeError, match="too large"):
        prove_complete(d, a)


def test_progress_is_reported():
    calls = []
    prove_complete(3, 3, progress=lambda degree, done, total: calls.append((degree, done, total)))
    assert calls[-1][0] == 6 and calls[-1][1] == calls[-1][2]
