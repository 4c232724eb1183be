"""The operator B = F M Δ of a matrix-free lower bound, by the derivatives of :mod:`attngeom.verification.jets`.

M is the Jacobian of all outputs at samples that seeds determine, after the last linear map was cleared by r tokens with
independent features b (the output at a token is W b); F folds its rows into n numbers, Δ is diagonal without zeros.
Any F, Δ and any free columns give a valid operator: its rank is at most that of M.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil
from typing import Any

import numpy as np

from attngeom.exact.domains import GF, Array, BalancedField
from attngeom.limits.recheck import MINOR_SAMPLES, SAMPLE_ENTRIES
from attngeom.limits.sizes import STORED_SEED
from attngeom.network.architecture import Architecture
from attngeom.verification.budget import afford
from attngeom.verification.dimension import corners, read_support, restrict
from attngeom.verification.jets import JetPoint, MovedMatrix, Pass, tensors_of
from attngeom.verification.points import SeededPlace
from attngeom.verification.reading import read_integer, read_list, read_places, require


class ClearedOperator:
    """B = F M Δ at the point that the seeds of the record determine."""

    def __init__(self, architecture: Architecture, record: Any) -> None:
        p = read_integer(record["prime"], 2, 2**23, "prime")
        self.architecture, self.field = architecture, BalancedField(GF(p).p)
        seed = read_integer(record["seed"], 0, STORED_SEED, "seed")
        self.tokens = read_integer(record["tokens"], 1, architecture.tokens, "tokens")
        self.samples = read_integer(record["samples"], 1, MINOR_SAMPLES, "samples")
        self.support = read_support(architecture, record["support"])
        self.free = self._read_free(record["free"])
        self.size = sum(len(rows) for rows, _ in self.free.values())
        require(self.size > 0, "no column is free")
        self.point = self._draw(seed)
        features = self._features()
        pivots = record["pivots"]
        if pivots != []:
            pivots = read_places(pivots, features.shape[1], len(features), "pivots")
            last = len(architecture.layers) - 1
            letter = "V" if architecture.layers[-1].value_width is None else "O"
            names = [architecture.tensor_name(last, h, letter) for h in range(architecture.heads)]
            held = not any(len(self.free[name][0]) for name in names)
            require(held, "the last linear map is cleared and must be held fixed")
        self.pivots = np.array(pivots, dtype=np.intp)
        self.others = np.setdiff1d(np.arange(len(features)), self.pivots)
        self.cleared = len(self.pivots) * architecture.widths[-1]
        require(len(self.others) > 0, "no token is left")
        if self.cleared:
            pivot = features[self.pivots]
            require(self.field.rank(pivot) == len(pivot), "the features of the pivots are dependent")
            self.clear = self.field.matmul(features[self.others], self.field.inverse(pivot))
        rng = np.random.default_rng(seed + 2)
        n, outputs = self.size, len(self.others) * architecture.widths[-1]
        self.scale = self.field.random((n,), rng)
        self.scale[self.scale == 0] = 1
        layers = ceil(outputs / n) + 1
        afford(layers * n, SAMPLE_ENTRIES, "entries of a sparse matrix")
        self.gather = np.resize(rng.permutation(outputs), layers * n).reshape(layers, n)
        self.fold = self.field.random((layers, n), rng)

    def _read_free(self, value: Any) -> dict[str, tuple[Array, Array]]:
        """Rows and columns of the free entries of each tensor: its corner block from a column on, less a first few."""
        blocks, free = corners(self.architecture, self.support), {}
        pairs = read_list(value, len(blocks), "pairs of numbers, what is free in each tensor,")
        for (name, (rows, columns)), pair in zip(blocks.items(), pairs):
            first, skipped = read_list(pair, 2, "numbers for a tensor")
            start = read_integer(first, 0, columns, "free")
            places = np.indices((rows, columns - start)).reshape(2, -1)
            skip = read_integer(skipped, 0, places.shape[1], "free")
            free[name] = (places[0, skip:], places[1, skip:] + start)
        return free

    def _draw(self, seed: int) -> JetPoint:
        """Weights, inputs and formal attention from seeds."""
        architecture, integers = self.architecture, GF(self.field.p)
        entries = self.samples * self.tokens * (architecture.widths[0] + architecture.widths[-1])
        each = 2 * max(max(x.d_in, x.attention, x.value_width or 0) for x in architecture.layers) + self.tokens
        entries += self.samples * self.tokens * each * architecture.num_layers * architecture.heads
        afford(entries, 2 * SAMPLE_ENTRIES, "numbers of activations")
        place = SeededPlace(seed)
        weights = restrict(place.weights(architecture, integers), self.support)
        drawn = place.samples(architecture, self.support, self.samples, self.tokens, integers)
        return JetPoint(architecture, tensors_of(weights), integers.p, drawn)

    def _runs(self, vectors: Array) -> Iterator[Pass]:
        """The network moved along vectors (q, n), some samples at a time."""
        q, shapes, start, tensors = len(vectors), dict(self.architecture.tensor_shapes()), 0, []
        values = (tensor for layer in self.point.heads for head in layer for tensor in head)
        for value, (name, (rows, columns)) in zip(values, self.free.items()):
            stop, moves = start + len(rows), None
            if stop > start and q:
                moves = np.zeros((q, 1, *shapes[name]), dtype=vectors.dtype)
                moves[:, 0, rows, columns] = vectors[:, start:stop]
            tensors.append(MovedMatrix(value, moves))
            start = stop
        for chunk in self.point.chunks(range(self.samples), q):
            yield self.point.run(iter(tensors), chunk, 1, q)

    def _features(self) -> Array:
        """What the last linear map is applied to, (N·t, r)."""
        d_in, _, _, value_width = self.support[-1]
        features = []
        for at in self._runs(np.zeros((0, self.size))):
            jets = at.mixed if self.architecture.is_factored else [at.state @ P for P in at.attention]
            parts = [jet.parts[0, 0, :, : d_in if value_width is None else value_width] for jet in jets]
            features.append(np.swapaxes(np.concatenate(parts, axis=1), 1, 2))
        return np.concatenate(features).reshape(self.samples * self.tokens, -1)

    def push(self, vectors: Array) -> Array:
        """The derivative of all outputs along vectors (q, n): shape (q, N·t, d_l)."""
        tangents = np.concatenate([at.output.parts[0, 1:] for at in self._runs(vectors)], axis=1)
        return np.swapaxes(tangents, 2, 3).reshape(len(vectors), self.samples * self.tokens, -1)

    def apply(self, vectors: Array) -> Array:
        """B times vectors (q, n)."""
        field = self.field
        moved = self.push(field.times(self.scale, vectors))
        rest = moved[:, self.others]
        if self.cleared:
            rest = field.reduce(rest - field.matmul(self.clear, moved[:, self.pivots]))
        outputs = rest.reshape(len(vectors), -1)
        total = np.zeros_like(vectors)
        for coefficients, places in zip(self.fold, self.gather):
            total = field.reduce(total + field.times(coefficients, outputs[:, places]))
        return total
