"""The derivative of a whole model over GF(p), at pairs of tokens: rows of the Jacobian of its program.

The inputs are unit vectors, so that all values are functions of weights, rows of tables among them. What rests on one
token alone is *lone*, what rests on both is *joint*, and each pair has exponentials of its own: their values are random
residues, a function of the argument alone for lone ones, drawn for the pair and a number of an attempt for joint ones.
:mod:`attngeom.models.proofs.independence` checks that this is right. Tokens are drawn until their lone roots exist,
attempts until the joint roots of the pair do.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from attngeom.errors import SingularError
from attngeom.exact.arrays import Array
from attngeom.limits.recheck import PATTERN_MARGIN
from attngeom.programs.arithmetic import ModularArithmetic, RealArithmetic, evaluate_pattern, pattern_margin
from attngeom.programs.operations import OPERATIONS, Point, Trace
from attngeom.programs.passes import Traces, error_bounds, needed_entries, pull, run, vanishing_entries
from attngeom.programs.program import Program
from attngeom.programs.streams import MixedStreams

BATCH_ENTRIES = 4 * 10**6
MAX_BATCHES = 64
"""Of candidates for tokens, until enough of them have all lone roots."""
SPARE_TRIES = 2
"""A pair with k joint roots has 2^(k + 2) attempts: all fail with odds of exp(−4)."""
REAL_SIZES = (0.2, 0.6, 1.8)
"""Standard deviations of the real weights off which signs and choices are read, for one region after another.

