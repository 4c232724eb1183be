"""ALiBi: scores that fall with the distance of the tokens, by a slope for each head."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from attngeom.network.options.option import Nodes, Option, Shape

if TYPE_CHECKING:
    from attngeom.programs.builder import Builder


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
