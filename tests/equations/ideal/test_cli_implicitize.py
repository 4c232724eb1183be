"""``attngeom implicitize``: the JSON contract, generators, budgets, bad input."""

import json
import subprocess
import sys

import pytest

from attngeom.cli.app import run
from attngeom.equations.ideal import completeness
from tests.effort import choose, thorough


def answer(capsys, *arguments: str) -> tuple[int, dict]:
    code = run(["implicitize", *arguments, "--json"])
    return code, json.loads(capsys.readouterr().out)


def test_json_has_the_promised_keys(capsys) -> None:
    code, record = answer(capsys, "--d", "3", "--a", "2", "--max-degree", "4")
    assert code == 0 and (record["d"], record["a"], record["targets"]) == (3, 2, 3)
    quartics = record["degrees"][3]
    assert (quartics["monomials"], quartics["hilbert_function"], quartics["ideal_dimension"]) == (5985, 5400, 585)
    assert quartics["representations"] == [{"lambda": [4, 4], "mu": [2, 2], "dimension": 90}]
    assert (quartics["minimal_generators"], quartics["from_families"], quartics["missing"]) == (90, 90, 0)
    assert quartics["evidence"]["minimal_generators"] == "proven"


def test_variants_and_proofs(capsys) -> None:
    code, record = answer(capsys, "--d", "2", "--a", "1", "--tokens", "2", "--causal", "--max-degree", "2", "--prove")
    assert code == 0 and [d["minimal_generators"] for d in record["degrees"]] == [8, 3]
    assert record["degrees"][0]["evidence"]["ideal_dimension_at_least"] == "proven"
    code, record = answer(capsys, "--d", "2", "--a", "2", "--d-out", "2", "--max-degree", "2")
    assert record["degrees"][1]["representations"] == [{"rho": [1, 1], "lambda": [4], "mu": [1, 1], "dimension": 5}]


def test_generators_are_written(tmp_path, capsys) -> None:
    path = tmp_path / "g.json"
    code, _ = answer(capsys, "--d", "2", "--a", "1", "--max-degree", "2", "--generators", str(path), "--no-families")
    assert code == 0 and len(json.loads(path.read_text())["generators"]) == 3
    arguments = ["--d", "2", "--a", "1", "--max-degree", "2", "--generators", str(path), "--highest-only"]
    answer(capsys, *arguments)
    assert len(json.loads(path.read_text())["generators"]) == 1
    for suffix, line in ((".jl", "using Oscar"), (".sage", "PolynomialRing(QQ")):
        program = path.with_suffix(suffix)
        assert answer(capsys, *arguments[:-2], str(program), "--no-families")[0] == 0
        assert line in program.read_text()


def test_a_budget_gives_exit_code_three_and_a_state_file_resumes(tmp_path, capsys) -> None:
    state = str(tmp_path / "run.json")
    arguments = ["--d", "3", "--a", "3", "--max-degree", "3", "--state", state]
    code, record = answer(capsys, *arguments, "--max-seconds", "0")
    assert code == 3 and not record["finished"] and record["degrees"] == []
    code, record = answer(capsys, *arguments)
    assert code == 0 and record["degrees"][2]["minimal_generators"] == 20


def test_the_table_names_modules_and_evidence(capsys) -> None:
    assert run(["implicitize", "--d", "3", "--a", "3", "--max-degree", "3"]) == 0
    out = capsys.readouterr().out
    assert "S_222⊗S_3 (10) + S_33⊗S_111 (10)" in out and "proven" in out


@pytest.mark.parametrize(("d", "a", "last"), [("4", "1", 3), ("3", "2", 4), ("1", "1", 0), ("768", "64", 65)])
def test_all_degrees_by_theorem(d, a, last, capsys) -> None:
    code, record = answer(capsys, "--d", d, "--a", a, "--max-degree", "2", "--complete")
    found = record["completeness"]
    assert code == 0 and found["complete"] and found["standing"] == "theorem" and found["generated_in_degree"] == last
    assert max((module["degree"] for module in found["modules"]), default=0) == last and found["checked"] == []
    assert run(["implicitize", "--d", d, "--a", a, "--max-degree", "2", "--complete"]) == 0
    out = capsys.readouterr().out
    assert (f"generated in degrees ≤ {last}: theorem" in " ".join(out.split())) == (last > 0)


