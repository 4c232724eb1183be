"""True claims about dimensions, altered ones, and the rank of the Jacobian in floats, by a forward pass of its own."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from typing import Any

import numpy as np

from attngeom.dimensions import dimension
from attngeom.dimensions.certificate import certify_dimension
from attngeom.network import Architecture
from attngeom.network.attention import RULES

Record = dict[str, Any]


def dimension_records(seed: int) -> Iterator[Record]:
    """True claims about small dimensions, of every variant."""
    rng = random.Random(seed)
    while True:
        layers, heads = rng.choice([1, 1, 2]), rng.choice([1, 1, 2])
        residual = rng.random() < 0.3
        widths = [rng.randrange(1, 4) for _ in range(layers + 1)]
        architecture = Architecture(
            [widths[0]] * (layers + 1) if residual else widths,
            [rng.randrange(1, 3) for _ in range(layers)],
            tokens=rng.randrange(1, 4),
            kind=rng.choice(list(RULES)),
            heads=heads,
            value_width=None if heads == 1 and rng.random() < 0.7 else rng.randrange(1, 3),
            residual=residual,
            causal=rng.random() < 0.3,
        )
        answer = dimension(architecture, prove=True)
        if answer.is_proven and answer.lower is not None and answer.lower.method == "minor":
            record = json.loads(json.dumps(certify_dimension(answer).to_json()))
            if "lower" in record["witness"]:
                yield record


def alter_dimension(record: Record, rng: random.Random) -> None:
    claim, lower, upper = record["claim"], record["witness"]["lower"], record["witness"]["upper"]
    architecture = claim["architecture"]
    action = rng.randrange(9)
    if action == 0:
        claim["dimension"] += rng.choice([-2, -1, 1, 2])
    elif action == 1:
        key = rng.choice(["residual", "causal"])
        architecture[key] = not architecture[key]
    elif action == 2:
        architecture["tokens"] = rng.randrange(1, 5)
    elif action == 3:
        architecture["kind"] = rng.choice([kind for kind in RULES if kind != architecture["kind"]])
    elif action == 4:
        architecture["value_width"] = rng.choice([None, 1, 2, 3])
    elif action == 5:
        key = rng.choice(["widths", "attention"])
        architecture[key][rng.randrange(len(architecture[key]))] = rng.randrange(1, 4)
    elif action == 6:
        lower["prime"] = rng.choice([2, 3, 5, 7, 8388593, 2147483629])
        upper.setdefault("prime", 3)
    elif action == 7:
        key = rng.choice(["point", "tokens", "samples"])
        if key == "point":
            lower[key] = f"attngeom/{rng.randrange(99)}"
        else:
            lower[key] = max(1, lower[key] + rng.choice([-1, 1, 7]))
    else:
        record["witness"]["upper"] = rng.choice(
            [
                {"method": "count"},
                *({"method": "symmetries", "prime": p, "point": str(rng.randrange(9))} for p in (2, 3, 65521)),
            ]
        )
    if action in (1, 2, 3, 4, 5) and rng.random() < 0.7:
        claim["dimension"] = max(0, claim["dimension"] + rng.choice([-2, -1, 0, 1, 2]))
        size = claim["dimension"]
        parameters = sum(r * c for _, (r, c) in Architecture.from_json(architecture).tensor_shapes())
        layers = Architecture.from_json(architecture).layers
        lower["support"] = [[x.d_in, x.d_out, x.attention, x.value_width] for x in layers]
        lower["samples"] = max(lower["samples"], size)
        lower["rows"] = list(range(size))
        lower["columns"] = sorted(rng.sample(range(parameters), size)) if size <= parameters else []


def is_dimension_claim_true(claim: Record) -> bool:
    """The rank of the Jacobian at a random point, by differences of an own forward pass in floats."""
    return float_dimension(claim["architecture"]) == claim["dimension"]


def float_dimension(a: Record, samples: int = 60) -> int:
    """The generic rank by singular values; for the small networks here the gap is wide."""
    rng = np.random.default_rng(5)
    shapes = [shape for _, shape in Architecture.from_json(a).tensor_shapes()]
    sizes = [rows * columns for rows, columns in shapes]
    w = rng.standard_normal(sum(sizes))
    X = rng.standard_normal((samples, a["widths"][0], a["tokens"]))

    def evaluate(vector: Any) -> Any:
        parts = iter(np.split(vector, np.cumsum(sizes)[:-1]))
        tensors = iter([next(parts).reshape(shape) for shape in shapes])
        Y = X.astype(vector.dtype)
        for layer in Architecture.from_json(a).layers:
            out = Y if a["residual"] else 0
            for _ in range(layer.heads):
                Q, K, V = next(tensors), next(tensors), next(tensors)
                scores = np.swapaxes(K @ Y, 1, 2) @ (Q @ Y)
                hidden = np.tril(np.ones(scores.shape[1:]), -1).astype(bool) & a["causal"]
                if a["kind"] == "softmax":
                    weights = np.where(hidden, 0, np.exp(scores / 3))
                    weights = weights / weights.sum(axis=1, keepdims=True)
                elif a["kind"] == "sigmoid":
                    weights = np.where(hidden, 0, 1 / (1 + np.exp(-scores / 3)))
                else:
                    weights = np.where(hidden, 0, scores)
                head = V @ Y @ weights
                out = out + (head if layer.value_width is None else next(tensors) @ head)
            Y = out
        return Y.ravel()

    columns = []
    for k in range(len(w)):
        moved = w.astype(complex)
        moved[k] += 1e-30j
        columns.append(evaluate(moved).imag / 1e-30)
    J = np.stack(columns, axis=1)
    J = J[:, np.linalg.norm(J, axis=0) > 0]
    if not J.size:
        return 0
    values = np.linalg.svd(J / np.linalg.norm(J, axis=0), compute_uv=False)
    return int(np.sum(values > 1e-9 * values[0]))


def altered_dimensions(count: int, seed: int) -> Iterator[Record]:
    rng = random.Random(seed)
    source = dimension_records(seed)
    for _ in range(count):
        record = next(source)
        for _ in range(rng.randrange(1, 3)):
            try:
                alter_dimension(record, rng)
            except ValueError:
                break  # Sizes that are no architecture: refused by its reader.
        yield record
