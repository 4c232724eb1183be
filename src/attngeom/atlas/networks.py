"""The question "network": how many dimensions the functions of a network of the gallery have, and its symmetries.

A network is named by its place in :data:`attngeom.atlas.networks.NETWORKS` and by the digest of the program that it is
traced to, so that a fact is about this very program. Where the bounds meet, the certificate holds the program itself.

The gallery: forty networks as they are written in NumPy, functions of named weights and an input: kinds of attention,
perceptrons, gated units, recurrences, norms.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any, ClassVar

import numpy as np
from scipy.special import erf

from attngeom.atlas.questions import Question, field_of, register, table_values
from attngeom.atlas.records import Answer, Fact, Task
from attngeom.errors import InputError
from attngeom.limits.shown import PROGRAM_DIGITS
from attngeom.programs import Program, trace
from attngeom.rank.analysis import Analysis, analyze, certify_network
from attngeom.verification import verify

GalleryEntry = tuple[Callable[..., Any], Mapping[str, Any], tuple[int, ...]]
"""A network, the shapes of its weights by name, and the shape of its input."""


def softmax(s: Any) -> Any:
    e = np.exp(s - s.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def silu(x: Any) -> Any:
    return x / (1 + np.exp(-x))


def rms(x: Any) -> Any:
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-6)


def attention(weighting: Callable[[Any], Any]) -> Callable[[Any, Any], Any]:
    def network(w: Any, x: Any) -> Any:
        return weighting(x @ w["q"].T @ (w["k"] @ x.T)) @ (x @ w["v"].T)

    return network


def perceptron(activation: Callable[[Any], Any]) -> Callable[[Any, Any], Any]:
    return lambda w, x: w["B"] @ activation(w["A"] @ x + w["a"])


def gated(gate: Callable[[Any], Any]) -> Callable[[Any, Any], Any]:
    return lambda w, x: w["down"] @ (gate(w["gate"] @ x) * (w["up"] @ x))


def sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def recurrent(step: Callable[[Any, Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """Outputs of a state of size 2×2 that reads keys, values and queries token by token."""

    def network(w: Any, x: Any) -> Any:
        state, outputs = np.zeros((2, 2)), []
        for token in x:
            state = step(w, state, token)
            outputs.append(state @ (w["q"] @ token))
        return np.stack(outputs)

    return network


def delta_step(w: Any, state: Any, x: Any) -> Any:
    key = w["k"] @ x
    return state + sigmoid(w["b"] @ x) * np.outer(w["v"] @ x - state @ key, key)


def decay_step(w: Any, state: Any, x: Any) -> Any:
    return w["decay"] * state + np.outer(w["v"] @ x, w["k"] @ x)


def gated_step(w: Any, state: Any, x: Any) -> Any:
    return sigmoid(w["b"] @ x) * state + np.outer(w["v"] @ x, w["k"] @ x)


def many_heads(w: Any, x: Any) -> Any:
    q, k, v = ((x @ w[name].T).reshape(len(x), 2, -1).transpose(1, 0, 2) for name in "qkv")
    return (softmax(q @ k.transpose(0, 2, 1)) @ v).transpose(1, 0, 2).reshape(len(x), -1) @ w["o"].T


def biased_head(w: Any, x: Any) -> Any:
    q, k, v = (x @ w[name].T + w[f"b{name}"] for name in "qkv")
    return softmax(q @ k.T) @ v @ w["o"].T + w["bo"]


def convolution(x: Any, kernel: Any) -> Any:
    length = x.shape[1] - kernel.shape[2] + 1
    windows = np.stack([x[:, k : k + length] for k in range(kernel.shape[2])])
    return np.einsum("ock,kcl->ol", kernel, windows)


def experts(w: Any, x: Any) -> Any:
    gates = softmax(w["router"] @ x)
    return sum(gates[e] * (w["down"][e] @ (silu(w["gate"][e] @ x) * (w["up"][e] @ x))) for e in range(2))


def layer_norm(x: Any) -> Any:
    centred = x - x.mean(-1, keepdims=True)
    return centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5)


HEAD = {"q": (2, 3), "k": (2, 3), "v": (2, 3)}
HIDDEN = {"A": (4, 3), "a": 4, "B": (2, 4)}
GATED = {"gate": (4, 3), "up": (4, 3), "down": (3, 4)}
CAUSAL = np.tri(3, dtype=bool)

NETWORKS: Mapping[str, GalleryEntry] = {
    "softmax attention": (attention(softmax), HEAD, (3, 3)),
    "causal softmax attention": (attention(lambda s: softmax(np.where(CAUSAL, s, -np.inf))), HEAD, (3, 3)),
    "linear attention": (attention(lambda s: s), HEAD, (3, 3)),
    "causal linear attention": (attention(lambda s: np.where(CAUSAL, s, 0)), HEAD, (3, 3)),
    "normalised linear attention": (attention(lambda s: s / s.sum(-1, keepdims=True)), HEAD, (3, 3)),
    "squared attention": (attention(np.square), HEAD, (3, 3)),
    "sigmoid attention": (attention(lambda s: 1 / (1 + np.exp(-s))), HEAD, (3, 3)),
    "ReLU attention": (attention(lambda s: np.maximum(s, 0)), HEAD, (3, 3)),
    "capped softmax attention": (attention(lambda s: softmax(np.tanh(s))), HEAD, (3, 3)),
    "attention with QK-norm": (
        lambda w, x: (softmax(rms(x[-1:] @ w["q"].T) @ rms(x @ w["k"].T).T) @ (x @ w["v"].T))[-1],
        HEAD,
        (2, 3),
    ),
    "ReLU perceptron": (perceptron(lambda x: np.maximum(x, 0)), HIDDEN, (3,)),
    "leaky ReLU perceptron": (perceptron(lambda x: np.where(x > 0, x, x / 8)), HIDDEN, (3,)),
    "absolute value perceptron": (perceptron(np.abs), HIDDEN, (3,)),
    "squared perceptron": (perceptron(np.square), HIDDEN, (3,)),
    "cubic perceptron": (perceptron(lambda x: x**3), HIDDEN, (3,)),
    "tanh perceptron": (perceptron(np.tanh), HIDDEN, (3,)),
    "sigmoid perceptron": (perceptron(lambda x: 1 / (1 + np.exp(-x))), HIDDEN, (3,)),
    "SiLU perceptron": (perceptron(silu), HIDDEN, (3,)),
    "GELU perceptron": (perceptron(lambda x: x * (1 + erf(x / np.sqrt(2))) / 2), HIDDEN, (3,)),
    "softplus perceptron": (perceptron(lambda x: np.log(1 + np.exp(x))), HIDDEN, (3,)),
    "sine perceptron": (perceptron(np.sin), HIDDEN, (3,)),
    "exponential perceptron": (perceptron(np.exp), HIDDEN, (3,)),
    "SwiGLU": (gated(silu), GATED, (3,)),
    "ReGLU": (gated(lambda x: np.maximum(x, 0)), GATED, (3,)),
    "bilinear unit": (gated(lambda x: x), GATED, (3,)),
    "gated linear unit": (gated(lambda x: 1 / (1 + np.exp(-x))), GATED, (3,)),
    "RMSNorm and a map": (lambda w, x: w["W"] @ (rms(x) * w["g"]), {"W": (2, 3), "g": 3}, (3,)),
    "low rank map": (lambda w, x: w["B"] @ (w["A"] @ x), {"A": (2, 4), "B": (4, 2)}, (4,)),
    "map and low rank change": (
        lambda w, x: w["W"] @ x + w["B"] @ (w["A"] @ x),
        {"W": (3, 3), "A": (1, 3), "B": (3, 1)},
        (3,),
    ),
    "tensor factorisation": (
        lambda w, x: np.einsum("ra,rb,rc,a,b->c", w["A"], w["B"], w["C"], x[:2], x[2:]),
        {"A": (2, 2), "B": (2, 2), "C": (2, 2)},
        (4,),
    ),
    "DeltaNet": (recurrent(delta_step), {**HEAD, "b": 3}, (3, 3)),
    "retention with learned decay": (recurrent(decay_step), {**HEAD, "decay": ()}, (3, 3)),
    "gated linear attention": (recurrent(gated_step), {**HEAD, "b": 3}, (3, 3)),
    "two heads": (many_heads, dict.fromkeys("qkvo", (4, 4)), (3, 4)),
    "head with biases": (
        biased_head,
        {**dict.fromkeys("qkvo", (2, 2)), **{f"b{name}": 2 for name in "qkvo"}},
        (3, 2),
    ),
    "cross-attention": (
        lambda w, x: softmax(x[:2] @ w["q"].T @ (w["k"] @ x[2:].T)) @ (x[2:] @ w["v"].T),
        HEAD,
        (5, 3),
    ),
    "dense experts": (experts, {"router": (2, 3), **{name: (2, *size) for name, size in GATED.items()}}, (3,)),
    "convolutions with tanh": (
        lambda w, x: convolution(np.tanh(convolution(x, w["K"])), w["L"]),
        {"K": (3, 2, 2), "L": (2, 3, 2)},
        (2, 4),
    ),
    "tied autoencoder": (lambda w, x: w["W"].T @ np.tanh(w["W"] @ x), {"W": (2, 4)}, (4,)),
    "LayerNorm and a perceptron": (
        lambda w, x: w["B"] @ np.tanh(w["A"] @ (layer_norm(x) * w["g"] + w["b"]) + w["a"]),
        {"g": 3, "b": 3, **HIDDEN},
        (3,),
    ),
}
"""By the name under which it stands in the atlas."""


@cache
def program_of(name: str) -> Program:
    """The program of a network of the gallery.

    >>> program_of("softmax attention").num_parameters
    18
    """
    if name not in NETWORKS:
        raise InputError(f"network {str(name)[:40]!r} given; names of the gallery, such as 'DeltaNet', are required")
    network, weights, shape = NETWORKS[name]
    return trace(network, shape, weights=weights)


def _names(table: Mapping[str, Any]) -> list[str]:
    names = table_values(table, {"names": "all"}, "network")["names"]
    names = list(NETWORKS) if names == "all" else names if isinstance(names, list) else [names]
    for name in names:
        if not isinstance(name, str) or name not in NETWORKS:
            raise InputError(f"[[network]] names {str(name)[:40]!r}; 'all' or names of the gallery are required")
    return names


def _fiber(answer: Analysis) -> dict[str, int]:
    """The fiber by symmetry: parts of one name on the same axes are one entry."""
    parts: dict[str, int] = {}
    for part in answer.fiber:
        label = f"{part.name} on {', '.join(part.tensors)}"
        parts[label] = parts.get(label, 0) + part.count
    return parts


class NetworkDimension(Question):
    """Bounds of the dimension of a network as it is written, its fiber by symmetry, and a certificate."""

    name = "network"
    rests_on: ClassVar[Mapping[str, str]] = {"unexplained": "dimension"}

    def tasks(self, table: Mapping[str, Any], seed: int) -> Iterator[Task]:
        for name in _names(table):
            yield Task(self.name, {"network": name}, {"program": program_of(name).digest[:PROGRAM_DIGITS]}, seed)

    def size(self, table: Mapping[str, Any]) -> int:
        return len(_names(table))

    def cost(self, task: Task) -> float:
        program = program_of(task.architecture["network"])
        return 0.02 + 2e-3 * program.num_parameters

    def run(self, task: Task) -> Answer:
        analysis = self._analyze(task, task.seed)
        answer = {
            "dimension": analysis.dimension,
            "lower_bound": analysis.lower_bound,
            "upper_bound": analysis.upper_bound,
            "num_parameters": analysis.parameters,
            "fiber": _fiber(analysis),
            "unexplained": analysis.unexplained,
        }
        if analysis.is_proven:
            certificate = certify_network(analysis).to_json()
            # Free values of logarithms, Φ and sines are tested by the analysis, not by a recheck of its certificate:
            # such facts are computed again.
            is_proof = verify(certificate).standing != "probabilistic"
            return Answer(answer, "proven", analysis.lower.prime, certificate if is_proof else None)
        evidence = "probabilistic" if analysis.standing == "probabilistic" else "undecided"
        return Answer(answer, evidence, analysis.lower.prime)

    def _analyze(self, task: Task, seed: int) -> Analysis:
        program = program_of(task.architecture["network"])
        if program.digest[:PROGRAM_DIGITS] != task.parameters["program"]:
            raise InputError(f"the gallery of this version has another program of {task.architecture['network']!r}")
        return analyze(program, seed=seed)

    def claim(self, fact: Fact) -> Mapping[str, Any]:
        program = program_of(fact.task.architecture["network"])
        return {"kind": "network", "program": program.to_json(), "dimension": fact.result.answer.get("dimension")}

    def certified(self, fact: Fact) -> frozenset[str]:
        """The bounds meet at the dimension, or :meth:`check` objects."""
        return frozenset({"dimension", "lower_bound", "upper_bound"})

    def derive(self, fact: Fact) -> Mapping[str, Any]:
        """The number of weights; the fiber of an analysis from another seed; what is then left of the weights."""
        again = self._analyze(fact.task, fact.task.seed + 1)
        fiber, dimension = _fiber(again), fact.result.answer["dimension"]
        rest = again.parameters - dimension - sum(fiber.values())
        return {"num_parameters": again.parameters, "fiber": fiber, "unexplained": rest}

    def confirm(self, fact: Fact, field: str, again: Mapping[str, Any]) -> bool | None:
        """A rank that proves nothing may be another one at other points; everything else is equal."""
        if field_of(fact, field) == again[field]:
            return True
        return False if fact.result.is_proven or field == "num_parameters" else None

    def check(self, fact: Fact) -> str | None:
        answer = fact.result.answer
        value, count = answer["dimension"], answer["num_parameters"]
        if value + sum(answer["fiber"].values()) + answer["unexplained"] != count:
            return f"its fiber and its dimension {str(value)[:40]} do not add up to {count} weights"
        if fact.result.is_proven and not answer["lower_bound"] == value == answer["upper_bound"]:
            return f"its bounds do not meet at the dimension {str(value)[:40]}"
        return None


register(NetworkDimension())
