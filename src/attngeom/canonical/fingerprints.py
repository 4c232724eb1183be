"""One line that all weights of a function share: a digest of the exact canonical form."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from attngeom.canonical.answer import canonicalize
from attngeom.errors import InputError
from attngeom.files import to_json
from attngeom.network import Weights
from attngeom.results import Result


@dataclass(frozen=True, kw_only=True, eq=False)
class WeightsFingerprint(Result):
    """The first half of the SHA-256 of the canonical weights and their architecture."""

    fingerprint: str

    def to_json(self) -> dict[str, Any]:
        return self.select("fingerprint", "standing", "reason")

    def rows(self) -> Mapping[str, Any]:
        return {"fingerprint": self.fingerprint, "standing": self.standing, "reason": self.reason}


def fingerprint(weights: Weights) -> WeightsFingerprint:
    """The fingerprint of exact weights, the same on the whole orbit of the symmetry group and on no other orbit.

    >>> from attngeom.exact import QQ
    >>> from attngeom.network import Architecture, random_symmetry, random_weights
    >>> w = random_weights(Architecture((3, 2, 3), 2), QQ, seed=0)
    >>> moved = random_symmetry(w.architecture, QQ, seed=1).apply(w)
    >>> fingerprint(w).fingerprint == fingerprint(moved).fingerprint
    True
    """
    if not weights.domain.is_exact:
        raise InputError("float weights given, whose canonical form is rounded; give exact ones (.json)")
    canonical = canonicalize(weights)
    tensors = {name: [[str(x) for x in row] for row in array] for name, array in canonical.weights.tensors()}
    text = to_json({"architecture": weights.architecture.to_json(), "tensors": tensors})
    digest = sha256(text.encode()).hexdigest()[:32]
    return WeightsFingerprint(standing=canonical.standing, reason=canonical.reason, fingerprint=digest)
