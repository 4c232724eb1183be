"""Random residues that readers are evaluated at: what they see of a norm, and of a latent behind it."""

from __future__ import annotations

import numpy as np

from attngeom.exact.arrays import Array
from attngeom.models.affine import Affine
from attngeom.models.layer import LatentWeights, NormWeights
from attngeom.models.residues import P, apply, dot, integers, random_residues, residue
from attngeom.models.specification import Norm


class Vectors:
    """Random residue vectors by name and length, the same for every layer and model with the same seed."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self._known: dict[tuple[str, int, bool], Array] = {}

    def get(self, name: str, length: int, total_zero: bool = False) -> Array:
        key = (name, length, total_zero)
        if key not in self._known:
            self._known[key] = random_residues(length, f"{self.seed}/{name}/{total_zero}", total_zero=total_zero)
        return self._known[key]


class Input:
    """What readers of a norm see: γ ∘ x for the probes x, and β as the constant."""

    def __init__(self, norm: Norm | None, weights: NormWeights | None, width: int, vectors: Vectors) -> None:
        self.centred = norm is not None and norm.kind == "layer"
        self.vectors, self.width = vectors, width
        self.weights = NormWeights.plain(width) if weights is None else weights
        self.gain = np.ones(width, dtype=object)
        self.shift = np.zeros(width, dtype=object)
        if weights is not None:
            self.gain = (integers(weights.stored) + residue(weights.offset)) % P
            self.shift = integers(weights.bias)

    def probe(self, name: str) -> Array:
        return np.asarray(self.gain * self.vectors.get(name, self.width, self.centred) % P)

    def read(self, reader: Affine, *names: str) -> Array:
        """(…, out, 1 + number of names): constants first, then the values at the probes, as integers mod p."""
        columns = [self.shift, *(self.probe(name) for name in names)]
        weight = reader.weight.reshape(-1, reader.weight.shape[-1])
        values = apply(weight, columns)
        values[:, 0] = (values[:, 0] + integers(reader.bias.reshape(-1))) % P
        return values.reshape(*reader.bias.shape, len(columns))

    def read_turned(self, reader: Affine, *names: str) -> tuple[Array, Array]:
        """Real and imaginary parts of complex rows."""
        return (
            self.read(Affine(reader.weight.real, reader.bias.real), *names),
            self.read(Affine(reader.weight.imag, reader.bias.imag), *names),
        )


class LatentInput(Input):
    """What readers of a latent see: gain ∘ down(γ ∘ x, t), t being what the constant of the map is multiplied by.

    A norm follows the map, so that its constant is a column like the others: the composite has no constant.
    """

    def __init__(self, source: Input, latent: LatentWeights) -> None:
        self.vectors, self.width = source.vectors, source.width
        self.source, self.latent = source, latent
        self.own = integers(latent.gain)
        self.shift = np.zeros(len(latent.gain), dtype=object)

    def down(self, name: str) -> Array:
        constant, value = self.source.read(self.latent.down, name).T
        return np.asarray((value + constant * self.vectors.get(f"{name}, constant", 1)) % P)

    def probe(self, name: str) -> Array:
        return np.asarray(self.own * self.down(name) % P)

    def gram(self) -> int:
        """⟨down x, down x'⟩, which orthogonal changes of the latent keep."""
        return dot(self.down("gram"), self.down("gram'"))
