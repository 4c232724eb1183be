"""How floats are written for people: six significant digits at the most, and none of what rounding makes. A leaf.

Files and ``--json`` hold all digits. What is of the size of rounding errors, or the inverse of such a number, is other
on another machine; it is bounded, not told.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from attngeom.limits.rounding import PRINTED_ROUNDING
from attngeom.limits.shown import SIGNIFICANT_DIGITS


def number(value: object) -> str:
    """A float with six significant digits; anything else as it is.

    >>> number(3.7674772379260886), number(0.5), number(1e-17 + 2), number(7), number("1/3")
    ('3.76748', '0.5', '2', '7', '1/3')
    """
    return f"{value:.{SIGNIFICANT_DIGITS}g}" if isinstance(value, float) else str(value)


def ranking(value: float) -> float:
    """A number of size one as it may order things: without the digits that are other on another machine.

    >>> ranking(1 - 2e-16) == ranking(1.0), ranking(0.5) < ranking(0.500001)
    (True, True)
    """
    return round(value, 9)


def error(value: float, places: int = 1) -> str:
    """A relative error or difference with two digits, or more.

    >>> error(0.000123), error(4.7e-16)
    ('1.2e-04', '<1e-12')
    """
    return f"<{PRINTED_ROUNDING:.0e}" if value < PRINTED_ROUNDING else f"{value:.{places}e}"


def size(value: float) -> str:
    """A number that may be zero up to rounding, with three digits.

    >>> size(0.07071), size(4.7e-16), size(0.0)
    ('0.0707', '<1e-12', '0')
    """
    return error(value) if 0 < value < PRINTED_ROUNDING else f"{value:.3g}"


def gap(value: float | None) -> str:
    """The ratio of a singular value to the next one, with two digits.

    >>> gap(1234.5), gap(3.4e15), gap(None)
    ('1.2e+03', '>1e+12', 'none below')
    """
    if value is None:
        return "none below"
    return f">{1 / PRINTED_ROUNDING:.0e}" if value > 1 / PRINTED_ROUNDING else f"{value:.1e}"


def matrix(rows: Iterable[Iterable[object]]) -> str:
    """A matrix in one line, rows apart from each other by semicolons.

    >>> matrix([["1/2", 0], [-3.25, 4.0]])
    '1/2  0; -3.25  4'
    """
    return "; ".join("  ".join(map(number, row)) for row in rows)


def runs(numbers: Sequence[int], between: str) -> list[str]:
    """Increasing numbers, those that follow each other as first and last.

    >>> runs([0, 1, 2, 5], " to ")
    ['0 to 2', '5']
    """
    starts = [n for n in numbers if n - 1 not in numbers]
    ends = [n for n in numbers if n + 1 not in numbers]
    return [str(first) if first == last else f"{first}{between}{last}" for first, last in zip(starts, ends)]
