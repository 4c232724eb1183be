"""The JAX door: functions of named weights, scans, masks, and what is refused."""

import numpy as np
import pytest

import attngeom
from attngeom.errors import InputError

jax = pytest.importorskip("jax", reason="the JAX door is tested where JAX is installed: make doors-test")
jnp = jax.numpy


def weights(**shapes):
    return {name: jax.random.normal(jax.random.PRNGKey(i), shape) for i, (name, shape) in enumerate(shapes.items())}


def lightning(w, x):
    return ((x @ w["q"].T) @ (x @ w["k"].T).T) @ (x @ w["v"].T)


def softmax(w, x):
    return jax.nn.softmax((x @ w["q"].T) @ (x @ w["k"].T).T, axis=-1) @ (x @ w["v"].T)


def delta(w, x):
    def step(state, token):
        key, gate = w["k"] @ token, jax.nn.sigmoid(w["b"] @ token)
        state = state - gate * jnp.outer(state @ key, key) + gate * jnp.outer(w["v"] @ token, key)
        return state, state @ (w["q"] @ token)

    return jax.lax.scan(step, jnp.zeros((2, 2)), x)[1]


def step(state, token):
    return state + token, token


def masked(w, x):
    scores = (x @ w["q"].T) @ (x @ w["k"].T).T
    return jax.nn.softmax(scores, where=jnp.tril(jnp.ones((3, 3), bool))) @ x


@jax.jit
def block(w, x):
    def norm(x, gain):
        return x * jax.lax.rsqrt(jnp.mean(x * x, -1, keepdims=True) + 1e-5) * gain

    y = norm(x, w["g1"])
    scores = jnp.where(jnp.tril(jnp.ones((3, 3), bool)), (y @ w["q"]) @ (y @ w["k"]).T, -jnp.inf)
    x = x + jax.nn.softmax(scores, -1) @ (y @ w["v"]) @ w["o"]
    y = norm(x, w["g2"])
    return (x + (jax.nn.silu(y @ w["gate"]) * (y @ w["up"])) @ w["down"])[-1]


HEAD = {"q": (2, 3), "k": (2, 3), "v": (2, 3)}
BLOCK = {"g1": (4,), "q": (4, 2), "k": (4, 2), "v": (4, 2), "o": (2, 4), "g2": (4,)}
FUNCTIONS = {
    "lightning": (lightning, HEAD, (3, 3), 13),
    "softmax": (softmax, HEAD, (3, 3), 14),
    "DeltaNet": (delta, HEAD | {"b": (3,)}, (3, 3), 19),
    "block": (block, BLOCK | {"gate": (4, 4), "up": (4, 4), "down": (4, 4)}, (3, 4), 68),
    "mask of a softmax": (masked, {"q": (2, 3), "k": (2, 3)}, (3, 3), 8),
    "scan of no steps": (lambda w, x: jax.lax.scan(step, w["b"], x[:0])[0] @ x.T, {"b": (3,)}, (3, 3), 3),
    "GELU": (lambda w, x: w["b"] @ jax.nn.gelu(w["a"] @ x, approximate=False), {"a": (3, 2), "b": (2, 3)}, (2,), 12),
    "ReLU": (lambda w, x: w["b"] @ jax.nn.relu(w["a"] @ x), {"a": (4, 3), "b": (2, 4)}, (3,), 16),
}


@jax.custom_jvp
def wrong_derivative(x):
    return jnp.tanh(x)


wrong_derivative.defjvp(lambda given, changes: (wrong_derivative(given[0]), 0 * changes[0]))


def combine(a, b):
    return a[0] * b[0], a[1] * b[0] + b[1]


def counted(w, x):
    """The state of a scan holds an integer, and its rows are indices."""

    def step(state, i):
        count, h = state
        return (count + 1, jnp.tanh(w["A"] @ h) + x[i] * count), h * i

    return jax.lax.scan(step, (0, x), jnp.arange(3) % 2)[1]


