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
