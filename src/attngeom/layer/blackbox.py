"""Black boxes: functions that can only be evaluated, over floats, balls of any precision, or an exact field."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from attngeom.errors import InputError
from attngeom.exact.domains import RR, Array, Domain


@dataclass(eq=False)
class BlackBox:
    """A function of X, asked in batches: ``evaluate`` maps arrays (N, d, t) over ``domain`` to arrays (N, d_out, t).

    A domain of balls stands for a box that can answer to any precision: it is asked for arrays of balls. ``queries``
    counts the inputs that it was asked for; d_out is whatever it answers with, unless it is given.
    """

    evaluate: Callable[[Array], Array]
    domain: Domain = RR
    d_out: int | None = None
    queries: int = 0

    def __call__(self, X: Array) -> Array:
        self.queries += len(X)
        Y = np.asarray(self.evaluate(X))
        d_out = Y.shape[1] if self.d_out is None and Y.ndim == 3 else self.d_out
        if Y.shape != (len(X), d_out, X.shape[2]):
            required = f"({len(X)}, {'d_out' if d_out is None else d_out}, {X.shape[2]})"
            raise InputError(f"the black box answered with shape {Y.shape}; shape {required} is required")
        return Y
