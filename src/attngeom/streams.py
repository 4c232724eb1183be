"""JSON files with long arrays, read and written piece by piece: memory never holds the text or an object per item."""

from __future__ import annotations

import json
import os
import re
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from json import JSONDecodeError, JSONDecoder
from pathlib import Path
from typing import Any, TextIO

from attngeom.errors import AttnGeomError
from attngeom.files import ESCAPED_SURROGATE, check_source, parse_json, read_bytes, strict_hooks, to_json
from attngeom.limits.memory import CHARACTERS_READ
from attngeom.limits.sizes import JSON_BYTES

_SPACE = re.compile(r"[ \t\n\r]*")

Collector = Callable[[Iterator[list[Any]]], Any]
"""What a long array becomes: it is given all items, some at a time, in their order."""

Report = Callable[[int, int], None]
"""Told how many megabytes of how many are read."""


class Irregular(Exception):
    """A file or an item that only the reader of whole files understands, or that it refuses in its own words."""


class LongArray(Sequence[Any]):
    """A JSON array whose items are made when they are asked for."""

    @abstractmethod
    def part(self, start: int, stop: int) -> list[Any]:
        """The items from ``start`` to before ``stop``."""

    def __getitem__(self, index: Any) -> Any:
        places = range(len(self))[index]
        if isinstance(places, int):
            return self.part(places, places + 1)[0]
        return self.part(places.start, places.stop) if places.step == 1 else [self[place] for place in places]

    @abstractmethod
    def pieces(self, canonical: bool) -> Iterator[str]:
        """The JSON of some items at a time, without the brackets; canonical: sorted keys, no white space."""


def read_long_json(
    path: str | Path, collectors: Mapping[str, Collector], largest: int = JSON_BYTES, report: Report | None = None
) -> Any:
    """The value of a JSON file; arrays under the keys of ``collectors`` are collected, not held as lists.

    As strict as :func:`attngeom.files.read_json`, to which every file goes that is not as expected: it finds the
    error and says it, or holds all of an unusual but valid file in memory.
    """
    path = check_source(path, largest)
    try:
        with path.open(encoding="utf-8", newline="") as stream:
            return _Reader(stream, JSONDecoder(**strict_hooks(str(path))), collectors, report).document()
    except (Irregular, AttnGeomError, ValueError, RecursionError, OSError):
        return parse_json(read_bytes(path, largest), str(path))


class _Reader:
    """Objects are read key by key, collected arrays some items at a time, everything else at once."""

    def __init__(
        self, stream: TextIO, decoder: JSONDecoder, collectors: Mapping[str, Collector], report: Report | None
    ) -> None:
        self.stream, self.collectors, self.report = stream, collectors, report
        self.megabytes = os.fstat(stream.fileno()).st_size // 10**6
        self.scan = decoder.scan_once  # type: ignore[attr-defined]  # the stubs lack it
        self.text, self.place = "", 0
        self.is_complete = self.is_mixed = False

    def document(self) -> Any:
        value = self.value()
        if self.peek():
            raise Irregular
        return value

    def more(self) -> None:
        """Forget what was read and append as much as is left, at least a chunk."""
        rest = self.text[self.place :]
        chunk = self.stream.read(max(CHARACTERS_READ, len(rest)))
        self.text, self.place = rest + chunk, 0
        if self.report is not None:
            self.report(self.stream.buffer.tell() // 10**6, self.megabytes)
        self.is_complete, self.is_mixed = not chunk, False
        if ESCAPED_SURROGATE.search(self.text, max(0, len(rest) - 6)):
            raise Irregular

    def peek(self) -> str:
        """The next character that is not white space; empty at the end of the file."""
        while True:
            match = _SPACE.match(self.text, self.place)
            assert match is not None
            self.place = match.end()
            if self.place < len(self.text):
                return self.text[self.place]
            if self.is_complete:
                return ""
            self.more()

    def take(self, marks: str) -> str:
        mark = self.peek()
        if not mark or mark not in marks:
            raise Irregular
        self.place += 1
        return mark

    def value(self) -> Any:
        return self.record() if self.peek() == "{" else self.whole()

    def record(self) -> dict[str, Any]:
        self.take("{")
        record: dict[str, Any] = {}
        if self.peek() == "}":
            self.take("}")
            return record
        while True:
            key = self.whole() if self.peek() == '"' else None
            if key is None or key in record:
                raise Irregular
            self.take(":")
            is_long = key in self.collectors and self.peek() == "["
            record[key] = self.collectors[key](self.items()) if is_long else self.value()
            if self.take(",}") == "}":
                return record

    def whole(self) -> Any:
        self.peek()
        while True:
            try:
                value, end = self.scan(self.text, self.place)
            except (StopIteration, JSONDecodeError):
                end = len(self.text)
                if self.is_complete:
                    raise Irregular from None
            else:
                # A number could go on in what was not read yet.
                if end < len(self.text) or self.is_complete:
                    self.place = end
                    return value
            self.more()

    def items(self) -> Iterator[list[Any]]:
        """The items of an array, as many at a time as the text in memory holds."""
        self.take("[")
        if self.peek() == "]":
            self.take("]")
            return
        while True:
            yield self.batch() or [self.whole()]
            if self.take(",]") == "]":
                return

    def batch(self) -> list[Any] | None:
        """Items up to the last closing brace in memory, if it closes one of them: what a list of this text is."""
        self.peek()
        end = self.text.rfind("}", self.place) + 1
        if self.is_mixed or not end:
            return None
        try:
            values, stop = self.scan(f"[{self.text[self.place : end]}]", 0)
        except (StopIteration, JSONDecodeError):
            stop = -1
        if stop != end - self.place + 2:
            # The array ends in this text: its last items come one by one.
            self.is_mixed = True
            return None
        self.place = end
        return list(values)


def iterate_json(value: Any, canonical: bool = False) -> Iterator[str]:
    """The JSON text of a value in pieces; canonical: sorted keys, no white space, ASCII only.

    >>> "".join(iterate_json({"b": [1, 2], "a": "é"}, canonical=True))
    '{"a":"\\\\u00e9","b":[1,2]}'
    """
    if isinstance(value, LongArray):
        yield "["
        for number, piece in enumerate(value.pieces(canonical)):
            yield ("," if canonical else ", ") + piece if number else piece
        yield "]"
    elif isinstance(value, Mapping) and _has_long_array(value):
        comma, colon = (",", ":") if canonical else (", ", ": ")
        for number, key in enumerate(sorted(value) if canonical else value):
            yield (comma if number else "{") + json.dumps(key) + colon
            yield from iterate_json(value[key], canonical)
        yield "}"
    elif canonical:
        yield json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)
    else:
        yield to_json(value)


def as_plain(value: Any) -> Any:
    """The value with lists in the place of long arrays."""
    if isinstance(value, LongArray):
        return list(value)
    if isinstance(value, Mapping) and _has_long_array(value):
        return {key: as_plain(item) for key, item in value.items()}
    return value


def _has_long_array(value: Any) -> bool:
    if isinstance(value, Mapping):
        return any(map(_has_long_array, value.values()))
    return isinstance(value, LongArray)
