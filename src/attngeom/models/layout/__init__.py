"""Where the weights of a layer lie in a checkpoint: names and packings, read and written by the same tables.

A `BlockLayout` names the tensors of one block; `read_layer` turns them into `LayerWeights` and `write_layer` turns them
back, so a family is a table of names and not code. Rows of projections are outputs unless ``transposed`` (Conv1D).
"""

from __future__ import annotations

from attngeom.models.layout.block import norm_specs, read_layer, write_layer
from attngeom.models.layout.tables import (
    AttentionLayout,
    BlockLayout,
    Load,
    MixerLayout,
    MLPLayout,
    Packed,
    read_norm,
    split_attention,
    write_norm,
)

__all__ = [
    "AttentionLayout",
    "BlockLayout",
    "Load",
    "MLPLayout",
    "MixerLayout",
    "Packed",
    "norm_specs",
    "read_layer",
    "read_norm",
    "split_attention",
    "write_layer",
    "write_norm",
]
