"""Group elements as JSON: ``{"format": "attngeom/symmetry", "version": 1, …}``."""

from __future__ import annotations

from typing import Any

from attngeom.errors import FormatError, InputError
from attngeom.exact.domains import QQ, RR, Array, Domain
from attngeom.files import check_header
from attngeom.network import Architecture, Symmetry
from attngeom.network.symmetries import HeadSymmetry

DOMAINS: dict[str, Domain] = {"QQ": QQ, "RR": RR}


def matrix_to_json(array: Array, domain: Domain) -> list[Any]:
    """Nested lists of JSON values: exact numbers as strings, floats as numbers.

    >>> matrix_to_json(QQ.array([["1/2", 0]]), QQ)
    [['1/2', '0']]
    """
    if array.ndim == 1:
        return [domain.format(entry) for entry in array]
    return [matrix_to_json(part, domain) for part in array]


def symmetry_to_json(symmetry: Symmetry) -> dict[str, Any]:
    """The JSON object of a group element; see :mod:`attngeom.network.symmetries` for how it acts."""
    domain = symmetry.domain
    layers = [
        {
            "permutation": list(permutation),
            "heads": [
                {
                    "C": matrix_to_json(head.C, domain),
                    "scale": domain.format(head.scale[0, 0]),
                    "B": None if head.B is None else matrix_to_json(head.B, domain),
                }
                for head in heads
            ],
        }
        for heads, permutation in zip(symmetry.heads, symmetry.permutations)
    ]
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
    domain = DOMAINS.get(str(record.get("domain")))
    if domain is None:
        raise FormatError(f"{name}: domain {str(record.get('domain'))[:20]!r} found; QQ or RR is required")
    architecture = Architecture.from_json(record.get("architecture"))
    try:
        heads = tuple(
            tuple(
                HeadSymmetry(
                    domain.array(head["C"]),
                    domain.array([[head["scale"]]]),
                    None if head["B"] is None else domain.array(head["B"]),
                )
                for head in layer["heads"]
            )
            for layer in record["layers"]
        )
        permutations = tuple(tuple(int(place) for place in layer["permutation"]) for layer in record["layers"])
        between = tuple(domain.array(matrix) for matrix in record["between"])
    except (KeyError, TypeError):
        raise FormatError(f"{name}: layers, heads or matrices are missing; see the format of symmetries") from None
    if len(heads) != architecture.num_layers or any(len(layer) != architecture.heads for layer in heads):
        raise InputError(f"{name}: {len(heads)} layers given; the architecture has {architecture.num_layers}")
    return Symmetry(architecture, domain, heads, between, permutations)
