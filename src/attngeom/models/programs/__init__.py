"""Blocks and models as programs."""

from attngeom.models.programs.blocks import block_program, block_shapes, sublayer_name

__all__ = ["block_program", "block_shapes", "sublayer_name"]
