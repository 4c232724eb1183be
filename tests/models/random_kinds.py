"""Random kinds of blocks at the boundary of Theorem 1': all options, and those that it excludes now and then.

Widths from 1, heads of one coordinate and wider than the stream, windows, frequencies that are equal, zero, rationally
dependent or beyond π, cross-attention with and without norms, biases everywhere, norms in every place.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from attngeom.models.specification import (
    MLP,
    Activation,
    Experts,
    GroupedAttention,
    Latent,
    Norm,
    Norms,
    QKNorm,
    Rotary,
    TransformerBlock,
)
from tests.models.kinds import Kind

ACTIVATIONS: tuple[Activation, ...] = ("gelu", "gelu_tanh", "quick_gelu", "silu", "relu", "tanh", "sigmoid")
FREQUENCIES = (1.0, 0.5, 0.3, 1.7, 2.9)
ODD_FREQUENCIES = (0.0, 1.0, 0.5, math.pi, 2 * math.pi - 1, 2 * math.pi + 1, 4.0)
STYLES = ("pre", "pre", "parallel", "post", "sandwich", "latent", "cross", "no norm")
EPS = 0.25
"""Large: directions that only eps shows are then far from rounding in floats."""


class KindSampler:
    """Draws the options of a block one by one from a seeded generator; ``rare`` is how often one is excluded.

    >>> KindSampler(3).kind() == KindSampler(3).kind()
    True
    """

    def __init__(self, seed: int, rare: float = 0.06) -> None:
        self.rng = np.random.default_rng(seed)
        self.seed, self.rare = seed, rare
        self.width = self.between(1, 3) if self.flip(2 * rare) else self.between(3, 6)
        self.biases = 0.0 if self.flip(0.25) else 0.5

    def flip(self, probability: float = 0.5) -> bool:
        return bool(self.rng.random() < probability)

    def seldom(self) -> bool:
        return self.flip(self.rare)

    def bias(self) -> bool:
        return self.flip(self.biases)

    def between(self, low: int, high: int) -> int:
        return int(self.rng.integers(low, high + 1))

    def norm(self, kind: str | None = None, exact: float = 0.2) -> Norm:
        """An RMS norm or a LayerNorm, mostly with gain, with or without bias; eps = 0 now and then."""
        eps = 0.0 if self.flip(exact) else EPS
        if kind == "rms" or (kind is None and self.flip()):
            return Norm(kind="rms", eps=eps, gain=self.flip(0.9))
        return Norm(kind="layer", eps=eps, gain=self.flip(0.9), bias=self.bias())

    def front(self) -> Norm | None:
        return None if self.seldom() or (not self.biases and self.flip(0.3)) else self.norm()

    def kind(self) -> Kind:
        style = STYLES[int(self.rng.integers(len(STYLES)))]
        return Kind(name=f"random {self.seed}, {style}", block=self._block(style), width=self.width)

    def _block(self, style: str) -> TransformerBlock:
        if style == "latent":
            return self._latent_block(self.latent_attention(), self.norm(None if self.seldom() else "rms"))
        if style == "parallel":
            shared = self.flip()
            norms = Norms() if shared else Norms(input=self.norm())
            return TransformerBlock(
                attention=self.attention(), mlp=self.mlp(), attention_norms=Norms(input=self.norm()), mlp_norms=norms,
                parallel=True, shared_norm=shared,
            )  # fmt: skip
        if style == "post":
            return TransformerBlock(
                attention=self.attention(), mlp=self.mlp(), attention_norms=Norms(stream=self.norm()),
                mlp_norms=Norms(stream=self.norm()),
            )  # fmt: skip
        if style == "sandwich":
            if not self.seldom():
                self.biases = 0.0
            norms = [Norms(input=self.front(), output=self.norm("rms", self.rare)) for _ in range(2)]
            own = self.attention() if self.flip(0.8) else None
            mlp = None if own is not None and self.flip(0.4) else self.mlp(experts=self.rare)
            return TransformerBlock(
                attention=own, mlp=mlp, attention_norms=norms[0] if own else Norms(),
                mlp_norms=norms[1] if mlp else Norms(),
            )  # fmt: skip
        if style == "cross":
            own = self.attention() if self.flip(0.6) else None
            mlp = self.mlp() if own is None or self.flip(0.3) else None
            return TransformerBlock(
                attention=own, cross=self.attention(cross=True), mlp=mlp, cross_norms=Norms(input=self.front()),
                attention_norms=Norms(input=self.front() if own else None),
                mlp_norms=Norms(input=self.front() if mlp else None),
            )  # fmt: skip
        own = self.attention() if self.flip(0.9) else None
        return self._pre(own, None if style == "no norm" else self.front())

    def _pre(self, own: GroupedAttention | None, norm: Norm | None) -> TransformerBlock:
        mlp = self.mlp() if own is None or self.flip(0.6) else None
        absent = Norms(input=self.norm("rms")) if self.flip(self.rare / 4) else Norms()
        return TransformerBlock(
            attention=own,
            mlp=mlp,
            attention_norms=absent if own is None else Norms(input=norm),
            mlp_norms=absent if mlp is None else Norms(input=norm if norm is None else self.front()),
        )

    def _latent_block(self, own: GroupedAttention, norm: Norm) -> TransformerBlock:
        """Latent attention in front of an MLP, beside one, or with output norms."""
        if self.flip(0.6):
            return self._pre(own, norm)
        if self.flip():
            return TransformerBlock(
                attention=own, mlp=self.mlp(), attention_norms=Norms(input=norm), parallel=True, shared_norm=True
            )
        own = replace(own, output_bias=self.seldom())
        return TransformerBlock(
            attention=own, mlp=None, attention_norms=Norms(input=norm, output=self.norm("rms", self.rare))
        )

    def rotary(self, head_dim: int) -> Rotary | None:
        """Some or all coordinates rotated, now and then by equal, zero or large frequencies."""
        pairs = self.between(0, min(2, head_dim // 2))
        if not pairs:
            return None
        choices = ODD_FREQUENCIES if self.flip(2 * self.rare) else FREQUENCIES
        found = [float(f) for f in self.rng.permutation(choices)[:pairs]]
        if pairs > 1 and self.flip(2 * self.rare):
            found[1] = found[0]
        return Rotary(layout="half", dims=2 * pairs, frequencies=tuple(found))

    def size(self, low: int = 1) -> int:
        """A size that fits into the stream, or one at or above its width."""
        if self.flip(2 * self.rare):
            return self.between(self.width, self.width + 2)
        return self.between(low, max(low, min(4, self.width - 1)))

    def qk_norm(self, heads: int, head_dim: int, rotary: Rotary | None) -> QKNorm | None:
        if not self.flip(0.3):
            return None
        if self.seldom():
            return QKNorm(scope="each_head", norm=Norm(kind="layer", eps=EPS))
        norm = self.norm("rms", self.rare)
        joint = heads * head_dim < self.width or self.seldom()
        scope: Any = ("per_head", "each_head", "all_heads")[self.between(0, 2 if joint else 1)]
        return QKNorm(scope=scope, norm=norm)

    def attention(self, cross: bool = False) -> GroupedAttention:
        groups = self.between(1, 2)
        heads = self.between(3, 6) * groups if self.seldom() else groups * self.between(1, 2)
        head_dim = self.size()
        turning = self.flip(0.6) if not cross else self.seldom()
        rotary = self.rotary(head_dim) if turning else None
        rotated = 0 if rotary is None else rotary.dims
        window = None
        if self.flip(0.25) if not cross else self.seldom():
            window = self.between(1, rotated + 2) if self.flip(0.3) else self.between(rotated + 2, rotated + 4)
        return GroupedAttention(
            heads=heads,
            groups=groups,
            head_dim=head_dim,
            value_dim=self.size(),
            scale=0.5,
            causal=not cross and self.flip(0.85),
            rotary=rotary,
            alibi=not cross and rotary is None and self.seldom(),
            query_bias=self.bias(),
            key_bias=self.bias(),
            value_bias=self.bias(),
            output_bias=self.bias(),
            qk_norm=self.qk_norm(heads, head_dim, rotary),
            softcap=2.0 if self.flip(0.15) else None,
            sinks=self.flip(0.2),
            window=window,
        )

    def latent_attention(self) -> GroupedAttention:
        self.width = max(3, self.width)
        ranks = [self.between(1, self.width + 1) if self.seldom() else self.between(2, self.width - 1) for _ in "qk"]
        norms = [None if self.seldom() else self.norm("rms", self.rare) for _ in "qk"]
        direct = self.flip(0.3)
        rotary = None
        if self.flip(0.7):
            rotary = Rotary(layout="half", dims=2, frequencies=(self.rotary(2) or Rotary(
                layout="half", dims=2, frequencies=(1.0,))).frequencies)  # fmt: skip
        heads = self.between(1, 2)
        normed = norms[1] is not None and (direct or norms[0] is not None)
        latent = Latent(
            query_rank=None if direct else ranks[0],
            key_rank=ranks[1],
            query_norm=None if direct else norms[0],
            key_norm=norms[1],
            bias=normed and self.bias(),
        )
        plain = self.size() if self.seldom() else self.between(1, max(1, min(2, *ranks)))
        return GroupedAttention(
            heads=heads,
            groups=heads,
            head_dim=plain + (2 if rotary else 0),
            value_dim=self.size() if self.seldom() else self.between(1, max(1, min(2, ranks[1]))),
            scale=0.5,
            causal=True,
            rotary=rotary,
            output_bias=self.bias(),
            softcap=2.0 if self.seldom() else None,
            sinks=self.seldom(),
            window=self.between(1, 5) if self.flip(0.15) else None,
            latent=latent,
        )

    def mlp(self, experts: float = 0.25) -> MLP | Experts:
        if not self.flip(experts):
            return self._units(self.between(1, 4))
        groups = self.between(2, 3) if self.flip(0.25) else 1
        count = groups * self.between(1, 2) if groups > 1 else self.between(2, 5)
        kept = self.between(1, groups)
        most = kept * count // groups
        return Experts(
            expert=self._units(self.between(1, 2)),
            count=count,
            active=1 if self.seldom() else min(most, self.between(2, count)),
            router="softmax" if self.flip() else "sigmoid",
            router_bias=self.bias(),
            shared=self._units(1) if self.flip(0.3) else None,
            expert_groups=groups,
            active_groups=kept,
            normalised=self.flip(),
            factor=2.5 if self.flip(0.3) else 1.0,
        )

    def _units(self, width: int) -> MLP:
        gated = self.flip()
        clamped = self.flip(0.15) if gated else self.flip(self.rare / 4)
        oai = self.flip(0.15) if gated else self.flip(self.rare / 4)
        activation: Activation = ACTIVATIONS[int(self.rng.integers(len(ACTIVATIONS)))]
        if activation == "relu" and self.seed % 2:
            activation = "relu2"
        return MLP(
            width=width,
            activation="swiglu_oai" if oai else activation,
            gated=gated,
            up_bias=self.bias(),
            down_bias=self.bias(),
            limit=1.0 if clamped else None,
        )
