"""A small run of ``make forge``: no forgery is accepted, and every forger and kind takes part."""

from __future__ import annotations

from tests.effort import choose
from tests.proofs.forge import FORGERS, run


def test_no_forgery_is_accepted() -> None:
    counts, accepted = run(choose(320, 5000), seed=2026)
    assert not accepted, accepted[0]
    seen = {name.split(", ")[0] for name in counts}
    assert seen >= {forger.__name__ for forger in FORGERS}
    kinds = ("layer", "heads", "dimension", "laws", "learning-coefficient", "network", "layers")
    total = sum(number for name, number in counts.items() if name.startswith("kind "))
    assert all(counts[f"kind {kind}"] >= 0.02 * total for kind in kinds), counts
    assert all(counts[f"kind {kind}"] for kind in ("functions", "uniqueness", "ideal")), counts
