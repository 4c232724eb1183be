"""Random kinds of blocks over all options: sizes, groups, rotations, norms, biases, softcap, sinks, MLPs, placement."""

from __future__ import annotations

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


class KindSampler:
    """Draws the options of a block one by one from a seeded generator.

    >>> KindSampler(3).kind() == KindSampler(3).kind()
    True
    """

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.seed = seed
        self.width = int(self.rng.integers(4, 9))

    def flip(self, probability: float = 0.5) -> bool:
        return bool(self.rng.random() < probability)

    def between(self, low: int, high: int) -> int:
        return int(self.rng.integers(low, high + 1))

    def eps(self) -> float:
        return 0.0 if self.flip(0.2) else 1e-5

    def norm(self, kind: str | None = None) -> Norm:
        """An RMS norm or a LayerNorm, mostly with gain, with or without bias."""
        if kind == "rms" or (kind is None and self.flip()):
            return Norm(kind="rms", eps=self.eps(), gain=self.flip(0.9))
        return Norm(kind="layer", eps=self.eps(), gain=self.flip(0.9), bias=self.flip(0.7))

    def kind(self) -> Kind:
        style = self.rng.choice(["pre", "pre", "parallel", "post", "sandwich", "latent", "cross"])
        name = f"random {self.seed}, {style}"
        if style == "latent":
            block = self._pre(self.latent_attention(), self.norm("rms"))
        elif style == "parallel":
            block = self._parallel()
        elif style == "post":
            block = TransformerBlock(
                attention=self.attention(),
                mlp=self.mlp(),
                attention_norms=Norms(stream=self.norm()),
                mlp_norms=Norms(stream=self.norm()),
            )
        elif style == "sandwich":
            norms = [Norms(input=self.norm() if self.flip(0.7) else None, output=self.norm("rms")) for _ in range(2)]
            block = TransformerBlock(
                attention=self.attention(), mlp=self.mlp(), attention_norms=norms[0], mlp_norms=norms[1]
            )
        elif style == "cross":
            block = TransformerBlock(
                attention=self.attention(),
                cross=self.attention(turning=False),
                mlp=self.mlp(),
                attention_norms=Norms(input=self.norm()),
                cross_norms=Norms(input=self.norm()),
                mlp_norms=Norms(input=self.norm()),
            )
        else:
            block = self._pre(self.attention() if self.flip(0.9) else None, self.norm() if self.flip(0.9) else None)
        table = style in ("pre", "parallel") and block.attention is not None and self.flip(0.15)
        return Kind(name=name, block=block, width=self._wide(block), buckets=self.between(2, 5) if table else 0)

    def _wide(self, block: TransformerBlock) -> int:
        """A norm over all heads has a larger fiber at tiny width (docs/theorems/models.md, section 7)."""
        over_all = any(
            own is not None and own.qk_norm is not None and own.qk_norm.scope == "all_heads"
            for own in (block.attention, block.cross)
        )
        return 10 if over_all else self.width

    def _pre(self, own: GroupedAttention | None, norm: Norm | None) -> TransformerBlock:
        mlp = self.mlp() if own is None or self.flip(0.8) else None
        return TransformerBlock(
            attention=own,
            mlp=mlp,
            attention_norms=Norms(input=norm if own is not None else None),
            mlp_norms=Norms(input=self.norm() if mlp is not None and self.flip(0.9) else None),
        )

    def _parallel(self) -> TransformerBlock:
        shared = self.flip()
        return TransformerBlock(
            attention=self.attention(),
            mlp=self.mlp(),
            attention_norms=Norms(input=self.norm()),
            mlp_norms=Norms() if shared else Norms(input=self.norm()),
            parallel=True,
            shared_norm=shared,
        )

    def rotary(self, head_dim: int) -> Rotary | None:
        """Some or all coordinates turned, now and then by equal frequencies or by 0."""
        pairs = self.between(0, head_dim // 2)
        if not pairs:
            return None
        frequencies = [1.0 / (1 + pair) for pair in range(pairs)]
        if self.flip(0.1):
            frequencies[-1] = 0.0
        if pairs > 1 and self.flip(0.1):
            frequencies[1] = frequencies[0]
        return Rotary(layout="half", dims=2 * pairs, frequencies=tuple(frequencies))

    def attention(self, turning: bool = True) -> GroupedAttention:
        groups = self.between(1, 2)
        heads = groups * self.between(1, 2)
        wide = self.flip(0.08)
        head_dim = self.between(self.width - 1, self.width + 2) if wide else self.between(1, 4)
        rotary = self.rotary(head_dim) if turning and self.flip(0.6) and not wide else None
        qk_norm = None
        if (
            self.flip(0.25)
            and 3 <= head_dim < self.width
            and (rotary is None or len(set(rotary.frequencies)) == rotary.dims // 2)
        ):
            scope = "per_head" if self.flip(0.7) or heads * head_dim >= 10 else "all_heads"
            norm = Norm(kind="rms", eps=self.eps(), gain=self.flip(0.85))
            if scope == "per_head" and self.flip(0.3):
                scope = "each_head"
            qk_norm = QKNorm(scope=scope, norm=norm)  # type: ignore[arg-type]
        return GroupedAttention(
            heads=heads,
            groups=groups,
            head_dim=head_dim,
            value_dim=self.between(self.width - 1, self.width + 2) if self.flip(0.08) else self.between(1, 3),
            scale=0.5,
            causal=True,
            rotary=rotary,
            query_bias=self.flip(),
            key_bias=self.flip(),
            value_bias=self.flip(),
            output_bias=self.flip(),
            qk_norm=qk_norm,
            softcap=30.0 if self.flip(0.2) else None,
            sinks=self.flip(0.2),
        )

    def latent_attention(self) -> GroupedAttention:
        self.width = max(5, self.width)
        key_rank, query_rank = self.between(2, 4), self.between(2, 5)
        direct = self.flip(0.3)
        rotary = Rotary(layout="half", dims=2, frequencies=(1.0,)) if self.flip(0.8) else None
        heads = self.between(1, 3)
        norms = [self.norm("rms") if self.flip(0.85) else None for _ in range(2)]
        latent = Latent(
            query_rank=None if direct else query_rank,
            key_rank=key_rank,
            query_norm=None if direct else norms[0],
            key_norm=norms[1],
            bias=norms[1] is not None and (direct or norms[0] is not None) and self.flip(0.4),
        )
        return GroupedAttention(
            heads=heads,
            groups=heads,
            head_dim=self.between(1, 2) + (2 if rotary else 0),
            value_dim=self.between(1, 2),
            scale=0.5,
            causal=True,
            rotary=rotary,
            output_bias=self.flip(),
            latent=latent,
        )

    def mlp(self) -> MLP | Experts:
        if self.flip(0.2):
            count = self.between(2, 4)
            return Experts(
                expert=self._mlp(2),
                count=count,
                active=self.between(2, count),
                router="softmax" if self.flip() else "sigmoid",
                router_bias=self.flip(0.3),
                shared=self._mlp(2) if self.flip(0.3) else None,
                normalised=self.flip(),
                factor=2.5 if self.flip() else 1.0,
            )
        return self._mlp(self.between(1, 6))

    def _mlp(self, width: int) -> MLP:
        gated = self.flip()
        limited = gated and self.flip(0.15)
        activation: Activation = ACTIVATIONS[int(self.rng.integers(len(ACTIVATIONS)))]
        return MLP(
            width=width,
            activation="swiglu_oai" if limited else activation,
            gated=gated,
            up_bias=self.flip(),
            down_bias=self.flip(),
            limit=7.0 if limited and self.flip() else None,
        )
