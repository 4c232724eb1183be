"""Group elements as JSON: ``{"format": "attngeom/symmetry", "version": 1, …}``."""

from __future__ import annotations

from typing import Any

import numpy as np

from attngeom.exact.domains import Array, Domain
from attngeom.network.symmetry.element import Symmetry
from attngeom.network.symmetry.group import HeadOrder
from attngeom.network.symmetry.linear import HeadFactor, QueryKey, Scale, ValueOutput
from attngeom.network.symmetry.smaller import HeadPart
from attngeom.network.symmetry.translation import Translation, ValueBias


def matrix_to_json(array: Array, domain: Domain) -> list[Any]:
    """Nested lists of JSON values: exact numbers as strings, floats as numbers.

    >>> from attngeom.exact import QQ
    >>> matrix_to_json(QQ.convert([["1/2", 0]]), QQ)
    [['1/2', '0']]
    """
    if array.ndim == 1:
        return [domain.format(entry) for entry in array]
    return [matrix_to_json(part, domain) for part in array]


def symmetry_to_json(symmetry: Symmetry) -> dict[str, Any]:
    """The JSON object of a group element; see :mod:`attngeom.network.symmetry.element` for how it acts."""
    domain = symmetry.domain
    one = domain.format(domain.one)
    layers: list[dict[str, Any]] = [
        {"permutation": [], "heads": [{"C": None, "scale": one, "B": None} for _ in range(layer.heads)]}
        for layer in symmetry.architecture.layers
    ]
    for factor, element in symmetry.elements.items():
        match factor:
            case QueryKey(layer, head):
                layers[layer]["heads"][head]["C"] = matrix_to_json(element, domain)
            case Scale(layer, head):
                layers[layer]["heads"][head]["scale"] = domain.format(element[0, 0])
            case ValueOutput(layer, head):
                layers[layer]["heads"][head]["B"] = matrix_to_json(element, domain)
            case HeadOrder(layer):
                layers[layer]["permutation"] = list(element)
            case HeadFactor(layer, head) | HeadPart(layer, head) | ValueBias(layer, head):
                written = matrix_to_json(element, domain) if isinstance(element, np.ndarray) else element
                layers[layer]["heads"][head][factor.name] = written
            case Translation(layer):
                layers[layer]["translation"] = matrix_to_json(element, domain)
    return {
        "format": "attngeom/symmetry",
        "version": 1,
        "domain": domain.name,
        "architecture": symmetry.architecture.to_json(),
        "layers": layers,
        "between": [matrix_to_json(matrix, domain) for matrix in symmetry.between],
    }
