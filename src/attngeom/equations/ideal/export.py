"""Generators as files: JSON, Macaulay2 and Singular, from highest weight vectors or from whole modules."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from attngeom.equations.ideal.generators import HighestWeightVector, ModuleExpansion, ModuleSpace
from attngeom.equations.ideal.limits import check
from attngeom.equations.ideal.models import Coordinate, Model
from attngeom.equations.ideal.monomials import monomial_table
from attngeom.errors import InputError
from attngeom.exact.partitions import module_dimension
from attngeom.files import to_json, write_atomic

BYTES_PER_GENERATOR = 4000
"""Memory for one polynomial and its text: twice what 38,626 generators of (5, 4) take."""
FORMATS = {".json": "json", ".m2": "m2", ".sing": "singular"}


def variable_name(coordinate: Coordinate, style: str) -> str:
    """The name of a coordinate: y_0_1_2 in JSON, y_(0,1,2) in Macaulay2, y(0)(1)(2) in Singular.

    >>> variable_name(Coordinate(((0, 1), (2,)), (0, 1)), "m2")
    'y_(0,1,2)'
    """
    indices = [str(i) for part in coordinate.label for i in part] + [str(i) for i in coordinate.tag]
    if style == "m2":
        return f"y_({','.join(indices)})"
    if style == "singular":
        return "y" + "".join(f"({i})" for i in indices)
    return coordinate.name()


def module_spaces(
    model: Model, vectors: Sequence[HighestWeightVector], whole: bool
) -> Iterator[tuple[int, ModuleSpace]]:
    """(number of the module, polynomials of one weight): the whole modules, or only their highest weight vectors."""
    table = monomial_table(model)
    for number, vector in enumerate(vectors):
        expansion = ModuleExpansion(model, vector)
        if whole:
            for space in expansion.spaces():
                check()
                yield number, space
        else:
            factors = table.factors_of(vector.degree, expansion.top)
            yield number, ModuleSpace(vector.degree, expansion.top, factors, expansion.basis(expansion.top))


def format_polynomials(space: ModuleSpace, names: Sequence[str]) -> Iterator[str]:
    """The polynomials of one weight as text, in the names given."""
    words = np.array(["*".join([names[i] for i in factors]) for factors in space.factors.tolist()], dtype=object)
    for row in space.coefficients:
        places = np.flatnonzero(row)
        terms = [
            f"{c:+d}*{word}" if c not in (1, -1) else ("+" if c > 0 else "-") + word
            for c, word in zip(row[places].tolist(), words[places])
        ]
        yield "".join(terms).removeprefix("+")


def to_text(model: Model, vectors: Sequence[HighestWeightVector], style: str, whole: bool = True) -> str:
    """A Macaulay2 or Singular script that defines the ring and the ideal I of the generators.

    >>> from attngeom.equations.ideal import CrossColumn
    >>> from attngeom.equations.ideal.generators import highest_weight_vectors
    >>> vectors = highest_weight_vectors(CrossColumn(2, 1), 2, ((3, 1), (1, 1)), 1)
    >>> to_text(CrossColumn(2, 1), vectors, "m2", whole=False).splitlines()[-1]
    'y_(0,0,0)*y_(0,1,1)-y_(0,0,1)*y_(0,1,0)};'
    """
    names = [variable_name(c, style) for c in model.coordinates]
    polynomials = [
        text for _, space in module_spaces(model, vectors, whole) for text in format_polynomials(space, names)
    ]
    body = ",\n".join(polynomials) or "0"
    if style == "m2":
        return f"R = QQ[{', '.join(names)}];\nI = ideal {{\n{body}}};\n"
    return f"ring R = 0, ({', '.join(names)}), dp;\nideal I =\n{body};\n"


def to_json_text(model: Model, vectors: Sequence[HighestWeightVector], whole: bool = True) -> str:
    """The generators as JSON: terms are [coefficient, [coordinate, …]], coordinates numbered from 0 as in "variables".

    The list is written by hand: millions of terms would be slow through a general encoder.
    """
    header = {
        "format": "attngeom/generators",
        "version": 1,
        "model": type(model).__name__,
        "parameters": model.describe(),
        "variables": [c.name() for c in model.coordinates],
        "modules": [
            {"degree": v.degree, "shapes": [list(s) for s in v.shapes], "verified": v.is_verified} for v in vectors
        ],
    }
    lines = []
    for number, space in module_spaces(model, vectors, whole):
        words = [",".join(map(str, factors)) for factors in space.factors.tolist()]
        weight = to_json([list(part) for part in space.weight])
        for row in space.coefficients:
            places = np.flatnonzero(row)
            terms = ",".join([f"[{c},[{words[i]}]]" for c, i in zip(row[places].tolist(), places.tolist())])
            lines.append(f'{{"module": {number}, "weight": {weight}, "terms": [{terms}]}}')
    return to_json(header).removesuffix("}") + ', "generators": [\n' + ",\n".join(lines) + "\n]}\n"


def write_generators(
    path: str | Path, model: Model, vectors: Sequence[HighestWeightVector], whole: bool = True
) -> tuple[int, int]:
    """Write generators; the ending of the name chooses the format: .json, .m2 (Macaulay2) or .sing (Singular).

    Returns the numbers of polynomials and of bytes.
    """
    style = FORMATS.get(Path(path).suffix)
    if style is None:
        raise InputError(f"file name {Path(path).name!r} given; an ending .json, .m2 or .sing is required")
    count = sum(module_dimension(v.shapes, model.groups) for v in vectors) if whole else len(vectors)
    check(size=BYTES_PER_GENERATOR * count)
    text = to_json_text(model, vectors, whole) if style == "json" else to_text(model, vectors, style, whole)
    data = text.encode()
    write_atomic(path, data)
    return count, len(data)
