"""The true function of a block in floats, for NumPy (complex numbers too) and torch, and the rank of its derivative.

It is written from the definitions, with the real exp, erf and tanh, full sequences of tokens, masks and windows, and
shares only the names of the weights with the proofs mod p.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import erf

from attngeom.models.programs import block_shapes
from attngeom.models.specification import MLP, Experts, GroupedAttention, Norm, TransformerBlock
from attngeom.models.surroundings import sublayers

STEP = 1e-30
MAX_ROWS = 6000


@dataclass(frozen=True)
class TrueFunction:
    """Evaluates blocks with the functions of ``xp`` (numpy or torch) and an erf for its numbers."""

    xp: Any
    erf: Callable[[Any], Any]
    weights: dict[str, Any]

    def bias(self, name: str) -> Any:
        return self.weights.get(name, 0.0)

    def normalise(self, name: str, norm: Norm | None, x: Any) -> Any:
        if norm is None:
            return x
        if norm.kind == "layer":
            x = x - self.mean(x)
        x = x / self.xp.sqrt(self.mean(x * x) + norm.eps)
        return x * self.weights.get(f"{name}.gain", 1.0) + self.bias(f"{name}.bias")

    def mean(self, x: Any) -> Any:
        return x.sum(-1)[..., None] / x.shape[-1]

    def turn(self, own: GroupedAttention, x: Any) -> Any:
        """x of shape (…, tokens, heads, head_dim), rotated by position · frequency."""
        if own.rotary is None:
            return x
        half = own.rotated // 2
        angles = np.outer(np.arange(x.shape[-3]), own.rotary.frequencies)[:, None]
        cosine, sine = (self.xp.asarray(table(angles) * own.rotary.amplitude) for table in (np.cos, np.sin))
        first, second = x[..., :half], x[..., half : 2 * half]
        rotated = [first * cosine - second * sine, second * cosine + first * sine, x[..., 2 * half :]]
        return self.xp.concatenate(rotated, -1)

    def read(self, name: str, part: str, u: Any) -> Any:
        return self.xp.einsum("hal,...tl->...tha", self.weights[f"{name}.{part}"], u) + self.bias(f"{name}.{part}_bias")

    def latent(self, name: str, part: str, norm: Norm | None, u: Any) -> Any:
        full = f"{name}.{part}_latent"
        return self.normalise(full, norm, u @ self.weights[full].T + self.bias(f"{full}_bias"))

    def heads(self, name: str, own: GroupedAttention, u: Any, source: Any) -> tuple[Any, Any, Any]:
        """Queries, keys and values with tokens, heads and coordinates as last axes, before rotation."""
        latent = own.latent
        if latent is None:
            return self.read(name, "query", u), self.read(name, "key", source), self.read(name, "value", source)
        queries = u if latent.query_rank is None else self.latent(name, "query", latent.query_norm, u)
        keys = self.latent(name, "key", latent.key_norm, source)
        plain, values = self.read(name, "key", keys), self.read(name, "value", keys)
        if own.rotated:
            rotated = self.read(name, "key_rotated", source)
            plain = self.xp.concatenate([self.xp.concatenate([rotated] * own.heads, -2), plain], -1)
        return self.read(name, "query", queries), plain, values

    def qk_norm(self, name: str, own: GroupedAttention, x: Any) -> Any:
        if own.qk_norm is None:
            return x
        flat, shape = replace(own.qk_norm.norm, gain=False, bias=False), x.shape
        if own.qk_norm.is_joint:
            x = self.normalise("", flat, x.reshape(*shape[:-2], -1)).reshape(shape)
        else:
            x = self.normalise("", flat, x)
        return x * self.weights.get(f"{name}_gain", 1.0) + self.weights.get(f"{name}_shift", 0.0)

    def attend(self, name: str, own: GroupedAttention, u: Any, source: Any) -> Any:
        queries, keys, values = self.heads(name, own, u, source)
        queries = self.turn(own, self.qk_norm(f"{name}.query", own, queries))
        keys = self.turn(own, self.qk_norm(f"{name}.key", own, keys))
        share = own.heads // own.groups
        order = [head // share for head in range(own.heads)]
        keys, values = keys[..., order, :], values[..., order, :]
        scores = own.scale * self.xp.einsum("...tha,...sha->...hts", queries, keys)
        if own.softcap is not None:
            scores = own.softcap * self.xp.tanh(scores / own.softcap)
        if own.alibi:
            slopes = 0.5 ** np.arange(1, own.heads + 1)
            scores = scores + self.xp.asarray(slopes[:, None, None] * np.arange(source.shape[-2]))
        i, j = np.arange(u.shape[-2])[:, None], np.arange(source.shape[-2])[None, :]
        visible = np.ones((len(i), j.shape[1]), bool)
        if name == "attention":
            visible &= (j <= i) | (not own.causal)
            visible &= (i - j < own.window) if own.window is not None else True
        exponentials = self.xp.exp(scores) * self.xp.asarray(visible.astype(float))
        total = exponentials.sum(-1)[..., None]
        if own.sinks:
            total = total + self.xp.exp(self.weights[f"{name}.sinks"])[:, None, None]
        mixed = self.xp.einsum("...hts,...shv->...thv", exponentials / total, values)
        return self.xp.einsum("hdv,...thv->...td", self.weights[f"{name}.output"], mixed) + self.bias(
            f"{name}.output_bias"
        )

    def activate(self, activation: str, x: Any) -> Any:
        xp = self.xp
        if activation == "relu":
            return x * (x.real > 0)
        if activation == "relu2":
            return x * x * (x.real > 0)
        if activation == "gelu":
            return x * (1 + self.erf(x / np.sqrt(2))) / 2
        if activation == "gelu_tanh":
            return x * (1 + xp.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))) / 2
        if activation == "tanh":
            return xp.tanh(x)
        sigma = 1 / (1 + xp.exp(-x * (1.702 if activation in ("quick_gelu", "swiglu_oai") else 1.0)))
        return sigma if activation == "sigmoid" else x * sigma

    def units(self, name: str, mlp: MLP, u: Any) -> Any:
        up = u @ self.weights[f"{name}.up"].T + self.bias(f"{name}.up_bias")
        gate = u @ self.weights[f"{name}.gate"].T + self.bias(f"{name}.gate_bias") if mlp.gated else up
        if mlp.limit is not None:
            gate = gate + (mlp.limit - gate) * (gate.real > mlp.limit)
            up = up + (mlp.limit - up) * (up.real > mlp.limit) - (mlp.limit + up) * (up.real < -mlp.limit)
        hidden = self.activate(mlp.activation, gate)
        if mlp.gated:
            hidden = hidden * (up + 1 if mlp.activation == "swiglu_oai" else up)
        return hidden @ self.weights[f"{name}.down"].T + self.bias(f"{name}.down_bias")

    def experts(self, name: str, experts: Experts, u: Any) -> Any:
        logits = u @ self.weights[f"{name}.router"].T + self.bias(f"{name}.router_bias")
        chance = self.xp.exp(logits) if experts.router == "softmax" else 1 / (1 + self.xp.exp(-logits))
        if experts.router == "softmax":
            chance = chance / chance.sum(-1)[..., None]
        kept = chance * self.chosen(experts, logits.real)
        if experts.normalised:
            kept = kept / kept.sum(-1)[..., None]
        kept = kept * experts.factor
        total = sum(
            kept[..., index, None] * self.units(f"{name}.{index}", experts.expert, u) for index in range(experts.count)
        )
        return total if experts.shared is None else total + self.units(f"{name}.shared", experts.shared, u)

    def chosen(self, experts: Experts, scores: Any) -> Any:
        """Which experts run: those of the best groups, and of them the best."""
        if experts.expert_groups > 1:
            size = experts.count // experts.expert_groups
            chance = 1 / (1 + self.xp.exp(-scores)) if experts.router == "sigmoid" else self.xp.exp(scores)
            shares = chance.reshape(*scores.shape[:-1], experts.expert_groups, size)
            best = (shares * (_places(shares) < (2 if experts.router == "sigmoid" else 1))).sum(-1)
            kept = _places(best) < experts.active_groups
            scores = scores - 1e9 * (1 - 1.0 * kept[..., [index // size for index in range(experts.count)]])
        return _places(scores) < experts.active

    def __call__(self, block: TransformerBlock, x: Any, other: Any) -> Any:
        """The stream after the block; ``other`` is what cross-attention reads."""
        total = x
        for sublayer in sublayers(block):
            name, norms, part = sublayer.place, sublayer.norms, sublayer.map
            current = x if block.parallel else total
            if block.shared_norm and name == "mlp":
                u = self.normalise("attention.input", block.attention_norms.input, current)
            else:
                u = self.normalise(f"{name}.input", norms.input, current)
            if isinstance(part, GroupedAttention):
                change = self.attend(name, part, u, other if sublayer.is_cross else u)
            elif isinstance(part, Experts):
                change = self.experts(name, part, u)
            else:
                change = self.units(name, part, u)
            total = total + self.normalise(f"{name}.output", norms.output, change)
            total = self.normalise(f"{name}.stream", norms.stream, total)
        return total


def _places(scores: Any) -> Any:
    """The number of larger entries, along the last axis."""
    return (scores[..., None, :] > scores[..., :, None]).sum(-1)


@dataclass(frozen=True)
class Sample:
    """Random weights and inputs of a block, drawn with a seed; scales of the inputs differ so that eps is seen."""

    block: TransformerBlock
    width: int
    seed: int

    def draw(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        rng = np.random.default_rng(self.seed)
        size = self.block.parameters(self.width, self.width)
        tokens = max(3, *(own.rotated + 2 for own in (self.block.attention, self.block.cross) if own is not None), 0)
        piecewise = self.block.mlp is not None and not _is_smooth(self.block.mlp)
        rows = min(MAX_ROWS, (12 if piecewise else 4) * size + 100)
        count = -(-rows // (tokens * self.width))
        scales = np.exp(rng.uniform(-1.0, 1.2, (count, tokens, 1)))
        x = rng.normal(size=(count, tokens, self.width)) * scales
        return rng.normal(size=size) * np.exp(rng.uniform(-0.5, 0.5, size)), x, rng.normal(size=x.shape) * scales

    def named(self, vector: Any) -> dict[str, Any]:
        shapes = block_shapes(self.block, self.width)
        ends = np.cumsum([0, *(int(np.prod(shape)) for shape in shapes.values())])
        return {
            name: vector[start:end].reshape(shape)
            for (name, shape), start, end in zip(shapes.items(), ends, ends[1:], strict=False)
        }

    def derivative(self) -> np.ndarray:
        """Columns by complex steps."""
        vector, x, other = self.draw()
        columns = []
        for index in range(len(vector)):
            moved = vector.astype(complex)
            moved[index] += 1j * STEP
            function = TrueFunction(np, erf, self.named(moved))
            columns.append(function(self.block, x, other).imag.ravel() / STEP)
        return np.stack(columns, axis=1)


def _is_smooth(mlp: MLP | Experts) -> bool:
    return isinstance(mlp, MLP) and not mlp.activation.startswith("relu") and mlp.limit is None


@dataclass(frozen=True)
class FloatRank:
    """A numerical rank and the quotient of the singular values on its two sides: small where the rank is clear."""

    rank: int
    gap: float


def rank_of(derivative: np.ndarray) -> FloatRank:
    """Columns are scaled alike, and dropped where they are zero up to rounding (invisible biases)."""
    sizes = np.linalg.norm(derivative, axis=0)
    seen = sizes > 1e-12 * sizes.max(initial=0.0)
    if not seen.any():
        return FloatRank(0, 0.0)
    derivative = derivative[:, seen] / sizes[seen]
    values = np.linalg.svd(np.linalg.qr(derivative, mode="r"), compute_uv=False)
    values = np.append(values / values[0], 1e-17)
    quotients = np.maximum(values[1:], 1e-16) / np.maximum(values[:-1], 1e-16)
    # The gap is looked for where rounding can be.
    places = [k for k in range(len(quotients)) if values[k + 1] < 1e-9 and values[k] > 1e-14]
    best = min(places, key=lambda k: quotients[k], default=len(quotients) - 1)
    return FloatRank(best + 1, float(quotients[best]))


def float_redundancy(block: TransformerBlock, width: int, seeds: tuple[int, ...] = (0, 1)) -> int:
    """parameters − the largest rank found at the points of these seeds, by complex steps."""
    ranks = [rank_of(Sample(block, width, seed).derivative()).rank for seed in seeds]
    return block.parameters(width, width) - max(ranks)
