"""Every family vanishes on its variety, is nonzero off it, and says the same as its polynomials."""

from __future__ import annotations

import numpy as np
import pytest
import sympy

from attngeom.equations import Family, Points, Variety, families, find_family, random_points
from attngeom.equations.family import vanishes_at_random, vanishes_identically
from attngeom.equations.ideal import implicitize
from attngeom.errors import InputError, SizeError
from attngeom.exact import GF, QQ, RR, WORD_PRIME, rank_mod_p
from attngeom.exact.domains import Array, Domain
from attngeom.exact.multisets import pair_index, triple_index, triples
from tests.effort import choose, thorough
from tests.exact.expressions import as_sympy

VARIETIES = [
    Variety(2, 1, tokens=2),
    Variety(2, 2, tokens=3, d_out=2),
    Variety(2, 1, tokens=2, d_out=3),
    Variety(3, 1, tokens=2),
    Variety(3, 2, tokens=2, d_out=2),
    Variety(3, 3, d_out=4),
    Variety(4, 1, tokens=1),
    Variety(3, 2, tokens=1, d_out=4),
    Variety(4, 2, targets=2),
    Variety(4, 4),
    Variety(4, 3, targets=5),
    Variety(5, 2, targets=3),
]
FIELD = GF(WORD_PRIME)


def random_ambient(variety: Variety, domain: Domain, rng: np.random.Generator, count: int = 1) -> Points:
    on = random_points(variety, count, domain, rng)
    single = None if on.single is None else domain.random(on.single.shape, rng)
    return Points(single, None if on.cross is None else domain.random(on.cross.shape, rng), domain)


def look_up(name: str, points: Points, variety: Variety) -> int:
    """The value of a coordinate that is given by name."""
    kind, *rest = name.split("_")
    indices = [int(i) for i in rest]
    row = indices.pop(0) if variety.d_out > 1 else 0
    *columns, k, l, m = indices
    if kind in ("y", "yc"):
        assert points.cross is not None
        column, context = columns or (0, 1)
        return points.cross[0, row, column, context - (context > column), pair_index(variety.d)[k, l], m]
    assert points.single is not None
    return points.single[0, row, columns[0] if columns else 0, triple_index((k, l, m), variety.d)]


def sample_indices(f: Family, rng: np.random.Generator, size: int = 4) -> list[int]:
    return sorted({0, f.count - 1, *(int(x) for x in rng.integers(0, min(f.count, 2**62), size))})


def evaluate_at(f: Family, points: Points, indices: list[int]) -> Array:
    return np.concatenate([f.evaluate(points, k, k + 1) for k in indices], axis=-1)


@pytest.mark.parametrize("variety", VARIETIES, ids=str)
def test_families_vanish_on_the_image(variety: Variety) -> None:
    rng = np.random.default_rng(1)
    points = random_points(variety, 2, FIELD, rng)
    for f in families(variety):
        assert not f.evaluate(points, 0, min(f.count, 500)).any(), f.name
        assert not evaluate_at(f, points, sample_indices(f, rng)).any(), f.name


@pytest.mark.parametrize("variety", VARIETIES, ids=str)
def test_families_are_nonzero_off_the_variety(variety: Variety) -> None:
    points = random_ambient(variety, FIELD, np.random.default_rng(2))
    for f in families(variety):
        assert f.evaluate(points, 0, min(f.count, 200)).any(), f.name


@pytest.mark.parametrize("variety", VARIETIES, ids=str)
def test_polynomials_agree_with_evaluation(variety: Variety) -> None:
    rng = np.random.default_rng(3)
    points = random_ambient(variety, FIELD, rng)
    for f in families(variety):
        for k in sample_indices(f, rng, choose(1, 2)):
            try:
                polynomial = f[k].polynomial()
            except SizeError:
                assert f.degree > 9
                continue
            assert {sum(exponents) for exponents, _ in polynomial.terms} == {f.degree}
            place = [int(look_up(name, points, variety)) for name in polynomial.variables]
            assert int(polynomial.to_flint(FIELD)(*place)) == int(f.evaluate(points, k, k + 1)[0, 0]), f[k].label
            assert f[k].label.startswith(f.name)


