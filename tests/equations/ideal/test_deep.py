"""Coordinates and first equations of deep networks, against evaluation of networks and known varieties."""

from __future__ import annotations

from math import comb

import numpy as np
import pytest

from attngeom.equations import Variety, families
from attngeom.equations.ideal import implicitize
from attngeom.equations.ideal.coordinates import coordinates
from attngeom.equations.ideal.deep_coordinates import DeepCoordinates
from attngeom.equations.ideal.export import describe_ideal
from attngeom.equations.ideal.weight_spaces import WeightEngine
from attngeom.errors import InputError, SizeError
from attngeom.exact.domains import GF, QQ, Array
from attngeom.exact.multisets import pairs
from attngeom.exact.numbers import WORD_PRIME
from attngeom.network import Architecture, Weights, forward

SIZES: list[tuple[int, tuple[int, ...], int, int | None]] = [
    (2, (2,), 1, 1),
    (2, (1,), 2, 1),
    (3, (2,), 1, 1),
    (1, (2,), 2, 1),
    (2, (2, 1), 1, 1),
]
SIZES += [(2, (2,), 1, None), (2, (1,), 2, None), (1, (1,), 1, None), (3, (1,), 1, None)]
"""d, hidden widths, d', tokens (None: t ≥ d)."""


@pytest.mark.parametrize(("d", "hidden", "rows", "tokens"), SIZES)
def test_coordinates_are_those_of_networks(d: int, hidden: tuple[int, ...], rows: int, tokens: int | None) -> None:
    """φ(X) from the coordinates of given matrices, with all orders of their labels, is the network at X."""
    variety, rng = Variety(d, d, tokens, rows, hidden=hidden), np.random.default_rng(d)
    deep, t = DeepCoordinates(variety), tokens or d + 1
    drawn = {name: QQ.convert(rng.integers(-3, 4, sizes)) for name, *sizes in deep._weights()}
    widths, tensors = [d], dict[str, Array]()
    for i in range(1, variety.layers + 1):
        A = drawn[f"A{i}"] if f"A{i}" in drawn else QQ.matmul(drawn[f"K{i}"].T, drawn[f"Q{i}"])
        V = drawn.get(f"V{i}", QQ.eye(d))
        widths.append(len(V))
        tensors |= {f"layers.{i - 1}.K": QQ.eye(len(A)), f"layers.{i - 1}.Q": A, f"layers.{i - 1}.V": V}
    weights = Weights.from_tensors(Architecture(tuple(widths), tuple(widths[:-1]), tokens=t), tensors, QQ)
    values = deep._values(lambda name, *_: drawn[name][None], QQ)[0]
    X = QQ.convert(rng.integers(-3, 4, (d, t)))
    S, total = QQ.matmul(X, X.T), QQ.zeros((rows, t))
    for number, (value, (monomial, column)) in enumerate(zip(values, deep._monomials * rows)):
        row, term = number // len(deep._monomials), value * _orders(monomial)
        for s in monomial:
            k, l = (s, 0) if tokens == 1 else pairs(d)[s]
            term *= X[k, 0] if tokens == 1 else S[k, l] * (1 if k == l else 2)
        total[row] = total[row] + (term if tokens == 1 else term * X[column[0]])
    assert QQ.is_zero(total - forward(weights, X))


def _orders(monomial: tuple[int, ...]) -> int:
    count, left = 1, len(monomial)
    for x in set(monomial):
        count *= comb(left, monomial.count(x))
        left -= monomial.count(x)
    return count