Small ones leave the stream to the tokens, large ones reach clamps.
"""


class FreeArithmetic(ModularArithmetic):
    """GF(p) where functions have random values: of the residue, and of the attempt that each sample makes."""

    def __init__(self, streams: MixedStreams, attempts: Array | None = None) -> None:
        super().__init__(0, streams.point, streams)
        self.attempts = attempts

    def _random(self, function: str, a: Array) -> Array:
        if self.attempts is None or function in ("kappa", "angle"):
            return super()._random(function, a)
        missing = np.isnan(a)
        arguments = self.field.to_integers(np.where(missing, 0.0, a)).astype(np.int64)
        keys = arguments + self.p * (1 + self.attempts.reshape(-1, *[1] * (a.ndim - 1)))
        values = self.streams.function(f"joint/{function}", keys.ravel(), self.p).reshape(keys.shape)
        return np.where(missing, np.nan, self.balanced(values))


Missing = tuple[Array, Array, Array]
"""For each sample which roots are missing, which of them have a radicand, and whether it lies in the region."""


@dataclass(frozen=True)
class Pairs:
    """Ordered pairs of different tokens, each at one place, each with a number."""

    first: Array
    second: Array
    places: Array
    numbers: Array

    def __len__(self) -> int:
        return len(self.first)

    def __getitem__(self, key: Array | slice) -> Pairs:
        return Pairs(self.first[key], self.second[key], self.places[key], self.numbers[key])


@dataclass(eq=False)
class TokenPoint:
    """Weights and tokens mod p at which all lone roots exist, and the real point of a region."""

    program: Program
    name: str
    region: int = 0
    tokens: Array = field(init=False)
    real_tokens: Array = field(init=False)

    def __post_init__(self) -> None:
        self.streams = MixedStreams(self.name)
        self.domain = FreeArithmetic(self.streams)
        self.weights = {
            name: self.domain.balanced(self.streams.tensor(f"w/{name}", (1, *shape), self.domain.p))
            for name, shape in self.program.parameters.items()
        }
        self.rng = np.random.default_rng(int(self.streams.tensor("real", (1,), 2**31)[0]))
        scale = REAL_SIZES[self.region % len(REAL_SIZES)]
        self.real = {
            name: self.rng.normal(scale=scale, size=(1, *shape)) for name, shape in self.program.parameters.items()
        }
        self._draw_tokens()

    @property
    def prime(self) -> int:
        return self.domain.p

    @property
    def vocabulary(self) -> int:
        return self.program.parameters["tokens"][0]

    # What rests on what

    @cached_property
    def sources(self) -> list[frozenset[str]]:
        """For each node the inputs that it rests on, but for the word."""
        return [names - {"word"} for names in self.program.sources]

    def is_joint(self, place: int) -> bool:
        return not any(self.sources[place] <= {name} for name in ("first", "second"))

    @cached_property
    def outputs(self) -> Array:
        """The numbers of the outputs at each place of the tokens, one row each."""
        shape = self.program.nodes[self.program.output].shape
        numbers = np.arange(self.program.outputs).reshape(shape)
        rows = np.moveaxis(numbers, 1, 0) if both_are_read(self.program) else numbers
        return rows.reshape(len(rows), -1)

    @cached_property
    def flags(self) -> list[list[Array]]:
        """For each place of the tokens the entries of each node that its outputs rest on."""
        result = []
        for row in self.outputs:
            parts = [needed_entries(self.program, int(k)) for k in row]
            result.append([np.logical_or.reduce(own) for own in zip(*parts)])
        return result

    @cached_property
    def all_flags(self) -> list[Array]:
        return [np.logical_or.reduce(own) for own in zip(*self.flags)]

    @cached_property
    def roots(self) -> list[int]:
        return [k for k in self.program.places("root") if self.all_flags[k].any()]

    @cached_property
    def joint_roots(self) -> int:
        """How many roots of a pair rest on both tokens, at the place that has most."""
        joint = [k for k in self.roots if self.is_joint(k)]
        return max(sum(int(flags[k].sum()) for k in joint) for flags in self.flags)

    # Evaluation

    def _unit_vectors(self, tokens: Array) -> Array:
        """The coordinates of tokens in the affine hull of the table: 0, and the unit vectors."""
        return np.eye(self.vocabulary)[tokens][:, 1:]

    def _tensors(self, pairs: Pairs, real: bool) -> dict[str, Array]:
        tensors = dict(self.real if real else self.weights)
        tensors["tokens"] = (self.real_tokens if real else self.tokens)[None]
        tensors["first"], tensors["second"] = self._unit_vectors(pairs.first), self._unit_vectors(pairs.second)
        for name, shape in self.program.inputs.items():
            if name not in tensors:
                numbers = self.streams.tensors(f"{name}/", pairs.numbers.tolist(), "", shape, self.prime)
                tensors[name] = numbers / self.prime - 0.5 if real else self.domain.balanced(numbers)
        return tensors

    def patterns(self, tensors: Mapping[str, Array], lone: bool, count: int) -> tuple[dict[int, Array], Array]:
        """The patterns of the region at real weights and inputs, and which samples keep a margin."""
        clear, patterns = np.ones(count, dtype=bool), dict[int, Array]()
        places = [k for k in self.program.places("pattern") if not (lone and self.is_joint(k))]
        if not places:
            return patterns, clear
        needed = self.program.ancestors(places)
        point = Point(RealArithmetic(), dict(tensors))
        traces = run(self.program, point, needed.__contains__)
        zeros = vanishing_entries(self.program, traces)
        errors = error_bounds(traces, zeros)
        for place in places:
            trace = traces[place]
            assert trace is not None
            x, kind, source = trace.values[0], trace.node.data["kind"], trace.node.inputs[0]
            patterns[place] = evaluate_pattern(kind, x)
            margin = pattern_margin(kind, x, zeros[source], errors[source])
            clear &= np.broadcast_to(np.isfinite(margin) & (margin > PATTERN_MARGIN), clear.shape)
        return patterns, clear

    def evaluate(
        self, pairs: Pairs, attempts: Array, needed: Callable[[int], bool] = lambda place: True,
        words: Array | None = None, shown: Pairs | None = None,
    ) -> tuple[Traces, Array]:  # fmt: skip
        """The program at some pairs, each with the values of an attempt, and which of them lie in the region.

        ``shown``: the pairs off which patterns are read, if not the same.
        """
        tensors = self._tensors(pairs, real=False)
        if words is not None:
            tensors["word"] = words
        patterns, clear = self.patterns(self._tensors(shown or pairs, real=True), False, len(pairs))
        return self._run(tensors, patterns, attempts, needed), clear

    def _run(
        self, tensors: dict[str, Array], patterns: dict[int, Array], attempts: Array | None,
        needed: Callable[[int], bool],
    ) -> Traces:  # fmt: skip
        lone = Point(self.domain, tensors, patterns=patterns)
        joint = Point(FreeArithmetic(self.streams, attempts), tensors, patterns=patterns)
        traces: Traces = []
        for place, node in enumerate(self.program.nodes):
            if not needed(place):
                traces.append(None)
                continue
            values = [result(traces[source]) for source in node.inputs]
            point = joint if self.is_joint(place) else lone
            traces.append(OPERATIONS[node.operation].run(node, values, point, place))
        return traces

    # Tokens and attempts

    def _draw_tokens(self) -> None:
        """Rows of the table whose lone roots exist, wherever they stand."""
        size, width = self.program.parameters["tokens"]
        lone = [k for k in self.roots if not self.is_joint(k)]
        count = sum(int(self.all_flags[k].sum()) for k in lone)
        room = max(64, min(4096, BATCH_ENTRIES // self._size, size << min(count, 12)))
        kept: list[Array] = []
        kept_real: list[Array] = []
        for number in range(MAX_BATCHES):
            rows = self.domain.balanced(self.streams.tensor(f"t{number}", (room, width), self.prime))
            real = self.rng.normal(size=(room, width)) * np.exp(self.rng.uniform(-1.5, 1.5, (room, 1)))
            there = self._lone_roots(rows, real, lone)
            kept.append(rows[there])
            kept_real.append(real[there])
            if sum(map(len, kept)) >= size:
                self.tokens, self.real_tokens = np.concatenate(kept)[:size], np.concatenate(kept_real)[:size]
                return
        raise SingularError("no tokens with all roots at this point; another one is required")

    def lone_traces(self, rows: Array, real: Array, places: Sequence[int]) -> tuple[Traces, Array]:
        """Lone nodes at rows of the table, each as the first and as the second token."""
        needed = self.program.ancestors(places)
        size, width = self.program.parameters["tokens"]
        zeros = np.zeros((1, size - 1))

        def table(own: Array) -> Array:
            return np.concatenate([own[:, None], np.zeros((len(own), size - 1, width))], axis=1)

        tensors = {**self.weights, "tokens": table(rows), "first": zeros, "second": zeros}
        patterns, clear = self.patterns_of_lone(real, table)
        return self._run(tensors, patterns, None, needed.__contains__), clear

    def patterns_of_lone(self, real: Array, table: Callable[[Array], Array]) -> tuple[dict[int, Array], Array]:
        zeros = np.zeros((1, self.vocabulary - 1))
        tensors = {**self.real, "tokens": table(real), "first": zeros, "second": zeros}
        return self.patterns(tensors, True, len(real))

    def _lone_roots(self, rows: Array, real: Array, lone: Sequence[int]) -> Array:
        traces, there = self.lone_traces(rows, real, lone)
        values = entries(traces, lone, [self.all_flags[k] for k in lone], len(rows))
        return there & ~np.isnan(values).any(axis=1)

    @cached_property
    def _size(self) -> int:
        return sum(node.size for node in self.program.nodes)

    def find_attempts(self, pairs: Pairs) -> Array:
        """For each pair the number of the first attempt at which its joint roots exist; −1 if there is none.

        Or if some root was not seen to be there at some attempts and missing at others, where the roots before it are:
        a constant times a square, over what does not rest on the values of this pair, has a root always or never.
        """
        joint = [k for k in self.roots if self.is_joint(k)]
        tries = 1 << (self.joint_roots + SPARE_TRIES) if joint else 1
        chosen = np.full(len(pairs), -1)
        batch = max(1, BATCH_ENTRIES // (self._size * tries))
        for number in np.unique(pairs.places).tolist():
            own = np.flatnonzero(pairs.places == number)
            for start in range(0, len(own), batch):
                some = own[start : start + batch]
                attempts = (pairs.numbers[some][:, None] * tries + np.arange(tries)).ravel()
                missing, known, clear = self._missing(pairs[np.repeat(some, tries)], attempts, joint, number)
                shape = (len(some), tries, missing.shape[1])
                free = signs_are_free(missing.reshape(shape), known.reshape(shape))
                there = (clear & ~missing.any(axis=1)).reshape(len(some), tries)
                first = attempts.reshape(len(some), tries)[:, 0] + there.argmax(axis=1)
                chosen[some] = np.where(free & there.any(axis=1), first, -1)
        return chosen

    def _missing(self, pairs: Pairs, attempts: Array, joint: Sequence[int], number: int) -> Missing:
        """Which joint roots that outputs at a place rest on are missing, in order, and which have a radicand."""
        traces, clear = self.evaluate(pairs, attempts, self.program.ancestors(joint).__contains__)
        none = np.zeros((len(pairs), 0), dtype=bool)
        missing, known = [none], [none]
        for place in joint:
            flags, source = self.flags[number][place], self.program.nodes[place].inputs[0]
            root, radicand = (result(traces[k])[:, flags] for k in (place, source))
            missing.append(np.isnan(root))
            known.append(~np.isnan(radicand) & (radicand != 0))
        return np.concatenate(missing, axis=1), np.concatenate(known, axis=1), clear

    # Rows

    def rows(self, pairs: Pairs, attempts: Array, each: int) -> Array:
        """``each`` rows of the Jacobian for every pair: random words, and random forms on the outputs at its place."""
        batch = max(1, BATCH_ENTRIES // (self._size * each))
        parts = []
        for start in range(0, len(pairs), batch):
            some = np.repeat(np.arange(start, min(start + batch, len(pairs))), each)
            own, numbers = pairs[some], (pairs.numbers[some] * each + np.tile(np.arange(each), len(some) // each))
            words = None
            if "word" in self.program.inputs:
                shape = self.program.inputs["word"]
                words = self.domain.balanced(self.streams.tensors("word/", numbers.tolist(), "", shape, self.prime))
            traces, clear = self.evaluate(own, attempts[some], words=words)
            shape = self.program.nodes[self.program.output].shape
            size = self.program.outputs
            forms = self.domain.balanced(self.streams.tensors("c/", numbers.tolist(), "", (size,), self.prime))
            mask = np.zeros(forms.shape, dtype=bool)
            mask[np.arange(len(own))[:, None], self.outputs[own.places]] = True
            parts.append(self._gradients(traces, np.where(mask, forms, 0.0).reshape(-1, *shape), clear))
        return np.concatenate(parts)

    def _gradients(self, traces: Traces, forms: Array, clear: Array) -> Array:
        """Zeros may stand in the place of numbers that do not exist: the outputs at the place do not rest on them."""
        for trace in traces:
            if trace is not None:
                trace.values = [np.nan_to_num(x) for x in trace.values]
                trace.slope = None if trace.slope is None else np.nan_to_num(trace.slope)
        rows = self.program.join(pull(self.program, traces, forms), len(forms))
        return rows[clear]


def both_are_read(program: Program) -> bool:
    """Whether the output is that of both tokens, as in models whose tokens see each other; then it is stacked."""
    node = program.nodes[program.output]
    return node.operation == "gather" and len(node.inputs) == 2


def entries(traces: Traces, places: Sequence[int], flags: Sequence[Array], lead: int) -> Array:
    """The entries of some nodes that flags of their shapes mark, one column each."""
    columns = [np.zeros((lead, 0))]
    for place, own in zip(places, flags):
        values = result(traces[place])
        columns.append(np.broadcast_to(values, (lead, *values.shape[1:]))[:, own])
    return np.concatenate(columns, axis=1)


def signs_are_free(missing: Array, known: Array) -> Array:
    """Whether each root is there at some draws and missing at others, among those at which the roots before it are.

    Shapes (groups, draws, roots), the answer for each group. A root whose radicand is 0 or not there says nothing.
    """
    before = np.cumsum(missing, axis=2) - missing
    there, gone = ~missing & (before == 0), missing & known & (before == 0)
    answer: Array = (there.any(axis=1) & gone.any(axis=1)).all(axis=1)
    return answer


def result(trace: Trace | None) -> Array:
    assert trace is not None
    return trace.result
