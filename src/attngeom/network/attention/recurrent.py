"""Kinds of attention that are recurrences, unrolled: S_i = S_{i−1} T_i + b_i v_i k_iᵀ, o_i = S_i q_i."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from attngeom.exact.arrays import Array
from attngeom.exact.domains import Domain
from attngeom.network.attention.kind import Kind, gate_numbers, scalar_gate, softplus
from attngeom.network.options import Nodes, Shape

if TYPE_CHECKING:
    from attngeom.programs.builder import Builder


@dataclass(frozen=True)
class Step:
    """The nodes of T = decay (1 − β k kᵀ) and of the strength b of writing; None stands for 1, for β for 0.

    ``decay`` has shape (1, t), or (a, t) for a gate of each channel; the others (1, t).
    """

    decay: int | None = None
    erase: int | None = None
    write: int | None = None


@dataclass(frozen=True)
class Recurrence(Kind):
    """A state S of shape v×a, zero at first; a subclass says what a token does to it."""

    is_recurrent: ClassVar[bool] = True
    takes: ClassVar[tuple[str, ...]] = ("bias",)

    @abstractmethod
    def step(self, b: Builder, head: Nodes, x: int, place: int) -> Step:
        """What all tokens do to the state."""

    def attend(self, b: Builder, head: Nodes, x: int, place: int) -> int:
        q, k = (self.orient(b, head, letter, x) for letter in "QK")
        v, step = self.project(b, head, "V", x), self.step(b, head, x, place)
        state: int | None = None
        outputs = []
        for i in range(b.shape(x)[1]):
            key, query, value = (_column(b, y, i) for y in (k, q, v))
            new = b.contract("c,a->ca", value, key)
            if step.write is not None:
                new = b.multiply(new, _column(b, step.write, i))
            if state is not None:
                if step.decay is not None:
                    state = b.multiply(state, _column(b, step.decay, i))
                if step.erase is not None:
                    read = b.multiply(b.contract("ca,a->c", state, key), _column(b, step.erase, i))
                    state = b.subtract(state, b.contract("c,a->ca", read, key))
                new = b.add(state, new)
            state = new
            outputs.append(b.contract("ca,a->c", state, query))
        return b.move(outputs, np.stack(b.numbers(outputs), axis=1))


def _column(b: Builder, y: int, i: int) -> int:
    """Token i of an array (n, t)."""
    return b.move([y], b.numbers([y])[0][:, i])


@dataclass(frozen=True)
class Retention(Recurrence):
    """T = γ, fixed for each head or learned: retention (RetNet), and lightning attention with decay."""

    name: ClassVar[str] = "retnet"
    takes: ClassVar[tuple[str, ...]] = ("bias", "rope", "decay")

    def numbers(self) -> dict[str, Shape]:
        return {"gamma": (1, 1)} if self.options.get("decay") == "learned" else {}

    def step(self, b: Builder, head: Nodes, x: int, place: int) -> Step:
        t = b.shape(x)[1]
        gamma = head["gamma"] if "gamma" in head else b.constant([[1 - Fraction(1, 2 ** (5 + place))]])
        return Step(decay=b.broadcast(gamma, (1, t)))

    def head_symmetries(self) -> tuple[str, ...]:
        return ("query-key", "scale")

    def pair_weights(self, head: Mapping[str, Array], place: int, tokens: int, domain: Domain) -> Array | None:
        if self.options.get("bias") or self.options.get("rope"):
            return None
        gamma = head["gamma"].ravel() if "gamma" in head else domain.convert([1 - Fraction(1, 2 ** (5 + place))])
        powers = [domain.convert([1])]
        for _ in range(tokens - 1):
            powers.append(np.asarray(domain.times(powers[-1], gamma)))
        shares = domain.zeros((tokens, tokens))
        for j in range(tokens):
            shares[j, j:] = np.concatenate(powers[: tokens - j])
        return shares

    @property
    def orders_heads(self) -> bool:
        return bool(self.options.get("decay") == "learned")


@dataclass(frozen=True)
class ScalarGate(Recurrence):
    """T = g(x), a scalar gate."""

    name: ClassVar[str] = "scalar_gate"
    takes: ClassVar[tuple[str, ...]] = ("bias", "gate")

    def gates(self, d: int, a: int) -> dict[str, Shape]:
        return {"u": (1, d)}

    def numbers(self) -> dict[str, Shape]:
        return gate_numbers(self.options.get("gate", "sigmoid"))

    def step(self, b: Builder, head: Nodes, x: int, place: int) -> Step:
        return Step(decay=scalar_gate(b, self, head, x))

    def head_symmetries(self) -> tuple[str, ...]:
        return ("query-key", "scale")


@dataclass(frozen=True)
class StateSpace(Recurrence):
    """T = exp(−e^η Δ(x)), written with strength Δ = softplus(u·x + c): the core of Mamba-2 (SSD)."""

    name: ClassVar[str] = "ssd"

    def gates(self, d: int, a: int) -> dict[str, Shape]:
        return {"u": (1, d)}

    def numbers(self) -> dict[str, Shape]:
        return gate_numbers("mamba")

    def step(self, b: Builder, head: Nodes, x: int, place: int) -> Step:
        delta = softplus(b, b.add(self.project(b, head, "u", x), head["c"]))
        decay = b.exp(b.scale(b.multiply(b.exp(head["eta"]), delta), -1))
        return Step(decay=decay, write=delta)

    def head_symmetries(self) -> tuple[str, ...]:
        return ("query-key", "scale")


@dataclass(frozen=True)
class GatedLinear(Recurrence):
    """T = diag σ(G x): gated linear attention, one gate for each channel."""

    name: ClassVar[str] = "gla"

    def gates(self, d: int, a: int) -> dict[str, Shape]:
        return {"G": (a, d)}

    def step(self, b: Builder, head: Nodes, x: int, place: int) -> Step:
        return Step(decay=b.sigmoid(self.project(b, head, "G", x)))

    def head_symmetries(self) -> tuple[str, ...]:
        return ("channels", "scale")


@dataclass(frozen=True)
class DeltaRule(Recurrence):
    """T = 1 − β k kᵀ, written with strength β = σ(w·x): DeltaNet."""

    name: ClassVar[str] = "deltanet"
    takes: ClassVar[tuple[str, ...]] = ("bias", "normalised_keys")

    def gates(self, d: int, a: int) -> dict[str, Shape]:
        return {"w": (1, d)}

    def step(self, b: Builder, head: Nodes, x: int, place: int) -> Step:
        beta = b.sigmoid(self.project(b, head, "w", x))
        return Step(erase=beta, write=beta)

    def head_symmetries(self) -> tuple[str, ...]:
        return ("query-key-rotation", "scale")


@dataclass(frozen=True)
class GatedDelta(DeltaRule):
    """T = g (1 − β k kᵀ) with a scalar gate g: Gated DeltaNet."""

    name: ClassVar[str] = "gated_deltanet"
    takes: ClassVar[tuple[str, ...]] = ("bias", "normalised_keys", "gate")

    def gates(self, d: int, a: int) -> dict[str, Shape]:
        return {"w": (1, d), "u": (1, d)}

    def numbers(self) -> dict[str, Shape]:
        return gate_numbers(self.options.get("gate", "sigmoid"))

    def step(self, b: Builder, head: Nodes, x: int, place: int) -> Step:
        beta = b.sigmoid(self.project(b, head, "w", x))
        return Step(decay=scalar_gate(b, self, head, x), erase=beta, write=beta)


@dataclass(frozen=True)
class KimiDelta(DeltaRule):
    """T = diag σ(G x) (1 − β k kᵀ): Kimi delta attention, a gate for each channel and the delta rule."""

    name: ClassVar[str] = "kda"

    def gates(self, d: int, a: int) -> dict[str, Shape]:
        return {"w": (1, d), "G": (a, d)}

    def step(self, b: Builder, head: Nodes, x: int, place: int) -> Step:
        beta = b.sigmoid(self.project(b, head, "w", x))
        return Step(decay=b.sigmoid(self.project(b, head, "G", x)), erase=beta, write=beta)

    def head_symmetries(self) -> tuple[str, ...]:
        return ("signed-channels", "scale")
