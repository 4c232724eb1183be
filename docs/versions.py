"""``python docs/versions.py OUT``: the site of every version, side by side, each with a list of the others.

OUT/NAME is the site of one version: ``dev`` of this checkout, X.Y.Z of the tag vX.Y.Z, each built from the files of its
tag alone. OUT/index.html leads to the newest release, or to ``dev`` before the first. A site that cannot be built is an
error that names its version; nothing of OUT is replaced then.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
DEVELOPMENT = "dev"


def releases(tags: list[str]) -> list[str]:
    """The versions of tags vX.Y.Z, newest first; other tags are not releases.

    >>> releases(["v1.0.0", "v1.10.0", "v1.9.2", "draft", "v2.0.0rc1"])
    ['1.10.0', '1.9.2', '1.0.0']
    """
    numbers = [tuple(map(int, tag[1:].split("."))) for tag in tags if re.fullmatch(r"v\d+\.\d+\.\d+", tag)]
    return [".".join(map(str, each)) for each in sorted(numbers, reverse=True)]


def start_page(names: list[str]) -> str:
    """The page that leads to the newest release."""
    newest = next((name for name in names if name != DEVELOPMENT), DEVELOPMENT)
    return (
        f'<!doctype html>\n<meta charset="utf-8"><title>attngeom</title>\n'
        f'<meta http-equiv="refresh" content="0; url={newest}/index.html">\n'
        f'<a href="{newest}/index.html">attngeom</a>\n'
    )


def build(source: Path, name: str, names: list[str], out: Path) -> None:
    """The site of the sources in one folder."""
    surroundings = {**os.environ, "ATTNGEOM_SITE": name, "ATTNGEOM_SITES": " ".join(names)}
    command = [sys.executable, "-m", "sphinx", "-q", "-b", "html", str(source / "docs"), str(out)]
    if subprocess.run(command, env=surroundings, check=False).returncode:
        raise SystemExit(f"the site of version {name} cannot be built; what Sphinx said stands above")


def main(out: Path) -> None:
    tags = subprocess.run(["git", "tag", "--list"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    names = [DEVELOPMENT, *releases(tags)]
    out.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=out.parent) as scratch:
        sites = Path(scratch) / "sites"
        for name in names:
            source = ROOT
            if name != DEVELOPMENT:
                source = Path(scratch) / name
                source.mkdir()
                packed = subprocess.run(["git", "archive", f"v{name}"], cwd=ROOT, capture_output=True, check=True)
                subprocess.run(["tar", "-x", "-C", str(source)], input=packed.stdout, check=True)
            build(source, name, names, sites / name)
        (sites / "index.html").write_text(start_page(names), encoding="utf-8")
        if out.exists():
            shutil.rmtree(out)
        sites.rename(out)
    print(f"the sites of {', '.join(names)}: {out}/index.html")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    main(Path(sys.argv[1]).resolve())
