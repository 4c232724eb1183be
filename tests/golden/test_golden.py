"""The answers of the command line stay as recorded: one test for each case of ``cases.py``.

Each case runs in this process through ``attngeom.cli.main`` on a copy of the stored inputs; ``runner.py`` says what is
masked and how floats are compared, ``record.py`` when records may change.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from attngeom.cli.commands import COMMANDS
from tests.golden.cases import CASES, Case
from tests.golden.runner import INPUTS, OUTPUTS, differences, run_case

SHOWN = 20


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Path(
        shutil.copytree(
            INPUTS, tmp_path_factory.mktemp("golden") / "inputs", ignore=shutil.ignore_patterns("__pycache__")
        )
    )


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_answers_are_as_recorded(case: Case, inputs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    expected = json.loads((OUTPUTS / f"{case.name}.json").read_text(encoding="utf-8"))
    found = json.loads(json.dumps(run_case(case, inputs, tmp_path)))
    assert [step["code"] for step in found["steps"]] == [step.code for step in case.steps]
    different = differences(expected, found)
    assert not different, "\n".join([f"{len(different)} differences", *different[:SHOWN]])


def test_every_case_has_one_record_and_every_command_a_case() -> None:
    names = [case.name for case in CASES]
    assert len(set(names)) == len(names)
    assert {path.stem for path in OUTPUTS.glob("*.json")} == set(names)
    used = {step.line.split(" ")[0] for case in CASES for step in case.steps if step.code != 2}
    # The explorer serves until it is interrupted: what it answers is compared in tests/explore.
    assert used == set(COMMANDS) - {"explore"}
