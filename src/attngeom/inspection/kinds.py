"""Where weights of a kind beyond the papers lie: their symmetries, what is free, and the hypotheses of Theorem M."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from attngeom.dimensions.answer import LOSSES
from attngeom.dimensions.point import PointRank
from attngeom.dimensions.program_point import orbit_rank_at
from attngeom.exact.domains import QQ, Array, Domain
from attngeom.exact.precise import measured_rank
from attngeom.inspection.hypotheses import Hypothesis
from attngeom.network import Weights
from attngeom.network.invariants import joined, values_of
from attngeom.network.symmetry import count_generators
from attngeom.network.weights import Head
from attngeom.results import Standing

THEOREM = "Theorem M"
GATES = ("w", "u", "G")
"""Tensors that gates read the input with."""


@dataclass(frozen=True)
class LocalFreedom:
    """The symmetry group of an architecture, and its orbit at given weights beside the kernel of the differential.

    ``is_generic``: the rank at the point is the dimension of the set of functions; None where that is not known.
    """

    group: Mapping[str, int]
    orbit: int
    kernel: int | None
    is_generic: bool | None
    standing: Standing
    reason: str

    @property
    def unexplained(self) -> int | None:
        """Directions of the kernel along which no listed symmetry moves."""
        return None if self.kernel is None else self.kernel - self.orbit

    def rows(self) -> Mapping[str, Any]:
        names = {True: "generic", False: "critical", None: "undecided"}
        lines: dict[str, Any] = {"point": f"{names[self.is_generic]}: {self.reason}"}
        lines["free to change here"] = f"{self.orbit} direction{'' if self.orbit == 1 else 's'} along the symmetries"
        lines |= {f"  {name}": f"{count}  {LOSSES[name]}" for name, count in self.group.items()}
        if self.unexplained:
            lines["kernel beyond the symmetries"] = f"dimension {self.unexplained}, to first order"
        return lines

    def to_json(self) -> dict[str, Any]:
        return {
            "is_generic": self.is_generic,
            "group": dict(self.group),
            "orbit_dimension": self.orbit,
            "kernel_dimension": self.kernel,
            "unexplained": self.unexplained,
            "standing": self.standing,
            "reason": self.reason,
        }


def freedom_of(weights: Weights, local: PointRank | None) -> LocalFreedom:
    """The symmetries at a point, and whether the rank there is the largest.

    >>> from attngeom.dimensions.point import rank_at
    >>> from attngeom.network import Architecture, random_weights
    >>> w = random_weights(Architecture((3, 2), 2, kind="gla"), QQ, seed=0)
    >>> free = freedom_of(w, rank_at(w))
    >>> free.is_generic, free.orbit, sorted(free.group.items())
    (True, 3, [('channels', 2), ('scale', 1)])
    """
    group = {name: count for name, count in count_generators(weights.architecture).items() if count}
    orbit = orbit_rank_at(weights.to(QQ))
    if local is None:
        reason = "too many weights for the rank at this point: attngeom dim tells the dimension by theorem"
        return LocalFreedom(group, orbit, None, None, "undecided", reason)
    numbers = f"rank {local.rank} of {'an unknown dimension' if local.generic is None else local.generic}"
    is_known = local.standing in ("proven", "estimate") and local.generic is not None
    is_generic = local.rank >= (local.generic or 0) if is_known else None
    if is_generic:
        reason = f"{numbers}: near it weights of one function are those that the group moves it to"
        if local.kernel_dimension > orbit:
            reason = f"{numbers}, the largest there is"
    elif is_generic is None:
        reason = f"{numbers}; {local.reason}"
    else:
        reason = f"{numbers}: the differential falls short here"
    kernel = local.kernel_dimension if is_known else None
    return LocalFreedom(group, orbit, kernel, is_generic, local.standing if is_known else "undecided", reason)


def generic_hypotheses(weights: Weights, noise: float = 0.0) -> tuple[Hypothesis, ...]:
    """What Theorem M asks of weights, head by head: values, scores and gates that are not zero, and different gates.

    >>> from attngeom.network import Architecture, random_weights
    >>> [x.holds for x in generic_hypotheses(random_weights(Architecture((3, 2), 2, kind="gla"), QQ, seed=0))]
    [True, True, True, True]
    """
    domain, kind = weights.domain, weights.architecture.mechanism
    listed = []
    for index, heads in enumerate(weights.layers):
        values = [values_of(head, kind, domain) for head in heads]
        scores = [domain.matmul(joined(head, "K").T, joined(head, "Q")) for head in heads]
        symmetric = [domain.reduce(A + A.T) for A in scores]
        where = f" in layer {index + 1}" if len(weights.layers) > 1 else ""
        checks = {
            f"every V is not zero{where}": [_is_nonzero(V, domain, noise) for V in values],
            f"every A is not zero{where}": [_is_nonzero(A, domain, noise) for A in scores],
        }
        if kind.is_recurrent and "query-key" in kind.symmetries():
            checks[f"no A is skew{where}"] = [_is_nonzero(A, domain, noise) for A in symmetric]
        gates = list(_gates(heads))
        if gates:
            checks[f"every gate reads the input{where}"] = [_is_nonzero(row, domain, noise) for row in gates]
        if len(gates) > 1:
            checks[f"no two gates are equal or opposite{where}"] = [
                _is_nonzero(domain.reduce(x + sign * y), domain, noise)
                for x, y in combinations(gates, 2)
                if x.shape == y.shape
                for sign in (1, -1)
            ]
        listed += [Hypothesis(THEOREM, statement, _all(answers)) for statement, answers in checks.items()]
    return tuple(listed)


def _gates(heads: tuple[Head, ...]) -> Iterator[Array]:
    """The linear forms of all gates of a layer, a row each."""
    for head in heads:
        for letter in GATES:
            if letter in head.extra:
                yield from (row[None] for row in head.extra[letter])


def _is_nonzero(array: Array, domain: Domain, noise: float) -> bool | None:
    rank = measured_rank(np.atleast_2d(array), domain, noise)
    return rank.value > 0 if rank.is_clear else None


def _all(answers: list[bool | None]) -> bool | None:
    return False if False in answers else None if None in answers else True
