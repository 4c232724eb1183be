"""How far floats that a program computes may be from the real numbers that they stand for, operation by operation.

Bounds are carried along, as a sum of large numbers that cancel has an error of its own size, whatever is left of it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from attngeom.exact.arrays import Array
from attngeom.limits.recheck import ROUNDING_UNIT


def rounding_errors(
    operation: str,
    data: Mapping[str, Any],
    values: Sequence[Array],
    errors: Sequence[Array],
    result: Array,
    contract: Callable[..., Array],
) -> Array:
    """For each entry of a result a bound for its distance from the real number, from those of the operands.

    All arrays have a leading axis of length 1 or of the number of samples. ``contract(subscripts, x, y)`` computes
    contractions; patterns are taken to be right. Infinite where an operand may be 0 that is inverted, and so on.

    >>> x, none = np.array([[2.0**60, -(2.0**60)]]), np.zeros((1, 2))
    >>> rounding_errors("contract", {"subscripts": "i->"}, [x], [none], np.zeros(1), lambda s, x: x.sum(axis=1)) > 1000
    array([ True])
    """
    if operation in ("parameter", "input", "pattern"):
        return np.zeros(result.shape)
    if operation == "gather":
        lead = len(result)
        flat = [np.broadcast_to(e.reshape(len(e), -1), (lead, e[0].size)) for e in errors]
        return np.concatenate([*flat, np.zeros((lead, 1))], axis=1)[:, data["index"].ravel()].reshape(result.shape)
    with np.errstate(all="ignore"):
        sizes = [np.abs(x) + e for x, e in zip(values, errors)]
        if operation == "contract":
            words, length = data["subscripts"], 2 + max(x[0].size for x in values)
            whole = length * ROUNDING_UNIT * contract(words, *sizes)
            if len(values) == 1:
                bound = whole + contract(words, errors[0])
            else:
                bound = whole + contract(words, errors[0], sizes[1]) + contract(words, np.abs(values[0]), errors[1])
        elif operation == "add":
            bound = sum(abs(n) * (e + ROUNDING_UNIT * x) for n, e, x in zip(data["coefficients"], errors, sizes))
            bound = bound * (1 + len(sizes) * ROUNDING_UNIT) + len(sizes) * ROUNDING_UNIT * np.abs(result)
        elif operation == "circle":
            turns = np.abs(np.array(data["angles"])).max() * np.abs(np.array(data["multiples"])).max()
            bound = np.full(result.shape, ROUNDING_UNIT * (1.0 + turns))
        elif operation == "constant":
            bound = ROUNDING_UNIT * np.abs(result)
        else:
            x, e = np.abs(values[0]), errors[0]
            least = np.where(e < x, x - e, 0.0)
            slopes = {
                "inverse": 1 / (x * least),
                "root": 1 / np.sqrt(least),
                "exp": np.exp(values[0] + e),
                "log": 1 / least,
            }
            slope = slopes.get(data.get("name", operation), np.ones(1))
            bound = np.where(e == 0, 0.0, e * slope) + ROUNDING_UNIT * (np.abs(result) + (operation == "formal"))
    return np.asarray(np.where(np.isnan(bound), np.inf, bound))
