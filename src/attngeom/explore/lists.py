"""Numbers as they are typed: lists of integers, tables of rational numbers."""

from __future__ import annotations

import re
from fractions import Fraction

from attngeom.errors import InputError, SizeError

LONGEST_NUMBER = 9
RATIONAL = re.compile(r"-?[0-9]{1,40}(/0*[1-9][0-9]{0,39}|\.[0-9]{1,40})?")
MAX_NUMBERS = 2000


def parse_integers(given: str, name: str, most: int) -> list[int]:
    """Comma separated positive integers of at most nine digits.

    >>> parse_integers("3, 3,2", "widths", 4)
    [3, 3, 2]
    """
    parts = [part.strip() for part in given.split(",")]
    if not all(part.isascii() and part.isdigit() and len(part) <= LONGEST_NUMBER for part in parts):
        raise InputError(f"{name}: {given[:40]!r} given; comma separated positive integers such as 3,3,2 are required")
    if len(parts) > most:
        raise SizeError(f"{name}: {len(parts):,} numbers given; at most {most:,} are shown here")
    return [int(part) for part in parts]


def parse_numbers(given: str, name: str) -> list[list[Fraction]]:
    """Rows of rational numbers, separated by spaces, commas or semicolons; decimals are taken exactly.

    >>> parse_numbers("1 -2/3\\n0.5, 4", "table")
    [[Fraction(1, 1), Fraction(-2, 3)], [Fraction(1, 2), Fraction(4, 1)]]
    """
    lines = [re.split(r"[\s,;]+", line.strip()) for line in given.splitlines() if line.strip()]
    words = [word for line in lines for word in line]
    if len(words) > MAX_NUMBERS:
        raise SizeError(f"{name}: {len(words):,} numbers given; at most {MAX_NUMBERS:,} are read")
    for word in words:
        if not RATIONAL.fullmatch(word):
            raise InputError(f"{name}: {word[:40]!r} given; numbers such as 3, -2/5 or 0.25 are required")
    return [[Fraction(word) for word in line] for line in lines]
