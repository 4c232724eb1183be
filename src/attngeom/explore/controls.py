"""Controls of a view and their values: a table that reads an address, writes one, and draws the form.

Everything that arrives is checked here: a value is of its type and within its bounds, or refused with one line.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from attngeom.errors import InputError
from attngeom.explore.markup import Html, Node, tag
from attngeom.explore.shelf import FOLDER, Shelf

DECIMAL = re.compile(r"-?[0-9]{1,6}(\.[0-9]{1,6})?")
State = dict[str, Any]
"""The values of the controls of a view, by name; ``query`` is the address that they came from."""


@dataclass(frozen=True, kw_only=True)
class Control(ABC):
    """One value of the state: its name in the address, its label, the text that it starts with."""

    name: str
    label: str
    default: str = ""
    hint: str = ""
    only: str = ""
    """A condition "name=word word" on another control, without which this one is hidden (it keeps its value)."""

    @abstractmethod
    def parse(self, given: str, shelf: Shelf) -> Any:
        """The value of a text, or InputError."""

    @abstractmethod
    def draw(self, given: str, shelf: Shelf) -> Html:
        """The element of the form."""

    def labelled(self, element: Html) -> Html:
        """The element under its label."""
        hint = tag("small", self.hint) if self.hint else None
        return tag("label", tag("span", self.label), element, hint, class_="control", data_only=self.only or None)


@dataclass(frozen=True, kw_only=True)
class Text(Control):
    """A short text."""

    longest: int = 200

    def parse(self, given: str, shelf: Shelf) -> str:
        if len(given) > self.longest:
            raise InputError(f"{self.label}: {len(given):,} characters given; at most {self.longest:,} are read")
        return given.strip()

    def draw(self, given: str, shelf: Shelf) -> Html:
        return self.labelled(
            tag("input", type="text", name=self.name, value=given, autocomplete="off", aria_label=self.label)
        )


@dataclass(frozen=True, kw_only=True)
class Area(Text):
    """A text of several lines."""

    longest: int = 20000
    lines: int = 8

    def draw(self, given: str, shelf: Shelf) -> Html:
        return self.labelled(
            tag("textarea", given, name=self.name, rows=self.lines, spellcheck="false", aria_label=self.label)
        )


@dataclass(frozen=True, kw_only=True)
class Number(Control):
    """An integer between two bounds."""

    low: int
    high: int

    def parse(self, given: str, shelf: Shelf) -> int:
        try:
            value = int(given)
        except ValueError:
            raise InputError(f"{self.label}: {given[:40]!r} given; an integer is required") from None
        if not self.low <= value <= self.high:
            raise InputError(f"{self.label}: {given[:40]} given; {self.low} to {self.high:,} are shown here")
        return value

    def draw(self, given: str, shelf: Shelf) -> Html:
        return self.labelled(
            tag("input", type="number", name=self.name, value=given, min=self.low, max=self.high, aria_label=self.label)
        )


@dataclass(frozen=True, kw_only=True)
class Slider(Control):
    """A decimal number between two bounds, kept as the text that was given so that it is exact."""

    low: float
    high: float
    step: float

    def parse(self, given: str, shelf: Shelf) -> str:
        if not DECIMAL.fullmatch(given):
            raise InputError(f"{self.label}: {given[:40]!r} given; a decimal number such as -1.25 is required")
        if not self.low <= float(given) <= self.high:
            raise InputError(f"{self.label}: {given[:40]} given; {self.low:g} to {self.high:g} are shown here")
        return given

    def draw(self, given: str, shelf: Shelf) -> Html:
        bounds: dict[str, Any] = {"min": f"{self.low:g}", "max": f"{self.high:g}", "step": f"{self.step:g}"}
        bar = tag("input", type="range", name=self.name, value=given, aria_label=self.label, **bounds)
        parts = (tag("span", self.label), bar, tag("output", given))
        return tag("label", *parts, class_="control slider", data_only=self.only or None)


@dataclass(frozen=True, kw_only=True)
class Switch(Control):
    """On or off."""

    def parse(self, given: str, shelf: Shelf) -> bool:
        return given == "1"

    def draw(self, given: str, shelf: Shelf) -> Html:
        box = tag("input", type="checkbox", name=self.name, value="1", checked=given == "1")
        return tag("label", box, tag("span", self.label), class_="control switch", data_only=self.only or None)


@dataclass(frozen=True, kw_only=True)
class Choice(Control):
    """One of a few words; ``options`` are (word, shown text)."""

    options: Sequence[tuple[str, str]]

    def parse(self, given: str, shelf: Shelf) -> str:
        words = [word for word, _ in self.options]
        if given not in words:
            raise InputError(f"{self.label}: {given[:40]!r} given; one of {', '.join(filter(None, words))} is required")
        return given

    def draw(self, given: str, shelf: Shelf) -> Html:
        options = (tag("option", shown, value=word, selected=word == given) for word, shown in self.options)
        return self.labelled(tag("select", *options, name=self.name, aria_label=self.label))


@dataclass(frozen=True, kw_only=True)
class File(Control):
    """A file of the command line, or one that is dropped on the page."""

    suffixes: tuple[str, ...]

    def parse(self, given: str, shelf: Shelf) -> Any:
        return shelf.find(given) if given else None

    def draw(self, given: str, shelf: Shelf) -> Html:
        held = shelf.listed(self.suffixes, given)
        options = [tag("option", "none", value="")]
        options += [
            tag("option", item.short, value=item.key, selected=item.key == given, title=item.name) for item in held
        ]
        choice = tag("select", *options, name=self.name, aria_label=self.label)
        accepted = ",".join(suffix for suffix in self.suffixes if suffix != FOLDER)
        words = f"open a file: {self.label}"
        drop = tag("input", type="file", data_upload=self.name, accept=accepted, aria_label=words)
        box: dict[str, Any] = {"class_": "drop", "data_drop": self.name, "data_only": self.only or None}
        return tag("div", tag("label", tag("span", self.label), choice, class_="control"), drop, **box)


def read_texts(controls: Sequence[Control], query: Mapping[str, str]) -> dict[str, str]:
    """The text of every control: from the address, else the default. A checkbox that is not named is off."""
    if not query:
        return {control.name: control.default for control in controls}
    absent = {control.name: "" if isinstance(control, Switch) else control.default for control in controls}
    return {control.name: query.get(control.name, absent[control.name]) for control in controls}


def read_state(controls: Sequence[Control], query: Mapping[str, str], shelf: Shelf) -> State:
    """The values of an address; InputError names the first control that cannot be read.

    >>> read_state([Number(name="n", label="size", default="2", low=1, high=9)], {"n": "7"}, Shelf())
    {'n': 7, 'query': 'n=7'}
    """
    texts = read_texts(controls, query)
    values = {control.name: control.parse(texts[control.name], shelf) for control in controls}
    return {**values, "query": write_query(texts)}


def write_query(texts: Mapping[str, str]) -> str:
    """The address of a state.

    >>> write_query({"widths": "3,3", "causal": ""})
    'widths=3%2C3'
    """
    return urlencode({name: value for name, value in texts.items() if value})


def draw_form(controls: Sequence[Control], query: Mapping[str, str], shelf: Shelf, buttons: Node = None) -> Html:
    """The form of a view, its buttons first; it works as a plain form where no script runs."""
    texts = read_texts(controls, query)
    drawn = (control.draw(texts[control.name], shelf) for control in controls)
    plain = tag("noscript", tag("button", "Show", type="submit"))
    return tag("form", buttons, *drawn, plain, id="controls", method="get", aria_label="Controls")
