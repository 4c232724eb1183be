"""What every answer shows of itself."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from attngeom import certify, coefficients, compare, recover, verify
from attngeom.exact import QQ
from attngeom.layer.coefficients import Coefficients
from attngeom.network import Architecture, random_weights
from attngeom.results import STANDINGS, Result


@dataclass(frozen=True, kw_only=True, eq=False)
class Number(Result):
    value: int

    def to_json(self) -> dict[str, Any]:
        return {"value": self.value}

    def rows(self) -> Mapping[str, Any]:
        return {"number": self.value, "why <so>": self.reason}


def test_text_aligns_labels():
    assert str(Number(standing="proven", reason="counted", value=3)) == "number    3\nwhy <so>  counted"


def test_a_prompt_shows_what_the_command_prints():
    number = Number(standing="proven", reason="counted", value=3)
    assert repr(number) == str(number)


def test_card_says_things_once_and_headings_span():
    card = Number(standing="proven", reason="counted", value="")._repr_html_()
    assert card.count("counted") == 1 and "colspan=2" in card and "why" not in card


def test_card_escapes_what_it_shows():
    card = Number(standing="undecided", reason="<b>", value=3)._repr_html_()
    assert "&lt;b&gt;" in card and "<b>" not in card and "undecided" in card


@pytest.mark.parametrize("standing", STANDINGS)
def test_proven_means_theorem_proven_or_certified(standing):
    strong = standing in ("theorem", "proven", "certified")
    assert Number(standing=standing, reason="", value=0).is_proven is strong


def test_fields_are_keywords_and_frozen():
    with pytest.raises(TypeError):
        Number("proven", "counted", 0, 3)
    with pytest.raises(AttributeError):
        Number(standing="proven", reason="", value=3).value = 4


def test_yes_and_no_are_those_of_the_question():
    w = random_weights(Architecture((2, 1), 1, tokens=2), QQ, seed=0)
    other = random_weights(w.architecture, QQ, seed=1)
    layer = coefficients(w)
    broken = Coefficients.of_cross(QQ.convert([[[1, 0], [0, 0], [0, 1]]]), 2, QQ)
    assert compare(w, w).is_positive is True and compare(w, other).is_positive is False
    assert certify(layer).is_positive is True and certify(broken).is_positive is False
    assert recover(layer).is_positive is True and recover(broken).is_positive is False
    assert verify(certify(layer).certificate).is_positive is True
    assert Number(standing="proven", reason="no question of yes or no", value=1).is_positive is None
