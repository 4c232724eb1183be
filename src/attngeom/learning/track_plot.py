"""One picture of a training run: distances to smaller ranks, the rank of the Jacobian, the drift of the laws."""

from __future__ import annotations

import io
from pathlib import Path

from matplotlib.ticker import MaxNLocator

from attngeom.drawing import Picture
from attngeom.errors import InputError
from attngeom.files import write_atomic
from attngeom.learning.track import Track
from attngeom.limits.shown import PLOT_LINES, PLOTTED_ZERO

FORMATS = (".png", ".svg", ".pdf")


def check_format(path: Path) -> None:
    """InputError unless the suffix of the name says how to draw."""
    if path.suffix not in FORMATS:
        raise InputError(f"--plot {path.name[:60]} given; a name that ends in {', '.join(FORMATS)} is required")


def draw_track(found: Track, path: Path) -> None:
    """Write the picture, as the suffix of the name says."""
    check_format(path)
    steps = range(len(found.snapshots))
    canvas = Picture(figsize=(8, 9))
    ranks, jacobian, drift = canvas.subplots(3, 1, sharex=True)
    names = [block.name for block in found.snapshots[0].blocks]
    lines = {
        name: [snapshot.blocks[place].distance for snapshot in found.snapshots] for place, name in enumerate(names)
    }
    for name in sorted(names, key=lambda name: min(lines[name]))[:PLOT_LINES]:
        ranks.semilogy(steps, [max(value, PLOTTED_ZERO) for value in lines[name]], marker=".", label=name)
    ranks.set_ylabel("distance to a smaller rank, σ/‖·‖")
    ranks.legend(fontsize=8, ncols=4)
    known = [(k, x.jacobian.rank) for k, x in zip(steps, found.snapshots) if x.jacobian is not None]
    if known:
        jacobian.plot(*zip(*known), "o-", color="#1b2a41", label="rank of the Jacobian here")
    if found.dimension is not None:
        jacobian.axhline(found.dimension, color="#e0a100", label="dimension")
    if known or found.dimension is not None:
        jacobian.legend(fontsize=8)
    jacobian.set_ylabel("rank")
    jacobian.set_ylim(bottom=0)
    # The drift of the first checkpoint is zero by definition.
    moved = [(k, max(x.drift, PLOTTED_ZERO)) for k, x in zip(steps, found.snapshots) if k and x.drift is not None]
    if moved:
        drift.semilogy(*zip(*moved), "o-", color="#4a7fb5")
    drift.set_ylabel("drift of the laws / ‖w_0‖²")
    drift.set_xlabel("checkpoint")
    drift.xaxis.set_major_locator(MaxNLocator(integer=True))
    stream = io.BytesIO()
    canvas.savefig(stream, format=path.suffix[1:], dpi=140, bbox_inches="tight")
    write_atomic(path, stream.getvalue())
