"""The commands invariants, certify and verify: answers, exit codes, one line for each error."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from attngeom.cli.app import run
from attngeom.exact import QQ, RR
from attngeom.layer.files import coefficients_to_json, write_coefficients
from tests.certification.cases import from_matrices, from_table, table

CASES = {
    "realizable": (from_matrices(QQ.convert([[1, 2], [0, 3]]), QQ.convert([[3, 5]]), 2), 0),
    "closure_only": (from_table(table(2, 1, {(0, 0, 0, 0): 1, (0, 1, 1, 0): 2}), 2), 1),
    "not_realizable": (from_table(table(2, 1, {(0, 0, 0, 0): 1, (0, 1, 1, 1): 1}), 2), 1),
}


@pytest.mark.parametrize("verdict", CASES)
def test_certify_then_verify(verdict: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    coefficients, code = CASES[verdict]
    path, out = tmp_path / "c.json", tmp_path / "cert.json"
    write_coefficients(coefficients, path)
    assert run(["certify", str(path), "--out", str(out), "--json"]) == code
    answer = json.loads(capsys.readouterr().out)
    assert answer["verdict"] == verdict
    assert ("weights" in answer) != ("violated" in answer)
    assert run(["verify", str(out), "--json"]) == 0
    checked = json.loads(capsys.readouterr().out)
    assert checked["valid"] is True
    assert set(checked) == {"valid", "claim", "standing", "reason"}
    assert run(["certify", str(path)]) == code
    assert verdict in capsys.readouterr().out


def test_verify_rejects_an_altered_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, out = tmp_path / "c.json", tmp_path / "cert.json"
    write_coefficients(CASES["realizable"][0], path)
    run(["certify", str(path), "--out", str(out)])
    out.write_text(out.read_text().replace('"realizable"', '"not_realizable"'))
    capsys.readouterr()
    assert run(["verify", str(out), "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["valid"] is False


def test_undecided_floats_exit_with_three(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rng = np.random.default_rng(0)
    cross = from_matrices(rng.standard_normal((3, 3)), rng.standard_normal((1, 3)), 2, RR).cross[:, 0, 0]
    path = tmp_path / "c.json"
    write_coefficients(from_table(cross + 1e-6 * rng.standard_normal(cross.shape), 2, RR), path)
    run(["certify", str(path), "--json", "--tolerance", "1e-15"])
    distance = json.loads(capsys.readouterr().out)["residual"]
    assert run(["certify", str(path), "--json", "--tolerance", str(distance / 1.05)]) == 3
    answer = json.loads(capsys.readouterr().out)
    assert answer["verdict"] == "undecided"
    assert answer["residual"] > answer["tolerance"] > 0
    assert run(["certify", str(path), "--tolerance", str(distance / 1.05), "--out", str(tmp_path / "x.json")]) == 2
    assert not (tmp_path / "x.json").exists()


@pytest.mark.parametrize(
    "arguments", [["certify", "absent.json"], ["verify", "absent.json"], ["invariants", "--d", "3"]]
)
def test_bad_input_is_one_line_and_exit_two(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(arguments) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert len(captured.err.strip().splitlines()) == 1


@pytest.mark.parametrize("content", ["", "{}", "[1]", '{"format": "attngeom/coefficients", "version": 1}', "\x00"])
def test_broken_coefficient_files_are_refused(content: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "c.json"
    path.write_text(content)
    assert run(["certify", str(path)]) == 2
    assert len(capsys.readouterr().err.strip().splitlines()) == 1


def test_counts_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["invariants", "--d", "3", "--a", "2", "--count", "--json"]) == 0
    families = json.loads(capsys.readouterr().out)["families"]
    assert families["slice-pencil"]["degree"] == 3
    assert families["slice-pencil"]["count"] == 10
    assert families["attention-rank"]["count"] == 20


@pytest.mark.parametrize("form", ["text", "m2", "singular", "sympy", "latex", "json"])
def test_every_format_is_written(form: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["invariants", "--d", "3", "--a", "2", "--family", "slice-pencil", "--format", form]
    assert run(arguments) == 0
    printed = capsys.readouterr().out
    assert len(printed.splitlines()) >= 10
    assert run([*arguments, "--out", str(tmp_path / "out")]) == 0
    assert (tmp_path / "out").read_text() == printed


def test_one_member_is_reached_by_its_number(capsys: pytest.CaptureFixture[str]) -> None:
    sizes = ["--d", "7", "--a", "7"]
    arguments = ["invariants", *sizes, "--family", "sylvester-resultant", "--index", "1000000", "--json"]
    assert run(arguments) == 0
    assert json.loads(capsys.readouterr().out)["index"] == 1000000


def test_t1_and_outside_terms_pass_through_files(tmp_path: Path) -> None:
    record = coefficients_to_json(CASES["realizable"][0])
    record["terms"].append({"output": [0, 0], "monomial": [[0, 0], [0, 0], [0, 1]], "value": "1"})
    path = tmp_path / "c.json"
    path.write_text(json.dumps(record))
    assert run(["certify", str(path)]) == 1


@pytest.mark.parametrize(("d", "rows"), [(251, 1), (60, 2)])
def test_short_files_of_many_variables_are_bounded(
    d: int, rows: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One token: d^3 numbers, or 2d·C(d+3, 4) for two rows, from a file of some hundred bytes."""
    terms = [{"output": [n, 0], "monomial": [[n, 0], [1, 0], [2, 0]], "value": "1"} for n in range(rows)]
    path = tmp_path / "c.json"
    record = {"format": "attngeom/coefficients", "version": 1, "d": d, "d_out": rows, "t": 1, "terms": terms}
    path.write_text(json.dumps(record))
    assert run(["certify", str(path)]) == 2
    assert "are needed; at most" in capsys.readouterr().err
