"""The fiber in (M, L), in words and as data."""

import numpy as np
import pytest

from attngeom.exact import QQ, RR
from attngeom.inspection.fibers import virtual_fiber
from attngeom.inspection.geometry import inspect
from attngeom.network import Architecture, random_weights, weights_from_matrices

A, ZERO, J = QQ.convert([[1, 2], [0, 1]]), QQ.zeros((2, 2)), QQ.convert([[0, 1], [-1, 0]])


def network(matrices, tokens, last=A, **options):
    architecture = Architecture((2,) * (len(matrices) + 1), 2, tokens=tokens, **options)
    return weights_from_matrices(architecture, matrices, [QQ.eye(2)] * (len(matrices) - 1) + [last], QQ)


CASES = [
    # matrices, t, causal, determined, free, first blind
    ([A, A, A], 3, False, ("L", "M_1", "M_2", "M_3"), (), None),
    ([A, ZERO, A, A], 3, False, ("L", "M_1", "M_2"), ("M_3", "M_4"), 2),
    ([A, A, ZERO], 3, False, ("L", "M_1", "M_2", "M_3"), (), None),
    ([J, A], 2, False, ("L", "M_1"), ("M_2",), 1),
    ([J, A], 3, False, ("L", "M_1", "M_2"), (), None),
    ([A, A], 1, False, ("L",), ("M_1", "M_2"), None),
    ([ZERO, A], 3, True, ("L", "M_1", "M_2"), (), None),
]


@pytest.mark.parametrize(("matrices", "tokens", "causal", "determined", "free", "first"), CASES)
@pytest.mark.parametrize("domain", [QQ, RR], ids=lambda domain: domain.name)
def test_fibers_of_softmax_networks(matrices, tokens, causal, determined, free, first, domain):
    weights = network(matrices, tokens, kind="softmax", causal=causal).to(domain)
    fiber = virtual_fiber(weights)
    assert fiber.is_known and fiber.determined == determined and fiber.free == free and fiber.first_blind == first
    record = inspect(weights).to_json()["virtual_fiber"]
    assert record["determined"] == list(determined) and record["free"] == list(free)
    assert all(name in fiber.words for name in free)


def test_zero_function():
    fiber = virtual_fiber(network([A, A], 3, last=ZERO, kind="softmax"))
    assert fiber.free == ("M_1", "M_2") and "zero" in fiber.words


def test_fiber_of_lightning_networks_is_the_scales_under_theorem_f():
    fiber = virtual_fiber(random_weights(Architecture((3, 3, 3), 2, tokens=2), QQ, 0))
    assert fiber.theorem == "Theorem F" and fiber.scales and fiber.determined == ("L", "M_1", "M_2")
    assert not virtual_fiber(network([J, A], 3)).is_known
    assert "zero" in virtual_fiber(network([J, A], 1)).words
    assert virtual_fiber(network([A, A], 1)).determined == ("L", "M_1 + M_1ᵀ", "M_2 + M_2ᵀ")


def test_causal_pair_of_tokens_is_not_claimed():
    assert not virtual_fiber(network([ZERO, A], 2, kind="softmax", causal=True)).is_known


def test_floats_near_a_blind_layer_are_not_told():
    near = weights_from_matrices(
        Architecture((2, 2, 2), 2, tokens=2, kind="softmax"),
        [RR.convert(J) + 1e-14 * np.eye(2), RR.convert(A)],
        [np.eye(2), RR.convert(A)],
        RR,
    )
    assert not virtual_fiber(near).is_known


def test_several_heads_have_no_virtual_weights():
    assert virtual_fiber(random_weights(Architecture((2, 2), 1, heads=2), QQ, 0)) is None
