"""The verifier stands alone: nothing that searches is loaded by it, and no verifier may import a searcher."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.test_layers import SOURCE, VERIFIER_MODULES, VERIFIERS, foreign_imports

# The frame of the command line besides the verifier's own packages.
FRAME = ("app", "commands", "options", "output", "parameters", "verify")
COMMAND = {"cli", *(f"cli.{name}" for name in FRAME)}
INPUTS = Path(__file__).parents[1] / "golden" / "inputs"


def loaded_by(program: str) -> set[str]:
    """The modules of this package that a fresh process has loaded at the end of a program, without the prefix."""
    ending = "import json; print(json.dumps([m for m in sys.modules if m.startswith('attngeom.')]), file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", f"import sys\n{program}\n{ending}"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return {name.removeprefix("attngeom.") for name in json.loads(done.stderr.splitlines()[-1])}


def searchers(modules: set[str], more: set[str] = frozenset()) -> set[str]:  # type: ignore[assignment]
    allowed = {name.removeprefix("attngeom.") for name in VERIFIER_MODULES} | {"layer"} | more
    return {name for name in modules if name.split(".")[0] not in VERIFIERS and name not in allowed}


PATHS = [str(INPUTS / f"certificate_{name}.json") for name in ("layer", "dimension", "learning")]


def test_the_command_loads_no_searcher() -> None:
    """For one certificate after the other: what any of them loads is there at the end."""
    modules = loaded_by(f"from attngeom.cli.app import run\nfor path in {PATHS}: run(['verify', path, '--json'])")
    assert {"verification.layer", "verification.dimension", "verification.learning"} <= modules
    assert not searchers(modules, COMMAND)


def test_the_function_loads_no_searcher() -> None:
    modules = loaded_by(f"import attngeom\nfor path in {PATHS}: assert attngeom.verify(path).valid")
    assert {"verification.layer", "verification.dimension", "verification.learning"} <= modules
    assert not searchers(modules)


@pytest.mark.parametrize(
    "line",
    [
        "from attngeom.certification import refutation",
        "from attngeom.certification.refutation import find_violation",
        "import attngeom.certification.refutation",
        "from attngeom.layer.splitting import split_layer",
        "from attngeom.layer import splitting",
        "from attngeom import certification",
        "from attngeom import certify",
        "def check():\n    from attngeom.dimensions import dimension",
        "import importlib\nimportlib.import_module('attngeom.certification')",
    ],
)
def test_a_planted_import_is_found(line: str, tmp_path: Path) -> None:
    """In each verifier, wherever the import stands."""
    planted = tmp_path / "planted.py"
    for path in sorted(SOURCE.glob("verification/*.py")):
        planted.write_text(f"{path.read_text()}\n{line}\n")
        assert foreign_imports(planted), f"{line!r} in {path.name} went unseen"
