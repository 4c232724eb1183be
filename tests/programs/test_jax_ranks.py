"""Functions of JAX as people write them: dimensions against ranks of the Jacobian in float64, at several weights."""

from math import prod

import numpy as np
import pytest

import attngeom

jax = pytest.importorskip("jax", reason="the JAX door is tested where JAX is installed: make doors-test")
jnp = jax.numpy

FUNCTIONS = {}
"""By name: the function, the shapes of its weights, those of its inputs."""


def f(shapes, *inputs):
    def enter(function):
        FUNCTIONS[function.__name__] = function, shapes, inputs
        return function

    return enter


@f({"k": (3, 1, 2), "o": (2,)}, (1, 5, 1))
def conv1d(w, x):
    return (
        jnp.tanh(
            jax.lax.conv_general_dilated(
                x, jnp.transpose(w["k"], (0, 1, 2)), (1,), "VALID", dimension_numbers=("NWC", "WIO", "NWC")
            )
        )
        @ w["o"]
    )


@f({"k": (2, 1, 2, 2), "o": (1, 2, 1, 1)}, (1, 1, 4, 4))
def conv2d_same_stride(w, x):
    return jax.lax.conv(jax.nn.gelu(jax.lax.conv(x, w["k"], (2, 2), "SAME")), w["o"], (1, 1), "VALID")


@f({"k": (4, 1, 2)}, (1, 4, 4))
def conv_group_dil(w, x):
    return jnp.tanh(jax.lax.conv_general_dilated(x, w["k"], (1,), [(1, 0)], rhs_dilation=(2,), feature_group_count=4))


@f({"k": (2, 2, 2), "o": (2,)}, (1, 3, 2))
def convT(w, x):
    return jnp.einsum(
        "bwo,o->bw",
        jax.nn.silu(jax.lax.conv_transpose(x, w["k"], (2,), "SAME", dimension_numbers=("NWC", "WIO", "NWC"))),
        w["o"],
    )


@f({"a": (2, 2), "b": (2, 2)}, (3, 2))
def cumprod(w, x):
    return jnp.cumprod(jax.nn.sigmoid(x @ w["a"]), 0) @ w["b"]


@f({"a": (2, 2)}, (3, 2))
def cumsum_rev(w, x):
    return jax.lax.cumsum(jnp.tanh(x @ w["a"]), 0, reverse=True)


@f({"a": (2, 3)}, (3,))
def scatter_set(w, x):
    return jnp.zeros(4).at[jnp.array([3, 1])].set(w["a"] @ x)


@f({"a": (3, 2)}, (2,))
def scatter_add(w, x):
    return jnp.zeros(3).at[jnp.array([2, 0, 2])].add(jnp.tanh(w["a"] @ x))


@f({"a": (2, 2), "e": (4, 2)}, (2,))
def scatter_row(w, x):
    return w["e"].at[1].set(jnp.tanh(w["a"] @ x)) @ x


@f({"k": (2, 2), "v": (2, 2)}, (3, 2))
def trisolve_unit(w, x):
    k = x @ w["k"]
    A = jnp.eye(3) + jnp.tril(k @ k.T, -1)
    return jax.scipy.linalg.solve_triangular(A, x @ w["v"], lower=True, unit_diagonal=True)


@f({"a": (3, 3)}, (3,))
def trisolve(w, x):
    return jax.scipy.linalg.solve_triangular(w["a"], x, lower=True, trans=1)


@f({"w": (2, 3), "b": (3,), "o": (3, 2)}, (2,))
def mlp_relu(w, x):
    return jax.nn.relu(x @ w["w"] + w["b"]) @ w["o"]


@f({"w": (2, 6), "o": (3, 2)}, (2,))
def glu(w, x):
    return jax.nn.glu(x @ w["w"]) @ w["o"]


@f({"w": (2, 3), "o": (3, 2)}, (2,))
def celu(w, x):
    return jax.nn.celu(x @ w["w"]) @ w["o"]


@f({"w": (2, 3), "o": (3, 2)}, (2,))
def selu(w, x):
    return jax.nn.selu(x @ w["w"]) @ w["o"]


@f({"w": (2, 3), "o": (3, 2)}, (2,))
def mish(w, x):
    return jax.nn.mish(x @ w["w"]) @ w["o"]


@f({"w": (2, 3), "o": (3, 2)}, (2,))
def hardswish(w, x):
    return jax.nn.hard_swish(x @ w["w"]) @ w["o"]


@f({"w": (2, 3), "o": (3, 2)}, (2,))
def softsign(w, x):
    return jax.nn.soft_sign(x @ w["w"]) @ w["o"]


@f({"w": (2, 3), "o": (3, 2)}, (2,))
def squareplus(w, x):
    return jax.nn.squareplus(x @ w["w"]) @ w["o"]


@f({"w": (2, 3), "o": (3, 2)}, (2,))
def logsigmoid(w, x):
    return jax.nn.log_sigmoid(x @ w["w"]) @ w["o"]


@f({"w": (2, 3)}, (2,))
def logsoftmax(w, x):
    return jax.nn.log_softmax(x @ w["w"])


