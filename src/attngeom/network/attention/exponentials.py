"""Exponentials over the domains that have them: floats and balls."""

from __future__ import annotations

import numpy as np

from attngeom.errors import DomainError
from attngeom.exact.domains import RR, Array, Balls, Domain


def exponential(S: Array, domain: Domain) -> Array:
    """exp of every entry; DomainError over exact domains, where it is not a number of the domain.

    >>> exponential(np.zeros(1), RR).item()
    1.0
    """
    if domain == RR:
        # Beyond the range of floats the exponential is infinite and its inverse 0, as it should be.
        with np.errstate(over="ignore"):
            return np.exp(S)
    if isinstance(domain, Balls):
        return np.frompyfunc(lambda x: x.exp(), 1, 1)(S)
    raise DomainError(f"an exponential over {domain.name} was asked for; softmax and sigmoid need floats or balls")
