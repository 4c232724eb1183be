"""Families vanish identically, by substitution at small sizes and at random points mod 2^61 − 1 at larger ones."""

from __future__ import annotations

import pytest

from attngeom.equations import Variety, families, family
from attngeom.equations.terms import linear
from attngeom.equations.verification import check_at_random_points, find_point_off, prove_by_substitution
from attngeom.errors import InputError

SMALL = [Variety(2, 1), Variety(2, 2, d_out=2), Variety(3, 1, d_out=2), Variety(3, 2), Variety(4, 2, targets=2)]
LARGE = [Variety(5, 4), Variety(6, 2, tokens=3, d_out=2), Variety(4, 4, d_out=5), Variety(6, 2, tokens=1)]


@pytest.mark.parametrize(
    ("variety", "name"), [(v, f.name) for v in SMALL for f in families(v) if f.degree <= 6], ids=str
)
def test_members_vanish_as_polynomials_in_the_weights(variety: Variety, name: str) -> None:
    f = family(variety, name)
    proof = prove_by_substitution(f, 0, min(f.count, 6))
    assert proof.vanishes
    assert proof.method == "substitution"
    assert prove_by_substitution(f, f.count - 1).vanishes


@pytest.mark.parametrize(("variety", "name"), [(v, f.name) for v in LARGE for f in families(v)], ids=str)
def test_members_vanish_at_random_weights(variety: Variety, name: str) -> None:
    f = family(variety, name)
    middle = f.count // 2
    found = check_at_random_points(f, middle, min(middle + 3, f.count), points=1)
    assert found.vanishes
    assert found.error_exponent is not None and found.error_exponent < -50


@pytest.mark.parametrize(("variety", "name"), [(v, f.name) for v in SMALL for f in families(v)], ids=str)
def test_each_family_has_a_point_off_the_variety(variety: Variety, name: str) -> None:
    f = family(variety, name)
    off = find_point_off(f)
    assert f.evaluate(off.points, off.index, off.index + 1)[0, 0] == off.value != 0


def test_substitution_sees_a_polynomial_that_does_not_vanish(monkeypatch: pytest.MonkeyPatch) -> None:
    f = family(Variety(2, 1), "attention-rank")
    monkeypatch.setattr(type(f), "row_terms", lambda self, index, row: linear([(("y", row, 0, 0, 0), 1)]))
    assert not prove_by_substitution(f).vanishes


def test_no_members_are_an_input_error() -> None:
    with pytest.raises(InputError, match="at least one"):
        check_at_random_points(family(Variety(2, 1), "attention-rank"), 0, 0)