SQUARE, TWO = {"A": (2, 2)}, {"A": (3, 2), "B": (2, 3)}
WRITTEN = {
    "scan with a counter": (counted, SQUARE, (2,), 4),
    "scan backwards": (
        lambda w, x: jax.lax.scan(lambda c, t: (jnp.tanh(w["A"] @ c + t), c @ t), jnp.zeros(2), x, reverse=True)[1],
        SQUARE, (3, 2), 4,
    ),
    "associative scan": (
        lambda w, x: jax.lax.associative_scan(combine, (jax.nn.sigmoid(x @ w["A"]), x))[1], SQUARE, (4, 2), 4
    ),
    "loop": (lambda w, x: jax.lax.fori_loop(0, 3, lambda i, c: jnp.tanh(w["A"] @ c) + i, x), SQUARE, (2,), 4),
    "while with a counter": (
        lambda w, x: jax.lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, jnp.tanh(w["A"] @ c[1])), (0, x))[1],
        SQUARE, (2,), 4,
    ),
    "vmap of rows": (lambda w, x: jax.vmap(lambda r: jnp.tanh(r @ x))(w["A"]).sum(), SQUARE, (2,), 4),
    "derivative that lies": (lambda w, x: wrong_derivative(w["A"] @ x), SQUARE, (2,), 4),
    "no gradient": (lambda w, x: jax.lax.stop_gradient(w["A"]) @ x, SQUARE, (2,), 4),
    "gradient inside": (lambda w, x: jax.grad(lambda y: jnp.sum(jnp.tanh(w["A"] @ y)))(x), SQUARE, (2,), 4),
    "trace": (lambda w, x: jnp.einsum("ii,j->j", w["A"], x), SQUARE, (2,), 1),
    "diagonal": (lambda w, x: jnp.einsum("ii,i->i", w["A"], x), SQUARE, (2,), 2),
    "outer sum": (lambda w, x: jnp.einsum("ij,k->k", w["A"], x), SQUARE, (2,), 1),
    "three factors": (lambda w, x: jnp.einsum("ij,jk,k->i", w["B"], w["A"], x), TWO, (2,), 4),
    "quadratic form": (lambda w, x: jnp.einsum("i,ij,j->", x, w["A"], x), SQUARE, (2,), 3),
    "fixed branch": (lambda w, x: jax.lax.cond(True, lambda y: w["A"] @ y, lambda y: y, x), SQUARE, (2,), 4),
    "fixed places": (lambda w, x: jnp.take_along_axis(w["A"] * x, np.array([[1, 0], [0, 0]]), 1), SQUARE, (2,), 3),
    "variance": (lambda w, x: jnp.var(w["A"] @ x), SQUARE, (2,), 2),
    "softplus": (lambda w, x: w["B"] @ jax.nn.softplus(w["A"] @ x), TWO, (2,), 12),
    "logsumexp": (lambda w, x: jax.scipy.special.logsumexp(x @ w["A"], axis=-1), SQUARE, (3, 2), 4),
    "masked softmax": (lambda w, x: jax.nn.softmax(w["A"] @ x, where=np.array([True, True])), SQUARE, (2,), 2),
    "linear system": (lambda w, x: jnp.linalg.solve(w["A"], x), SQUARE, (2,), 4),
    "inverse": (lambda w, x: jnp.tanh(jnp.linalg.inv(w["A"]) @ x), SQUARE, (2,), 4),
    # Symmetric matrices, and their logarithm of the determinant is one number.
    "Cholesky factor": (lambda w, x: jnp.linalg.cholesky(w["A"] @ w["A"].T + jnp.eye(2)) @ x, SQUARE, (2,), 3),
    "solved by factors": (
        lambda w, x: jax.scipy.linalg.cho_solve(jax.scipy.linalg.cho_factor(w["A"] @ w["A"].T + jnp.eye(2)), x),
        SQUARE, (2,), 3,
    ),
    "determinant": (lambda w, x: jnp.linalg.det(w["A"] + jnp.diag(x)), SQUARE, (2,), 3),
    "largest so far": (lambda w, x: jax.lax.cummax(w["A"] @ x), SQUARE, (2,), 4),
    "least so far, backwards": (lambda w, x: jax.lax.cummin(w["A"] @ x, reverse=True), SQUARE, (2,), 4),
    "sums of exponentials so far": (lambda w, x: jax.lax.cumlogsumexp(w["A"] @ x), SQUARE, (2,), 4),
    "products at places": (lambda w, x: (w["A"] @ x).at[jnp.array([0, 0])].mul(x), SQUARE, (2,), 4),
    "largest at places": (lambda w, x: x.at[jnp.array([1])].max(w["A"][0] @ x), SQUARE, (2,), 2),
    "largest of a segment": (
        lambda w, x: jax.ops.segment_max(w["B"] @ x, jnp.array([0, 0, 1]), num_segments=2), {"B": (3, 2)}, (2,), 6
    ),
    "groups of a batch": (
        lambda w, x: jax.lax.conv_general_dilated(x, w["A"][:, None], (1,), "SAME", batch_group_count=2),
        SQUARE, (2, 1, 4), 4,
    ),
    "any and all": (
        lambda w, x: jnp.where(jnp.any(x > 0) & ~jnp.all(x > 1), w["A"] @ x, x), SQUARE, (2,), 4
    ),
    "numbers for what is none": (lambda w, x: jnp.nan_to_num(w["A"] @ x), SQUARE, (2,), 4),
    "float32 inside": (lambda w, x: jnp.tanh((w["A"] @ x).astype(jnp.float32)), SQUARE, (2,), 4),
}  # fmt: skip
"""Written in ways that mislead a tracer; dimensions by hand."""


