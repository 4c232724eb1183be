"""Every numbered result of both papers has a row, the rows come out as recorded, and their figures are drawn."""

import importlib
import io
import json
import re
import sys
from contextlib import redirect_stdout
from pathlib import Path

import pytest

from attngeom.cli.app import run
from attngeom.cli.commands import COMMANDS
from attngeom.errors import InputError
from attngeom.papers import CLAIMS, FIGURES, OUTCOMES, Store, Work, find_claims, run_claims
from attngeom.papers.plots import DRAWINGS, draw_figure, draw_figures
from attngeom.papers.records import FLAWS, outcome_label

GEOMETRY = [
    *(f"Lemma {n}" for n in ("3.1", "3.5", "3.6", "A.3")),
    *(f"Theorem {n}" for n in ("3.2", "3.4", "3.7", "3.9")),
    *(f"Corollary {n}" for n in ("3.3", "3.8", "A.1", "A.2", "A.4", "A.6")),
    *("Proposition A.5", "Equation 12", "Equation 13", "Conjecture 3.10", "Section 3.3, after Corollary 3.8"),
    *(f"Figure {n}" for n in (1, 2, 3)),
]
INVARIANTS = [
    *(f"Proposition {n}" for n in (2, 3, 5, 6, 9, 17, 24, 39, 44)),
    *(f"Corollary {n}" for n in (10, 22, 32, 33)),
    *(f"Example {n}" for n in (12, 13, 19, 21, 26, 28, 29, 31, 36, 41, 42)),
    *("Lemma 16", "Theorem 25", "Theorem 27", "Theorem 30", "Theorem 40", "Figure 1"),
    *(f"Remark {n}" for n in (4, 11, 18, 20, 23, 34, 35, 43)),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """All claims at quick sizes, without figures or report."""
    folder = tmp_path_factory.mktemp("reproduce")
    run_claims(CLAIMS, Work(quick=True), folder)
    return folder


@pytest.fixture(scope="module")
def answer(folder):
    """What the command says of finished claims; it draws the figures and writes the report."""
    printed = io.StringIO()
    with redirect_stdout(printed):
        code = run(["reproduce", "--quick", "--out", str(folder), "--json"])
    return {"code": code, **json.loads(printed.getvalue())}


def stored(folder):
    lines = (folder / "claims.jsonl").read_text().splitlines()
    return json.loads(lines[0]), [json.loads(line) for line in lines[1:]]


@pytest.mark.parametrize(("paper", "places"), [("G", GEOMETRY), ("I", INVARIANTS)])
def test_every_numbered_result_has_one_row(paper, places):
    rows = [claim.place for claim in CLAIMS if claim.paper == paper]
    assert len(rows) == len(set(rows))
    assert set(places) <= set(rows)


def test_ids_are_unique_and_name_their_paper():
    ids = [claim.id for claim in CLAIMS]
    assert len(set(ids)) == len(ids)
    assert all(name.startswith(("G-", "I-")) for name in ids)
    assert set(FIGURES) <= set(ids)


def test_claims_that_need_a_correction_say_which():
    for claim in CLAIMS:
        assert claim.expected in OUTCOMES
        if claim.flaw:
            assert claim.correction, claim.id
            assert claim.strength == "proven", claim.id


def test_quick_run_gives_the_recorded_outcomes(folder):
    header, rows = stored(folder)
    assert header["quick"] is True
    assert {row["id"]: row["outcome"] for row in rows} == {claim.id: claim.expected for claim in CLAIMS}


def test_quick_run_shows_a_counterexample_for_every_correction(folder):
    _, rows = stored(folder)
    for row in rows:
        assert row["checks"], row["id"]
        if row["outcome"] in FLAWS:
            assert row["counterexample"], row["id"]
            assert any(not check["holds"] for check in row["checks"] if check["part"] == "claim")
        else:
            assert all(check["holds"] for check in row["checks"] if check["part"] != "printed proof"), row["id"]


def test_command_takes_up_finished_claims(folder, answer):
    _, before = stored(folder)
    assert answer["code"] == 0
    assert [row["seconds"] for row in answer["claims"]] == [row["seconds"] for row in before]
    assert answer["unexpected"] == []
    assert {"id", "paper", "place", "outcome", "evidence", "seconds"} <= set(answer["claims"][0])


def test_command_draws_all_figures(folder, answer):
    for name in FIGURES:
        assert (folder / "figures" / f"{name}.png").read_bytes().startswith(b"\x89PNG")
        assert "<svg" in (folder / "figures" / f"{name}.svg").read_text()
    page = (folder / "report.html").read_text()
    assert page.count("data:image/png;base64,") == len(FIGURES)
    assert str(folder) not in page


@pytest.mark.parametrize("name", ["G-section-1-samples", "G-figure-1"])
def test_figures_are_drawn_the_same_twice_from_stored_data(folder, answer, name, tmp_path):
    figure = draw_figure(name, Store(folder, Work(quick=True)).load_data(name), tmp_path)
    assert figure.id == name and figure.caption and figure.png.startswith(b"\x89PNG")
    for file in figure.files:
        assert (tmp_path / file).stat().st_size > 1000
        assert (tmp_path / file).read_bytes() == (folder / file).read_bytes()


def test_every_figure_has_a_drawing():
    assert list(FIGURES) == list(DRAWINGS)


def test_figures_without_data_are_left_out(tmp_path):
    assert draw_figures(Store(tmp_path, Work())) == []


def test_missing_plotly_is_said_and_does_not_fail(folder, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "plotly.graph_objects", None)
    figure = draw_figure("G-figure-1", Store(folder, Work(quick=True)).load_data("G-figure-1"), tmp_path)
    assert "not installed" in figure.note
    assert not any(name.endswith(".html") for name in figure.files)


def test_unknown_claim_is_refused():
    with pytest.raises(InputError, match="claim 'G-theorem-99'"):
        find_claims(["G-theorem-99"])


def test_documents_name_every_claim_with_a_command_and_a_function_that_exist():
    docs = Path(__file__).parents[2] / "docs"
    papers, differences = (docs / "reference/papers.md").read_text(), (docs / "explanation/differences.md").read_text()
    rows = re.findall(r"(.+)\n: \*\*(.+)\*\*, `(.+)`\n: `attngeom (\w+)\b.*`\n: `(.+)`\n\n", papers)
    said = [(claim.place, outcome_label(claim.expected, claim.strength), claim.id) for claim in CLAIMS]
    assert [row[:3] for row in rows] == said
    for claim in CLAIMS:
        assert claim.correction is None or f"`{claim.id}`" in differences, claim.id
    for *_, command, function in rows:
        assert command in COMMANDS and resolve(function) is not None, function


def test_every_proven_claim_has_its_proof_in_the_documents():
    docs = Path(__file__).parents[2] / "docs"
    proofs = (docs / "reference/papers.md").read_text().split("## Proofs")[1]
    for claim in CLAIMS:
        if claim.proof is None:
            assert f"**`{claim.id}`" not in proofs
            continue
        assert f"`{claim.id}`" in proofs, claim.id
        if not claim.proof.startswith("docs/reference/papers.md"):
            page, theorem = claim.proof.split(", ")
            text = (docs.parent / page).read_text()
            assert f"## {theorem}" in text, claim.id


def resolve(name):
    """The object of a dotted name: a module and attributes of it."""
    parts = name.split(".")
    for size in range(len(parts), 0, -1):
        try:
            found = importlib.import_module(".".join(parts[:size]))
        except ModuleNotFoundError:
            continue
        for part in parts[size:]:
            found = getattr(found, part)
        return found
    return None


@pytest.mark.parametrize("arguments", [["--claim", "G-theorem-99"], ["--out", "a-file"]])
def test_bad_input_is_one_line_and_exit_code_2(arguments, tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a-file").write_text("")
    assert run(["reproduce", "--quick", *arguments]) == 2
    assert capfd.readouterr().err.count("\n") == 1
