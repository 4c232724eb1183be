"""Float coefficients at size one: exact powers of two, so that norms and products neither overflow nor vanish."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from attngeom.layer.coefficients import Coefficients


def scale_to_one(coefficients: Coefficients) -> tuple[Coefficients, int]:
    """(c, e) with given coefficients 2^e c and the largest of c in [1/2, 1); e = 0 for the zero map.

    Exact, but for entries that are 2^1000 times smaller than the largest: those lose bits below 2^-1074.

    >>> from attngeom.exact import RR
    >>> c = Coefficients(1, 1, 1, RR.convert([[[3 * 2.0**-700]]]), RR.zeros((1, 1, 0, 1, 1)), RR)
    >>> scale_to_one(c)[0].single.tolist(), scale_to_one(c)[1]
    ([[[0.75]]], -698)
    """
    outside = [float(term.value) for term in coefficients.outside]
    arrays = coefficients.single, coefficients.cross, np.array(outside)
    largest = max(float(np.abs(array).max(initial=0.0)) for array in arrays)
    exponent = int(np.frexp(largest)[1])
    if largest == 0.0:
        return coefficients, 0
    terms = tuple(
        replace(term, value=float(np.ldexp(value, -exponent))) for term, value in zip(coefficients.outside, outside)
    )
    single, cross = np.ldexp(coefficients.single, -exponent), np.ldexp(coefficients.cross, -exponent)
    return replace(coefficients, single=single, cross=cross, outside=terms), exponent
