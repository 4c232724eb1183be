"""``attngeom net``: files of users, and what is wrong with them, in one line."""

import json
import sys

import pytest

from attngeom.cli.app import run

GOOD = """
import numpy as np
weights = {"Q": (2, 3), "K": (2, 3), "V": (2, 3)}
inputs = (3, 2)
def attention(w, x):
    s = x.T @ w["K"].T @ (w["Q"] @ x)
    e = np.exp(s - s.max(axis=0, keepdims=True))
    return w["V"] @ x @ (e / e.sum(axis=0, keepdims=True))
def branch(w, x):
    return w["V"] @ x if x.sum() > 0 else x
class Network:
    def __call__(self, w, x):
        return (w["V"] @ x).T
class Needy:
    def __init__(self, width):
        pass
"""


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "network.py"
    path.write_text(GOOD)
    return path


def test_a_function_of_a_file(file, capsys):
    assert run(["net", f"{file}:attention", "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert (record["parameters"], record["dimension"], record["standing"]) == (18, 14, "proven")
    assert record["fiber"] == [{"name": "gl(2)", "count": 4, "tensors": ["K.0", "Q.0"]}]


def test_text_plot_and_other_shapes(file, capsys, tmp_path):
    assert run(["net", f"{file}:attention", "--input", "3,3", "--prove", "--plot", str(tmp_path / "bar.png")]) == 0
    assert "gl(2) on K.0, Q.0" in capsys.readouterr().out and (tmp_path / "bar.png").stat().st_size > 1000


def test_a_class_is_made_and_the_last_row_is_taken(file, capsys):
    assert run(["net", f"{file}:Network", "--last-token", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["dimension"] == 6


@pytest.mark.parametrize(
    ("argument", "words"),
    [
        ("{file}", "FILE.py:NAME"),
        ("nowhere.py:f", "does not exist"),
        ("{file}:nonsense", "it has attention"),
        ("{file}:branch", "branch on data"),
        ("{file}:Needy", "without arguments"),
        ("{file}:inputs", "a function"),
    ],
)
def test_bad_arguments_are_one_line(file, argument, words, capsys):
    assert run(["net", argument.format(file=file)]) == 2
    error = capsys.readouterr().err
    assert words in error and error.count("\n") == 1 and len(error) <= 201


def test_a_file_imports_its_neighbours_which_hide_nothing(file, capsys, monkeypatch):
    monkeypatch.setattr("sys.path", sys.path[:])
    file.with_name("numpy.py").write_text("1/0")
    (user := file.with_name("user.py")).write_text("from network import attention, inputs, weights")
    assert run(["net", f"{user}:attention", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["dimension"] == 14


@pytest.mark.parametrize("content", ["1/0", "import nonsense", "def f(:", "raise SystemExit(3)"])
def test_files_that_do_not_run_are_one_line(tmp_path, content, capsys):
    path = tmp_path / "bad.py"
    path.write_text(content)
    assert run(["net", f"{path}:f"]) == 2
    error = capsys.readouterr().err
    assert "when it was run" in error and error.count("\n") == 1


def test_a_certificate_is_that_of_a_file_or_of_another_one(file, capsys, tmp_path):
    certificate = tmp_path / "c.json"
    other = tmp_path / "other.py"
    other.write_text(
        GOOD.replace('w["V"] @ x @ (e', '2 * w["V"] @ x @ (e') + "small = {'Q': (1, 3), 'K': (1, 3), 'V': (2, 3)}\n"
    )
    given = ["--input", "3,3", "--seed", "4"]
    assert run(["net", f"{file}:attention", *given, "--certificate", str(certificate), "--json"]) == 0
    capsys.readouterr()
    command = ["verify", str(certificate), "--source"]
    assert run([*command, f"{file}:attention", "--input", "3,3"]) == 0
    assert "the program of this certificate is network.py:attention" in capsys.readouterr().out
    for source, more, words in (
        (f"{file}:attention", [], "it has x [3, 2], the certificate x [3, 3]"),
        (f"{other}:attention", ["--input", "3,3"], "node"),
        (f"{other}:attention", ["--input", "3,3", "--weights", "small"], "it has Q [1, 3], the certificate Q [2, 3]"),
    ):
        assert run([*command, source, *more, "--json"]) == 1
        record = json.loads(capsys.readouterr().out)
        assert record["valid"] is False and words in record["reason"] and not record["source"]["matches"]
    assert run([*command, f"{file}:branch"]) == 2
    assert "branch on data" in capsys.readouterr().err


MAXOUT = """import numpy as np
weights = {"A": (2, 3), "a": (3,), "C": (2, 3), "c": (3,), "B": (3, 2)}
def maxout(w, x):
    return np.maximum(x @ w["A"] + w["a"], x @ w["C"] + w["c"]) @ w["B"]
def doubled(w, x):
    return 2 * maxout(w, x)
"""


def test_a_certificate_in_another_order_of_products_is_that_of_its_file(capsys, tmp_path):
    """Of maxout BA is seen, and not A: the program of the certificate has BA, as that of the file may be written."""
    file, certificate = tmp_path / "pieces.py", tmp_path / "c.json"
    file.write_text(MAXOUT)
    assert run(["net", f"{file}:maxout", "--input", "2", "--certificate", str(certificate)]) == 0
    command = ["verify", str(certificate), "--input", "2", "--source"]
    assert run([*command, f"{file}:maxout"]) == 0 and run([*command, f"{file}:doubled"]) == 1
    capsys.readouterr()


def test_sources_are_those_of_networks(file, capsys, tmp_path):
    certificate = tmp_path / "c.json"
    assert run(["dim", "--widths", "2,2", "--heads", "1", "--certificate", str(certificate)]) == 0
    capsys.readouterr()
    assert run(["verify", str(certificate), "--source", f"{file}:attention"]) == 2
    line = capsys.readouterr().err.strip()
    assert len(line.splitlines()) == 1 and len(line) <= 200 and "kind 'dimension' given; leave it out" in line
    certificate.write_text("{}")
    assert run(["verify", str(certificate), "--source", f"{file}:attention"]) == 1
