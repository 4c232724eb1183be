"""The commands under ``attngeom atlas``, from a sweep file to figures."""

import io
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import redirect_stdout
from dataclasses import replace
from pathlib import Path

import pytest

from attngeom.atlas import FactStore
from attngeom.cli.app import run as run_program

SECONDS = 300
"""Only what never comes is waited for so long."""
SWEEP = """
[budget]
seconds = 60
[[dimension]]
widths = [1, 2]
tokens = 2
[[ideal]]
d = 2
degrees = [2, 3, 4]
"""


@pytest.fixture(scope="module")
def swept(tmp_path_factory):
    """A folder with a sweep and the store that a run of it filled, and what the run said."""
    folder, printed = tmp_path_factory.mktemp("swept"), io.StringIO()
    sweep, store = folder / "sweep.toml", folder / "atlas.db"
    sweep.write_text(SWEEP)
    with redirect_stdout(printed):
        assert run_program(["atlas", "run", str(sweep), "--store", str(store), "--workers", "1", "--json"]) == 0
    return folder, json.loads(printed.getvalue())


@pytest.fixture
def finished(swept, tmp_path):
    """A copy that a test may change."""
    folder, report = swept
    sweep, store = (Path(shutil.copy(folder / name, tmp_path)) for name in ("sweep.toml", "atlas.db"))
    return sweep, store, report


