"""Certificates for whether the heads of given rational weights are unique."""

from __future__ import annotations

from typing import Any

from attngeom.errors import InputError
from attngeom.exact.domains import QQ
from attngeom.heads.results import Uniqueness
from attngeom.network import Weights
from attngeom.network.symmetry.element import matrix_to_json
from attngeom.verification.reading import describe_claimed
from attngeom.verification.records import Certificate

NAMES = {"one head": "one", "Theorem H": "H", "Theorem D": "D", "Theorem S": "S"}


def certify_uniqueness(weights: Weights, found: Uniqueness) -> Certificate:
    """The certificate of a proven answer: the theorem, or a second set of heads. InputError if nothing was proven.

    >>> from attngeom.heads.uniqueness import heads_unique
    >>> from attngeom.network import Architecture, random_weights
    >>> w = random_weights(Architecture((4, 4), 2, heads=2), QQ, seed=0)
    >>> certify_uniqueness(w, heads_unique(w)).witness
    {'theorem': 'H'}
    """
    if not weights.architecture.is_plain or weights.domain != QQ:
        raise InputError(
            "no certificate can be written: rational lightning, softmax or sigmoid weights without options are required"
            "; leave out --certificate"
        )
    if not found.is_proven:
        raise InputError(f"no certificate can be written: {found.standing}, {found.reason}")
    witness: dict[str, Any] = {"theorem": NAMES[str(found.theorem)]}
    if found.witness is not None:
        witness = {"tensors": {name: matrix_to_json(array, QQ) for name, array in found.witness.tensors()}}
    claim = {
        "kind": "uniqueness",
        "architecture": describe_claimed(weights.architecture),
        "tensors": {name: matrix_to_json(array, QQ) for name, array in weights.tensors()},
        "unique": found.verdict == "unique",
    }
    return Certificate(claim, witness, {})
