"""The weights of one layer in one normal form for every family: heads first, rotated pairs as complex rows.

A rotated pair (i, j) of a query or key is the complex row W_i + √−1 W_j, so that the phase symmetry of rotary attention
is multiplication by a complex number and the storage layout (half, interleaved) is forgotten. An absent bias is zero;
whether the file has a place for it is said by the `TransformerBlock` that describes the layer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from attngeom.exact.arrays import Array
from attngeom.models.affine import Affine
from attngeom.models.mixers import INNER

BY_HEAD = ("rotated_query", "query", "output", "query_gain", "query_shift", "sinks", "relative", "output_gate")
BY_GROUP = ("rotated_key", "key", "value", "key_gain", "key_shift")
"""Fields of attention with an entry for each head, or for each group."""


@dataclass(frozen=True, eq=False)
class NormWeights:
    """Gain and bias of a norm, zero bias if it has none; the gain is stored + offset (Gemma stores gain − 1)."""

    stored: Array
    bias: Array
    offset: float = 0.0

    @property
    def gain(self) -> Array:
        full: Array = self.stored + self.offset
        return full

    def changed(self, gain: Array, bias: Array) -> NormWeights:
        """The same norm with another full gain and another bias."""
        return NormWeights(gain - self.offset, bias, self.offset)

    @classmethod
    def plain(cls, width: int) -> NormWeights:
        return cls(np.ones(width), np.zeros(width))


@dataclass(frozen=True, eq=False)
class LatentWeights:
    """A latent gain ∘ n(down u) of multi-head latent attention."""

    down: Affine
    gain: Array


@dataclass(frozen=True, eq=False)
class AttentionWeights:
    """H query heads; T groups of rotated keys and G groups of plain keys and values that the heads share evenly.

    Shapes: rotated_query (H, f, ·), rotated_key (T, f, d) complex; query (H, a₀, ·), key (G, a₀, ·), value (G, v, ·),
    output (H, d, v) with one bias (d). T = G except for latent attention, where T = 1 and plain keys and values read
    the key latent, queries the query latent. Gains of a QK-norm are (1 or heads, 2f + a₀): real parts, imaginary parts,
    plain coordinates; ``gain_rests`` is what was lost when an offset was added to those that a file stores. Shifts, of
    the same shape, are the biases of such a norm.
    ``relative`` (H, rows) is added to scores by classes of distances, sigmoids of ``output_gate`` (H, v, d) multiply
    what heads mix.
    """

    rotated_query: Affine
    rotated_key: Affine
    query: Affine
    key: Affine
    value: Affine
    output: Array
    output_bias: Array
    query_gain: Array | None = None
    key_gain: Array | None = None
    sinks: Array | None = None
    query_latent: LatentWeights | None = None
    key_latent: LatentWeights | None = None
    gain_rests: tuple[Array, Array] | None = None
    relative: Array | None = None
    output_gate: Affine | None = None
    query_shift: Array | None = None
    key_shift: Array | None = None

    @property
    def heads(self) -> int:
        return int(self.output.shape[0])

    @property
    def groups(self) -> int:
        return int(self.value.weight.shape[0])

    @property
    def rotated_groups(self) -> int:
        return int(self.rotated_key.weight.shape[0])

    @property
    def head_numbers(self) -> dict[str, Array]:
        """Numbers of every head that only some families store, which no symmetry moves but the order of heads."""
        return {} if self.sinks is None else {"sinks": self.sinks}

    @property
    def head_tables(self) -> dict[str, Array]:
        """Rows of numbers of every head that are seen but for what is added to a whole row."""
        return {} if self.relative is None else {"relative": self.relative}

    @property
    def gates(self) -> tuple[str, ...]:
        """The names of maps that gate what is written."""
        return () if self.output_gate is None else ("output_gate",)

    @property
    def pair_norms(self) -> tuple[Array, Array]:
        """|q_hf| and |k_f| of the rotated pairs of every head."""
        sides = self.rotated_query, self.rotated_key
        queries, keys = (np.sqrt((np.abs(side.weight) ** 2).sum(axis=-1)) for side in sides)
        return queries, np.repeat(keys, self.heads // self.rotated_groups, axis=0)

    @cached_property
    def grams(self) -> dict[str, Array]:
        """K Kᵀ, Q Qᵀ, V Vᵀ and OᵀO of plain rows, per group or head."""
        inner = {"key": self.key.weight, "query": self.query.weight, "value": self.value.weight}
        products = {name: rows @ rows.transpose(0, 2, 1) for name, rows in inner.items()}
        return {**products, "output": self.output.transpose(0, 2, 1) @ self.output}

    def each_head(self, heads: Callable[[Array], Array], groups: Callable[[Array], Array]) -> AttentionWeights:
        """All arrays with an entry for each head or group changed along that axis; what all heads share stays."""
        changes: dict[str, object] = {}
        for names, change, count in ((BY_HEAD, heads, self.heads), (BY_GROUP, groups, self.groups)):
            for name in names:
                own = getattr(self, name)
                if isinstance(own, Affine) and len(own.bias) == count:
                    changes[name] = Affine(change(own.weight), change(own.bias))
                elif isinstance(own, np.ndarray) and (len(own) > 1 or name == "output"):
                    changes[name] = change(own)
        return self.with_(**changes)

    def rows(self, side: str) -> Array:
        """All rows of ``query`` or ``key``, (heads or groups, 2f + a₀, ·): real parts, imaginary parts, plain ones."""
        rotated, plain = getattr(self, f"rotated_{side}").weight, getattr(self, side).weight
        return np.concatenate([rotated.real, rotated.imag, plain], axis=1)

    def with_(self, **changes: Any) -> AttentionWeights:
        return replace(self, **changes)


@dataclass(frozen=True, eq=False)
class RecurrentWeights:
    """H heads of values in G groups that share queries and keys, of a `RecurrentMixer`; None: its rule has none.

    Shapes: query and key (G, a, d), value and output_gate (H, v, d), their taps (…, κ) with the last tap for the token
    itself, their shifts, what a convolution adds; step and strength (H, d); decay, step_shift and skip (H); gain
    (H or 1, v); output (H, d, v) with one bias (d). Of RG-LRU input_gate and recurrence_gate (H, v, v) read what
    the convolutions write, damping is (H, v).
    """

    value: Affine
    output_gate: Affine
    gain: Array
    output: Array
    output_bias: Array
    value_taps: Array | None = None
    value_shift: Array | None = None
    query: Affine | None = None
    key: Affine | None = None
    step: Affine | None = None
    strength: Affine | None = None
    query_taps: Array | None = None
    key_taps: Array | None = None
    query_shift: Array | None = None
    key_shift: Array | None = None
    decay: Array | None = None
    step_shift: Array | None = None
    skip: Array | None = None
    input_gate: Affine | None = None
    recurrence_gate: Affine | None = None
    damping: Array | None = None

    @property
    def heads(self) -> int:
        return int(self.output.shape[0])

    @property
    def groups(self) -> int:
        return int((self.value if self.key is None else self.key).weight.shape[0])

    @property
    def readers(self) -> dict[str, Affine]:
        """The maps that read the stream."""
        names = ("query", "key", "value", "output_gate", "step", "strength")
        return {name: own for name in names if (own := getattr(self, name)) is not None}

    @property
    def head_numbers(self) -> dict[str, Array]:
        """Numbers of every head, which no symmetry moves but the order of heads."""
        names = ("decay", "step_shift", "skip")
        return {name: own for name in names if (own := getattr(self, name)) is not None}

    @property
    def inner(self) -> dict[str, Affine]:
        """The maps that read what the convolutions write."""
        return {name: own for name in INNER if (own := getattr(self, name)) is not None}

    @property
    def grams(self) -> dict[str, Array]:
        return {}

    def with_(self, **changes: Any) -> RecurrentWeights:
        return replace(self, **changes)


@dataclass(frozen=True, eq=False)
class MLPWeights:
    """down(φ(gate x) ∘ up x), or down(φ(up x)) without gate; hidden units are rows of up and columns of down."""

    gate: Affine | None
    up: Affine
    down: Array
    down_bias: Array

    @property
    def units(self) -> int:
        return int(self.up.weight.shape[0])

    def with_(self, **changes: Any) -> MLPWeights:
        return replace(self, **changes)


@dataclass(frozen=True, eq=False)
class ExpertsWeights:
    """Routed MLPs: router (E, d), a correction of the choice, the experts, and an MLP that always runs, its gate."""

    router: Affine
    correction: Array | None
    experts: tuple[MLPWeights, ...]
    shared: MLPWeights | None
    shared_gate: Affine | None = None

    def with_(self, **changes: Any) -> ExpertsWeights:
        return replace(self, **changes)


@dataclass(frozen=True, eq=False)
class LayerWeights:
    """One layer: its sublayers and its norms, keyed ``attention.input``, ``mlp.output``, ``cross.stream`` and so on."""

    attention: AttentionWeights | None
    mlp: MLPWeights | ExpertsWeights | None
    norms: Mapping[str, NormWeights] = field(default_factory=dict)
    cross: AttentionWeights | None = None
    mixer: RecurrentWeights | None = None

    def with_(self, **changes: Any) -> LayerWeights:
        return replace(self, **changes)

    @property
    def attentions(self) -> dict[str, AttentionWeights]:
        """The attentions by the names of their fields, in the order of the computation."""
        both = {"attention": self.attention, "cross": self.cross}
        return {name: weights for name, weights in both.items() if weights is not None}

    @property
    def width(self) -> int:
        """d, the width of the stream."""
        written = [own.output_bias for own in self.writers.values()] + [own.down_bias for own in self.hidden.values()]
        return len(written[0])

    @property
    def writers(self) -> dict[str, AttentionWeights | RecurrentWeights]:
        """What writes by heads: the attentions and the mixer."""
        return {**({} if self.mixer is None else {"mixer": self.mixer}), **self.attentions}

    @property
    def hidden(self) -> dict[str, MLPWeights]:
        """The maps with hidden units by name: ``mlp``, or ``experts.0``, ``experts.1``, …, ``shared``."""
        if self.mlp is None:
            return {}
        if isinstance(self.mlp, MLPWeights):
            return {"mlp": self.mlp}
        experts = {f"experts.{number}": expert for number, expert in enumerate(self.mlp.experts)}
        return experts if self.mlp.shared is None else {**experts, "shared": self.mlp.shared}

    def with_hidden(self, name: str, weights: MLPWeights) -> LayerWeights:
        """The layer with another map of that name."""
        assert self.mlp is not None
        if isinstance(self.mlp, MLPWeights):
            return self.with_(mlp=weights)
        if name == "shared":
            return self.with_(mlp=self.mlp.with_(shared=weights))
        experts = list(self.mlp.experts)
        experts[int(name.removeprefix("experts."))] = weights
        return self.with_(mlp=self.mlp.with_(experts=tuple(experts)))


def parts_of(layer: LayerWeights) -> dict[str, Array]:
    """Every array of a layer by a dotted name, for comparison."""
    parts: dict[str, Array] = {}

    def visit(name: str, value: Any) -> None:
        if isinstance(value, np.ndarray):
            parts[name] = value
        elif isinstance(value, Affine):
            parts.update({f"{name}.weight": value.weight, f"{name}.bias": value.bias})
        elif isinstance(value, Mapping):
            for key, item in value.items():
                visit(f"{name}.{key}", item)
        elif isinstance(value, tuple):
            for index, item in enumerate(value):
                visit(f"{name}.{index}", item)
        elif hasattr(value, "__dataclass_fields__"):
            for key in value.__dataclass_fields__:
                visit(f"{name}.{key}" if name else key, getattr(value, key))

    visit("", layer)
    return parts
