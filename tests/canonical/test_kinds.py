"""Canonical forms and fingerprints of the kinds beyond the papers: every kind, option and shape, also degenerate."""

from random import Random

import numpy as np
import pytest

from attngeom.canonical import canonicalize, fingerprint
from attngeom.errors import DomainError, InputError
from attngeom.exact.domains import QQ, RR
from attngeom.network import Architecture, Weights, forward, random_symmetry, random_weights
from attngeom.network.symmetry.group import tensors_of, weights_of
from tests.effort import choose
from tests.network.modern_cases import CASES, label

SHAPES = [
    dict(widths=(3, 2)),
    dict(widths=(3, 2), heads=2, value_width=2),
    dict(widths=(3, 3, 3), heads=2, value_width=2, residual=True),
    dict(widths=(3, 4, 2), heads=2, value_width=2),
    dict(widths=(2, 3, 2)),
    dict(widths=(3, 2, 2)),
    dict(widths=(2, 2, 2, 2), heads=2, value_width=1),
]
"""One layer, heads, skip connections, stacks; hidden widths beyond the ranks before them."""


def networks(case, rng, number):
    """Networks of so many shapes, of all in the thorough run."""
    kind, options = case
    for shape in rng.sample(SHAPES, choose(number, len(SHAPES))):
        if options.get("memory") and len(shape["widths"]) > 2 and not shape.get("residual"):
            continue
        yield Architecture(attention=2, tokens=3, kind=kind, **shape, **options)


def difference(one, other):
    pairs = zip((x for _, x in one.tensors()), (x for _, x in other.tensors()), strict=True)
    if one.domain.is_exact:
        return 0.0 if one.equals(other) else 1.0
    return max(float(np.abs(x - y).max()) / max(float(np.abs(x).max()), 1e-300) for x, y in pairs)


def has_no_exact_form(network, domain):
    return domain.is_exact and network.kind in ("deltanet", "gated_deltanet")


@pytest.mark.parametrize("domain", [QQ, RR], ids=["exact", "float"])
@pytest.mark.parametrize("case", CASES, ids=label)
def test_all_points_of_an_orbit_have_one_canonical_form(case, domain):
    rng = Random(f"{label(case)} {domain.name}")
    for network in networks(case, rng, 3):
        drawn = random_weights(network, domain, rng.randrange(10**6))
        # Integers up to 9 saturate what floats can tell below.
        weights = Weights.from_vector(network, drawn.vector() / 8, domain) if domain.is_exact else drawn
        moved = random_symmetry(network, domain, rng.randrange(10**6)).apply(weights)
        if has_no_exact_form(network, domain):
            with pytest.raises(DomainError, match="roots"):
                canonicalize(weights)
            continue
        one, other = canonicalize(weights), canonicalize(moved)
        assert one.is_canonical and other.is_canonical, (network, one.reason)
        assert difference(one.weights, other.weights) < 1e-6, network
        assert difference(one.weights, canonicalize(one.weights).weights) < 1e-8
        X = np.random.default_rng(1).standard_normal((4, network.widths[0], 3)) / 4
        Y, Z = (forward(w.to(RR), X) for w in (weights, one.weights))
        np.testing.assert_allclose(Y, Z, atol=1e-7 * np.abs(Y).max())


@pytest.mark.parametrize("case", CASES, ids=label)
def test_fingerprints_are_those_of_orbits(case):
    """The same for all points of an orbit, others for weights with one entry changed that the function depends on."""
    rng = Random(label(case))
    for network in networks(case, rng, 3):
        weights = Weights.from_vector(network, random_weights(network, QQ, rng.randrange(10**6)).vector() / 8, QQ)
        own = fingerprint(weights)
        assert own.standing == "proven"
        for seed in range(2):
            moved = random_symmetry(network, QQ, seed).apply(weights)
            assert fingerprint(moved).fingerprint == own.fingerprint
        vector = weights.vector().copy()
        place = rng.randrange(len(vector))
        vector[place] = vector[place] + 1
        changed = Weights.from_vector(network, vector, QQ)
        X = np.random.default_rng(2).standard_normal((4, network.widths[0], 3)) / 2
        Y, Z = (forward(w.to(RR), X) for w in (weights, changed))
        if not np.allclose(Y, Z, rtol=1e-9, atol=1e-9 * np.abs(Y).max()):
            assert fingerprint(changed).fingerprint != own.fingerprint


def zero(letters):
    def make(tensors, domain):
        return {x: domain.zeros(y.shape) if x[1] == 0 and x[2] in letters else y for x, y in tensors.items()}

    return make


def equal_heads(tensors, domain):
    return {x: tensors[x[0], 0, x[2]] if x[1] else y for x, y in tensors.items()}


def equal_scores(tensors, domain):
    return {x: tensors[x[0], 0, x[2]] if x[1] and x[2] not in "VO" else y for x, y in tensors.items()}


