"""The NumPy front door: what is written in NumPy is traced, compared with itself, or refused in one line."""

import numpy as np
import pytest
from scipy.special import erf, expit

import attngeom
from attngeom.errors import AttnGeomError, InputError, SizeError
from attngeom.programs import trace
from tests.programs.modules import MODULES

W = {"a": (2, 3), "b": (3,), "c": ()}

FUNCTIONS = {
    "index work": lambda w, x: np.concatenate([w["a"][:, ::-1].T, np.roll(np.tril(x @ x.T), 1, axis=0)], axis=1),
    "stack and split": lambda w, x: np.stack(np.split(w["a"] @ x.T, 3, axis=1)).squeeze(-1),
    "broadcasting": lambda w, x: w["a"][:, None, :] * x[None] - w["b"] / (2 + w["c"] ** 2),
    "einsum": lambda w, x: np.einsum("ij,kj,k->i", w["a"], x, w["b"]) + np.einsum("...i,ji", w["b"], w["a"]),
    "diagonals": lambda w, x: np.einsum("ii->i", x @ x.T) * w["b"] + np.trace(x) + np.diag(np.outer(w["b"], w["b"])),
    "tensordot": lambda w, x: np.tensordot(w["a"], x, axes=([1], [1])) + np.dot(w["a"], x) + np.inner(w["a"], x),
    "variance": lambda w, x: w["a"].var(axis=1) + np.std(x, axis=0, ddof=1)[:2] + x.mean() * w["c"],
    "cumulative sums": lambda w, x: np.cumsum(w["a"] @ x, axis=1).prod(axis=0),
    "maxima": lambda w, x: np.max(x * w["b"], axis=1) + np.min(x, axis=0) + np.maximum(w["b"], 0.1),
    "orders": lambda w, x: np.sort(x @ w["b"]) + np.clip(w["b"], -0.5, 0.5) + np.abs(w["b"]) * np.sign(x[0]),
    "comparisons": lambda w, x: (x > 0) * w["b"] + np.where(x < w["b"], x, 0.5 * w["b"]),
    "functions": lambda w, x: np.tanh(w["b"]) + expit(x) * erf(w["b"]) + np.log1p(x * x) + np.sin(x) * np.cos(w["b"]),
    "powers": lambda w, x: w["b"] ** 3 + (x * x + 1) ** -1.5 + np.sqrt(2 + w["b"] ** 2) + np.reciprocal(3 + x * x),
    "masked softmax": lambda w, x: masked(w["c"] * x @ x.T, np.tri(3, dtype=bool)) @ x,
    "added mask": lambda w, x: added(w["c"] * x @ x.T, np.where(np.tri(3), 0.0, -np.inf)) @ x,
    "maxima of what a mask leaves": lambda w, x: (
        left(w["c"] * x @ x.T).max(axis=1) + left(x * w["b"]).max(axis=(0, 1), keepdims=True)
    ),
    "differences to masked maxima": lambda w, x: (left(w["c"] * x) - left(w["c"] * x).max(axis=1, keepdims=True))[
        np.tri(3, dtype=bool)
    ],
    "weights masked before their sum": lambda w, x: shares(w["c"] * x @ x.T, np.tri(3)) @ x,
    "one row of differences": lambda w, x: (w["c"] * x - (w["c"] * x).max(axis=1, keepdims=True))[1],
    "maxima of other rows": lambda w, x: x * w["b"] - (x * w["b"]).max(axis=1, keepdims=True)[::-1],
    "maxima of rows below columns": lambda w, x: np.exp(x * w["c"] - (x * w["c"]).max(axis=1, keepdims=True).T),
    "sums across maxima": lambda w, x: over(w["c"] * x, 1) / over(w["c"] * x, 1).sum(axis=0),
    "temperature after the maximum": lambda w, x: (lambda e: e / e.sum(axis=1, keepdims=True))(
        np.exp(0.5 * (w["c"] * x - (w["c"] * x).max(axis=1)[:, None]))
    ),
    "exponentials side by side": lambda w, x: (lambda e: e[:, ::-1] / e.sum(axis=1)[:, None])(
        np.concatenate([over(w["c"] * x, 1)[:, 1:], x * 0 + 1], axis=1)
    ),
    "padded exponentials": lambda w, x: (lambda e: e[:, :3] / e.sum(axis=1, keepdims=True))(
        np.pad(over(w["c"] * x, 1), ((0, 0), (1, 0)))
    ),
    "pairs of exponentials": lambda w, x: over(w["c"] * x, 1) / over(w["c"] * x, 1)[:, ::-1] + over(x * w["b"], 0)[0],
    "maximum without softmax": lambda w, x: np.exp(w["b"] - (w["b"] * x).max(axis=0, keepdims=True)),
    "exponential without a sum": lambda w, x: np.exp(x - x.max(axis=1, keepdims=True)) * w["b"],
    "several outputs": lambda w, x: (w["a"] @ x, x.sum(0) * w["b"]),
    "unit triangular solve": lambda w, x: np.linalg.solve(np.eye(3) + np.tril(x @ x.T, -1), w["a"].T),
    "linear systems": lambda w, x: (
        np.linalg.solve(x @ x.T + np.eye(3), w["a"].T) @ np.linalg.solve(x[:2, :2], x[0, :2])
    ),
    "inverses": lambda w, x: w["a"] @ np.linalg.inv(x) * np.linalg.det(x + np.diag(w["b"])),
    "Cholesky factor": lambda w, x: np.linalg.cholesky(x @ x.T + np.eye(3)) @ w["a"].T,
    "cumulative products": lambda w, x: np.cumprod(w["b"] * x, axis=1) + np.cumprod(w["b"])[:3],
    "truth values": lambda w, x: ((x > 0) & ~(x > w["b"]) | (x < -1)) * w["b"] + ((x > 0) ^ (x > 1)) * w["c"],
    "arrays of powers": lambda w, x: (
        (w["c"] * x) ** np.arange(3) + 2.0 ** (w["b"] * x) + x ** np.array([0.0, -1.0, 2.0])
    ),
    "norms": lambda w, x: x / np.linalg.norm(x, axis=1, keepdims=True) @ w["b"],
    "matmul with batches": lambda w, x: np.stack([w["a"], 2 * w["a"]]) @ x[None] @ w["b"],
}


