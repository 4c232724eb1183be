"""All infinitesimal symmetries of a block at a point mod p: their span bounds the dimension of its functions."""

from __future__ import annotations

import numpy as np

from attngeom.exact.arrays import Array
from attngeom.models.counts.parts import unit_scales
from attngeom.models.counts.sublayers import Sublayer, sublayers
from attngeom.models.programs import sublayer_name
from attngeom.models.proofs.attention_moves import AttentionMoves
from attngeom.models.proofs.coordinates import ResiduePoint
from attngeom.models.proofs.formal import PRIME, constant, inverse
from attngeom.models.proofs.moves import Moves, Reader, Shifts, combine, kernel
from attngeom.models.proofs.wiring import readers_of, writers_of
from attngeom.models.specification import MLP, Experts, GroupedAttention, TransformerBlock


def block_moves(
    block: TransformerBlock, width: int, point: ResiduePoint, prefix: str = "", incoming: Reader | None = None
) -> Array:
    """Rows of weight changes that leave the block's function unchanged (lemmas L2 to L6), not necessarily independent.

    ``point`` may hold more weights than the block's: their names are those of `block_shapes` with the prefix.
    ``incoming``: the norm whose output the block receives (post-norm stacks); None: arbitrary vectors.
    """
    builder = _Builder(block, width, point, prefix, incoming or Reader(point, None, "", width))
    builder.run()
    found = np.array(builder.moves.vectors, np.int64).reshape(-1, point.size)
    return np.concatenate([found, *builder.combined])


