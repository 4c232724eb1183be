"""The contract of every kind of attention: its tensors, its program, and the symmetries of a head."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from attngeom.exact.arrays import Array
from attngeom.network.mask import OPEN, Mask
from attngeom.network.options import PLAIN, Nodes, Options, Shape

if TYPE_CHECKING:
    from attngeom.programs.builder import Builder

ONE = Fraction(1)


@dataclass(frozen=True)
class Kind(ABC):
    """A kind of attention with its mask, temperature and options.

    A head maps X (d×t, tokens as columns) to v×t; :meth:`attend` appends that to a program, from which values,
    derivatives, ranks and proofs follow.
    """

    mask: Mask = OPEN
    temperature: Fraction = ONE
    options: Options = PLAIN

    name: ClassVar[str]
    is_recurrent: ClassVar[bool] = False
    """Whether it is a recurrence over the tokens, so that token i sees j ≤ i only."""
    is_normalised: ClassVar[bool] = False
    """Whether the coefficients of every output sum to 1."""
    has_temperature: ClassVar[bool] = False
    takes: ClassVar[tuple[str, ...]] = ()
    """The options that it takes."""

    def gates(self, d: int, a: int) -> dict[str, Shape]:
        """Tensors that read the input, besides Q, K and V."""
        return {}

    def numbers(self) -> dict[str, Shape]:
        """Tensors that read nothing."""
        return {}

    def tensors(self, d: int, a: int, v: int) -> dict[str, Shape]:
        """The tensors of a head besides Q, K, V and O, for input width d, attention width a and value width v."""
        gates = self.gates(d, a)
        read = {"Q": (a, d), "K": (a, d), "V": (v, d), **gates}
        added = {name: shape for option in self.options for name, shape in option.tensors(read).items()}
        return {**gates, **self.numbers(), **added}

    @abstractmethod
    def attend(self, b: Builder, head: Nodes, x: int, place: int) -> int:
        """The node of the mixed values (v×t) of head number ``place`` at the node x of its input."""

    def head_symmetries(self) -> tuple[str, ...]:
        """The factors of the symmetry group of a head without options, by their names."""
        return ("query-key",)

    def symmetries(self) -> tuple[str, ...]:
        """The factors of the symmetry group of a head, by the names of :data:`attngeom.network.symmetry.group.SORTS`.

        >>> from attngeom.network.attention import find_kind
        >>> find_kind("gla")().symmetries()
        ('channels', 'scale')
        """
        names = self.head_symmetries()
        for option in self.options:
            names = option.symmetries(names, self.is_normalised)
        return names

    @property
    def has_linear_values(self) -> bool:
        """Whether every output is Σ_j c_ji V x_j, with numbers c_ji that V does not enter."""
        return True

    @property
    def adds_value_bias(self) -> bool:
        """Whether b_V is added to every output: not at the memory of cross-attention, which sees nothing."""
        return self.is_normalised and not self.options.get("memory")

    @property
    def orders_heads(self) -> bool:
        """Whether heads may change places: not where fixed numbers tell them apart."""
        return bool(self.options.get("alibi") != "fixed")

    def project(self, b: Builder, head: Nodes, letter: str, x: int) -> int:
        """W x, as the options have it."""
        y = b.contract("ad,dt->at", head[letter], x)
        for option in self.options:
            y = option.project(b, head, letter, y)
        return y

    def orient(self, b: Builder, head: Nodes, letter: str, x: int) -> int:
        """Queries or keys, as the options have them."""
        y = self.project(b, head, letter, x)
        for option in self.options:
            y = option.orient(b, y)
        return y

    def visible(self, t: int) -> Array:
        """Which token j (row) token i (column) sees."""
        shown = self.mask.visible(t)
        for option in self.options:
            shown = option.hide(shown)
        return shown

    def scores(self, b: Builder, head: Nodes, q: int, k: int, place: int) -> int:
        """The scores (j, i), divided by the temperature."""
        S = b.contract("aj,ai->ji", k, q)
        for option in self.options:
            S = option.score(b, head, S, place)
        return S if self.temperature == ONE else b.multiply(S, b.constant(np.array(1 / self.temperature, dtype=object)))

    def hidden(self, b: Builder, P: int) -> int:
        """P with zeros where nothing is seen."""
        shown = self.visible(b.shape(P)[0])
        return P if shown.all() else b.multiply(P, b.constant(shown.astype(np.int64)))

    def normalised(self, b: Builder, P: int) -> int:
        """P divided by its column sums over what is seen; columns that see nothing are zero."""
        P = self.hidden(b, P)
        blind: Array = np.asarray(~self.visible(b.shape(P)[0]).any(axis=0))
        total = b.sum(P, [0], keepdims=True)
        if blind.any():
            total = b.add(total, b.constant(blind[None].astype(np.int64)))
        return b.divide(P, total)


def softplus(b: Builder, a: int) -> int:
    """log(1 + exp(x))."""
    return b.formal("log", b.add(b.constant(1), b.exp(a)))


def scalar_gate(b: Builder, kind: Kind, head: Nodes, x: int) -> int:
    """The scalar gate that the option says, 1×t."""
    form = kind.options.get("gate", "sigmoid")
    line = kind.project(b, head, "u", x)
    if form != "sigmoid":
        line = b.add(line, head["c"])
    if form != "mamba":
        return b.sigmoid(line)
    return b.exp(b.scale(b.multiply(b.exp(head["eta"]), softplus(b, line)), -1))


def gate_numbers(form: str) -> dict[str, Shape]:
    """The tensors of a scalar gate that read nothing."""
    return {"sigmoid": {}, "biased": {"c": (1, 1)}, "mamba": {"c": (1, 1), "eta": (1, 1)}}[form]
