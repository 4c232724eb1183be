"""What commands print: one JSON object, or readable lines; progress on stderr when it is a terminal.

Nothing is cut, and no spaces are added at the ends of lines. On a terminal, lines break between words, and tables that
do not fit are printed row by row; elsewhere lines are as long as what they say.
"""

from __future__ import annotations

import shutil
import sys
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from itertools import zip_longest
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from attngeom.files import to_json

ROOM = 24
"""Columns that text needs beside labels; with less it goes below them."""


def print_json(record: Mapping[str, Any]) -> None:
    """The whole answer as one JSON object on stdout; escaped where the encoding of stdout is not UTF."""
    text = to_json(record)
    try:
        text.encode(sys.stdout.encoding or "ascii")
    except UnicodeEncodeError:
        text = to_json(record, ascii_only=True)
    print(text)


def print_line(text: object = "") -> None:
    """One line of readable output, taken literally."""
    print(str(text))


def print_text(text: object) -> None:
    """Lines of readable output, broken between words on a terminal."""
    for line in str(text).splitlines():
        _print_hanging(line, len(line) - len(line.lstrip()) + 2, _terminal_width())


def print_pairs(title: str, pairs: Mapping[str, Any]) -> None:
    """A title and labelled values."""
    print_line(title)
    _print_labelled(pairs)


def _print_labelled(pairs: Mapping[str, Any]) -> None:
    """Labelled values; where the labels leave too little room beside them, values follow their labels."""
    columns = _terminal_width()
    width = max((len(label) for label in pairs), default=0)
    beside = columns is None or columns - width >= ROOM
    for label, value in pairs.items():
        head = f"{label:{width}}  " if beside else f"{label}  "
        _print_hanging(f"{head}{value}", len(head) if beside else 4, columns)


def _print_hanging(text: str, indent: int, columns: int | None) -> None:
    """A line, broken between words where the terminal ends; what follows is indented, and words stay whole."""
    for line in [text] if columns is None else _break(text, columns, " " * indent):
        print_line(line.rstrip())


def _break(text: str, columns: int, indent: str = "") -> list[str]:
    """Lines of at most so many columns, unless a word is longer."""
    wrapper = textwrap.TextWrapper(
        max(columns, 1), subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )
    return wrapper.wrap(text) or [""]


def _terminal_width() -> int | None:
    """The columns of the terminal that stdout is; None if it is none."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def print_answer(json: bool, record: Mapping[str, Any], title: str, pairs: Mapping[str, Any]) -> None:
    """An answer: its record as JSON, or a title and labelled values."""
    if json:
        print_json(record)
    else:
        print_pairs(title, pairs)


def print_table(columns: Sequence[str], rows: Iterable[Sequence[object]], left: Sequence[str] = ()) -> None:
    """A table whose columns are as wide as their entries; numbers to the right, the columns named in ``left`` left.

    On a terminal that is too narrow columns move closer, the widest of those on the left breaks between words, or, if
    that is not enough, each row is printed as labelled values.
    """
    texts = [[str(entry) for entry in row] for row in rows]
    widths = [max(len(title), *(len(row[k]) for row in texts), 0) for k, title in enumerate(columns)]
    terminal, gap = _terminal_width(), "  "
    over = 0 if terminal is None else max(sum(widths) + 2 * len(widths) - 2 - terminal, 0)
    if 0 < over < len(widths):
        over, gap = 0, " "
    broken = max((k for k, title in enumerate(columns) if title in left), key=lambda k: widths[k], default=None)
    if over and (broken is None or widths[broken] - over < ROOM):
        for number, row in enumerate(texts):
            if number:
                print_line()
            _print_labelled({title: text for title, text in zip(columns, row, strict=True) if text})
        return
    if over and broken is not None:
        widths[broken] -= over
    for row in [list(columns), *texts]:
        parts = [_break(text, widths[k]) if over and k == broken else [text] for k, text in enumerate(row)]
        for cells in zip_longest(*parts, fillvalue=""):
            shown = (
                text.ljust(width) if title in left else text.rjust(width)
                for title, text, width in zip(columns, cells, widths, strict=True)
            )
            print_line(gap.join(shown).rstrip())


def progress() -> Progress:
    """A progress bar on stderr, silent when stderr is not a terminal."""
    return Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=Console(stderr=True),
        disable=not sys.stderr.isatty(),
        transient=True,
    )
