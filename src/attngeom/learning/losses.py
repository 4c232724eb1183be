"""Cross-entropy and finite vocabularies: other losses and laws of inputs, brought back to squared errors and samples.

Theorem X of docs/theorems/learning.md: on bounded inputs the divergence of softmax predictions is of the order of the
squared differences of logits modulo shifts, so of the squared error of the logits less the last one.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any, Literal, get_args

import numpy as np

from attngeom.errors import InputError, SizeError
from attngeom.exact.domains import Array
from attngeom.limits.sizes import VOCABULARY_SEQUENCES
from attngeom.network.weights import Weights

Loss = Literal["squared", "cross-entropy"]
LOSSES: tuple[Loss, ...] = get_args(Loss)


def logit_differences(weights: Weights) -> Weights:
    """The network whose outputs are those of the given one less the last one: the last values, or outputs, less a row.

    >>> from attngeom.exact import QQ
    >>> from attngeom.network import Architecture, random_weights
    >>> logit_differences(random_weights(Architecture((2, 3), 1), QQ, seed=0)).architecture.widths
    (2, 2)
    """
    architecture, domain = weights.architecture, weights.domain
    if architecture.widths[-1] < 2:
        raise InputError("cross-entropy given for one output; two logits or more are required")
    if architecture.residual and architecture.num_layers > 1:
        raise InputError("cross-entropy given for a deep network with skip connections; it is reduced for one layer")
    if not architecture.is_plain:
        raise InputError("cross-entropy given for a kind of attention beyond the papers; use squared errors")
    widths = {layer.value_width for layer in architecture.layers}
    if len(widths) > 1:
        raise InputError("cross-entropy given for heads of different value widths; give the layers one value width")
    smaller = replace(
        architecture,
        widths=(*architecture.widths[:-1], architecture.widths[-1] - 1),
        value_width=widths.pop(),
        residual=False,
    )
    last = f"layers.{architecture.num_layers - 1}."
    final = "V" if architecture.layers[-1].value_width is None else "O"
    tensors = {
        name: domain.reduce(array[:-1] - array[-1:])
        if name.startswith(last) and name.split(".")[-1] == final
        else array
        for name, array in weights.tensors()
    }
    return Weights.from_tensors(smaller, tensors, domain)


def all_sequences(vocabulary: Any, weights: Weights) -> Array:
    """All sequences of t tokens from the columns of a d×N matrix: shape (N^t, d, t), over the domain of the weights."""
    d, t = weights.architecture.widths[0], weights.architecture.tokens
    columns = weights.domain.convert(np.asarray(vocabulary))
    if columns.ndim != 2 or len(columns) != d or columns.shape[1] < 1:
        raise InputError(f"vocabulary of shape {columns.shape} given; shape ({d}, N), one column for each token")
    size = columns.shape[1]
    if t * np.log(max(size, 2)) > np.log(VOCABULARY_SEQUENCES) and size > 1:
        raise SizeError(
            f"{size} tokens in sequences of {t} given; at most {VOCABULARY_SEQUENCES:,} sequences are taken"
        )
    chosen = np.array(list(product(range(size), repeat=t)))
    return np.moveaxis(columns[:, chosen], 0, 1)
