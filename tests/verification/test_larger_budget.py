"""What a recheck may cost is decided before the work, said with the need, and can be raised."""

import json
from pathlib import Path

import pytest

from attngeom.cli.app import run
from attngeom.errors import InputError
from attngeom.verification import budget, verify

CERTIFICATE = Path(__file__).parents[1] / "golden" / "inputs" / "certificate_dimension.json"


def test_a_certificate_beyond_the_budget_is_undecided_and_says_what_allows_it(monkeypatch):
    monkeypatch.setattr(budget, "_number", str)
    assert verify(CERTIFICATE).valid is True
    found = verify(CERTIFICATE, budget=1e-9)
    assert found.valid is None and "--budget 1 allows it" in found.reason


def test_a_larger_budget_is_enough(monkeypatch):
    from attngeom.verification import jets

    monkeypatch.setattr(jets, "JACOBIAN_PRODUCTS", 100)
    found = verify(CERTIFICATE)
    assert found.valid is None
    needed = int(found.reason.split("--budget ")[1].split()[0])
    assert verify(CERTIFICATE, budget=needed).valid is True
    assert verify(CERTIFICATE, budget=needed - 1).valid is None


@pytest.mark.parametrize("factor", [0, -1, float("nan"), 1e9])
def test_budgets_that_make_no_sense_are_refused(factor):
    with pytest.raises(InputError, match="factor up to"):
        verify(CERTIFICATE, budget=factor)


def test_the_command_takes_a_budget(capsys):
    assert run(["verify", str(CERTIFICATE), "--budget", "1e-9", "--json"]) == 3
    assert json.loads(capsys.readouterr().out)["valid"] is None
    assert run(["verify", str(CERTIFICATE), "--budget", "2", "--json"]) == 0