def left(s):
    return np.where(np.tri(3), s, -np.inf)


def over(s, axis):
    return np.exp(s - s.max(axis=axis, keepdims=True))


def shares(s, mask):
    """A softmax whose mask comes after the exponential, as jax.nn.softmax(where=mask) has it."""
    e = np.exp(s - np.where(mask, s, -np.inf).max(axis=1, keepdims=True))
    return np.where(mask, e / np.where(mask, e, 0).sum(axis=1, keepdims=True), 0)


def masked(s, mask):
    s = np.where(mask, s, -np.inf)
    e = np.exp(s - s.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def added(s, mask):
    e = np.exp(s + mask)
    return e / e.sum(axis=-1, keepdims=True)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_what_numpy_can_say_is_traced(name):
    """Tracing compares program and function at random points, and raises where they differ."""
    program = trace(FUNCTIONS[name], (3, 3), weights=W)
    assert program.num_parameters == 10
    assert sum(node.operation == "pattern" for node in program.nodes) == 0 or name not in (
        "masked softmax",
        "added mask",
    )


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.name)
def test_modules_are_traced(module):
    assert trace(module.network, *module.inputs, weights=module.weights).num_parameters == module.parameters


def test_equal_nodes_are_one_and_tied_weights_are_one_tensor():
    program = trace(lambda w, x: (w["b"] * x) + (w["b"] * x), (3,), weights={"b": 3})
    assert [node.operation for node in program.nodes] == ["parameter", "input", "contract", "add"]


def test_nested_weights_have_dotted_names():
    weights = {"layers": [{"V": (2, 3)}, {"V": np.ones((2, 2))}]}
    program = trace(lambda w, x: w["layers"][1]["V"] @ w["layers"][0]["V"] @ x, 3, weights=weights)
    assert program.parameters == {"layers.0.V": (2, 3), "layers.1.V": (2, 2)}


def test_integer_inputs_are_constants():
    program = trace(lambda w, ids: w["t"][ids], np.array([2, 0]), weights={"t": (3, 2)})
    assert program.inputs == {} and program.outputs == 4


