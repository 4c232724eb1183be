"""Blocks and models as programs: one small function for each option of a sublayer."""

from attngeom.models.programs.blocks import block_program, block_shapes
from attngeom.models.programs.models import model_program

__all__ = ["block_program", "block_shapes", "model_program"]
