"""Sigmoid attention: Theorem S decides one head and one layer of heads; what no theorem covers is left undecided."""

import numpy as np
import pytest

from attngeom import compare
from attngeom.exact import QQ, RR
from attngeom.inspection.fibers import virtual_fiber
from attngeom.network import Architecture, Weights, forward, random_symmetry, random_weights, weights_from_matrices

ONE, TWO = QQ.eye(2), QQ.convert([[1, 2], [3, 5]])
J, ZERO = QQ.convert([[0, 1], [-1, 0]]), QQ.zeros((2, 2))


def deep(matrices, L=ONE, tokens=2, **options):
    """The network with these virtual M_i and L."""
    architecture = Architecture((2,) * (len(matrices) + 1), 2, tokens, "sigmoid", **options)
    return weights_from_matrices(architecture, matrices, [ONE] * (len(matrices) - 1) + [L], QQ)


def heads(*pairs, tokens=2, **options):
    """One layer of heads (A, V)."""
    architecture = Architecture((2, 2), 2, tokens, "sigmoid", heads=len(pairs), value_width=2, **options)
    tensors = {}
    for h, (A, V) in enumerate(pairs):
        for letter, array in zip("QKVO", (A, ONE, V, ONE)):
            tensors[architecture.tensor_name(0, h, letter)] = array
    return Weights.from_tensors(architecture, tensors, QQ)


@pytest.mark.parametrize(
    ("first", "second", "same"),
    [
        (deep([TWO]), deep([TWO]), True),
        (deep([TWO]), deep([TWO + J]), False),
        (deep([TWO], causal=True), deep([TWO + J], causal=True), False),
        (deep([TWO], tokens=1), deep([TWO + J], tokens=1), True),
        (deep([TWO], tokens=1), deep([TWO + ONE], tokens=1), False),
        (deep([TWO], L=ZERO), deep([ONE], L=ZERO), True),
        (deep([TWO], L=ONE), deep([TWO], L=TWO), False),
        (deep([TWO, ONE]), deep([TWO, ONE + J]), False),
        (deep([J, ONE]), deep([J, ONE + J]), False),
        (deep([ZERO, ONE]), deep([J, ONE]), False),
        (deep([ZERO, ONE]), deep([ZERO, ONE + J]), True),
        (deep([ZERO, ONE]), deep([ZERO, TWO]), False),
    ],
)
def test_one_head_is_decided(first, second, same):
    found = compare(first, second)
    assert found.same_function is same and found.is_proven
    X = np.random.default_rng(0).standard_normal((5, 2, first.architecture.tokens))
    assert np.allclose(forward(first.to(RR), X), forward(second.to(RR), X)) is same


@pytest.mark.parametrize("options", [{}, {"causal": True}, {"residual": True}, {"tokens": 3}, {"tokens": 1}])
@pytest.mark.parametrize(
    ("first", "second", "same"),
    [
        ([(TWO, ONE), (J, TWO)], [(J, TWO), (TWO, ONE)], True),
        ([(TWO, ONE), (TWO, TWO)], [(TWO, ONE + TWO), (ONE, ZERO)], True),
        ([(TWO, ONE), (ZERO, ZERO)], [(-TWO, -ONE), (ZERO, 2 * ONE)], True),
        ([(TWO, ONE), (-TWO, ONE)], [(ZERO, 2 * ONE), (ONE, ZERO)], True),
        ([(TWO, ONE), (ONE, TWO)], [(TWO, TWO), (ONE, ONE)], False),
        ([(3 * TWO, ONE), (TWO, ONE)], [(TWO, ONE), (TWO, ONE)], False),
    ],
)
def test_one_layer_of_heads_is_decided(first, second, same, options):
    one, two = heads(*first, **options), heads(*second, **options)
    found = compare(one, two)
    assert found.same_function is same and found.is_proven
    X = np.random.default_rng(1).standard_normal((5, 2, one.architecture.tokens))
    assert np.allclose(forward(one.to(RR), X), forward(two.to(RR), X)) is same


def test_what_no_theorem_covers_is_undecided_unless_an_input_separates():
    """One token and two layers: equal outputs to 256 bits would not be a proof."""
    one, two = deep([TWO, ONE], tokens=1), deep([TWO, ONE + J], tokens=1)
    assert compare(one, two).same_function is True
    different = compare(one, deep([ONE, TWO], tokens=1))
    assert different.same_function is False and different.separation is not None


@pytest.mark.parametrize("domain", [QQ, RR], ids=["rational", "float"])
def test_symmetries_are_recognised(domain):
    for options in (
        {},
        {"temperature": "1/3"},
        {"heads": 2, "value_width": 1},
        {"residual": True, "widths": (3, 3, 3)},
    ):
        options = dict(options)
        architecture = Architecture(options.pop("widths", (3, 2, 3)), 2, 3, "sigmoid", **options)
        weights = random_weights(architecture, domain, 0)
        assert compare(weights, random_symmetry(architecture, domain, 1).apply(weights)).same_function is True
        assert compare(weights, random_weights(architecture, domain, 2)).same_function is False


def test_temperature_takes_part_in_the_comparison():
    for kind in ("softmax", "sigmoid"):
        weights = random_weights(Architecture((3, 2, 3), 2, 2, kind, temperature="2/3"), QQ, 0)
        moved = random_symmetry(weights.architecture, QQ, 1).apply(weights)
        assert compare(weights, moved).same_function is True
        assert compare(weights, random_weights(weights.architecture, QQ, 3)).same_function is False


@pytest.mark.parametrize(
    ("weights", "known", "determined"),
    [
        (deep([TWO]), True, ("L", "M_1")),
        (deep([TWO], tokens=1), True, ("L", "M_1 + M_1ᵀ")),
        (deep([TWO, J]), True, ("L", "M_1", "M_2")),
        (deep([TWO], L=ZERO), True, ("L",)),
        (deep([ZERO, ONE]), False, ()),
        (deep([TWO, ONE], causal=True), False, ()),
    ],
)
def test_fibers_are_said_only_where_they_are_known(weights, known, determined):
    fiber = virtual_fiber(weights)
    assert (fiber.is_known, fiber.determined) == (known, determined)
