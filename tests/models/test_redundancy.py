"""Redundancy by formula: published sizes, single parts by hand, refusals."""

from __future__ import annotations

import pytest

from attngeom.models.counts.redundancy import redundancy
from attngeom.models.presets import PUBLISHED, published

# name: parameters, attention, layer scope, whole model
TABLE = {
    "gpt2": (124_439_808, 1_198_080, 1_299_468, 1_346_584),
    "gpt2-xl": (1_557_611_200, 9_984_000, 10_828_848, 11_213_920),
    "llama-2-7b": (6_738_415_616, 16_908_288, 17_526_784, 25_913_344),
    "llama-3-8b": (8_030_261_248, 4_227_072, 4_952_064, 13_338_624),
    "mistral-7b": (7_241_732_096, 4_227_072, 4_952_064, 13_338_624),
    "qwen2.5-7b": (7_615_616_512, 1_849_344, 2_584_064, 9_004_800),
    "mixtral-8x7b": (46_702_792_704, 4_227_072, 8_294_400, 16_680_960),
    "phi-4": (14_659_507_200, 6_604_800, 7_736_320, 20_840_960),
    "gpt-oss-20b": (20_914_757_184, 798_720, 1_008_984, 5_154_744),
    "qwen3-8b": (8_190_735_360, 4_720_896, 5_462_272, 13_848_832),
    "gemma-2-9b": (9_241_705_984, 22_106_112, 23_009_280, 23_009_280),
    "deepseek-v3": (671_026_404_352, 335_872_832, 367_337_280, 393_023_808),
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_models(name: str) -> None:
    found = redundancy(published(name))
    assert (found.parameters, found.attention, found.layer_scope, found.total) == TABLE[name]
    record = found.to_json()
    parts = [record[key] for key in record if key not in ("total", "layer_scope", "standing", "reason")]
    assert sum(parts) == record["total"] == record["layer_scope"] + record["residual"]
