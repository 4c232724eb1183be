"""What a recurrent mixer computes, without its weights: a state of every head that tokens update in turn."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Literal

import numpy as np

from attngeom.exact.arrays import Array
from attngeom.models.checked import Checked, require
from attngeom.models.sublayers import Activation, Norm

LENGTH_EPS = 1e-6
"""What the delta rule adds to the squares of the lengths of queries and keys, before it divides by their roots."""
DAMPING = 8.0
"""What multiplies the logarithm of the decay of a channel (RG-LRU)."""

READERS = {
    "ssd": ("query", "key", "value", "output_gate", "step"),
    "delta": ("query", "key", "value", "output_gate", "step", "strength"),
    "lightning": ("query", "key", "value", "output_gate"),
    "lru": ("value", "output_gate"),
}
"""By rule the maps that read the stream."""
INNER = ("input_gate", "recurrence_gate")
"""The maps of RG-LRU that read what its convolutions write."""


@dataclass(frozen=True, kw_only=True)
class RecurrentMixer(Checked):
    """Heads with a state S, ``head_dim`` × ``value_dim``, in ``groups`` that share queries and keys.

    Queries q, keys k and values v are SiLU of a convolution with the last ``taps`` tokens (1: none), channel by
    channel, of what is read. With the time step Δ = max(softplus(s·x + c), ``least_step``) and the decay
    g = exp(−e^η Δ) of a head the ``rule`` is

    - ssd (Mamba-2): S ← g S + Δ k vᵀ, y = Sᵀq + D v;
    - delta (Gated DeltaNet): S ← g S, then S ← S + σ(b·x) k (v − Sᵀk)ᵀ, y = Sᵀq, with k and √a q of length one;
    - lightning (MiniMax): S ← g S + k vᵀ, y = Sᵀq, where g = exp(−``slowing`` 2^(−8h/H)) is fixed for head h = 1, …, H;
    - lru (RG-LRU): there are values alone, without SiLU, and y is their state, channel by channel: y ← a y + r σ(Iv) v
      with a = exp(−8 σ(Rv) softplus(λ)), r = √(1 − a²), for the first token r = 1. I and R map the values of a head.

    What is written is O(gain ∘ n(y) ∘ φ(z)), z a gate that is read, with ``gates_first`` O(gain ∘ n(y ∘ φ(z))), φ the
    activation ``gate`` (None: SiLU). The norm n, if there is one, is over the values of a head, of the heads of a
    group, or of all. ``shares_gains``: one for all heads.
    ``reflects``: 2σ(b·x) in place of σ(b·x), so that a state may change its sign (OLMo hybrid).
    ``bias`` is that of all maps that read, ``conv_bias`` that of the convolutions.
    """

    rule: Literal["ssd", "delta", "lightning", "lru"]
    heads: int
    groups: int
    head_dim: int
    value_dim: int
    taps: int
    norm: Norm | None
    norm_over: Literal["head", "group", "all"]
    shares_gains: bool = False
    gates_first: bool = False
    bias: bool = False
    conv_bias: bool = False
    output_bias: bool = False
    least_step: float = 0.0
    reflects: bool = False
    gate: Activation | None = None
    slowing: float | None = None

    def check(self) -> None:
        sizes = (self.heads, self.groups, self.head_dim, self.value_dim)
        require(min(sizes) > 0, f"heads, groups, head_dim, value_dim {sizes} given; positive numbers are required")
        even = self.heads % self.groups == 0
        require(even, f"{self.heads} heads in {self.groups} groups given; groups must divide heads")
        least = 1 if self.rule == "lightning" else 2
        require(self.taps >= least, f"a convolution of {self.taps} tokens given; at least {least} are required")
        require(self.least_step >= 0, f"a least time step {self.least_step} given; a number >= 0 is required")
        plain = self.norm is None or (self.norm.kind == "rms" and self.norm.gain and not self.norm.offset)
        require(plain, "a mixer whose norm is no RMS norm with gains given; not known")
        if self.rule == "lightning":
            alone = self.taps == 1 and self.groups == self.heads and not self.bias and not self.conv_bias
            require(alone, "fixed decays beside a convolution, biases or shared keys given; not known")
        fixed = self.rule == "lightning" and self.slowing is not None and self.slowing > 0
        require(fixed or (self.rule != "lightning" and self.slowing is None), "fixed decays without a rate given")
        if self.rule == "lru":
            own = self.groups == self.heads and self.head_dim == self.value_dim and self.norm is None
            require(own, "a recurrence of values beside keys or a norm given; not known")

    @property
    def corrects(self) -> bool:
        """Whether a token writes what its state lacks, by a share of its own."""
        return self.rule == "delta"

    @property
    def convolves(self) -> bool:
        """Whether channels are convolved: each has a scale between its row and its taps then."""
        return self.taps > 1

    @property
    def readers(self) -> tuple[str, ...]:
        """The maps that read the stream."""
        return READERS[self.rule]

    @property
    def has_steps(self) -> bool:
        """Whether time steps are read, from which heads have their decay."""
        return "step" in self.readers

    @property
    def has_keys(self) -> bool:
        """Whether queries meet keys; else values alone have a state."""
        return "key" in self.readers

    @property
    def decays(self) -> Array | None:
        """The fixed decays of the heads, by which each has its place; None where they are read."""
        if self.slowing is None:
            return None
        return np.exp(-self.slowing * 2.0 ** (-8 * np.arange(1, self.heads + 1) / self.heads))

    @property
    def gating(self) -> Activation:
        """The activation of the gate of what is written."""
        return self.gate or "silu"

    @property
    def options(self) -> dict[str, int | str]:
        """Rule and sizes in the words of the interface."""
        state = f"{self.head_dim} × {self.value_dim}" if self.has_keys else f"{self.value_dim}"
        return {"rule": self.rule, "heads": self.heads, "groups": self.groups, "state": state, "taps": self.taps}

    @property
    def channels(self) -> dict[str, tuple[int, int]]:
        """The maps that are convolved: how many heads each has, and how many channels a head."""
        sizes = {
            "query": (self.groups, self.head_dim),
            "key": (self.groups, self.head_dim),
            "value": (self.heads, self.value_dim),
        }
        return {name: size for name, size in sizes.items() if name in self.readers}

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Heads and rows of a head of every map that reads the stream."""
        values = (self.heads, self.value_dim)
        gates: dict[str, tuple[int, ...]] = {"output_gate": values, "step": (self.heads,), "strength": (self.heads,)}
        return {name: self.channels.get(name) or gates[name] for name in self.readers}

    @property
    def gains(self) -> tuple[int, int]:
        """The shape of the gains."""
        return 1 if self.shares_gains else self.heads, self.value_dim

    @property
    def normed(self) -> int:
        """How many values are under one norm."""
        return {"head": 1, "group": self.heads // self.groups, "all": self.heads}[self.norm_over] * self.value_dim

    @property
    def rows(self) -> int:
        """The number of rows of all maps that read the stream."""
        return sum(map(prod, self.shapes.values()))

    def parameters(self, width: int) -> int:
        """Number of weights."""
        convolved, values = sum(map(prod, self.channels.values())), self.heads * self.value_dim
        numbers = self.heads * {"ssd": 3, "delta": 2}.get(self.rule, 0)
        output = values * width + width * self.output_bias
        output += 0 if self.norm is None else self.gains[0] * self.gains[1]
        inner = 0 if self.has_keys else values * (len(INNER) * (self.value_dim + 1) + 1)
        taps = (self.taps + self.conv_bias) * self.convolves
        return self.rows * (width + self.bias) + convolved * taps + numbers + output + inner
