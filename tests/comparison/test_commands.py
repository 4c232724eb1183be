"""The commands compare, inspect, canonicalize and teleport: verdicts, exit codes, files."""

import json

import numpy as np
import pytest

from attngeom.cli.app import run
from attngeom.exact import QQ, RR
from attngeom.interop import read_weights, write_weights
from attngeom.interop.arrays import write_array
from attngeom.network import Architecture, forward, random_symmetry, random_weights
from tests.network.symmetry.reading import read_symmetry

ARCHITECTURE = Architecture((3, 2, 3), 2)


@pytest.fixture
def folder(tmp_path):
    for domain, suffix in ((QQ, "json"), (RR, "safetensors")):
        weights = random_weights(ARCHITECTURE, domain, 0)
        write_weights(weights, tmp_path / f"a.{suffix}")
        write_weights(random_symmetry(ARCHITECTURE, domain, 1).apply(weights), tmp_path / f"b.{suffix}")
        write_weights(random_weights(ARCHITECTURE, domain, 9), tmp_path / f"c.{suffix}")
    return tmp_path


def answer(capsys, *arguments):
    code = run([*map(str, arguments), "--json"])
    return code, json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("suffix", ["json", "safetensors"])
def test_compare_writes_the_symmetry(folder, capsys, suffix):
    out = folder / "g.json"
    code, record = answer(capsys, "compare", folder / f"a.{suffix}", folder / f"b.{suffix}", "--out", out)
    assert code == 0 and record["same_function"] is True and record["separating_input"] is None
    g = read_symmetry(json.loads(out.read_text()))
    first, second = read_weights(folder / f"a.{suffix}"), read_weights(folder / f"b.{suffix}")
    moved = g.apply(first)
    assert moved.equals(second) if suffix == "json" else np.allclose(moved.vector(), second.vector())


@pytest.mark.parametrize("suffix", ["json", "safetensors"])
def test_compare_separates(folder, capsys, suffix):
    code, record = answer(capsys, "compare", folder / f"a.{suffix}", folder / f"c.{suffix}")
    assert code == 1 and record["same_function"] is False and record["symmetry"] is None
    domain = QQ if suffix == "json" else RR
    X = domain.convert(record["separating_input"])
    for name, given in zip("ac", record["outputs"]):
        output = forward(read_weights(folder / f"{name}.{suffix}"), X)
        assert domain.equal(output, domain.convert(given)) if domain == QQ else np.allclose(output, given)


def test_compare_reports_what_cannot_be_told(folder, capsys):
    weights = read_weights(folder / "a.safetensors")
    vector = weights.vector() * (1 + 4e-9 * np.random.default_rng(0).standard_normal(ARCHITECTURE.num_parameters))
    write_weights(type(weights).from_vector(ARCHITECTURE, vector, RR), folder / "near.safetensors")
    code, record = answer(capsys, "compare", folder / "a.safetensors", folder / "near.safetensors")
    assert code == 3 and record["same_function"] is None
    code, record = answer(
        capsys, "compare", folder / "a.safetensors", folder / "near.safetensors", "--tolerance", "1e-7"
    )
    assert code == 0


def test_compare_prints_a_summary(folder, capsys):
    assert run(["compare", str(folder / "a.json"), str(folder / "c.json")]) == 1
    assert "different functions" in capsys.readouterr().out


def test_compare_refuses_different_architectures(folder, capsys):
    write_weights(random_weights(Architecture((3, 3), 2), QQ, 0), folder / "d.json")
    assert run(["compare", str(folder / "a.json"), str(folder / "d.json")]) == 2
    assert "different architectures" in capsys.readouterr().err


def test_canonicalize_gives_one_file_for_one_function(folder, capsys):
    for name in "ab":
        assert answer(capsys, "canonicalize", folder / f"{name}.json", "--out", folder / f"{name}2.json")[0] == 0
    assert (folder / "a2.json").read_text() == (folder / "b2.json").read_text()


@pytest.mark.parametrize("suffix", ["json", "safetensors"])
def test_canonicalize_compact_and_back(folder, capsys, suffix):
    packed, back = folder / f"packed.{suffix}", folder / f"back.{suffix}"
    code, record = answer(capsys, "canonicalize", folder / f"a.{suffix}", "--compact", "--out", packed)
    assert code == 0 and record["num_free"] == 18 and record["bytes_after"] == packed.stat().st_size
    assert answer(capsys, "canonicalize", packed, "--out", back)[0] == 0
    assert answer(capsys, "compare", folder / f"a.{suffix}", back)[1]["same_function"] is True


def test_teleport_keeps_the_function(folder, capsys):
    out = folder / "moved.json"
    assert answer(capsys, "teleport", folder / "a.json", "--seed", "4", "--out", out)[0] == 0
    assert not read_weights(out).equals(read_weights(folder / "a.json"))
    assert answer(capsys, "compare", folder / "a.json", out)[1]["same_function"] is True
    out = folder / "small.safetensors"
    code, record = answer(capsys, "teleport", folder / "b.safetensors", "--objective", "norm", "--out", out)
    assert code == 0 and record["norm_after"] < record["norm_before"]


def test_teleport_to_a_larger_gradient_keeps_the_loss(tmp_path, capsys):
    write_weights(random_weights(Architecture((2, 2), 1), RR, 0), tmp_path / "a.safetensors")
    rng = np.random.default_rng(0)
    write_array(0.3 * rng.standard_normal((4, 2, 3)), RR, tmp_path / "x.npy")
    write_array(rng.standard_normal((4, 2, 3)), RR, tmp_path / "y.npy")
    data = ["--inputs", tmp_path / "x.npy", "--targets", tmp_path / "y.npy", "--out", tmp_path / "large.safetensors"]
    code, record = answer(capsys, "teleport", tmp_path / "a.safetensors", "--objective", "gradient", *data)
    assert code == 0 and record["gradient_after"] > record["gradient_before"]
    assert record["loss_after"] == pytest.approx(record["loss_before"], rel=1e-10)


def test_teleport_without_data_is_refused(folder, capsys):
    arguments = ["teleport", str(folder / "a.safetensors"), "--objective", "gradient", "--out", str(folder / "x.json")]
    assert run(arguments) == 2
    assert "--inputs" in capsys.readouterr().err


def test_inspect_reports_hypotheses_and_ranks(folder, capsys):
    code, record = answer(capsys, "inspect", folder / "a.json")
    assert code == 0 and record["exact"] is True and all(h["holds"] for h in record["hypotheses"])
    assert record["local"]["jacobian_rank"] == 18 and record["local"]["proven"] is True
    assert run(["inspect", str(folder / "a.safetensors")]) == 0
    assert "gap" in capsys.readouterr().out


def test_inspect_names_the_stratum_of_one_layer(folder, capsys):
    write_weights(random_weights(Architecture((3, 2), 2), QQ, 0), folder / "one.json")
    assert answer(capsys, "inspect", folder / "one.json")[1]["stratum"]["stratum"] == "generic"
