"""The toy question is known to this process and to all that tests start."""

import os
from pathlib import Path

import pytest

from attngeom.atlas import questions


@pytest.fixture(autouse=True)
def toy_question(monkeypatch):
    root = str(Path(__file__).parents[2])
    monkeypatch.setenv(questions.VARIABLE, "tests.atlas.toy")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, [root, os.environ.get("PYTHONPATH")])))
    monkeypatch.syspath_prepend(root)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "atlas.db"
