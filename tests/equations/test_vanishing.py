"""Families vanish identically, by substitution at small sizes and at random points mod 2^61 − 1 at larger ones."""

from __future__ import annotations

import pytest

from attngeom.equations import Variety, families, find_family
from attngeom.equations.families.flattenings import AttentionRank
from attngeom.equations.family import vanishes_at_random, vanishes_identically

SMALL = [Variety(2, 1, tokens=2), Variety(2, 2, tokens=3, d_out=2), Variety(3, 1, tokens=2, d_out=2), Variety(3, 2)]
SMALL += [Variety(4, 2, targets=2), Variety(3, 2, tokens=1)]
LARGE = [Variety(5, 4, tokens=2), Variety(6, 2, tokens=3, d_out=2), Variety(4, 4, d_out=5), Variety(6, 2, tokens=1)]


@pytest.mark.parametrize(
    ("variety", "name"), [(v, f.name) for v in SMALL for f in families(v) if f.degree <= 6], ids=str
)
def test_members_vanish_as_polynomials_in_the_weights(variety: Variety, name: str) -> None:
    f = find_family(variety, name)
    assert vanishes_identically(f, 0, min(f.count, 6)) and vanishes_identically(f, f.count - 1)


@pytest.mark.parametrize(("variety", "name"), [(v, f.name) for v in LARGE for f in families(v)], ids=str)
def test_members_vanish_at_random_weights(variety: Variety, name: str) -> None:
    zero, error = vanishes_at_random(find_family(variety, name), seed=1, most=3)
    assert zero and error < 2**-50


def test_what_does_not_vanish_is_seen() -> None:
    """The 2-minors of the flattening vanish for rank one, not for rank two."""
    f = AttentionRank(Variety(2, 1))
    wrong = type("TooSmall", (AttentionRank,), {"size": property(lambda self: 2)})(Variety(3, 2))
    assert vanishes_identically(f) and vanishes_at_random(f, seed=0)[0]
    assert not vanishes_identically(wrong, 0, 3) and not vanishes_at_random(wrong, seed=0)[0]
