"""What a recurrent mixer computes, without its weights: a state of every head that tokens update in turn."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from attngeom.models.checked import Checked, require
from attngeom.models.sublayers import Norm

LENGTH_EPS = 1e-6
"""What the delta rule adds to the squares of the lengths of queries and keys, before it divides by their roots."""


@dataclass(frozen=True, kw_only=True)
class RecurrentMixer(Checked):
    """Heads with a state S, ``head_dim`` × ``value_dim``, in ``groups`` that share queries and keys.

    Queries q, keys k and values v are SiLU of a convolution with the last ``taps`` tokens, channel by channel, of what
    is read. With the time step Δ = max(softplus(s·x + c), ``least_step``) and the decay g = exp(−e^η Δ) of a head the
    ``rule`` is

    - ssd (Mamba-2): S ← g S + Δ k vᵀ, y = Sᵀq + D v;
    - delta (Gated DeltaNet): S ← g S, then S ← S + σ(b·x) k (v − Sᵀk)ᵀ, y = Sᵀq, with k and √a q of length one.

    What is written is O(gain ∘ n(y) ∘ SiLU(z)), z a gate that is read, with ``gates_first`` O(gain ∘ n(y ∘ SiLU(z))).
    The norm n, if there is one, is over the values of a head, or of the heads of a group. ``shares_gains``: one for
    all heads.
    ``reflects``: 2σ(b·x) in place of σ(b·x), so that a state may change its sign (OLMo hybrid).
    ``bias`` is that of all maps that read, ``conv_bias`` that of the convolutions.
    """

    rule: Literal["ssd", "delta"]
    heads: int
    groups: int
    head_dim: int
    value_dim: int
    taps: int
    norm: Norm | None
    norm_over: Literal["head", "group"]
    shares_gains: bool = False
    gates_first: bool = False
    bias: bool = False
    conv_bias: bool = False
    output_bias: bool = False
    least_step: float = 0.0
    reflects: bool = False

    def check(self) -> None:
        sizes = (self.heads, self.groups, self.head_dim, self.value_dim)
        require(min(sizes) > 0, f"heads, groups, head_dim, value_dim {sizes} given; positive numbers are required")
        even = self.heads % self.groups == 0
        require(even, f"{self.heads} heads in {self.groups} groups given; groups must divide heads")
        require(self.taps > 1, f"a convolution of {self.taps} tokens given; at least 2 are required")
        require(self.least_step >= 0, f"a least time step {self.least_step} given; a number >= 0 is required")
        plain = self.norm is None or (self.norm.kind == "rms" and self.norm.gain and not self.norm.offset)
        require(plain, "a mixer whose norm is no RMS norm with gains given; not known")

    @property
    def corrects(self) -> bool:
        """Whether a token writes what its state lacks, by a share of its own."""
        return self.rule == "delta"

    @property
    def options(self) -> dict[str, int | str]:
        """Rule and sizes in the words of the interface."""
        state = f"{self.head_dim} × {self.value_dim}"
        return {"rule": self.rule, "heads": self.heads, "groups": self.groups, "state": state, "taps": self.taps}

    @property
    def channels(self) -> dict[str, tuple[int, int]]:
        """The convolved maps: how many heads each has, and how many channels a head."""
        return {
            "query": (self.groups, self.head_dim),
            "key": (self.groups, self.head_dim),
            "value": (self.heads, self.value_dim),
        }

    @property
    def gains(self) -> tuple[int, int]:
        """The shape of the gains."""
        return 1 if self.shares_gains else self.heads, self.value_dim

    @property
    def normed(self) -> int:
        """How many values are under one norm."""
        return (1 if self.norm_over == "head" else self.heads // self.groups) * self.value_dim

    def parameters(self, width: int) -> int:
        """Number of weights."""
        convolved = sum(heads * size for heads, size in self.channels.values())
        values = self.heads * self.value_dim
        rows = convolved + values + self.heads * (2 if self.corrects else 1)
        numbers = self.heads * (2 if self.corrects else 3)
        output = values * width + width * self.output_bias
        output += 0 if self.norm is None else self.gains[0] * self.gains[1]
        return rows * (width + self.bias) + convolved * (self.taps + self.conv_bias) + numbers + output
