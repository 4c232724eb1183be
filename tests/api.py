"""The public Python interface as text, one line for each name: ``python -m tests.api --write`` records it anew.

`tests/test_api.py` compares it with ``tests/api.txt`` and prints what changed, so that no signature changes unseen:
additions are recorded, and what is taken away or renamed needs the policy of docs/reference/releases.md.
"""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import attngeom
from tests.sources import SOURCE

RECORD = Path(__file__).parent / "api.txt"
INNER = ("cli", "explore", "limits")
"""Packages that promise no names: programs, pages, and numbers that may change."""
ROOMS = sorted(path.parent.name for path in SOURCE.glob("*/__init__.py") if path.parent.name not in INNER)
PLAIN = (bool, int, float, str, tuple, type(None))


def parameter(given: inspect.Parameter) -> str:
    """A parameter with its type as it is written, and its default where that is plain."""
    text = {given.VAR_POSITIONAL: "*", given.VAR_KEYWORD: "**"}.get(given.kind, "") + given.name
    if given.annotation is not given.empty:
        text += f": {given.annotation if isinstance(given.annotation, str) else given.annotation.__name__}"
    if given.default is not given.empty:
        text += f" = {given.default!r}" if isinstance(given.default, PLAIN) else " = …"
    return text


def describe(name: str, thing: Any) -> Iterator[str]:
    """The lines of a function, or of a class with its fields and public methods."""
    if inspect.isclass(thing):
        shown = [field.name for field in fields(thing)] if is_dataclass(thing) else []
        shown += sorted(x for x in vars(thing) if not x.startswith("_") and x not in shown)
        yield f"class {name}: {', '.join(shown)}"
    elif inspect.isfunction(thing):
        found = inspect.signature(thing)
        texts, is_named = [], False
        for each in found.parameters.values():
            if each.kind == each.KEYWORD_ONLY and not is_named:
                texts.append("*")
            is_named = is_named or each.kind in (each.KEYWORD_ONLY, each.VAR_POSITIONAL)
            texts.append(parameter(each))
        yield f"{name}({', '.join(texts)}) -> {found.return_annotation}"
    else:
        yield f"{name}: {type(thing).__name__}"


def interface() -> list[str]:
    """All lines: the names of the package with their types, then the names of its rooms."""
    lines = [line for name in sorted(attngeom.__all__) for line in describe(name, getattr(attngeom, name))]
    for room in ROOMS:
        lines += [f"{room}.{name}" for name in sorted(importlib.import_module(f"attngeom.{room}").__all__)]
    return lines


if __name__ == "__main__":
    if sys.argv[1:] == ["--write"]:
        RECORD.write_text("\n".join(interface()) + "\n", encoding="utf-8")
    else:
        print(*interface(), sep="\n")
