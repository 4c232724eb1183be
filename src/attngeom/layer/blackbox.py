"""Black boxes: functions that can only be evaluated, over floats, balls of any precision, or an exact field.

A search asks in steps. What it asks for is a plan, and what it makes of the answers rests on the plan that was
answered, never on one that is computed once more: another machine would get other last bits, and other inputs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from attngeom.errors import FormatError, InputError
from attngeom.exact.domains import RR, Array, Domain
from attngeom.limits.rounding import INPUT_GRID


def on_grid(inputs: Array) -> Array:
    """The nearest multiples of 2^-14: numbers of size one that fifteen decimal digits say exactly.

    >>> on_grid(np.array([0.1])).item()
    0.0999755859375
    """
    return np.asarray(np.rint(inputs / INPUT_GRID) * INPUT_GRID)


@dataclass(frozen=True, eq=False)
class QueryPlan:
    """The inputs (N, d, t) of one step of a search, and the arrays that it made them from."""

    inputs: Array
    sources: Mapping[str, Array] = field(default_factory=dict)

    def source(self, name: str, *shape: int) -> Array:
        """An array that the inputs were made from, of the given shape."""
        named = self.sources.get(name)
        if named is None or named.shape != shape:
            given = "nothing" if named is None else f"shape {named.shape}"
            raise FormatError(f"{given} given for {name!r} in a plan; shape {shape} is required; use recover --plan")
        return named


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

    def planned(self, step: str) -> QueryPlan | None:
        """What was planned for a step before: nothing, for boxes that answer at once."""
        return None

    def ask(self, step: str, plan: QueryPlan) -> tuple[QueryPlan, Array]:
        """The plan that was answered, the given one for boxes that answer at once, and its outputs."""
        return plan, self(plan.inputs)

    def __call__(self, X: Array) -> Array:
        self.queries += len(X)
        Y = np.asarray(self.evaluate(X))
        d_out = Y.shape[1] if self.d_out is None and Y.ndim == 3 else self.d_out
        if Y.shape != (len(X), d_out, X.shape[2]):
            required = f"({len(X)}, {'d_out' if d_out is None else d_out}, {X.shape[2]})"
            raise InputError(f"the black box answered with shape {Y.shape}; shape {required} is required")
        return Y