def branch(w, x):
    return w["b"] * x if x.sum() > 0 else w["b"]


def write(w, x):
    out = np.zeros(3)
    out[0] = w["b"][0] * x[0]
    return out


def write_back(w, x):
    w["b"][0] = 1.0
    return w["b"] * x


class Sneaky:
    """A network whose result depends on how often it was called."""

    calls = 0

    def __call__(self, w, x):
        self.calls += 1
        return w["b"] * x * self.calls


REFUSED = {
    "a branch": (branch, "branch on data"),
    "a write into a plain array": (write, "np.stack"),
    "a write in place": (write_back, "write in place"),
    "an unknown function": (lambda w, x: np.fft.fft(w["b"] * x), "np.fft"),
    "an unknown ufunc": (lambda w, x: np.arctan(w["b"] * x), "np.arctan"),
    "an index from data": (lambda w, x: w["b"][np.argsort(x)], "np.argsort"),
    "a number from data": (lambda w, x: w["b"] * float(x[0]), "number made from data"),
    "NaN": (lambda w, x: w["b"] * x * np.nan, "NaN"),
    "infinity": (lambda w, x: w["b"] * x + np.inf, "infinite"),
    "complex numbers": (lambda w, x: w["b"] * x * 1j, "complex"),
    "an ignored input": (lambda w, x: w["b"] * 2, "ignores its input"),
    "ignored weights": (lambda w, x: x * 2, "depends on no weight"),
    "nothing": (lambda w, x: None, "returns nothing"),
    "an error of its own": (lambda w, x: w["nonsense"] * x, "KeyError"),
    "shapes that do not fit": (lambda w, x: np.ones((2, 2)) @ (w["b"] * x), "do not|agree|fit"),
    "masks outside of a softmax": (lambda w, x: np.where([True, False, True], w["b"] * x, -np.inf), "−∞"),
    "a result of chance": (Sneaky(), "differs from the network"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_bad_networks_are_refused_in_one_line(name):
    network, words = REFUSED[name]
    with pytest.raises(AttnGeomError, match=words) as caught:
        trace(network, (3,), weights={"b": 3})
    assert len(str(caught.value)) <= 230 and "\n" not in str(caught.value)


def test_the_line_of_the_network_is_named():
    with pytest.raises(InputError, match=r"test_numpy.py, line \d+"):
        trace(branch, (3,), weights={"b": 3})


def test_the_line_is_named_in_folders_of_any_name(tmp_path):
    """A working copy may lie in a folder that is named as the package or as a library is."""
    path = tmp_path / "attngeom" / "numpy" / "net.py"
    path.parent.mkdir(parents=True)
    path.write_text("def f(w, x):\n    return x if w['b'][0] > 0 else -x\n")
    names = {}
    exec(compile(path.read_text(), str(path), "exec"), names)
    with pytest.raises(InputError, match=r"\(net.py, line 2\)"):
        trace(names["f"], (3,), weights={"b": 3})


@pytest.mark.parametrize(
    ("weights", "error"),
    [
        (None, InputError),
        ({}, InputError),
        ({"b": (0,)}, InputError),
        ({"b": (10**9,)}, SizeError),
        ({"b": "x"}, InputError),
    ],
)
def test_bad_weights_are_refused(weights, error):
    with pytest.raises(error):
        trace(lambda w, x: w["b"] * x, (3,), weights=weights)


def test_what_is_no_network_is_refused():
    with pytest.raises(InputError, match="a function"):
        trace(3, (3,), weights={"b": 3})


@pytest.mark.parametrize(("shape", "weights"), [((4, 2), (2, 3)), ((2, 2), (2, 2)), ((2,), (2, 2))])
def test_a_maximum_that_is_subtracted_and_added_again(shape, weights):
    """log Σ exp(s − m) + m: the sum does not keep the axis of the maximum."""

    def network(w, x):
        scores = x @ w["A"]
        largest = scores.max(-1, keepdims=True)
        return np.log(np.exp(scores - largest).sum(-1)) + largest[..., 0]

    answer = attngeom.analyze(network, shape, weights={"A": weights})
    assert (answer.dimension, answer.standing) == (weights[0] * weights[1], "proven")
