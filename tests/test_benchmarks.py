"""The page of benchmarks: records become tables with ratios, limits and exponents; scripts follow the contract."""

from __future__ import annotations

import ast
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


def test_noise_and_several_series_have_no_exponent(modules):
    contract, page = modules

    def exponent(values, sizes=(10, 20, 40)):
        pairs = enumerate(zip(sizes, values))
        rows = (contract.Measurement("demo", "t", f"{k}", n, "ours", v, "CPU s") for k, (n, v) in pairs)
        return page.tables(tuple(rows))[0].exponent("ours")

    assert round(exponent((1.0, 4.0, 16.0)), 6) == 2.0
    assert exponent((1e-4, 4e-4, 16e-4)) is None
    assert exponent((1.0, 9.0, 1.1)) is None
    assert exponent((1.0, 4.0, 16.0, 2.0), (10, 20, 40, 40)) is None


def test_both_pages_show_every_table_and_every_failure(modules):
    contract, page = modules
    runs = [
        page.Run("demo", "A title.", True, tuple(records(contract)), 0, 1.0, ""),
        page.Run("broken", "Another.", False, (), 3, 0.5, "Traceback <x>"),
    ]
    text, web = page.markdown(runs, {("demo", "a table"): "plots/demo-1.png"}), page.web_page(runs)
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


SCRIPTS = [path for path in sorted(FOLDER.glob("*.py")) if path.stem not in HELPERS]


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_every_script_adds_to_the_page_and_has_a_quick_size(path):
    text = path.read_text(encoding="utf-8")
    assert "from contract import" in text and "emit(" in text and '"--quick"' in text


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_every_script_asks_that_what_it_timed_was_right(path):
    """And not by ``assert`` alone, which an option of the interpreter switches off."""
    calls = [node for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(node, ast.Call)]
    names = [node.func.id for node in calls if isinstance(node.func, ast.Name)]
    assert names.count("require") > 0


def test_a_wrong_result_ends_a_script_and_is_on_the_page(modules, tmp_path):
    contract, page = modules
    with pytest.raises(contract.WrongResult, match="not so: 2 and 2 are 5"):
        contract.require(2 + 2 == 5, "2 and 2 are 5")
    script = tmp_path / "wrong.py"
    place = f"import sys; sys.path.insert(0, {str(FOLDER)!r})"
    lines = [
        '"""A wrong one."""',
        place,
        "from contract import emit, require",
        "require(False, 'right')",
        "emit('t', 'c', 1)",
    ]
    script.write_text("\n".join(lines))
    run = page.run_script(script, False, 60)
    assert run.code == 1 and not run.records and "not so: right" in run.last


@pytest.mark.parametrize("name", ["modular_rank", "fitting"])
def test_a_result_that_is_not_right_stops_a_benchmark(modules, name, monkeypatch):
    """The script is run with a faulty library: it must not report a time."""
    assert modules
    monkeypatch.syspath_prepend(str(FOLDER))
    script = importlib.import_module(name)
    emitted = []
    monkeypatch.setattr(script, "emit", lambda *arguments, **more: emitted.append(arguments))
    with pytest.raises(AssertionError, match="not so"):
        if name == "modular_rank":
            monkeypatch.setattr(script, "rank_mod_p", lambda a, p, method: 1)
            script.compare_ranks([20], script.BLAS_PRIME, False)
        else:
            monkeypatch.setattr(script, "fit", lambda start, *rest, **more: start)
            script.measure(2)
    assert not emitted


def test_a_script_that_takes_too_long_is_stopped_and_told(modules, tmp_path):
    _, page = modules
    script = tmp_path / "slow.py"
    script.write_text('"""A slow one."""\nimport time\ntime.sleep(60)\n')
    run = page.run_script(script, False, 0.3)
    assert run.code == page.STOPPED and page.failed(run).endswith("stopped after 0 s")
