"""Options that must not be ignored: a mask, a file, a batch, a member that does not exist."""

import json
from pathlib import Path

import pytest

from attngeom.cli.app import run

INPUTS = Path(__file__).parents[1] / "golden" / "inputs"


def answer(capsys, *arguments):
    code = run([str(x) for x in arguments])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_a_causal_mask_is_required_without_an_attention_width(capsys):
    code, out, _ = answer(capsys, "recover", INPUTS / "coefficients_layer.json", "--causal", "--json")
    assert code == 1 and "sequence copy" in json.loads(out)["reason"]
    code, out, _ = answer(capsys, "recover", INPUTS / "coefficients_causal.json", "--causal", "--json")
    assert code == 0 and json.loads(out)["outcome"] == "recovered"


@pytest.mark.parametrize(
    "options", [("--count",), ("--count", "--json"), ("--family", "slice-pencil", "--index", "3"), ("--json",)], ids=str
)
def test_invariants_are_written_to_the_file_in_every_form(tmp_path, capsys, options):
    command = ("invariants", "--d", "2", "--a", "2", *options)
    command = (*command[:1], "--d", "3", "--a", "2", *options) if "--family" in options else command
    shown = answer(capsys, *command)[1]
    assert answer(capsys, *command, "--out", tmp_path / "i.txt") == (0, "", "")
    written = (tmp_path / "i.txt").read_text()
    if "--json" in options:
        assert json.loads(written) == json.loads(shown)
    else:
        assert written == shown


def test_a_member_that_does_not_exist_is_named(capsys):
    code, _, err = answer(capsys, "invariants", "--d", "3", "--a", "2", "--family", "slice-pencil", "--index", "99")
    assert code == 2 and "member 99 of slice-pencil given; there are 10, numbered from 0" in err


def test_outputs_of_a_batch_are_printed(capsys):
    _, out, _ = answer(capsys, "forward", INPUTS / "deep.safetensors", INPUTS / "batch_inputs.npy", "--json")
    found = json.loads(out)
    assert [len(found["output"]), len(found["output"][0]), len(found["output"][0][0])] == found["shape"]
