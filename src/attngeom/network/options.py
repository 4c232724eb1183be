"""Options of attention: the contract, one class each, and the table of all of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from attngeom.errors import InputError
from attngeom.exact.arrays import Array

if TYPE_CHECKING:
    from attngeom.programs.builder import Builder


Shape = tuple[int, int]
Nodes = Mapping[str, int]
"""The nodes of the tensors of one head, by their letters."""


@dataclass(frozen=True)
class Option:
    """One option with its value; every method that a subclass does not write changes nothing.

    ``choices`` are the values besides "not given"; an option without choices is a flag, or ``is_size`` a number.
    """

    value: Any
    name: ClassVar[str]
    choices: ClassVar[tuple[str, ...]] = ()
    is_size: ClassVar[bool] = False
    help: ClassVar[str]

    @classmethod
    def read(cls, value: Any) -> Any:
        """The value as it is stored; InputError for what is none."""
        if cls.is_size:
            if type(value) is not int or value < 1:
                raise InputError(f"{cls.name} = {str(value)[:40]} given; a positive integer is required")
        elif cls.choices:
            if value not in cls.choices:
                raise InputError(f"{cls.name} {str(value)[:40]!r} given; one of {', '.join(cls.choices)} is required")
        elif type(value) is not bool:
            raise InputError(f"{cls.name} = {str(value)[:40]} given; true or false is required")
        return value

    def check(self, attention: tuple[int, ...], tokens: int) -> None:
        """InputError unless the sizes of the network allow the option."""

    def tensors(self, read: Mapping[str, Shape]) -> dict[str, Shape]:
        """Further tensors of one head, from those that read its input."""
        return {}

    def shared(self, d_out: int) -> dict[str, Shape]:
        """Tensors that the heads of a layer of factored heads share."""
        return {}

    def project(self, b: Builder, head: Nodes, letter: str, y: int) -> int:
        """What is projected by one tensor, tokens as columns."""
        return y

    def orient(self, b: Builder, y: int) -> int:
        """Queries or keys, a×t."""
        return y

    def score(self, b: Builder, head: Nodes, scores: int, place: int) -> int:
        """The scores (j, i) of head number ``place``."""
        return scores

    def hide(self, visible: Array) -> Array:
        """Which token j (row) is seen by token i (column)."""
        return visible

    def output(self, b: Builder, shared: Nodes, y: int) -> int:
        """The sum of the heads of a layer."""
        return y

    def symmetries(self, names: tuple[str, ...], is_normalised: bool) -> tuple[str, ...]:
        """The symmetries of a head with this option, from those without it."""
        return names


class Setting(Option):
    """An option that its kind of attention reads by itself."""


class Alibi(Option):
    """k_j·q_i − m (i − j): slopes m = 1/2, 1/4, … of the heads, as published for eight of them, or learned ones.

    A learned slope is scaled with Q where the weights are linear in the scores; a fixed one leaves no scale.
    """

    name = "alibi"
    choices = ("fixed", "learned")
    help = "Subtract a slope times the distance from each score: fixed or learned slopes."

    def tensors(self, read: Mapping[str, Shape]) -> dict[str, Shape]:
        return {"m": (1, 1)} if self.value == "learned" else {}

    def score(self, b: Builder, head: Nodes, scores: int, place: int) -> int:
        t = b.shape(scores)[0]
        distance = b.constant(np.arange(t)[None, :] - np.arange(t)[:, None])
        slope = b.constant([[Fraction(1, 2 ** (place + 1))]]) if self.value == "fixed" else head["m"]
        return b.subtract(scores, b.multiply(slope, distance))

    def symmetries(self, names: tuple[str, ...], is_normalised: bool) -> tuple[str, ...]:
        return names if self.value == "learned" else tuple(name for name in names if name != "scale")


class Bias(Option):
    """W x + b for every W that reads the input, and one b for the output of a layer of factored heads.

    A polynomial kind reads (x, 1) for x: what held for width d holds for d + 1. In softmax attention the bias of the
    keys adds the same number to all scores of a query, so that nothing depends on it.
    """

    name = "bias"
    help = "Biases of queries, keys, values, gates and outputs."

    def tensors(self, read: Mapping[str, Shape]) -> dict[str, Shape]:
        # The scalar gate u has a form of its own with a bias.
        return {f"b{letter}": (rows, 1) for letter, (rows, _) in read.items() if letter != "u"}

    def shared(self, d_out: int) -> dict[str, Shape]:
        return {"bO": (d_out, 1)}

    def project(self, b: Builder, head: Nodes, letter: str, y: int) -> int:
        return b.add(y, head[f"b{letter}"]) if f"b{letter}" in head else y

    def output(self, b: Builder, shared: Nodes, y: int) -> int:
        return b.add(y, shared["bO"]) if shared else y

    def symmetries(self, names: tuple[str, ...], is_normalised: bool) -> tuple[str, ...]:
        if not is_normalised:
            return names
        return (*("query-key-beside-bias" if name == "query-key" else name for name in names), "key-bias")


class NormalisedKeys(Option):
    """k/|k| and q/|q|: the sizes of K and Q are not seen; of the common scale of Q and V its sign is left."""

    name = "normalised_keys"
    help = "Divide queries and keys by their norms."

    def orient(self, b: Builder, y: int) -> int:
        norms = b.root(b.sum(b.multiply(y, y), [0], keepdims=True))
        return b.divide(y, norms)

    def symmetries(self, names: tuple[str, ...], is_normalised: bool) -> tuple[str, ...]:
        kept = tuple("scale-sign" if name == "scale" else name for name in names)
        return (*kept, "key-scale", "query-scale")


BASE = 10_000.0


class Rope(Option):
    """k_jᵀ R^{i−j} q_i: rows 2p and 2p + 1 are a plane, rotated by the angle 10000^{−2p/a} for each token.

    Of GL(a) the complex numbers of each plane are left, which commute with its rotations. Biases of keys are rotated
    by different angles at different tokens, so that they are seen in softmax attention too.
    """

    name = "rope"
    help = "Rotary embeddings of queries and keys, base 10000, neighbouring rows paired."

    def check(self, attention: tuple[int, ...], tokens: int) -> None:
        for a in attention:
            if a % 2:
                raise InputError(f"rope given with attention width {a}; planes need an even one")

    def orient(self, b: Builder, y: int) -> int:
        a, t = b.shape(y)
        angles = np.outer(BASE ** (-2.0 * (np.arange(a) // 2) / a), np.arange(t))
        cos, sin = b.circle(angles)
        numbers = b.numbers([y])[0]
        swapped = b.move([y], numbers[np.arange(a) ^ 1])
        signs = b.constant(np.where(np.arange(a) % 2, 1, -1)[:, None])
        return b.add(b.multiply(cos, y), b.multiply(b.multiply(sin, swapped), signs))

    def symmetries(self, names: tuple[str, ...], is_normalised: bool) -> tuple[str, ...]:
        left = dict.fromkeys(("query-key", "query-key-beside-bias"), "plane-scale")
        left["second-query-key"] = "second-plane-scale"
        return tuple(left.get(name, name) for name in names if name != "key-bias")


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


class Window(Option):
    """Token i sees tokens at a distance below the width of the window."""

    name = "window"
    is_size = True
    help = "Token i sees tokens at a distance below this number."

    def hide(self, visible: Array) -> Array:
        t = len(visible)
        distance = np.abs(np.arange(t)[:, None] - np.arange(t)[None, :])
        return np.asarray(visible & (distance < self.value))


class Memory(Option):
    """Cross-attention: the first tokens are memory, which the others attend to; the output at memory is zero.

    With skip connections the memory stays as it is from layer to layer.
    """

    name = "memory"
    is_size = True
    help = "Cross-attention: so many first tokens are memory that the others attend to."

    def check(self, attention: tuple[int, ...], tokens: int) -> None:
        if self.value >= tokens:
            raise InputError(f"memory {self.value} given for {tokens} tokens; some token must ask: fewer are required")

    def hide(self, visible: Array) -> Array:
        places = np.arange(len(visible))
        return np.asarray(visible & (places[:, None] < self.value) & (places[None, :] >= self.value))


OPTIONS: dict[str, type[Option]] = {
    option.name: option
    for option in (Bias, Alibi, Rope, Window, Memory, NormalisedKeys, Decay, Gate, Feature, Unnormalised)
}


@dataclass(frozen=True)
class Options:
    """The options that were given, by their names, in the order of the table.

    >>> Options.read({"alibi": "fixed", "bias": True, "window": None}).to_json()
    {'bias': True, 'alibi': 'fixed'}
    """

    given: tuple[tuple[str, Any], ...] = ()

    @classmethod
    def read(cls, values: Mapping[str, Any]) -> Options:
        """Options from names and values; None and False stand for "not given"."""
        for name in values:
            if name not in OPTIONS:
                raise InputError(f"option {str(name)[:40]!r} given; known options are {', '.join(OPTIONS)}")
        kept = ((name, values[name]) for name in OPTIONS if values.get(name) is not None)
        return cls(tuple((name, OPTIONS[name].read(value)) for name, value in kept if value is not False))

    def __iter__(self) -> Iterator[Option]:
        return (OPTIONS[name](value) for name, value in self.given)

    def __bool__(self) -> bool:
        return bool(self.given)

    def get(self, name: str, otherwise: Any = None) -> Any:
        """The value of an option."""
        return dict(self.given).get(name, otherwise)

    def to_json(self) -> dict[str, Any]:
        return dict(self.given)


PLAIN = Options()

__all__ = ["OPTIONS", "PLAIN", "Nodes", "Option", "Options", "Shape"]
