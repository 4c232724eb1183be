"""The blocks of a page that can be run, and how what they print is compared with what the page shows.

A ``console`` block holds commands behind ``$ `` and their output; ``# exit 1`` behind a command says its exit code. A
line ``…`` stands for lines that are left out, and `` …`` at the end of a line for the rest of it. A ``python`` block is
run with those before it; ``# → value`` behind an expression says what it is. A ``json`` or ``toml`` block with a file
name behind the language is that file. The word ``slow`` keeps a block for ``make docs-check``; ``torch`` and ``jax``
say that a block needs them, and without them it is left out.
"""

from __future__ import annotations

import importlib.util
import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
CUT = "…"
OPTIONAL = ("torch", "jax")
"""What blocks may need and not every environment has."""
FENCE = re.compile(r"^( *)(`{3,})([^\n`]*)\n(.*?)^\1\2 *$", re.DOTALL | re.MULTILINE)
EXIT = re.compile(r"\s+# exit (\d+)$")
# What differs between two runs: times, versions, and the size of rounding errors.
MASKS = (
    (re.compile(r"\b\d+\.\d+ s\b"), "(time) s"),
    (re.compile(r"\b\d+:\d\d:\d\d\b"), "(time)"),
    (re.compile(r'("(?:cpu_)?seconds": )[\d.e-]+'), r"\1(time)"),
    (re.compile(r"\battngeom \d+\.\d+\S*"), "attngeom (version)"),
    (re.compile(r"\b\d(\.\d+)?e-(0[6-9]|[12]\d)\b"), "(rounding)"),
)


@dataclass(frozen=True)
class Command:
    """A command line, the exit code and the lines that the page shows for it, and its line number."""

    line: str
    code: int
    shown: tuple[str, ...]
    number: int


@dataclass(frozen=True)
class Block:
    """A block of a page: its language, the words behind the language, its text, and the number of its first line."""

    language: str
    words: tuple[str, ...]
    text: str
    number: int

    @property
    def is_slow(self) -> bool:
        return "slow" in self.words

    @property
    def is_possible(self) -> bool:
        """Whether everything is installed that the block says it needs."""
        return all(importlib.util.find_spec(name) is not None for name in OPTIONAL if name in self.words)

    @property
    def file(self) -> str | None:
        """The name of the file that the block is, or None."""
        names = [word for word in self.words if word.endswith((".json", ".toml"))]
        return names[0] if names and self.language in ("json", "toml") else None

    def commands(self) -> list[Command]:
        """The commands of a console block with the output shown for each."""
        found: list[tuple[int, str, list[str]]] = []
        for offset, line in enumerate(self.text.splitlines()):
            if line.startswith("$ "):
                found.append((self.number + offset, line[2:], []))
            elif found and found[-1][1].endswith("\\") and not found[-1][2]:
                number, before, _ = found[-1]
                found[-1] = (number, before.removesuffix("\\") + line.strip(), [])
            elif found:
                found[-1][2].append(line)
            else:
                raise ValueError(f"line {self.number + offset}: output without a command")
        commands = []
        for number, line, shown in found:
            code = EXIT.search(line)
            commands.append(Command(EXIT.sub("", line), int(code[1]) if code else 0, tuple(shown), number))
        return commands


def pages() -> list[Path]:
    """README.md and every page of docs."""
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def find_blocks(text: str) -> list[Block]:
    """All fenced blocks of a page, in order.

    >>> find_blocks("a\\n```console slow\\n$ attngeom info\\n```\\n")
    [Block(language='console', words=('slow',), text='$ attngeom info\\n', number=3)]
    """
    blocks = []
    for found in FENCE.finditer(text):
        indent, _, info, body = found.groups()
        language, *words = info.split() or [""]
        body = "".join(line.removeprefix(indent) for line in body.splitlines(keepends=True))
        blocks.append(Block(language, tuple(words), body, text.count("\n", 0, found.start()) + 2))
    return blocks


def mask(line: str) -> str:
    """A line without what differs between two runs.

    >>> mask("minor mod 7, seed 0, 0.002 s")
    'minor mod 7, seed 0, (time) s'
    """
    for pattern, replacement in MASKS:
        line = pattern.sub(replacement, line)
    return line.rstrip()


def matches(shown: list[str], printed: list[str]) -> bool:
    """Whether the lines that a page shows are those printed, where a line ``…`` stands for any number of lines.

    >>> matches(["a", "…", "d"], ["a", "b", "c", "d"]), matches(["a", "…"], ["b", "a"])
    (True, False)
    """
    patterns = [mask(line) for line in shown]
    lines = [mask(line) for line in printed]
    pieces: list[list[str]] = [[]]
    for pattern in patterns:
        if pattern.strip() == CUT:
            pieces.append([])
        else:
            pieces[-1].append(pattern)
    if len(pieces) == 1:
        return _agree(pieces[0], lines)
    first, *middle, last = pieces
    if len(lines) < len(first) + len(last) or not _agree(first, lines[: len(first)]):
        return False
    place, end = len(first), len(lines) - len(last)
    if not _agree(last, lines[end:]):
        return False
    for piece in middle:
        starts = (k for k in range(place, end - len(piece) + 1) if _agree(piece, lines[k : k + len(piece)]))
        found = next(starts, None)
        if found is None:
            return False
        place = found + len(piece)
    return True


def _agree(shown: list[str], printed: list[str]) -> bool:
    if len(shown) != len(printed):
        return False
    return all(
        line.startswith(text.removesuffix(CUT)) if text.endswith(" " + CUT) else line == text
        for text, line in zip(shown, printed)
    )
