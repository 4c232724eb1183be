"""Which tensors of a sublayer read the residual stream, and which write into it."""

from __future__ import annotations

from attngeom.models.proofs.coordinates import ResiduePoint
from attngeom.models.specification import MLP, Experts, GroupedAttention

Matrices = list[tuple[str, str]]
"""(matrix, bias) by name; the bias need not exist."""


def mlps_of(name: str, part: MLP | Experts) -> list[str]:
    """The names of the MLPs of a sublayer: itself, or its experts and the shared one."""
    if isinstance(part, MLP):
        return [name]
    return [f"{name}.{index}" for index in range(part.count)] + ([f"{name}.shared"] if part.shared is not None else [])


def readers_of(
    name: str, part: GroupedAttention | MLP | Experts, point: ResiduePoint, is_cross: bool = False
) -> Matrices:
    """All that reads the stream; of cross-attention only the queries do."""
    if isinstance(part, GroupedAttention):
        queries, sources = _attention_readers(name, part)
        return queries if is_cross else queries + sources
    found = [(f"{name}.router", f"{name}.router_bias")] if isinstance(part, Experts) else []
    for one in mlps_of(name, part):
        found += [(f"{one}.{row}", f"{one}.{row}_bias") for row in ("gate", "up") if f"{one}.{row}" in point]
    return found


def _attention_readers(name: str, attention: GroupedAttention) -> tuple[Matrices, Matrices]:
    if attention.latent is not None:
        queries = "query" if attention.latent.query_rank is None else "query_latent"
        sources = ["key_latent", *(["key_turned"] if attention.rotated else [])]
    else:
        queries, sources = "query", ["key", "value"]
    return [(f"{name}.{queries}", f"{name}.{queries}_bias")], [
        (f"{name}.{part}", f"{name}.{part}_bias") for part in sources
    ]


def writers_of(name: str, part: GroupedAttention | MLP | Experts, point: ResiduePoint) -> list[str]:
    """All tensors that the output of a sublayer is proportional to."""
    if isinstance(part, GroupedAttention):
        names = [f"{name}.output", f"{name}.output_bias"]
    else:
        names = [f"{one}.{row}" for one in mlps_of(name, part) for row in ("down", "down_bias")]
    return [tensor for tensor in names if tensor in point]
