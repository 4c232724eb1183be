"""Group elements from the JSON that is written of them, by the page of the format alone."""

from typing import Any

from attngeom.exact import QQ, RR
from attngeom.network import Architecture, Symmetry
from attngeom.network.symmetry import Between, HeadOrder, QueryKey, Scale, ValueOutput


def read_symmetry(record: dict[str, Any]) -> Symmetry:
    assert record["format"] == "attngeom/symmetry" and record["version"] == 1
    domain = {"QQ": QQ, "RR": RR}[record["domain"]]
    architecture = Architecture.from_json(record["architecture"])
    elements: dict[Any, Any] = {}
    for index, layer in enumerate(record["layers"]):
        elements[HeadOrder(index, architecture.heads)] = tuple(layer["permutation"])
        for place, head in enumerate(layer["heads"]):
            elements[QueryKey(index, place, architecture.attention[index])] = domain.convert(head["C"])
            if architecture.rule.has_scale:
                elements[Scale(index, place)] = domain.convert([[head["scale"]]])
            if head["B"] is not None:
                elements[ValueOutput(index, place, len(head["B"]))] = domain.convert(head["B"])
    elements |= {Between(index, len(D)): domain.convert(D) for index, D in enumerate(record["between"])}
    return Symmetry(architecture, domain, elements)
