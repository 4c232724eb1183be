"""Ranks that say how sure they are: exact over Q and GF(p), with the gap of singular values over floats."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from attngeom.errors import DomainError
from attngeom.exact.domains import Array, Domain
from attngeom.exact.lapack import svdvals
from attngeom.limits.rounding import CLEAR_GAP

EPSILON = float(np.finfo(float).eps)


@dataclass(frozen=True)
class Rank:
    """A rank: exact, or numerical with singular values and the gap σ_r / σ_{r+1} behind it.

    ``is_clear`` is False when the singular values do not show a gap of 1000 at the cut: ``value`` is then a guess.
    """

    value: int
    is_exact: bool
    singular_values: tuple[float, ...] = ()
    gap: float | None = None

    @property
    def is_clear(self) -> bool:
        return self.is_exact or self.gap is None or self.gap >= CLEAR_GAP

    def to_json(self) -> dict[str, Any]:
        record: dict[str, Any] = {"value": self.value, "exact": self.is_exact}
        if not self.is_exact:
            record |= {"singular_values": list(self.singular_values), "gap": self.gap, "clear": self.is_clear}
        return record


def measured_rank(a: Array, domain: Domain, noise: float = 0.0) -> Rank:
    """The rank of a matrix; over floats the singular values above max(size·ε, noise)·σ_1 are counted.

    ``noise`` is the relative error of the entries. The gap tells how well the cut is determined; it is None when
    nothing lies below the cut.

    >>> from attngeom.exact import RR
    >>> measured_rank(np.array([[1.0, 2.0], [2.0, 4.0]]), RR).value
    1
    """
    if domain.is_exact:
        return Rank(domain.rank(a), True)
    if not domain.rounds:
        raise DomainError(f"rank over {domain.name} was asked for; exact or float weights are required")
    values = svdvals(a)
    if values.size == 0 or values[0] == 0:
        return Rank(0, False, tuple(values.tolist()), None)
    return count_above(values, max(a.shape) * max(8 * EPSILON, noise), values[0])


def count_above(values: Array, share: float, size: float) -> Rank:
    """The number of singular values above share · size, with the gap there.

    Rounding resolves nothing below ε times the size of what they were computed from: a smaller tail must not
    exaggerate the gap.
    """
    rank = int(np.sum(values > share * size))
    gap = None
    if rank < len(values):
        gap = float((values[rank - 1] if rank else size) / max(values[rank], EPSILON * size))
    return Rank(rank, False, tuple(values.tolist()), gap)
