"""The gallery of networks: the page says what is computed, and everything in it is proven."""

import re
from pathlib import Path

import pytest

import attngeom
from attngeom.atlas.networks import NETWORKS

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "gallery" / "networks.md").read_text()


def test_the_page_has_forty_networks():
    rows = [line.split(" | ")[0].removeprefix("| ") for line in PAGE.splitlines() if line.startswith("| ")][1:]
    assert rows == list(NETWORKS) and len(rows) >= 40


@pytest.mark.parametrize("name", NETWORKS)
def test_every_network_is_proven_as_the_page_says(name):
    network, weights, shape = NETWORKS[name]
    answer = attngeom.analyze(network, shape, weights=weights)
    row = f"| {name} | {answer.parameters} | {answer.dimension} | {answer.standing} | "
    (shown,) = (line.removeprefix(row).removesuffix(" |") for line in PAGE.splitlines() if line.startswith(row))
    parts = [re.sub(r"[.][0-9]", "", str(part)) for part in answer.fiber]
    parts += [f"{answer.unexplained} by coefficients"] if answer.unexplained else []
    assert sorted(shown.split("; ")) == sorted(parts or ["none"])
    assert answer.is_proven
