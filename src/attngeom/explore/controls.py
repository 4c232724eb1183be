"""Controls of a view and their values: a table that reads an address or a form, and writes an address.

Everything that arrives is checked here: a value is of its type and within its bounds, or refused with one line.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Literal
from urllib.parse import urlencode

from attngeom.errors import AttnGeomError, InputError, SizeError
from attngeom.explore.shelf import Shelf, ShelfItem
from attngeom.limits.sizes import CONTROL_NUMBERS

DECIMAL = re.compile(r"-?[0-9]{1,6}(\.[0-9]{1,6})?")
RATIONAL = re.compile(r"-?[0-9]{1,40}(/0*[1-9][0-9]{0,39}|\.[0-9]{1,40})?")
State = dict[str, Any]
"""The values of the controls of a view, by name."""


@dataclass(frozen=True)
class Control:
    """One value of the state: its name in the address, its label, how it is drawn and read, the text it starts with.

    A slider keeps the text that was given, so that it is exact; a file is one of the command line of one of ``kinds``,
    or one that is dropped on the page.
    """

    name: str
    label: str
    shape: Literal["text", "area", "number", "slider", "switch", "choice", "file"] = "text"
    default: str = ""
    hint: str = ""
    only: str = ""
    """A condition "name=word word" on another control, without which this one is hidden (it keeps its value)."""
    longest: int = 200
    low: float = 0
    high: float = 2**32 - 1
    step: float = 1
    options: Mapping[str, str] = field(default_factory=dict)
    """Words of a choice, with the texts that are shown."""
    kinds: tuple[str, ...] = ()
    sets: Mapping[str, str] = field(default_factory=dict)
    """Other controls that are set where a view opens on a file of the command line."""
    check: Callable[[ShelfItem], object] = lambda item: None
    """Refuses files on which the view should not open by itself."""
    none: str = "none"
    """What is shown without a file."""
    option: str = ""
    """The option of the command that takes the text; of a switch, the option alone."""

    def parse(self, given: str, shelf: Shelf) -> Any:
        """The value of a text, or InputError."""
        if len(given) > self.longest:
            raise InputError(f"{self.label}: {len(given):,} characters given; at most {self.longest:,} are read")
        match self.shape:
            case "switch":
                return given == "1"
            case "file":
                return shelf.find(given) if given else None
            case "choice" if given not in self.options:
                words = ", ".join(filter(None, self.options))
                raise InputError(f"{self.label}: {given[:40]!r} given; one of {words} is required")
            case "number" | "slider":
                return self._number(given)
        return given.strip()

    def _number(self, given: str) -> int | str:
        is_slider = self.shape == "slider"
        if not DECIMAL.fullmatch(given) if is_slider else not re.fullmatch(r"-?[0-9]{1,20}", given):
            wanted = "a decimal number such as -1.25" if is_slider else "an integer"
            raise InputError(f"{self.label}: {given[:40]!r} given; {wanted} is required")
        if not self.low <= (float(given) if is_slider else int(given)) <= self.high:
            raise InputError(f"{self.label}: {given[:40]} given; {self.low:,} to {self.high:,} are shown here")
        return given if is_slider else int(given)


def opening_texts(controls: Sequence[Control], shelf: Shelf, is_asked: bool = False) -> dict[str, str]:
    """The texts with which a view opens: defaults, and the files of the command line in the places that take them.

    Where a file was asked for it is chosen even if the view will refuse it, so that it says why.
    """
    texts = {control.name: control.default for control in controls}
    taken = set()
    for control in controls:
        for item in shelf.entries.values():
            if item.kind in control.kinds and item.key not in taken and not texts[control.name]:
                with suppress(AttnGeomError):
                    if not is_asked:
                        control.check(item)
                    taken.add(item.key)
                    texts |= {control.name: item.key, **control.sets}
    return texts


def read_texts(controls: Sequence[Control], given: Mapping[str, str]) -> dict[str, str]:
    """The text of every control: what is given, else the default. A checkbox that is not named is off."""
    absent = {control.name: "" if control.shape == "switch" else control.default for control in controls}
    return {name: given.get(name, text) for name, text in absent.items()}


def read_state(controls: Sequence[Control], given: Mapping[str, str], shelf: Shelf) -> State:
    """The values of a form or an address; InputError names the first control that cannot be read.

    >>> read_state([Control("n", "size", "number", "2", high=9)], {"n": "7"}, Shelf())
    {'n': 7}
    """
    texts = read_texts(controls, given)
    return {control.name: control.parse(texts[control.name], shelf) for control in controls}


def write_query(texts: Mapping[str, str]) -> str:
    """The address of a state.

    >>> write_query({"widths": "3,3", "residual": ""})
    'widths=3%2C3'
    """
    return urlencode({name: value for name, value in texts.items() if value})


def write_options(controls: Sequence[Control], state: State) -> str:
    """The options of a command that say the same as the controls.

    >>> write_options([Control("n", "size", "number", "2", option="--size")], {"n": 7})
    ' --size 7'
    """
    given = ((control, str(state[control.name])) for control in controls if control.option and state[control.name])
    return "".join(f" {c.option}" if c.shape == "switch" else f" {c.option} {shlex.quote(text)}" for c, text in given)


def parse_integers(given: str, name: str, most: int) -> list[int]:
    """Comma separated positive integers of at most nine digits.

    >>> parse_integers("3, 3,2", "widths", 4)
    [3, 3, 2]
    """
    parts = given.split(",")
    if not all(re.fullmatch(r" *[0-9]{1,9} *", part) for part in parts):
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
    if len(words) > CONTROL_NUMBERS:
        raise SizeError(f"{name}: {len(words):,} numbers given; at most {CONTROL_NUMBERS:,} are read")
    for word in words:
        if not RATIONAL.fullmatch(word):
            raise InputError(f"{name}: {word[:40]!r} given; numbers such as 3, -2/5 or 0.25 are required")
    return [[Fraction(word) for word in line] for line in lines]
