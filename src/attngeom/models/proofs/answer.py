"""The formula of a model checked by proof: every kind of its blocks at small width, and the whole model if it fits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from attngeom.errors import AttnGeomError, SizeError
from attngeom.models.proofs.block_proof import prove_block
from attngeom.models.proofs.evidence import RankProof
from attngeom.models.proofs.model_proof import prove_model
from attngeom.models.proofs.shrink import one_layer, shrink
from attngeom.models.specification import TransformerSpec
from attngeom.results import Result


@dataclass(frozen=True, kw_only=True, eq=False)
class RedundancyProof(Result):
    """Proofs by rank for a small model of the same kind: one per kind of block, and one of the whole.

    ``whole`` None: not tried, ``whole_reason`` says why. What is proven is the formula at the small sizes; at the
    sizes of the model it is the theorem of docs/theorems/models.md.
    """

    small: TransformerSpec
    blocks: tuple[RankProof, ...]
    whole: RankProof | None
    whole_reason: str

    @property
    def proofs(self) -> tuple[RankProof, ...]:
        return self.blocks if self.whole is None else (*self.blocks, self.whole)

    def to_json(self) -> dict[str, Any]:
        return {
            "standing": self.standing,
            "reason": self.reason,
            "width": self.small.width,
            "seed": self.seed,
            "blocks": [proof.to_json() for proof in self.blocks],
            "model": None if self.whole is None else self.whole.to_json(),
            "model_reason": self.whole_reason,
        }

    def rows(self) -> Mapping[str, Any]:
        return {proof.subject: f"{proof.standing}, {proof.reason}" for proof in self.proofs}

    def __str__(self) -> str:
        return "\n".join([f"{self.standing}: {self.reason}", *(f"  {proof}" for proof in self.proofs)])


def prove_redundancy(spec: TransformerSpec, *, seed: int = 0) -> RedundancyProof:
    """Whether formula, rank mod p and symmetries agree for a small model of the same kind.

    The blocks are always tried; the whole model if it has one stream of tokens and few square roots.
    """
    small = shrink(spec)
    blocks = []
    for stack in small.stacks:
        for kind, block in enumerate(stack.kinds):
            buckets = stack.relative_buckets if block.attention is not None else 0
            subject = f"{stack.name} block, kind {kind + 1}"
            blocks.append(prove_block(block, small.width, seed=seed, buckets=buckets, subject=subject))
    whole, reason = None, ""
    try:
        whole = _prove_whole(small, seed)
    except AttnGeomError as error:
        reason = str(error)
    return RedundancyProof(
        small=small, blocks=tuple(blocks), whole=whole, whole_reason=reason, seed=seed,
        **_standing(blocks, whole, reason, small.width),
    )  # fmt: skip


def _standing(blocks: list[RankProof], whole: RankProof | None, missing: str, width: int) -> dict[str, Any]:
    """proven: all bounds meet and agree with the formula."""
    proofs = blocks if whole is None else [*blocks, whole]
    open_cases = [str(proof) for proof in proofs if not proof.agrees]
    if open_cases:
        return {"standing": "undecided", "reason": "; ".join(open_cases)}
    scope = "the blocks" if whole is None else "the blocks and the whole model"
    text = f"formula = rank mod p = symmetries for {scope} at width {width}"
    return {"standing": "proven", "reason": text if whole is not None else f"{text}; whole model: {missing}"}


def _prove_whole(small: TransformerSpec, seed: int) -> RankProof:
    """The whole model; of a single kind of block one layer, where two have too many roots to be drawn."""
    alone = len(small.stacks) == 1 and len(small.stack.kinds) == 1
    try:
        return prove_model(small, seed=seed)
    except SizeError:
        if not alone:
            raise
    return prove_model(one_layer(small), seed=seed, subject="model of one layer")
