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
    "GELU": (lambda w, x: w["b"] @ jax.nn.gelu(w["a"] @ x, approximate=False), {"a": (3, 2), "b": (2, 3)}, (2,), 12),
    "ReLU": (lambda w, x: w["b"] @ jax.nn.relu(w["a"] @ x), {"a": (4, 3), "b": (2, 4)}, (3,), 16),
}


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
    "sort": lambda w, x: jnp.sort(w["a"] @ x),
}


@pytest.mark.parametrize("words", REFUSED)
def test_what_cannot_be_traced_is_refused(words):
    with pytest.raises(InputError, match=words):
        attngeom.analyze(REFUSED[words], (2,), weights=weights(a=(2, 2)))