@f({"q": (3, 2), "k": (3, 2), "v": (3, 2)}, (3, 3))
def attn_jnn(w, x):
    return jax.nn.dot_product_attention(
        (x @ w["q"])[None, :, None], (x @ w["k"])[None, :, None], (x @ w["v"])[None, :, None], is_causal=True
    )


@f({"q": (4, 4), "k": (4, 2), "v": (4, 2), "o": (4, 4)}, (3, 4))
def gqa(w, x):
    q = (x @ w["q"]).reshape(3, 2, 2)
    k = jnp.repeat((x @ w["k"]).reshape(3, 1, 2), 2, 1)
    v = jnp.repeat((x @ w["v"]).reshape(3, 1, 2), 2, 1)
    s = jnp.einsum("ihd,jhd->hij", q, k)
    s = jnp.where(jnp.tril(jnp.ones((3, 3), bool)), s, -1e30)
    return jnp.einsum("hij,jhd->ihd", jax.nn.softmax(s, -1), v).reshape(3, 4) @ w["o"]


def rms(x, g):
    return x * jax.lax.rsqrt(jnp.mean(x**2, -1, keepdims=True) + 1e-6) * g


@f({"g": (3,), "w": (3, 2)}, (2, 3))
def rmsnorm(w, x):
    return (rms(x, w["g"]) @ w["w"])[-1]


@f({"g": (3,), "b": (3,), "w": (3, 3), "o": (3, 2)}, (3,))
def layernorm(w, x):
    y = (x - x.mean()) / jnp.sqrt(x.var() + 1e-5) * w["g"] + w["b"]
    return jnp.tanh(y @ w["w"]) @ w["o"]


@f({"wz": (2, 2), "uz": (2, 2), "wh": (2, 2), "uh": (2, 2)}, (3, 2))
def gru_scan(w, x):
    def step(h, t):
        z = jax.nn.sigmoid(w["wz"] @ t + w["uz"] @ h)
        n = jnp.tanh(w["wh"] @ t + w["uh"] @ h)
        h = (1 - z) * h + z * n
        return h, h

    return jax.lax.scan(step, jnp.zeros(2), x)[1]


@f({"A": (2, 2), "B": (2, 1), "C": (1, 2)}, (4, 1))
def ssm_lin(w, x):
    def step(h, u):
        h = w["A"] @ h + w["B"] @ u
        return h, w["C"] @ h

    return jax.lax.scan(step, jnp.zeros(2), x)[1]


@f({"a": (2,), "B": (2, 1), "C": (1, 2)}, (4, 1))
def ssm_diag(w, x):
    a = jnp.broadcast_to(jnp.exp(-jnp.exp(w["a"])), (4, 2))
    u = x @ w["B"].T
    h = jax.lax.associative_scan(lambda p, q: (p[0] * q[0], p[1] * q[0] + q[1]), (a, u))[1]
    return h @ w["C"].T


@f({"q": (2, 3), "k": (2, 3), "v": (2, 3), "b": (3,)}, (3, 3))
def delta_l2(w, x):
    def step(S, t):
        k = w["k"] @ t
        k = k / jnp.linalg.norm(k)
        b = jax.nn.sigmoid(w["b"] @ t)
        S = S + b * jnp.outer(w["v"] @ t - S @ k, k)
        return S, S @ (w["q"] @ t)

    return jax.lax.scan(step, jnp.zeros((2, 2)), x)[1][-1]


@f({"w": (2, 2, 3), "o": (2, 2)}, (2,))
def maxout(w, x):
    return jnp.max(jnp.einsum("i,oik->ok", x, w["w"]), -1) @ w["o"]


@f({"w": (2, 3)}, (2,))
def sortnet(w, x):
    return jnp.sort(x @ w["w"])


@f({"w": (2, 3)}, (2,))
def topk(w, x):
    return jax.lax.top_k(x @ w["w"], 2)[0]


