"""What the search for heads answers: the heads, whether they are unique, and how sure that is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from attngeom import digits
from attngeom.layer.splitting import LayerMatrices, LayerSplitting
from attngeom.network import Weights
from attngeom.network.symmetry.element import matrix_to_json
from attngeom.results import Result

HeadsOutcome = Literal["found", "conjugate", "none", "undecided"]


@dataclass(frozen=True, eq=False)
class FoundHead(LayerMatrices):
    """One head: A (d×d) of rank a and V (d_out×d) of rank v over ``domain``, one point of its fiber up to scale."""

    a: int
    v: int

    @classmethod
    def of(cls, split: LayerSplitting) -> FoundHead:
        """The first point of a splitting that has one."""
        point = split.points[0]
        return cls(point.A, point.V, point.domain, split.rank_A, split.rank_V)

    def to_json(self, attention: int | None = None) -> dict[str, Any]:
        widths = {"attention": self.a, "value": self.v, "field": self.domain.label}
        return widths | super().to_json(attention)


@dataclass(frozen=True, kw_only=True, eq=False)
class Heads(Result):
    """The heads of one layer, found from its function.

    ``outcome``: "found"; "conjugate" (heads exist over the complex numbers and are not real); "none" (the function is
    not a direct sum of heads); "undecided". ``unique``: True if every layer with the same Σ rank V_h and Σ rank A_h has
    these heads (Theorem H), False if others exist, None if it cannot be told. ``ranks`` are the flattening ranks Σ v
    and Σ a, ``commutant`` the dimension of the commutant (exact input). For floats ``gap`` tells how clearly the heads
    are separated, ``residual`` is the relative error of their sum, and ``amplification`` how much random errors of the
    function grow in the projectors onto the heads.
    """

    outcome: HeadsOutcome
    blocks: tuple[FoundHead, ...] = ()
    unique: bool | None = None
    ranks: tuple[int, int] | None = None
    commutant: int | None = None
    gap: float | None = None
    residual: float | None = None
    amplification: float | None = None

    @property
    def is_positive(self) -> bool | None:
        return {"found": True, "none": False, "conjugate": False}.get(self.outcome)

    def to_json(self) -> dict[str, Any]:
        return {
            **self.select("outcome", "reason", "standing"),
            "num_heads": len(self.blocks) if self.blocks else None,
            "unique": self.unique,
            "ranks": None if self.ranks is None else list(self.ranks),
            **self.select("commutant", "gap"),
            "residual": self.residual,
            "amplification": self.amplification,
            "heads": [block.to_json() for block in self.blocks],
            "seed": self.seed,
        }

    def rows(self) -> Mapping[str, Any]:
        words = {True: "yes", False: "no", None: "cannot be told"}
        lines: dict[str, Any] = {"heads": self.outcome, "reason": self.reason}
        if self.blocks:
            lines["number"] = len(self.blocks)
            lines["widths (a, v)"] = ", ".join(f"({block.a}, {block.v})" for block in self.blocks)
            fields = sorted({block.domain.label for block in self.blocks})
            lines["field"] = ", ".join(fields)
        lines["unique"] = words[self.unique]
        if self.commutant is not None:
            lines["commutant"] = f"dimension {self.commutant}"
        if self.residual is not None:
            lines["residual"] = digits.error(self.residual)
        if self.gap is not None:
            lines["gap"] = digits.gap(self.gap)
        if self.amplification is not None:
            lines["amplification of noise"] = f"{self.amplification:.1e}"
        return lines


UniquenessVerdict = Literal["unique", "not_unique", "undecided"]


@dataclass(frozen=True)
class HeadPair:
    """Two heads, counted from 0, that can be mixed: the dimension of Hom(source, target) is positive."""

    source: int
    target: int
    dimension: int


@dataclass(frozen=True, kw_only=True, eq=False)
class Uniqueness(Result):
    """Whether the functions of the heads of one layer are determined, up to order, by the function of the layer.

    "unique": every layer of this architecture with the same function has the same head functions φ_h, so that its
    weights differ by the fibers of the single heads. "not_unique": ``witness`` holds weights of the same architecture
    and function with other head functions (rational weights; None for floats). ``pairs`` are the heads that can be
    mixed. ``commutant`` is the dimension Σ dim Hom(h, g) over all pairs of heads, lightning only.
    """

    verdict: UniquenessVerdict
    theorem: str | None
    pairs: tuple[HeadPair, ...] = ()
    commutant: int | None = None
    witness: Weights | None = None

    @property
    def is_positive(self) -> bool | None:
        return {"unique": True, "not_unique": False}.get(self.verdict)

    def to_json(self) -> dict[str, Any]:
        record: dict[str, Any] = {
            **self.select("verdict", "reason", "standing", "theorem"),
            "pairs": [[pair.source, pair.target, pair.dimension] for pair in self.pairs],
            "commutant": self.commutant,
            "witness": None,
        }
        if self.witness is not None:
            domain = self.witness.domain
            record["witness"] = {name: matrix_to_json(array, domain) for name, array in self.witness.tensors()}
        return record

    def rows(self) -> Mapping[str, Any]:
        lines: dict[str, Any] = {"heads": self.verdict.replace("_", " "), "reason": self.reason}
        if self.pairs:
            shown = [f"{p.source + 1} → {p.target + 1}" for p in self.pairs[:12]]
            lines["heads that mix"] = ", ".join(shown) + (" …" if len(self.pairs) > 12 else "")
        if self.witness is not None:
            lines["second set of heads"] = "found and checked; --json shows its weights"
        return lines
