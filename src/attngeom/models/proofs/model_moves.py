"""Infinitesimal symmetries of a whole model: those of its blocks, and those that only its residual stream has."""

from __future__ import annotations

from itertools import combinations

import numpy as np

from attngeom.exact.arrays import Array
from attngeom.models.counts.residual import absorbs_shift, bends, last_norm, reads_bare_tables
from attngeom.models.counts.sublayers import sublayers
from attngeom.models.programs import sublayer_name
from attngeom.models.proofs.block_moves import block_moves
from attngeom.models.proofs.coordinates import ResiduePoint
from attngeom.models.proofs.formal import PRIME, constant, inverse
from attngeom.models.proofs.moves import Change, Moves, Reader, kernel
from attngeom.models.proofs.wiring import Matrices, readers_of, writers_of
from attngeom.models.specification import GroupedAttention, Norm, TransformerSpec


def model_moves(spec: TransformerSpec, point: ResiduePoint) -> Array:
    """Rows of weight changes that leave all logits unchanged, not necessarily independent."""
    builder = _ModelBuilder(spec, point)
    found = builder.block_rows()
    builder.head()
    builder.tables()
    builder.bare()
    if not builder.post:
        builder.mean()
        builder.rotations()
        builder.scale()
    own = np.array(builder.moves.vectors, np.int64).reshape(-1, point.size)
    return np.concatenate([*found, own])


