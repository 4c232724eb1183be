"""The tests on other machines, as far as one machine can play them: ``python -m tests.anywhere [--rows …] [TESTS …]``.

Each row is an environment: kernels of another CPU (OpenBLAS and NumPy choose them when they start), the oldest and the
newest versions that pyproject.toml admits, transformers beside, another locale, time zone and hash seed. Environments
with other packages are made below ``build/anywhere``. The table goes to ``out/anywhere/table.md``, what failed to one
log per row beside it.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import time
import tomllib
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[1]
PLACE, OUT = ROOT / "build" / "anywhere", ROOT / "out" / "anywhere"
BOUND = re.compile(r"^([A-Za-z0-9_.-]+)>=([0-9.]+)")
COUNTS = re.compile(r"(\d+) (passed|failed|error|errors|skipped)")
EXTRAS = ("viz3d", "explore", "cluster", "notebooks", "parquet")
"""What the tests import besides the tools of the developers, which stay as they are in every environment."""
TOOLS = ("pytest>=8,<10", "pytest-xdist>=3.5,<4", "hypothesis>=6.100,<7", "playwright>=1.40,<2")


@dataclass(frozen=True)
class Row:
    """An environment: its name, variables, and what is installed; "own" is the environment that runs this."""

    name: str
    variables: dict[str, str] = field(default_factory=dict)
    packages: str = "own"


def cpu(name: str, without: str) -> Row:
    """The kernels of another CPU; NumPy is told which of its own it must not use."""
    return Row(f"CPU {name}", {"OPENBLAS_CORETYPE": name, "NPY_DISABLE_CPU_FEATURES": without})


ROWS = [
    Row("this machine"),
    cpu("Nehalem", "X86_V3 X86_V4"),
    cpu("Sandybridge", "X86_V3 X86_V4"),
    cpu("Haswell", "X86_V4"),
    cpu("Zen", "X86_V4"),
    cpu("SkylakeX", ""),
    Row(
        "LC_ALL=C, TZ=Pacific/Kiritimati, random PYTHONHASHSEED",
        {"LC_ALL": "C", "TZ": "Pacific/Kiritimati", "PYTHONHASHSEED": "random"},
    ),
    Row("oldest versions", packages="oldest"),
    Row("newest versions", packages="newest"),
    Row("newest versions with transformers", packages="transformers"),
]


def requirements() -> list[str]:
    """What pyproject.toml asks for, the optional parts that the tests import included."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    optional = project["optional-dependencies"]
    return [*project["dependencies"], *(line for extra in EXTRAS for line in optional[extra])]


def oldest(python: Path, requirement: str) -> str:
    """The requirement that admits the oldest version alone, of those that can be installed."""
    found = BOUND.match(requirement)
    if found is None:
        raise SystemExit(f"{requirement}: no lower bound; give one in pyproject.toml")
    name, bound = found.groups()
    command = [python, "-m", "pip", "index", "versions", "--disable-pip-version-check", name]
    listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    (line,) = (line for line in listed.splitlines() if line.startswith("Available versions:"))
    versions = [version.strip() for version in line.partition(":")[2].split(",")]
    numbers = {version: tuple(map(int, version.split("."))) for version in versions if re.fullmatch(r"[\d.]+", version)}
    least = tuple(map(int, bound.split(".")))
    return f"{name}=={min((version for version in numbers if numbers[version] >= least), key=numbers.__getitem__)}"


def environment(kind: str) -> Path:
    """The Python of an environment with such packages; it is made on first use."""
    if kind == "own":
        return Path(sys.executable)
    place = PLACE / kind
    python = place / "bin" / "python"
    if not (place / "ready").exists():
        subprocess.run([sys.executable, "-m", "venv", "--clear", place], check=True)
        wanted = requirements()
        if kind == "oldest":
            wanted = [oldest(python, requirement) for requirement in wanted]
        if kind == "transformers":
            wanted += ["torch>=2.2,<3", "transformers>=5,<6"]
        command = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *wanted, *TOOLS]
        subprocess.run([*command, "-e", str(ROOT)], check=True)
        (place / "ready").touch()
    return python


def runs_here(row: Row) -> bool:
    """Whether this CPU can run the kernels of the row: a product and a decomposition come to an end."""
    line = "import numpy as n; a = n.random.default_rng(0).normal(size=(80, 80)); n.linalg.svd(a @ a)"
    return subprocess.run([sys.executable, "-c", line], env={**os.environ, **row.variables}).returncode == 0


def run(row: Row, tests: list[str], workers: str) -> str:
    """One line of the table."""
    if not runs_here(row):
        return f"| {row.name} | cannot be run by this CPU | | |"
    python = environment(row.packages)
    command = [python, "-m", "pytest", "-n", workers, "--dist", "worksteal", "-o", "addopts=", "--doctest-modules"]
    command += ["--import-mode=importlib", "-p", "no:logging", "-p", "no:anyio", *tests]
    start = time.monotonic()
    variables = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", **os.environ, **row.variables}
    done = subprocess.run(command, cwd=ROOT, env=variables, capture_output=True, text=True, encoding="utf-8")
    OUT.mkdir(parents=True, exist_ok=True)
    (OUT / f"{re.sub('[^A-Za-z0-9]+', '-', row.name)}.log").write_text(done.stdout + done.stderr, encoding="utf-8")
    counts = {word.rstrip("s"): int(number) for number, word in COUNTS.findall(done.stdout[-2000:])}
    failed = counts.get("failed", 0) + counts.get("error", 0)
    verdict = "all pass" if done.returncode == 0 and not failed else f"{failed or 'run'} failed"
    seconds = time.monotonic() - start
    print(f"{row.name}: {verdict}, {seconds:.0f} s", file=sys.stderr)
    return f"| {row.name} | {verdict} | {counts.get('passed', 0):,} | {counts.get('skipped', 0)} |"


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tests", nargs="*", help="what pytest is given; everything by default")
    parser.add_argument("--rows", help="names of rows, or words that they hold, comma separated; all by default")
    parser.add_argument("--workers", default="auto", help="processes of pytest")
    given = parser.parse_args(arguments)
    words = given.rows.split(",") if given.rows else [""]
    chosen = [row for row in ROWS if row.name in words] or [row for row in ROWS if any(w in row.name for w in words)]
    if not chosen:
        parser.error(f"--rows {given.rows!r} given; one of {', '.join(row.name for row in ROWS)} is required")
    lines = ["| environment | verdict | passed | skipped |", "|---|---|---|---|"]
    lines += [run(row, given.tests, given.workers) for row in chosen]
    OUT.mkdir(parents=True, exist_ok=True)
    (OUT / "table.md").write_text("\n".join(lines) + "\n", encoding="utf-8")
    print("\n".join(lines))
    return int(any(" failed |" in line for line in lines))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
