"""What a transformer computes, without its weights: frozen descriptions of norms, attention, MLPs, blocks and stacks.

A `TransformerSpec` fixes every constant of the function that is not a weight (sizes, kinds, eps, frequencies, scales),
so two models with equal specifications differ by their weights only. Layers are stored as a few kinds of
`TransformerBlock` and the order in which a `Stack` uses them. Every field is checked and bounded when the object is
made.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np

from attngeom.exact.arrays import Array
from attngeom.limits.sizes import CONFIGURED_SIZES
from attngeom.models.checked import Checked, require
from attngeom.models.mixers import RecurrentMixer
from attngeom.models.positions import Disentangled, RelativeTable
from attngeom.models.sublayers import (
    MLP,
    Activation,
    Experts,
    GroupedAttention,
    Latent,
    Layout,
    Norm,
    QKNorm,
    Rotary,
)

__all__ = [
    "MLP",
    "Activation",
    "Disentangled",
    "Experts",
    "GroupedAttention",
    "Latent",
    "Layout",
    "LogitHead",
    "Norm",
    "Norms",
    "QKNorm",
    "RecurrentMixer",
    "RelativeTable",
    "Rotary",
    "Stack",
    "TransformerBlock",
    "TransformerSpec",
]


@dataclass(frozen=True, kw_only=True)
class Norms(Checked):
    """Where a sublayer f is normalised: x + output(f(input(x))), then stream(·) of the sum (post-LN as in BERT)."""

    input: Norm | None = None
    output: Norm | None = None
    stream: Norm | None = None

    def parameters(self, width: int) -> int:
        return sum(norm.parameters(width) for norm in (self.input, self.output, self.stream) if norm is not None)


PLACES = ("mixer", "attention", "cross", "mlp")
"""The sublayers of a block by the names of their fields, in the order of the computation."""


@dataclass(frozen=True, kw_only=True)
class TransformerBlock(Checked):
    """A recurrent mixer or attention, cross-attention (decoders) and MLP, each added to the residual stream.

    ``parallel``: attention and MLP read the same x and both are added to it; ``shared_norm``: they read the same
    normalised u, that of ``attention_norms.input``, and ``mlp_norms.input`` is None. ``residual_scale`` multiplies what
    attention and MLP compute before it is added (Granite). ``scales_outputs``: weights multiply each coordinate of it
    (DINOv2); reading multiplies them into the maps that write, and writing writes ones. ``beside``: mixer and attention
    read the same u, that of ``attention_norms.input``, and both are added before the MLP reads (Falcon-H1).
    """

    attention: GroupedAttention | None
    mlp: MLP | Experts | None
    attention_norms: Norms = Norms()
    mlp_norms: Norms = Norms()
    cross: GroupedAttention | None = None
    cross_norms: Norms = Norms()
    parallel: bool = False
    shared_norm: bool = False
    residual_scale: float = 1.0
    scales_outputs: bool = False
    mixer: RecurrentMixer | None = None
    mixer_norms: Norms = Norms()
    beside: bool = False

    def check(self) -> None:
        parts = (self.mixer, self.attention, self.mlp)
        require(parts != (None, None, None), "a block without mixer, attention and MLP given; one is required")
        alone = (
            self.mixer is None or self.beside or (self.attention is None and self.cross is None and not self.parallel)
        )
        own = self.attention_norms
        joined = None not in (self.mixer, self.attention) and (own.output, own.stream, self.cross) == (None,) * 3
        joined &= self.mixer_norms == Norms() and not self.parallel
        require(joined or not self.beside, "a mixer beside attention with norms of its own given; not known")
        require(alone, "a mixer beside attention or in a parallel block given; not known")
        plain = self.mixer is None or self.mixer_norms.output is None
        require(plain, "a mixer with a norm of what it writes given; not known")
        require(self.parallel or not self.shared_norm, "a shared norm in a sequential block given; parallel is needed")
        require(not self.shared_norm or self.mlp_norms.input is None, "a shared norm and an MLP norm given; drop one")
        outputs = (self.attention_norms.output, self.mlp_norms.output, self.cross)
        known = self.residual_scale == 1 or (self.residual_scale > 0 and outputs == (None, None, None))
        require(
            known, "a residual scale that is not positive, with output norms or with cross-attention given; not known"
        )
        plain = (self.mixer, *outputs) == (None,) * 4 and not self.parallel and isinstance(self.mlp, MLP)
        known = plain or not self.scales_outputs
        require(known, "scales of outputs beside norms of outputs, a mixer or experts given; not known")
        if self.parallel:
            posts = (self.attention_norms.stream, self.mlp_norms.stream, self.cross)
            require(posts == (None, None, None), "a parallel block with post-norms or cross-attention given; not known")

    @property
    def norms(self) -> tuple[Norms, ...]:
        return self.mixer_norms, self.attention_norms, self.cross_norms, self.mlp_norms

    @property
    def attentions(self) -> dict[str, GroupedAttention]:
        """The attentions by the names of their fields, in the order of the computation."""
        both = {"attention": self.attention, "cross": self.cross}
        return {name: own for name, own in both.items() if own is not None}

    @property
    def hidden(self) -> dict[str, MLP]:
        """The maps with hidden units by name: ``mlp``, or ``experts.0``, ``experts.1``, …, ``shared``."""
        if not isinstance(self.mlp, Experts):
            return {} if self.mlp is None else {"mlp": self.mlp}
        experts = {f"experts.{number}": self.mlp.expert for number in range(self.mlp.count)}
        return experts if self.mlp.shared is None else {**experts, "shared": self.mlp.shared}

    @property
    def input_norms(self) -> dict[str, Norm]:
        """The norms at the inputs of the sublayers that exist, by their names in a layer."""
        norms = zip(PLACES, self.norms)
        return {f"{name}.input": own.input for name, own in norms if own.input is not None}

    def parameters(self, width: int, source: int) -> int:
        """Number of weights; ``source`` is the width of the stream that cross-attention reads."""
        norms = sum(norms.parameters(width) for norms in self.norms)
        own = 0 if self.attention is None else self.attention.parameters(width, width)
        own += 0 if self.mixer is None else self.mixer.parameters(width)
        cross = 0 if self.cross is None else self.cross.parameters(width, source)
        own += width * self.scales_outputs * ((self.attention is not None) + (self.mlp is not None))
        return norms + own + cross + (0 if self.mlp is None else self.mlp.parameters(width))


@dataclass(frozen=True, kw_only=True)
class Stack(Checked):
    """Blocks over one residual stream: layer i is ``kinds[order[i]]``; then ``final_norm``.

    ``positions`` rows of a learned position table (0: none), ``sines`` rows of a fixed one, which is no weight. The
    first ``unread_positions`` stand for no position (OPT: two). ``token_types`` rows of a segment table,
    ``embedding_norm`` on the sum of the tables. ``relative_buckets`` > 0: one table of buckets × heads shared by all
    layers of the stack (T5), stored in its first block; ``relative_distance`` is its largest distance.
    ``embeds_tokens``: the stream begins with the token table, which all stacks share, not with the output of another
    front end (patches, audio). ``embedding_width`` e > 0: the tables and their norm are that wide, and a map with a
    bias makes the stream of them (ALBERT). ``path``: the numbers of the layers in the order in which they run, where
    some run more than once; (): each once. ``distances`` rows of a table of states of distances, that the maps of
    queries and keys read behind ``distance_norm`` (DeBERTa).
    """

    name: Literal["decoder", "encoder"]
    kinds: tuple[TransformerBlock, ...]
    order: tuple[int, ...]
    final_norm: Norm | None
    positions: int = 0
    unread_positions: int = 0
    sines: int = 0
    token_types: int = 0
    embedding_norm: Norm | None = None
    relative_buckets: int = 0
    relative_distance: int = 0
    embeds_tokens: bool = True
    embedding_width: int = 0
    path: tuple[int, ...] = ()
    distances: int = 0
    distance_norm: Norm | None = None

    def check(self) -> None:
        normed = self.embedding_norm is not None and self.embedding_norm.kind == "layer" and self.embeds_tokens
        require(normed or not self.embedding_width, "narrow tables without a LayerNorm of their sum given; not known")
        once = not self.path or set(self.path) == set(range(len(self.order)))
        require(once and len(self.path) <= CONFIGURED_SIZES["layers"], "a path that does not run every layer given")
        count = len(self.order)
        require(
            count <= CONFIGURED_SIZES["layers"], f"{count} layers given; at most {CONFIGURED_SIZES['layers']} are read"
        )
        good = all(isinstance(i, int) and 0 <= i < len(self.kinds) for i in self.order)
        require(good, f"an order of layers that points outside the {len(self.kinds)} kinds given")
        fewer = self.unread_positions < max(1, self.positions)
        require(fewer, f"{self.unread_positions} unread of {self.positions} positions given; fewer are required")
        heads = {block.attention.heads for block in self.kinds if block.attention is not None}
        same = not self.relative_buckets or len(heads) == 1
        for block in self.kinds if self.relative is not None else ():
            if block.attention is not None and self.relative is not None:
                self.relative.check_for(block.attention.sees_later)
        require(same, "a relative position table with different numbers of heads given; one number is required")

    def __len__(self) -> int:
        return len(self.order)

    def block(self, layer: int) -> TransformerBlock:
        return self.kinds[self.order[layer]]

    @property
    def blocks(self) -> Iterator[TransformerBlock]:
        return (self.kinds[kind] for kind in self.order)

    @property
    def disentangled(self) -> Disentangled | None:
        """How contents are scored against the states of distances."""
        own = (block.attention.disentangled for block in self.kinds if block.attention is not None)
        return next(own, None) if self.distances else None

    @property
    def read_distances(self) -> Array:
        """The rows of the table of states of distances that contexts show."""
        own = self.disentangled
        return np.zeros(0, dtype=np.int64) if own is None else own.used(self.positions - self.unread_positions)

    @property
    def relative(self) -> RelativeTable | None:
        """The table of relative positions of all layers."""
        if not self.relative_buckets:
            return None
        return RelativeTable(rows=self.relative_buckets, distance=self.relative_distance)

    @property
    def unused_relative(self) -> Array:
        """Its rows that no distance has."""
        first = next((block.attention for block in self.blocks if block.attention is not None), None)
        if first is None or self.relative is None:
            return np.zeros(0, dtype=np.int64)
        return self.relative.unused(first.sees_later, self.positions)

    @property
    def relative_heads(self) -> int:
        """Number of heads of the relative position table, 0 without one."""
        owners = [block.attention.heads for block in self.kinds if block.attention is not None]
        return owners[0] if self.relative_buckets and owners else 0

    def parameters(self, width: int, source: int) -> int:
        own = self.embedding_width or width
        both = (self.final_norm, width), (self.embedding_norm, own), (self.distance_norm, width)
        norms = sum(norm.parameters(size) for norm, size in both if norm is not None)
        tables = (self.positions + self.token_types) * own + self.relative_buckets * self.relative_heads
        tables += (own + 1) * width * (self.embedding_width > 0) + self.distances * width
        by_kind = [kind.parameters(width, source) for kind in self.kinds]
        return norms + tables + sum(by_kind[kind] for kind in self.order)


@dataclass(frozen=True, kw_only=True)
class LogitHead(Checked):
    """Logits = scale · softcap(W u + bias) with W of vocabulary × width, W = E if ``tied``.

    ``trains_bias``: the bias is a weight, and not only stored (BART and its family).
    ``outputs`` is the number of rows of W where it is not the vocabulary (classifiers).
    """

    tied: bool
    bias: bool = False
    trains_bias: bool = True
    scale: float = 1.0
    softcap: float | None = None
    outputs: int = 0

    @property
    def is_capped(self) -> bool:
        return self.softcap is not None

    @property
    def constants(self) -> tuple[float, float | None]:
        """What multiplies logits, and what caps them."""
        return self.scale, self.softcap


@dataclass(frozen=True, kw_only=True)
class TransformerSpec(Checked):
    """A transformer without its weights: stacks (an encoder comes before the decoder that reads it), embedding, head.

    ``vocabulary`` 0: no token table (vision, audio); ``head`` None: the function is the final hidden states.
    ``embedding_scale`` multiplies the embedded tokens. ``embedding_rank`` e > 0: the token table E is vocabulary × e,
    the stream begins with P E_t and the head is E P' for two further matrices (OPT); the head counts as untied.
    ``other_parameters`` counts weights outside this description (patch or audio front ends, poolers): they are named by
    the reader and never compared as symmetric.
    """

    family: str = ""
    width: int
    stacks: tuple[Stack, ...]
    vocabulary: int
    head: LogitHead | None
    embedding_scale: float = 1.0
    embedding_rank: int = 0
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
        narrow = any(stack.embedding_width for stack in self.stacks)
        require(not narrow or (len(names) == 1 and not tied), "narrow tables of two stacks or with a tied head given")
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
        e = self.embedding_rank
        tokens = self.vocabulary * (self.stack.embedding_width or self.width)
        total = self.other_parameters + (e * (self.vocabulary + 2 * self.width) if e else tokens)
        total += sum(stack.parameters(self.width, self.width) for stack in self.stacks)
        if self.head is not None:
            rows = self.head.outputs or self.vocabulary
            total += rows * ((0 if self.head.tied or e else self.width) + (self.head.bias and self.head.trains_bias))
        return total
