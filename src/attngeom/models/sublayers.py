"""What the sublayers of a transformer compute, without their weights: norms, attention, MLPs and experts."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from attngeom.exact.arrays import Array
from attngeom.limits.sizes import ROTARY_FREQUENCIES
from attngeom.models.checked import Checked, require
from attngeom.models.positions import Disentangled, RelativeTable

Layout = Literal["half", "interleaved"]
NormKind = Literal["rms", "layer"]
Scope = Literal["per_head", "each_head", "all_heads"]
Activation = Literal["gelu", "gelu_tanh", "quick_gelu", "silu", "relu", "relu2", "tanh", "sigmoid", "swiglu_oai"]
DEGREES = {"relu": 1, "relu2": 2}
"""n of the activations with φ(cx) = cⁿ φ(x) for all c > 0."""
Router = Literal["softmax", "sigmoid", "sparsemixer"]

SCORE_OPTIONS = ("qk_norm", "softcap", "sinks")
"""The options of scores in the words of the interface."""
SHOW_SCORES = "a softcap or sinks"
"""The options by which scores are seen absolutely."""


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
        require(count <= ROTARY_FREQUENCIES, f"{count} rotary frequencies given; at most {ROTARY_FREQUENCIES} are read")
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
    """A norm of queries and of keys: of each head with shared gains or gains of its own, or over all heads at once.

    A LayerNorm of each head has gains of its own and no biases (Cohere), or shared gains and biases (Persimmon).
    """

    scope: Scope
    norm: Norm

    def check(self) -> None:
        known = self.norm.kind == "rms" or (
            self.norm.gain and (self.scope, self.norm.bias) in (("each_head", False), ("per_head", True))
        )
        text = "known with gains of every head and no bias, or shared gains and biases"
        require(known, f"a QK-norm of kind layer, {self.scope} given; {text}")

    @property
    def shares_gains(self) -> bool:
        return self.scope == "per_head"

    @property
    def is_joint(self) -> bool:
        return self.scope == "all_heads"

    @property
    def is_centred(self) -> bool:
        """Whether the mean of the coordinates of a head is taken away (Cohere)."""
        return self.norm.kind == "layer"


@dataclass(frozen=True, kw_only=True)
class GroupedAttention(Checked):
    """Softmax attention: ``heads`` query heads in ``groups`` groups that share keys and values.

    ``head_dim`` is the width of a query and key (for latent attention: unrotated and rotated part together),
    ``scale`` multiplies the scores, ``softcap`` c replaces a score s by c·tanh(s/c), ``sinks`` adds one learned logit
    per head to the denominator, ``alibi`` a fixed slope per head, times the scale if it is "scaled", ``window`` limits
    the distance (None: no limit), ``relative`` is a table of positions of this layer alone. ``output_gate``: what heads
    mix is multiplied by sigmoids of a further map, entry by entry; it has a bias if queries have one. ``chunk`` c: a
    token sees those of its own c places only. ``temperature`` (b, s): scores of token i, counted from 1, are multiplied
    by 1 + s ln(1 + ⌊i/b⌋) (Llama 4). ``disentangled``: contents are scored against positions as well (DeBERTa).
    """

    heads: int
    groups: int
    head_dim: int
    value_dim: int
    scale: float
    causal: bool = True
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
    relative: RelativeTable | None = None
    output_gate: bool = False
    chunk: int | None = None
    temperature: tuple[float, float] | None = None
    disentangled: Disentangled | None = None

    def check(self) -> None:
        options = (self.rotary, self.qk_norm, self.latent, self.relative, self.softcap, self.window)
        plain = self.disentangled is None or (not any(options) and not self.sinks and self.heads == self.groups)
        require(plain, "scores of contents against positions beside other options of scores given; not known")
        require(self.chunk is None or self.causal, "chunks of tokens that see later ones given; not known")
        good = self.temperature is None or (self.temperature[0] > 0 and self.softcap is None)
        require(good, "a temperature without a positive base, or with a softcap, given; not known")
        plain = self.relative is None or (self.rotary is None and not self.alibi and not self.sinks)
        if self.relative is not None:
            self.relative.check_for(self.sees_later)
        require(plain, "a relative position table beside a rotation, slopes or sinks given; not known")
        sizes = (self.heads, self.groups, self.head_dim, self.value_dim)
        require(min(sizes) > 0, f"heads, groups, head_dim, value_dim {sizes} given; positive numbers are required")
        even = self.heads % self.groups == 0
        require(even, f"{self.heads} heads in {self.groups} groups given; groups must divide heads")
        require(self.rotated <= self.head_dim, f"{self.rotated} rotated of {self.head_dim} head dimensions given")
        require(self.scale != 0, "attention scale 0 given; a scale that is not zero is required")
        require(self.softcap is None or self.softcap > 0, f"softcap {self.softcap} given; a positive one is required")
        if self.latent is not None:
            biases = self.query_bias or self.key_bias or self.value_bias
            plain = self.groups == self.heads and self.qk_norm is None and not biases and not self.output_gate
            require(plain, "latent attention with grouped heads, a QK-norm, a gate or biases given; not known")

    # What options mean to others: nobody else asks which options there are.

    @property
    def options(self) -> dict[str, Any]:
        """The options of scores in the words of the interface."""
        scope = None if self.qk_norm is None else self.qk_norm.scope
        return dict(zip(SCORE_OPTIONS, (scope, self.softcap, self.sinks)))

    @property
    def head_norm(self) -> Norm | None:
        """The norm of queries and of keys."""
        return None if self.qk_norm is None else self.qk_norm.norm

    @property
    def is_joint(self) -> bool:
        """Whether one norm covers all heads."""
        return self.qk_norm is not None and self.qk_norm.is_joint

    @property
    def is_centred(self) -> bool:
        """Whether the mean of the coordinates of a head is taken away."""
        return self.qk_norm is not None and self.qk_norm.is_centred

    @property
    def shifts_heads(self) -> bool:
        """Whether constants are added to queries and keys behind their norm."""
        return self.qk_norm is not None and self.qk_norm.norm.bias

    @property
    def shares_gains(self) -> bool:
        """Whether the gains of queries and keys are those of all heads."""
        return self.qk_norm is not None and self.qk_norm.shares_gains

    @property
    def shows_scores(self) -> bool:
        """Whether scores are seen absolutely: a cap or a sink does not forget what is added to all of a token."""
        return self.softcap is not None or self.sinks

    @property
    def forgets_shifts(self) -> bool:
        """Whether a number added to all scores of a head, and to its sink, is not seen."""
        return self.softcap is None

    @property
    def trades_with_sinks(self) -> bool:
        """Whether a number added to the scores of a head may be added to its sink instead."""
        return self.sinks and self.softcap is None

    @property
    def shows_key_constants(self) -> bool:
        """Whether a constant of unrotated keys is seen: it adds the same to all scores of a token, but for norms."""
        scored = self.disentangled is not None and self.disentangled.queries
        return self.shows_scores or self.qk_norm is not None or scored

    @property
    def shares_sum_to_one(self) -> bool:
        """Whether value biases add a constant: weights of a token add up to one, but for a sink, and nothing gates."""
        return not self.sinks and not self.output_gate

    @property
    def sees_later(self) -> bool:
        """Whether a token sees those behind it."""
        return not self.causal

    @property
    def bidirectional(self) -> GroupedAttention:
        """The same attention to all tokens, before and behind."""
        return replace(self, causal=False)

    def visible(self, queries: int, keys: int) -> Array:
        """(queries, keys): whether token i sees token j."""
        distance = np.arange(queries)[:, None] - np.arange(keys)[None, :]
        seen = np.ones((queries, keys), bool) if self.sees_later else distance >= 0
        if self.chunk is not None:
            seen &= np.arange(queries)[:, None] // self.chunk == np.arange(keys)[None, :] // self.chunk
        return seen if self.window is None else seen & (np.abs(distance) < self.window)

    @property
    def reach(self) -> int | None:
        """How many tokens, itself among them, a token sees at most; None: all."""
        return min((own for own in (self.window, self.chunk) if own is not None), default=None)

    def temperatures(self, queries: int) -> Array:
        """What the scores of each token are multiplied by."""
        if self.temperature is None:
            return np.ones(queries)
        base, strength = self.temperature
        return np.asarray(1 + strength * np.log1p(np.floor((np.arange(queries) + 1.0) / base)))

    @property
    def slopes(self) -> Array:
        """Of ALiBi: 2^(−8k/n) for n the power of two below the number of heads, then every other one of the next."""
        power = 2 ** math.floor(math.log2(self.heads))
        slopes = [2.0 ** (-8 * (k + 1) / power) for k in range(power)]
        slopes += [2.0 ** (-8 * (2 * k + 1) / (2 * power)) for k in range(self.heads - power)]
        return np.array(slopes) * (self.scale if self.alibi == "scaled" else 1.0)

    @property
    def rotated(self) -> int:
        """r, the number of rotated coordinates of a head."""
        return 0 if self.rotary is None else self.rotary.dims

    @property
    def unrotated(self) -> int:
        """a₀ = head_dim − r."""
        return self.head_dim - self.rotated

    @property
    def rotations(self) -> tuple[int, Counter[float]]:
        """The number of coordinates that no position rotates, and how many pairs share each other frequency."""
        counts = Counter(() if self.rotary is None else self.rotary.frequencies)
        still = 2 * counts.pop(0.0, 0)
        return self.unrotated + still, counts

    def parameters(self, width: int, source: int) -> int:
        """Number of weights; ``source`` is the width of the stream that keys and values read."""
        heads, groups, a, v = self.heads, self.groups, self.head_dim, self.value_dim
        output = heads * v * width + width * self.output_bias + heads * self.sinks
        output += 0 if self.relative is None else heads * self.relative.rows
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
        query = heads * (a + v * self.output_gate) * (width + self.query_bias)
        key_value = groups * a * (source + self.key_bias) + groups * v * (source + self.value_bias)
        gains = 0
        if self.qk_norm is not None:
            gains = self.qk_norm.norm.parameters(2 * a if self.qk_norm.shares_gains else (heads + groups) * a)
        return query + key_value + gains + output


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

    @property
    def degree(self) -> int:
        """n where φ(cx) = cⁿ φ(x) for all c > 0; 0 where there is no such n, or a clamp sees sizes."""
        return 0 if self.limit is not None else DEGREES.get(self.activation, 0)

    @property
    def has_unit_scale(self) -> bool:
        """Whether a hidden unit has a scale between its rows and its column: gated without clamp, or homogeneous."""
        if self.limit is not None or self.activation == "swiglu_oai":
            return False
        return self.gated or self.degree > 0

    def column_scales(self, up: Array, gate: Array | float = 1.0) -> Array:
        """What columns of down are divided by where rows of up and of the gate are multiplied by these."""
        if self.gated:
            return np.asarray(up * gate**self.degree)
        return np.asarray(up ** max(1, self.degree))

    def parameters(self, width: int) -> int:
        rows = self.width * (2 if self.gated else 1)
        return rows * (width + self.up_bias) + self.width * width + width * self.down_bias


@dataclass(frozen=True, kw_only=True)
class Experts(Checked):
    """Σ over the ``active`` experts with the largest routed scores, plus a ``shared`` MLP that always runs.

    ``correction`` is a stored bias that takes part in the choice only (DeepSeek-V3); ``expert_groups`` of which
    ``active_groups`` are kept before the choice; ``normalised`` divides the chosen scores by their sum; ``factor``
    multiplies them. ``shared_gate``: the shared MLP is multiplied by σ(w·x) (Qwen2-MoE). ``scales_inputs``: scores
    multiply what the chosen experts read, not what they write (Llama 4).

    The router ``sparsemixer`` draws one expert, then one of the others: each with its share in the softmax of the
    scores from which it was drawn that are below it by at most ``nearness`` times the larger of it and their size.
    """

    expert: MLP
    count: int
    active: int
    router: Router
    router_bias: bool = False
    correction: bool = False
    shared: MLP | None = None
    shared_gate: bool = False
    expert_groups: int = 1
    active_groups: int = 1
    normalised: bool = True
    factor: float = 1.0
    scales_inputs: bool = False
    nearness: float = 0.0

    def check(self) -> None:
        drawn = self.router != "sparsemixer" or (self.active == 2 and self.expert_groups == 1 and not self.normalised)
        require(drawn, "a router that draws two experts given with other numbers of experts, groups or weights")
        plain = not self.scales_inputs or (self.router == "sigmoid" and not self.normalised and not self.correction)
        plain &= not self.scales_inputs or not (self.expert.up_bias or self.expert.down_bias)
        require(plain, "scaled inputs of experts with biases, or without a plain sigmoid, given; not known")
        require(0 < self.active <= self.count, f"{self.active} active of {self.count} experts given; not possible")
        split = self.expert_groups > 0 and self.count % self.expert_groups == 0
        require(split, f"{self.count} experts in {self.expert_groups} groups given; equal groups are required")
        given = f"{self.active_groups} of {self.expert_groups} groups of experts given"
        require(1 <= self.active_groups <= self.expert_groups, f"{given}; at least one and at most all are required")
        kept = self.active_groups * self.count // self.expert_groups
        require(self.shared is not None or not self.shared_gate, "a gate without a shared MLP given; drop it")
        require(self.active <= kept, f"{self.active} active of {kept} experts in the kept groups given; not possible")

    @property
    def correction_seen(self) -> Literal["differences", "groups", "nothing"]:
        """What of a correction takes part in the choice: its differences, those of the sums of its groups, or nothing.

        Where every expert of a kept group is active, groups alone are chosen, by the sum of their two best scores
        (sigmoid): of groups of at most two experts that is the sum of all.
        """
        size = self.count // self.expert_groups
        if self.active < self.active_groups * size:
            return "differences"
        if self.active_groups == self.expert_groups:
            return "nothing"
        return "groups" if self.router == "sigmoid" and size <= 2 else "differences"

    @property
    def sums_to_constant(self) -> bool:
        """Whether the weights of the chosen experts have a constant sum."""
        return self.normalised or (self.router == "softmax" and self.active == self.count)

    def parameters(self, width: int) -> int:
        """Trained weights; the ``correction`` is stored but not trained by gradients and not counted."""
        shared = 0 if self.shared is None else self.shared.parameters(width) + width * self.shared_gate
        return self.count * (self.expert.parameters(width) + width + self.router_bias) + shared
