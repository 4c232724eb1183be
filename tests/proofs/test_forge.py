"""A small run of ``make forge``: no forgery is accepted, and every forger and kind takes part."""

from __future__ import annotations

from tests.effort import choose
from tests.proofs.forge import FORGERS, run


def test_no_forgery_is_accepted() -> None:
    counts, accepted = run(choose(250, 5000), seed=2026, report=lambda line: None)
    assert not accepted, accepted[0]
    seen = {name.split(", ")[0] for name in counts}
    assert seen >= {forger.__name__ for forger in FORGERS if forger.__name__ not in ("exchanged", "with_heads")}
    assert {name.split(", ")[1] for name in counts if ", " in name} >= {"layer", "dimension", "laws"}
