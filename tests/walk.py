"""A reader's walk: which files of the package a request enters, beyond importing them.

    python -m tests.walk dim --widths 3,3,3 --attention 2 --prove

prints them, with how many functions of each were called.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from types import FrameType
from typing import Any

SOURCE = Path(__file__).resolve().parents[1] / "src" / "attngeom"


class Walk:
    """Functions of the package that are called, by files; what modules do while they are imported is left out."""

    def __init__(self) -> None:
        self.functions: dict[str, set[str]] = defaultdict(set)
        self.importing = 0
        self.prefix = f"{SOURCE}/"

    def watch(self, frame: FrameType, event: str, _: Any) -> None:
        if event not in ("call", "return"):
            return
        code = frame.f_code
        if code.co_name == "<module>":
            self.importing += 1 if event == "call" else -1
        elif event == "call" and not self.importing and code.co_filename.startswith(self.prefix):
            self.functions[code.co_filename.removeprefix(self.prefix)].add(code.co_qualname)


def walk(*arguments: str) -> dict[str, int]:
    """The files that a command enters, with how many of their functions, in a process of its own."""
    run = [sys.executable, "-m", "tests.walk", "--json", *arguments]
    answer = subprocess.run(run, capture_output=True, text=True, cwd=SOURCE.parents[1], check=False)
    assert answer.stderr.startswith("{"), answer.stderr
    record: dict[str, int] = json.loads(answer.stderr)
    return record


def main(arguments: list[str]) -> None:
    as_json = arguments[0] == "--json"
    from attngeom.cli import main as run

    walk, sys.argv = Walk(), ["attngeom", *arguments[as_json:]]
    sys.setprofile(walk.watch)
    try:
        run()
    except SystemExit:
        pass
    finally:
        sys.setprofile(None)
    counts = {name: len(functions) for name, functions in sorted(walk.functions.items())}
    if as_json:
        print(json.dumps(counts), file=sys.stderr)
        return
    for name, count in counts.items():
        print(f"{count:4} {name}")
    print(f"{len(counts)} files, {sum(counts.values())} functions")


if __name__ == "__main__":
    main(sys.argv[1:])
