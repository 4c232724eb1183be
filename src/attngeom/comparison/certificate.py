"""Certificates for a comparison of rational networks: what carries one to the other, or an input that tells them apart.

The arguments are those of :mod:`attngeom.verification.functions`, which is asked which of them proves the claim.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from attngeom.comparison.results import Comparison
from attngeom.errors import AttnGeomError, InputError
from attngeom.exact.domains import QQ
from attngeom.limits.recheck import WRITERS_FACTOR
from attngeom.network import Symmetry, Weights
from attngeom.network.symmetry import Scale
from attngeom.network.symmetry.element import matrix_to_json
from attngeom.verification.budget import budget_times
from attngeom.verification.functions import FunctionsClaim
from attngeom.verification.reading import describe_claimed
from attngeom.verification.records import Certificate


def certify_comparison(first: Weights, second: Weights, found: Comparison) -> Certificate:
    """The certificate of a proven answer about rational weights of lightning, softmax or sigmoid networks.

    Witness: an argument by name. "symmetry": for each layer where each head of the first network is in the second, its
    scale λ, and the change of basis D_i after the layer. "virtual": what the function shows of (M, L). "layers": what
    each layer shows of its heads. "input": an input at which the outputs differ. InputError if nothing was proven, or
    if the weights are floats or of another kind.

    >>> from attngeom.comparison import compare
    >>> from attngeom.network import Architecture, random_weights
    >>> w = random_weights(Architecture((2, 2), 1), QQ, seed=0)
    >>> certify_comparison(w, w, compare(w, w)).witness["argument"]
    'symmetry'
    """
    if not first.architecture.is_plain or not first.domain == second.domain == QQ:
        raise InputError(
            "no certificate can be written: rational lightning, softmax or sigmoid weights without options are required"
            "; leave out --certificate"
        )
    if not found.is_proven or found.same_function is None:
        raise InputError(f"no certificate can be written: {found.standing}, {found.reason}")
    sides = {
        name: {key: matrix_to_json(array, QQ) for key, array in weights.tensors()}
        for name, weights in (("first", first), ("second", second))
    }
    claim = {
        "kind": "functions",
        "architecture": describe_claimed(first.architecture),
        **sides,
        "same": found.same_function,
    }
    read = FunctionsClaim(found.same_function, first, second)
    failure: AttnGeomError | None = None
    for witness in _witnesses(found):
        try:
            with budget_times(WRITERS_FACTOR):
                read.check(witness)
        except AttnGeomError as error:
            failure = error
            continue
        return Certificate(claim, witness, {"seed": found.seed})
    raise InputError(f"no certificate can be written: {failure}")


def _witnesses(found: Comparison) -> Iterator[dict[str, Any]]:
    if found.symmetry is not None:
        yield {"argument": "symmetry", **_symmetry_data(found.symmetry)}
    if found.separation is not None:
        yield {"argument": "input", "input": matrix_to_json(found.separation.X, QQ)}
    yield from ({"argument": name} for name in ("virtual", "layers"))


def _symmetry_data(symmetry: Symmetry) -> dict[str, Any]:
    architecture, domain = symmetry.architecture, symmetry.domain
    scales = {(x.layer, x.head): element[0, 0] for x, element in symmetry.elements.items() if isinstance(x, Scale)}
    between = list(symmetry.between) or [domain.eye(width) for width in architecture.widths[1:-1]]
    one = domain.eye(1)[0, 0]
    layers = list(enumerate(architecture.layers))
    return {
        "orders": [list(map(int, symmetry.orders.get(i, range(layer.heads)))) for i, layer in layers],
        "scales": [[str(scales.get((i, h), one)) for h in range(layer.heads)] for i, layer in layers],
        "bases": [matrix_to_json(D, domain) for D in between],
    }
