"""Networks as people write them in NumPy, with their numbers of weights and dimensions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import erf


@dataclass(frozen=True)
class Module:
    """A network f(weights, *inputs), its number of weights and the dimension of its functions."""

    name: str
    network: Callable[..., Any]
    weights: dict[str, Any]
    inputs: tuple[Any, ...]
    parameters: int
    dimension: int
    upper: int | None = None


def softmax(s, axis=-1):
    e = np.exp(s - s.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def silu(x):
    return x * sigmoid(x)


def gelu(x):
    return x * (1 + erf(x / np.sqrt(2))) / 2


def relu(x):
    return np.maximum(x, 0)


def rms(x, eps=1e-6):
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + eps)


def layer_norm(x, eps=1e-5):
    centred = x - x.mean(-1, keepdims=True)
    return centred / np.sqrt((centred**2).mean(-1, keepdims=True) + eps)


def lightning(w, x):
    return w["V"] @ x @ x.T @ (w["K"].T @ (w["Q"] @ x))


def softmax_head(w, x):
    return w["V"] @ x @ softmax(x.T @ w["K"].T @ (w["Q"] @ x), 0)


def biased_softmax(w, x):
    q, k, v = (x @ w[n].T + w[f"b{n}"] for n in "qkv")
    return softmax(q @ k.T / np.sqrt(2)) @ v @ w["o"].T + w["bo"]


def delta_net(w, x):
    q, k, v = (x @ w[n].T for n in "qkv")
    beta = sigmoid(x @ w["b"])
    state = np.zeros((2, 2))
    outputs = []
    for t in range(x.shape[0]):
        state = state + beta[t] * np.outer(v[t] - state @ k[t], k[t])
        outputs.append(state @ q[t])
    return np.stack(outputs)


def ret_net(w, x):
    q, k, v = (x @ w[n].T for n in "qkv")
    state = np.zeros((2, 2))
    outputs = []
    for t in range(x.shape[0]):
        state = w["decay"] * state + np.outer(v[t], k[t])
        outputs.append(state @ q[t])
    return np.stack(outputs)


def mlp(activation, biases=False):
    def network(w, x):
        for n in range(len(w) // (2 if biases else 1)):
            x = activation(x) if n else x
            x = w[f"W{n}"] @ x
            x = x + w[f"b{n}"] if biases else x
        return x

    return network


def widths(*sizes, biases=False):
    shapes = {f"W{n}": (sizes[n + 1], sizes[n]) for n in range(len(sizes) - 1)}
    return shapes | ({f"b{n}": (sizes[n + 1],) for n in range(len(sizes) - 1)} if biases else {})


def swiglu(w, x):
    return w["down"] @ (silu(w["gate"] @ x) * (w["up"] @ x))


def bilinear(w, x):
    return w["down"] @ ((w["gate"] @ x) * (w["up"] @ x))


def lora(w, x):
    return w["B"] @ (w["A"] @ x)


def rms_linear(w, x):
    return w["W"] @ (rms(x) * w["g"])


def norm_mlp(w, x):
    h = layer_norm(x) * w["g"] + w["b"]
    return w["W1"] @ gelu(w["W0"] @ h + w["b0"]) + w["b1"]


def two_lightning(w, x):
    for n in range(2):
        x = w[f"V{n}"] @ x @ x.T @ (w[f"K{n}"].T @ (w[f"Q{n}"] @ x))
    return x


def residual_block(w, x):
    x = x + softmax(x @ w["q"].T @ (w["k"] @ x.T)) @ (x @ w["v"].T)
    return x + (silu(x @ w["gate"].T) * (x @ w["up"].T)) @ w["down"].T


def heads(x, n):
    return x.reshape(x.shape[0], n, -1).transpose(1, 0, 2)


def multi_head(w, x, n=2):
    q, k, v = (heads(x @ w[name].T, n) for name in "qkv")
    mixed = softmax(q @ k.transpose(0, 2, 1)) @ v
    return mixed.transpose(1, 0, 2).reshape(x.shape[0], -1) @ w["o"].T


def pre_norm_block(w, x):
    x = x + multi_head(w, rms(x) * w["g0"])
    h = rms(x) * w["g1"]
    return (x + (silu(h @ w["gate"].T) * (h @ w["up"].T)) @ w["down"].T)[-1]


def dense_moe(w, x):
    gates = softmax(w["router"] @ x)
    return sum(gates[e] * (w["down"][e] @ (silu(w["gate"][e] @ x) * (w["up"][e] @ x))) for e in range(3))


def tied(activation):
    return lambda w, x: w["W"].T @ activation(w["W"] @ x)


def conv(x, kernel, bias=None):
    length = x.shape[1] - kernel.shape[2] + 1
    windows = np.stack([x[:, k : k + length] for k in range(kernel.shape[2])])
    y = np.einsum("ock,kcl->ol", kernel, windows)
    return y if bias is None else y + bias[:, None]


def conv_stack(w, x):
    return conv(np.tanh(conv(x, w["K0"], w["b0"])), w["K1"], w["b1"])


def linear_conv(w, x):
    return conv(conv(x, w["K0"]), w["K1"])


def gru(w, x):
    h = np.zeros(2)
    for t in range(x.shape[0]):
        a, b = w["Wi"] @ x[t] + w["bi"], w["Wh"] @ h + w["bh"]
        r, z = sigmoid(a[:2] + b[:2]), sigmoid(a[2:4] + b[2:4])
        n = np.tanh(a[4:] + r * b[4:])
        h = (1 - z) * n + z * h
    return w["out"] @ h


def biased_heads(w, x):
    q, k, v = np.split(x @ w["in"].T + w["b_in"], 3, axis=1)
    q, k, v = (heads(part, 2) for part in (q, k, v))
    mixed = softmax(q @ k.transpose(0, 2, 1) / np.sqrt(2)) @ v
    return mixed.transpose(1, 0, 2).reshape(x.shape[0], -1) @ w["o"].T + w["bo"]


def normalised_linear(w, x):
    q, k, v = (x @ w[n].T for n in "qkv")
    scores = q @ k.T
    return scores @ v / scores.sum(1, keepdims=True)


def cross_attention(w, x, y):
    return softmax(x @ w["q"].T @ (w["k"] @ y.T)) @ (y @ w["v"].T)


def batch_norm(w, x):
    mean, variance = np.array([0.5, -0.25, 1.0]), np.array([1.0, 2.0, 0.5])
    return w["W"] @ ((x - mean) / np.sqrt(variance + 1e-5) * w["g"] + w["b"]) + w["c"]


def embedding(w, ids):
    return w["table"][ids] @ w["W"].T


def exponentials(w, x):
    return w["p"] * np.exp(w["a"] * x) * np.exp(w["b"] * x) + w["q"] * np.exp((w["a"] + w["b"]) * x)


HEAD = {"Q": (2, 3), "K": (2, 3), "V": (2, 3)}
QKV = {"q": (2, 3), "k": (2, 3), "v": (2, 3)}
SQUARE = {"q": (2, 2), "k": (2, 2), "v": (2, 2)}
BIASED = SQUARE | {"o": (2, 2), "bq": 2, "bk": 2, "bv": 2, "bo": 2}
SIX = dict.fromkeys("qkvo", (6, 6))
BLOCK = dict.fromkeys(("q", "k", "v", "o", "gate", "up", "down"), (4, 4)) | {"g0": 4, "g1": 4}
MOE = {"router": (3, 3)} | dict.fromkeys(("gate", "up", "down"), (3, 3, 3))
GRU = {"Wi": (6, 2), "Wh": (6, 2), "bi": 6, "bh": 6, "out": (2, 2)}

MODULES = [
    Module("lightning 3,2,2", lightning, HEAD, ((3, 2),), 18, 13),
    Module("softmax 3,2,2", softmax_head, HEAD, ((3, 2),), 18, 14),
    Module("softmax with all biases", biased_softmax, BIASED, ((2, 2),), 24, 12),
    Module("DeltaNet 3,2,2", delta_net, QKV | {"b": 3}, ((3, 3),), 21, 19),
    Module("RetNet 3,2,2", ret_net, QKV | {"decay": ()}, ((3, 3),), 19, 14),
    Module("squared MLP 3-3-2", mlp(np.square), widths(3, 3, 2), (3,), 15, 12),
    Module("squared MLP 2-3-2", mlp(np.square), widths(2, 3, 2), (2,), 12, 6),
    Module("squared MLP 6-6-6-4", mlp(np.square), widths(6, 6, 6, 4), (6,), 96, 84),
    Module("cubic MLP 2-2-2-2", mlp(lambda x: x**3), widths(2, 2, 2, 2), (2,), 12, 8),
    Module("SwiGLU 3,3", swiglu, dict.fromkeys(("gate", "up", "down"), (3, 3)), (3,), 27, 24),
    Module("bilinear MLP 3,3", bilinear, dict.fromkeys(("gate", "up", "down"), (3, 3)), (3,), 27, 18),
    Module("GELU 2-3-2", mlp(gelu, True), widths(2, 3, 2, biases=True), (2,), 17, 17),
    Module("ReLU 3-4-2", mlp(relu, True), widths(3, 4, 2, biases=True), (3,), 26, 22),
    Module("ReLU 3-4-4-2", mlp(relu, True), widths(3, 4, 4, 2, biases=True), (3,), 46, 38),
    Module("LeakyReLU 3-4-2", mlp(lambda x: np.where(x > 0, x, 0.125 * x)), widths(3, 4, 2), (3,), 20, 16),
    Module("LoRA 4, rank 2", lora, {"A": (2, 4), "B": (4, 2)}, (4,), 16, 12),
    Module("deep linear 3-2-2-3", mlp(lambda x: x), widths(3, 2, 2, 3), (3,), 16, 8),
    Module("RMSNorm, linear 3-2", rms_linear, {"W": (2, 3), "g": 3}, (3,), 9, 6),
    Module(
        "LayerNorm, GELU 4-3-2", norm_mlp, {"g": 4, "b": 4, "W0": (3, 4), "b0": 3, "W1": (2, 3), "b1": 2}, (4,), 31, 20
    ),
    Module(
        "two lightning 2,2,2", two_lightning, {f"{n}{k}": (2, 2) for k in range(2) for n in "QKV"}, ((2, 3),), 24, 10
    ),
    Module(
        "residual softmax, SwiGLU",
        residual_block,
        SQUARE | {"gate": (3, 2), "up": (3, 2), "down": (2, 3)},
        ((2, 2),),
        30,
        23,
    ),
    Module("multi-head 6, 2×3", multi_head, SIX, ((3, 6),), 144, 108),
    Module("pre-norm block", pre_norm_block, BLOCK, ((2, 4),), 120, 92),
    Module("dense mixture of experts", dense_moe, MOE, (3,), 90, 78),
    Module("tied tanh autoencoder", tied(np.tanh), {"W": (2, 4)}, (4,), 8, 8),
    Module("tied linear autoencoder", tied(lambda x: x), {"W": (2, 4)}, (4,), 8, 7),
    Module("Conv1d, tanh", conv_stack, {"K0": (3, 2, 2), "b0": 3, "K1": (2, 3, 2), "b1": 2}, ((2, 4),), 29, 29),
    Module("linear Conv1d", linear_conv, {"K0": (2, 1, 2), "K1": (1, 2, 2)}, ((1, 4),), 8, 3, 4),
    Module("GRU, 3 steps", gru, GRU, ((3, 2),), 40, 36),
    Module(
        "MultiheadAttention(4, 2)",
        biased_heads,
        {"in": (12, 4), "b_in": 12, "o": (4, 4), "bo": 4},
        ((3, 4),),
        80,
        56,
    ),
    Module("normalised linear attention", normalised_linear, QKV, ((3, 3),), 18, 13),
    Module("cross-attention", cross_attention, {"q": (2, 3), "k": (2, 2), "v": (2, 2)}, ((2, 3), (2, 2)), 14, 10),
    Module("BatchNorm, linear 3-2", batch_norm, {"g": 3, "b": 3, "W": (2, 3), "c": 2}, (3,), 14, 8),
    Module("Embedding(5,3), linear 2", embedding, {"table": (5, 3), "W": (2, 3)}, (np.arange(5),), 21, 10),
    Module("exponentials", exponentials, {"p": (), "q": (), "a": (), "b": ()}, ((),), 4, 2),
]
