"""Random small rational points where ranks drop: zeros, equal and opposite heads, rows twice, low ranks."""

from collections import Counter

import numpy as np

from attngeom.dimensions import rank_at
from attngeom.exact import QQ
from attngeom.network import Architecture, Weights


def draw_point(rng):
    heads, layers = int(rng.choice([1, 1, 2, 3])), int(rng.choice([1, 1, 2, 2, 3]))
    residual = bool(rng.random() < 0.25)
    widths = [int(rng.integers(1, 4)) for _ in range(layers + 1)]
    if residual:
        widths = [max(widths[0], 2)] * (layers + 1)
    kind = str(rng.choice(["lightning", "softmax", "sigmoid"]))
    architecture = Architecture(
        widths,
        [int(rng.integers(1, 3)) for _ in range(layers)],
        tokens=int(rng.choice([1, 2, 3])),
        kind=kind,
        heads=heads,
        value_width=int(rng.integers(1, 3)) if heads > 1 or rng.random() < 0.2 else None,
        residual=residual,
        causal=bool(rng.random() < 0.3),
    )
    style, tensors = rng.choice(["dense", "sparse", "special"]), {}
    for name, shape in architecture.tensor_shapes():
        entries = rng.integers(-3, 4, size=shape)
        if style != "dense":
            entries = entries * (rng.random(shape) < 0.5)
        if style == "special":
            if rng.random() < 0.2:
                entries[:] = 0
            elif rng.random() < 0.2 and len(entries) > 1:
                entries[-1] = entries[0]
        tensors[name] = entries
    if heads > 1 and rng.random() < 0.5:
        layer = int(rng.integers(layers))
        for letter in rng.permutation(list("QKVO"))[: int(rng.integers(1, 5))]:
            copied = tensors[f"layers.{layer}.heads.0.{letter}"]
            tensors[f"layers.{layer}.heads.1.{letter}"] = copied * (-1 if rng.random() < 0.3 else 1)
    return Weights.from_tensors(architecture, tensors, QQ)


def tally(number, seed):
    """How many ranks were tried, had bounds that contradict each other, and stayed open, for each kind and depth."""
    counts = {}
    for index in range(number):
        weights = draw_point(np.random.default_rng([seed, index]))
        point = rank_at(weights)
        depth = "one layer" if weights.architecture.num_layers == 1 else "deep"
        found = counts.setdefault(f"{weights.architecture.kind}, {depth}", Counter())
        found["tried"] += 1
        found["wrong"] += point.lower_bound > point.upper_bound
        found["undecided"] += not point.is_exact
    return counts
