"""The table of all claims, [G] first, in the order of the papers."""

from __future__ import annotations

from collections.abc import Sequence

from attngeom.errors import InputError
from attngeom.papers import claims_geometry, claims_invariants
from attngeom.papers.records import Claim

CLAIMS: tuple[Claim, ...] = (*claims_geometry.CLAIMS, *claims_invariants.CLAIMS)


def find_claims(names: Sequence[str]) -> tuple[Claim, ...]:
    """The claims with these ids, in the order of the table; all of them if no id is given.

    >>> [claim.place for claim in find_claims(["I-proposition-2"])]
    ['Proposition 2']
    """
    known = {claim.id for claim in CLAIMS}
    for name in names:
        if name not in known:
            raise InputError(f"claim {name[:40]!r} given; one of {', '.join(sorted(known)[:3])} … is required")
    return tuple(claim for claim in CLAIMS if not names or claim.id in names)
