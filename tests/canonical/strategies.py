"""Weights that are generic, degenerate, structured or of extreme size, from a seed."""

import numpy as np
from hypothesis import strategies as st

from attngeom.exact import QQ, RR
from attngeom.network import Architecture, Symmetry, Weights, random_weights
from attngeom.network.symmetry import factors

KINDS = ("lightning", "softmax")


@st.composite
def networks(draw, max_layers=3, max_width=3, kinds=KINDS):
    layers = draw(st.integers(1, max_layers))
    residual = draw(st.booleans())
    width = st.integers(1, max_width)
    widths = (draw(width),) * (layers + 1) if residual else tuple(draw(width) for _ in range(layers + 1))
    heads = draw(st.integers(1, 3))
    return Architecture(
        widths,
        tuple(draw(st.integers(1, max_width + 1)) for _ in range(layers)),
        tokens=draw(st.integers(1, 3)),
        kind=draw(st.sampled_from(kinds)),
        heads=heads,
        value_width=draw(st.integers(1, 2)) if heads > 1 or draw(st.booleans()) else None,
        residual=residual,
        causal=draw(st.booleans()),
    )


def degenerate_weights(architecture: Architecture, seed: int) -> Weights:
    """Small integers with zero, sparse or rank-one tensors, and heads that are equal, proportional or cancel."""
    rng = np.random.default_rng(seed)
    style = rng.integers(4)
    tensors = {}
    for name, shape in architecture.tensor_shapes():
        array = rng.integers(-2, 3, size=shape)
        if style == 0:
            array = array * (rng.random(shape) < 0.4)
        elif style == 1 and rng.random() < 0.3:
            array = np.zeros(shape, dtype=int)
        elif style == 2:
            array = np.outer(rng.integers(-1, 2, size=shape[0]), rng.integers(-1, 2, size=shape[1]))
        tensors[name] = array
    for layer in range(architecture.num_layers):
        for head in range(1, architecture.heads):
            other = int(rng.integers(head))
            copied = ["", "QK", "QKV", "QKVO"][rng.integers(4)]
            for letter in copied:
                source = tensors[architecture.tensor_name(layer, other, letter)]
                tensors[architecture.tensor_name(layer, head, letter)] = source * rng.choice([-1, 1, 2])
    return Weights.from_tensors(architecture, tensors, QQ)


def extreme_weights(architecture: Architecture, seed: int, power: int = 150) -> Weights:
    """Degenerate or random weights, each tensor multiplied by a power of ten between -power and power."""
    rng = np.random.default_rng(seed)
    start = random_weights(architecture, RR, seed) if seed % 2 else degenerate_weights(architecture, seed).to(RR)
    tensors = {name: array * 10.0 ** rng.integers(-power, power + 1) for name, array in start.tensors()}
    return Weights.from_tensors(architecture, tensors, RR)


def gentle_symmetry(architecture: Architecture, seed: int) -> Symmetry:
    """A float group element whose matrices have condition numbers below 20."""

    def draw(n, rng):
        turns = [np.linalg.qr(rng.standard_normal((n, n)))[0] for _ in range(2)]
        return turns[0] @ np.diag(np.exp(rng.uniform(-1.5, 1.5, size=n))) @ turns[1]

    rng = np.random.default_rng(seed)
    return Symmetry(architecture, RR, {factor: factor.random(rng, draw, RR) for factor in factors(architecture)})
