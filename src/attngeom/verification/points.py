"""The point of a certificate: weights, inputs, cotangents and formal attention mod p, from a name or a NumPy seed.

A name gives every tensor by SHA-256 (:mod:`attngeom.exact.points`); seeds stand in certificates of version 1 and in
transcripts. Which point it is does not matter: every point gives valid bounds.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from attngeom.errors import FormatError, SizeError
from attngeom.exact.domains import Array, PrimeField
from attngeom.exact.points import check_name, residues
from attngeom.limits.recheck import SAMPLE_ENTRIES, SUMS_PER_RESIDUE
from attngeom.limits.sizes import STORED_SEED
from attngeom.network.architecture import Architecture
from attngeom.network.weights import Weights, random_weights
from attngeom.verification.budget import afford
from attngeom.verification.jets import Samples
from attngeom.verification.reading import read_integer, require
from attngeom.verification.spans import reached_widths

Support = list[list[Any]]
"""For each layer at least the number of its input rows that are not zero."""


def place_key(record: Any) -> str:
    """The key under which a witness says its point."""
    return "seed" if isinstance(record, Mapping) and "seed" in record else "point"


def read_place(record: Mapping[str, Any]) -> Place:
    """The named or seeded point of a witness."""
    if "seed" in record:
        return SeededPlace(read_integer(record["seed"], 0, STORED_SEED, "seed"))
    return NamedPlace(check_name(record["point"]))


class Place(ABC):
    """Where the numbers of a point come from."""

    @abstractmethod
    def weights(self, architecture: Architecture, field: PrimeField) -> Weights:
        """All weights, over GF(p)."""

    @abstractmethod
    def inputs(self, architecture: Architecture, samples: int, tokens: int, field: PrimeField) -> tuple[Array, Array]:
        """Inputs (N, t, d_0) and cotangents (N, t, d_l) where nothing else is drawn."""

    @abstractmethod
    def samples(
        self, architecture: Architecture, support: Support | None, samples: int, tokens: int, field: PrimeField
    ) -> Samples:
        """Inputs, cotangents and formal attention of all heads, None if it is polynomial."""


@dataclass(frozen=True)
class NamedPlace(Place):
    """Weights ``l.h.Q``, of sample r ``Xr``, ``Cr`` and ``Pr.l.h``."""

    name: str

    def weights(self, architecture: Architecture, field: PrimeField) -> Weights:
        tensors = {}
        for index, layer in enumerate(architecture.layers):
            for head in range(layer.heads):
                for letter, shape in layer.tensor_shapes.items():
                    drawn = residues(self.name, f"{index}.{head}.{letter}", shape, field.p)
                    tensors[architecture.tensor_name(index, head, letter)] = drawn
        return Weights.from_tensors(architecture, tensors, field)

    def inputs(self, architecture: Architecture, samples: int, tokens: int, field: PrimeField) -> tuple[Array, Array]:
        def draw(label: str, width: int) -> Array:
            drawn = [residues(self.name, f"{label}{r}", (width, tokens), field.p).T for r in range(samples)]
            return np.array(drawn, dtype=np.int64).reshape(samples, tokens, width)

        return draw("X", architecture.widths[0]), draw("C", architecture.widths[-1])

    def samples(
        self, architecture: Architecture, support: Support | None, samples: int, tokens: int, field: PrimeField
    ) -> Samples:
        X, C = self.inputs(architecture, samples, tokens, field)
        if architecture.rule.is_polynomial:
            return X, C, None
        attention = []
        for index, is_symmetric in enumerate(symmetric_layers(architecture, support)):
            heads = []
            for head in range(architecture.heads):
                shape = (tokens, tokens)
                labels = [f"P{r}.{index}.{head}" for r in range(samples)]
                E = np.array([residues(self.name, label, shape, field.p) for label in labels], dtype=np.int64)
                P = formal_weights(architecture, E.reshape(samples, *shape), is_symmetric, field)
                require(P is not None, f"a sum of exponentials vanishes mod {field.p} at this point")
                assert P is not None
                heads.append(P)
            attention.append(heads)
        return X, C, attention


@dataclass(frozen=True)
class SeededPlace(Place):
    """Weights from a seed of NumPy's default generator, samples from the seed + 1."""

    seed: int

    def weights(self, architecture: Architecture, field: PrimeField) -> Weights:
        return random_weights(architecture, field, self.seed)

    def inputs(self, architecture: Architecture, samples: int, tokens: int, field: PrimeField) -> tuple[Array, Array]:
        return _draw_inputs(architecture, samples, tokens, field, np.random.default_rng(self.seed))

    def samples(
        self, architecture: Architecture, support: Support | None, samples: int, tokens: int, field: PrimeField
    ) -> Samples:
        rng = np.random.default_rng(self.seed + 1)
        X, C = _draw_inputs(architecture, samples, tokens, field, rng)
        if architecture.rule.is_polynomial:
            return X, C, None
        attention = []
        for is_symmetric in symmetric_layers(architecture, support):
            if is_symmetric and architecture.rule.is_normalised:
                _check_sums(architecture, samples, tokens, field)
            heads = []
            for _ in range(architecture.heads):
                P = None
                while P is None:
                    E = field.random((samples, tokens, tokens), rng)
                    P = formal_weights(architecture, E, is_symmetric, field)
                heads.append(P)
            attention.append(heads)
        return X, C, attention


