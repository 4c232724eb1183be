"""What a transformer computes, without its weights: frozen descriptions of norms, attention, MLPs, blocks and stacks.

A `TransformerSpec` fixes every constant of the function that is not a weight (sizes, kinds, eps, frequencies, scales),
so two models with equal specifications differ by their weights only. Layers are stored as a few kinds of
`TransformerBlock` and the order in which a `Stack` uses them. Every field is checked and bounded when the object is
made.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from attngeom.models.checked import MAX_SIZES, Checked, require

Layout = Literal["half", "interleaved"]
NormKind = Literal["rms", "layer"]
Scope = Literal["per_head", "all_heads"]
Activation = Literal["gelu", "gelu_tanh", "quick_gelu", "silu", "relu", "tanh", "sigmoid", "swiglu_oai"]
Router = Literal["softmax", "sigmoid"]

MAX_FREQUENCIES = 2**15


@dataclass(frozen=True, kw_only=True)
class Norm(Checked):
    """u = gain ∘ n(x) + bias with n(x) = x / √(mean x² + eps) (rms), or the same of x − mean x (layer).

    ``offset`` is added to the stored gain (Gemma stores gain − 1).
    """

    kind: NormKind
    eps: float
    gain: bool = True
    bias: bool = False
    offset: float = 0.0

    def check(self) -> None:
        require(self.eps >= 0, f"norm eps {self.eps} given; eps >= 0 is required")
        require(self.kind == "layer" or not self.bias, "an RMS norm with a bias given; no family has one, drop it")

    def parameters(self, width: int) -> int:
        return width * (self.gain + self.bias)


@dataclass(frozen=True, kw_only=True)
class Rotary(Checked):
    """Rotation of ``dims`` coordinates of queries and keys: pair f turns by position · frequencies[f].

    ``half`` pairs coordinate f with f + dims/2, ``interleaved`` 2f with 2f + 1. ``amplitude`` multiplies cosine and
    sine (YaRN). ``frequencies`` are those of short contexts: where they depend on the length of the context (dynamic,
    longrope), ``lengthening`` holds the numbers that fix those of longer ones, the last length of short ones first.
    """

    layout: Layout
    dims: int
    frequencies: tuple[float, ...]
    amplitude: float = 1.0
    lengthening: tuple[float, ...] = ()

    def check(self) -> None:
        require(self.dims > 0 and self.dims % 2 == 0, f"{self.dims} rotated dimensions given; an even number is needed")
        count = len(self.frequencies)
        require(count <= MAX_FREQUENCIES, f"{count} rotary frequencies given; at most {MAX_FREQUENCIES} are read")
        require(2 * count == self.dims, f"{count} frequencies for {self.dims} rotated dimensions given; half is needed")
        good = all(isinstance(f, int | float) and math.isfinite(f) and f >= 0 for f in self.frequencies)
        require(good, "a rotary frequency that is negative or not finite given; finite ones >= 0 are required")
        require(self.amplitude > 0, f"rotary amplitude {self.amplitude} given; a positive one is required")


@dataclass(frozen=True, kw_only=True)
class Latent(Checked):
    """Multi-head latent attention: keys and values from a normalised latent of ``key_rank``, queries of ``query_rank``.

    ``query_rank`` None: queries are read from the residual stream directly. The rotated part of the key is one vector
    for all heads, read from the stream. Norms are over the latents; None: the latent is not normalised. ``bias``: of
    the maps from the stream to the latents and to the rotated key.
    """

    query_rank: int | None
    key_rank: int
    query_norm: Norm | None
    key_norm: Norm | None
    bias: bool = False

    def check(self) -> None:
        require(self.key_rank > 0, "key_rank 0 given; a positive rank is required")
        require(self.query_rank is None or self.query_rank > 0, "query_rank 0 given; a positive rank or null is needed")
        require(self.query_rank is not None or self.query_norm is None, "a query_norm without query_rank given")
        normed = self.key_norm is not None and (self.query_rank is None or self.query_norm is not None)
        require(normed or not self.bias, "a bias of a latent without norm given; a norm or no bias is required")


@dataclass(frozen=True, kw_only=True)
class QKNorm(Checked):
    """A norm of queries and of keys: of each head with gains shared by the heads, or over all heads at once."""

    scope: Scope
    norm: Norm


@dataclass(frozen=True, kw_only=True)
class GroupedAttention(Checked):
    """Softmax attention: ``heads`` query heads in ``groups`` groups that share keys and values.

    ``head_dim`` is the width of a query and key (for latent attention: unrotated and rotated part together),
    ``scale`` multiplies the scores, ``softcap`` c replaces a score s by c·tanh(s/c), ``sinks`` adds one learned logit
    per head to the denominator, ``alibi`` a fixed slope per head, times the scale if it is "scaled", ``window`` limits
    the distance (None: no limit).
    """

    heads: int
    groups: int
    head_dim: int
    value_dim: int
    scale: float
    causal: bool
    rotary: Rotary | None = None
    alibi: Literal[False, True, "scaled"] = False
    query_bias: bool = False
    key_bias: bool = False
    value_bias: bool = False
    output_bias: bool = False
    qk_norm: QKNorm | None = None
    softcap: float | None = None
    sinks: bool = False
    window: int | None = None
    latent: Latent | None = None

    def check(self) -> None:
        sizes = (self.heads, self.groups, self.head_dim, self.value_dim)
        require(min(sizes) > 0, f"heads, groups, head_dim, value_dim {sizes} given; positive numbers are required")
        even = self.heads % self.groups == 0
        require(even, f"{self.heads} heads in {self.groups} groups given; groups must divide heads")
        require(self.rotated <= self.head_dim, f"{self.rotated} rotated of {self.head_dim} head dimensions given")
        require(self.scale != 0, "attention scale 0 given; a scale that is not zero is required")
        require(self.softcap is None or self.softcap > 0, f"softcap {self.softcap} given; a positive one is required")
        if self.latent is not None:
            biases = self.query_bias or self.key_bias or self.value_bias
            plain = self.groups == self.heads and self.qk_norm is None and not biases
            require(plain, "latent attention with grouped heads, a QK-norm or biases of q, k, v given; not known")

    @property
    def rotated(self) -> int:
        """r, the number of rotated coordinates of a head."""
        return 0 if self.rotary is None else self.rotary.dims

    @property
    def unrotated(self) -> int:
        """a₀ = head_dim − r."""
        return self.head_dim - self.rotated

    def parameters(self, width: int, source: int) -> int:
        """Number of weights; ``source`` is the width of the stream that keys and values read."""
        heads, groups, a, v = self.heads, self.groups, self.head_dim, self.value_dim
        output = heads * v * width + width * self.output_bias
        if self.latent is not None:
            r_q, r_k = self.latent.query_rank, self.latent.key_rank
            bias = self.latent.bias
            query = heads * a * (width if r_q is None else r_q) + (0 if r_q is None else r_q * (width + bias))
            norms = sum(
                norm.parameters(rank or 0)
                for norm, rank in ((self.latent.query_norm, r_q), (self.latent.key_norm, r_k))
                if norm is not None
            )
            return query + (r_k + self.rotated) * (source + bias) + heads * (self.unrotated + v) * r_k + norms + output
        query = heads * a * (width + self.query_bias)
        key_value = groups * a * (source + self.key_bias) + groups * v * (source + self.value_bias)
        gains = 0
        if self.qk_norm is not None:
            shared = self.qk_norm.scope == "per_head"
            gains = self.qk_norm.norm.parameters(2 * a if shared else (heads + groups) * a)
        return query + key_value + gains + heads * self.sinks + output


@dataclass(frozen=True, kw_only=True)
class MLP(Checked):
    """down(φ(gate x) ∘ up x) if ``gated``, else down(φ(up x)), with ``width`` hidden units.

    ``limit`` clamps gate and up as gpt_oss does; ``up_bias`` covers the gate too.
    """

    width: int
    activation: Activation
    gated: bool
    up_bias: bool = False
    down_bias: bool = False
    limit: float | None = None

    def parameters(self, width: int) -> int:
        rows = self.width * (2 if self.gated else 1)
        return rows * (width + self.up_bias) + self.width * width + width * self.down_bias


@dataclass(frozen=True, kw_only=True)
class Experts(Checked):
    """Σ over the ``active`` experts with the largest routed scores, plus a ``shared`` MLP that always runs.

    ``correction`` is a stored bias that takes part in the choice only (DeepSeek-V3); ``expert_groups`` of which
    ``active_groups`` are kept before the choice; ``normalised`` divides the chosen scores by their sum; ``factor``
    multiplies them.
    """

    expert: MLP
    count: int
    active: int
    router: Router
    router_bias: bool = False
    correction: bool = False
    shared: MLP | None = None
    expert_groups: int = 1
    active_groups: int = 1
    normalised: bool = True
    factor: float = 1.0

    def check(self) -> None:
        require(0 < self.active <= self.count, f"{self.active} active of {self.count} experts given; not possible")
        split = self.expert_groups > 0 and self.count % self.expert_groups == 0
        require(split, f"{self.count} experts in {self.expert_groups} groups given; equal groups are required")
        kept = self.active_groups * self.count // self.expert_groups
        require(self.active <= kept, f"{self.active} active of {kept} experts in the kept groups given; not possible")

    @property
    def sums_to_constant(self) -> bool:
        """Whether the weights of the chosen experts have a constant sum."""
        return self.normalised or (self.router == "softmax" and self.active == self.count)

    def parameters(self, width: int) -> int:
        """Trained weights; the ``correction`` is stored but not trained by gradients and not counted."""
        shared = 0 if self.shared is None else self.shared.parameters(width)
        return self.count * (self.expert.parameters(width) + width + self.router_bias) + shared


@dataclass(frozen=True, kw_only=True)
class Norms(Checked):
    """Where a sublayer f is normalised: x + output(f(input(x))), then stream(·) of the sum (post-LN as in BERT)."""

    input: Norm | None = None
    output: Norm | None = None
    stream: Norm | None = None

    def parameters(self, width: int) -> int:
        return sum(norm.parameters(width) for norm in (self.input, self.output, self.stream) if norm is not None)


@dataclass(frozen=True, kw_only=True)
class TransformerBlock(Checked):
    """Attention, cross-attention (decoders) and MLP, each added to the residual stream.

    ``parallel``: attention and MLP read the same x and both are added to it; ``shared_norm``: they read the same
    normalised u, that of ``attention_norms.input``, and ``mlp_norms.input`` is None.
    """

    attention: GroupedAttention | None
    mlp: MLP | Experts | None
    attention_norms: Norms = Norms()
    mlp_norms: Norms = Norms()
    cross: GroupedAttention | None = None
    cross_norms: Norms = Norms()
    parallel: bool = False
    shared_norm: bool = False

    def check(self) -> None:
        require(self.attention is not None or self.mlp is not None, "a block without attention and MLP given")
        require(self.parallel or not self.shared_norm, "a shared norm in a sequential block given; parallel is needed")
        require(not self.shared_norm or self.mlp_norms.input is None, "a shared norm and an MLP norm given; drop one")
        if self.parallel:
            posts = (self.attention_norms.stream, self.mlp_norms.stream, self.cross)
            require(posts == (None, None, None), "a parallel block with post-norms or cross-attention given; not known")

    @property
    def norms(self) -> tuple[Norms, ...]:
        return self.attention_norms, self.cross_norms, self.mlp_norms

    def parameters(self, width: int, source: int) -> int:
        """Number of weights; ``source`` is the width of the stream that cross-attention reads."""
        norms = sum(norms.parameters(width) for norms in self.norms)
        own = 0 if self.attention is None else self.attention.parameters(width, width)
        cross = 0 if self.cross is None else self.cross.parameters(width, source)
        return norms + own + cross + (0 if self.mlp is None else self.mlp.parameters(width))


@dataclass(frozen=True, kw_only=True)
class Stack(Checked):
    """Blocks over one residual stream: layer i is ``kinds[order[i]]``; then ``final_norm``.

    ``positions`` rows of a learned position table (0: none; a fixed table is no weight and counts 0), ``token_types``
    rows of a segment table, ``embedding_norm`` on the sum of the tables. ``relative_buckets`` > 0: one table of
    buckets × heads shared by all layers of the stack (T5), stored in its first block; ``relative_distance`` is its
    largest distance. ``embeds_tokens``: the stream begins with the token table, which all stacks share, not with the
    output of another front end (patches, audio).
    """

    name: Literal["decoder", "encoder"]
    kinds: tuple[TransformerBlock, ...]
    order: tuple[int, ...]
    final_norm: Norm | None
    positions: int = 0
    token_types: int = 0
    embedding_norm: Norm | None = None
    relative_buckets: int = 0
    relative_distance: int = 0
    embeds_tokens: bool = True

    def check(self) -> None:
        count = len(self.order)
        require(count <= MAX_SIZES["layers"], f"{count} layers given; at most {MAX_SIZES['layers']} are read")
        good = all(isinstance(i, int) and 0 <= i < len(self.kinds) for i in self.order)
        require(good, f"an order of layers that points outside the {len(self.kinds)} kinds given")
        heads = {block.attention.heads for block in self.kinds if block.attention is not None}
        same = not self.relative_buckets or len(heads) == 1
        require(same, "a relative position table with different numbers of heads given; one number is required")

    def __len__(self) -> int:
        return len(self.order)

    def block(self, layer: int) -> TransformerBlock:
        return self.kinds[self.order[layer]]

    @property
    def blocks(self) -> Iterator[TransformerBlock]:
        return (self.kinds[kind] for kind in self.order)

    @property
    def relative_heads(self) -> int:
        """Number of heads of the relative position table, 0 without one."""
        owners = [block.attention.heads for block in self.kinds if block.attention is not None]
        return owners[0] if self.relative_buckets and owners else 0

    def parameters(self, width: int, source: int) -> int:
        norms = sum(norm.parameters(width) for norm in (self.final_norm, self.embedding_norm) if norm is not None)
        tables = (self.positions + self.token_types) * width + self.relative_buckets * self.relative_heads
        by_kind = [kind.parameters(width, source) for kind in self.kinds]
        return norms + tables + sum(by_kind[kind] for kind in self.order)


@dataclass(frozen=True, kw_only=True)
class LogitHead(Checked):
    """Logits = scale · softcap(W u + bias) with W of vocabulary × width, W = E if ``tied``."""

    tied: bool
    bias: bool = False
    scale: float = 1.0
    softcap: float | None = None


@dataclass(frozen=True, kw_only=True)
class TransformerSpec(Checked):
    """A transformer without its weights: stacks (an encoder comes before the decoder that reads it), embedding, head.

    ``vocabulary`` 0: no token table (vision, audio); ``head`` None: the function is the final hidden states.
    ``embedding_scale`` multiplies the embedded tokens. ``other_parameters`` counts weights outside this description
    (patch or audio front ends, poolers): they are named by the reader and never compared as symmetric.
    """

    family: str
    width: int
    stacks: tuple[Stack, ...]
    vocabulary: int
    head: LogitHead | None
    embedding_scale: float = 1.0
    other_parameters: int = 0

    def check(self) -> None:
        require(self.width > 0, "width 0 given; a positive width is required")
        names = [stack.name for stack in self.stacks]
        good = names in (["decoder"], ["encoder"], ["encoder", "decoder"])
        require(good, f"stacks {names} given; an encoder, a decoder, or an encoder and a decoder are required")
        crossed = any(block.cross is not None for stack in self.stacks for block in stack.kinds)
        require(not crossed or len(names) == 2, "cross-attention without an encoder given; two stacks are required")
        tied = self.head is not None and self.head.tied
        require(not tied or self.vocabulary > 0, "a tied head without a vocabulary given; vocabulary > 0 is required")
        for stack in self.stacks:
            for block in stack.kinds:
                self._check_latent(block)

    def _check_latent(self, block: TransformerBlock) -> None:
        for attention in (block.attention, block.cross):
            if attention is not None and attention.latent is not None:
                good = attention.rotated < attention.head_dim
                require(good, "latent attention without unrotated dimensions given; d_nope > 0 is required")

    @property
    def layers(self) -> int:
        return sum(map(len, self.stacks))

    @property
    def stack(self) -> Stack:
        """The last stack: the decoder, or the only one."""
        return self.stacks[-1]

    @property
    def parameters(self) -> int:
        """Number of trained weights, a tied head counted once."""
        total = self.other_parameters + self.vocabulary * self.width
        total += sum(stack.parameters(self.width, self.width) for stack in self.stacks)
        if self.head is not None:
            total += self.vocabulary * ((0 if self.head.tied else self.width) + self.head.bias)
        return total
