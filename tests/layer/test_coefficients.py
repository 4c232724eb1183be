"""Coefficients: closed counts, agreement with the function, files that round-trip, black boxes that are checked."""

from dataclasses import replace
from itertools import combinations_with_replacement, permutations, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import attngeom
from attngeom.errors import DomainError, InputError, SizeError
from attngeom.exact import BIG_PRIME, GF, QQ, RR, WORD_PRIME, Balls
from attngeom.exact.domains import PolynomialDomain
from attngeom.exact.multisets import pair_orbits, pairs, splits, triple_index, triple_orbits, triples
from attngeom.layer.coefficients import (
    Coefficients,
    Term,
    coefficients,
    count_cubics,
    count_output,
    count_support,
    locate,
)
from attngeom.layer.files import coefficients_from_json
from attngeom.layer.interpolation import interpolate
from attngeom.layer.splitting import check_copies
from attngeom.network import Architecture, Weights, forward, random_weights
from attngeom.network.mask import Mask
from tests.effort import examples

DOMAINS = [QQ, GF(101), GF(WORD_PRIME), GF(BIG_PRIME), RR]
SHAPES = [(1, 1, 1), (2, 1, 1), (1, 2, 3), (2, 2, 2), (3, 2, 2), (3, 1, 4), (4, 3, 2)]


