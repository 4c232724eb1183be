"""Theorem 1 of docs/theorems/completeness.md, the coordinate ring, against computation."""

from itertools import permutations

import numpy as np
import pytest

from attngeom.equations import Variety
from attngeom.equations.ideal import Run
from attngeom.exact.multisets import permutation_sign
from attngeom.exact.partitions import strip


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
    run = Run(Variety(d, d), degree)
    run.degrees()
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
    """f_j and g_j of docs/theorems/completeness.md, as functions of j."""

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
