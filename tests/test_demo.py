"""The example files: made, checked, and refused where they would mix with other files."""

import json
import shlex

import numpy as np
import pytest

from attngeom import demo
from attngeom.cli.app import run
from attngeom.dimensions import dimension
from attngeom.errors import InputError
from attngeom.exact import QQ, RR
from attngeom.interop import read_weights
from tests.example_files import copy_examples


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return copy_examples(tmp_path_factory.mktemp("examples") / "demo")


def test_every_command_to_try_answers(folder, capfd, monkeypatch):
    monkeypatch.chdir(folder)
    codes = {}
    for words in demo.commands(folder):
        assert shlex.split(shlex.join(words)) == words
        codes[words[1]] = run(words[1:])
    assert codes == {"compare": 0, "inspect": 0, "certify": 1, "verify": 0, "dim": 0}
    assert capfd.readouterr().err == ""


def test_the_trained_network_is_generic(folder):
    weights = read_weights(folder / "trained.safetensors")
    X, Y = demo.training_data()
    assert demo.loss(weights, X, Y) < 0.5 * demo.loss(read_weights(folder / "start.safetensors"), X, Y)
    assert dimension(weights.architecture).dimension == 23


def test_made_again_in_its_own_folder_and_nowhere_else(folder, tmp_path):
    (folder / "mine.txt").write_text("keep")
    demo.write_demo(folder)
    assert (folder / "mine.txt").read_text() == "keep"
    (tmp_path / "a.json").write_text("keep")
    with pytest.raises(InputError, match="a new folder"):
        demo.write_demo(tmp_path)
    assert (tmp_path / "a.json").read_text() == "keep"
    with pytest.raises(InputError, match="not a folder"):
        demo.write_demo(tmp_path / "a.json")


def test_an_example_that_breaks_its_promise_is_not_handed_out(tmp_path):
    write = demo._verdict(demo._fermat, "realizable")
    with pytest.raises(RuntimeError, match="is not realizable, but undecided"):
        write(tmp_path / "w.json")


@pytest.mark.parametrize(("name", "domain"), [("w.json", QQ), ("w.safetensors", RR)])
def test_random_weights(name, domain, tmp_path, capfd):
    arguments = ["random", "--widths", "4,4,2", "--heads", "2", "--kind", "softmax", "--tokens", "5", "--seed", "3"]
    files = [tmp_path / f"{number}{name}" for number in range(2)]
    for path in files:
        assert run([*arguments, "--out", str(path), "--json"]) == 0
    record = json.loads(capfd.readouterr().out.splitlines()[0])
    assert record["architecture"]["attention"] == [2, 2] and record["seed"] == 3
    assert record["exact"] is (domain is QQ)
    first, second = map(read_weights, files)
    assert first.equals(second) and first.domain == domain
    assert np.any(first.vector() != 0) and first.architecture.num_parameters == record["num_parameters"]


@pytest.mark.parametrize("given", [["--out", "w.txt"], ["--widths", "3", "--out", "w.json"], ["--kind", "x"]])
def test_bad_random_weights_are_refused(given, tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    assert run(["random", "--widths", "3,3", "--attention", "2", "--out", "w.json", *given]) == 2
    assert capfd.readouterr().err.count("\n") == 1
    assert not list(tmp_path.iterdir())
