"""What the commands write is told apart from what they were given by no second opinion."""

import json

import pytest

from attngeom.cli.app import run

FILES = {
    "one column far above": ((3, 3), 2, "softmax", [["-1", "7", "9"], ["-4", "-7", "1" + "0" * 60]]),
    "one entry far above": ((3, 3), 2, "lightning", [["1", "1000000007", "1/3"], ["0", "1", "0"]]),
}


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("command", [["teleport", "--objective", "norm"], ["canonicalize", "--gauge", "balanced"]])
def test_moved_weights_are_the_function_or_nothing_is_written(name, command, tmp_path, capfd):
    widths, attention, kind, Q = FILES[name]
    K, V = [["3", "-1", "3"], ["4", "8", "8"]], [["8", "7", "4"], ["8", "-9", "-9"], ["6", "-1", "5"]]
    record = {
        "format": "attngeom/weights",
        "version": 1,
        "architecture": {"widths": list(widths), "attention": [attention], "tokens": 3, "kind": kind},
        "tensors": {"layers.0.Q": Q, "layers.0.K": K, "layers.0.V": V},
    }
    given, out = tmp_path / "w.json", tmp_path / "moved.safetensors"
    given.write_text(json.dumps(record))
    code = run([*command, str(given), "--out", str(out)])
    assert code == (0 if out.exists() else 2)
    if out.exists():
        assert run(["compare", str(given), str(out)]) != 1
