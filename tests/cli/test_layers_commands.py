"""The first commands: exit codes, JSON on stdout alone, one line on stderr for bad input."""

import json
import re
import subprocess
import sys

import numpy as np
import pytest
from safetensors.numpy import save_file

import attngeom
from attngeom.cli.app import run
from attngeom.exact import QQ, RR
from attngeom.interop import read_weights, write_weights
from attngeom.interop.arrays import read_array, write_array
from attngeom.layer.files import read_coefficients
from attngeom.network import Architecture, Weights, forward, random_weights


@pytest.fixture
def folder(tmp_path):
    write_weights(random_weights(Architecture((3, 2), 2, tokens=2), QQ, 1), tmp_path / "w.json")
    write_weights(random_weights(Architecture((3, 2), 2, tokens=2), RR, 1), tmp_path / "w.safetensors")
    write_array(QQ.convert([["1/2", 1], [0, -3], [5, 2]]), QQ, tmp_path / "x.json")
    write_array(np.ones((3, 4)), RR, tmp_path / "x.npy")
    return tmp_path


def one_line(capsys):
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("attngeom: ") and captured.err.count("\n") == 1
    return captured.err


def test_version_and_info(capsys):
    assert run(["--version"]) == 0
    assert capsys.readouterr().out == f"attngeom {attngeom.__version__}\n"
    assert run(["info", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["attngeom"] == attngeom.__version__
    assert run(["info"]) == 0
    assert "python-flint" in capsys.readouterr().out


def test_forward_is_exact_for_exact_files(folder, capsys):
    assert (
        run(["forward", str(folder / "w.json"), str(folder / "x.json"), "--out", str(folder / "y.json"), "--json"]) == 0
    )
    record = json.loads(capsys.readouterr().out)
    assert record["exact"] is True and record["shape"] == [2, 2]
    expected = forward(read_weights(folder / "w.json"), read_array(folder / "x.json")[0])
    assert record["output"] == [[str(x) for x in row] for row in expected]
    assert QQ.equal(read_array(folder / "y.json")[0], expected)


@pytest.mark.parametrize("suffix", [".json", ".safetensors"])
def test_scores_whose_exponentials_overflow_are_evaluated_in_balls(tmp_path, capsys, suffix):
    network = Architecture((1, 1), 1, tokens=2, kind="softmax", bias=True)
    tensors = {name: np.full(shape, 30.0) for name, shape in network.tensor_shapes()}
    weights = Weights.from_tensors(network, tensors, RR)
    write_weights(weights.to(QQ) if suffix == ".json" else weights, tmp_path / f"w{suffix}")
    (tmp_path / "x.json").write_text('[["1", "2"]]')
    assert run(["forward", str(tmp_path / f"w{suffix}"), str(tmp_path / "x.json"), "--json"]) == 0
    # Both tokens attend to the second one alone.
    assert np.array(json.loads(capsys.readouterr().out)["output"], float).tolist() == [[90.0, 90.0]]


@pytest.mark.parametrize(
    "weights, inputs", [("w.safetensors", "x.npy"), ("w.json", "x.npy"), ("w.safetensors", "x.json")]
)
def test_forward_in_floats(folder, capsys, weights, inputs):
    assert run(["forward", str(folder / weights), str(folder / inputs), "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    expected = forward(read_weights(folder / weights).to(RR), RR.convert(read_array(folder / inputs)[0]))
    assert record["exact"] is False and np.allclose(record["output"], expected)
    assert run(["forward", str(folder / weights), str(folder / inputs)]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 2


def test_coefficients_are_written_and_printed(folder, capsys):
    assert run(["coefficients", str(folder / "w.json"), "--out", str(folder / "c.json")]) == 0
    assert "cubic" in capsys.readouterr().out
    expected = attngeom.coefficients(read_weights(folder / "w.json"))
    assert QQ.equal(read_coefficients(folder / "c.json").cross, np.array(expected.cross))
    assert run(["coefficients", str(folder / "w.json"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == json.loads((folder / "c.json").read_text())


def test_import_names_what_it_leaves_out(tmp_path, capsys):
    rng = np.random.default_rng(0)
    state = {"in_proj_weight": rng.standard_normal((12, 4)), "out_proj.weight": rng.standard_normal((4, 4))}
    save_file({**state, "in_proj_bias": np.zeros(12)}, tmp_path / "m.safetensors")
    arguments = ["import", str(tmp_path / "m.safetensors"), "--heads", "2", "--out", str(tmp_path / "w.safetensors")]
    assert run(arguments) == 2
    assert "in_proj_bias (bias)" in capsys.readouterr().err
    arguments.append("--idealised")
    assert run([*arguments, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["unmodelled"] == {"in_proj_bias": "bias"}
    assert read_weights(tmp_path / "w.safetensors").architecture.heads == 2
    assert run(arguments) == 0
    assert "in_proj_bias: bias" in capsys.readouterr().out


@pytest.mark.parametrize(
    "arguments, words",
    [
        ([], "Missing command"),
        (["nonsense"], "no command 'nonsense'; type attngeom --help"),
        (["forward"], "Missing argument"),
        (["forward", "w.json", "x.json", "--seed", "-1"], "seed"),
        (["forward", "none.json", "x.json"], "does not exist"),
        (["forward", "w.json", "none.npy"], "does not exist"),
        (["forward", "w.json", "w.json"], "list of rows|entry"),
        (["forward", "x.json", "x.json"], "object is required"),
        (["forward", "w.json", "x.json", "--out", "y.npy"], "exact"),
        (["forward", "w.json", "x.json", "--out", "no/y.json"], "cannot write"),
        (["coefficients", "w.json", "--out", "c.txt"], "json"),
        (["coefficients", "x.npy"], "safetensors"),
        (["import", "w.safetensors", "--out", "v.safetensors"], "number of heads"),
        (["import", "w.safetensors", "--heads", "2", "--blocks", "a", "--out", "v.safetensors"], "comma separated"),
        (
            ["import", "w.safetensors", "--heads", "2", "--kind", "quadratic", "--out", "v.safetensors"],
            "one of lightning, softmax",
        ),
    ],
)
def test_bad_input_is_one_line_and_exit_2(folder, capsys, monkeypatch, arguments, words):
    monkeypatch.chdir(folder)
    assert run(arguments) == 2
    assert re.search(words, one_line(capsys))


def test_program_runs_as_a_process_without_traceback(folder):
    command = [sys.executable, "-m", "attngeom", "forward", "none.json", "x.json"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder, check=False)
    assert done.returncode == 2
    assert done.stdout == "" and "Traceback" not in done.stderr and done.stderr.count("\n") == 1