def test_members_written_out_by_hand() -> None:
    """One member of each kind against its definition, in SymPy, which shares no code with the families."""

    def y(k: int, l: int, m: int) -> sympy.Symbol:
        return sympy.Symbol(f"y_{min(k, l)}_{max(k, l)}_{m}")

    def same(name: str, index: int, expected: sympy.Expr, variety: Variety) -> bool:
        return sympy.expand(as_sympy(find_family(variety, name)[index].polynomial()) - expected) == 0

    square = Variety(3, 3)
    c = sympy.symbols("c0:3")
    pencil = sympy.Matrix(3, 3, lambda k, l: sum(c[m] * y(k, l, m) for m in range(3))).det()
    multiset = find_family(square, "slice-pencil")[4].label.split("K=")[1]
    power = c[0] ** multiset.count("0") * c[1] ** multiset.count("1") * c[2] ** multiset.count("2")
    assert same("slice-pencil", 4, sympy.Poly(pencil, *c).coeff_monomial(power), square)
    pairs = [(0, 0), (0, 1), (0, 2)]
    minor = sympy.Matrix(3, 3, lambda i, m: y(*pairs[i], m)).det()
    assert same("attention-rank", 0, minor, Variety(3, 2))
    assert same(
        "binary-restriction", 0, sympy.Matrix(3, 3, lambda i, m: y(*[(0, 0), (0, 1), (1, 1)][i], m)).det(), square
    )
    P, B, R = (sympy.Matrix([[y(*S, 0), y(*S, 1)]]) for S in ((0, 0), (0, 1), (1, 1)))
    PR, PB, BR = (sympy.Matrix.vstack(a, b).det() for a, b in ((P, R), (P, B), (B, R)))
    assert same("sylvester-resultant", 0, PR**2 - 4 * PB * BR, square)
    D = {
        alpha: sympy.Matrix(rows).det()
        for alpha, rows in {
            (2, 0): [[y(0, 0, 0), y(0, 0, 1)], [2 * y(0, 1, 0), 2 * y(0, 1, 1)]],
            (1, 1): [[y(0, 0, 0), y(0, 0, 1)], [y(1, 1, 0), y(1, 1, 1)]],
            (0, 2): [[2 * y(0, 1, 0), 2 * y(0, 1, 1)], [y(1, 1, 0), y(1, 1, 1)]],
        }.items()
    }
    assert same("veronese-catalecticant-2", 0, D[2, 0] * D[0, 2] - D[1, 1] ** 2, square)


SMALL = [(v, f.name) for v in VARIETIES for f in families(v) if f.span is not None and f.count < choose(60, 250)]


@pytest.mark.parametrize(("variety", "name"), SMALL, ids=str)
def test_listed_span_is_the_rank_of_the_values(variety: Variety, name: str) -> None:
    f, rng = find_family(variety, name), np.random.default_rng(4)
    assert f.span is not None
    values = f.evaluate(random_ambient(variety, FIELD, rng, f.span + 5))
    assert rank_mod_p(values, WORD_PRIME) == f.span


@pytest.mark.parametrize("domain", [QQ, RR, FIELD, GF(2**61 - 1)], ids=["QQ", "RR", "GF", "big GF"])
def test_every_domain_gives_the_same_values(domain: Domain) -> None:
    variety = Variety(3, 2, tokens=2, d_out=2)
    rng = np.random.default_rng(5)
    exact = random_ambient(variety, QQ, rng)
    assert exact.single is not None and exact.cross is not None
    points = Points(domain.convert(exact.single), domain.convert(exact.cross), domain)
    for f in families(variety):
        stop = min(f.count, 30)
        expected = domain.convert(f.evaluate(exact, 0, stop))
        found = f.evaluate(points, 0, stop)
        if domain is RR:
            assert np.allclose(found.astype(float), expected.astype(float), rtol=1e-9, atol=1e-6)
        else:
            assert domain.equal(found, expected)


