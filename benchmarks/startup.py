"""CPU seconds from the start of the process until a command begins its own work, for every command.

    python benchmarks/startup.py [--quick]

A command has begun when its help is printed: its module is loaded and its options are read. Bytecode is in its cache,
as pip leaves it; the least of several starts is taken.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys

from attngeom.cli.commands import COMMANDS
from contract import emit, require


def cpu_seconds(arguments: list[str], starts: int) -> float:
    """CPU seconds of a Python process with these arguments: the least of several starts, after one for the cache."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    found = []
    for _ in range(starts + 1):
        before = os.times()
        done = subprocess.run([sys.executable, *arguments], env=environment, capture_output=True, text=True, check=True)
        after = os.times()
        require("--help" not in arguments or "Usage" in done.stdout, f"the help is printed: {arguments}")
        found.append(after.children_user + after.children_system - before.children_user - before.children_system)
    return min(found[1:])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="two starts of each")
    starts = 2 if parser.parse_args().quick else 5
    floor = cpu_seconds(["-c", "import numpy, flint, typer"], starts)
    calls = {"import attngeom": ["-c", "import attngeom"], "attngeom --help": ["-m", "attngeom", "--help"]}
    calls |= {f"attngeom {name}": ["-m", "attngeom", name, "--help"] for name in COMMANDS}
    for case, arguments in calls.items():
        found = cpu_seconds(arguments, starts)
        emit("start of the command line", case, found)
        if "-m" in arguments:
            emit("start of the command line", case, floor, "NumPy, FLINT and typer alone")
        print(f"{case:30} {found:.2f} CPU s", flush=True)


if __name__ == "__main__":
    main()
