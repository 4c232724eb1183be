"""Linear attention with feature maps and normalisation, and differential attention."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from attngeom.network.attention.kind import Kind
from attngeom.network.options import Nodes, Shape

if TYPE_CHECKING:
    from attngeom.programs.builder import Builder


@dataclass(frozen=True)
class Linear(Kind):
    """s_ji / Σ_j s_ji with s_ji = φ(k_j)·φ(q_i): φ the identity, entrywise squares, or SiLU, of the values as well."""

    name: ClassVar[str] = "linear"
    takes: ClassVar[tuple[str, ...]] = ("bias", "feature", "unnormalised")

    def attend(self, b: Builder, head: Nodes, x: int, place: int) -> int:
        q, k = (self.feature(b, self.orient(b, head, letter, x)) for letter in "QK")
        v = self.project(b, head, "V", x)
        if self.options.get("feature") == "silu":
            v = self.feature(b, v)
        S = self.scores(b, head, q, k, place)
        return b.contract("cj,ji->ci", v, self.hidden(b, S) if self.is_raw else self.normalised(b, S))

    def feature(self, b: Builder, y: int) -> int:
        """φ entry by entry."""
        match self.options.get("feature", "identity"):
            case "square":
                return b.multiply(y, y)
            case "silu":
                return b.multiply(y, b.sigmoid(y))
        return y

    @property
    def is_raw(self) -> bool:
        """Whether the scores are the weights."""
        return bool(self.options.get("unnormalised"))

    @property
    def has_linear_values(self) -> bool:
        return bool(self.options.get("feature") != "silu")

    @property
    def adds_value_bias(self) -> bool:
        return not self.is_raw and self.has_linear_values

    def head_symmetries(self) -> tuple[str, ...]:
        scale = "scale" if self.is_raw else "query-scale"
        match self.options.get("feature", "identity"):
            case "square":
                # (λQ)² = λ²Q²: V takes the inverse square, or nothing where the sum is divided out.
                squared = ("square-scale",) if self.is_raw else (scale,)
                return ("channels", *squared)
            case "silu":
                return ("channel-order",)
        return ("query-key", scale)


@dataclass(frozen=True)
class Differential(Kind):
    """softmax(K_1ᵀQ_1) − λ softmax(K_2ᵀQ_2) on the same values: differential attention."""

    name: ClassVar[str] = "differential"
    takes: ClassVar[tuple[str, ...]] = ("rope", "window")

    def gates(self, d: int, a: int) -> dict[str, Shape]:
        return {"Q2": (a, d), "K2": (a, d)}

    def numbers(self) -> dict[str, Shape]:
        return {"lambda": (1, 1)}

    def attend(self, b: Builder, head: Nodes, x: int, place: int) -> int:
        parts = []
        for mark in ("", "2"):
            q, k = (self.orient(b, head, letter + mark, x) for letter in "QK")
            parts.append(self.normalised(b, b.exp(self.scores(b, head, q, k, place))))
        P = b.subtract(parts[0], b.multiply(head["lambda"], parts[1]))
        return b.contract("cj,ji->ci", self.project(b, head, "V", x), P)

    def head_symmetries(self) -> tuple[str, ...]:
        return ("query-key", "second-query-key")