def test_ranges_are_slices_of_the_whole() -> None:
    variety = Variety(3, 2, tokens=2, d_out=2)
    points = random_ambient(variety, FIELD, np.random.default_rng(6))
    for f in families(variety):
        if f.count > 2000:
            continue
        whole = f.evaluate(points)
        start, stop = f.count // 3, f.count // 3 + max(1, f.count // 2)
        assert np.array_equal(f.evaluate(points, start, stop), whole[..., start:stop])
        assert f.evaluate(points, 0, 0).shape == (1, 0)


def test_late_members_are_reached_directly() -> None:
    for f in families(Variety(12, 3, tokens=2, d_out=2)):
        if f.degree <= 9:
            assert f[f.count - 1].degree == f.degree


@pytest.mark.parametrize("index", [-1, 10])
def test_member_out_of_range_is_an_input_error(index: int) -> None:
    with pytest.raises(InputError, match="numbered from 0"):
        find_family(Variety(3, 3), "slice-pencil")[index]


def test_unknown_family_is_an_input_error() -> None:
    with pytest.raises(InputError, match="slice-pencil"):
        find_family(Variety(3, 3), "nonsense")


def test_a_polynomial_in_very_many_coordinates_is_refused_and_a_minor_is_not() -> None:
    large = Variety(40, 2)
    with pytest.raises(SizeError, match="evaluate it instead"):
        find_family(large, "slice-pencil")[5].polynomial()
    f = find_family(large, "attention-rank")
    assert len(f[f.count // 3].polynomial().terms) == 6


def test_families_of_masked_layers_are_refused() -> None:
    with pytest.raises(InputError, match="plain layer"):
        families(Variety(2, 1, tokens=2, causal=True))


HEADS = [(2, 1, 1, 2, 4), (2, 1, 1, 3, 36), (2, 1, 2, 2, 0), (2, 2, 1, 2, 0), (2, 2, 1, 3, 20), (3, 1, 1, 1, 20)]
HEADS += [(3, 2, 1, 1, 0), (2, 1, 2, 4, 0)]
"""d, a, v, d', cubics of two heads."""


@pytest.mark.parametrize(("d", "a", "v", "d_out", "cubics"), [*HEADS, *thorough((3, 1, 1, 2, 540), (3, 1, 2, 1, 20))])
def test_flattenings_of_two_heads_are_all_their_cubics(d: int, a: int, v: int, d_out: int, cubics: int) -> None:
    variety = Variety(d, a, d_out=d_out, heads=2, value_width=v)
    found = implicitize(variety, 3, families=False, check=False)
    assert [degree.ideal_dimension for degree in found.degrees] == [0, 0, cubics]
    members = [family for family in families(variety) if family.degree == 3]
    for family in families(variety):
        # Minors of the commutant have up to nineteen rows of polynomials: random weights tell as much.
        small = family.degree <= 4
        assert vanishes_identically(family, 0, min(family.count, 3)) if small else vanishes_at_random(family, 0, 3)[0]
    field, count = GF(WORD_PRIME), sum(family.count for family in members)
    y = field.random((count + 5, d_out, 1, 1, variety.num_pairs, d), np.random.default_rng(0))
    values = [family.evaluate(Points(None, y, field)) for family in members]
    assert (rank_mod_p(np.concatenate(values, axis=-1), WORD_PRIME) if members else 0) == cubics


@pytest.mark.parametrize(("d", "t"), [(2, 2), (2, 4), (3, 3)])
def test_linear_relations_of_one_entry_are_all_of_them(d: int, t: int) -> None:
    """For every column: they vanish on layers, and leave the D·d cross coordinates of one context free."""
    variety = Variety(d, d, tokens=t)
    pairs, triples = d * (d + 1) // 2, d * (d + 1) * (d + 2) // 6
    points = random_points(variety, 3, FIELD, np.random.default_rng(d + t))
    for column in range(t):
        linear = [f for f in families(variety, column) if f.degree == 1]
        assert sum(f.count for f in linear) == (t - 2) * pairs * d + triples
        names: set[str] = set()
        for f in linear:
            assert FIELD.is_zero(f.evaluate(points))
            names |= {name for x in f for name in x.polynomial().variables}
        assert len(names - {name for name in names if name.startswith("yc_")}) == triples + pairs * d
        copies = {name for name in names if name.startswith("yc_")}
        assert all(name.startswith(f"yc_{column}_") for name in copies) and len(copies) == (t - 2) * pairs * d
        assert not any(name.startswith("sc_") for name in names)


def test_polynomials_of_one_entry_agree_with_evaluation() -> None:
    """Off the variety, at a point whose columns all differ."""
    variety, rng = Variety(2, 2, tokens=3), np.random.default_rng(4)
    points = Points(QQ.random((1, 3, 4), rng), QQ.random((1, 3, 2, 3, 2), rng), QQ)
    assert points.single is not None and points.cross is not None
    index = {S: k for k, S in enumerate(((0, 0), (0, 1), (1, 1)))}
    for column in range(3):
        others = [n for n in range(3) if n != column]
        for f in (x for x in families(variety, column) if x.degree == 1):
            for k, value in enumerate(f.evaluate(points)):
                total = QQ.convert(0)
                for exponents, c in f.polynomial(k).terms:
                    (name,) = (x for x, e in zip(f.polynomial(k).variables, exponents) if e)
                    kind, *rest = name.split("_")
                    *place, i, j, m = map(int, rest)
                    if kind == "s":
                        total += c * points.single[0, column, triples(2).index((i, j, m))]
                    else:
                        context = 0 if kind == "y" else others.index(place[1])
                        total += c * points.cross[0, column, context, index[i, j], m]
                assert total == value


@pytest.mark.parametrize("name", ["sylvester-resultant", "binary-restriction"])
@pytest.mark.parametrize("count", [1, 4, choose(9, 16)])
def test_the_span_on_given_lines_is_the_rank_of_the_values(name: str, count: int) -> None:
    """Random lines, some of them twice: the span is that of the members at random points of the ambient space."""
    rng, d = np.random.default_rng(count), 3
    drawn = [tuple(map(tuple, rng.integers(-3, 4, (2, d)).tolist())) for _ in range(3 * count)]
    lines = [line for line in drawn if np.linalg.matrix_rank(np.array(line)) == 2][:count]
    lines += [(tuple(2 * x for x in lines[0][0]), lines[0][1])]
    variety = Variety(d, d)
    f = find_family(variety, name, lines=tuple(lines))
    assert f.count == len(lines) * find_family(variety, name, lines=tuple(lines[:1])).count
    ambient = Points.of_cross(FIELD.random((f.count + 10, 6, d), rng), FIELD)
    assert rank_mod_p(f.evaluate(ambient), WORD_PRIME) == f.span
    on_layers = random_points(variety, 4, FIELD, rng)
    assert FIELD.is_zero(f.evaluate(on_layers))


def test_how_many_lines_are_enough() -> None:
    """[I] Example 42: fifteen generic lines give all 90 quartics of d = 3, fourteen give 84."""
    rng, variety = np.random.default_rng(0), Variety(3, 3)
    lines = tuple(tuple(map(tuple, rng.integers(-9, 10, (2, 3)).tolist())) for _ in range(15))
    assert [find_family(variety, "sylvester-resultant", lines=lines[:k]).span for k in (1, 14, 15)] == [6, 84, 90]
