"""What would be published is small and holds the package alone: ``python -m tests.distribution FOLDER``.

The wheel is installed from the folder with each Python that is here and admitted, and answers there.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

LARGEST = 2 * 10**6
"""Bytes of a file that is published."""
CHECKER = ("attngeom_check.py", "attngeom_check_deep.py", "attngeom_check_programs.py")
ALLOWED = ("attngeom/", *CHECKER, *(f"checker/{name}" for name in CHECKER), "src/attngeom/")
PAPERS = {
    "CHANGELOG.md",
    "CITATION.cff",
    "LICENSE",
    "PKG-INFO",
    "README.md",
    "SECURITY.md",
    "pyproject.toml",
    ".gitignore",
}
STRANGE = (".png", ".svg", ".safetensors", ".ipynb", ".pyc", ".db")
PYTHONS = ("python3.11", "python3.12", "python3.13", "python3.14")
DIM = ["-m", "attngeom", "dim", "--widths", "3,3,3", "--attention", "2", "--tokens", "3", "--prove", "--json"]


def names(path: Path) -> list[str]:
    """The files inside, without the folder that a source distribution has around them."""
    if path.suffix == ".whl":
        with zipfile.ZipFile(path) as archive:
            return [name for name in archive.namelist() if ".dist-info/" not in name]
    with tarfile.open(path) as archive:
        return [name.partition("/")[2] for name in archive.getnames()]


def faults(path: Path) -> list[str]:
    """What is wrong with a file that would be published."""
    found = []
    if path.stat().st_size >= LARGEST:
        found.append(f"{path.name} has {path.stat().st_size:,} bytes; fewer than {LARGEST:,} are allowed")
    for name in names(path):
        is_ours = name.startswith(ALLOWED) or name in PAPERS
        if not is_ours or (name.endswith(STRANGE) and "/explore/assets/" not in name):
            found.append(f"{path.name} holds {name}")
    return found


def runs(python: str) -> bool:
    """Whether there is such a Python, and not only a name for one."""
    return shutil.which(python) is not None and subprocess.run([python, "-c", ""], capture_output=True).returncode == 0


def tried(wheel: Path, python: str) -> str:
    """Install the wheel in an empty environment of this Python, and ask it something."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([python, "-m", "venv", folder], check=True)
        inside = str(Path(folder) / "bin" / "python")
        pip = [inside, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", str(wheel)]
        subprocess.run(pip, check=True)
        done = subprocess.run([inside, *DIM], cwd=folder, capture_output=True, text=True)
        if done.returncode != 0 or '"dimension": 23' not in done.stdout:
            raise SystemExit(f"{python}: {done.stderr.strip() or done.stdout[:200]}")
        return subprocess.run([inside, "--version"], capture_output=True, text=True, check=True).stdout.strip()


def main(arguments: list[str]) -> int:
    folder = Path(arguments[0])
    (wheel,), (source,) = folder.glob("*.whl"), folder.glob("*.tar.gz")
    found = faults(wheel) + faults(source)
    print(*found, sep="\n", end="\n" if found else "")
    for path in (wheel, source):
        print(f"{path.name}: {path.stat().st_size:,} bytes, {len(names(path))} files")
    for python in PYTHONS:
        if not found and runs(python):
            print(f"installed and asked in {tried(wheel, python)}")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
