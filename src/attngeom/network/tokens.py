"""Few tokens stand for many: what a network does to t tokens is seen at inputs of some of them."""

from __future__ import annotations

import numpy as np

from attngeom.exact.domains import Array
from attngeom.limits.memory import SAMPLE_TOKENS
from attngeom.limits.trials import LEAST_TOKENS, POINT_TOKENS
from attngeom.network.architecture import Architecture


def telling_tokens(architecture: Architecture, most: int = SAMPLE_TOKENS) -> int:
    """A number s of tokens such that networks that differ at s tokens differ at t, small where there is such a one.

    Lightning: zero tokens stay zero and change nothing for the others. With a mask the first tokens do not see the
    later ones. Normalised attention: an input that repeats s tokens t/s times has the outputs of these, repeated. Other
    attention, and softmax if t has no divisor from 3 to ``most``, needs all tokens.

    >>> [telling_tokens(Architecture((2, 2), 1, tokens=t, kind="softmax")) for t in (5, 67, 1024)]
    [5, 67, 64]
    """
    tokens, rule = architecture.tokens, architecture.rule
    if rule.is_polynomial:
        return min(tokens, POINT_TOKENS)
    if architecture.mask.hides:
        return min(tokens, most)
    if tokens <= most or not rule.is_normalised:
        return tokens
    return max((s for s in range(LEAST_TOKENS, most + 1) if tokens % s == 0), default=tokens)


def with_all_tokens(architecture: Architecture, X: Array) -> Array:
    """An input or output at telling tokens as one at t tokens; with a mask the later tokens are left out."""
    s, t = X.shape[-1], architecture.tokens
    if architecture.rule.is_polynomial:
        return np.concatenate([X, np.full((*X.shape[:-1], t - s), X.ravel()[0] * 0)], axis=-1) if s < t else X
    return X if architecture.mask.hides else np.tile(X, t // s)
