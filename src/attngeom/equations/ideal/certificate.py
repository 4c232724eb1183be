"""Certificates for complete lists of generators: the theorem that gives the list of these sizes."""

from __future__ import annotations

from dataclasses import asdict

from attngeom.equations.ideal.records import CompletenessResult
from attngeom.equations.variety import Variety
from attngeom.errors import InputError
from attngeom.verification.ideals import LayerSizes
from attngeom.verification.records import Certificate


def certify_complete(variety: Variety, found: CompletenessResult) -> Certificate:
    """The certificate of a list of all minimal generators, in all degrees.

    Witness: the theorem, by its number in docs/theorems/completeness.md, or by the name of a list of
    docs/theorems/open-problems.md.

    >>> from attngeom.equations.ideal.completeness import complete_variety
    >>> variety = Variety(3, 1, tokens=2, causal=True)
    >>> certify_complete(variety, complete_variety(variety)).witness
    {'theorem': '7'}
    """
    if variety.hidden:
        raise InputError("no certificate can be written: the ideal of a deep network has no complete list")
    layer = LayerSizes(
        variety.d,
        variety.a,
        variety.tokens,
        variety.num_targets,
        variety.d_out,
        variety.heads,
        variety.value_width,
        variety.causal,
        variety.residual,
    )
    listed = sorted((degree, module.shapes) for degree, module in found.modules)
    claim = {
        "kind": "ideal",
        "variety": asdict(layer),
        "generators": [{"degree": n, "shapes": [list(shape) for shape in shapes]} for n, shapes in listed],
        "linear_relations": found.linear_relations,
        "dimension": found.dimension,
    }
    return Certificate(claim, {"theorem": layer.listed()[0]}, {})
