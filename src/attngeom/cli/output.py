"""What commands print: one JSON object, or readable lines; progress on stderr when it is a terminal.

Nothing is cut, and no spaces are added at the ends of lines. On a terminal, lines break between words, and tables that
do not fit are printed row by row; elsewhere lines are as long as what they say.
"""

from __future__ import annotations

import shutil
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import zip_longest
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, Task, TextColumn, TimeElapsedColumn
from rich.text import Text

from attngeom.digits import number
from attngeom.files import to_json
from attngeom.limits.shown import TEXT_COLUMNS

READING = "reading, MB"
"""What is said of a long file."""


def print_json(record: Mapping[str, Any]) -> None:
    """The whole answer as one JSON object on stdout; escaped where the encoding of stdout is not UTF."""
    text = to_json(record)
    try:
        text.encode(sys.stdout.encoding or "ascii")
    except UnicodeEncodeError:
        text = to_json(record, ascii_only=True)
    print(text)


def print_answer(json: bool, record: Mapping[str, Any] | Callable[[], Mapping[str, Any]], *texts: object) -> None:
    """An answer: its record, or what makes one that is long, as JSON, or its texts below each other, literally."""
    if json:
        print_json(record() if callable(record) else record)
    else:
        print(*texts, sep="\n")


def notice(text: object) -> None:
    """One line on stderr that is no error: the work goes on."""
    print(f"attngeom: {' '.join(str(text).split())}", file=sys.stderr)


def prose(text: object) -> str:
    """Lines of readable output, broken between words on a terminal."""
    lines = str(text).splitlines()
    return "\n".join(_hang(line, len(line) - len(line.lstrip()) + 2, _terminal_width()) for line in lines)


def pairs(title: object, values: Mapping[str, Any]) -> str:
    """A title and labelled values."""
    return f"{title}\n{_labelled(values)}" if values else str(title)


def titled(rows: Mapping[str, Any], **more: Any) -> str:
    """The rows of a result whose first label is the title, and more of them."""
    (title, value), *lines = rows.items()
    added = {name.replace("_", " "): text for name, text in more.items()}
    return pairs(f"{title}: {number(value)}" if value else title, {**dict(lines), **added})


def _labelled(values: Mapping[str, Any]) -> str:
    """Labelled values; where the labels leave too little room beside them, values follow their labels."""
    columns = _terminal_width()
    width = max((len(label) for label in values), default=0)
    beside = columns is None or columns - width >= TEXT_COLUMNS
    heads = {label: f"{label:{width}}  " if beside else f"{label}  " for label in values}
    return "\n".join(
        _hang(f"{heads[x]}{number(value)}", len(heads[x]) if beside else 4, columns) for x, value in values.items()
    )


def _hang(text: str, indent: int, columns: int | None) -> str:
    """A line, broken between words where the terminal ends; what follows is indented, and words stay whole."""
    lines = [text] if columns is None else _break(text, columns, " " * indent)
    return "\n".join(line.rstrip() for line in lines)


def _break(text: str, columns: int, indent: str = "") -> list[str]:
    """Lines of at most so many columns, unless a word is longer."""
    wrapper = textwrap.TextWrapper(
        max(columns, 1), subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )
    return wrapper.wrap(text) or [""]


def _terminal_width() -> int | None:
    """The columns of the terminal that stdout is; None if it is none."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def table(columns: Sequence[str], rows: Iterable[Sequence[object]], left: Sequence[str] = ()) -> str:
    """A table whose columns are as wide as their entries; numbers to the right, the columns named in ``left`` left.

    On a terminal that is too narrow columns move closer, the widest of those on the left breaks between words, or, if
    that is not enough, each row is printed as labelled values.
    """
    texts = [list(columns), *([number(entry) for entry in row] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*texts, strict=True)]
    terminal, gap = _terminal_width(), "  "
    over = 0 if terminal is None else max(sum(widths) + 2 * len(widths) - 2 - terminal, 0)
    if 0 < over < len(widths):
        over, gap = 0, " "
    broken = max((k for k, title in enumerate(columns) if title in left), key=lambda k: widths[k], default=None)
    if over and (broken is None or widths[broken] - over < TEXT_COLUMNS):
        filled = ({title: text for title, text in zip(columns, row) if text} for row in texts[1:])
        return "\n\n".join(map(_labelled, filled))
    if over and broken is not None:
        widths[broken] -= over
    sides = [str.ljust if title in left else str.rjust for title in columns]
    lines = []
    for row in texts:
        parts = [_break(text, widths[k]) if over and k == broken else [text] for k, text in enumerate(row)]
        for cells in zip_longest(*parts, fillvalue=""):
            shown = (side(text, width) for side, text, width in zip(sides, cells, widths))
            lines.append(gap.join(shown).rstrip())
    return "\n".join(lines)


class _Count(MofNCompleteColumn):
    """How much of how much, where that is known."""

    def render(self, task: Task) -> Text:
        return Text() if task.total is None else super().render(task)


def progress() -> Progress:
    """A progress bar on stderr, silent when stderr is not a terminal."""
    # A disabled bar of older versions of rich ends with an empty line, so its console is quiet as well.
    is_silent = not sys.stderr.isatty()
    return Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        _Count(),
        TimeElapsedColumn(),
        console=Console(stderr=True, quiet=is_silent),
        disable=is_silent,
        transient=True,
    )


@contextmanager
def working(text: str) -> Iterator[Callable[[str, int, int | None], None]]:
    """A progress bar for one thing after the other: it runs to and fro until somebody says how much there is."""
    with progress() as bar:
        bar.add_task(text, total=None)
        (task,) = bar.tasks

        def report(what: str, done: int, total: int | None) -> None:
            task.total = total
            bar.update(task.id, description=what, completed=done)

        yield report
