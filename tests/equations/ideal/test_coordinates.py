"""Coordinates: those of real layers, symmetric under permutations of the indices."""

from itertools import combinations_with_replacement
from math import comb

import numpy as np
import pytest

from attngeom.equations import Variety
from attngeom.equations.ideal.coordinates import coordinates
from attngeom.equations.ideal.monomials import MonomialTable, evaluate_monomials
from attngeom.equations.ideal.weight_spaces import WeightEngine
from attngeom.equations.variety import cross_coordinates
from attngeom.errors import InputError
from attngeom.exact import GF, WORD_PRIME
from attngeom.exact.partitions import orbit_size
from attngeom.layer.coefficients import coefficients
from attngeom.network import Architecture, random_weights

MODELS: list[Variety] = [
    Variety(2, 1),
    Variety(3, 2, targets=2),
    Variety(2, 1, d_out=2, heads=2, value_width=1),
    Variety(3, 1, tokens=1),
    Variety(2, 2, tokens=2, causal=True),
    Variety(2, 1, tokens=2, d_out=2, residual=True),
]


def test_cross_column_coordinates_are_the_scaled_coefficients_of_a_layer() -> None:
    field = GF(WORD_PRIME)
    weights = random_weights(Architecture((3, 2), 2, tokens=2), field, seed=1)
    head = weights.layers[0][0]
    V, A = head.value_matrix(field), head.attention_matrix(field)
    ours = cross_coordinates(A, V, field)
    theirs = coefficients(weights).scaled_cross
    assert np.array_equal(ours, theirs[:, 0, 0])


def test_single_column_coordinates_are_the_scaled_coefficients_of_a_layer() -> None:
    model = Variety(3, 3, tokens=1)
    p = WORD_PRIME
    rng = np.random.default_rng(5)
    point = coordinates(model).sample(1, p, rng)[0]
    rng = np.random.default_rng(5)
    A, V = GF(p).random((1, 3, 3), rng)[0], GF(p).random((1, 1, 3), rng)[0, 0]
    x = [3, 5, 7]
    direct = (
        sum(int(V[k]) * int(A[l, m]) * x[k] * x[l] * x[m] for k in range(3) for l in range(3) for m in range(3)) % p
    )
    orbit = {1: 1, 2: 3, 3: 6}
    triples = combinations_with_replacement(range(3), 3)
    total = sum(int(y) * orbit[len(set(t))] * x[t[0]] * x[t[1]] * x[t[2]] for y, t in zip(point, triples))
    assert total % p == direct


@pytest.mark.parametrize("model", MODELS, ids=repr)
def test_permuting_indices_preserves_the_ideal(model: Variety) -> None:
    """Kernels of dominant weights, carried to other weights by a permutation, vanish on fresh points of the variety."""
    engine = WeightEngine(model, seed=3)
    degree = next(n for n in range(1, 7) if any(len(engine.kernel(n, w).free) for w in engine.weights(n)))
    points = coordinates(model).sample(4, WORD_PRIME, np.random.default_rng(99))
    (moved,) = coordinates(model).permute([np.arange(size)[None, ::-1] for size in model.groups])
    for weight in engine.weights(degree):
        basis = engine.kernel(degree, weight).basis
        factors = moved[engine.table.space(degree, weight).factors]
        values = evaluate_monomials(factors, points, WORD_PRIME).astype(object)
        assert not np.any(values @ basis.T.astype(object) % WORD_PRIME)


def test_permutations_are_one_to_one_for_many_targets() -> None:
    model = Variety(2, 1, targets=1100)
    (moved,) = coordinates(model).permute([np.arange(size)[None, ::-1] for size in model.groups])
    assert sorted(moved.tolist()) == list(range(len(coordinates(model).all)))
    label = coordinates(model).all[int(moved[0])].label
    assert coordinates(model).all[0].label == ((0, 0), (0,)) and label == ((1, 1), (1099,))


@pytest.mark.parametrize("model", MODELS, ids=repr)
def test_dominant_weights_and_their_orbits_hold_all_monomials(model: Variety) -> None:
    table = MonomialTable(model)
    for degree in (1, 2, 3):
        total = sum(len(table.space(degree, w)) * orbit_size(w) for w in table.dominant_weights(degree))
        assert total == comb(len(coordinates(model).all) + degree - 1, degree)


@pytest.mark.parametrize("model", MODELS, ids=repr)
def test_generic_and_random_points_have_all_coordinates(model: Variety) -> None:
    known = coordinates(model)
    assert len(known.generic()) == len(set(known.all)) == len(set(known.names)) == model.num_coordinates
    rng = np.random.default_rng(0)
    assert known.sample(3, WORD_PRIME, rng).shape == (3, model.num_coordinates)


def test_impossible_sizes_are_refused() -> None:
    with pytest.raises(InputError, match="a = 0"):
        Variety(3, 0)
    with pytest.raises(InputError, match="equal widths"):
        Variety(3, 2, tokens=2, d_out=2, residual=True)
