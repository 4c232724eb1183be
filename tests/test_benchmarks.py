"""The page of benchmarks: records become tables with ratios, limits and exponents; scripts follow the contract."""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[1] / "benchmarks"
HELPERS = ("contract", "page")


@pytest.fixture(scope="module")
def modules():
    sys.path.insert(0, str(FOLDER))
    try:
        yield [importlib.import_module(name) for name in HELPERS]
    finally:
        sys.path.remove(str(FOLDER))
        for name in HELPERS:
            sys.modules.pop(name, None)


def records(contract):
    """Ours grows like n², the peer like n³ and ten times slower at n = 10; the limit is half of ours."""
    for n in (10, 20, 40, 80):
        for who, value in (("ours", n**2 / 100), ("peer", n**3 / 100), ("limit", n**2 / 200)):
            yield contract.Measurement("demo", "a table", f"n = {n}", n, who, value, "CPU s")
    yield contract.Measurement("demo", "counts", "wrong", None, "ours", 0, "wrong")


def test_tables_have_ratios_and_exponents(modules):
    contract, page = modules
    table, counts = page.tables(tuple(records(contract)))
    assert table.people == ("ours", "peer", "limit")
    assert [table.ratio(table.rows[0], who) for who in table.people] == [None, 10.0, 2.0]
    assert [round(table.exponent(who), 6) for who in table.people] == [2.0, 3.0, 2.0]
    assert counts.exponent("ours") is None and page.draw(counts) is None
    heads, rows = page.cells(table)
    assert heads == ["case", "ours, CPU s", "peer", "ratio", "limit", "ours / limit"]
    assert rows[0] == ["n = 10", "1", "10", "10×", "0.5", "2×"]
    assert rows[-1] == ["grows like size to the power", "2.00", "3.00", "", "2.00", ""]


def test_both_pages_show_every_table_and_every_failure(modules):
    contract, page = modules
    runs = [
        page.Run("demo", "A title.", tuple(records(contract)), 0, 1.0, ""),
        page.Run("broken", "Another.", (), 3, 0.5, "Traceback <x>"),
    ]
    text, web = page.markdown(runs, False, {("demo", "a table"): "plots/demo-1.png"}), page.web_page(runs, False)
    for part in ("a table", "counts", "grows like size", "ended with code 3"):
        assert part in text and part in web
    assert "![a table](plots/demo-1.png)" in text and web.count("data:image/png;base64,") == 1
    assert "Traceback &lt;x&gt;" in web


def test_records_go_to_the_file_that_is_named(modules, tmp_path, monkeypatch):
    contract, _ = modules
    contract.emit("a table", "a case", 1.5)
    monkeypatch.setenv(contract.VARIABLE, str(tmp_path / "r.jsonl"))
    monkeypatch.setattr(sys, "argv", ["benchmarks/demo.py"])
    contract.emit("a table", "a case", 1.5, "peer", size=3)
    (line,) = (tmp_path / "r.jsonl").read_text().splitlines()
    assert contract.Measurement.from_line(line) == contract.Measurement(
        "demo", "a table", "a case", 3, "peer", 1.5, "CPU s"
    )
    assert json.loads(line)["unit"] == "CPU s"


MEASURING = [path for path in sorted(FOLDER.glob("*.py")) if "from contract import" in path.read_text()]


def test_most_scripts_measure_something():
    """Those that only check a proof have nothing to add to the page."""
    assert len(MEASURING) >= 16


@pytest.mark.parametrize("path", MEASURING, ids=lambda path: path.stem)
def test_scripts_that_measure_have_a_quick_size(path):
    assert path.stem == "page" or ("emit(" in path.read_text() and '"--quick"' in path.read_text())
