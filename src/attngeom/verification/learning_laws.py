"""The law of the inputs and the loss of a claim about a learning coefficient: Theorem X of docs/theorems/learning.md.

Written independently of :mod:`attngeom.learning`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import combinations_with_replacement, product
from typing import Any

import numpy as np

from attngeom.errors import FormatError
from attngeom.exact.domains import GF, QQ, Array
from attngeom.exact.modular import rank_mod_p
from attngeom.exact.numbers import WORD_PRIME
from attngeom.limits.recheck import LOCAL_SAMPLES, SAMPLE_ENTRIES
from attngeom.network.architecture import Architecture
from attngeom.network.weights import Weights
from attngeom.verification.budget import afford
from attngeom.verification.reading import read_array, read_choice, require

LAW_KEYS = ("loss", "vocabulary", "inputs")


@dataclass(frozen=True, eq=False)
class LearningLaw:
    """Squared errors or cross-entropy; inputs with a density, or exactly the ``inputs`` (N, d_0, t), all of them."""

    loss: str
    inputs: Array | None
    words: str

    @classmethod
    def from_json(cls, claim: Mapping[str, Any], architecture: Architecture) -> LearningLaw:
        """The law of a claim; a vocabulary stands for all sequences of its columns."""
        d, t = architecture.widths[0], architecture.tokens
        loss = read_choice(claim["loss"], ("cross-entropy",), "loss") if "loss" in claim else "squared"
        if "inputs" in claim and "vocabulary" in claim:
            raise FormatError("inputs and a vocabulary found; one of them is required")
        if "inputs" in claim:
            listed = _read_list(claim["inputs"], "inputs")
            afford(len(listed) * d * t, SAMPLE_ENTRIES, "entries of inputs")
            inputs = np.stack([read_array(X, (d, t), QQ, "input") for X in listed])
            return cls(loss, inputs, f"{len(inputs)} given inputs")
        if "vocabulary" in claim:
            rows = _read_list(claim["vocabulary"], "vocabulary")
            size = len(_read_list(rows[0], "rows"))
            columns = read_array(rows, (d, size), QQ, "vocabulary")
            afford(float(size) ** t * t, LOCAL_SAMPLES, "tokens of all sequences")
            chosen = np.array(list(product(range(size), repeat=t)))
            return cls(loss, np.moveaxis(columns[:, chosen], 0, 1), f"all sequences of {size} given tokens")
        return cls(loss, None, "inputs with a density" if loss == "squared" else "bounded inputs with a density")

    def __str__(self) -> str:
        return self.words if self.loss == "squared" else f"{self.words} and cross-entropy"

    def network(self, weights: Weights) -> Weights:
        """The network of squared errors: for cross-entropy that of all outputs less the last one (Theorem X)."""
        if self.loss == "squared":
            return weights
        architecture = weights.architecture
        require(architecture.is_plain, "a kind of attention of the papers is required")
        require(architecture.widths[-1] >= 2, "two outputs are required")
        require(not architecture.residual or architecture.num_layers == 1, "one layer, or no skip connection")
        widths = {layer.value_width for layer in architecture.layers}
        require(len(widths) == 1, "layers of one value width are required")
        last = (*architecture.widths[:-1], architecture.widths[-1] - 1)
        smaller = replace(architecture, widths=last, value_width=widths.pop(), residual=False)
        tensors = dict(weights.tensors())
        letter = "V" if smaller.value_width is None else "O"
        for head in range(architecture.heads):
            name = architecture.tensor_name(architecture.num_layers - 1, head, letter)
            tensors[name] = tensors[name][:-1] - tensors[name][-1]
        return Weights.from_tensors(smaller, tensors, QQ)

    def check_table(self, architecture: Architecture) -> None:
        """One lightning layer has another table at these inputs, whatever is changed: as good as a density."""
        require(architecture.kind == "lightning" and architecture.num_layers == 1, "one lightning layer is required")
        require(architecture.tokens >= 2, "two tokens are required")
        assert self.inputs is not None
        field, (count, d, t) = GF(WORD_PRIME), self.inputs.shape
        pairs = list(combinations_with_replacement(range(d), 2))
        afford(count * t * d * len(pairs), SAMPLE_ENTRIES, "entries of products of inputs")
        rows = []
        for X in field.convert(self.inputs):
            for i in range(t):
                seen = X[:, : i + 1] if architecture.mask.hides else X
                context = field.matmul(seen, seen.T)
                own = [int(context[k, l]) * int(x) % field.p for x in X[:, i] for k, l in pairs]
                rows.append(own)
        spans = rank_mod_p(np.array(rows, dtype=np.int64), field.p) == d * len(pairs)
        require(spans, "the products of the tokens do not span everything mod p, so that inputs are no density")


def _read_list(value: Any, name: str) -> list[Any]:
    if type(value) is not list or not value:
        raise FormatError(f"{name}: a list that is not empty is required")
    return value
