"""attngeom dim: the contract of its JSON, its exit codes and its readable output."""

import json

import pytest

from attngeom.cli.app import run
from attngeom.exact import QQ, RR
from attngeom.interop.weights import write_weights
from attngeom.network import Architecture, random_weights

KEYS = {
    "architecture",
    "num_parameters",
    "dimension",
    "fiber_dimension",
    "formula",
    "lower_bound",
    "upper_bound",
    "is_proven",
    "method",
    "prime",
    "seed",
    "seconds",
}


def answer(capsys, *arguments, code=0):
    assert run(["dim", *arguments, "--json"]) == code
    return json.loads(capsys.readouterr().out)


def test_json_contract(capsys):
    record = answer(capsys, "--widths", "3,3,3", "--attention", "2,2", "--tokens", "3", "--prove", "--seed", "5")
    assert set(record) >= KEYS
    assert (record["dimension"], record["lower_bound"], record["upper_bound"]) == (23, 23, 23)
    assert record["is_proven"] is True and record["seed"] == 5 and record["fiber_dimension"] == 19
    assert {"value", "source", "applies"} <= set(record["formula"])


def test_balls_and_krylov_give_the_same(capsys):
    for kind, value in (("lightning", 7), ("softmax", 8)):
        for method in ("minor", "schur", "krylov", "balls"):
            record = answer(capsys, "--widths", "2,2", "--tokens", "2", "--kind", kind, "--method", method)
            assert (record["dimension"], record["is_proven"], record["method"]) == (value, True, method)


@pytest.mark.parametrize(("flags", "method"), [((), "theorem"), (("--causal",), "formula")])
def test_transformer_sizes_answer_at_once(capsys, flags, method):
    # Theorem S4 covers the stack without mask; with a mask the formula is computed at small sizes only.
    widths = ",".join(["768"] * 13)
    record = answer(capsys, "--kind", "softmax", "--heads", "12", "--widths", widths, *flags)
    assert record["method"] == method and record["is_proven"] is (method == "theorem")
    assert record["architecture"]["attention"] == [64] * 12
    assert record["dimension"] == 12 * 24 * (2 * 64 * 768 - 64**2) - 11 * 768**2


def test_unproven_request_exits_with_three(capsys):
    arguments = ("--widths", "2,2,5,1", "--attention", "2,2,3", "--heads", "3", "--value-width", "3")
    arguments += ("--tokens", "2", "--causal")
    record = answer(capsys, *arguments, "--prove", code=3)
    assert record["lower_bound"] < record["upper_bound"] and record["error_probability"] < 1e-9
    assert answer(capsys, *arguments)["is_proven"] is False


def test_readable_output_names_the_redundancy(capsys):
    assert run(["dim", "--widths", "3,5,3", "--attention", "2"]) == 0
    text = capsys.readouterr().out
    for word in ("parameters", "query-key", "between", "unseen", "proven", "sample complexity"):
        assert word in text


def test_table_of_ranges(capsys):
    record = answer(capsys, "--widths", "2-3,2", "--attention", "1-2", "--tokens", "1-2", "--table")
    assert len(record["table"]) == 8 and all(row["is_proven"] for row in record["table"])
    assert run(["dim", "--widths", "2-3,2", "--attention", "2", "--table"]) == 0
    assert "[G] Cor 3.3" in capsys.readouterr().out


@pytest.mark.parametrize("name, domain", [("w.json", QQ), ("w.safetensors", RR)])
def test_checkpoint(capsys, tmp_path, name, domain):
    write_weights(random_weights(Architecture((3, 2), 2, 2), domain, seed=1), tmp_path / name)
    record = answer(capsys, "--from-checkpoint", str(tmp_path / name))
    assert record["dimension"] == 13 and record["point"]["rank"] == 13 and record["point"]["defect"] == 0
    assert run(["dim", "--from-checkpoint", str(tmp_path / name)]) == 0
    assert "defect" in capsys.readouterr().out


def test_certificate_is_verified(capsys, tmp_path):
    path = str(tmp_path / "certificate.json")
    assert answer(capsys, "--widths", "3,2,3", "--attention", "2", "--certificate", path)["is_proven"]
    assert run(["verify", path, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["valid"] is True


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["--widths", "3,x"],
        ["--widths", "3-4,3"],
        ["--widths", "3,3", "--tokens", "2,3"],
        ["--widths", "3,3", "--heads", "2"],
        ["--widths", "3,3", "--kind", "quadratic"],
        ["--widths", "3,3", "--method", "magic"],
        ["--widths", "4-3,3", "--table"],
        ["--widths", "1-99,1-999", "--attention", "1", "--table"],
        ["--widths", "2,2", "--from-checkpoint", "w.json"],
        ["--from-checkpoint", "missing.json"],
        [
            "--widths",
            "2,4,4",
            "--attention",
            "2,3",
            "--heads",
            "2",
            "--value-width",
            "2",
            "--certificate",
            "/nowhere/c.json",
        ],
    ],
    ids=" ".join,
)
def test_bad_input_is_one_line_and_exit_two(capsys, arguments):
    assert run(["dim", *arguments]) == 2
    captured = capsys.readouterr()
    assert captured.out == "" and captured.err.startswith("attngeom: ") and captured.err.count("\n") == 1
