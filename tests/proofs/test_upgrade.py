"""Certificates of version 1 stay readable, and become certificates of version 2 with the same claim."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from attngeom.cli.app import run
from attngeom.errors import InputError
from attngeom.proofs.upgrade import upgrade
from attngeom.verification import read_certificate, verify, write_certificate

INPUTS = Path(__file__).parents[1] / "golden" / "inputs"
OLD = ("layer", "closure", "heads", "dimension", "softmax", "theorem", "krylov", "laws", "learning")


@pytest.mark.parametrize("name", OLD)
def test_version_one_is_read_and_upgraded(name: str, tmp_path: Path) -> None:
    path, out = INPUTS / f"certificate_{name}.json", tmp_path / "new.json"
    before = read_certificate(path)
    assert before.version == 1 and verify(path).valid
    write_certificate(upgrade(path), out)
    after = read_certificate(out)
    assert after.version == 2 and verify(out).valid
    text = json.dumps(json.loads(out.read_text())["witness"])
    assert ('"seed"' in text) == (name == "krylov")
    old, new = (json.loads(file.read_text())["claim"] for file in (path, out))
    for claim in (old, new):
        claim.get("architecture", {}).pop("temperature", None)
    assert old == new


def test_the_command_writes_the_new_version(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "new.json"
    assert run(["verify", str(INPUTS / "certificate_laws.json"), "--upgrade", str(out), "--json"]) == 0
    assert json.loads(capfd.readouterr().out)["upgraded"] == str(out)
    assert read_certificate(out).version == 2


def test_what_proves_nothing_is_not_upgraded(tmp_path: Path) -> None:
    out = tmp_path / "new.json"
    assert run(["verify", str(INPUTS / "certificate_forged_dimension.json"), "--upgrade", str(out)]) == 1
    assert not out.exists()
    with pytest.raises(InputError, match="does not prove"):
        upgrade(INPUTS / "certificate_forged_dimension.json")


@pytest.mark.parametrize("change", ["version 3", "seed", "point", "field"])
def test_versions_are_not_mixed(change: str, tmp_path: Path) -> None:
    """A seed in version 2, a name in version 1 and a missing field are refused, as is a version that is not known."""
    out = tmp_path / "new.json"
    write_certificate(upgrade(INPUTS / "certificate_dimension.json"), out)
    certificate = read_certificate(out)
    record = certificate.to_json()
    if change == "version 3":
        record["version"] = 3
    elif change == "point":
        record["version"] = 1
    else:
        lower = record["witness"]["lower"]
        if change == "seed":
            lower["seed"] = 0
            del lower["point"]
        else:
            del record["claim"]["architecture"]["temperature"]
        from attngeom.verification import Certificate

        record = Certificate(record["claim"], record["witness"], {}).to_json()
    assert verify(record).valid is False
