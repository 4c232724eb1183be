"""Answers for people show at most six significant digits of a float; full digits are in ``--json`` and in files."""

import re
import shutil
from pathlib import Path

import pytest

from tests.effort import choose
from tests.golden.cases import CASES, Case
from tests.golden.runner import INPUTS, call

FLOAT = re.compile(r"(?<![\w/.,-])-?\d*\.\d+(?:e[+-]?\d+)?")
ROUNDING = re.compile(r"\d(\.\d+)?e-(1[3-9]|[2-9]\d)")
MOST = 6
NUMBERS = re.compile("float|forward|queries|teleport-norm|compare|import|track|square-root|inspect|lambda")
"""Cases whose answers may hold floats; all of them are tried in the thorough mode."""
LONG = re.compile("^(atlas|reproduce|dim)")
SHOWN = [case for case in CASES if choose(NUMBERS.search(case.name), not LONG.search(case.name))]


def digits(text: str) -> int:
    return len(text.lstrip("-").partition("e")[0].replace(".", "").lstrip("0"))


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Path(
        shutil.copytree(
            INPUTS, tmp_path_factory.mktemp("digits") / "inputs", ignore=shutil.ignore_patterns("__pycache__")
        )
    )


@pytest.mark.parametrize("case", SHOWN, ids=[case.name for case in SHOWN])
def test_answers_show_few_digits(case: Case, inputs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for step in case.steps:
        _, printed, complaint = call([word for word in step.arguments(inputs, tmp_path) if word != "--json"])
        for line in (printed + complaint).replace(str(tmp_path), "").replace(str(inputs), "").splitlines():
            assert all(digits(number) <= MOST for number in FLOAT.findall(line)), line
            assert not ROUNDING.search(line), f"rounding errors are told: {line}"


def test_digits_are_counted() -> None:
    assert [digits(x) for x in FLOAT.findall("1.25 -0.00012345678 3.0e-17 1/2.5")] == [3, 8, 2]
