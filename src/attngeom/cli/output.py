"""What commands print: one JSON object, or readable tables; progress on stderr when it is a terminal."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from attngeom.files import to_json


def print_json(record: Mapping[str, Any]) -> None:
    """The whole answer as one JSON object on stdout."""
    print(to_json(record))


def console() -> Console:
    """The console for readable output on stdout."""
    return Console(highlight=False, soft_wrap=True)


def print_pairs(title: str, pairs: Mapping[str, Any]) -> None:
    """A two-column summary."""
    table = Table(title=title, title_justify="left", show_header=False, box=None, pad_edge=False)
    table.add_column(style="bold")
    table.add_column()
    for key, value in pairs.items():
        table.add_row(key, str(value))
    console().print(table)


def progress() -> Progress:
    """A progress bar on stderr, silent when stderr is not a terminal."""
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=Console(stderr=True),
        disable=not sys.stderr.isatty(),
        transient=True,
    )
