"""Tables of tensor names of one block: where attention, MLP and norms lie and how they are packed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from attngeom.exact.arrays import Array

Load = Callable[[str, tuple[int, ...]], Array]
"""load(name, shape): the tensor as float64; the reader refuses another shape in one line."""


@dataclass(frozen=True)
class AttentionLayout:
    """How q, k, v are packed: ``split`` in three tensors, ``stacked`` all q rows, all k, all v in one, ``grouped`` per
    group its q, k, v rows, ``partitioned`` per fourth of the heads their q, v, k rows (CodeGen).
    """

    packing: Literal["split", "stacked", "grouped", "partitioned", "latent"]
    output: str
    query: str = ""
    key: str = ""
    value: str = ""
    fused: str = ""
    transposed: bool = False
    query_norm: str = ""
    key_norm: str = ""
    extras: Mapping[str, str] = field(default_factory=dict)
    query_down: str = ""
    key_down: str = ""
    rotated_last: bool = False


def split_attention(pattern: str, output: str, parts: tuple[str, str, str] = ("q", "k", "v")) -> AttentionLayout:
    """Projections of their own, named by a pattern with ``{}`` for the part."""
    query, key, value = (pattern.format(part) for part in parts)
    return AttentionLayout(packing="split", query=query, key=key, value=value, output=output)


@dataclass(frozen=True)
class MLPLayout:
    """``split``: up, down and gate if gated; ``fused``: gate rows over up rows; experts: one by one, ``packed``
    with gate and up in turn, or ``stacked`` with gate rows over up rows.
    """

    packing: Literal["split", "fused", "experts", "packed_experts", "stacked_experts"]
    up: str
    down: str
    gate: str = ""
    transposed: bool = False
    router: str = ""
    correction: str = ""
    expert: str = ""
    shared: str = ""


@dataclass(frozen=True)
class BlockLayout:
    """Tensor names of one block below ``prefix``, which holds ``{}`` for the number of the layer."""

    prefix: str
    attention: AttentionLayout
    mlp: MLPLayout
    norms: Mapping[str, str] = field(default_factory=dict)
    cross: AttentionLayout | None = None
    experts: MLPLayout | None = None
