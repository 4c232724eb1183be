"""What single kinds of attention let one choose."""

from __future__ import annotations

from attngeom.network.options.option import Setting


class Decay(Setting):
    """The decay γ of retention: 1 − 2^{−5−h} for head h, as published, or learned."""

    name = "decay"
    choices = ("fixed", "learned")
    help = "The decay of retention: fixed or learned."


class Gate(Setting):
    """Scalar gates: σ(u·x), σ(u·x + c), or σ(−u·x − c)^τ = exp(−τ softplus(u·x + c)) with τ = exp(η)."""

    name = "gate"
    choices = ("sigmoid", "biased", "mamba")
    help = "The form of scalar gates: sigmoid, biased or mamba."


class Feature(Setting):
    """The feature map of linear attention: none, squares of queries and keys, or SiLU of queries, keys and values."""

    name = "feature"
    choices = ("identity", "square", "silu")
    help = "The feature map of linear attention: identity, square or silu."


class Unnormalised(Setting):
    """Linear attention whose weights are not divided by their sum."""

    name = "unnormalised"
    help = "Linear attention without division by the sum of the weights."