def deficient(letters):
    """The last row of tensors is the first one."""

    def make(tensors, domain):
        moved = {x: y.copy() for x, y in tensors.items()}
        for (_, head, letter), array in moved.items():
            if head is not None and letter in letters:
                array[-1] = array[0]
        return moved

    return make


def first_column_zero(tensors, domain):
    moved = {x: y.copy() for x, y in tensors.items()}
    for (_, _, letter), array in moved.items():
        if letter in "QK":
            array[:, 0] = domain.zeros((len(array),))
    return moved


DEGENERATE = {
    "V = 0": zero("V"),
    "Q = 0": zero(("Q", "bQ")),
    "K = 0": zero(("K", "bK")),
    "zero head": zero(("Q", "K", "V", "O", "bQ", "bK", "bV")),
    "zero gates": zero(("G", "bG", "u", "w", "m", "gamma")),
    "equal heads": equal_heads,
    "equal scores": equal_scores,
    "rank of K": deficient(("K", "bK")),
    "rank of K, Q": deficient(("K", "bK", "Q", "bQ")),
    "equal channels": deficient(("K", "bK", "Q", "bQ", "G", "bG")),
    "rank of V": deficient(("V", "bV")),
    "first column": first_column_zero,
    "lambda = 1": lambda tensors, domain: {
        x: domain.convert(np.ones((1, 1), dtype=int)) if x[2] == "lambda" else y for x, y in tensors.items()
    },
}
USUAL = "one representative for each orbit"


@pytest.mark.parametrize("domain", [QQ, RR], ids=["exact", "float"])
@pytest.mark.parametrize("what", DEGENERATE)
def test_degenerate_weights_have_one_form_or_it_is_said_what_is_open(what, domain):
    rng = Random(f"{what} {domain.name}")
    for case in CASES:
        for network in networks(case, rng, 1):
            if has_no_exact_form(network, domain):
                continue
            start = random_weights(network, domain, rng.randrange(10**6))
            tensors = DEGENERATE[what](tensors_of(start), domain)
            weights = weights_of(network, tensors, domain)
            try:
                one = canonicalize(weights)
            except InputError as error:
                # Sums and norms of zeros cannot be divided by.
                assert "divide by zero" in str(error) and ("0" in what or "zero" in what)
                continue
            other = canonicalize(random_symmetry(network, domain, rng.randrange(10**6)).apply(weights))
            if one.is_canonical and other.is_canonical:
                assert difference(one.weights, other.weights) < 1e-6, (network, what)
            for form in (one, other):
                assert form.is_canonical is form.reason.startswith(USUAL)


def test_what_is_open_is_said():
    network = Architecture((2, 2, 2), 2, kind="retnet", decay="learned", heads=2, value_width=1)
    tensors = equal_scores(tensors_of(random_weights(network, QQ, 0)), QQ)
    weights = weights_of(network, tensors, QQ)
    answer = canonicalize(weights)
    assert not answer.is_canonical and "two heads have the same scores" in answer.reason
    with pytest.raises(InputError, match="without one representative"):
        fingerprint(weights)


@pytest.mark.parametrize("domain", [QQ, RR], ids=["exact", "float"])
@pytest.mark.parametrize("factor", [1, -1, 2, -3])
def test_the_two_maps_of_differential_attention_have_one_order(factor, domain):
    for shape in (dict(widths=(3, 2)), dict(widths=(2, 3, 2)), dict(widths=(2, 2, 2), heads=2, value_width=1)):
        network = Architecture(attention=2, tokens=3, kind="differential", **shape)
        tensors = tensors_of(random_weights(network, domain, 4))
        number = domain.convert(np.array([[factor]]))
        tensors = {x: number if x[2] == "lambda" else y for x, y in tensors.items()}
        weights = weights_of(network, tensors, domain)
        exchanged = {}
        for (layer, head, letter), array in tensors.items():
            partner = {"Q": "Q2", "K": "K2", "Q2": "Q", "K2": "K"}.get(letter, letter)
            array = tensors[layer, head, partner]
            if letter == "V":
                array = domain.reduce(-factor * array)
            exchanged[layer, head, letter] = domain.invert(number) if letter == "lambda" else array
        moved = random_symmetry(network, domain, 9).apply(weights_of(network, exchanged, domain))
        one, other = canonicalize(weights), canonicalize(moved)
        assert one.is_canonical and difference(one.weights, other.weights) < 1e-6


@pytest.mark.parametrize("domain", [QQ, RR], ids=["exact", "float"])
def test_weights_without_outputs_are_refused(domain):
    network = Architecture((3, 2), 2, kind="linear")
    tensors = zero(("Q",))(tensors_of(random_weights(network, domain, 0)), domain)
    with pytest.raises(InputError, match="divide by zero"):
        canonicalize(weights_of(network, tensors, domain))
