"""Lists of integers as they are typed."""

from __future__ import annotations

from attngeom.errors import InputError, SizeError

LONGEST_NUMBER = 9


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
