"""Weights as people read them: one line, matrices in LaTeX, spectra of the heads."""

from __future__ import annotations

import re
from typing import Any

from attngeom.exact import lapack
from attngeom.exact.domains import RR, Array, Domain
from attngeom.limits.shown import MATRIX_ENTRIES
from attngeom.network.architecture import FLAGS, Architecture
from attngeom.network.weights import Weights


def describe_architecture(architecture: Architecture) -> str:
    """The architecture in one line.

    >>> describe_architecture(Architecture((3, 3, 3), 2, kind="softmax", residual=True))
    'residual softmax attention, widths 3,3,3, attention 2,2'
    """
    marks = [name for name in reversed(FLAGS) if getattr(architecture, name)]
    heads = f", {architecture.heads} heads" if architecture.heads > 1 else ""
    lists = (",".join(map(str, x)) for x in (architecture.widths, architecture.attention))
    return " ".join([*marks, architecture.kind, "attention, widths {}, attention {}".format(*lists)]) + heads


def matrix_latex(array: Array, domain: Domain) -> str:
    """A matrix in LaTeX, exactly; its shape alone where it is large.

    >>> from attngeom.exact import QQ
    >>> print(matrix_latex(QQ.convert([["1/2", "-3"]]), QQ))
    \\begin{pmatrix}\\tfrac{1}{2} & -3\\end{pmatrix}
    """
    if array.size > MATRIX_ENTRIES:
        return rf"\mathbb{{R}}^{{{array.shape[0]} \times {array.shape[1]}}}"
    rows = (" & ".join(_entry(domain.format(x)) for x in row) for row in array)
    return r"\begin{pmatrix}" + r" \\ ".join(rows) + r"\end{pmatrix}"


def _entry(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else re.sub(r"(\d+)/(\d+)", r"\\tfrac{\1}{\2}", str(value))


def weights_latex(weights: Weights) -> str:
    """All tensors of the weights, one formula for each layer and head."""
    lines = []
    for name, array in weights.tensors():
        place, _, letter = name.rpartition(".")
        index = place.removeprefix("layers.").replace(".heads.", ",")
        lines.append(rf"{letter}_{{{index}}} &= {matrix_latex(array, weights.domain)}")
    return r"$$\begin{aligned}" + r" \\ ".join(lines) + r"\end{aligned}$$"


def head_spectra(weights: Weights) -> dict[str, list[float]]:
    """The singular values of A and of the value map of every head, in floats, those that the widths make zero left out.

    >>> from attngeom.network import Architecture
    >>> head_spectra(Weights.from_vector(Architecture((1, 1), 1), RR.convert([2, 3, 4]), RR))
    {'A 1': [6.0], 'V 1': [4.0]}
    """
    floats, shapes = weights.to(RR), weights.architecture.layers
    spectra = {}
    for letter, layers in (("A", floats.attention_matrices()), ("V", floats.value_matrices())):
        for layer, heads in enumerate(layers):
            rank = shapes[layer].attention if letter == "A" else shapes[layer].value_rank
            for head, matrix in enumerate(heads):
                name = f"{letter} {layer + 1}" + (f".{head + 1}" if len(heads) > 1 else "")
                spectra[name] = [float(x) for x in lapack.svdvals(matrix)[:rank]]
    return spectra
