"""Encoders, encoder-decoders and vision: what their own options show of the weights, and what is refused."""

from __future__ import annotations

import json

import numpy as np
import pytest

from attngeom.errors import InputError
from attngeom.models import compare, fingerprint
from attngeom.models.families import specify
from attngeom.models.specification import RelativeTable
from tests.models.cases import DATA, changed, outputs, reference, relative

# Tables of relative positions: one for a stack (t5), one for each layer (umt5).

TABLES = {
    "t5": "{}.block.0.layer.0.SelfAttention.relative_attention_bias.weight",
    "umt5": "{}.block.0.layer.0.SelfAttention.relative_attention_bias.weight",
}


@pytest.mark.parametrize(("family", "name"), TABLES.items())
@pytest.mark.parametrize("side", ["encoder", "decoder"])
def test_of_a_table_of_positions_differences_of_used_rows_are_seen(family: str, name: str, side: str) -> None:
    model, rng = reference(family), np.random.default_rng(0)

    def moved(table: np.ndarray) -> np.ndarray:
        table += rng.normal(size=table.shape[1])
        table[4] += side == "encoder"  # that of +0, where tokens see both ways
        return table

    same = changed(model, name.format(side), moved)
    assert relative(outputs(family, same), outputs(family, model)) < 1e-12
    assert compare(model, same).same_function is True

    def spoilt(table: np.ndarray) -> np.ndarray:
        table[1, 1] += 0.1
        return table

    other = changed(model, name.format(side), spoilt)
    found = compare(model, other)
    assert found.same_function is False and name.format(side) in str(found).splitlines()[0]
    assert fingerprint(model).digest != fingerprint(other).digest


def test_rows_of_tables_that_no_distance_has() -> None:
    """Far distances are few: rows between two logarithms have none, and the count says how many."""
    table = RelativeTable(rows=32, distance=10)
    assert set(table.index(40, 40, True).ravel()) == set(range(32)) - set(table.unused(True).tolist())
    assert 16 in table.unused(True) and len(table.unused(True)) > 1
    assert not RelativeTable(rows=32, distance=128).unused(False).size


# Settings that change the function are read or refused.


def config_of(family: str, **changes: object) -> dict[str, object]:
    return {**json.loads((DATA / family / "config.json").read_text()), **changes}


REFUSED = [
    ("umt5", {"is_encoder_decoder": False}),
    ("umt5", {"relative_attention_num_buckets": 3}),
    ("umt5", {"relative_attention_num_buckets": 32, "relative_attention_max_distance": 8}),
    ("umt5", {"dense_act_fn": "no_such"}),
]


@pytest.mark.parametrize(("family", "changes"), REFUSED, ids=str)
def test_settings_that_are_not_described_are_refused(family: str, changes: dict[str, object]) -> None:
    specify(config_of(family))
    with pytest.raises(InputError) as error:
        specify(config_of(family, **changes))
    assert "\n" not in str(error.value) and len(str(error.value)) <= 200
