"""Kinds and options beyond the papers on the command line."""

import json
from fractions import Fraction

import pytest

from attngeom.cli.app import run
from tests.network.modern_cases import CASES, label


def flags(case):
    kind, options = case
    words = ["--kind", kind]
    for name, value in options.items():
        words += [f"--{name.replace('_', '-')}"] + ([] if value is True else [str(value)])
    return words


@pytest.mark.parametrize("case", CASES[::3], ids=label)
def test_from_random_weights_to_a_verified_dimension(case, tmp_path, capsys):
    sizes = ["--widths", "3,2", "--attention", "2", *flags(case)]
    w, moved, fixed = (str(tmp_path / f"{name}.safetensors") for name in ("w", "moved", "fixed"))
    assert run(["random", *sizes, "--out", w]) == 0
    assert run(["teleport", w, "--out", moved]) == 0
    assert run(["compare", w, moved]) == 0
    assert run(["canonicalize", moved, "--out", fixed]) == 0
    assert run(["compare", w, fixed]) == 0
    capsys.readouterr()
    assert run(["dim", *sizes, "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["dimension"] == answer["lower_bound"]
    assert run(["laws", *sizes]) == 0
    capsys.readouterr()
    assert run(["dim", "--from-checkpoint", w, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["dimension"] == answer["dimension"]


@pytest.mark.parametrize("case", [("gla", {}), ("lightning", {"bias": True}), ("deltanet", {})], ids=label)
def test_certificates_are_verified(case, tmp_path):
    path = str(tmp_path / "c.json")
    assert run(["dim", "--widths", "3,2", "--attention", "2", *flags(case), "--certificate", path]) == 0
    assert run(["verify", path]) == 0


def test_what_is_not_known_is_refused(tmp_path, capsys):
    w = str(tmp_path / "w.safetensors")
    assert run(["random", "--widths", "3,2", "--attention", "2", "--kind", "kda", "--out", w]) == 0
    capsys.readouterr()
    assert run(["coefficients", w]) == 2
    error = capsys.readouterr().err
    assert "kda attention given" in error and error.count("\n") == 1


@pytest.mark.parametrize("case", CASES[1::3], ids=label)
def test_points_are_inspected_and_their_learning_coefficient_is_half_the_rank(case, tmp_path, capsys):
    w = str(tmp_path / "w.json")
    assert run(["random", "--widths", "3,2", "--attention", "2", *flags(case), "--out", w]) == 0
    capsys.readouterr()
    assert run(["inspect", w, "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    local, freedom = answer["local"], answer["freedom"]
    assert local["proven"] and local["defect"] == 0 and freedom["is_generic"] is True
    assert freedom["orbit_dimension"] == local["kernel_dimension"] == freedom["kernel_dimension"]
    assert run(["lambda", w, "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert Fraction(answer["lambda"]) == Fraction(local["jacobian_rank"], 2) and answer["multiplicity"] == 1


def test_options_of_the_command_line_are_those_of_networks():
    from attngeom.cli import options
    from attngeom.network.options import OPTIONS

    names = set(options.ArchitectureOptions.__dataclass_fields__)
    assert set(OPTIONS) <= names
    choices = {"alibi": options.ALIBI, "decay": options.DECAY, "gate": options.GATE, "feature": options.FEATURE}
    assert {name: x.choices for name, x in OPTIONS.items() if x.choices} == choices