class _ModelBuilder:
    def __init__(self, spec: TransformerSpec, point: ResiduePoint) -> None:
        self.spec, self.point, self.width = spec, point, spec.width
        self.moves = Moves(point)
        self.stack = spec.stack
        self.readers: list[tuple[Reader, Matrices]] = []
        self.writers: list[str] = []
        self.bare_writers: list[str] = []
        self.outputs: list[Norm | None] = []
        self.gained: dict[str, list[str]] = {}
        self.post = any(part.norms.stream is not None for block in self.stack.blocks for part in sublayers(block))
        for layer, block in enumerate(self.stack.blocks):
            for part in sublayers(block):
                name = f"layers.{layer}.{sublayer_name(part)}"
                shared = block.shared_norm and not isinstance(part.map, GroupedAttention)
                norm = block.attention_norms.input if shared else part.norms.input
                place = f"layers.{layer}.attention.input" if shared else f"{name}.input"
                self.readers.append((Reader(point, norm, place, self.width), readers_of(name, part.map, point)))
                self.outputs.append(part.norms.output)
                self.writers += writers_of(name, part.map, point)
                if part.norms.output is not None and part.norms.output.gain:
                    self.gained[f"{name}.output.gain"] = writers_of(name, part.map, point)
                if part.norms.output is None:
                    self.bare_writers += writers_of(name, part.map, point)
        self.final = self.last = Reader(point, self.stack.final_norm, "final", self.width)
        if self.stack.final_norm is None and self.post:
            self.last = Reader(point, last_norm(self.stack), f"{name}.stream", self.width)
        tied = spec.head is not None and spec.head.tied
        self.table_names = [name for name in ("tokens", "positions", "types") if name in point]
        self.free_tables = [name for name in self.table_names if not (tied and name == "tokens")]

    def block_rows(self) -> list[Array]:
        found = []
        incoming = Reader(self.point, self.stack.embedding_norm, "embedding", self.width)
        for layer, block in enumerate(self.stack.blocks):
            prefix = f"layers.{layer}."
            found.append(block_moves(block, self.width, self.point, prefix, incoming if self.post else None))
            last = sublayers(block)[-1]
            incoming = Reader(self.point, last.norms.stream, f"{prefix}{sublayer_name(last)}.stream", self.width)
        return found

    def head(self) -> None:
        """The last norm into the head; its bias into a tied head's bias."""
        head, norm = self.spec.head, last_norm(self.stack)
        if head is None or norm is None:
            return
        name, reader = self.last.name, self.last
        matrix = "tokens" if head.tied else "head"
        for index in range(self.width):
            unit = np.eye(self.width, dtype=np.int64)[index]
            if reader.bias is not None and (head.bias or not head.tied):
                self.moves.add(reader.shift(index, [(matrix, "head_bias")]))
            if not head.tied and norm.gain:
                change = {f"{name}.gain": reader.gain * unit, matrix: -self.point[matrix] * unit}
                if reader.bias is not None:
                    change[f"{name}.bias"] = reader.bias * unit
                self.moves.add(change)
        if not head.tied and reader.mean_direction is not None and (head.bias or reader.bias is None):
            for row in range(self.spec.vocabulary):
                unit = np.eye(self.spec.vocabulary, dtype=np.int64)[row]
                change = {matrix: unit[:, None] * reader.mean_direction, "head_bias": -unit * reader.mean_constant}
                self.moves.add(change)

    def mean_unseen(self) -> bool:
        readers = [reader for reader, _ in self.readers] + [self.final]
        return all(reader.mean_direction is not None for reader in readers)

    def tables(self) -> None:
        """Rows along 1 if the mean is not read, and vectors handed from one table to another."""
        embedding = self.stack.embedding_norm
        unseen = (not self.post and self.mean_unseen()) if embedding is None else embedding.kind == "layer"
        for name in self.free_tables if unseen else ():
            for row in range(self.point.shapes[name][0]):
                change = self.moves.zeros(name)
                change[row] = 1
                self.moves.add({name: change})
        for first, second in zip(self.free_tables, self.free_tables[1:], strict=False):
            for column in range(self.width):
                changes = {first: self.moves.zeros(first), second: self.moves.zeros(second)}
                changes[first][:, column], changes[second][:, column] = self._scale_of(second), -self._scale_of(first)
                self.moves.add(changes)

        for row, column in np.ndindex(self.stack.unread_positions, self.width):
            change = self.moves.zeros("positions")
            change[row, column] = 1
            self.moves.add({"positions": change})
        self._tied_shift()

    def bare(self) -> None:
        """Post-norm: the first attention reads the tables themselves, its LayerNorm the sum of them with its output."""
        if not reads_bare_tables(self.spec):
            return
        readers = self.readers[0][1]
        for unit in np.eye(self.width, dtype=np.int64):
            if self.free_tables == self.table_names:
                # x + 1 wᵀx, which the norm does not see, undone by the readers.
                change = {table: np.outer(self.point[table] @ unit, unit * 0 + 1) for table in self.table_names}
                self.moves.add(change | {w: -self.point[w].sum(axis=-1)[..., None] * unit for w, _ in readers})
            if self.free_tables and absorbs_shift(self.spec):
                table, scale = self.free_tables[0], self._scale_of(self.free_tables[0])
                change = {bias: -scale * (self.point[w] @ unit) for w, bias in readers}
                change |= {table: self.moves.zeros(table) + unit, "layers.0.attention.output_bias": -scale * unit}
                self.moves.add(change)
        if bends(self.spec):
            self._bend()

    def _bend(self) -> None:
        """A and δ with P(δ + DA − AD)P = 0, D the inner gains: x turned by A, D moved by δ, n of both norms turned."""
        d, norm = self.width, self.stack.block(0).attention_norms.stream
        inner = Reader(self.point, norm, "layers.0.attention.stream", d)
        units = list(np.eye(d, dtype=np.int64))
        flat = [units[i] - units[i + 1] for i in range(d - 1)]
        turns = [np.outer(one, two) - np.outer(two, one) for one, two in combinations(flat, 2)]
        gain = np.diag(inner.gain)
        effects = [np.outer(unit, unit) for unit in units] + [gain @ turn - turn @ gain for turn in turns]
        seen = [np.array(flat) @ effect @ np.array(flat).T % PRIME for effect in effects]
        for solution in kernel(np.array([effect.ravel() for effect in seen]).T):
            moved = np.diag(solution[:d])
            turn = sum((c * turn % PRIME for c, turn in zip(solution[d:], turns)), np.zeros((d, d), np.int64)) % PRIME
            change = dict(self._written(turn))
            change |= {w: -(self.point[w] @ turn % PRIME) for w, _ in self.readers[0][1]}
            change |= self._read(self.last, [("head", "head_bias")], turn)
            bent = (moved + gain @ turn) % PRIME
            change |= self._read(inner, self.readers[1][1], inverse(inner.gain)[:, None] * bent % PRIME)
            change[f"{inner.name}.gain"] = solution[:d]
            vector = self.moves.vector(change)
            if inner.bias is not None:
                for index, shift in enumerate(inner.bias @ turn.T % PRIME):
                    vector = (vector + shift * self.moves.vector(inner.shift(index, self.readers[1][1]))) % PRIME
            self.moves.vectors.append(vector)

    def _tied_shift(self) -> None:
        """All tokens moved along 1/gain of the last norm, another table against it, the head's bias by the rest."""
        head, others = self.spec.head, [name for name in self.table_names if name != "tokens"]
        reader = self.final
        if head is None or not head.tied or not others or reader.mean_direction is None:
            return
        if head.bias or reader.bias is None:
            row = reader.mean_direction
            scaled = row * self._scale_of("tokens") % PRIME
            change = {"tokens": self.moves.zeros("tokens") + row, others[0]: self.moves.zeros(others[0]) - scaled}
            if head.bias:
                change["head_bias"] = self.moves.zeros("head_bias") - reader.mean_constant
            self.moves.add(change)

    def _scale_of(self, table: str) -> int:
        """What a row of a table is multiplied by in the sum."""
        return constant(self.spec.embedding_scale) if table == "tokens" else 1

    def mean(self) -> None:
        """Everything that is written along 1, where only LayerNorms read."""
        if not self.mean_unseen():
            return
        for name in self.bare_writers:
            shape = self.point.shapes[name]
            if len(shape) == 1:
                self.moves.add({name: np.ones(shape, np.int64)})
                continue
            for head in range(shape[0] if len(shape) == 3 else 1):
                for column in range(shape[-1]):
                    change = self.moves.zeros(name)
                    change[(head, slice(None), column) if len(shape) == 3 else (slice(None), column)] = 1
                    self.moves.add({name: change})
        if self.stack.embedding_norm is not None and self.stack.embedding_norm.bias:
            self.moves.add({"embedding.bias": np.ones(self.width, np.int64)})

    def rotations(self) -> None:
        """x → x + ε A x with A antisymmetric (A1 = 0 behind LayerNorm), undone by every reader.

        Behind output norms W moves by (γ⁻¹ A γ − t) W and γ by t γ, where this keeps WᵀW.
        """
        head, final = self.spec.head, self.stack.final_norm
        if head is None or self.stack.embedding_norm is not None:
            return
        if head.tied and (final is None or final.gain or final.bias):
            return
        units = list(np.eye(self.width, dtype=np.int64))
        readers = [*self.readers, (self.final, [] if head.tied else [("head", "head_bias")])]
        if any(reader.mean_direction is not None for reader, _ in readers):
            units = [units[i] - units[i + 1] for i in range(self.width - 1)]
        turns = [np.outer(one, two) - np.outer(two, one) for one, two in combinations(units, 2)]
        if not turns:
            return
        for solution in kernel(self._length_changes(turns)):
            turn = np.tensordot(solution[: len(turns)], np.array(turns) % PRIME, 1) % PRIME
            change = dict(self._written(turn))
            scales = solution[len(turns) :].reshape(len(self.gained), self.width)
            for scale, (gain, writers) in zip(scales, self.gained.items(), strict=True):
                inner = (self._behind(gain, turn) - np.diag(scale)) % PRIME
                change[gain] = self.point[gain] * scale
                for name in writers:
                    values = self.point[name]
                    change[name] = (inner @ values if values.ndim > 1 else values @ inner.T) % PRIME
            for reader, matrices in readers:
                change |= self._read(reader, matrices, turn)
            self.moves.add(change)

    def _behind(self, gain: str, turn: Array) -> Array:
        """γ⁻¹ A γ."""
        values = self.point[gain]
        found: Array = inverse(values)[:, None] * (turn * values % PRIME) % PRIME
        return found

    def _length_changes(self, turns: list[Array]) -> Array:
        """What turns and scales of gains do to WᵀW, for all W in front of gains: rows are entries, columns unknowns."""
        rows = [np.zeros((0, len(turns) + len(self.gained) * self.width), np.int64)]
        for place, (gain, writers) in enumerate(self.gained.items()):
            matrix = np.concatenate([_columns(self.point[name]) for name in writers], axis=1)
            scales = [np.diag(PRIME - unit) for unit in np.eye(self.width, dtype=np.int64)]
            zero = np.zeros((self.width, self.width), np.int64)
            effects = [self._behind(gain, turn) for turn in turns]
            for other in range(len(self.gained)):
                effects += scales if other == place else [zero] * self.width
            forms = [matrix.T @ (effect % PRIME @ matrix % PRIME) % PRIME for effect in effects]
            rows.append(np.array([(form + form.T) % PRIME for form in forms]).reshape(len(effects), -1).T)
        return np.concatenate(rows)

    def _written(self, turn: Array) -> Change:
        change = {name: self.point[name] @ turn.T % PRIME for name in self.table_names}
        for name in self.writers:
            values = self.point[name]
            change[name] = (turn @ values if values.ndim > 1 else values @ turn.T) % PRIME
        return change

    def _read(self, reader: Reader, matrices: Matrices, turn: Array) -> Change:
        """W diag(gain) → W diag(gain)(1 − εA), the constant W·bias taken back."""
        change = {}
        for name, own in matrices:
            acting = self.point[name] * reader.gain % PRIME
            moved = -(acting @ turn % PRIME) * inverse(reader.gain) % PRIME
            if reader.bias is not None:
                constants = moved @ reader.bias % PRIME
                if own in self.point:
                    change[own] = -constants
                else:
                    row = inverse(reader.gain) * pow(reader.mean_constant, -1, PRIME) % PRIME
                    moved = (moved - constants[..., None] * row) % PRIME
            change[name] = moved
        return change

    def scale(self) -> None:
        """The whole stream times 1 + ε, if all norms that read it have eps = 0."""
        readers = [reader.norm for reader, _ in self.readers] + [self.stack.final_norm]
        if self.stack.embedding_norm is not None or any(norm is None or norm.eps for norm in readers):
            return
        head, final = self.spec.head, self.stack.final_norm
        tied = head is not None and head.tied
        if tied and not (final is not None and final.gain and not final.bias):
            return
        if any(norm is not None and not norm.gain for norm in self.outputs):
            return
        grown = [*self.table_names, *self.bare_writers]
        for layer, block in enumerate(self.stack.blocks):
            names = [f"layers.{layer}.{sublayer_name(part)}.output" for part in sublayers(block)]
            grown += [f"{name}.{part}" for name in names for part in ("gain", "bias")]
        self.moves.add(self.moves.scaled(grown, ["final.gain"] if tied else []))


def _columns(values: Array) -> Array:
    """A tensor that writes into the stream as a matrix of its columns."""
    if values.ndim == 1:
        return values[:, None]
    return np.moveaxis(values, -2, 0).reshape(values.shape[-2], -1)
