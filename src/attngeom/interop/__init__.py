"""Weights in and out: attngeom's own files, and attention weights of other libraries."""

from attngeom.interop.checkpoints import CheckpointImport, export_state, import_checkpoint, import_state
from attngeom.interop.weights import read_weights, write_weights

__all__ = ["CheckpointImport", "export_state", "import_checkpoint", "import_state", "read_weights", "write_weights"]


def __dir__() -> list[str]:
    return sorted(__all__)
