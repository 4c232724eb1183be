"""The maps that a block adds to its stream, in the order of the computation, with their norms."""

from __future__ import annotations

from dataclasses import dataclass

from attngeom.models.specification import MLP, Experts, GroupedAttention, Norm, Norms, TransformerBlock


@dataclass(frozen=True, kw_only=True)
class Sublayer:
    """A map that is added to the stream, and its norms; cross-attention reads keys and values from another stream.

    ``before`` is the norm behind which it reads: its own, or in a parallel block one that it shares.
    """

    map: GroupedAttention | MLP | Experts
    norms: Norms
    before: Norm | None
    is_cross: bool = False

    @property
    def label(self) -> str:
        if isinstance(self.map, GroupedAttention):
            return "cross-attention" if self.is_cross else "attention"
        return "MLP" if isinstance(self.map, MLP) else "experts"


def sublayers(block: TransformerBlock) -> list[Sublayer]:
    """Attention, cross-attention and MLP, as far as the block has them.

    >>> mlp = MLP(width=4, activation="silu", gated=True)
    >>> [part.label for part in sublayers(TransformerBlock(attention=None, mlp=mlp))]
    ['MLP']
    """
    found = []
    if block.attention is not None:
        norms = block.attention_norms
        found.append(Sublayer(map=block.attention, norms=norms, before=norms.input))
    if block.cross is not None:
        norms = block.cross_norms
        found.append(Sublayer(map=block.cross, norms=norms, before=norms.input, is_cross=True))
    if block.mlp is not None:
        norms = block.mlp_norms
        before = block.attention_norms.input if block.shared_norm else norms.input
        found.append(Sublayer(map=block.mlp, norms=norms, before=before))
    return found


def mlps(part: MLP | Experts) -> list[MLP]:
    """The kinds of hidden layers of a sublayer: itself, or an expert and the shared one."""
    if isinstance(part, MLP):
        return [part]
    return [part.expert] + ([] if part.shared is None else [part.shared])
