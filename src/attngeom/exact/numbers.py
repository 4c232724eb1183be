"""Rational numbers from whatever users and files hold."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Any

import numpy as np
from flint import fmpq, fmpz

from attngeom.errors import InputError
from attngeom.limits.sizes import NUMBER_DIGITS


def as_fmpq(x: Any) -> fmpq:
    """The rational number x, exactly: an int, Fraction, fmpq, float or string such as ``"-3/7"``.

    >>> as_fmpq("1/2") + as_fmpq(0.25)
    3/4
    """
    if isinstance(x, fmpq):
        return x
    if isinstance(x, (bool, np.bool_)):
        raise InputError(f"entry {x!r} given; a rational number is required")
    if isinstance(x, (int, fmpz)):
        return fmpq(x)
    if isinstance(x, (float, np.floating)):
        if not np.isfinite(x):
            raise InputError(f"entry {x!r} given; finite numbers are required")
        return fmpq(*float(x).as_integer_ratio())
    if isinstance(x, (np.integer, Fraction)):
        return fmpq(int(x.numerator), int(x.denominator))
    if isinstance(x, str):
        return _parse_fmpq(x)
    raise InputError(f"entry of type {type(x).__name__} given; a rational number is required")


_FRACTION = re.compile(r"([+-]?[0-9]+)(?:/([0-9]+))?")
# The exponent is bounded so that a short hostile string cannot stand for a huge number.
_DECIMAL = re.compile(r"([+-]?(?=\.?[0-9])[0-9]*)\.?([0-9]*)(?:[eE]([+-]?[0-9]{1,4}))?")


def _parse_fmpq(text: str) -> fmpq:
    text = text.strip()
    if len(text) <= NUMBER_DIGITS:
        if match := _FRACTION.fullmatch(text):
            numerator, denominator = fmpz(match[1].lstrip("+")), fmpz(match[2] or 1)
            if denominator != 0:
                return fmpq(numerator, denominator)
        elif match := _DECIMAL.fullmatch(text):
            digits, places = match[1].lstrip("+") + match[2], int(match[3] or 0) - len(match[2])
            return fmpz(digits) * fmpq(10) ** places
    raise InputError(f'entry {text[:40]!r} given; a rational number such as "-3/7" is required')
