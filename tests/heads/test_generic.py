"""Generic uniqueness by the contact locus mod p: the tuples (d, d_out, a, v, H) whose outcome is known."""

import pytest

from attngeom.errors import InputError, SizeError
from attngeom.heads.generic import contact_locus, generic_heads
from attngeom.network import Architecture

TUPLES = {
    (3, 3, 1, 1, 4): ("unique", 36),
    (3, 3, 2, 2, 2): ("unique", 30),
    (4, 4, 2, 2, 3): ("unique", 69),
    (4, 4, 3, 3, 2): ("unique", 58),
    (4, 4, 1, 1, 8): ("unique", 104),
    (4, 4, 4, 2, 2): ("unique", 54),
    (5, 5, 2, 2, 4): ("unique", 124),
    (4, 4, 4, 4, 2): ("defective", 60),
    (3, 3, 3, 3, 2): ("defective", 32),
    (2, 2, 1, 1, 2): ("positive contact locus", 10),
    (3, 2, 1, 1, 4): ("positive contact locus", 32),
    (2, 2, 1, 1, 4): ("fills the space", 12),
}


@pytest.mark.parametrize("sizes", TUPLES, ids=str)
def test_known_tuples(sizes):
    found = contact_locus(*sizes)
    assert (found.contact, found.tangent_rank) == TUPLES[sizes]
    assert found.unique is (True if found.contact == "unique" else None)
    assert found.is_proven == bool(found.unique)


def test_direct_sums_are_a_theorem():
    found = generic_heads(Architecture((2, 2), 1, heads=2, value_width=1))
    assert found.unique and found.theorem == "Theorem H"
    assert generic_heads(Architecture((3, 3), 1)).theorem == "one head"
    # Two heads with a = v = d are nested for all weights, although d_out leaves room for a direct sum on one side.
    assert generic_heads(Architecture((2, 4), 2, heads=2, value_width=2)).unique is None


def test_bounds():
    with pytest.raises(InputError):
        generic_heads(Architecture((3, 3, 3), 1, heads=2, value_width=1))
    with pytest.raises(SizeError):
        contact_locus(40, 40, 20, 20, 8)
