"""The table of families: every row has a reference checkpoint, and the page names it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from attngeom.errors import InputError
from attngeom.models.families import FAMILIES, family_of, specify
from attngeom.models.families.refused import MISSING
from tests.models.cases import DATA

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "models.md"


def test_every_family_has_a_reference_checkpoint() -> None:
    made = {json.loads(path.read_text())["model_type"] for path in DATA.glob("*/config.json")}
    assert made == set(FAMILIES)


def test_the_page_lists_the_families_and_no_others() -> None:
    listed = re.search(r"^Families: (.*?)\.\s", PAGE.read_text(), re.S | re.M)
    assert listed is not None
    assert [name.strip() for name in listed[1].replace("\n", " ").split(",")] == list(FAMILIES)


@pytest.mark.parametrize("name", [*MISSING, "no_such_model"])
def test_others_are_refused_by_name_in_one_line(name: str) -> None:
    assert name not in FAMILIES
    with pytest.raises(InputError) as error:
        family_of({"model_type": name})
    assert name in str(error.value) and len(str(error.value)) <= 200 and "\n" not in str(error.value)


def test_a_config_without_a_window_means_that_of_transformers() -> None:
    """Without the key 4,096, so that Cohere's layers with a window rotate; null is no window."""
    config = json.loads((DATA / "cohere2" / "config.json").read_text())
    silent = {key: value for key, value in config.items() if key != "sliding_window"}
    for given, window in ((silent, 4096), ({**config, "sliding_window": None}, None)):
        attention = specify(given).stack.block(0).attention
        assert attention is not None and (attention.window, attention.rotary is None) == (window, window is None)