class _Builder:
    """Walks through the sublayers and collects moves."""

    def __init__(self, block: TransformerBlock, width: int, point: ResiduePoint, prefix: str, incoming: Reader) -> None:
        self.block, self.width, self.point, self.prefix = block, width, point, prefix
        self.incoming = incoming
        self.moves = Moves(point)
        self.combined: list[Array] = []

    def run(self) -> None:
        steps: list[tuple[Shifts, bool]] = []
        stream = self.incoming
        parts = sublayers(self.block)
        for index, sublayer in enumerate(parts):
            norms = sublayer.norms
            name = self.prefix + sublayer_name(sublayer)
            reader = stream if norms.stream is not None else self._reader(sublayer, name)
            mean_unseen = norms.stream is not None and norms.stream.kind == "layer"
            pairs = self._map(sublayer, name, reader, mean_unseen)
            if norms.stream is not None:
                pairs += self._incoming(reader, name, sublayer)
            elif norms.input is not None:
                self._input_norm(reader, name)
            shifts = Shifts.collect(pairs, self.point.size, self.width)
            self._output_scale(sublayer, name)
            if norms.output is not None:
                self.combined.append(combine([(shifts, False)]))
                shifts = Shifts.collect([], self.point.size, self.width)
            if norms.stream is not None:
                self.combined.append(combine([(shifts, mean_unseen)]))
                if stream.norm is not None and stream.norm.gain and norms.stream.eps == 0:
                    self._scale_between(stream, name, sublayer)
                stream = Reader(self.point, norms.stream, f"{name}.stream", self.width)
                continue
            following = parts[index + 1].norms.input if index + 1 < len(parts) else None
            steps.append((shifts, following is not None and following.kind == "layer"))
        if steps and self.block.parallel:
            total = steps[0][0]
            for shifts, _ in steps[1:]:
                total = total.joined(shifts)
            steps = [(total, False)]
        if steps:
            self.combined.append(combine(steps))

    def _reader(self, sublayer: Sublayer, name: str) -> Reader:
        if self.block.shared_norm and not isinstance(sublayer.map, GroupedAttention):
            return Reader(self.point, self.block.attention_norms.input, f"{self.prefix}attention.input", self.width)
        return Reader(self.point, sublayer.norms.input, f"{name}.input", self.width)

    def _map(self, sublayer: Sublayer, name: str, reader: Reader, mean_unseen: bool) -> list[tuple[Array, Array]]:
        """Symmetries of the map itself; returned: changes that add constants to its output."""
        part = sublayer.map
        if isinstance(part, GroupedAttention):
            source = Reader(self.point, None, "", self.width) if sublayer.is_cross else reader
            attention = AttentionMoves(self.moves, name, part, (reader, source), mean_unseen)
            attention.add_all()
            return attention.shifts()
        if isinstance(part, MLP):
            self._mlp(name, part, reader, mean_unseen)
            return self._bias_shifts([f"{name}.down_bias"])
        for index in range(part.count):
            self._mlp(f"{name}.{index}", part.expert, reader, mean_unseen)
        if part.shared is not None:
            self._mlp(f"{name}.shared", part.shared, reader, mean_unseen)
        self._router(name, part, reader)
        for index in range(part.count) if mean_unseen else ():
            self.moves.add({f"{name}.{index}.down_bias": np.ones(self.width, np.int64)})
        pairs = self._bias_shifts([f"{name}.shared.down_bias"])
        if part.sums_to_constant:
            pairs += self._bias_shifts([f"{name}.{index}.down_bias" for index in range(part.count)], part.factor)
        return pairs

    def _bias_shifts(self, names: list[str], factor: float = 1.0) -> list[tuple[Array, Array]]:
        if names[0] not in self.point:
            return []
        units = np.eye(self.width, dtype=np.int64)
        return [(self.moves.vector(dict.fromkeys(names, unit)), unit * constant(factor) % PRIME) for unit in units]

    def _mlp(self, name: str, mlp: MLP, reader: Reader, mean_unseen: bool) -> None:
        rows = ["gate", "up"] if mlp.gated else ["up"]
        for unit in range(mlp.width):
            for part in _scaled_rows(mlp, reader):
                self.moves.add(self._unit_scale(name, mlp, part, unit, reader))
            if reader.mean_direction is not None:
                self._mean_rows([(f"{name}.{row}", f"{name}.{row}_bias") for row in rows], reader, unit)
            if mean_unseen:
                change = self.moves.zeros(f"{name}.down")
                change[:, unit] = 1
                self.moves.add({f"{name}.down": change})

    def _unit_scale(self, name: str, mlp: MLP, part: str, unit: int, reader: Reader) -> dict[str, Array]:
        """The in-row of a hidden unit times 1 + ε, its out-column times 1 − ε; up + 1 counts as a row with constant."""
        point, change = self.point, {}
        for tensor in (f"{name}.{part}", f"{name}.{part}_bias"):
            if tensor in point:
                change[tensor] = self.moves.zeros(tensor)
                change[tensor][unit] = point[tensor][unit]
        if mlp.activation == "swiglu_oai":
            if mlp.up_bias:
                change[f"{name}.{part}_bias"][unit] += 1
            else:
                row = inverse(reader.gain) * pow(reader.mean_constant, -1, PRIME) % PRIME
                change[f"{name}.{part}"][unit] += row
        column = self.moves.zeros(f"{name}.down")
        column[:, unit] = -point[f"{name}.down"][:, unit]
        return change | {f"{name}.down": column}

    def _mean_rows(self, matrices: list[tuple[str, str]], reader: Reader, row: int) -> None:
        """A row along 1/gain of LayerNorm readers, its constant taken back by the bias."""
        assert reader.mean_direction is not None
        for name, own in matrices:
            if own in self.point or reader.bias is None:
                change = self.moves.zeros(name)
                change[row] = reader.mean_direction
                moved = {name: change}
                if own in self.point:
                    moved[own] = self.moves.zeros(own)
                    moved[own][row] = -reader.mean_constant
                self.moves.add(moved)

    def _router(self, name: str, experts: Experts, reader: Reader) -> None:
        matrix, own = f"{name}.router", f"{name}.router_bias"
        if reader.mean_direction is not None:
            for row in range(experts.count):
                self._mean_rows([(matrix, own)], reader, row)
        if experts.router == "softmax":
            for column in range(self.width):
                change = self.moves.zeros(matrix)
                change[:, column] = 1
                self.moves.add({matrix: change})
            if own in self.point:
                self.moves.add({own: np.ones(experts.count, np.int64)})

    def _input_norm(self, reader: Reader, name: str) -> None:
        """Gains into the columns of the readers, biases into their constants."""
        readers = []
        for sublayer in sublayers(self.block):
            other = self.prefix + sublayer_name(sublayer)
            if other == name or (self.block.shared_norm and not isinstance(sublayer.map, GroupedAttention)):
                readers += readers_of(other, sublayer.map, self.point, sublayer.is_cross)
        for index in range(self.width):
            unit = np.eye(self.width, dtype=np.int64)[index]
            if f"{reader.name}.gain" in self.point:
                change = {f"{reader.name}.gain": reader.gain * unit}
                if reader.bias is not None:
                    change[f"{reader.name}.bias"] = reader.bias * unit
                self.moves.add(change | {matrix: -self.point[matrix] * unit for matrix, _ in readers})
            if reader.bias is not None:
                self.moves.add(reader.shift(index, readers))

    def _incoming(self, reader: Reader, name: str, sublayer: Sublayer) -> list[tuple[Array, Array]]:
        """Post-norm: the bias of the norm before moves readers (compensated) and the stream itself."""
        if reader.bias is None:
            return []
        readers = readers_of(name, sublayer.map, self.point, sublayer.is_cross)
        units = np.eye(self.width, dtype=np.int64)
        return [(self.moves.vector(reader.shift(index, readers)), units[index]) for index in range(self.width)]

    def _output_scale(self, sublayer: Sublayer, name: str) -> None:
        output = sublayer.norms.output
        if output is None:
            return
        writers = writers_of(name, sublayer.map, self.point)
        if output.eps == 0:
            self.moves.add(self.moves.scaled(writers, []))
        if output.gain and not isinstance(sublayer.map, Experts):
            self._loose_gains(f"{name}.output.gain", writers, output.eps)

    def _loose_gains(self, gain: str, writers: list[str], eps: float) -> None:
        """Gain l times 1 + t_l, row l of the writers times 1 + s − t_l, where Σ t_l (row l)(row l)ᵀ takes eps back.

        The output is s times larger before and after the norm: lengths grow by s² with eps, so the constant part of
        the square, if a bias gives one, has to grow by d · eps · (s² − 1) more.
        """
        point = self.point
        rows = {one: np.moveaxis(point[one], -2 if point[one].ndim > 1 else -1, 0) for one in writers}
        matrix = np.concatenate([values.reshape(self.width, -1) for values in rows.values()], axis=1)
        forms = np.einsum("li,lj->lij", matrix, matrix).reshape(self.width, -1) % PRIME
        if writers[-1].endswith("bias"):
            corner = np.zeros((1, forms.shape[1]), np.int64)
            corner[0, -1] = self.width * constant(eps) % PRIME
            forms = np.concatenate([forms, corner])
        for found in kernel(forms.T):
            scales, common = found[: self.width], int(found[self.width :].sum())
            change = {gain: point[gain] * scales}
            for writer, values in rows.items():
                moved = values * (common - scales).reshape(-1, *[1] * (values.ndim - 1)) % PRIME
                change[writer] = moved if values.ndim == 1 else np.moveaxis(moved, 0, -2)
            self.moves.add(change)

    def _scale_between(self, stream: Reader, name: str, sublayer: Sublayer) -> None:
        """The stream between two post-norms times 1 + ε, if the second one has eps = 0."""
        grown = [f"{stream.name}.gain", f"{stream.name}.bias", *writers_of(name, sublayer.map, self.point)]
        self.moves.add(
            self.moves.scaled(
                grown, [matrix for matrix, _ in readers_of(name, sublayer.map, self.point, sublayer.is_cross)]
            )
        )


def _scaled_rows(mlp: MLP, reader: Reader) -> list[str]:
    """The in-rows of a unit that can be scaled against its out-column."""
    if not unit_scales(mlp, mlp.up_bias or reader.bias is not None):
        return []
    rows = ["up"] if mlp.gated or mlp.activation == "relu" else []
    return rows + (["gate"] if mlp.gated and mlp.activation == "relu" else [])
