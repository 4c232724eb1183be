"""The temperature τ of attention: a positive rational by which scores are divided."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from attngeom.errors import InputError
from attngeom.exact.numbers import as_fmpq
from attngeom.network.attention.rule import Attention

LARGEST = 10**40


def read_temperature(value: Any, kind: type[Attention]) -> Fraction:
    """The temperature that a number or a string such as "1/2" states, exactly; polynomial kinds have 1 only.

    >>> from attngeom.network.attention import Softmax
    >>> read_temperature("0.5", Softmax)
    Fraction(1, 2)
    """
    try:
        rational = as_fmpq(value)
    except InputError:
        rational = as_fmpq(0)
    numerator, denominator = int(rational.p), int(rational.q)
    if not 0 < numerator <= LARGEST or denominator > LARGEST:
        raise InputError(f"temperature {str(value)[:40]!r} given; a positive rational such as 1/2 is required")
    if kind.is_polynomial and rational != 1:
        raise InputError(f"temperature {str(value)[:40]} given for {kind.name} attention; divide Q by it instead")
    return Fraction(numerator, denominator)
