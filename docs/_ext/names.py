"""Pages that are written when the site is built, from the program itself: the commands and the Python names."""

from __future__ import annotations

import contextlib
import io
import re
from typing import Any

import attngeom
from attngeom.cli.app import run
from attngeom.cli.commands import COMMANDS


def _help(words: list[str]) -> str:
    with contextlib.redirect_stdout(io.StringIO()) as out:
        run([*words, "--help"])
    return out.getvalue()


def commands() -> str:
    """One section for each command with its help; groups of commands with the help of each."""
    parts = []
    for name in COMMANDS:
        text = _help([name])
        parts.append(f"## {name}\n\n```text\n{text}```\n")
        listed = text.partition("\nCommands:\n")[2].partition("\n\n")[0]
        for inner in re.findall(r"^  (\w+)", listed, flags=re.MULTILINE):
            parts.append(f"### {name} {inner}\n\n```text\n{_help([name, inner])}```\n")
    return "\n".join(parts)


def names() -> str:
    """One entry for each public name, with the docstring that the code has."""
    parts = []
    for name in sorted(set(attngeom.__all__) - set(attngeom._PACKAGES), key=str.lower):
        value = getattr(attngeom, name)
        kind = "class" if isinstance(value, type) else "function" if callable(value) else "data"
        options = {"class": "\n   :members:" if name in ("Architecture", "Weights") else "", "data": "\n   :no-value:"}
        parts.append(f"```{{eval-rst}}\n.. auto{kind}:: attngeom.{name}{options.get(kind, '')}\n```\n")
    return "\n".join(parts)


def fill(app: Any, page: str, source: list[str]) -> None:
    """Put the generated text in place of its mark."""
    for mark, make in (("<!-- commands -->", commands), ("<!-- names -->", names)):
        if mark in source[0]:
            source[0] = source[0].replace(mark, make())


def setup(app: Any) -> dict[str, bool]:
    app.connect("source-read", fill)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
