"""An independent oracle: the rank of the derivative of the true functions in float64, by complex steps and an SVD.

The functions here use the real exp, erf and tanh and full sequences of tokens, and share only the names of the weights
with the proofs mod p.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import erf

from attngeom.models.counts.redundancy import block_redundancy
from attngeom.models.programs import block_shapes
from attngeom.models.specification import MLP, GroupedAttention, Norm, Norms, QKNorm, TransformerBlock
from tests.models.kinds import BIASES, GATED, PLAIN, attention, rotary, sequential

WIDTH, STEP = 5, 1e-30
# A large eps: directions that only eps shows (scales under a norm) are then far from rounding.
RMS = Norm(kind="rms", eps=0.25)
LAYER = Norm(kind="layer", eps=0.25, bias=True)
Weights = dict[str, np.ndarray]


def normalise(weights: Weights, name: str, norm: Norm | None, x: np.ndarray) -> np.ndarray:
    if norm is None:
        return x
    if norm.kind == "layer":
        x = x - x.mean(axis=-1, keepdims=True)
    x = x / np.sqrt((x * x).mean(axis=-1, keepdims=True) + norm.eps)
    return x * weights.get(f"{name}.gain", 1.0) + weights.get(f"{name}.bias", 0.0)


def turn(own: GroupedAttention, x: np.ndarray) -> np.ndarray:
    """x of shape (…, tokens, heads, head_dim), rotated by position · frequency."""
    if own.rotary is None:
        return x
    half = own.rotated // 2
    angles = np.outer(np.arange(x.shape[-3]), own.rotary.frequencies)[:, None]
    first, second = x[..., :half], x[..., half : 2 * half]
    cosine, sine = np.cos(angles), np.sin(angles)
    rotated = [first * cosine - second * sine, second * cosine + first * sine, x[..., 2 * half :]]
    return np.concatenate(rotated, axis=-1)


def attend(weights: Weights, own: GroupedAttention, u: np.ndarray) -> np.ndarray:
    def read(part: str) -> np.ndarray:
        return np.einsum("hal,...tl->...tha", weights[f"attention.{part}"], u) + weights.get(
            f"attention.{part}_bias", 0.0
        )

    queries, keys, values = read("query"), read("key"), read("value")
    if own.qk_norm is not None:
        flat = replace(own.qk_norm.norm, gain=False)
        queries = normalise({}, "", flat, queries) * weights["attention.query_gain"]
        keys = normalise({}, "", flat, keys) * weights["attention.key_gain"]
    queries, keys = turn(own, queries), turn(own, keys)
    size = own.heads // own.groups
    keys, values = np.repeat(keys, size, axis=-2), np.repeat(values, size, axis=-2)
    scores = own.scale * np.einsum("...tha,...sha->...hts", queries, keys)
    if own.softcap is not None:
        scores = own.softcap * np.tanh(scores / own.softcap)
    exponentials = np.exp(scores) * np.tri(u.shape[-2])
    total = exponentials.sum(axis=-1, keepdims=True)
    if own.sinks:
        total = total + np.exp(weights["attention.sinks"])[:, None, None]
    mixed = np.einsum("...hts,...shv->...thv", exponentials / total, values)
    read_out = np.einsum("hdv,...thv->...td", weights["attention.output"], mixed)
    return read_out + weights.get("attention.output_bias", 0.0)


def transform(weights: Weights, mlp: MLP, u: np.ndarray) -> np.ndarray:
    up = u @ weights["mlp.up"].T + weights.get("mlp.up_bias", 0.0)
    inner = u @ weights["mlp.gate"].T + weights.get("mlp.gate_bias", 0.0) if mlp.gated else up
    hidden = inner * (1 + erf(inner / np.sqrt(2))) / 2 if mlp.activation == "gelu" else inner / (1 + np.exp(-inner))
    return (hidden * up if mlp.gated else hidden) @ weights["mlp.down"].T + weights.get("mlp.down_bias", 0.0)


def evaluate(block: TransformerBlock, weights: Weights, x: np.ndarray) -> np.ndarray:
    own, mlp = block.attention, block.mlp
    assert own is not None and isinstance(mlp, MLP)
    first, second = block.attention_norms, block.mlp_norms
    u = normalise(weights, "attention.input", first.input, x)
    change = normalise(weights, "attention.output", first.output, attend(weights, own, u))
    y = normalise(weights, "attention.stream", first.stream, x + change)
    u = normalise(weights, "mlp.input", second.input, x if block.parallel else y)
    change = normalise(weights, "mlp.output", second.output, transform(weights, mlp, u))
    return normalise(weights, "mlp.stream", second.stream, y + change)


SMALL = attention(**BIASES)
ROTATED = attention(heads=4, head_dim=4, rotary=rotary(4, (1.0, 0.3)))
POST, BOTH = Norms(stream=LAYER), Norms(input=RMS, output=RMS)
KINDS = {
    "gpt2": sequential(SMALL, PLAIN, LAYER),
    "llama": sequential(ROTATED, GATED, RMS),
    "qwen3": sequential(replace(ROTATED, qk_norm=QKNorm(scope="per_head", norm=RMS)), GATED, RMS),
    "gemma2": TransformerBlock(
        attention=replace(ROTATED, softcap=3.0), mlp=GATED, attention_norms=BOTH, mlp_norms=BOTH
    ),
    "bert": TransformerBlock(attention=SMALL, mlp=PLAIN, attention_norms=POST, mlp_norms=POST),
    "neox": sequential(attention(**BIASES, head_dim=4, rotary=rotary(2, (0.7,))), PLAIN, LAYER, parallel=True),
    "sinks": sequential(replace(SMALL, sinks=True), GATED, RMS),
}


@pytest.mark.parametrize("name", KINDS)
def test_rank_of_the_true_function(name: str) -> None:
    block = KINDS[name]
    rng = np.random.default_rng(0)
    shapes = block_shapes(block, WIDTH)
    sizes = [int(np.prod(shape)) for shape in shapes.values()]
    vector = rng.normal(size=sum(sizes))
    inputs = rng.normal(size=(sum(sizes) // 14, 7, WIDTH)) * rng.choice([0.5, 1.0, 3.0], (sum(sizes) // 14, 1, 1))
    columns = []
    for index in range(len(vector)):
        moved = vector.astype(complex)
        moved[index] += 1j * STEP
        parts = np.split(moved, np.cumsum(sizes)[:-1])
        weights = {key: part.reshape(shape) for (key, shape), part in zip(shapes.items(), parts, strict=True)}
        columns.append(evaluate(block, weights, inputs).imag.ravel() / STEP)
    derivative = np.stack(columns, axis=1)
    # Columns are scaled alike, but not those that are zero up to rounding (invisible biases).
    sizes_of_columns = np.linalg.norm(derivative, axis=0)
    derivative /= np.maximum(sizes_of_columns, 1e-6 * sizes_of_columns.max())
    singular = np.linalg.svd(derivative, compute_uv=False)
    expected = len(vector) - block_redundancy(block, WIDTH).total
    assert singular[expected - 1] > 1e-6 * singular[0]
    assert singular[expected] < 1e-10 * singular[0]
