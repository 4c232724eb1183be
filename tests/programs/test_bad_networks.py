"""Networks that have no answer: every door refuses them in one line, and the command line with exit code 2."""

import json

import numpy as np
import pytest

import attngeom
from attngeom.cli.app import run
from attngeom.errors import InputError, SizeError
from attngeom.rank.analysis import certify_network
from attngeom.verification import verify

HEAD = {
    "numpy": "import numpy as np\nweights = {'a': (2, 2)}\n",
    "jax": "import jax.numpy as np\nweights = {'a': np.ones((2, 2))}\n",
    "torch": """
import torch as np
class Network(np.nn.Module):
    def __init__(self):
        super().__init__()
        self.a = np.nn.Parameter(np.ones(2, 2))
    def forward(self, x):
        return network({"a": self.a}, x)
""",
}
BODIES = {
    "a branch on data": ("return w['a'] @ x if x.sum() > 0 else x", "branch"),
    "a loop over data": ("n = 0\n    while n < w['a'][0, 0]:\n        n = n + 1\n    return n * w['a'] @ x", "branch"),
    "a number from data": ("return float(x[0]) * (w['a'] @ x)", "data"),
    "NaN": ("return w['a'] @ x * float('nan')", "NaN"),
    "infinity": ("return w['a'] @ x + float('inf')", "infinite|∞|finite"),
    "input ignored": ("return w['a'] * 2.0", "ignores its input"),
    "weights ignored": ("return x * 2.0", "weight"),
    "no result": ("return None", "returns|return"),
    "no end": ("return network(w, x)", "RecursionError"),
    "an exit": ("raise SystemExit(0)", "SystemExit"),
    "an end of its own kind": ("raise type('End', (BaseException,), {})('odd')", "End: odd|End"),
    "an empty result": ("return ()", "returns nothing"),
    "more memory than there is": ("return (w['a'] @ x)[:, None] * np.ones((1, 10**13))", "."),
    "an error of its own": ("raise NotImplementedError('later')", "later"),
    "a missing name": ("return w['b'] @ x", "KeyError|b"),
    "wrong shapes": ("return w['a'] @ np.ones(3)", "."),
}


@pytest.mark.parametrize("door", HEAD)
@pytest.mark.parametrize("what", BODIES)
def test_networks_without_an_answer_are_one_line(door, what, tmp_path, capsys):
    if door != "numpy":
        pytest.importorskip(door, reason=f"the door of {door} is tested where it is installed: make doors-test")
    body, words = BODIES[what]
    path = tmp_path / "network.py"
    path.write_text(f"{HEAD[door]}inputs = [(2,)]\ndef network(w, x):\n    {body}\n")
    assert run(["net", f"{path}:{'Network' if door == 'torch' else 'network'}"]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    with pytest.raises((InputError, SizeError), match=words):
        from attngeom.cli.net import load_network

        found, content = load_network(f"{path}:{'Network' if door == 'torch' else 'network'}")
        attngeom.analyze(found, (2,), weights=content.get("weights"))


def test_what_a_file_prints_is_no_answer(tmp_path, capsys):
    path = tmp_path / "network.py"
    head = "print('loaded')\nweights, inputs = {'a': (2, 2)}, (2,)\n"
    path.write_text(head + "def network(w, x):\n    print('run')\n    return w['a'] @ x\n")
    assert run(["net", f"{path}:network", "--json", "--out", str(tmp_path / "c.json")]) == 0
    printed = capsys.readouterr()
    assert json.loads(printed.out)["dimension"] == 4 and "loaded" in printed.err and "run" in printed.err
    assert run(["verify", str(tmp_path / "c.json")]) == 0


FILES = {
    "a class with arguments": ("class network:\n    def __init__(self, n): pass\n", "without arguments"),
    "a class that raises": ("class network:\n    def __init__(self): raise ValueError('no')\n", "ValueError: no"),
    "no name": ("def other(w, x): pass\n", "has no network"),
    "an error": ("raise RuntimeError('x' * 500)\n", "RuntimeError"),
    "no Python": ("def network(:\n", "SyntaxError"),
    "an end": ("raise SystemExit(3)\n", "SystemExit"),
    "no package": ("import no_such_package\n", "no_such_package"),
    "an end of its own kind": ("class End(BaseException): pass\nraise End('odd')\n", "End"),
    "no function": ("network = 3\n", "a function"),
}


@pytest.mark.parametrize("what", FILES)
def test_files_without_a_network_are_one_line(what, tmp_path, capsys):
    body, words = FILES[what]
    path = tmp_path / "network.py"
    path.write_text(body)
    assert run(["net", f"{path}:network", "--input", "2"]) == 2
    error = capsys.readouterr().err
    assert words in error and error.count("\n") == 1 and len(error) <= 210


def test_inputs_of_a_file_are_a_list(tmp_path, capsys):
    path = tmp_path / "network.py"
    path.write_text("weights, inputs = {'a': (2, 2)}, None\ndef network(w, x):\n    return w['a'] @ x\n")
    assert run(["net", f"{path}:network"]) == 2
    assert "a list is required" in capsys.readouterr().err


def test_exponentials_beyond_the_primes_have_no_certificate():
    def tower(w, x):
        for _ in range(8):
            x = np.exp(w["a"] * x / (1 + x * x))
        return x

    answer = attngeom.analyze(tower, (), weights={"a": ()})
    assert (answer.dimension, answer.standing) == (1, "probabilistic")
    verdict = verify(certify_network(answer))
    assert verdict.valid is None and "nested deeper" in verdict.reason


def test_a_network_that_is_zero_has_dimension_zero():
    answer = attngeom.analyze(lambda w, x: 0 * (w["a"] @ x), 3, weights={"a": (3, 3)})
    assert (answer.dimension, answer.standing, answer.whole_samples) == (0, "proven", None)


def _huge(door):
    if door == "numpy":
        return (lambda w, x: w["a"] @ x), {"a": (40_000, 40_000)}
    if door == "jax":
        jax = pytest.importorskip("jax", reason="the door of jax is tested where it is installed: make doors-test")
        return (lambda w, x: w["a"] @ x), {"a": jax.ShapeDtypeStruct((40_000, 40_000), np.float32)}
    torch = pytest.importorskip("torch", reason="the door of torch is tested where it is installed: make doors-test")
    return torch.nn.Linear(40_000, 40_000, device="meta"), None


@pytest.mark.parametrize("door", HEAD)
def test_a_billion_weights_are_refused_before_anything_is_made(door):
    network, weights = _huge(door)
    with pytest.raises(SizeError, match="shrink the widths"):
        attngeom.analyze(network, (40_000,), weights=weights)


@pytest.mark.parametrize("door", ["numpy", "torch"])
def test_networks_without_weights_are_refused(door):
    network = np.tanh
    if door == "torch":
        network = pytest.importorskip("torch", reason="make doors-test").nn.Tanh()
    with pytest.raises(InputError, match="weights"):
        attngeom.analyze(network, (2,), weights=None if door == "torch" else {})
