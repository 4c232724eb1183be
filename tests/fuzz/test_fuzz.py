"""A short run of every target; ``make fuzz`` runs for hours."""

import pytest

from tests.effort import choose
from tests.fuzz.harness import Trial, fuzz, run_trial
from tests.fuzz.targets import TARGETS

COUNT = choose(6, 15)


@pytest.mark.parametrize("target", TARGETS, ids=[target.name for target in TARGETS])
def test_altered_files_are_answered_or_refused(target):
    found = fuzz(target, seed=0, count=COUNT)
    assert not found.faults
    assert found.trials == COUNT


@pytest.mark.parametrize("target", TARGETS, ids=[target.name for target in TARGETS])
def test_targets_have_files(target):
    assert target.files()


def test_a_crash_is_a_fault(monkeypatch):
    from attngeom.cli import app

    def crash(name):
        raise ZeroDivisionError

    monkeypatch.setattr(app, "build_command", crash)
    code, wrong, _ = run_trial(Trial("certificates", 0))
    assert code == 4 and "ZeroDivisionError" in wrong
