"""On a terminal of any width every word and digit is there, nothing is cut, and no line ends with spaces."""

import pytest

from attngeom.cli import output

COLUMNS = ("no", "family", "count", "from")
ROWS = [
    (1, "sequence-copy", "28", "linear invariants, [I] Proposition 9"),
    (12, "lie-flattening", f"{7**60:,}", "Lie flattening of split cubics, [I] Proposition 17"),
]
PAIRS = {"fiber dimension": 19, "a label that is longer than most": "yes, by a theorem whose hypotheses hold here"}


def words(text):
    return sorted(text.split())


@pytest.mark.parametrize("columns", [None, 200, 80, 60, 40])
def test_lines_fit_unless_a_number_does_not_and_never_end_with_spaces(columns, monkeypatch):
    monkeypatch.setattr(output, "_terminal_width", lambda: columns)
    prose = output.prose("a sentence of words\n  and an indented line of several words")
    texts = (output.pairs("a title", PAIRS), output.table(COLUMNS, ROWS, left=("family", "from")), prose)
    lines = [line for text in texts for line in text.splitlines()]
    assert all(line == line.rstrip() for line in lines)
    long = [line for line in lines if columns is not None and len(line) > columns]
    assert all(f"{7**60:,}" in line for line in long) and len(long) <= 1


@pytest.mark.parametrize("columns", [None, 200, 80, 40, 1])
def test_no_word_is_lost(columns, monkeypatch):
    monkeypatch.setattr(output, "_terminal_width", lambda: columns)
    found = output.table(COLUMNS, ROWS, left=("family", "from"))
    assert set(words(" ".join(str(entry) for row in ROWS for entry in row))) <= set(words(found))
    said = " ".join(f"{label} {value}" for label, value in PAIRS.items())
    assert words(output.pairs("a title", PAIRS)) == words(f"a title {said}")


def test_a_table_that_nearly_fits_stays_a_table(monkeypatch):
    rows = [(3, 1140, 1110), (4, 5985, 5400)]
    for columns, lines in ((18, 3), (17, 3), (16, 3), (15, 7)):
        monkeypatch.setattr(output, "_terminal_width", lambda columns=columns: columns)
        shown = output.table(("degree", "size", "rank"), rows).splitlines()
        assert len(shown) == lines and max(map(len, shown)) <= columns


def test_a_column_of_text_breaks_between_words(monkeypatch):
    monkeypatch.setattr(output, "_terminal_width", lambda: 40)
    found = output.table(("no", "from"), [(1, "Lie flattening of split cubics, [I] Proposition 17")], left=("from",))
    assert found == "no  from\n 1  Lie flattening of split cubics, [I]\n    Proposition 17"


def test_a_bar_counts_what_is_known(monkeypatch, capsys):
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    with output.working("reading") as report:
        assert "/?" not in capsys.readouterr().err
        report("reading, MB", 1, 3)
        report("deciding", 0, None)
        report("heads", 2, 4)
    assert "2" in capsys.readouterr().err.split("heads")[-1]