def test_the_finite_runs_beside_the_theorem(capsys, monkeypatch) -> None:
    monkeypatch.setattr(completeness, "check_theorem", lambda: 0)  # five seconds, with tests of its own
    code, record = answer(capsys, "--d", "3", "--a", "2", "--max-degree", "2", "--complete", "--check")
    found = record["completeness"]
    assert code == 0 and found["check_proven"] and found["prime"] == 2147483629 and found["new"] == []
    assert sum(entry["modules"] for entry in found["checked"]) == 30 and found["computed"] == 17
    arguments = ["--d", "4", "--a", "4", "--max-degree", "2", "--complete", "--check", "--max-megabytes", "0.01"]
    code, record = answer(capsys, *arguments)
    assert code == 3 and not record["completeness"]["check_proven"] and record["completeness"]["standing"] == "theorem"


def test_how_much_was_written_is_said(tmp_path, capsys) -> None:
    path = tmp_path / "g.m2"
    assert run(["implicitize", "--d", "3", "--a", "1", "--max-degree", "3", "--generators", str(path)]) == 0
    assert f"55 generators written to {path}" in capsys.readouterr().out
    arguments = ["--d", "60", "--a", "3", "--max-degree", "3", "--generators", str(path), "--max-megabytes", "50"]
    assert run(["implicitize", *arguments]) == 3
    assert "No generators were written" in capsys.readouterr().out


MEASURED = """
import re, sys, time
from pathlib import Path
from attngeom.cli.app import run
code = run(sys.argv[1:])
print(time.process_time(), re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text()).group(1))
sys.exit(code)
"""
# Not what the parent is told of its children: that counts the memory of the parent at the fork.


@pytest.mark.parametrize(
    "arguments",
    [
        ["--d", "7", "--a", "7", "--max-degree", "7"],
        *thorough(
            ["--d", "4", "--a", "4", "--max-degree", "8", "--method", "weights"],
            ["--d", "3", "--a", "3", "--d-out", "3", "--max-degree", "8"],
        ),
    ],
)
def test_limits_of_time_and_memory_are_kept(arguments) -> None:
    """In a process of its own, whose time on the processor and largest memory it says last."""
    limits = ["--max-seconds", choose("0.5", "2"), "--max-megabytes", "150"]
    command = [sys.executable, "-c", MEASURED, "implicitize", *arguments, *limits]
    result = subprocess.run(command, capture_output=True, text=True)
    assert result.returncode == 3 and "Stopped in degree" in result.stdout
    seconds, kilobytes = map(float, result.stdout.split()[-2:])
    assert seconds < 25 and kilobytes < 450_000


@pytest.mark.parametrize(
    "arguments",
    [
        ["--d", "3", "--a", "2", "--max-degree", "2", "--complete", "--d-out", "2"],
        ["--d", "4", "--a", "2", "--max-degree", "2", "--complete", "--tokens", "1"],
        ["--d", "30", "--a", "30", "--max-degree", "1", "--complete", "--check"],
        ["--d", "3", "--a", "2", "--max-degree", "1", "--workers", "2"],
        ["--d", "3", "--a", "2", "--max-degree", "1", "--complete", "--check", "--workers", "1000"],
        ["--d", "50", "--a", "3", "--max-degree", "30"],
        ["--d", "3", "--a", "2", "--max-degree", "2", "--causal"],
        ["--d", "3", "--a", "2", "--max-degree", "2", "--method", "magic"],
        ["--d", "3", "--a", "2", "--max-degree", "2", "--generators", "g.txt"],
        ["--d", "3", "--a", "2", "--max-degree", "2", "--tokens", "2", "--targets", "2"],
        ["--d", "0", "--a", "2", "--max-degree", "2"],
        ["--d", "3", "--a", "2", "--max-degree", "2", "--method", "highest", "--tokens", "1"],
    ],
)
def test_bad_input_gives_one_line_and_exit_code_two(arguments, capsys) -> None:
    assert run(["implicitize", *arguments]) == 2
    captured = capsys.readouterr()
    assert captured.out == "" and captured.err.count("\n") == 1 and "Traceback" not in captured.err