def test_run_show_export_verify_plot(finished, tmp_path, capsys):
    sweep, store, report = finished
    assert report["is_complete"] and report["new"] == report["facts"]
    assert run_program(["atlas", "run", str(sweep), "--store", str(store), "--workers", "1", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["new"] == 0

    assert run_program(["atlas", "show", "--store", str(store), "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)["facts"]
    assert len(facts) == report["facts"]
    assert {"architecture", "question", "answer", "evidence"} <= set(facts[0])
    options = ["--question", "dimension", "--where", "dimension>=4", "--sort", "-dimension", "--json"]
    assert run_program(["atlas", "show", "--store", str(store), *options]) == 0
    dimensions = [fact["answer"]["dimension"] for fact in json.loads(capsys.readouterr().out)["facts"]]
    assert dimensions == sorted(dimensions, reverse=True) and min(dimensions) >= 4
    assert run_program(["atlas", "show", "--store", str(store), "--limit", "2"]) == 0
    assert f"{len(facts)} facts; the first 2 are shown" in capsys.readouterr().out

    for suffix in ("csv", "md"):
        out = tmp_path / f"facts.{suffix}"
        assert run_program(["atlas", "export", "--store", str(store), "--out", str(out)]) == 0
        assert out.stat().st_size > 100
    capsys.readouterr()

    assert run_program(["atlas", "summary", "--store", str(store), "--out", str(tmp_path / "summary.md")]) == 0
    assert capsys.readouterr().out == f"written to {tmp_path / 'summary.md'}\n"
    summary = (tmp_path / "summary.md").read_text()
    answers = [fact["answer"] for fact in facts if fact["question"] == "dimension"]
    share = sum(answer["dimension"] / answer["num_parameters"] for answer in answers) / len(answers)
    assert f"| lightning | 6 | 6 | 6 of 6 | {share:.2f} |" in summary
    assert "| ≥ 2 | 1 | 2 | 2 | 2 | 0 | 0 | 1 |" in summary
    assert run_program(["atlas", "summary", "--store", str(store)]) == 0
    shown = capsys.readouterr().out
    assert "Dimensions by kind of network\nnetwork" in shown and "|" not in shown

    assert run_program(["atlas", "verify", "--store", str(store), "--workers", "1", "--recompute", "2", "--json"]) == 0
    verdict = json.loads(capsys.readouterr().out)
    assert verdict["valid"] and verdict["certificates"] > 0 and verdict["sums"] == 6

    for kind, magic in (("png", b"\x89PNG"), ("svg", b"<?xml")):
        assert run_program(["atlas", "plot", "--store", str(store), "--out", str(tmp_path), "--format", kind]) == 0
        for name in ("dimension", "ideal"):
            assert (tmp_path / f"atlas_{name}.{kind}").read_bytes().startswith(magic)


def test_merge_adds_each_fact_once_and_reports_contradictions(finished, tmp_path, capsys):
    _, store, report = finished
    other = tmp_path / "other.db"
    for new in (report["facts"], 0):
        assert run_program(["atlas", "merge", str(store), "--store", str(other), "--json"]) == 0
        merged = json.loads(capsys.readouterr().out)
        assert (merged["new"], merged["facts"]) == (new, report["facts"])
    with FactStore(store, read_only=True) as opened, FactStore(tmp_path / "wrong.db") as wrong:
        fact = next(opened.facts("dimension"))
        wrong.add([replace(fact, result=replace(fact.result, answer={**fact.result.answer, "dimension": 99}))])
    assert run_program(["atlas", "merge", str(tmp_path / "wrong.db"), "--store", str(other)]) == 1
    assert "1 contradictions" in capsys.readouterr().out


def test_a_dry_run_says_what_is_left_and_writes_nothing(finished, tmp_path, capsys):
    sweep, store, report = finished
    arguments = ["atlas", "run", str(sweep), "--dry-run", "--json", "--store"]
    assert run_program([*arguments, str(tmp_path / "none.db")]) == 0
    left = json.loads(capsys.readouterr().out)["pending"]
    assert left["dimension"]["tasks"] == 6 and left["ideal-weight"]["cpu_seconds"] > 0
    assert not (tmp_path / "none.db").exists()
    assert run_program([*arguments, str(store)]) == 0
    plan = json.loads(capsys.readouterr().out)
    # Six sums are facts, too.
    assert plan["pending"] == {} and plan["known"] == report["facts"] - 6


def test_a_wrong_fact_makes_verify_say_no(finished, capsys):
    _, store, _ = finished
    with FactStore(store) as opened:
        part = next(opened.facts("ideal-weight"))
    with sqlite3.connect(store) as database:
        database.execute("DELETE FROM facts WHERE key = ?", (part.task.key,))
    database.close()
    assert run_program(["atlas", "verify", "--store", str(store), "--certificates", "0", "--workers", "1"]) == 1
    assert "parts are missing" in capsys.readouterr().out


def test_failures_are_shown_and_give_exit_code_3(tmp_path, capsys):
    sweep, store = tmp_path / "sweep.toml", tmp_path / "atlas.db"
    sweep.write_text('[[toy]]\nact = "fail"\nsizes = [1, 2]\n')
    assert run_program(["atlas", "run", str(sweep), "--store", str(store), "--workers", "1"]) == 3
    assert "2 now, 0 before" in capsys.readouterr().out
    assert run_program(["atlas", "show", "--store", str(store), "--failures", "--json"]) == 0
    failures = json.loads(capsys.readouterr().out)["failures"]
    assert [failure["reason"] for failure in failures] == ["error", "error"]
    assert run_program(["atlas", "show", "--store", str(store), "--failures"]) == 0
    assert "unlucky" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "nothing.toml"], "does not exist"),
        (["run", "nothing.toml", "--workers", "1", "--scheduler", "x"], "does not exist|give one of the two"),
        (["show", "--store", "nothing.db"], "does not exist"),
        (["export", "--store", "nothing.db", "--out", "x.xlsx"], "ends in"),
        (["plot", "--store", "nothing.db", "--out", "x", "--format", "gif"], "one of svg, png"),
        (["verify", "--store", "nothing.db"], "does not exist"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(arguments, message, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert run_program(["atlas", *arguments]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    assert any(part in captured.err for part in message.split("|"))
    assert list(tmp_path.iterdir()) == []


def test_names_and_seeds_that_no_store_can_hold_are_bad_input(finished, capsys):
    sweep, store, _ = finished
    assert run_program(["atlas", "show", "--store", str(store), "--question", "\udcff"]) == 2
    assert "no UTF-8 text" in capsys.readouterr().err
    assert run_program(["atlas", "run", str(sweep), "--store", str(store), "--seed", str(2**63)]) == 2
    assert "2^63 - 1 is required" in capsys.readouterr().err


def test_an_interrupt_leaves_a_store_from_which_the_run_goes_on(tmp_path):
    sweep, store = tmp_path / "sweep.toml", tmp_path / "atlas.db"
    table = "[[toy]]\nsizes = {from = 1, to = 60}\nsleep = 0.01\n"
    # The last task never ends, so that the interrupt cannot come too late, however busy the machine is.
    sweep.write_text(table + '[[toy]]\nact = "hang"\nsleep = 1000\n')
    command = [sys.executable, "-m", "attngeom", "atlas", "run", str(sweep), "--store", str(store), "--workers", "1"]
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # Shells start what runs in the background with interrupts ignored, and that is inherited.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    deadline = time.monotonic() + SECONDS
    while not (store.exists() and _count(store)):
        assert process.poll() is None and time.monotonic() < deadline
        time.sleep(0.05)
    os.kill(process.pid, signal.SIGINT)
    _, errors = process.communicate(timeout=SECONDS)
    assert process.returncode == 130
    before = _count(store)
    assert errors.strip() == f"attngeom: interrupted; {before} facts are stored, run it again to go on"
    assert 0 < before < 61
    sweep.write_text(table)
    assert run_program(command[3:]) == 0
    assert _count(store) == 61


def _count(path):
    try:
        with FactStore(path, read_only=True) as store:
            return store.count()
    except Exception:
        # The other process may be between making the file and making its tables.
        return 0
