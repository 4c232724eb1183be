"""A reader's walk: which files of the package a request enters, beyond importing them.

    python -m tests.walk dim --widths 3,3,3 --attention 2 --prove

prints them, with how many functions of each were called.
"""

from __future__ import annotations

import importlib
import json
import os
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


def walk_all(requests: list[list[str]]) -> list[dict[str, int]]:
    """The files that each command enters, with how many of their functions, in processes of their own."""
    run = [sys.executable, "-m", "tests.walk", "--all"]
    given = json.dumps(requests)
    answer = subprocess.run(run, input=given, capture_output=True, text=True, cwd=SOURCE.parents[1], check=False)
    assert answer.returncode == 0, answer.stderr
    record: list[dict[str, int]] = json.loads(answer.stdout.splitlines()[-1])
    return record


def watch_request(arguments: list[str]) -> dict[str, int]:
    """What a command enters that runs here."""
    from attngeom.cli import main as run

    walk, sys.argv = Walk(), ["attngeom", *arguments]
    sys.setprofile(walk.watch)
    try:
        run()
    except SystemExit:
        pass
    finally:
        sys.setprofile(None)
    return {name: len(functions) for name, functions in sorted(walk.functions.items())}


def watch_apart(arguments: list[str]) -> dict[str, int]:
    """The same in a copy of this process, which has loaded nothing of the package: its caches are empty."""
    read, write = os.pipe()
    child = os.fork()
    if not child:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        os.write(write, json.dumps(watch_request(arguments)).encode())
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as stream:
        record: dict[str, int] = json.load(stream)
    os.waitpid(child, 0)
    return record


def main(arguments: list[str]) -> None:
    if arguments == ["--all"]:
        # What every request loads is loaded once.
        for name in ("flint", "numpy", "rich.progress", "scipy.linalg", "typer.main"):
            importlib.import_module(name)
        print(json.dumps([watch_apart(request) for request in json.load(sys.stdin)]))
        return
    counts = watch_request(arguments)
    for name, count in counts.items():
        print(f"{count:4} {name}")
    print(f"{len(counts)} files, {sum(counts.values())} functions")


if __name__ == "__main__":
    main(sys.argv[1:])
