"""The mask: every method says the same about who sees whom as the definition j ≤ i."""

import numpy as np
import pytest

from attngeom.network.mask import Mask


@pytest.mark.parametrize("t", [1, 2, 3, 5])
@pytest.mark.parametrize("hides", [False, True])
def test_every_method_follows_the_definition(hides, t):
    mask, X = Mask(hides), np.random.default_rng(t).integers(-9, 10, (2, 3, t))
    sees = {i: [j for j in range(t) if j <= i or not hides] for i in range(t)}
    assert mask.visible(t).tolist() == [[j in sees[i] for i in range(t)] for j in range(t)]
    S = np.random.default_rng(0).integers(1, 9, (2, t, t))
    assert np.array_equal(mask.keep(S), S * mask.visible(t))
    for i in range(t):
        assert np.array_equal(mask.seen(X, i), X[..., sees[i]])
        assert np.array_equal(mask.sums(X)[..., i], X[..., sees[i]].sum(axis=-1))
        assert {*mask.others(i, t)} - {i} == {*sees[i]} - {i}
    assert mask.count(t * (t - 1)) == sum(len(js) - 1 for js in sees.values())


@pytest.mark.parametrize("hides", [False, True])
def test_the_first_place_sees_the_second(hides):
    own, other = Mask(hides).places
    assert own != other and Mask(hides).visible(2)[other, own]
