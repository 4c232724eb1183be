"""The operator B = F M Δ of a matrix-free lower bound, by code of its own: derivatives in the convention X = d×t.

M is the Jacobian of all outputs at samples that seeds determine, after the last linear map was cleared by r tokens with
independent features b (the output at a token is W b); F folds its rows into n numbers, Δ is diagonal without zeros.
Any F, Δ and any free columns give a valid operator: its rank is at most that of M.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil
from typing import Any

import numpy as np

from attngeom.exact.domains import GF, Array, BalancedField
from attngeom.network.architecture import Architecture
from attngeom.network.weights import Head, random_weights
from attngeom.verification.budget import MAX_SAMPLE_ENTRIES, afford
from attngeom.verification.dimension import (
    MAX_SAMPLES,
    MAX_SEED,
    corners,
    draw_samples,
    read_places,
    read_support,
    restrict,
)
from attngeom.verification.reading import read_integer, read_list, require


@dataclass(frozen=True, eq=False)
class HeadAtSamples:
    """One head at all samples: projections (N, ·, t), attention P (N, t, t), mixed values v P."""

    head: Head
    names: tuple[str, ...]
    q: Array
    k: Array
    v: Array
    P: Array
    mixed: Array


class ClearedOperator:
    """B = F M Δ at the point that the seeds of the record determine."""

    def __init__(self, architecture: Architecture, record: Any) -> None:
        p = read_integer(record["prime"], 2, 2**23, "prime")
        self.architecture, self.field = architecture, BalancedField(GF(p).p)
        seed = read_integer(record["seed"], 0, MAX_SEED, "seed")
        self.tokens = read_integer(record["tokens"], 1, architecture.tokens, "tokens")
        self.samples = read_integer(record["samples"], 1, MAX_SAMPLES, "samples")
        self.support = read_support(architecture, record["support"])
        self.free = self._read_free(record["free"])
        self.size = sum(len(rows) for rows, _ in self.free.values())
        require(self.size > 0, "no column is free")
        self._draw(seed)
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
        afford(layers * n, MAX_SAMPLE_ENTRIES, "entries of a sparse matrix")
        self.gather = np.resize(rng.permutation(outputs), layers * n).reshape(layers, n)
        self.fold = self.field.random((layers, n), rng)

    def _read_free(self, value: Any) -> dict[str, tuple[Array, Array]]:
        """Rows and columns of the free entries of each tensor: its corner block from a column on, less a first few."""
        blocks, found = corners(self.architecture, self.support), {}
        pairs = read_list(value, len(blocks), "pairs of numbers, what is free in each tensor,")
        for (name, (rows, columns)), pair in zip(blocks.items(), pairs):
            first, skipped = read_list(pair, 2, "numbers for a tensor")
            start = read_integer(first, 0, columns, "free")
            places = np.indices((rows, columns - start)).reshape(2, -1)
            skip = read_integer(skipped, 0, places.shape[1], "free")
            found[name] = (places[0, skip:], places[1, skip:] + start)
        return found

    def _draw(self, seed: int) -> None:
        """Weights, inputs and formal attention from seeds, then the forward pass."""
        architecture, field, integers = self.architecture, self.field, GF(self.field.p)
        entries = self.samples * self.tokens * (architecture.widths[0] + architecture.widths[-1])
        each = 2 * max(max(x.d_in, x.attention, x.value_width or 0) for x in architecture.layers) + self.tokens
        entries += self.samples * self.tokens * each * architecture.num_layers * architecture.heads
        afford(entries, 2 * MAX_SAMPLE_ENTRIES, "numbers of activations")
        weights = restrict(random_weights(architecture, integers, seed), self.support)
        inputs, _, formal = draw_samples(architecture, self.support, self.samples, self.tokens, integers, seed + 1)
        X = field.from_residues(np.ascontiguousarray(np.swapaxes(inputs, 1, 2)))
        names = iter(dict(weights.tensors()))
        self.inputs: list[Array] = []
        self.heads: list[list[HeadAtSamples]] = []
        for index, heads in enumerate(weights.layers):
            self.inputs.append(X)
            points = []
            total = X if architecture.residual else None
            for h, head in enumerate(heads):
                head = Head(*(field.from_residues(tensor) for tensor in head.tensors.values()))
                q, k, v = (field.matmul(matrix, X) for matrix in (head.Q, head.K, head.V))
                if formal is None:
                    P = self._hide(field.matmul(_turn(k), q))
                else:
                    P = field.from_residues(formal[index][h] % field.p)
                mixed = field.matmul(v, P)
                points.append(HeadAtSamples(head, tuple(next(names) for _ in head.tensors), q, k, v, P, mixed))
                out = mixed if head.O is None else field.matmul(head.O, mixed)
                total = out if total is None else field.reduce(total + out)
            assert total is not None
            self.heads.append(points)
            X = total

    def _hide(self, S: Array) -> Array:
        return np.triu(S) if self.architecture.causal else S

    def _features(self) -> Array:
        """What the last linear map is applied to, (N·t, r)."""
        d_in, _, _, value_width = self.support[-1]
        parts = []
        for point in self.heads[-1]:
            mixed = self.field.matmul(self.inputs[-1], point.P) if point.head.O is None else point.mixed
            parts.append(mixed[:, : d_in if value_width is None else value_width])
        return _turn(np.concatenate(parts, axis=1)).reshape(self.samples * self.tokens, -1)

    def _spread(self, vectors: Array) -> Iterator[tuple[str, Array | None]]:
        """Vectors (q, n) as matrices of every tensor, None where nothing is free."""
        shapes, start = dict(self.architecture.tensor_shapes()), 0
        for name, (rows, columns) in self.free.items():
            stop = start + len(rows)
            if stop == start:
                yield name, None
                continue
            matrix = np.zeros((len(vectors), 1, *shapes[name]), dtype=vectors.dtype)
            matrix[:, 0, rows, columns] = vectors[:, start:stop]
            yield name, matrix
            start = stop

    def push(self, vectors: Array) -> Array:
        """The derivative of all outputs along vectors (q, n): shape (q, N·t, d_l)."""
        field, moves = self.field, dict(self._spread(vectors))
        dX: Array | None = None

        def moved(name: str, matrix: Array, value: Array, change: Array | None) -> Array | None:
            move = moves[name]
            parts = [] if move is None else [field.matmul(move, value)]
            parts += [] if change is None else [field.matmul(matrix, change)]
            return _add(field, *parts)

        for X, points in zip(self.inputs, self.heads):
            outs = [dX] if self.architecture.residual and dX is not None else []
            for point in points:
                head = point.head
                dq, dk, dv = (moved(n, m, X, dX) for n, m in zip(point.names, (head.Q, head.K, head.V)))
                parts = [] if dk is None else [field.matmul(_turn(dk), point.q)]
                parts += [] if dq is None else [field.matmul(_turn(point.k), dq)]
                dS = _add(field, *parts)
                parts = [] if dv is None else [field.matmul(dv, point.P)]
                parts += [] if dS is None else [field.matmul(point.v, self._push_scores(point.P, dS))]
                out = _add(field, *parts)
                if head.O is not None:
                    out = moved(point.names[3], head.O, point.mixed, out)
                outs += [] if out is None else [out]
            dX = _add(field, *outs)
        require(dX is not None, "no free weight changes the output")
        assert dX is not None
        return _turn(dX).reshape(len(vectors), self.samples * self.tokens, -1)

    def _push_scores(self, P: Array, dS: Array) -> Array:
        if self.architecture.rule.is_polynomial:
            return self._hide(dS)
        field = self.field
        weighted = field.times(P, dS)
        # σ' = σ(1 − σ); softmax: P (Ṡ − Σ P Ṡ).
        total = weighted if self.architecture.kind == "sigmoid" else field.reduce(weighted.sum(axis=-2, keepdims=True))
        return field.reduce(weighted - field.times(P, total))

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


def _turn(a: Array) -> Array:
    return np.swapaxes(a, -1, -2)


def _add(field: BalancedField, *parts: Array) -> Array | None:
    total = None
    for part in parts:
        total = part if total is None else field.reduce(total + part)
    return total
