"""Group elements as JSON: ``{"format": "attngeom/symmetry", "version": 1, …}``."""

from __future__ import annotations

from typing import Any

from attngeom.errors import AttnGeomError, FormatError, InputError
from attngeom.exact.domains import QQ, RR, Array, Domain
from attngeom.files import check_header
from attngeom.network.architecture import Architecture
from attngeom.network.symmetry.between import Between
from attngeom.network.symmetry.element import Symmetry
from attngeom.network.symmetry.factor import GroupFactor
from attngeom.network.symmetry.group import factors
from attngeom.network.symmetry.head_order import HeadOrder
from attngeom.network.symmetry.query_key import QueryKey
from attngeom.network.symmetry.scale import Scale
from attngeom.network.symmetry.value_output import ValueOutput

DOMAINS: dict[str, Domain] = {"QQ": QQ, "RR": RR}


def matrix_to_json(array: Array, domain: Domain) -> list[Any]:
    """Nested lists of JSON values: exact numbers as strings, floats as numbers.

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
    return {
        "format": "attngeom/symmetry",
        "version": 1,
        "domain": domain.name,
        "architecture": symmetry.architecture.to_json(),
        "layers": layers,
        "between": [matrix_to_json(matrix, domain) for matrix in symmetry.between],
    }


def symmetry_from_json(record: Any, name: str = "symmetry") -> Symmetry:
    """Read the JSON object of a group element."""
    record = check_header(record, "symmetry", name)
    written = str(record.get("domain"))
    if written not in DOMAINS:
        raise FormatError(f"{name}: domain {written[:20]!r} found; QQ or RR is required")
    domain = DOMAINS[written]
    architecture = Architecture.from_json(record.get("architecture"))
    elements: dict[GroupFactor, Any] = {}
    try:
        layers = record["layers"]
        if len(layers) != architecture.num_layers or any(len(x["heads"]) != architecture.heads for x in layers):
            raise InputError(f"{name}: {len(layers)} layers given; the architecture has {architecture.num_layers}")
        for index, layer in enumerate(layers):
            elements[HeadOrder(index, architecture.heads)] = tuple(int(place) for place in layer["permutation"])
            for place, head in enumerate(layer["heads"]):
                scale = domain.convert([[head["scale"]]])
                elements[QueryKey(index, place, architecture.attention[index])] = domain.convert(head["C"])
                if not domain.equal(scale, domain.eye(1)):
                    elements[Scale(index, place)] = scale
                if head["B"] is not None:
                    B = domain.convert(head["B"])
                    elements[ValueOutput(index, place, len(B))] = B
        for index, matrix in enumerate(record["between"]):
            D = domain.convert(matrix)
            elements[Between(index, len(D))] = D
    except AttnGeomError:
        raise
    except (KeyError, TypeError, ValueError, AttributeError):
        raise FormatError(f"{name}: layers, heads or matrices are missing; see the format of symmetries") from None
    missing = [x for x in factors(architecture) if x not in elements and not isinstance(x, Scale)]
    if missing:
        raise InputError(f"{name}: no matrix for {missing[0]}; one is required for each factor of the group")
    return Symmetry(architecture, domain, elements)
