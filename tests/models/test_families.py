"""The table of families: every row has a reference checkpoint, and the page names it."""

from __future__ import annotations

import json
import re
from pathlib import Path

from attngeom.models.families import FAMILIES
from tests.models.cases import DATA

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "models.md"


def test_every_family_has_a_reference_checkpoint() -> None:
    made = {json.loads(path.read_text())["model_type"] for path in DATA.glob("*/config.json")}
    assert made == set(FAMILIES)


def test_the_page_lists_the_families_and_no_others() -> None:
    listed = re.search(r"^Families: (.*?)\. ", PAGE.read_text(), re.S | re.M)
    assert listed is not None
    assert [name.strip() for name in listed[1].replace("\n", " ").split(",")] == list(FAMILIES)
