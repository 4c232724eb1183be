"""What commands print: one JSON object, or readable lines; progress on stderr when it is a terminal.

Lines are as long as what they say: digits are never cut, and no spaces are added at their ends.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from attngeom.files import to_json


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


def print_pairs(title: str, pairs: Mapping[str, Any]) -> None:
    """A title and labelled values."""
    print_line(title)
    width = max((len(label) for label in pairs), default=0)
    for label, value in pairs.items():
        print_line(f"{label:{width}}  {value}".rstrip())


def print_answer(json: bool, record: Mapping[str, Any], title: str, pairs: Mapping[str, Any]) -> None:
    """An answer: its record as JSON, or a title and labelled values."""
    if json:
        print_json(record)
    else:
        print_pairs(title, pairs)


def print_table(columns: Sequence[str], rows: Iterable[Sequence[object]], left: Sequence[str] = ()) -> None:
    """A table whose columns are as wide as their entries; numbers to the right, the columns named in ``left`` left."""
    texts = [[str(entry) for entry in row] for row in rows]
    widths = [max(len(title), *(len(row[k]) for row in texts), 0) for k, title in enumerate(columns)]
    for row in [list(columns), *texts]:
        cells = [
            text.ljust(width) if title in left else text.rjust(width)
            for title, text, width in zip(columns, row, widths, strict=True)
        ]
        print_line("  ".join(cells).rstrip())


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