@f({"k": (1, 1, 2, 2), "o": (4,)}, (1, 1, 5, 5))
def maxpool(w, x):
    y = jax.lax.conv(x, w["k"], (1, 1), "VALID")
    y = jax.lax.reduce_window(y, -jnp.inf, jax.lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID")
    return y.ravel() @ w["o"]


@f({"k": (2, 1, 2, 2), "o": (8,)}, (1, 1, 5, 5))
def avgpool(w, x):
    y = jnp.tanh(jax.lax.conv(x, w["k"], (1, 1), "VALID"))
    y = jax.lax.reduce_window(y, 0.0, jax.lax.add, (1, 1, 2, 2), (1, 1, 2, 2), "VALID") / 4
    return y.ravel() @ w["o"]


@f({"w": (2, 3), "o": (3, 2)}, (2,))
def logic(w, x):
    h = x @ w["w"]
    return jnp.where((h > 0) & (h < 1), h, 0.1 * h) @ w["o"]


@f({"b": (2, 3), "w": (6, 2)}, (2,))
def fourier(w, x):
    h = x @ w["b"]
    return jnp.concatenate([jnp.sin(h), jnp.cos(h)]) @ w["w"]


@f({"a": (2, 2), "b": (2, 2), "c": (2, 2)}, (2,))
def poly(w, x):
    return w["c"] @ ((w["b"] @ ((w["a"] @ x) ** 2)) ** 2)


@f({"u": (2, 3), "v": (2, 3), "d": (3, 2)}, (2,))
def swiglu(w, x):
    return (jax.nn.silu(x @ w["u"]) * (x @ w["v"])) @ w["d"]


@f({"r": (2, 3), "u": (3, 2, 2)}, (2,))
def moe(w, x):
    return jnp.einsum("e,eo->o", jax.nn.softmax(x @ w["r"]), jnp.einsum("i,eio->eo", x, w["u"]))


@f({"w": (3, 2), "a": (2,), "b": (2,)}, (3, 3))
def gat(w, x):
    h = x @ w["w"]
    e = jax.nn.leaky_relu((h @ w["a"])[:, None] + (h @ w["b"])[None])
    return jax.nn.softmax(jnp.where(jnp.array([[1, 1, 0], [1, 1, 1], [0, 1, 1]], bool), e, -jnp.inf), -1) @ h


@f({"k": (4, 3)}, (3,))
def hopfield(w, x):
    return jax.nn.softmax(w["k"] @ x) @ w["k"]


@f({"w": (3, 2), "b": (2,), "c": (3,)}, (3,))
def tied(w, x):
    return w["w"] @ jnp.tanh(x @ w["w"] + w["b"]) + w["c"]


@f({"c": (3, 2), "g": (3,), "w": (3, 2)}, (2,))
def rbf(w, x):
    return jnp.exp(-w["g"] * jnp.sum((x - w["c"]) ** 2, -1)) @ w["w"]


@f({"q": (4, 4), "k": (4, 4), "v": (4, 2)}, (3, 4))
def rope(w, x):
    t = jnp.arange(3.0)[:, None] * jnp.array([1.0, 0.01])

    def rot(y):
        a, b = y[:, :2], y[:, 2:]
        return jnp.concatenate([a * jnp.cos(t) - b * jnp.sin(t), b * jnp.cos(t) + a * jnp.sin(t)], -1)

    return jax.nn.softmax(rot(x @ w["q"]) @ rot(x @ w["k"]).T, -1) @ (x @ w["v"])


@f({"w": [(2, 3), (3, 2)]}, (2,))
def nested(w, x):
    return jnp.tanh(x @ w["w"][0]) @ w["w"][1]


@f({"w": (2, 2)}, (2,))
def vjp_net(w, x):
    return jax.jacobian(lambda y: jnp.tanh(w["w"] @ y))(x) @ x


@f({"w": (3, 3)}, (3,))
def unrolled_power(w, x):
    return jax.lax.fori_loop(0, 3, lambda i, c: jnp.tanh(w["w"] @ c), x)


@f({"a": (2, 2), "b": (2, 2)}, (3, 2))
def vmap2(w, x):
    return jax.vmap(lambda r: jnp.tanh(r @ w["a"]) @ w["b"])(x)


@f({"a": (2, 2)}, (2,))
def cholesky_like(w, x):
    return jnp.linalg.norm(w["a"] @ x)


@f({"a": (2, 2)}, (2,))
def power(w, x):
    return (jnp.abs(w["a"] @ x) + 1.0) ** 1.5


@f({"a": (2, 2), "b": (3,)}, (4, 2))
def convolve1(w, x):
    return jnp.convolve(jnp.tanh(x @ w["a"])[:, 0], w["b"])


def rank(function, shapes, inputs):
    """The largest numerical rank at three random weights, each at many inputs; singular values below 1e-11 are 0."""
    leaves, tree = jax.tree_util.tree_flatten(shapes, is_leaf=lambda shape: isinstance(shape, tuple))
    cuts = np.cumsum([prod(shape) for shape in leaves])

    def whole(vector, *arrays):
        parts = [part.reshape(shape) for part, shape in zip(jnp.split(vector, cuts[:-1]), leaves)]
        return jnp.ravel(function(jax.tree_util.tree_unflatten(tree, parts), *arrays))

    best = 0
    with jax.enable_x64(True):
        derivative = jax.jit(jax.jacrev(whole))
        for seed in range(3):
            rng = np.random.default_rng(seed)
            vector, rows = rng.standard_normal(int(cuts[-1])), []
            while sum(map(len, rows)) < 2 * cuts[-1] + 20:
                rows.append(np.asarray(derivative(vector, *(rng.standard_normal(shape) for shape in inputs))))
            values = np.linalg.svd(np.concatenate(rows), compute_uv=False)
            best = max(best, int((values > 1e-11 * values[0]).sum()))
    return best


@pytest.mark.parametrize("name", FUNCTIONS)
def test_dimensions_are_ranks_of_floats(name):
    function, shapes, inputs = FUNCTIONS[name]
    weights = jax.tree_util.tree_map(jnp.ones, shapes, is_leaf=lambda shape: isinstance(shape, tuple))
    answer = attngeom.analyze(function, *inputs, weights=weights)
    assert (answer.dimension, answer.standing) == (rank(function, shapes, inputs), "proven"), answer.reason