def _draw_inputs(
    architecture: Architecture, samples: int, tokens: int, field: PrimeField, rng: np.random.Generator
) -> tuple[Array, Array]:
    X = field.random((samples, tokens, architecture.widths[0]), rng)
    return X, field.random((samples, tokens, architecture.widths[-1]), rng)


def _check_sums(architecture: Architecture, samples: int, tokens: int, field: PrimeField) -> None:
    """All sums are nonzero with probability about exp(−samples·tokens / p): a small p would take endless draws."""
    least = -(-samples * tokens // SUMS_PER_RESIDUE)
    if field.p < least:
        sums = f"{samples * tokens:,} random sums that are nonzero mod {field.p}"
        raise SizeError(f"{sums} take too many draws: p ≥ {least:,}")


def symmetric_layers(architecture: Architecture, support: Support | None) -> list[bool]:
    """Where the inputs of a layer span one dimension: scores are symmetric, and so are the exponentials that occur.

    Without a support all attention is free, as is right for identities.
    """
    symmetric: list[bool] = []
    if support is None:
        return [False] * architecture.num_layers
    for reached, sizes in zip(reached_widths(architecture), support):
        if reached == 1 and sizes[0] != 1:
            raise FormatError("a layer whose inputs span one dimension has a larger support")
        symmetric.append(sizes[0] == 1)
    return symmetric


def formal_weights(architecture: Architecture, E: Array, is_symmetric: bool, field: PrimeField) -> Array | None:
    """Formal attention (N, t, t) from free residues E; None if a sum of symmetric exponentials vanishes.

    Exponentials of scores are algebraically independent if the inputs of the layer span two dimensions: softmax takes
    any columns that sum to 1. For one dimension the scores are symmetric, and only symmetric exponentials are points
    that occur, divided by their sums; the last token stands for all that are left out. Sigmoid: E, symmetric if the
    scores are. A temperature divides A, which may be any matrix of its rank: it changes nothing.
    """
    p, tokens = field.p, E.shape[-1]
    E = np.triu(E) if architecture.mask.hides else E
    if is_symmetric and not architecture.mask.hides:
        E = np.triu(E) + np.swapaxes(np.triu(E, 1), -1, -2)
    if not architecture.rule.is_normalised:
        return E
    if not is_symmetric:
        E = E.copy()
        for i in range(tokens):
            E[:, i, i] = (1 - E[:, :, i].sum(axis=1) + E[:, i, i]) % p
        return E
    copies = architecture.tokens - tokens + 1
    if copies % p == 0:
        raise FormatError(f"{copies} copies of a token have no weight mod {p}; another prime is required")
    if not architecture.mask.hides:
        E[:, -1, :] = E[:, -1, :] * copies % p
    sums = E.sum(axis=1) % p
    if not np.all(sums):
        return None
    inverses = np.array([pow(int(x), -1, p) for x in sums.ravel()], dtype=np.int64)
    return E * inverses.reshape(len(E), 1, tokens) % p


def afford_samples(architecture: Architecture, samples: int, tokens: int) -> None:
    """Bound the memory of what :func:`draw_samples` draws."""
    entries = samples * tokens * (architecture.widths[0] + architecture.widths[-1])
    if not architecture.rule.is_polynomial:
        entries += samples * tokens**2 * architecture.num_layers * architecture.heads
    afford(entries, SAMPLE_ENTRIES, "random numbers for the samples")
