"""The commands: JSON keys, exit codes, one line for bad input, nothing written on failure."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from attngeom.cli.app import run
from tests.effort import choose
from tests.models.cases import DATA, FAMILIES


def call(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, dict]:
    code = run(["model", *arguments, "--json"])
    return code, json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("family", FAMILIES)
def test_inspect(family: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, record = call(capsys, "inspect", str(DATA / family))
    assert code == 0
    keys = {"family", "parameters", "layers", "kind", "redundancy", "group", "findings", "unread", "heads"}
    assert keys | {"standing", "reason", "layer_standing", "layer_reason"} <= record.keys()
    assert {"heads", "kv_heads", "head_dim", "rotary", "norm", "qk_norm", "softcap", "sinks", "bias"} <= record[
        "kind"
    ].keys()
    assert {"query_key", "value_output", "norm", "total", "layer_scope", "residual"} <= record["redundancy"].keys()
    assert all({"layer", "part", "text", "value"} <= finding.keys() for finding in record["findings"])
    assert all(len(row["value_output"]) and row["condition"] >= 1 for row in record["heads"])
    _, alone = call(capsys, "inspect", str(DATA / family / "config.json"))
    assert alone["redundancy"] == record["redundancy"]


def test_compare_and_writers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    llama, moved = str(DATA / "llama"), str(tmp_path / "moved")
    code, record = call(capsys, "teleport", llama, "--out", moved, "--seed", "4")
    assert code == 0 and record["check"]["same_function"] is True
    code, record = call(capsys, "compare", llama, moved)
    assert code == 0 and record["same_function"] is True and record["level"] == "rounding"
    keys = {"same_function", "level", "error_probability", "unit", "layers", "config_differences", "reason"}
    assert keys <= record.keys()
    assert {"layer", "same", "worst", "condition"} <= record["layers"][0].keys()
    assert {"tensor", "head", "mismatch", "misfit", "expected"} <= record["layers"][0]["worst"].keys()
    code, record = call(capsys, "compare", llama, moved, "--level", "exact")
    assert code == 1 and record["same_function"] is False
    code, record = call(capsys, "compare", llama, str(DATA / "mistral"))
    assert code == 1 and record["config_differences"]
    symmetry = tmp_path / "symmetry.safetensors"
    assert call(capsys, "compare", llama, moved, "--out", str(symmetry))[0] == 0
    assert any("QueryKey" in name for name in load_file(symmetry))
    code, record = call(capsys, "align", llama, moved, "--out", str(tmp_path / "near"))
    assert code == 0
    one, two = (load_file(Path(path) / "model.safetensors") for path in (llama, tmp_path / "near"))
    assert max(np.abs(two[name] - one[name].astype(float)).max() for name in one) < 1e-5
    code, record = call(capsys, "canonicalize", llama, "--out", str(tmp_path / "form"), "--gauge", "echelon")
    assert code == 0 and record["gauge"] == "echelon"
    code, record = call(capsys, "teleport", llama, "--out", str(tmp_path / "rotated"), "--parts", "qk,residual")
    assert code == 0
    assert call(capsys, "compare", llama, str(tmp_path / "rotated"), "--scope", "model")[0] == 0
    assert call(capsys, "compare", llama, str(tmp_path / "rotated"))[0] == 0
    assert call(capsys, "compare", llama, str(tmp_path / "rotated"), "--level", "exact")[0] == 3


def test_every_head_and_the_wrong_units_are_listed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, spoiled = DATA / "llama", tmp_path / "spoiled"
    spoiled.mkdir()
    (spoiled / "config.json").write_bytes((source / "config.json").read_bytes())
    state = load_file(source / "model.safetensors")
    head_dim = len(state["model.layers.1.self_attn.q_proj.weight"]) // 4
    state["model.layers.1.self_attn.q_proj.weight"][2 * head_dim + 1] *= np.float16(1.25)
    state["model.layers.0.mlp.down_proj.weight"][:, 5] *= np.float16(1.25)
    save_file(state, spoiled / "model.safetensors")
    code, record = call(capsys, "compare", str(source), str(spoiled))
    assert code == 1
    heads = record["layers"][1]["heads"]
    assert [row["head"] for row in heads] == [0, 1, 2, 3]
    beyond = [row for row in heads if row["mismatch"] > 3 * row["expected"]]
    assert [(row["head"], row["tensor"]) for row in beyond] == [(2, "model.layers.1.self_attn.q_proj.weight")]
    (units,) = record["layers"][0]["units"]
    assert units["beyond_rounding"] == 1 and units["largest_ratio"] > 10 > 1 > units["median_ratio"]
    assert [(row["unit"], row["part"]) for row in units["listed"]] == [(5, "down")]
    assert units["listed"][0]["tensor"] == "model.layers.0.mlp.down_proj.weight"


def test_fingerprint(capsys: pytest.CaptureFixture[str]) -> None:
    code, record = call(capsys, "fingerprint", str(DATA / "qwen3"))
    assert code == 0 and len(record["layers"]) == 2 and len(record["fingerprint"]) == 64
    assert run(["model", "fingerprint", str(DATA / "qwen3")]) == 0
    words = [line.split()[0] for line in capsys.readouterr().out.splitlines()]
    assert words == ["layer", "layer", "outside", "model", "standing", "reason"]


@pytest.mark.parametrize(
    "arguments",
    [
        ["inspect", "nowhere"],
        ["compare", str(DATA / "llama"), "nowhere"],
        ["compare", str(DATA / "llama"), str(DATA / "llama"), "--level", "odd"],
        ["canonicalize", str(DATA / "llama"), "--out", "{out}", "--gauge", "odd"],
        ["canonicalize", str(DATA / "bert"), "--out", "{out}", "--scope", "model"],
        ["teleport", str(DATA / "llama"), "--out", "{out}", "--parts", "odd"],
        ["teleport", str(DATA / "llama"), "--out", "{out}", "--condition", "0.5"],
        ["teleport", str(DATA / "llama"), "--out", str(DATA / "llama")],
        ["align", str(DATA / "llama"), str(DATA / "gpt2"), "--out", "{out}"],
    ],
)
def test_bad_input(arguments: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out"
    assert run(["model", *(word.replace("{out}", str(out)) for word in arguments)]) == 2
    captured = capsys.readouterr()
    assert captured.out == "" and len(captured.err.splitlines()) == 1 and len(captured.err) <= 300
    assert list(tmp_path.iterdir()) == []


def test_names_that_helps_repeat_are_those_of_the_models() -> None:
    from attngeom.cli import model, options
    from attngeom.models import orbits
    from attngeom.network.attention import KINDS

    assert tuple(model.PARTS.split(",")) == orbits.PARTS
    assert tuple(KINDS) == options.KINDS


@pytest.mark.parametrize("name", ["inspect", "compare", "fingerprint", "canonicalize", "teleport", "align"])
def test_help(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["model", name, "--help"]) == 0
    text = capsys.readouterr().out
    assert "--json" in text
    # Nothing is random in a canonical form or an alignment: their helps do not offer a seed.
    assert ("--seed" in text) == (name not in ("canonicalize", "align"))


def test_proof(capsys: pytest.CaptureFixture[str]) -> None:
    """Layers by the theorem, the whole model at least; small ones of the kind are told and prove nothing."""
    code, record = call(capsys, "inspect", str(DATA / choose("qwen3", "llama") / "config.json"), "--prove")
    proof = record["proof"]
    assert code == 0 and proof["layer_standing"] == record["layer_standing"] == "theorem"
    assert proof["standing"] == record["standing"] == "estimate" and "at least" in record["reason"]
    assert not proof["model"]["is_given"] and proof["model"]["agrees"]


def small_mistral(tmp_path: Path, **changes: object) -> str:
    config = json.loads((DATA / "mistral" / "config.json").read_text())
    config |= {"hidden_size": 8, "intermediate_size": 6, "num_attention_heads": 2, "num_key_value_heads": 2}
    config |= {"head_dim": 4, "vocab_size": 20, "sliding_window": 5, **changes}
    (tmp_path / "config.json").write_text(json.dumps(config))
    return str(tmp_path / "config.json")


def test_small_models_are_proved_themselves(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, record = call(capsys, "inspect", small_mistral(tmp_path), "--prove")
    assert code == 0 and record["layer_standing"] == "theorem" and record["standing"] == "estimate"
    assert record["proof"]["standing"] == "proven" and record["proof"]["model"]["is_given"]


@pytest.mark.parametrize(("window", "width"), [(1, 8), (2, 4)])
def test_a_window_that_hides_distances_proves_nothing(
    window: int, width: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = small_mistral(tmp_path, sliding_window=window, hidden_size=width)
    code, record = call(capsys, "inspect", path, "--prove")
    proof = record["proof"]
    assert code == 0 and record["layer_standing"] == proof["layer_standing"] == proof["standing"] == "estimate"
    assert "a window of" in record["layer_reason"]
    assert run(["model", "inspect", path, "--prove"]) == 0
    text = capsys.readouterr().out
    assert "theorem" not in text and "proven" not in text and "at least" in text


def test_readable_output(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["model", "inspect", str(DATA / "gpt2")]) == 0
    text = capsys.readouterr().out
    assert "redundancy" in text and "key biases" in text
    assert run(["model", "compare", str(DATA / "gpt2"), str(DATA / "gpt2")]) == 0
    assert "same function" in capsys.readouterr().out


@pytest.mark.parametrize("family", choose(["llama", "gpt2", "bert", "t5"], FAMILIES))
def test_an_entry_that_is_not_finite_is_named_wherever_it_is(
    family: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """In each tensor that is read, by each command: one line with its name, and nothing is written."""
    source, bad, out = DATA / family, tmp_path / "bad", tmp_path / "out"
    bad.mkdir()
    (bad / "config.json").write_text((source / "config.json").read_text())
    state = load_file(source / "model.safetensors")
    unread = call(capsys, "inspect", str(source))[1]["unread"]
    for name in state.keys() - unread.keys():
        spoiled = {**state, name: state[name].copy()}
        spoiled[name].flat[-1] = np.nan
        save_file(spoiled, bad / "model.safetensors")
        for words in (["inspect"], ["fingerprint"], ["compare", str(source)], ["canonicalize", "--out", str(out)]):
            code = run(["model", words[0], str(bad), *words[1:]])
            error = capsys.readouterr().err
            assert (code, error.count("\n")) == (2, 1), (name, words)
            assert f"tensor {name[:80]} has NaN" in error, (name, words)
            assert not out.exists()
