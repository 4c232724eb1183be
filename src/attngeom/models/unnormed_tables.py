"""Post-norm models whose first attention reads the tables themselves: one choice of what no norm shows of them.

x = A⁻¹ x' + m: m is the mean of the tables that can move (lemma P (b)); A = P + 1φᵀ keeps x on 1^⊥ and replaces its
mean by φᵀx (lemma P (a)), chosen orthogonal to all other coordinates over the rows of the tables, of norm 1.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from attngeom.exact import lapack
from attngeom.exact.arrays import Array
from attngeom.groups.pivots import pivot_signs
from attngeom.limits.rounding import SINGULAR_CONDITION
from attngeom.models.affine import Affine
from attngeom.models.counts.residual import reads_unnormed_tables
from attngeom.models.layer import LayerWeights
from attngeom.models.readers import map_attention
from attngeom.models.specification import TransformerSpec
from attngeom.models.tensor_errors import Noise, TensorPart

Tables = dict[str, tuple[str, Array]]


@dataclass(frozen=True, eq=False)
class UnnormedTables:
    """The tables of a model as rows of x', and how the first layer reads x'."""

    tables: Tables
    back: Array
    shift: Array

    def read(self, layer: LayerWeights) -> LayerWeights:
        """The first layer as a function of x'."""

        def change(_: str, reader: Affine) -> Affine:
            return Affine(reader.weight @ self.back, reader.bias + reader.weight @ self.shift)

        assert layer.attention is not None
        attention = map_attention(layer.attention, change)
        return layer.with_(attention=replace(attention, output_bias=attention.output_bias + self.shift))

    def growth(self, part: str, stored: Array) -> Array:
        """Per row of a table, rounding of what is stored over the row of x'."""
        turn = lapack.inv(self.back)
        sizes = np.linalg.norm(self.tables[part][1], axis=1)
        summed = (stored**2 + self.shift**2) @ (turn**2).sum(axis=0)
        return np.asarray(np.sqrt(summed) / np.maximum(sizes, 1e-300))

    def noise(self, stored: LayerWeights, folded: LayerWeights) -> Noise:
        """Per part of the first layer the size of what was summed over what is left."""
        before, after = stored.attention, folded.attention
        assert before is not None and after is not None
        errors: dict[TensorPart, float] = {}
        shift, spread = self.shift**2, (self.back**2).sum(axis=1)
        lost = [float(np.linalg.norm(before.output_bias)), float(np.linalg.norm(self.shift))]
        for side in ("query", "key", "value"):
            for name in (side, f"rotated_{side}") if side != "value" else (side,):
                rows, left = getattr(before, name), getattr(after, name)
                constant = float(np.hypot(np.sqrt(rows.column_squares @ shift), np.linalg.norm(rows.bias)))
                own = TensorPart("attention", side)
                sizes = {own: (np.sqrt(rows.column_squares @ spread), left.size)}
                sizes[own.bias] = (constant, float(np.linalg.norm(left.bias)))
                for part, (summed, rest) in sizes.items():
                    errors[part] = max(errors.get(part, 1.0), float(summed) / rest if rest else 1.0)
                if side == "value":
                    lost.append(constant * float(np.abs(before.output).max()))
        rest = float(np.linalg.norm(after.output_bias))
        errors[TensorPart("attention", "output_bias")] = float(np.linalg.norm(lost)) / rest if rest else 1.0
        return errors


def fix_tables(spec: TransformerSpec, tables: Tables, tied: bool) -> UnnormedTables | None:
    """The choice for the given tables; a tied token table stays. None for models that read no unnormed tables."""
    if not reads_unnormed_tables(spec):
        return None
    free = {part: table for part, (_, table) in tables.items() if part != "embedding" or not tied}
    means = {part: table.mean(axis=0) for part, table in free.items()}
    shift = np.sum([*means.values(), np.zeros(spec.width)], axis=0)
    moved = {part: table - means[part] for part, table in free.items()}
    turn = np.eye(spec.width)
    if "embedding" in free:
        rows = np.concatenate([*moved.values()]).astype(np.float64)
        gram = rows.T @ rows
        inverse, conditions = lapack.inverses(gram[None])
        if conditions[0] < SINGULAR_CONDITION:
            row = inverse[0].sum(axis=1) / np.sqrt(inverse[0].sum())
            row = row * pivot_signs((rows @ row)[None])[0]
            turn = turn - 1 / spec.width + row
    rotated = {part: (tables[part][0], table @ turn.T) for part, table in moved.items()}
    return UnnormedTables({**tables, **rotated}, lapack.inv(turn), shift)