@pytest.mark.parametrize("name", WRITTEN)
def test_ways_to_write_are_no_other_functions(name):
    function, shapes, shape, dimension = WRITTEN[name]
    found = attngeom.analyze(function, shape, weights=weights(**shapes))
    assert (found.dimension, found.standing) == (dimension, "proven"), found.reason


@pytest.mark.parametrize("name", FUNCTIONS)
def test_dimensions_of_functions_are_proven(name):
    function, shapes, shape, dimension = FUNCTIONS[name]
    found = attngeom.analyze(function, shape, weights=weights(**shapes))
    assert (found.dimension, found.standing) == (dimension, "proven")


def test_both_doors_find_the_same_dimension():
    numbers = weights(**HEAD)
    same = attngeom.analyze(lightning, (3, 3), weights={name: np.asarray(x) for name, x in numbers.items()})
    assert same.dimension == attngeom.analyze(lightning, (3, 3), weights=numbers).dimension


def test_integers_stay_fixed():
    def table(w, ids):
        return w["table"][ids] @ w["read"]

    found = attngeom.analyze(table, jnp.arange(5), weights=weights(table=(5, 3), read=(3, 2)))
    assert (found.parameters, found.dimension, found.standing) == (21, 10, "proven")


REFUSED = {
    "branches on data": lambda w, x: w["a"] @ x if x.sum() > 0 else x,
    "while": lambda w, x: jax.lax.while_loop(lambda s: s.sum() < 1, lambda s: s + w["a"] @ x, x),
    "argsort": lambda w, x: (w["a"] @ x)[jnp.argsort(x)],
    "index made from data": lambda w, x: (w["a"] @ x)[jax.lax.top_k(x, 1)[1]],
    "Gram-Schmidt": lambda w, x: jnp.linalg.qr(w["a"])[0] @ x,
    "singular vectors": lambda w, x: jnp.linalg.svd(w["a"])[1] * x,
    "cosines and sines": lambda w, x: jnp.abs(jnp.fft.rfft(w["a"] @ x)),
    "write others with slices": lambda w, x: jax.lax.reduce_window(w["a"] @ x, 1.0, jax.lax.mul, (2,), (1,), "VALID"),
    "apply met; write it with jnp.where": lambda w, x: (w["a"] @ x).at[:1].apply(jnp.tanh),
    "steps have no derivative": lambda w, x: jnp.floor(w["a"] @ x),
    "fixed length": lambda w, x: jax.lax.while_loop(lambda s: s[0] < 3, lambda s: s + w["a"] @ x, x),
    "random numbers": lambda w, x: w["a"] @ x + jax.random.normal(jax.random.PRNGKey(0), (2,)),
    "constant with NaN": lambda w, x: w["a"] @ x + np.array([0.0, np.nan]),
    "int64": lambda w, x: (w["a"] @ x).astype(int),
    "bfloat16": lambda w, x: (w["a"] @ x).astype(jnp.bfloat16),
    "complex128": lambda w, x: jnp.exp(1j * (w["a"] @ x)).real,
    "compared with ==": lambda w, x: jnp.where(x == 0, w["a"] @ x, x),
    "argmax": lambda w, x: w["a"][jnp.argmax(x)],
    "pure_callback": lambda w, x: jax.pure_callback(np.tanh, jax.ShapeDtypeStruct((2,), np.float64), w["a"] @ x),
    "out of bounds": lambda w, x: jnp.take(w["a"] @ x, np.array([0, 7]), mode="fill"),
    "int32 met.*jnp.where": lambda w, x: jax.lax.cond(x[0] > 0, lambda y: w["a"] @ y, lambda y: y, x),
}


@pytest.mark.parametrize("words", REFUSED)
def test_what_cannot_be_traced_is_refused(words):
    with pytest.raises(InputError, match=words):
        attngeom.analyze(REFUSED[words], (2,), weights=weights(a=(2, 2)))
