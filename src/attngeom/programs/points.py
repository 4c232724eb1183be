"""Named points of a program: weights, samples and cotangents mod p, and the real point that a region is read off.

Labels of the streams of :mod:`attngeom.exact.points`: ``wk/NAME`` are weights and ``xk.r/NAME`` the r-th inputs at
level k of the chain of primes, ``cr`` is the r-th linear form on the outputs; ``rs/NAME`` the real weights of region s
and ``rx.r/NAME`` the r-th real inputs, integers mod 4097 that become (n − 2048)/1024.

A *sample* is a tuple of indices r, one for each level: levels are drawn independently, because every homomorphism of
the arguments of exponentials will do, and so a level whose roots are missing is drawn again without the others. So are
the inputs of a level: r = r₀ + Σ_k 2^20k·((r_k − r₀) mod 2^20) has the r_k-th one of the k-th input, k = 0, 1, …
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np

from attngeom.errors import SingularError
from attngeom.exact.arrays import Array
from attngeom.limits.memory import SAMPLED_ENTRIES
from attngeom.limits.recheck import PATTERN_MARGIN
from attngeom.limits.trials import SAMPLE_TRIES
from attngeom.programs.arithmetic import CHAIN, ModularArithmetic, RealArithmetic, evaluate_pattern, pattern_margin
from attngeom.programs.existence import InputPool, RootFilter
from attngeom.programs.operations import Point
from attngeom.programs.passes import Traces, error_bounds, needed_entries, pull, run, value, vanishing_entries
from attngeom.programs.program import Program
from attngeom.programs.streams import HashedStreams, MixedStreams, Streams, input_index, join_indices

REAL_STEPS, REAL_MIDDLE, REAL_SCALE = 4097, 2048, 1024

Sample = tuple[int, ...]
Keep = Callable[[Sequence[Sample]], Sequence[bool]]
"""Which of some samples count."""
Progress = Callable[[str, int, int], None]
"""Told what is done, how far it is, and how far it goes."""


@dataclass(frozen=True)
class NamedPoint:
    """Everything random about one evaluation of a program, by its name; ``region`` numbers the real weights.

    A ``quick`` point takes its residues from a mixer instead of SHA-256: it cannot stand in a certificate. With
    ``functions`` the values of functions and constants are those of the point of this name: other weights alone.

    >>> from attngeom.programs import Builder
    >>> b = Builder()
    >>> program = b.build(b.contract("i,i->", b.parameter("w", (2,)), b.input("x", (2,))))
    >>> point = NamedPoint(program, "attngeom/0")
    >>> point.draw(2), point.rows(point.draw(2)).shape
    ([(0,), (1,)], (2, 2))
    """

    program: Program
    name: str
    region: int = 0
    quick: bool = False
    functions: str = ""
    degree: int = 1

    @cached_property
    def streams(self) -> Streams:
        return self._streams_of(self.name)

    def _streams_of(self, name: str) -> Streams:
        return MixedStreams(name) if self.quick else HashedStreams(name)

    def domain(self, level: int = 0) -> ModularArithmetic:
        """GF(p) at a level of the chain, with the functions of this point."""
        return ModularArithmetic(level, self.name, self._streams_of(self.functions or self.name))

    def domain_of(self, level: int, samples: int) -> ModularArithmetic:
        """Where values of so many samples lie at a level."""
        return self.domain(level)

    @property
    def prime(self) -> int:
        return CHAIN[0]

    @cached_property
    def levels(self) -> int:
        """How many levels of the chain below the first one are needed: how deep exponentials are nested."""
        return min(max(self.program.exponents.values(), default=0), len(CHAIN) - 1)

    @cached_property
    def batch(self) -> int:
        """How many samples are evaluated at once."""
        size = sum(node.size for node in self.program.nodes) + self.program.num_parameters
        return max(1, min(256, SAMPLED_ENTRIES // max(size, 1)))

    def weights(self, level: int = 0) -> dict[str, Array]:
        """The weights at a level of the chain, with a leading axis of length 1."""
        if level not in self._weights:
            domain = self.domain(level)
            self._weights[level] = {
                name: domain.balanced(self.streams.tensor(f"w{level}/{name}", (1, *shape), domain.p))
                for name, shape in self.program.parameters.items()
            }
        return self._weights[level]

    @cached_property
    def _weights(self) -> dict[int, dict[str, Array]]:
        return {}

    def inputs(self, indices: Iterable[int], level: int = 0) -> dict[str, Array]:
        """Some inputs at a level of the chain."""
        samples = list(indices)
        return {
            name: self.input(name, [input_index(r, k) for r in samples], level)
            for k, name in enumerate(self.program.inputs)
        }

    def input(self, name: str, indices: Sequence[int], level: int = 0) -> Array:
        """Some of the inputs with one name at a level of the chain."""
        shape, domain = self.program.inputs[name], self.domain(level)
        return domain.balanced(self.streams.tensors(f"x{level}.", indices, f"/{name}", shape, domain.p))

    def forms(self, samples: Sequence[Sample]) -> Array:
        """A random linear form on the outputs for each sample."""
        shape = self.program.nodes[self.program.output].shape
        forms = self.streams.tensors("c", [sample[0] for sample in samples], "", shape, CHAIN[0])
        return self.domain().balanced(forms)

    def real(self, indices: Iterable[int]) -> Traces:
        """The program in floats at the real point of the region."""
        tensors = {
            name: self._real(f"r{self.region}/{name}", shape)[None] for name, shape in self.program.parameters.items()
        }
        samples = list(indices)
        for k, (name, shape) in enumerate(self.program.inputs.items()):
            tensors[name] = np.stack([self._real(f"rx.{input_index(r, k)}/{name}", shape) for r in samples])
        return run(self.program, Point(RealArithmetic(), tensors))

    def _real(self, label: str, shape: tuple[int, ...]) -> Array:
        steps = self.streams.tensor(label, shape, REAL_STEPS)
        return (steps - REAL_MIDDLE) / REAL_SCALE

    @cached_property
    def pattern_places(self) -> list[int]:
        return list(self.program.places("pattern"))

    def patterns(self, samples: Sequence[Sample]) -> tuple[dict[int, Array], Array]:
        """The patterns of the region at some samples, and which samples keep a margin, if they need one."""
        clear = np.ones(len(samples), dtype=bool)
        if not self.pattern_places:
            return {}, clear
        traces, patterns = self.real(sample[0] for sample in samples), {}
        zeros = [] if self.quick else vanishing_entries(self.program, traces)
        errors = [] if self.quick else error_bounds(traces, zeros)
        for place in self.pattern_places:
            trace = traces[place]
            assert trace is not None
            kind, x = trace.node.data["kind"], trace.values[0]
            patterns[place] = evaluate_pattern(kind, x)
            if self.quick:
                clear &= np.broadcast_to(np.isfinite(x).reshape(len(x), -1).all(axis=1), clear.shape)
                continue
            source = trace.node.inputs[0]
            margin = pattern_margin(kind, x, zeros[source], errors[source])
            clear &= np.broadcast_to(np.isfinite(margin) & (margin > PATTERN_MARGIN), clear.shape)
        return patterns, clear

    def evaluate(self, samples: Sequence[Sample], lowest: int = 0) -> tuple[Traces, Array]:
        """The program mod p at some samples, and which of them lie in the region with a margin.

        Arguments of exponentials are evaluated one level down the chain first, as far as they are nested.
        """
        program, depth = self.program, self.program.exponents
        patterns, clear = self.patterns(samples)
        below: dict[int, Array] = {}
        traces: Traces = []
        for level in range(self.levels, lowest - 1, -1):
            tensors = self.weights(level) | self.inputs((sample[level] for sample in samples), level)
            domain = self.domain_of(level, len(samples))
            point = Point(domain, {name: domain.leading(x) for name, x in tensors.items()}, below, patterns)
            traces = run(program, point, lambda place, level=level: depth[place] >= level)  # type: ignore[misc]
            below = {}
            for place, node in enumerate(program.nodes):
                if node.operation == "formal" and node.data["name"] in ("exp", "gauss"):
                    argument = traces[node.inputs[0]]
                    if argument is not None:
                        below[place] = argument.result
        return traces, clear

    @cached_property
    def _needed(self) -> list[Array]:
        return needed_entries(self.program)

    def weights_exist(self, lowest: int = 0) -> bool:
        """Whether the roots and inverses of weights alone that outputs need exist here, at all levels from one on."""
        program, depth = self.program, self.program.exponents
        fixed = [not flag for flag in program.depends_on_input]
        patterns = self.patterns([(0,) * (self.levels + 1)])[0]
        below: dict[int, Array] = {}
        for level in range(self.levels, lowest - 1, -1):
            point = Point(self.domain(level), self.weights(level), below, patterns)
            is_run = [flag and depth[place] >= level for place, flag in enumerate(fixed)]
            traces = run(program, point, is_run.__getitem__)
            below = {}
            for place, (node, flags) in enumerate(zip(program.nodes, self._needed)):
                trace = traces[place]
                if (
                    trace is not None
                    and node.operation in ("root", "inverse")
                    and np.isnan(trace.result[0][flags]).any()
                ):
                    return False
                argument = traces[node.inputs[0]] if node.operation == "formal" else None
                if argument is not None:
                    below[place] = argument.result
        return True

    def _existing(self, samples: Sequence[Sample], level: int) -> Array:
        """Which samples exist at this level: at level 0 some output does, below it everything that outputs need."""
        traces, clear = self.evaluate(samples, level)
        if level == 0:
            return clear & ~self._missing(traces, len(samples)).all(axis=1)
        for trace, flags in zip(traces, self._needed):
            if trace is not None and trace.node.operation in ("root", "inverse", "formal"):
                clear = clear & ~np.isnan(trace.result[:, flags]).any(axis=1)
        return clear

    def draw_rows(
        self, count: int, progress: Progress | None = None, keep: Keep | None = None
    ) -> tuple[list[Sample], Array]:
        """So many samples with the rows of the Jacobian there; see :meth:`draw`. With ``keep`` of those that it keeps.

        SingularError where these are less than one in 64.
        """
        samples: list[Sample] = []
        full = np.empty((count, self.program.num_parameters))
        start = tried = 0
        while len(samples) < count:
            drawn = self.draw(count - len(samples), start)
            last = max(self._last_index(sample) for sample in drawn)
            if keep is not None:
                drawn = [sample for sample, kept in zip(drawn, keep(drawn)) if kept]
                tried += count - len(samples)
                if tried > 64 * (count + len(samples)):
                    raise SingularError("samples that count are rare")
            rows = full[len(samples) : len(samples) + len(drawn)]
            self._fill_rows(rows, drawn, progress)
            there = np.flatnonzero(~np.isnan(rows).any(axis=1))
            if len(there) < len(rows):
                rows[: len(there)] = rows[there]
            samples += [drawn[k] for k in there.tolist()]
            start = max(start + 64, 1 + last)
            # Each root in the cone of an output exists at every other sample: up to ten of them are waited for.
            if start > 256 + 16 * count and len(samples) * 2**14 < start:
                raise SingularError("the program does not exist at most samples; another point is required")
        return samples, full

    def _last_index(self, sample: Sample) -> int:
        return max(input_index(r, k) for r in sample for k in range(len(self.program.inputs)))

    def draw(self, count: int, start: int = 0, lowest: int = 0) -> list[Sample]:
        """So many samples, with roots those at which all exist, level by level from the innermost exponentials out.

        Down to the level ``lowest``; below it indices are those of their numbers. SingularError if the roots that are
        needed do not exist at any of many samples: draw other weights.
        """
        if not any(self.program.places("root")):
            return [(r,) * (self.levels + 1) for r in range(start, start + count)]
        samples: list[Sample] = [()] * count
        for level in range(self.levels, lowest - 1, -1):
            samples = self._draw_level(samples, level, start)
        return [(start + k,) * lowest + sample for k, sample in enumerate(samples)]

    def draw_lone(self, count: int, start: int = 0) -> list[Sample]:
        """So many samples at which the roots that rest on one input alone exist, and those below the first level."""
        samples: list[Sample] = [()] * count
        for level in range(self.levels, 0, -1):
            samples = self._draw_level(samples, level, start)
        return [(index, *sample) for index, sample in zip(self.draw_alone(count, start), samples)]

    def draw_alone(self, count: int, start: int = 0) -> list[int]:
        """So many indices of the first level at which the roots that rest on one input alone exist."""
        pools = self._pools(0, start)
        if not pools:
            return list(range(start, start + count))
        return [join_indices(indices) for indices in zip(*(pool.take(0, count) for pool in pools))]

    def evaluate_inner(self, places: Sequence[int], indices: Sequence[int]) -> tuple[Traces, Array]:
        """Nodes that rest on no exponential, at some indices of the first level, and the inputs there in rows."""
        inputs, domain = self.inputs(indices), self.domain_of(0, len(indices))
        tensors = {name: domain.leading(x) for name, x in (self.weights() | inputs).items()}
        traces = run(self.program, Point(domain, tensors), self.program.ancestors(places).__contains__)
        return traces, np.concatenate([x.reshape(len(indices), -1) for x in inputs.values()], axis=1)

    def evaluate_lone(self, name: str, places: Sequence[int], indices: Sequence[int]) -> Traces:
        """Nodes that rest on one input alone, at some of these inputs."""
        tensors = self.weights() | {name: self.input(name, indices)}
        return run(self.program, Point(self.domain(), tensors), self.program.ancestors(places).__contains__)

    def _draw_level(self, below: Sequence[Sample], level: int, start: int) -> list[Sample]:
        """Samples that are known below a level, each with an index at this one.

        Several inputs are drawn singly first, until the roots exist that rest on one of them alone: their tries add up
        instead of being multiplied.
        """
        count, filler, roots = len(below), (0,) * level, self._filter(level)
        pools = self._pools(level, start)
        kept: list[Sample] = []
        index, room = start, min(roots.batch, max(16, 4 * count))
        while len(kept) < count:
            indices: Sequence[int] = range(index, index + room)
            if pools:
                indices = [join_indices(x) for x in zip(*(pool.take(index - start, room) for pool in pools))]
            known = roots.exists(self.inputs(indices, level))
            tries = [
                (*filler, indices[k], *below[(len(kept) + number) % count])
                for number, k in enumerate(np.flatnonzero(known).tolist())
            ]
            index += room
            for first in range(0, len(tries), self.batch):
                part = tries[first : first + self.batch]
                good = self._existing([self._padded(sample) for sample in part], level)
                kept += [sample[level:] for sample, ok in zip(part, good) if ok]
                if len(kept) >= count:
                    break
            if index - start > SAMPLE_TRIES * (1 + len(kept)):
                raise SingularError("no roots at this point; another one is required")
            expected = (count - len(kept)) * (index - start) * 5 // (4 * max(1, len(kept)))
            room = min(roots.batch, max(16, expected))
        return kept[:count]

    def _pools(self, level: int, start: int) -> list[InputPool]:
        """For each of several inputs those whose own roots exist; what has many is kept while others are tried."""
        names = list(self.program.inputs)
        if len(names) < 2:
            return []
        filters = [RootFilter(self.program, self.domain(level), self.weights(level), level, name) for name in names]
        counts = [roots.count for roots in filters]
        joint = self._filter(level).count - sum(counts)
        return [
            InputPool(roots, partial(self.input, name, level=level), start, joint if count == max(counts) else 0)
            for name, roots, count in zip(names, filters, counts)
        ]

    def _filter(self, level: int) -> RootFilter:
        if level not in self._filters:
            self._filters[level] = RootFilter(self.program, self.domain(level), self.weights(level), level)
        return self._filters[level]

    @cached_property
    def _filters(self) -> dict[int, RootFilter]:
        return {}

    def _padded(self, sample: Sample) -> Sample:
        return sample + (0,) * (self.levels + 1 - len(sample))

    def _missing(self, traces: Traces, lead: int) -> Array:
        """For each sample and each output whether it does not exist."""
        output = value(self.program, traces)
        flat = np.isnan(output).reshape(len(output), -1)
        return np.broadcast_to(flat, (lead, flat.shape[1]))

    def rows(self, samples: Sequence[Sample], progress: Progress | None = None) -> Array:
        """One row of the Jacobian for each sample: the gradient of a random linear form on the outputs that exist.

        Rows of samples without an output are NaN.
        """
        rows = np.empty((self.degree * len(samples), self.program.num_parameters))
        self._fill_rows(rows, samples, progress)
        return rows

    def _fill_rows(self, rows: Array, samples: Sequence[Sample], progress: Progress | None) -> None:
        m = self.degree
        for start in range(0, len(samples), self.batch):
            part = samples[start : start + self.batch]
            traces, clear = self.evaluate(part)
            missing = self._missing(traces, len(part))
            forms = self.forms(part)
            forms = np.where(np.repeat(missing, m, axis=0).reshape(forms.shape), 0.0, forms)
            gradients = self._gradients(traces, forms)
            gradients[np.repeat(~clear | missing.all(axis=1), m)] = np.nan
            rows[m * start : m * (start + len(part))] = gradients
            if progress is not None:
                progress("rows of the Jacobian", start + len(part), len(samples))

    def _gradients(self, traces: Traces, forms: Array) -> Array:
        """The gradients of linear forms on the outputs that exist.

        No such output rests on a number that does not exist, so that zeros may stand in the place of those.
        """
        for trace in traces:
            if trace is not None:
                trace.values = [np.nan_to_num(x) if np.isnan(x).any() else x for x in trace.values]
                if trace.slope is not None and np.isnan(trace.slope).any():
                    trace.slope = np.nan_to_num(trace.slope)
        return self.program.join(pull(self.program, traces, forms), len(forms))

    def all_rows(self, sample: Sample) -> Array:
        """The gradients of all outputs at one sample; those of outputs that do not exist are NaN."""
        traces, clear = self.evaluate([sample])
        output, missing = value(self.program, traces)[0], self._missing(traces, 1)[0]
        count = output.size
        rows = []
        for start in range(0, count, self.batch):
            forms = np.eye(count)[start : start + self.batch].reshape(-1, *output.shape)
            rows.append(self._gradients(traces, forms))
        full = np.concatenate(rows)
        full[missing | ~clear[0]] = np.nan
        return full