def close(domain, a, b):
    return domain.equal(a, b) if domain.is_exact else np.allclose(a, b, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("d, t", [(1, 1), (1, 3), (2, 2), (3, 2), (3, 4), (4, 3)])
def test_counts_equal_enumeration(d, t):
    entries = list(product(range(d), range(t)))
    monomials = list(combinations_with_replacement(entries, 3))
    assert count_cubics(d, t) == len(monomials)
    inside = [m for m in monomials if locate((0, 0), m, d) is not None]
    assert count_output(d, t) == len(inside)
    assert count_support(d, t) == sum(locate((0, j), m, d) is not None for m in monomials for j in range(t))


@pytest.mark.parametrize("d", [1, 2, 3, 5])
def test_orbits_and_indices_equal_enumeration(d):
    assert pair_orbits(d).tolist() == [len(set(permutations(s))) for s in pairs(d)]
    assert triple_orbits(d).tolist() == [len(set(permutations(r))) for r in triples(d)]
    for place, rows in enumerate(triples(d)):
        assert all(triple_index(order, d) == place for order in permutations(rows))
    rows, parts, ends = splits(d)
    found = sorted((int(r), tuple(sorted((*pairs(d)[s], int(m))))) for r, s, m in zip(rows, parts, ends))
    assert found == sorted((r, rows) for r, rows in enumerate(triples(d)) for _ in set(rows))


@pytest.mark.parametrize("domain", DOMAINS, ids=lambda x: f"{x.name}{getattr(x, 'p', '')}")
@pytest.mark.parametrize("d, d_out, t", SHAPES)
def test_polynomial_equals_the_layer(domain, d, d_out, t):
    for options in ({}, {"causal": True}, {"heads": 2, "value_width": 2}):
        weights = random_weights(Architecture((d, d_out), 2, tokens=t, **options), domain, seed=d + t)
        coefficients = attngeom.coefficients(weights)
        X = domain.random((4, d, t), np.random.default_rng(7))
        assert close(domain, coefficients.evaluate(X), forward(weights, X)), options


def test_scaled_coordinates_are_symmetrised_products():
    d = 3
    weights = random_weights(Architecture((d, 2), 2, tokens=2), QQ, seed=1)
    ((A,),), ((V,),) = weights.attention_matrices(), weights.value_matrices()
    y = attngeom.coefficients(weights).scaled_cross
    for i, (s, (k, l)), m in product(range(2), enumerate(pairs(d)), range(d)):
        assert y[i, 0, 0, s, m] == (V[i, k] * A[l, m] + V[i, l] * A[k, m]) / 2
    single = attngeom.coefficients(weights).scaled_single
    for r, (k, l, m) in enumerate(triples(d)):
        orders = list(permutations((k, l, m)))
        assert single[1, 0, r] == sum(V[1, a] * A[b, c] for a, b, c in orders) / len(orders)


@pytest.mark.parametrize("domain", DOMAINS, ids=lambda x: f"{x.name}{getattr(x, 'p', '')}")
@pytest.mark.parametrize("d, d_out, t", SHAPES)
def test_interpolation_recovers_the_coefficients(domain, d, d_out, t):
    weights = random_weights(Architecture((d, d_out), 2, tokens=t), domain, seed=5)
    expected = attngeom.coefficients(weights)
    result = interpolate(lambda X: forward(weights, X), d, d_out, t, domain, seed=1)
    assert close(domain, result.coefficients.single, np.array(expected.single))
    assert close(domain, result.coefficients.cross, np.array(expected.cross))
    assert result.queries > 0
    assert (result.residual is None) == domain.is_exact


NOT_LAYERS = {
    "quintic": lambda X: X**3 * X**2,
    "linear term": lambda X: X**3 + X,
    "three columns": lambda X: X**3 + (X[..., :1] * X[..., 1:2] * X[..., 2:3]),
    "square of the target": lambda X: X * X * X[..., ::-1],
}


@pytest.mark.parametrize("name", NOT_LAYERS)
@pytest.mark.parametrize("domain", [QQ, GF(WORD_PRIME), RR], ids=lambda x: x.name)
def test_maps_outside_the_support_are_refused_with_an_input(name, domain):
    def box(X):
        # Python integers and fractions do not overflow.
        return domain.convert(NOT_LAYERS[name](X if domain == RR else X.astype(object)))

    with pytest.raises(InputError, match="at X = "):
        interpolate(box, 2, 2, 3, domain)


def test_black_box_of_wrong_shape_is_refused():
    with pytest.raises(InputError, match="answered with shape"):
        interpolate(lambda X: X[:, :1], 2, 2, 2, RR)


@pytest.mark.parametrize("domain", [GF(2), GF(3), Balls(64)], ids=str)
def test_interpolation_refuses_domains_without_halves(domain):
    with pytest.raises(DomainError):
        interpolate(lambda X: X, 1, 1, 1, domain)


def test_large_layers_expand_without_copies():
    weights = random_weights(Architecture((20, 20), 10, tokens=8), RR, seed=0)
    coefficients = attngeom.coefficients(weights)
    assert coefficients.cross.size == 20 * 8 * 7 * 210 * 20
    assert coefficients.cross.strides[1:3] == (0, 0)
    X = RR.random((20, 8), np.random.default_rng(0))
    assert np.allclose(coefficients.evaluate(X), forward(weights, X))


@pytest.mark.parametrize(
    "architecture",
    [
        Architecture((2, 2, 2), 1),
        Architecture((2, 2), 1, kind="softmax"),
        Architecture((2, 2), 1, residual=True),
    ],
)
def test_networks_without_cubic_coefficients_are_refused(architecture):
    with pytest.raises(InputError, match="one plain lightning layer"):
        attngeom.coefficients(random_weights(architecture, QQ, 0))


@pytest.mark.parametrize("sizes", [(0, 1, 1), (1, -1, 1), (1, 1, True), (2.0, 1, 1)])
def test_bad_sizes_are_refused(sizes):
    with pytest.raises(InputError):
        Coefficients(*sizes, np.zeros((1, 1, 1)), np.zeros((1, 1, 0, 1, 1)), RR)


def test_absurd_sizes_are_refused_before_memory_is_taken():
    with pytest.raises(SizeError):
        interpolate(lambda X: X, 10**5, 10**5, 10**5, RR)


@examples(40)
@given(st.integers(1, 3), st.integers(2, 3), st.data())
def test_terms_outside_the_support_are_kept_and_evaluated(d, t, data):
    entry = st.tuples(st.integers(0, d - 1), st.integers(0, t - 1))
    monomial = tuple(sorted(data.draw(st.tuples(entry, entry, entry))))
    if locate((0, 0), monomial, d) is not None:
        return
    weights = random_weights(Architecture((d, 1), 1, tokens=t), QQ, seed=2)
    plain = attngeom.coefficients(weights)
    changed = Coefficients(d, 1, t, plain.single, plain.cross, QQ, (Term((0, 0), monomial, QQ.convert([5])[0]),))
    X = QQ.random((d, t), np.random.default_rng(1))
    extra = changed.evaluate(X) - plain.evaluate(X)
    assert extra[0, 0] == 5 * X[monomial[0]] * X[monomial[1]] * X[monomial[2]]
    assert changed.coefficient((0, 0), monomial) == 5
    assert plain.coefficient((0, 0), monomial) == 0


def test_coefficient_looks_up_every_monomial_of_the_polynomial():
    weights = Weights.from_tensors(
        Architecture((2, 1), 1, tokens=2),
        {"layers.0.Q": [[1, 2]], "layers.0.K": [[3, 5]], "layers.0.V": [[7, 11]]},
        QQ,
    )
    coefficients = attngeom.coefficients(weights)
    ring = PolynomialDomain.of(x=(2, 2))
    polynomial = forward(weights.to(ring), ring.matrix("x", 2, 2))[0, 1].to_dict()
    entries = list(product(range(2), range(2)))
    for monomial in combinations_with_replacement(entries, 3):
        powers = [0] * 4
        for row, column in monomial:
            powers[row * 2 + column] += 1
        assert coefficients.coefficient((0, 1), monomial) == polynomial.get(tuple(powers), 0)


def test_exact_arrays_are_bounded_lower_than_floats():
    header = {"format": "attngeom/coefficients", "version": 1, "d": 2, "d_out": 1, "t": 2100}
    with pytest.raises(SizeError, match="at most 25,000,000"):
        coefficients_from_json(header | {"terms": []})
    term = {"output": [0, 0], "monomial": [[0, 0], [0, 0], [0, 0]], "value": 0.5}
    assert coefficients_from_json(header | {"terms": [term]}).domain is RR


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("domain", [QQ, RR])
def test_every_changed_copy_of_a_block_is_noticed(domain, causal):
    plain = attngeom.coefficients(random_weights(Architecture((2, 1), 1, tokens=4, causal=causal), domain, seed=3))
    assert check_copies(plain, Mask(causal), 1e-9) is None
    for j, n in product(range(4), range(3)):
        if (j, n) == (1, 0):
            continue
        cross = plain.cross.copy()
        cross[0, j, n, 1, 0] += 1
        found = check_copies(replace(plain, cross=cross), Mask(causal), 1e-9)
        assert found is not None and f"target token {j} " in found.reason
    single = plain.single.copy()
    single[0, 2, 0] += 1
    assert "token 2 alone" in check_copies(replace(plain, single=single), Mask(causal), 1e-9).reason


@pytest.mark.parametrize("domain", [QQ, RR], ids=["exact", "float"])
@pytest.mark.parametrize(
    "kind, options",
    [
        ("lightning", {"window": 2}),
        ("lightning", {"window": 2, "causal": True}),
        ("lightning", {"memory": 2}),
        ("lightning", {"memory": 1, "window": 2, "heads": 2, "value_width": 1}),
        ("retnet", {}),
        ("retnet", {"decay": "learned"}),
        ("retnet", {"heads": 2, "value_width": 2}),
        ("retnet", {"decay": "learned", "heads": 3, "value_width": 1}),
    ],
    ids=str,
)
def test_coefficients_of_weighted_pairs_are_those_of_the_function(kind, options, domain):
    for t in (3, 4):
        weights = random_weights(Architecture((2, 3), 2, tokens=t, kind=kind, **options), domain, t)
        X = domain.random((4, 2, t), np.random.default_rng(t))
        with domain.working():
            values, true = coefficients(weights).evaluate(X), forward(weights, X)
        if domain.is_exact:
            assert domain.equal(values, true)
        else:
            np.testing.assert_allclose(values, true, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("kind, options", [("kda", {}), ("lightning", {"bias": True}), ("retnet", {"rope": True})])
def test_kinds_without_such_coefficients_are_refused(kind, options):
    weights = random_weights(Architecture((2, 2), 2, kind=kind, **options), QQ, 0)
    with pytest.raises(InputError, match="type attngeom inspect or compare"):
        coefficients(weights)