@pytest.mark.parametrize("tokens", [1, None])
def test_groups_act_on_the_coordinates(tokens: int | None) -> None:
    """Swapping the basis permutes coordinates; the raising operator is the derivative of a change of basis."""
    variety = Variety(2, 2, tokens, hidden=(2,))
    deep, p = coordinates(variety), WORD_PRIME
    assert isinstance(deep, DeepCoordinates)
    swapped = deep.permute([np.array([[1, 0]])])[0]
    assert sorted(swapped.tolist()) == list(range(len(deep.all)))
    weights = [deep.weights[i][0] for i in swapped]
    assert weights == [weight[0][::-1] for weight in deep.weights]
    # X ↦ gX with g = 1 + ε E_01 takes M to gᵀMg and L to Lg.
    field, rng = GF(p), np.random.default_rng(2)
    given = {name: field.random((1, rows, columns), rng) for name, rows, columns in deep._weights()}

    def moved(epsilon: int) -> Array:
        g = field.convert([[1, epsilon], [0, 1]])[None]
        new = {
            name: field.matmul(field.matmul(np.swapaxes(g, 1, 2), M) if name[0] == "A" else M, g)
            for name, M in given.items()
        }
        return np.asarray(deep._values(lambda name, *_: new[name], field)[0])

    # A polynomial of degree 9 n in ε: its linear coefficient by interpolation.
    degree = 9
    nodes = np.arange(degree + 1)
    table = np.array([[pow(int(x), k, p) for k in range(degree + 1)] for x in nodes])
    solution = field.solve(field.convert(table), np.array([moved(int(x)) for x in nodes]))
    assert solution is not None
    values = moved(0)
    expected = [sum(f * int(values[k]) for f, k in image) % p for image in deep.replace_index(0, 1, 0)]
    assert solution[1].tolist() == expected


def test_first_equations_of_two_layers_of_width_two() -> None:
    """q³ g: 14 quintics; cubes of cubics: from degree 3 on all forms of degree 3 n in the cubic, C(3n+3, 3)."""
    quintics = implicitize(Variety(2, 2, 1, hidden=(2,)), 5, families=False, check=False, prove=True).degrees
    assert [degree.ideal_dimension for degree in quintics] == [0, 0, 0, 0, 14]
    assert [m.shapes for m in quintics[4].modules] == [((29, 16),)] and quintics[4].is_dimension_proven
    cubes = implicitize(Variety(2, 2, 1, hidden=(1,)), 4, families=False, check=False).degrees
    assert [degree.hilbert_function for degree in cubes] == [10, 55, *(comb(3 * n + 3, 3) for n in (3, 4))]


def test_equations_of_two_layers_over_several_tokens() -> None:
    quadrics = implicitize(Variety(2, 2, hidden=(1,)), 2, families=False, check=False, prove=True).degrees
    assert [degree.ideal_dimension for degree in quadrics] == [0, 68] and quadrics[1].is_dimension_proven


def test_width_one_has_no_equations() -> None:
    for hidden in ((1,), (3,), (2, 2)):
        for tokens in (1, None):
            variety = Variety(1, 1, tokens, 2, hidden=hidden)
            assert all(d.ideal_dimension == 0 for d in implicitize(variety, 3, families=False, check=False).degrees)


def test_attention_of_rank_one_has_the_same_equations_on_one_token() -> None:
    """sym(kqᵀ) is every binary quadric that splits, over C all."""
    engines = [WeightEngine(Variety(2, a, 1, hidden=(2,)), seed=a) for a in (1, 2)]
    ranks = [[engine.kernel(5, weight).rank for weight in engine.weights(5)] for engine in engines]
    assert ranks[0] == ranks[1]


def test_what_is_refused() -> None:
    with pytest.raises(InputError, match="certify --layers"):
        families(Variety(2, 2, 1, hidden=(2,)))
    with pytest.raises(InputError, match="one plain head"):
        Variety(2, 1, 1, hidden=(2,), heads=2)
    with pytest.raises(InputError, match="stands for d or more"):
        Variety(2, 2, 2, hidden=(2,))
    with pytest.raises(InputError, match="hidden width"):
        Variety(2, 2, 1, hidden=(0,))
    with pytest.raises(InputError, match="at most 4"):
        Variety(2, 2, 1, hidden=(2, 2, 2, 2))
    with pytest.raises(SizeError, match="coordinates of a deep network"):
        coordinates(Variety(6, 2, hidden=(6,)))


def test_files_say_what_the_coordinates_of_deep_networks_are() -> None:
    one, more = (describe_ideal(Variety(2, 2, hidden=(2,), tokens=t), None)[0] for t in (1, None))
    assert one.startswith("s_(k,l,...): coefficient of x_k0 x_l0")
    assert more.startswith("p_(k,l,...,m): coefficient of S_kl")
