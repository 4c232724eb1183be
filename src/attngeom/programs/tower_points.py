"""Points of programs with many roots: samples of residues, at which roots lie in larger fields and always exist.

The coordinates of the gradient at a sample are m rows over GF(p). Their span over GF(p^m) is that of the gradient and
its conjugates, which are gradients at the same sample with other signs of roots: as honest as the first one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from attngeom.errors import SingularError
from attngeom.exact.arrays import Array
from attngeom.limits.trials import LONE_ROOTS
from attngeom.programs.arithmetic import ModularArithmetic
from attngeom.programs.passes import Traces, value
from attngeom.programs.points import Keep, NamedPoint, Progress, Sample
from attngeom.programs.program import Program
from attngeom.programs.streams import join_indices
from attngeom.programs.towers import TowerArithmetic


def drawn_roots(program: Program) -> dict[int, str]:
    """The roots for which residues are drawn, until they exist: those of one of several inputs alone, if they are few.

    Their tries add up from input to input.
    """
    lone = program.lone_roots if len(program.inputs) > 1 else {}
    counts = dict.fromkeys(lone.values(), 0)
    for place, name in lone.items():
        counts[name] += program.nodes[place].size
    return lone if max(counts.values(), default=0) <= LONE_ROOTS else {}


@dataclass(frozen=True)
class TowerPoint(NamedPoint):
    """A named point whose values lie in GF(p^m), m = ``degree``; weights, inputs and all but roots are residues.

    >>> from attngeom.programs import Builder
    >>> b = Builder()
    >>> x = b.input("x", (2,))
    >>> program = b.build(b.multiply(b.parameter("w", (2,)), b.root(x)))
    >>> point = TowerPoint(program, "attngeom/0", degree=2)
    >>> samples, rows = point.draw_rows(4)
    >>> samples, rows.shape
    ([(0,), (0,), (1,), (1,)], (4, 2))
    """

    def domain_of(self, level: int, samples: int) -> ModularArithmetic:
        streams = self._streams_of(self.functions or self.name)
        return TowerArithmetic(level, self.name, streams, self.degree, samples)

    @cached_property
    def batch(self) -> int:
        return max(1, super().batch // self.degree)

    def forms(self, samples: Sequence[Sample]) -> Array:
        """Linear forms with values in GF(p^m), their coordinates below each other."""
        shape = self.program.nodes[self.program.output].shape
        indices = [sample[0] for sample in samples]
        forms = self.streams.tensors("c", indices, "", (self.degree, *shape), self.prime)
        return self.domain().balanced(forms).reshape(-1, *shape)

    def _missing(self, traces: Traces, lead: int) -> Array:
        output = np.isnan(value(self.program, traces))
        return np.asarray(output.reshape(lead, self.degree, -1).any(axis=1))

    def draw(self, count: int, start: int = 0, lowest: int = 0) -> list[Sample]:
        """So many samples; where roots of one input alone are drawn, those at which they exist."""
        columns: list[list[int]] = [list(range(start, start + count))] * lowest
        for level in range(lowest, self.levels + 1):
            pools = self._pools(level, start) if drawn_roots(self.program) else []
            if pools:
                columns.append([join_indices(indices) for indices in zip(*(pool.take(0, count) for pool in pools))])
            else:
                columns.append(list(range(start, start + count)))
        return list(zip(*columns))

    def draw_alone(self, count: int, start: int = 0) -> list[int]:
        return [sample[0] for sample in self.draw(count, start)]

    def draw_rows(
        self, count: int, progress: Progress | None = None, keep: Keep | None = None
    ) -> tuple[list[Sample], Array]:
        """At least so many rows, m for each sample, with the sample of each."""
        m, number = self.degree, -(-count // self.degree)
        samples: list[Sample] = []
        parts: list[Array] = []
        start = tried = 0
        while len(samples) < number:
            drawn = self.draw(number - len(samples), start)
            start, tried = 1 + max(self._last_index(sample) for sample in drawn), tried + len(drawn)
            if keep is not None:
                drawn = [sample for sample, kept in zip(drawn, keep(drawn)) if kept]
            rows = self.rows(drawn, progress).reshape(len(drawn), m, -1)
            there = np.asarray(~np.isnan(rows).any(axis=(1, 2)))
            parts.append(rows[there].reshape(-1, rows.shape[-1]))
            samples += [sample for sample, exists in zip(drawn, there.tolist()) if exists]
            if tried > 64 * (number + len(samples)):
                raise SingularError("the program does not exist at most samples; another point is required")
        return [sample for sample in samples for _ in range(m)], np.concatenate(parts)

    def all_rows(self, sample: Sample) -> Array:
        raise SingularError("all outputs of one sample are taken with residues alone")
